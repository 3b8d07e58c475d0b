"""The pool level as a model: scope, resolver, transitions, properties and symmetry put together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvspec.model import SKIPPED, Outcome, Transition
from kvspec.pool.action_table import pool_actions
from kvspec.pool.calls import Resolver
from kvspec.pool.properties import pool_properties
from kvspec.pool.scope import PoolScope
from kvspec.pool.situations import situations
from kvspec.pool.state import Geometry, ObservedState, PoolObservation, PoolState, initial_state
from kvspec.pool.symmetry import PoolSymmetry
from kvspec.pool.transitions import PoolTransitions
from kvspec.prefix import Identities


class PoolModel:
    """`kvspec.model.Model` for the pool level. Stateless: all methods are pure functions of their arguments."""

    level = "pool"

    def __init__(self, scope: PoolScope) -> None:
        """Raises `ScopeError` for a scope that makes no sense."""
        self.scope = scope.check()
        self.geometry = Geometry.of(scope)
        self.identities = Identities(scope.prefixes, scope.depth, scope.groups, scope.shared)
        self.actions = pool_actions(scope)
        self.properties = (
            *pool_properties(scope, self.geometry, self.identities),
            *situations(scope),
        )
        self.resolve = Resolver(scope, self.geometry, self.identities)
        self.transitions = PoolTransitions(scope, self.geometry, self.identities)
        self.canonical: Any = PoolSymmetry(scope, self.geometry, self.identities).canonical
        self._usage = tuple(tuple(1.0 - free / size for free in range(size + 1)) for size in scope.blocks)

    def initial(self) -> PoolState:
        return initial_state(self.scope, self.geometry)

    def enabled(self, state: PoolState) -> Iterator[Any]:
        for kind in self.actions:
            for action in kind.every(state):
                if self.resolve(state, action) is not None:
                    yield action

    def step(self, state: PoolState, action: Any) -> tuple[Transition, ...]:
        call = self.resolve(state, action)
        if call is None:
            return (Transition(SKIPPED, state),)
        return self.transitions(state, call)

    def observe(self, state: PoolState) -> PoolObservation:
        queues, refs, entries, _, _ = state
        free = tuple(map(len, queues))
        usage = tuple([self._usage[pool][count] for pool, count in enumerate(free)])
        return PoolObservation(queues, refs, entries, entries, free, usage)

    def lift(self, state: PoolState, observation: PoolObservation) -> ObservedState:
        return ObservedState.of(state, observation)

    def matches(self, expected: Outcome, shown: Outcome) -> bool:
        """Effects may come in any order within one call: P7 and P9 judge the order that matters."""
        return (
            expected.label == shown.label
            and expected.value == shown.value
            and (expected.effects == shown.effects or sorted(expected.effects) == sorted(shown.effects))
            and (not shown.reason or shown.reason == expected.reason)
        )

    def describe(self, state: PoolState) -> dict[str, Any]:
        """Plain data: block numbers as they are, identities by name."""
        return {
            "queues": [list(queue) for queue in state.queues],
            "refs": list(state.refs),
            "entries": [[self.identities.name(identity) for identity in carried] for carried in state.entries],
            "watchers": list(state.watchers),
            "tables": [list(table) for table in state.tables],
        }
