"""Speed measurements; `python -m bench` runs them and writes bench/RESULTS.md. No part of the distribution."""
