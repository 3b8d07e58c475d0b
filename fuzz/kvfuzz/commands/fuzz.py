"""`kvproof fuzz`: the random walk, for as long as it is given."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import click

from kvfuzz.adapter import in_dialect
from kvfuzz.commands.options import (
    chosen_target,
    json_option,
    level_option,
    scope_from,
    scope_options,
    seed_option,
    target_option,
    write_json,
)
from kvfuzz.config import read_config
from kvfuzz.gate import run_suites
from kvfuzz.judge import Judge
from kvfuzz.report import TerminalReport
from kvfuzz.result import EXIT_CODES
from kvfuzz.suites import DEFAULT_MACHINE_SCOPE, DEFAULT_WALK_SCOPE, MACHINE, WALK, Suite
from kvfuzz.targets import load_target


@click.command("fuzz")
@target_option
@level_option
@click.option(
    "--driver", type=click.Choice(["walk", "machine"]), default="walk", help="Fast walk or Hypothesis machine."
)
@click.option("--steps", type=int, default=None, help="Stop after this many calls (default 500000).")
@click.option("--seconds", type=float, default=None, help="Stop after this much CPU time instead.")
@click.option("--examples", type=int, default=100, help="Examples of the machine.", show_default=True)
@click.option("--run-length", type=int, default=80, help="Actions in one run.", show_default=True)
@seed_option
@scope_options
@json_option
def command(
    target: str | None,
    level: str,
    driver: str,
    steps: int | None,
    seconds: float | None,
    examples: int,
    run_length: int,
    seed: int | None,
    json_file: Path | None,
    **options: Any,
) -> int:
    """Random runs in lockstep with the specification, until something fails or the budget is spent."""
    target = chosen_target(target)
    scope = scope_from(DEFAULT_WALK_SCOPE if driver == "walk" else DEFAULT_MACHINE_SCOPE, options)
    # A fresh seed each time: fuzzing that repeats itself finds nothing new. It is printed.
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    adapter = load_target(target)
    suite = Suite(
        f"fuzz/{driver}",
        WALK if driver == "walk" else MACHINE,
        level,
        scope,
        steps=steps or (0 if seconds else 500_000),
        seconds=seconds,
        run_length=run_length,
        examples=examples,
    )
    scope = in_dialect(scope, adapter)
    report = TerminalReport()
    try:
        report.header(f"fuzz {adapter.name}, seed {seed}, {scope}")
        report.limits(adapter.limits)
        (result,) = run_suites(Judge(target, seed, (), read_config().search_seconds), [suite], 1, report)
    finally:
        report.close()
    write_json(json_file, {"target": target, **result.to_data()})
    return EXIT_CODES[result.verdict]
