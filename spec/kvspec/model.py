"""The interface that every level of the specification implements.

A model is three functions: `initial`, `enabled` and `step`. Explorer, walk, Hypothesis machine, lockstep,
minimiser and viewer are written against this module and know no level.

Words: an *action* names roles ("the second block of holder 0"), so that a shorter or renamed trace stays
meaningful. A *call* is an action with its roles resolved in one state ("free blocks 3 and 1"); it is what an
implementation executes. An *outcome* is what a caller of the implementation can see of one call. An *effect*
is a visible by-product of a call: a watcher that fired, an event that was published.

What this module does not do: it says nothing about how an implementation is reached (kvfuzz.adapter), nor
which properties hold (kvspec.properties).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from random import Random
from typing import Any, NamedTuple, Protocol

Effect = tuple[str, int]
"""(kind, what). At pool level: ("fired", block) and ("fired_late", block) for watchers; ("stored", identity),
("removed", identity), ("announced", identity) and ("cleared", pool) for published events."""


class Outcome(NamedTuple):
    """What the caller of one operation sees.

    `label` is one word per kind of answer ("done", "refused", "hit", "miss", ...). `value` holds the block ids
    or numbers returned, in order. `effects` are in the order in which they happened. `reason` is the refusal's
    stable name; an implementation that gives no reason leaves it empty, which matches every reason.
    """

    label: str
    value: tuple[int, ...] = ()
    effects: tuple[Effect, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        text = self.label
        if self.reason:
            text += f" ({self.reason})"
        if self.value:
            text += f" {list(self.value)}"
        if self.effects:
            text += " with " + ", ".join(f"{kind} {what}" for kind, what in self.effects)
        return text


SKIPPED = Outcome("skipped")
"""The roles of the action do not exist in this state: nothing is asked of the implementation."""


def done(value: tuple[int, ...] = (), effects: tuple[Effect, ...] = ()) -> Outcome:
    """The operation took effect."""
    return Outcome("done", value, effects)


def refused(reason: str) -> Outcome:
    """The operation was turned down and changed nothing."""
    return Outcome("refused", reason=reason)


class Transition(NamedTuple):
    """One allowed way for a call to end."""

    outcome: Outcome
    state: Any


class Step(NamedTuple):
    """One transition together with where it started: what properties are judged on.

    `action` and `outcome` are None for the initial state, where `before` is `after`.
    """

    before: Any
    call: Any
    outcome: Outcome
    after: Any


class ActionKind(NamedTuple):
    """One row of a level's action table, from which every driver works.

    `every(state)` yields the meaningful actions of this kind in a state, misuse included, aliases left out: what the
    explorer visits and a Hypothesis machine draws from, simplest first. `some(state, rng)` returns one random action,
    which may turn out to be skipped: what the walk takes. `weight` is its relative frequency there before swarming.
    `takes_effect`: whether any action of this kind can do more than be refused or find nothing at this scope.
    """

    name: str
    type: type
    every: Callable[[Any], Iterator[Any]]
    some: Callable[[Any, Random], Any]
    weight: float = 1.0
    takes_effect: bool = True


class Model(Protocol):
    """A level of the specification at one scope.

    All methods are pure. States are immutable, hashable and contain no clock, randomness or object identity.
    """

    level: str
    scope: Any
    actions: tuple[ActionKind, ...]
    properties: tuple[Any, ...]

    def initial(self) -> Any:
        """The one initial state of the scope."""
        ...

    def enabled(self, state: Any) -> Iterator[Any]:
        """Every meaningful action in the state, including those that must be refused."""
        ...

    def resolve(self, state: Any, action: Any) -> Any | None:
        """The call that the action stands for here, or None when its roles do not exist."""
        ...

    def transitions(self, state: Any, call: Any) -> tuple[Transition, ...]:
        """Every allowed way for the call to end; never empty; a refusal leaves the state as it is."""
        ...

    def step(self, state: Any, action: Any) -> tuple[Transition, ...]:
        """`transitions` of the resolved action; a single `SKIPPED` where it does not resolve. Total."""
        ...

    def observe(self, state: Any) -> Any:
        """The part of the state that an implementation can be asked to show."""
        ...

    def lift(self, state: Any, observation: Any) -> Any:
        """`state` with everything observable replaced by what an implementation showed, so that the
        properties can be judged on the implementation itself."""
        ...

    def matches(self, expected: Outcome, shown: Outcome) -> bool:
        """Whether an implementation's outcome is the expected one, up to what is left open."""
        ...

    def canonical(self, state: Any) -> Hashable:
        """A form that is equal for states that differ only in names of interchangeable things."""
        ...

    def describe(self, state: Any) -> dict[str, Any]:
        """The state as plain data (lists, ints, strings) for traces and tables."""
        ...
