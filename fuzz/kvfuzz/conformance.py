"""What an adapter must pass before its implementation is judged.

A faulty adapter looks like a faulty implementation. These checks find out, in well under a second, whether the
adapter itself does what it must: start clean, answer everything, show without changing, and repeat itself. They judge
no property.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from kvfuzz.adapter import Adapter
from kvfuzz.errors import AdapterError, Irreproducible
from kvfuzz.walk import run_random
from kvspec import Model, Outcome

_RUNS = 12
_RUN_LENGTH = 40


class Conformance(NamedTuple):
    """`checks`: sentences of what was found to hold. `unseen`: fields of the observation that are never shown."""

    checks: tuple[str, ...]
    unseen: tuple[str, ...]


def check_conformance(make_adapter: Callable[[], Adapter], model: Model) -> Conformance:
    """Raises AdapterError, or Irreproducible, with the first thing that is wrong."""
    first, second = make_adapter(), make_adapter()
    if first is second:
        raise AdapterError(f"{first.name!r}: the target gives the same adapter twice; make a new one at each call")
    if first.level != model.level:
        raise AdapterError(
            f"{first.name!r} is an adapter for level {first.level!r}, the scope is of level {model.level!r}"
        )
    shown = _started(first, model)
    _repeats(first, second, model)
    unseen = tuple(field for field in shown._fields if getattr(shown, field) is None)
    return Conformance(
        (
            "reset gives the initial state, also after use",
            "observe changes nothing",
            f"{_RUNS} random runs gave the same answers on two adapters",
        ),
        unseen,
    )


def _guarded(adapter: Adapter, what: str, do: Callable[[], Any]) -> Any:
    try:
        return do()
    except Exception as error:
        raise AdapterError(
            f"adapter {adapter.name!r} raised {type(error).__name__}: {error} during {what}; every answer of the "
            "implementation must be returned as an outcome"
        ) from error


def _started(adapter: Adapter, model: Model) -> Any:
    """The observation right after reset, checked for shape and for purity."""
    _guarded(adapter, "reset", lambda: adapter.reset(model.scope))
    shown = _guarded(adapter, "observe", adapter.observe)
    expected = model.observe(model.initial())
    if type(shown) is not type(expected):
        raise AdapterError(
            f"adapter {adapter.name!r} observes a {type(shown).__name__}; level {model.level} expects "
            f"{type(expected).__name__} with the fields {', '.join(expected._fields)}"
        )
    if shown != _guarded(adapter, "observe", adapter.observe):
        raise AdapterError(f"adapter {adapter.name!r}: two observations in a row differ; observe() must change nothing")
    if all(value is None for value in shown):
        raise AdapterError(f"adapter {adapter.name!r} shows nothing at all; return at least one field from observe()")
    return shown


def _repeats(first: Adapter, second: Adapter, model: Model) -> None:
    """The same calls on two adapters, and on one adapter after a reset, give the same answers."""
    for run in range(_RUNS):
        calls = list(_random_calls(model, run, first))
        answers = [_answers(adapter, model, calls) for adapter in (first, second, first)]
        for other in answers[1:]:
            for number, (was, now) in enumerate(zip(answers[0], other, strict=True)):
                if was != now:
                    raise Irreproducible(
                        f"adapter {first.name!r} does not repeat itself: call {number + 1} of run {run}, "
                        f"{calls[number]!r}, first gave {was[0]} and {was[1]}, then {now[0]} and {now[1]}. State kept "
                        "over reset() or shared between adapters, clocks, random numbers and set order are usual causes"
                    )


def _random_calls(model: Model, run: int, adapter: Adapter) -> Iterator[Any]:
    """Calls of a random run of the model; allowed to be refused, not to be excluded by a limit."""
    rng = run_random(0, run)
    state = model.initial()
    for _ in range(_RUN_LENGTH):
        kind = rng.choice(model.actions)
        call = model.resolve(state, kind.some(state, rng))
        if call is None:
            continue
        allowed = model.transitions(state, call)
        if len(allowed) > 1 and allowed[0].outcome.label != "refused":
            continue  # which one is taken is the implementation's choice; the run must not depend on it
        if any(limit.excludes(state, call, allowed) for limit in adapter.limits):
            continue
        yield call
        state = allowed[0].state


def _answers(adapter: Adapter, model: Model, calls: list[Any]) -> list[tuple[Outcome, Any]]:
    _guarded(adapter, "reset", lambda: adapter.reset(model.scope))
    answers = []
    for call in calls:
        outcome = _guarded(adapter, repr(call), partial(adapter.apply, call))
        if not isinstance(outcome, Outcome):
            raise AdapterError(
                f"adapter {adapter.name!r} answered {call!r} with {outcome!r}; expected a kvspec.Outcome"
            )
        answers.append((outcome, _guarded(adapter, "observe", adapter.observe)))
    return answers
