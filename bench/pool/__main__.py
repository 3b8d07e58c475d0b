"""Command line: `python -m bench.pool --tree PATH [--quick] [--write FILE]`, from the repository root."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.machine import describe_machine

from .section import SIZES, compare_pools


def main() -> int:
    """Measure and print; exit code 1 if a promise was missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.pool", description=__doc__)
    parser.add_argument("--tree", type=Path, required=True, help="source tree (or its vllm directory) of vLLM")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the tables to this Markdown file")
    parser.add_argument("--quick", action="store_true", help="smallest pool, few repetitions: does it run at all?")
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES), help="pool sizes to measure")
    parser.add_argument("--repetitions", type=int, default=61, help="paired repetitions per row (default 61)")
    arguments = parser.parse_args()
    sizes, repetitions = (["1k"], 3) if arguments.quick else (arguments.sizes, arguments.repetitions)
    text = compare_pools(arguments.tree, sizes, repetitions)
    print(text)
    if arguments.write is not None:
        arguments.write.write_text(f"Machine: {describe_machine()}.\n\n{text}\n", encoding="utf-8")
    return 1 if "missed" in text else 0


if __name__ == "__main__":
    sys.exit(main())
