"""Command line: `python -m bench.explorer [--quick] [--write FILE]`, from the repository root."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.explorer import spin
from bench.explorer.comparison import count, plant, race
from bench.explorer.section import render
from bench.explorer.small_model import SmallScope
from bench.machine import describe_machine

SMALL = SmallScope(blocks=3, requests=2, hashes=2, longest=3)
LARGE = SmallScope(blocks=4, requests=2, hashes=2, longest=4)
THREE_REQUESTS = SmallScope(blocks=4, requests=3, hashes=2, longest=2)


def main() -> int:
    """Measure and print; exit code 1 if a goal was missed, a missing Spin is none."""
    parser = argparse.ArgumentParser(prog="python -m bench.explorer", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smallest scope only: does it run at all?")
    parser.add_argument("--rounds", type=int, default=9, help="runs of each side (default 9)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the text to this Markdown file")
    arguments = parser.parse_args()
    # Races first: an exploration of some hundred thousand states leaves a heap behind that slows down the next one.
    races = []
    if spin.is_installed() and not arguments.quick:
        for scope in (LARGE, THREE_REQUESTS):
            races.append(race(scope, arguments.rounds))
            print(f"raced {scope}", file=sys.stderr)
    agreements = []
    for scope in (SMALL,) if arguments.quick else (SMALL, LARGE):
        agreements.append(count(scope))
        print(f"counted {scope}", file=sys.stderr)
    version = spin.version() if spin.is_installed() else ""
    text = render(version, agreements, races, plant(LARGE))
    print(text)
    if arguments.write is not None:
        arguments.write.write_text(f"Machine: {describe_machine()}.\n\n{text}\n", encoding="utf-8")
    return 1 if "missed" in text else 0


if __name__ == "__main__":
    sys.exit(main())
