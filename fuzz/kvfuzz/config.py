"""`[tool.kvproof]` of pyproject.toml: defaults for the command line.

An unknown key or a value of the wrong type is an error that names its path: a misspelt budget must not pass as no
budget.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from kvfuzz.errors import UsageError


class Config(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """target, profile, workers and seed are defaults of the options of the same names. traces: files or folders with
    traces that must hold. search_seconds: CPU time for proving a trace minimal."""

    target: str = "kvpool"
    profile: str = "ci"
    workers: int = 2
    seed: int = 0
    traces: tuple[str, ...] = ()
    search_seconds: float = 20.0


def read_config(folder: Path | None = None) -> Config:
    """The table of the nearest pyproject.toml at or above `folder`; all defaults where there is none.

    Raises UsageError for a file that cannot be read and for unknown keys.
    """
    start = (folder or Path.cwd()).resolve()
    for place in (start, *start.parents):
        file = place / "pyproject.toml"
        if file.is_file():
            return _read(file)
    return Config()


def _read(file: Path) -> Config:
    try:
        data = tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file}: {error}") from error
    tool = data.get("tool", {})
    table = tool.get("kvproof", {}) if isinstance(tool, dict) else {}
    try:
        return msgspec.convert(table, Config)
    except msgspec.ValidationError as error:
        known = ", ".join(field.name for field in msgspec.structs.fields(Config))
        raise UsageError(f"{file}: [tool.kvproof]: {error}. The keys are {known}") from error
