"""Run a recorded trace again, on its own target or on another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kvfuzz.adapter import Adapter, without_limits
from kvfuzz.errors import Irreproducible
from kvfuzz.lockstep import Failure, Lockstep
from kvfuzz.trace import Trace
from kvspec import Model

REPRODUCED = "Reproduced"
FIXED = "Fixed"
DIVERGED = "Diverged"


class Replayed(NamedTuple):
    """result: Reproduced (same fingerprint), Fixed (no failure) or Diverged (another failure)."""

    result: str
    failure: Failure | None
    executed: int


def run(model: Model, adapter: Adapter, actions: Sequence[Any]) -> tuple[Failure | None, int]:
    """(failure, calls executed) of one lockstep run of the actions."""
    lockstep = Lockstep(model, adapter)
    failure = lockstep.start()
    executed = 0
    for action in actions:
        if failure is not None:
            break
        failure = lockstep.apply(action)
        executed += failure is not None or lockstep.last is not None
    return failure, executed


def replay(trace: Trace, adapter: Adapter) -> Replayed:
    """Run the trace; a trace without a recorded failure is reproduced by holding."""
    failure, executed = run(trace.model, without_limits(adapter, trace.lifted), trace.actions)
    if failure is None:
        return Replayed(FIXED if trace.fingerprint else REPRODUCED, None, executed)
    same = failure.fingerprint == trace.fingerprint
    return Replayed(REPRODUCED if same else DIVERGED, failure, executed)


def confirm(model: Model, adapter: Adapter, actions: Sequence[Any], failure: Failure) -> None:
    """Run a failing run once more. Raises Irreproducible when it does not fail in the same way.

    The usual causes: state shared between two pools of the implementation, iteration over sets of strings or bytes,
    clocks, random numbers, threads.
    """
    again, _ = run(model, adapter, actions)
    if again is not None and again.fingerprint == failure.fingerprint:
        return
    now = "it held" if again is None else f"{again.headline} (at action {again.position + 1})"
    raise Irreproducible(
        f"target {adapter.name!r} is not reproducible: the same {len(actions)} actions first gave {failure.headline} "
        f"(at action {failure.position + 1}), then {now}. An implementation or adapter that keeps state over reset(), "
        "or depends on clocks, random numbers, set order or threads, cannot be judged; make it a function of the calls"
    )
