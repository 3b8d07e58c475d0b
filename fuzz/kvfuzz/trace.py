"""Trace files: Informal Trace Format (ITF, Apalache ADR-015) JSON with what is needed to replay.

A trace is self-contained: level, scope, target, actions, and what failed. Its states are there for viewers and other
ITF tools; a replay uses the actions alone. Files are written at once or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from kvfuzz.errors import TraceError
from kvfuzz.levels import Level, level_named
from kvfuzz.lockstep import Failure
from kvfuzz.story import tell
from kvspec import Model

SCHEMA = 1
FOLDER = Path(".kvproof") / "traces"


class Trace(NamedTuple):
    """target: as given on the command line. fingerprint, headline: of the failure when it was found, "" if none.
    origin: driver, seed and run. proved: whether no shorter trace exists at this scope. lifted: ids of the target's
    limits that were not in force when it was found."""

    level: Level
    target: str
    scope: Any
    actions: tuple[Any, ...]
    fingerprint: str = ""
    headline: str = ""
    origin: str = ""
    proved: bool = False
    lifted: tuple[str, ...] = ()

    @property
    def model(self) -> Model:
        return self.level.make_model(self.scope)


def kvproof_version() -> str:
    """The installed version, or "unknown" in a tree that is not installed."""
    try:
        return version("kvproof")
    except PackageNotFoundError:
        return "unknown"


def to_itf(trace: Trace, failure: Failure | None = None) -> dict[str, Any]:
    """The file's contents as plain data."""
    model = trace.model
    lines = tell(model, trace.actions, failure)
    states = [{"#meta": {"index": 0}, "action": None, "outcome": None, **model.describe(model.initial())}]
    states += [
        {
            "#meta": {"index": line.number, "broken": list(line.broken)},
            "action": trace.level.encode(line.action),
            "outcome": line.outcome,
            **line.state,
        }
        for line in lines
    ]
    return {
        "#meta": {
            "format": "ITF",
            "format-description": "https://apalache-mc.org/docs/adr/015adr-trace.html",
            "source": "kvproof",
            "description": trace.headline,
            "kvproof": {
                "schema": SCHEMA,
                "version": kvproof_version(),
                "python": platform.python_version(),
                "level": trace.level.name,
                "target": trace.target,
                "scope": trace.scope.to_data(),
                "fingerprint": trace.fingerprint,
                "headline": trace.headline,
                "origin": trace.origin,
                "proved_minimal": trace.proved,
                "lifted": list(trace.lifted),
            },
        },
        "vars": ["action", "outcome", *model.describe(model.initial())],
        "states": states,
    }


def write_trace(trace: Trace, failure: Failure | None = None, path: Path | None = None) -> Path:
    """Write the file and return where it is. Without `path`: in `.kvproof/traces`, named by what failed.

    Raises TraceError when the place cannot be written.
    """
    text = json.dumps(to_itf(trace, failure), indent=1) + "\n"
    if path is None:
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        words = re.sub(r"[^A-Za-z0-9.]+", "-", f"{Path(trace.target).name}-{trace.fingerprint or 'run'}").strip("-")
        path = FOLDER / f"{words}-{digest}.itf.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise TraceError(f"cannot write the trace to {path}: {error}. Give a writable place with --output") from error
    return path


def read_trace(path: Path) -> Trace:
    """Raises TraceError for a file that is missing, cut, foreign, or of a newer schema."""
    try:
        text = path.read_text()
    except FileNotFoundError as error:
        known = sorted(entry.name for entry in FOLDER.glob("*.itf.json"))[:5] if FOLDER.is_dir() else []
        hint = f"traces here: {', '.join(known)}" if known else "there are no traces in .kvproof/traces"
        raise TraceError(f"no trace file {path}; {hint}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"cannot read the trace {path}: {error}") from error
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise TraceError(
            f"{path} is not whole JSON: {error.msg} at line {error.lineno}, byte {error.pos} of {len(text)}. It looks "
            "cut off or edited; write it again with the command that made it"
        ) from error
    return from_itf(data, str(path))


def from_itf(data: Any, name: str) -> Trace:
    """The inverse of `to_itf` as far as a replay needs it."""
    meta = (
        data.get("#meta", {}).get("kvproof") if isinstance(data, dict) and isinstance(data.get("#meta"), dict) else None
    )
    if not isinstance(meta, dict) or not isinstance(data.get("states"), list):
        raise TraceError(
            f"{name} is no kvproof trace: expected an ITF object with #meta.kvproof and states; it has "
            f"{', '.join(sorted(map(str, data))[:6]) if isinstance(data, dict) else type(data).__name__}"
        )
    schema = meta.get("schema")
    if not isinstance(schema, int) or schema > SCHEMA:
        raise TraceError(
            f"{name} has trace schema {schema!r}, this kvproof {kvproof_version()} reads up to {SCHEMA}: it was "
            f"written by kvproof {meta.get('version', 'unknown')}; update kvproof"
        )
    try:
        level = level_named(meta["level"])
        scope = level.read_scope(meta["scope"])
        actions = tuple(level.decode(state["action"]) for state in data["states"][1:])
        return Trace(
            level,
            str(meta["target"]),
            scope,
            actions,
            str(meta.get("fingerprint", "")),
            str(meta.get("headline", "")),
            str(meta.get("origin", "")),
            bool(meta.get("proved_minimal", False)),
            tuple(meta.get("lifted", ())),
        )
    except TraceError:
        raise
    except Exception as error:
        raise TraceError(f"{name} is damaged: {type(error).__name__}: {error}") from error
