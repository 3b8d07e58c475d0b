"""`kvproof trim`: minimise a trace that came from elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kvfuzz.adapter import without_limits
from kvfuzz.commands.options import json_option, write_json
from kvfuzz.config import read_config
from kvfuzz.minimise import Minimiser
from kvfuzz.replay import replay
from kvfuzz.result import finding_of, write_minimised
from kvfuzz.targets import load_target
from kvfuzz.trace import read_trace


def _say(text: str) -> None:
    click.echo(f"  ... {text}", err=True)


@click.command("trim")
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--target", default=None, help="Minimise against another target.")
@click.option("--seconds", type=float, default=None, help="CPU time for the search at the end.")
@click.option("--output", "-o", type=click.Path(path_type=Path), default=None, help="File to write.")
@json_option
def command(trace: Path, target: str | None, seconds: float | None, output: Path | None, json_file: Path | None) -> int:
    """Shrink TRACE to a minimal one that fails for the same reason."""
    stored = read_trace(trace)
    name = target or stored.target
    adapter = without_limits(load_target(name), stored.lifted)
    watched = sys.stderr.isatty()
    small = Minimiser(
        stored.level, adapter, read_config().search_seconds if seconds is None else seconds, _say if watched else None
    ).minimise(stored.model, stored.actions)
    if small is None:
        click.echo(f"{trace} does not fail on {adapter.name}: {replay(stored, adapter).executed} operations hold")
        write_json(json_file, {"verdict": "holds", "target": name, "trace": str(trace)})
        return 0
    path = write_minimised(stored._replace(target=name), small, output)
    finding = finding_of(small, path)
    click.echo(finding.story)
    click.echo(f"{len(stored.actions)} operations became {finding.minimal} ({finding.scope})")
    click.echo(f"replay: kvproof replay {path}")
    write_json(json_file, {"verdict": small.failure.verdict, "target": name, **finding._asdict()})
    return 1
