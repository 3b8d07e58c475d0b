"""`kvproof explore`: every state of a scope."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kvfuzz.adapter import Limit, in_dialect
from kvfuzz.commands.options import (
    chosen_target,
    json_option,
    level_option,
    scope_from,
    scope_options,
    target_option,
    write_json,
)
from kvfuzz.config import read_config
from kvfuzz.gate import run_suites
from kvfuzz.judge import Judge
from kvfuzz.levels import level_named
from kvfuzz.report import TerminalReport
from kvfuzz.result import EXIT_CODES
from kvfuzz.suites import EXPLORE, Suite
from kvfuzz.targets import load_target


@click.command("explore")
@target_option
@level_option
@click.option(
    "--symmetry", type=click.Choice(["full", "none"]), default="full", help="Visit one state of each orbit, or all."
)
@click.option("--max-states", type=int, default=None, help="Give up (exit 4) after this many states.")
@click.option("--seconds", type=float, default=None, help="Give up (exit 4) after this much CPU time.")
@scope_options
@json_option
def command(
    target: str | None,
    level: str,
    symmetry: str,
    max_states: int | None,
    seconds: float | None,
    json_file: Path | None,
    **options: Any,
) -> int:
    """Visit every state of a scope, breadth first; with a target, every transition is executed on it.

    The target `spec` explores the specification alone.
    """
    target = chosen_target(target)
    scope = scope_from(level_named(level).default_scope, options)
    limits: tuple[Limit, ...] = ()
    if target != "spec":
        adapter = load_target(target)
        scope, limits = in_dialect(scope, adapter), adapter.limits
    suite = Suite(f"explore/{symmetry}", EXPLORE, level, scope, states=max_states, seconds=seconds)
    report = TerminalReport()
    try:
        report.header(f"explore {target}, symmetry {symmetry}, {scope}")
        report.limits(limits)
        judge = Judge(target, 0, (), read_config().search_seconds, symmetry)
        (result,) = run_suites(judge, [suite], 1, report)
    finally:
        report.close()
    write_json(json_file, {"target": target, "symmetry": symmetry, **result.to_data()})
    return EXIT_CODES[result.verdict]
