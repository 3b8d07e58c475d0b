"""How many steps the walk, the explorer and the Hypothesis machine take in a CPU second, side by side."""
