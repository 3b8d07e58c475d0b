"""Actions that take, share and give back references: allocate, touch, hit, lookup, free, unpin."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, permutations
from random import Random

from kvspec.pool import actions as act
from kvspec.pool.actions import Ref, held, null, queued, stranger
from kvspec.pool.roles import PoolRoles, below
from kvspec.pool.state import PoolState

_FULLY_LISTED = 3


class ReferenceActions(PoolRoles):
    """`every_x(state)` and `some_x(state, rng)` for each of these kinds."""

    def every_allocate(self, state: PoolState) -> Iterator[act.Allocate]:
        for pool in self.pools:
            free = len(state.queues[pool])
            for holder in range(len(state.tables)):
                for count in range(1, min(free, self.room(state, holder)) + 1):
                    yield act.Allocate(holder, count, pool)
            yield act.Allocate(0, 0, pool)
            if self.scope.misuse:
                yield act.Allocate(0, free + 1, pool)
                yield act.Allocate(0, -1, pool)

    def some_allocate(self, state: PoolState, rng: Random) -> act.Allocate:
        holder, pool = self._roomy_holder(state, rng), self.some_pool(rng)
        if self.scope.misuse and rng.random() < 0.06:
            return act.Allocate(holder, rng.choice((-1, 0, len(state.queues[pool]) + 1)), pool)
        return act.Allocate(holder, 1 + int(rng.random() ** 2 * self.room(state, holder)), pool)

    def _roomy_holder(self, state: PoolState, rng: Random) -> int:
        """Any holder; mostly, where there is a choice, one that can hold more."""
        holder = below(rng, len(state.tables))
        return holder if self.room(state, holder) else below(rng, len(state.tables))

    def every_touch(self, state: PoolState) -> Iterator[act.Touch]:
        roles = self.held_roles(state)
        for holder in range(len(state.tables)):
            room = self.room(state, holder)
            if room < 1:
                continue
            for ref in roles:
                yield act.Touch(holder, (ref,), self.pool_of(state, ref))
            for pool in self.pools:
                waiting = self.queued_roles(state, pool)
                for ref in waiting:
                    yield act.Touch(holder, (ref,), pool)
                if room > 1 and waiting:
                    yield act.Touch(holder, (waiting[0], waiting[0]), pool)
                    for first, second in pairwise(waiting):
                        yield act.Touch(holder, (first, second), pool)
                        yield act.Touch(holder, (second, first), pool)
        yield act.Touch(0, (null(),))
        if self.scope.misuse:
            yield act.Touch(0, (*self.queued_roles(state, 0)[: max(0, self.room(state, 0))][:1], stranger()))
            if len(self.pools) > 1 and state.queues[1]:
                yield act.Touch(0, (queued(0, 1),), 0)

    def some_touch(self, state: PoolState, rng: Random) -> act.Touch:
        holder, pool = self._roomy_holder(state, rng), self.some_pool(rng)
        count = 1 + int(rng.random() ** 2 * self.room(state, holder))
        if rng.random() < 0.3:
            refs = [self.some_ref(state, rng, pool) for _ in range(count)]
        else:
            # A run of neighbours, as a chain of one request's blocks is; one place too far now and then.
            start = below(rng, max(1, len(state.queues[pool]) - count + 2))
            refs = [queued(position, pool) for position in range(start, start + count)]
            if rng.random() < 0.5:
                refs.reverse()
        if self.scope.misuse and rng.random() < 0.06:
            # Among blocks that are all right, so that what a refusal leaves behind can be seen.
            refs[below(rng, len(refs))] = rng.choice((stranger(), queued(0, self.some_pool(rng))))
        return act.Touch(holder, tuple(refs), pool)

    def every_hit(self, state: PoolState) -> Iterator[act.Hit]:
        if not any(state.entries):
            return
        for holder in range(len(state.tables)):
            for lookup in self.every_lookup(state):
                if self.room(state, holder) >= len(lookup.groups):
                    yield act.Hit(holder, *lookup)

    def some_hit(self, state: PoolState, rng: Random) -> act.Hit:
        return act.Hit(self._roomy_holder(state, rng), *self.some_lookup(state, rng))

    def every_lookup(self, state: PoolState) -> Iterator[act.Lookup]:
        for pool in self.pools:
            for prefix, boundary in self.boundaries():
                for groups in self.group_sets:
                    yield act.Lookup(prefix, boundary, groups, pool)

    def some_lookup(self, state: PoolState, rng: Random) -> act.Lookup:
        """Mostly of an identity that is resident: a random one hardly ever is."""
        groups, pool = rng.choice(self.group_sets), self.some_pool(rng)
        resident = self.some_resident(state, rng, pool) if rng.random() < 0.7 else None
        if resident is not None:
            if resident.group not in groups:
                groups = (resident.group,)
            return act.Lookup(resident.prefix, resident.boundary, groups, pool)
        return act.Lookup(below(rng, self.scope.prefixes), 1 + below(rng, self.scope.depth), groups, pool)

    def _listings(self, state: PoolState, holder: int) -> Iterator[tuple[Ref, ...]]:
        """Orders in which a holder can give entries back."""
        count = len(state.tables[holder])
        if count <= _FULLY_LISTED:
            for length in range(1, count + 1):
                for order in permutations(range(count), length):
                    yield tuple(held(holder, index) for index in order)
            return
        whole = tuple(held(holder, index) for index in range(count))
        yield from ((ref,) for ref in whole)
        yield from pairwise(whole)
        yield whole
        yield whole[::-1]

    def every_free(self, state: PoolState) -> Iterator[act.Free]:
        for pool in self.pools:
            for holder in range(len(state.tables)):
                for refs in self._listings(state, holder):
                    yield act.Free(holder, refs, pool)
        yield act.Free(0, (null(),))
        for refs in self._wrong_releases(state):
            yield act.Free(0, refs)

    def _wrong_releases(self, state: PoolState) -> Iterator[tuple[Ref, ...]]:
        if not self.scope.misuse:
            return
        own = (held(0, 0),) if state.tables[0] else ()
        for pool in self.pools:
            for ref in self.queued_roles(state, pool)[:1] + self.queued_roles(state, pool)[1:][-1:]:
                yield (ref,)
                yield (*own, ref)
        yield (*own, stranger())
        if own and state.refs[state.tables[0][0]] == 1:
            yield (*own, *own)

    def every_unpin(self, state: PoolState) -> Iterator[act.Unpin]:
        for holder in range(len(state.tables)):
            for refs in self._listings(state, holder):
                yield act.Unpin(holder, refs, self.pool_of(state, refs[0]))
        for refs in self._wrong_releases(state):
            yield act.Unpin(0, refs)
        if self.scope.misuse:
            yield act.Unpin(0, (*((held(0, 0),) if state.tables[0] else ()), null()))

    def _some_release(self, state: PoolState, rng: Random) -> tuple[int, tuple[Ref, ...]]:
        holder = self.some_holder(state, rng)
        count = len(state.tables[holder])
        shape = rng.random()
        if not count:
            refs: list[Ref] = []
        elif shape < 0.3:
            refs = [held(holder, index) for index in range(count - 1, -1, -1)]
        elif shape < 0.45:
            refs = [held(holder, index) for index in range(count)]
        elif shape < 0.6:
            refs = [held(holder, below(rng, count))]
        else:
            refs = [held(holder, index) for index in rng.sample(range(count), 1 + below(rng, count))]
        if not refs or (self.scope.misuse and rng.random() < 0.12):
            extra = self.some_ref(state, rng, self.some_pool(rng))
            if extra.is_held and extra.owner != holder:
                extra = held(holder, 0)
            refs.insert(below(rng, len(refs) + 1), extra)
        elif rng.random() < 0.05:
            refs.insert(below(rng, len(refs) + 1), null(self.some_pool(rng)))
        return holder, tuple(refs)

    def some_free(self, state: PoolState, rng: Random) -> act.Free:
        return act.Free(*self._some_release(state, rng), self.some_pool(rng))

    def some_unpin(self, state: PoolState, rng: Random) -> act.Unpin:
        return act.Unpin(*self._some_release(state, rng), self.some_pool(rng))
