"""`kvproof replay`: run a stored trace again."""

from __future__ import annotations

from pathlib import Path

import click

from kvfuzz.commands.options import json_option, write_json
from kvfuzz.replay import DIVERGED, FIXED, REPRODUCED, replay
from kvfuzz.story import table, tell
from kvfuzz.targets import load_target
from kvfuzz.trace import read_trace


@click.command("replay")
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--target", default=None, help="Run it on another target than the one it was found on.")
@json_option
def command(trace: Path, target: str | None, json_file: Path | None) -> int:
    """Run TRACE and say Reproduced (exit 1), Fixed (exit 0) or Diverged (exit 1: it fails in another way)."""
    stored = read_trace(trace)
    name = target or stored.target
    adapter = load_target(name)
    replayed = replay(stored, adapter)
    failure = replayed.failure
    done = stored.actions if failure is None else stored.actions[: failure.position + 1]
    click.echo(table(tell(stored.model, done, failure)))
    headline = failure.headline if failure is not None else f"{replayed.executed} operations hold"
    click.echo(f"{replayed.result}: {adapter.name}: {headline}")
    if replayed.result == DIVERGED:
        click.echo(f"the trace was recorded for: {stored.headline}")
    verdict = "holds" if failure is None else failure.verdict
    write_json(
        json_file,
        {
            "verdict": verdict,
            "result": replayed.result,
            "target": name,
            "trace": str(trace),
            "trace_length": len(stored.actions),
            "steps": replayed.executed,
            "headline": headline,
        },
    )
    return 0 if replayed.result == FIXED or (replayed.result == REPRODUCED and failure is None) else 1
