"""What an implementation must offer to be driven, and what it may declare not to do.

An adapter executes *calls* (kvspec) on an implementation and shows what can be seen of it. It knows nothing about
actions, roles or properties. `kvfuzz.adapters.pool_adapter.PoolAdapter` is the comfortable way to write one for a pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, runtime_checkable

from kvspec import Outcome, Transition


class Limit(NamedTuple):
    """Something the implementation is known not to do. Limits are printed with every verdict.

    excludes: `(state before, call, allowed transitions) -> bool`; an excluded call is not sent.
    excuses: ids of Sometimes properties that cannot be reached because of this.
    """

    id: str
    sentence: str
    excludes: Callable[[Any, Any, tuple[Transition, ...]], bool]
    excuses: tuple[str, ...] = ()


def does_not_refuse(reason: str, sentence: str, excuses: tuple[str, ...] = ()) -> Limit:
    """The implementation leaves this misuse to its caller: calls that must be refused for it are not sent."""

    def excludes(_state: Any, _call: Any, allowed: tuple[Transition, ...]) -> bool:
        return any(transition.outcome.reason == reason for transition in allowed)

    return Limit(f"unrefused: {reason}", sentence, excludes, excuses)


def lacks(call_types: Iterable[type], name: str, sentence: str, excuses: tuple[str, ...] = ()) -> Limit:
    """The implementation has no such operation."""
    missing = tuple(call_types)

    def excludes(_state: Any, call: Any, _allowed: tuple[Transition, ...]) -> bool:
        return isinstance(call, missing)

    return Limit(f"lacks: {name}", sentence, excludes, excuses)


def in_dialect(scope: Any, adapter: Any) -> Any:
    """The scope with the fields that the implementation fixes."""
    return scope._replace(**getattr(adapter, "dialect", {}))


def without_limits(adapter: Any, lifted: Iterable[str]) -> Any:
    """The same adapter, with these limits no longer in force. Ids that it does not have are passed over: another
    implementation may do what the first one left out."""
    gone = set(lifted)
    adapter.limits = tuple(limit for limit in adapter.limits if limit.id not in gone)
    return adapter


@runtime_checkable
class Adapter(Protocol):
    """One implementation under test.

    `name` is shown in reports; `level` says which level of the specification it implements. Two adapters of one
    target must not share state: drivers create as many as they need. An adapter may have an attribute `dialect`, a
    mapping of scope fields that this implementation fixes (for example {"lifo": False}).
    """

    name: str
    level: str
    limits: tuple[Limit, ...]

    def reset(self, scope: Any) -> None:
        """Forget everything and start with the initial state of the scope. Raises `TargetError` if it cannot."""
        ...

    def apply(self, call: Any) -> Outcome:
        """Execute the call and say what its caller sees. A refusal by the implementation is an outcome; an
        exception that it does not document is `Outcome("raised", reason=...)`. Never raises for either."""
        ...

    def observe(self) -> Any:
        """What the implementation shows now, in the level's observation type. Must not change anything."""
        ...
