"""Exported traces: a readable pytest file that fails while the fault is there and passes when it is gone."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from kvfuzz.adapter import without_limits
from kvfuzz.levels import level_named
from kvfuzz.replay import run
from kvfuzz.story import table, tell
from kvfuzz.targets import load_target
from kvfuzz.trace import Trace

TARGET_VARIABLE = "KVPROOF_TARGET"


def check_actions(level: str, target: str, scope: Any, actions: Sequence[Any], lifted: Sequence[str] = ()) -> None:
    """Run the actions on the target in lockstep with the specification.

    `lifted` are limits of the target that do not apply. Raises AssertionError with the story of the run when they
    differ or a property breaks. The environment variable KVPROOF_TARGET replaces the target, so that one file can judge
    another implementation.
    """
    adapter = without_limits(load_target(os.environ.get(TARGET_VARIABLE) or target), lifted)
    model = level_named(level).make_model(scope)
    failure, _ = run(model, adapter, actions)
    if failure is not None:
        done = list(actions)[: failure.position + 1]
        raise AssertionError(f"{adapter.name}: {failure.headline}\n{table(tell(model, done, failure))}")


def pytest_file(trace: Trace, name: str = "") -> str:
    """The text of a test module. Its names come from the level's vocabulary, its actions print as they are written."""
    test = re.sub(r"\W+", "_", (name or trace.headline or "trace")).strip("_").lower()[:72] or "trace"
    scope = compact(trace.scope)
    printed = [f"            {action!r}," for action in trace.actions]
    used = set(re.findall(r"\b([A-Za-z_]\w*)\(", "\n".join([*printed, scope])))
    lines = [
        f'"""{trace.headline or "A recorded run"}',
        "",
        f"Found on {trace.target} by {trace.origin or 'kvproof'}"
        + ("; proved minimal at this scope." if trace.proved else "."),
        '"""',
        "",
        "from kvfuzz.regression import check_actions",
        f"from {trace.level.vocabulary} import {', '.join(sorted(used))}",
        "",
        "",
        f"def test_{test}():",
        "    check_actions(",
        f"        level={trace.level.name!r},",
        f"        target={trace.target!r},",
        f"        scope={scope},",
        "        actions=[",
        *printed,
        "        ],",
        *([f"        lifted={trace.lifted!r},"] if trace.lifted else []),
        "    )",
    ]
    return "\n".join(lines) + "\n"


def compact(value: Any) -> str:
    """A named tuple as a call with only the fields that differ from their defaults."""
    defaults = value._field_defaults
    given = [
        f"{name}={part!r}" for name, part in value._asdict().items() if name not in defaults or part != defaults[name]
    ]
    return f"{type(value).__name__}({', '.join(given)})"
