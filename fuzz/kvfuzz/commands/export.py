"""`kvproof export`: a trace as a pytest file."""

from __future__ import annotations

from pathlib import Path

import click

from kvfuzz.errors import UsageError
from kvfuzz.regression import TARGET_VARIABLE, pytest_file
from kvfuzz.trace import read_trace


@click.command("export")
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Path(path_type=Path), default=None, help="File to write (default: print).")
@click.option("--name", default="", help="Name of the test, without test_.")
@click.option("--pytest", "_pytest", is_flag=True, default=True, hidden=True, help="The only format.")
def command(trace: Path, output: Path | None, name: str, _pytest: bool) -> int:
    """Write TRACE as a readable pytest test that fails while the fault is there."""
    text = pytest_file(read_trace(trace), name)
    if output is None:
        click.echo(text, nl=False)
        return 0
    try:
        output.write_text(text)
    except OSError as error:
        raise UsageError(f"--output {output}: {error}; give a file in a writable folder") from error
    click.echo(f"wrote {output}; run: pytest {output} (another target: {TARGET_VARIABLE}=... pytest {output})")
    return 0
