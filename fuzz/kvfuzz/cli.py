"""The command `kvproof`. Options, messages and exit codes; the work is done elsewhere.

Nothing heavy is imported before it is needed, so that `kvproof --help` answers at once.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import click

from kvfuzz.errors import KvproofError

_EPILOG = """
\b
Exit codes:
  0  holds, within the stated budget
  1  violated or diverged
  2  usage, configuration, target or adapter error
  3  not reproducible
  4  inconclusive: not exhausted, or required coverage not reached

A target is kvpool, vllm (installed), vllm@PATH (a source tree or unpacked wheel), or module:object.
"""


_COMMANDS = {
    "gate": "Run a profile's suites on a target.",
    "fuzz": "Random runs in lockstep with the specification.",
    "explore": "Visit every state of a scope.",
    "replay": "Run a stored trace again.",
    "trim": "Minimise a trace that came from elsewhere.",
    "export": "Write a trace as a pytest file.",
    "targets": "List what can be checked.",
}


class _Commands(click.Group):
    """Loads a command's module only when that command is run or asked for help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"kvfuzz.commands.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kvproof", prog_name="kvproof")
def kvproof() -> None:
    """Check KV-cache block managers against an executable specification."""


def main(arguments: list[str] | None = None) -> None:
    """Entry point: runs a command and ends the process with its exit code."""
    sys.exit(_guarded(lambda: kvproof.main(arguments, prog_name="kvproof", standalone_mode=False)))


def _guarded(run: Callable[[], Any]) -> int:
    """Every expected error is one message and its exit code; an unexpected one keeps its traceback."""
    try:
        code = run()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except KvproofError as error:
        print(f"kvproof: {error}", file=sys.stderr)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        print("kvproof: interrupted; traces found so far are in .kvproof/traces", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 141
