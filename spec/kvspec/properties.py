"""Properties as named values: one list serves explorer, fuzzer, prover, report and viewer.

Three kinds. `Always` is judged on every step. `Sometimes` must be reached at least once, else a run proved
nothing about that situation. `Quiescent` says what must hold when nothing is held or in flight; its check finds out
for itself whether that is so, and holds otherwise.

A check is a pure function of one `Step` and returns "" when the property holds, else one sentence that says
which objects break it and how. It must not assume that any other property holds: it is also run on states
lifted from a faulty implementation, where queues may contain duplicates and counts may be negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kvspec.model import Step

Check = Callable[[Step], str]


class Always(NamedTuple):
    """Must hold on every step. `reads` names the fields of the state that the check looks at.

    of_state: the check looks at the state after the step and at nothing else, so judging a state once judges every
    step that leads to it.
    """

    id: str
    sentence: str
    check: Check
    reads: tuple[str, ...]
    kind: str = "always"
    of_state: bool = False


class Quiescent(NamedTuple):
    """Must hold on every step whose state after it is at rest (nothing held, nothing in flight). Its check returns ""
    for every other step."""

    id: str
    sentence: str
    check: Check
    reads: tuple[str, ...]
    kind: str = "quiescent"


class Sometimes(NamedTuple):
    """A situation that a run must reach before its verdict counts. `reached` is judged per step."""

    id: str
    sentence: str
    reached: Callable[[Step], bool]
    kind: str = "sometimes"


Property = Always | Quiescent | Sometimes


def judged(properties: Iterable[Property]) -> tuple[Always | Quiescent, ...]:
    """The properties that are judged on every step."""
    return tuple(entry for entry in properties if not isinstance(entry, Sometimes))


def broken(properties: Iterable[Property], step: Step) -> list[tuple[str, str]]:
    """(id, explanation) of every Always or Quiescent property that the step breaks, in list order."""
    told = ((entry.id, entry.check(step)) for entry in judged(properties))
    return [(name, explanation) for name, explanation in told if explanation]


def holds(properties: Iterable[Always | Quiescent], step: Step) -> bool:
    """Whether the step breaks none of them; for inner loops, with a list that `judged` made once."""
    for entry in properties:  # noqa: SIM110 -- a generator would cost as much as a check
        if entry.check(step):
            return False
    return True
