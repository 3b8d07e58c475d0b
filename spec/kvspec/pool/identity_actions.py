"""Actions on prefix entries, and the rest: cache, move, evict, reset, write, announce."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from kvspec.pool import actions as act
from kvspec.pool.actions import held, null, queued, stranger
from kvspec.pool.roles import PoolRoles, below
from kvspec.pool.state import PoolState


class IdentityActions(PoolRoles):
    """`every_x(state)` and `some_x(state, rng)` for each of these kinds."""

    def every_cache_full(self, state: PoolState) -> Iterator[act.CacheFull]:
        roles = self.held_roles(state)
        for group, span in enumerate(self.scope.spans):
            length = self.scope.depth // span
            for prefix in self.prefixes:
                for at in range(length):
                    if prefix and (at + 1) * span <= self.scope.shared:
                        continue
                    for ref in roles:
                        yield act.CacheFull((ref,), prefix, at, group, 0, self.pool_of(state, ref))
                    if at + 1 < length:
                        yield from self._every_cached_pair(state, prefix, at, group)
        if self.scope.misuse:
            yield act.CacheFull((queued(0),), 0)
            yield act.CacheFull((stranger(),), 0)
            for ref in roles[:1]:
                yield act.CacheFull((ref,), 0, self.scope.depth // self.scope.spans[0])
                yield act.CacheFull((ref,), 0, 0, 0, -1)

    def _every_cached_pair(self, state: PoolState, prefix: int, at: int, group: int) -> Iterator[act.CacheFull]:
        for holder, table in enumerate(state.tables):
            for index in range(len(table) - 1):
                first, second = held(holder, index), held(holder, index + 1)
                pool = self.pool_of(state, first)
                yield act.CacheFull((first, second), prefix, at, group, 0, pool)
                yield act.CacheFull((first, second), prefix, at, group, 1, pool)
                yield act.CacheFull((null(pool), second), prefix, at, group, 0, pool)

    def some_cache_full(self, state: PoolState, rng: Random) -> act.CacheFull:
        group = below(rng, self.scope.groups)
        length = self.scope.depth // self.scope.spans[group]
        holder = self.some_holder(state, rng)
        count = len(state.tables[holder])
        first = below(rng, count) if count else 0
        # Block i of a table is logical block i more often than not: that is how engines use it, and it makes equal
        # identities on different blocks, and hits, frequent.
        at = first if rng.random() < 0.7 and first < length else below(rng, length + 1)
        width = 1 + below(rng, max(1, min(count - first, length - at)))
        refs = [held(holder, first + i) for i in range(width)]
        pool = self.pool_of(state, refs[0]) if count else 0
        skip = 0
        chance = rng.random()
        if chance < 0.08:
            skip = below(rng, 1 << width)
        elif chance < 0.12:
            refs[below(rng, width)] = null(pool)
        elif chance < 0.18 and self.scope.misuse:
            skip, refs[0] = rng.choice(((-1, refs[0]), (0, queued(0, pool)), (0, stranger()), (0, refs[-1])))
        return act.CacheFull(tuple(refs), below(rng, self.scope.prefixes), at, group, skip, pool)

    def every_cache_partial(self, state: PoolState) -> Iterator[act.CachePartial]:
        roles = self.held_roles(state)
        for group in self.groups:
            for prefix, boundary in self.boundaries():
                for ref in roles:
                    for replace in (False, True):
                        yield act.CachePartial(ref, prefix, boundary, group, replace, self.pool_of(state, ref))
        yield act.CachePartial(null(), 0, 1)
        if self.scope.misuse:
            yield act.CachePartial(queued(0), 0, 1)
            for ref in roles[:1]:
                yield act.CachePartial(ref, 0, 0)
                yield act.CachePartial(ref, 0, self.scope.depth + 1)

    def some_cache_partial(self, state: PoolState, rng: Random) -> act.CachePartial:
        pool = self.some_pool(rng)
        ref = self.some_ref(state, rng, pool)
        boundary = 1 + below(rng, self.scope.depth)
        if self.scope.misuse and rng.random() < 0.04:
            boundary = rng.choice((0, self.scope.depth + 1))
        prefix, group = below(rng, self.scope.prefixes), below(rng, self.scope.groups)
        return act.CachePartial(ref, prefix, boundary, group, rng.random() < 0.25, pool)

    def every_move(self, state: PoolState) -> Iterator[act.MoveHashes]:
        roles = self.held_roles(state)
        sources = self.identified_roles(state)
        for src in sources:
            pool = self.pool_of(state, src)
            for dst in roles:
                if self.pool_of(state, dst) == pool:
                    yield act.MoveHashes(src, dst, pool)
        for ref in roles[:1]:
            yield act.MoveHashes(ref, ref, self.pool_of(state, ref))
        if self.scope.misuse:
            for src in sources[:1]:
                pool = self.pool_of(state, src)
                yield act.MoveHashes(src, null(pool), pool)
                yield act.MoveHashes(src, queued(0, pool), pool)

    def some_move(self, state: PoolState, rng: Random) -> act.MoveHashes:
        pool = self.some_pool(rng)
        sources = self.identified_roles(state)
        src = rng.choice(sources) if sources else self.some_ref(state, rng, pool)
        return act.MoveHashes(src, self.some_ref(state, rng, pool), pool)

    def every_evict(self, state: PoolState) -> Iterator[act.Evict]:
        sources = self.identified_roles(state)
        for ref in sources:
            yield act.Evict((ref,), 0, self.pool_of(state, ref))
        for pool in self.pools:
            mine = tuple(ref for ref in sources if self.pool_of(state, ref) == pool)
            if len(mine) > 1:
                yield act.Evict(mine, 0, pool)
            yield act.Evict((null(pool),), 0, pool)
            if self.scope.misuse:
                yield act.Evict(mine[:1], 1, pool)
                yield act.Evict(mine[:1], -1, pool)

    def some_evict(self, state: PoolState, rng: Random) -> act.Evict:
        pool = self.some_pool(rng)
        refs = tuple(self.some_ref(state, rng, pool) for _ in range(1 + below(rng, 2)))
        beyond = rng.choice((1, -1)) if self.scope.misuse and rng.random() < 0.08 else 0
        return act.Evict(refs, beyond, pool)

    def every_reset(self, state: PoolState) -> Iterator[act.Reset]:
        yield from (act.Reset(pool) for pool in self.pools)

    def some_reset(self, state: PoolState, rng: Random) -> act.Reset:
        return act.Reset(self.some_pool(rng))

    def every_write(self, state: PoolState) -> Iterator[act.Write]:
        for ref in self.held_roles(state):
            yield act.Write(ref, self.pool_of(state, ref))
        yield act.Write(null())
        if self.scope.misuse:
            yield act.Write(queued(0))

    def some_write(self, state: PoolState, rng: Random) -> act.Write:
        pool = self.some_pool(rng)
        return act.Write(self.some_ref(state, rng, pool), pool)

    def every_announce(self, state: PoolState) -> Iterator[act.Announce]:
        if not any(state.entries):
            return
        for pool in self.pools:
            for group, span in enumerate(self.scope.spans):
                for prefix in self.prefixes:
                    for count in range(1, self.scope.depth // span + 1):
                        if prefix == 0 or count * span > self.scope.shared:
                            yield act.Announce(prefix, count, group, pool)

    def some_announce(self, state: PoolState, rng: Random) -> act.Announce:
        """Up to an identity that is resident, if there is one."""
        pool = self.some_pool(rng)
        resident = self.some_resident(state, rng, pool)
        if resident is None:
            return act.Announce(below(rng, self.scope.prefixes), 1, below(rng, self.scope.groups), pool)
        span = self.scope.spans[resident.group]
        return act.Announce(resident.prefix, max(1, resident.boundary // span), resident.group, pool)
