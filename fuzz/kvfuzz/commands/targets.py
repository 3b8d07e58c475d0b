"""`kvproof targets`: what can be checked here."""

from __future__ import annotations

from pathlib import Path

import click

from kvfuzz.commands.options import json_option, write_json
from kvfuzz.targets import known_targets


@click.command("targets")
@json_option
def command(json_file: Path | None) -> int:
    """List registered targets. Nothing is loaded."""
    targets = known_targets()
    for target in targets:
        click.echo(f"{target.name:<12} {target.sentence} ({target.origin})")
    click.echo("module:object  an adapter of your own (docs/adapter.md)")
    click.echo("spec           the specification alone (explore only)")
    write_json(json_file, {"targets": [target._asdict() for target in targets]})
    return 0
