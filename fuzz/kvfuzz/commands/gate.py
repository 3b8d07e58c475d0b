"""`kvproof gate`: everything that must hold, as a profile says."""

from __future__ import annotations

import time
from pathlib import Path

import click

from kvfuzz.commands.options import chosen_target, json_option, results_data, seed_option, target_option, write_json
from kvfuzz.config import read_config
from kvfuzz.gate import overall, run_suites
from kvfuzz.judge import Judge, trace_files
from kvfuzz.report import TerminalReport
from kvfuzz.suites import PROFILES, profile_named, strict_suites
from kvfuzz.targets import load_target

_LACKS = "lacks: "


@click.command("gate")
@target_option
@click.option("--profile", default=None, help=f"One of {', '.join(PROFILES)} (default: configured, else ci).")
@seed_option
@click.option("--workers", type=int, default=None, help="Processes (default: configured, else 2).")
@click.option("--traces", multiple=True, type=click.Path(), help="Trace file or folder that must hold; repeatable.")
@click.option("--strict", is_flag=True, help="Also lift each limit of the target in turn and show what it hides.")
@json_option
def command(
    target: str | None,
    profile: str | None,
    seed: int | None,
    workers: int | None,
    traces: tuple[str, ...],
    strict: bool,
    json_file: Path | None,
) -> int:
    """Run a profile's suites on a target: one line a suite, the minimal trace of every failure."""
    config = read_config()
    target = chosen_target(target)
    chosen = profile_named(profile or config.profile)
    seed = config.seed if seed is None else seed
    workers = workers or config.workers
    adapter = load_target(target)
    places = traces or config.traces
    for place in places:  # a misspelt folder must not be found out after minutes
        trace_files(Path(place))
    suites = [suite for suite in chosen.suites if suite.level == adapter.level]
    if strict:
        suites += strict_suites([limit.id for limit in adapter.limits if not limit.id.startswith(_LACKS)])
    report = TerminalReport()
    started = time.monotonic()
    try:
        report.header(f"gate {adapter.name}, profile {chosen.name}, seed {seed}, {workers} workers")
        report.limits(adapter.limits)
        results = run_suites(Judge(target, seed, places, config.search_seconds), suites, workers, report)
    finally:
        report.close()
    report.verdict(results, target, time.monotonic() - started)
    verdict, code = overall(results)
    limits = [limit.id for limit in adapter.limits]
    write_json(json_file, results_data(target, verdict, results, profile=chosen.name, seed=seed, limits=limits))
    return code
