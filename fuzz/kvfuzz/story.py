"""A run told step by step: what was asked, what came back, what changed, and which rule broke.

Pure: computed from the model, the actions and the failure; the implementation is not needed. Terminal tables, trace
files and viewers are made from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kvfuzz.lockstep import Failure
from kvspec import Model


class Line(NamedTuple):
    """One step. `state` is the state after it as plain data; `changes` is field -> (before, after), as text.
    For the failing step only: `broken` explains, `expected` says what the specification has instead."""

    number: int
    action: Any
    call: Any
    outcome: str
    changes: dict[str, tuple[str, str]]
    state: dict[str, Any]
    broken: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()


def tell(model: Model, actions: Sequence[Any], failure: Failure | None) -> list[Line]:
    """The lines of a run whose last action, if `failure` is given, is the one that failed.

    Where the model allows several outcomes the first is told, unless a later action only makes sense after another.
    """
    state = model.initial()
    lines = []
    for number, action in enumerate(actions):
        before = model.describe(state)
        call = model.resolve(state, action)
        last = failure is not None and number == len(actions) - 1
        if last:
            assert failure is not None
            after = model.describe(failure.after)
            lines.append(
                Line(
                    number + 1,
                    action,
                    call,
                    str(failure.shown),
                    _changes(before, after),
                    after,
                    _broken(failure),
                    _expected(model, failure, after),
                )
            )
            break
        transitions = model.step(state, action)
        transition = transitions[0]
        if len(transitions) > 1 and number + 1 < len(actions):
            transition = next((t for t in transitions if model.resolve(t.state, actions[number + 1])), transition)
        state = transition.state
        after = model.describe(state)
        lines.append(Line(number + 1, action, call, str(transition.outcome), _changes(before, after), after))
    return lines


def _changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Fields that differ; of a list that keeps its length only the places that differ."""
    changed = {}
    for field, was in before.items():
        now = after[field]
        if was == now:
            continue
        if isinstance(was, list) and len(was) == len(now) and len(was) > 1:
            for place, (old, new) in enumerate(zip(was, now, strict=True)):
                if old != new:
                    changed[f"{field}[{place}]"] = (_text(old), _text(new))
        else:
            changed[field] = (_text(was), _text(now))
    return changed


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "[" + " ".join(_text(part) for part in value) + "]"
    return str(value)


def _broken(failure: Failure) -> tuple[str, ...]:
    if failure.broken:
        return tuple(f"{name} broken: {why}" for name, why in failure.broken)
    return (failure.headline,)


def _expected(model: Model, failure: Failure, after: dict[str, Any]) -> tuple[str, ...]:
    """The allowed outcomes, and the fields in which the specification's state is another one."""
    outcomes = " or ".join(dict.fromkeys(str(outcome) for outcome in failure.allowed))
    told = [f"the specification allows: {outcomes}"] if outcomes else []
    fields = _changes(model.describe(failure.expected), after)
    told += [f"{field}: specification {wanted}, implementation {shown}" for field, (wanted, shown) in fields.items()]
    named = {field.partition("[")[0] for field in fields}
    told += [
        f"{name}: specification {wanted}, implementation {shown}"
        for name, wanted, shown in failure.differences
        if name not in named and name not in after
    ]
    return tuple(told)


def table(lines: Sequence[Line], width: int = 110) -> str:
    """Plain text for a terminal or a log: a numbered line a step, its changes below it."""
    rows = []
    for line in lines:
        mark = "!" if line.broken else " "
        rows.append(f"{mark}{line.number:3}  {line.action!r}")
        rows.append(f"        -> {line.outcome}")
        for field, (was, now) in line.changes.items():
            text = f"        {field}: {was} -> {now}"
            rows.append(text if len(text) <= width else text[: width - 3] + "...")
        rows += [f"      ! {why}" for why in line.broken]
        rows += [f"        {what}" for what in line.expected]
    return "\n".join(rows)
