"""Side-by-side speed of kvpool's BlockPool and the BlockPool of a vLLM tree."""
