"""Who can play which role in a state: the vocabulary from which actions are made up."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from kvspec.pool.actions import Ref, held, null, queued, stranger
from kvspec.pool.scope import PoolScope
from kvspec.pool.state import Geometry, PoolState
from kvspec.prefix import Identities, Identity


def below(rng: Random, bound: int) -> int:
    """A number from 0 to bound - 1. Not `randrange`, which takes eight times as long, four times a step; the
    bias of the product is far below anything that a walk could notice."""
    return int(rng.random() * bound)


class PoolRoles:
    """Roles at one scope. Blocks that several roles name are listed under one of them."""

    def __init__(self, scope: PoolScope) -> None:
        self.scope = scope
        self.geometry = Geometry.of(scope)
        self.names = Identities(scope.prefixes, scope.depth, scope.groups, scope.shared)
        self.pools = range(len(scope.blocks))
        self.prefixes = range(scope.prefixes)
        self.groups = range(scope.groups)
        self.group_sets: list[tuple[int, ...]] = [(group,) for group in self.groups]
        if scope.groups > 1:
            self.group_sets.append(tuple(self.groups))

    def room(self, state: PoolState, holder: int) -> int:
        """How many more entries the holder's table takes."""
        return self.scope.hold - len(state.tables[holder])

    @staticmethod
    def held_roles(state: PoolState) -> list[Ref]:
        """One role for each held block."""
        roles: dict[int, Ref] = {}
        for holder, table in enumerate(state.tables):
            for index, block in enumerate(table):
                roles.setdefault(block, held(holder, index))
        return list(roles.values())

    @staticmethod
    def queued_roles(state: PoolState, pool: int) -> list[Ref]:
        """The free blocks of a pool, next to be taken first."""
        return [queued(position, pool) for position in range(len(state.queues[pool]))]

    def identified_roles(self, state: PoolState) -> list[Ref]:
        """One role for each block that carries an entry."""
        roles = [ref for ref in self.held_roles(state) if state.entries[state.tables[ref.owner][ref.position]]]
        for pool in self.pools:
            roles += [queued(i, pool) for i, block in enumerate(state.queues[pool]) if state.entries[block]]
        return roles

    def pool_of(self, state: PoolState, ref: Ref) -> int:
        """The pool that a call about this block goes to."""
        if ref.queue_pool is not None:
            return ref.queue_pool
        if not ref.is_held:
            return 0
        return self.geometry.owner[state.tables[ref.owner][ref.position]]

    def boundaries(self) -> Iterator[tuple[int, int]]:
        """(prefix, boundary), a shared boundary under prefix 0 only."""
        for prefix in self.prefixes:
            for boundary in range(1, self.scope.depth + 1):
                if prefix == 0 or boundary > self.scope.shared:
                    yield prefix, boundary

    def some_holder(self, state: PoolState, rng: Random) -> int:
        """Any holder; mostly, where there is a choice, one that holds something."""
        holder = below(rng, len(state.tables))
        return holder if state.tables[holder] else below(rng, len(state.tables))

    def some_resident(self, state: PoolState, rng: Random, pool: int) -> Identity | None:
        """Any identity that a block of the pool carries."""
        carried = [row for row in state.entries[self.geometry.nulls[pool] :][: self.geometry.sizes[pool] + 1] if row]
        if not carried:
            return None
        row = carried[below(rng, len(carried))]
        return self.names.unpack(row[below(rng, len(row))])

    def some_pool(self, rng: Random) -> int:
        """Any pool."""
        return below(rng, len(self.pools)) if len(self.pools) > 1 else 0

    def some_ref(self, state: PoolState, rng: Random, pool: int) -> Ref:
        """A held block mostly; a queued one, null or a stranger now and then."""
        chance = rng.random()
        if chance < 0.75:
            holder = self.some_holder(state, rng)
            return held(holder, below(rng, len(state.tables[holder]) or 1))
        if chance < 0.93 or not self.scope.misuse:
            return queued(below(rng, len(state.queues[pool]) or 1), pool)
        return null(pool) if chance < 0.98 else stranger()
