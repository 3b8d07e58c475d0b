"""Command line: `python -m bench.drivers [--quick] [--write FILE]`, from the repository root."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.drivers import section
from bench.drivers.comparison import Turns, take_turns
from bench.drivers.contenders import SHIPPED_STRIDE, explorer, machine, walk
from bench.machine import describe_machine
from kvspec.pool import PoolScope

DEFAULT = PoolScope()
WIDE = PoolScope(blocks=(6,), holders=3, prefixes=2, depth=4, shared=1, spans=(1, 2), hold=4, watchers=2)


def main() -> int:
    """Measure and print; exit code 1 if a goal was missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.drivers", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="one short round at the default scope: does it run at all?"
    )
    parser.add_argument("--rounds", type=int, default=7, help="turns of each driver at each scope (default 7)")
    parser.add_argument("--cpu-seconds", type=float, default=1.0, help="length of a turn (default 1)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the text to this Markdown file")
    arguments = parser.parse_args()
    rounds, cpu_seconds = (1, 0.2) if arguments.quick else (arguments.rounds, arguments.cpu_seconds)
    turns = []
    for scope in (DEFAULT,) if arguments.quick else (DEFAULT, WIDE):
        turns.append((scope, measure(scope, rounds, cpu_seconds)))
        print(f"measured {scope}", file=sys.stderr)
    text = section.render(turns)
    print(text)
    if arguments.write is not None:
        arguments.write.write_text(f"Machine: {describe_machine()}.\n\n{text}\n", encoding="utf-8")
    return 1 if "missed" in text else 0


def measure(scope: PoolScope, rounds: int, cpu_seconds: float) -> Turns:
    """All drivers at one scope."""
    return take_turns(
        {
            section.WALK: walk(scope, SHIPPED_STRIDE),
            section.MACHINE: machine(scope, SHIPPED_STRIDE),
            section.WALK_ALL: walk(scope, 1),
            section.MACHINE_ALL: machine(scope, 1),
            section.EXPLORER: explorer(scope, in_lockstep=True),
            section.MODEL: explorer(scope, in_lockstep=False),
        },
        rounds,
        cpu_seconds,
    )


if __name__ == "__main__":
    sys.exit(main())
