"""Options that several commands share, and the JSON they write."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from kvfuzz.config import read_config
from kvfuzz.errors import UsageError
from kvfuzz.levels import LEVELS
from kvfuzz.result import SuiteResult
from kvspec.pool import PoolScope, ScopeError

F = TypeVar("F", bound=Callable[..., Any])


def target_option(command: F) -> F:
    """--target, by default the configured one."""
    return click.option(
        "--target", default=None, help="Implementation under test (default: [tool.kvproof] target, else kvpool)."
    )(command)


def json_option(command: F) -> F:
    """--json FILE."""
    return click.option(
        "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the result as JSON."
    )(command)


def seed_option(command: F) -> F:
    """--seed."""
    return click.option("--seed", type=int, default=None, help="Seed of all random choices.")(command)


def level_option(command: F) -> F:
    """--level."""
    return click.option("--level", type=click.Choice(list(LEVELS)), default="pool", help="Level of the specification.")(
        command
    )


def scope_options(command: F) -> F:
    """One option for each field of a pool scope; what is not given keeps the command's default."""
    numbers = {
        "holders": "Owners of references.",
        "prefixes": "Different token sequences.",
        "depth": "Hash blocks in a prefix.",
        "shared": "Leading hash blocks that all prefixes share.",
        "hold": "Longest table of a holder.",
        "watchers": "Most reuse watchers pending on a block; 0 leaves unpin out.",
    }
    for name, text in reversed(numbers.items()):
        command = click.option(f"--{name}", type=int, default=None, help=text)(command)
    lists = {
        "blocks": "Allocatable blocks of each pool, as 4 or 3,2; the null block comes on top.",
        "spans": "Hash blocks per block of each KV-cache group, as 1 or 1,2.",
    }
    for name, text in reversed(lists.items()):
        command = click.option(f"--{name}", default=None, help=text)(command)
    for name, text in {
        "caching": "Prefix caching.",
        "events": "Published KV events.",
        "lifo": "Unidentified blocks are released to the head of the queue.",
        "misuse": "Calls that are wrong in themselves.",
    }.items():
        command = click.option(f"--{name}/--no-{name}", default=None, help=text)(command)
    return command


def scope_from(default: PoolScope, options: dict[str, Any]) -> PoolScope:
    """The default scope with the options that were given. Raises UsageError."""
    given: dict[str, Any] = {}
    for field in PoolScope._fields:
        value = options.pop(field, None)
        if value is None:
            continue
        if isinstance(value, str):
            try:
                value = tuple(int(part) for part in value.replace("+", ",").split(","))
            except ValueError as error:
                raise UsageError(
                    f"--{field} {value}: expected whole numbers separated by commas, as 4 or 3,2"
                ) from error
        given[field] = value
    try:
        return default._replace(**given).check()
    except ScopeError as error:
        raise UsageError(str(error)) from error


def chosen_target(target: str | None) -> str:
    """The option, or the configured target."""
    return target or read_config().target


def write_json(file: Path | None, data: dict[str, Any]) -> None:
    """Write, if a file was asked for. Raises UsageError where it cannot be written."""
    if file is None:
        return
    try:
        file.write_text(json.dumps(data, indent=1) + "\n")
    except OSError as error:
        raise UsageError(f"--json {file}: {error}; give a file in a writable folder") from error


def results_data(target: str, verdict: str, results: Sequence[SuiteResult], **more: Any) -> dict[str, Any]:
    """JSON of several suites."""
    return {"verdict": verdict, "target": target, **more, "suites": [result.to_data() for result in results]}
