"""Which actions a run tries, for every driver: all of them in a state, or a random one.

`every` leaves aliases out: a block that several roles name is tried under one. Lists of blocks are enumerated in full
while tables are short (all ordered subsets up to three entries), and by shape beyond that (single entries, neighbours,
the whole table in both directions); the walk's random lists cover the rest. Misuse is tried in one or two
representative forms in each state, and only where the scope asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, permutations
from random import Random

from kvspec.model import ActionKind
from kvspec.pool import actions as act
from kvspec.pool.actions import Ref, held, null, queued, stranger
from kvspec.pool.scope import PoolScope
from kvspec.pool.state import PoolState

_FULLY_LISTED = 3


class PoolActionTable:
    """The action kinds of one scope; `kinds()` is the table."""

    def __init__(self, scope: PoolScope) -> None:
        self.scope = scope
        self.pools = range(len(scope.blocks))
        self.prefixes = range(scope.prefixes)
        self.groups = range(scope.groups)
        self.group_sets: list[tuple[int, ...]] = [(group,) for group in self.groups]
        if scope.groups > 1:
            self.group_sets.append(tuple(self.groups))

    def kinds(self) -> tuple[ActionKind, ...]:
        """One row for each action kind that can take part at this scope."""
        scope = self.scope
        table = [
            ActionKind("allocate", act.Allocate, self._every_allocate, self._some_allocate, 3.0),
            ActionKind("touch", act.Touch, self._every_touch, self._some_touch, 2.0),
            ActionKind("free", act.Free, self._every_free, self._some_free, 4.0),
            ActionKind("evict", act.Evict, self._every_evict, self._some_evict, 0.7),
            ActionKind("reset", act.Reset, self._every_reset, self._some_reset, 0.5),
            ActionKind("write", act.Write, self._every_write, self._some_write, 1.0),
            ActionKind("lookup", act.Lookup, self._every_lookup, self._some_lookup, 1.0, scope.caching),
            ActionKind("cache_full", act.CacheFull, self._every_cache_full, self._some_cache_full, 3.0, scope.caching),
        ]
        if scope.caching:
            table.append(ActionKind("hit", act.Hit, self._every_hit, self._some_hit, 2.0))
            table.append(ActionKind("move_hashes", act.MoveHashes, self._every_move, self._some_move, 1.0))
        if scope.caching and scope.events:
            table.append(ActionKind("announce", act.Announce, self._every_announce, self._some_announce, 0.4))
        if scope.has_partial:
            table.append(
                ActionKind(
                    "cache_partial",
                    act.CachePartial,
                    self._every_cache_partial,
                    self._some_cache_partial,
                    2.0,
                )
            )
        if scope.watchers:
            table.append(ActionKind("unpin", act.Unpin, self._every_unpin, self._some_unpin, 2.0))
        return tuple(table)

    # Roles -----------------------------------------------------------------------------------------------------

    def _room(self, state: PoolState, holder: int) -> int:
        return self.scope.hold - len(state.tables[holder])

    @staticmethod
    def _held(state: PoolState) -> list[Ref]:
        """One role for each held block."""
        roles: dict[int, Ref] = {}
        for holder, table in enumerate(state.tables):
            for index, block in enumerate(table):
                roles.setdefault(block, held(holder, index))
        return list(roles.values())

    @staticmethod
    def _queued(state: PoolState, pool: int) -> list[Ref]:
        return [queued(position, pool) for position in range(len(state.queues[pool]))]

    def _identified(self, state: PoolState) -> list[Ref]:
        """One role for each block that carries an entry."""
        roles = [ref for ref in self._held(state) if state.entries[state.tables[ref.owner][ref.position]]]
        for pool in self.pools:
            roles += [queued(i, pool) for i, block in enumerate(state.queues[pool]) if state.entries[block]]
        return roles

    def _pool_of(self, state: PoolState, ref: Ref) -> int:
        """The pool a call about this block goes to; ranges of block numbers follow one another."""
        if ref.queue_pool is not None:
            return ref.queue_pool
        if not ref.is_held:
            return 0
        block, start = state.tables[ref.owner][ref.position], 0
        for pool, size in enumerate(self.scope.blocks):
            start += size + 1
            if block < start:
                return pool
        return 0

    def _boundaries(self) -> Iterator[tuple[int, int]]:
        """(prefix, boundary), a shared boundary under prefix 0 only."""
        for prefix in self.prefixes:
            for boundary in range(1, self.scope.depth + 1):
                if prefix == 0 or boundary > self.scope.shared:
                    yield prefix, boundary

    # Allocate, touch, hit, lookup ------------------------------------------------------------------------------

    def _every_allocate(self, state: PoolState) -> Iterator[act.Allocate]:
        for pool in self.pools:
            free = len(state.queues[pool])
            for holder in range(len(state.tables)):
                for count in range(1, min(free, self._room(state, holder)) + 1):
                    yield act.Allocate(holder, count, pool)
            yield act.Allocate(0, 0, pool)
            if self.scope.misuse:
                yield act.Allocate(0, free + 1, pool)
                yield act.Allocate(0, -1, pool)

    def _some_allocate(self, state: PoolState, rng: Random) -> act.Allocate:
        holder, pool = rng.randrange(len(state.tables)), self._some_pool(rng)
        if self.scope.misuse and rng.random() < 0.06:
            return act.Allocate(holder, rng.choice((-1, 0, len(state.queues[pool]) + 1)), pool)
        return act.Allocate(holder, 1 + int(rng.random() ** 2 * self._room(state, holder)), pool)

    def _some_pool(self, rng: Random) -> int:
        return rng.randrange(len(self.pools)) if len(self.pools) > 1 else 0

    def _every_touch(self, state: PoolState) -> Iterator[act.Touch]:
        roles = self._held(state)
        for holder in range(len(state.tables)):
            room = self._room(state, holder)
            if room < 1:
                continue
            for ref in roles:
                yield act.Touch(holder, (ref,), self._pool_of(state, ref))
            for pool in self.pools:
                waiting = self._queued(state, pool)
                for ref in waiting:
                    yield act.Touch(holder, (ref,), pool)
                if room > 1 and waiting:
                    yield act.Touch(holder, (waiting[0], waiting[0]), pool)
                    for first, second in pairwise(waiting):
                        yield act.Touch(holder, (first, second), pool)
                        yield act.Touch(holder, (second, first), pool)
        yield act.Touch(0, (null(),))
        if self.scope.misuse:
            yield act.Touch(0, (*self._queued(state, 0)[: max(0, self._room(state, 0))][:1], stranger()))
            if len(self.pools) > 1 and state.queues[1]:
                yield act.Touch(0, (queued(0, 1),), 0)

    def _some_touch(self, state: PoolState, rng: Random) -> act.Touch:
        holder, pool = rng.randrange(len(state.tables)), self._some_pool(rng)
        count = 1 + int(rng.random() ** 2 * self._room(state, holder))
        if rng.random() < 0.3:
            return act.Touch(holder, tuple(self._some_ref(state, rng, pool) for _ in range(count)), pool)
        start = rng.randrange(len(state.queues[pool]) + 1)
        refs = [queued(position, pool) for position in range(start, start + count)]
        if rng.random() < 0.5:
            refs.reverse()
        return act.Touch(holder, tuple(refs), pool)

    def _some_ref(self, state: PoolState, rng: Random, pool: int) -> Ref:
        """A held block mostly; a queued one, null or a stranger now and then."""
        chance = rng.random()
        if chance < 0.75:
            holder = rng.randrange(len(state.tables))
            return held(holder, rng.randrange(len(state.tables[holder]) or 1))
        if chance < 0.93 or not self.scope.misuse:
            return queued(rng.randrange(len(state.queues[pool]) or 1), pool)
        return null(pool) if chance < 0.98 else stranger()

    def _every_hit(self, state: PoolState) -> Iterator[act.Hit]:
        if not any(state.entries):
            return
        for holder in range(len(state.tables)):
            for lookup in self._every_lookup(state):
                if self._room(state, holder) >= len(lookup.groups):
                    yield act.Hit(holder, *lookup)

    def _some_hit(self, state: PoolState, rng: Random) -> act.Hit:
        return act.Hit(rng.randrange(len(state.tables)), *self._some_lookup(state, rng))

    def _every_lookup(self, state: PoolState) -> Iterator[act.Lookup]:
        for pool in self.pools:
            for prefix, boundary in self._boundaries():
                for groups in self.group_sets:
                    yield act.Lookup(prefix, boundary, groups, pool)

    def _some_lookup(self, state: PoolState, rng: Random) -> act.Lookup:
        return act.Lookup(
            rng.randrange(self.scope.prefixes),
            1 + rng.randrange(self.scope.depth),
            rng.choice(self.group_sets),
            self._some_pool(rng),
        )

    # Free, unpin -----------------------------------------------------------------------------------------------

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

    def _every_free(self, state: PoolState) -> Iterator[act.Free]:
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
            for ref in self._queued(state, pool)[:1] + self._queued(state, pool)[1:][-1:]:
                yield (ref,)
                yield (*own, ref)
        yield (*own, stranger())
        if own and state.refs[state.tables[0][0]] == 1:
            yield (*own, *own)

    def _every_unpin(self, state: PoolState) -> Iterator[act.Unpin]:
        for holder in range(len(state.tables)):
            for refs in self._listings(state, holder):
                yield act.Unpin(holder, refs, self._pool_of(state, refs[0]))
        for refs in self._wrong_releases(state):
            yield act.Unpin(0, refs)
        if self.scope.misuse:
            yield act.Unpin(0, (*((held(0, 0),) if state.tables[0] else ()), null()))

    def _some_release(self, state: PoolState, rng: Random) -> tuple[int, tuple[Ref, ...]]:
        holder = rng.randrange(len(state.tables))
        count = len(state.tables[holder])
        shape = rng.random()
        if not count:
            refs: list[Ref] = []
        elif shape < 0.3:
            refs = [held(holder, index) for index in range(count - 1, -1, -1)]
        elif shape < 0.45:
            refs = [held(holder, index) for index in range(count)]
        elif shape < 0.6:
            refs = [held(holder, rng.randrange(count))]
        else:
            refs = [held(holder, index) for index in rng.sample(range(count), 1 + rng.randrange(count))]
        if not refs or (self.scope.misuse and rng.random() < 0.12):
            extra = self._some_ref(state, rng, self._some_pool(rng))
            if extra.is_held and extra.owner != holder:
                extra = held(holder, 0)
            refs.insert(rng.randrange(len(refs) + 1), extra)
        return holder, tuple(refs)

    def _some_free(self, state: PoolState, rng: Random) -> act.Free:
        return act.Free(*self._some_release(state, rng), self._some_pool(rng))

    def _some_unpin(self, state: PoolState, rng: Random) -> act.Unpin:
        return act.Unpin(*self._some_release(state, rng), self._some_pool(rng))

    # Identities ------------------------------------------------------------------------------------------------

    def _every_cache_full(self, state: PoolState) -> Iterator[act.CacheFull]:
        roles = self._held(state)
        for group, span in enumerate(self.scope.spans):
            length = self.scope.depth // span
            for prefix in self.prefixes:
                for at in range(length):
                    if prefix and (at + 1) * span <= self.scope.shared:
                        continue
                    for ref in roles:
                        yield act.CacheFull((ref,), prefix, at, group, 0, self._pool_of(state, ref))
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
                pool = self._pool_of(state, first)
                yield act.CacheFull((first, second), prefix, at, group, 0, pool)
                yield act.CacheFull((first, second), prefix, at, group, 1, pool)
                yield act.CacheFull((null(pool), second), prefix, at, group, 0, pool)

    def _some_cache_full(self, state: PoolState, rng: Random) -> act.CacheFull:
        group = rng.randrange(self.scope.groups)
        length = self.scope.depth // self.scope.spans[group]
        holder = rng.randrange(len(state.tables))
        count = len(state.tables[holder])
        first = rng.randrange(count) if count else 0
        # Block i of a table is logical block i more often than not: that is how engines use it, and it makes equal
        # identities on different blocks, and hits, frequent.
        at = first if rng.random() < 0.7 and first < length else rng.randrange(length + 1)
        width = 1 + rng.randrange(max(1, min(count - first, length - at)))
        refs = [held(holder, first + i) for i in range(width)]
        pool = self._pool_of(state, refs[0]) if count else 0
        skip = 0
        chance = rng.random()
        if chance < 0.08:
            skip = rng.randrange(1 << width)
        elif chance < 0.12:
            refs[rng.randrange(width)] = null(pool)
        elif chance < 0.18 and self.scope.misuse:
            skip, refs[0] = rng.choice(((-1, refs[0]), (0, queued(0, pool)), (0, stranger()), (0, refs[-1])))
        return act.CacheFull(tuple(refs), rng.randrange(self.scope.prefixes), at, group, skip, pool)

    def _every_cache_partial(self, state: PoolState) -> Iterator[act.CachePartial]:
        roles = self._held(state)
        for group in self.groups:
            for prefix, boundary in self._boundaries():
                for ref in roles:
                    for replace in (False, True):
                        yield act.CachePartial(ref, prefix, boundary, group, replace, self._pool_of(state, ref))
        yield act.CachePartial(null(), 0, 1)
        if self.scope.misuse:
            yield act.CachePartial(queued(0), 0, 1)
            for ref in roles[:1]:
                yield act.CachePartial(ref, 0, 0)
                yield act.CachePartial(ref, 0, self.scope.depth + 1)

    def _some_cache_partial(self, state: PoolState, rng: Random) -> act.CachePartial:
        pool = self._some_pool(rng)
        ref = self._some_ref(state, rng, pool)
        boundary = 1 + rng.randrange(self.scope.depth)
        if self.scope.misuse and rng.random() < 0.04:
            boundary = rng.choice((0, self.scope.depth + 1))
        prefix, group = rng.randrange(self.scope.prefixes), rng.randrange(self.scope.groups)
        return act.CachePartial(ref, prefix, boundary, group, rng.random() < 0.25, pool)

    def _every_move(self, state: PoolState) -> Iterator[act.MoveHashes]:
        roles = self._held(state)
        sources = self._identified(state)
        for src in sources:
            pool = self._pool_of(state, src)
            for dst in roles:
                if self._pool_of(state, dst) == pool:
                    yield act.MoveHashes(src, dst, pool)
        for ref in roles[:1]:
            yield act.MoveHashes(ref, ref, self._pool_of(state, ref))
        if self.scope.misuse:
            for src in sources[:1]:
                pool = self._pool_of(state, src)
                yield act.MoveHashes(src, null(pool), pool)
                yield act.MoveHashes(src, queued(0, pool), pool)

    def _some_move(self, state: PoolState, rng: Random) -> act.MoveHashes:
        pool = self._some_pool(rng)
        sources = self._identified(state)
        src = rng.choice(sources) if sources else self._some_ref(state, rng, pool)
        return act.MoveHashes(src, self._some_ref(state, rng, pool), pool)

    def _every_evict(self, state: PoolState) -> Iterator[act.Evict]:
        sources = self._identified(state)
        for ref in sources:
            yield act.Evict((ref,), 0, self._pool_of(state, ref))
        for pool in self.pools:
            mine = tuple(ref for ref in sources if self._pool_of(state, ref) == pool)
            if len(mine) > 1:
                yield act.Evict(mine, 0, pool)
            yield act.Evict((null(pool),), 0, pool)
            if self.scope.misuse:
                yield act.Evict(mine[:1], 1, pool)
                yield act.Evict(mine[:1], -1, pool)

    def _some_evict(self, state: PoolState, rng: Random) -> act.Evict:
        pool = self._some_pool(rng)
        refs = tuple(self._some_ref(state, rng, pool) for _ in range(1 + rng.randrange(2)))
        beyond = rng.choice((1, -1)) if self.scope.misuse and rng.random() < 0.08 else 0
        return act.Evict(refs, beyond, pool)

    # Reset, write, announce ------------------------------------------------------------------------------------

    def _every_reset(self, state: PoolState) -> Iterator[act.Reset]:
        yield from (act.Reset(pool) for pool in self.pools)

    def _some_reset(self, state: PoolState, rng: Random) -> act.Reset:
        return act.Reset(self._some_pool(rng))

    def _every_write(self, state: PoolState) -> Iterator[act.Write]:
        for ref in self._held(state):
            yield act.Write(ref, self._pool_of(state, ref))
        yield act.Write(null())
        if self.scope.misuse:
            yield act.Write(queued(0))

    def _some_write(self, state: PoolState, rng: Random) -> act.Write:
        pool = self._some_pool(rng)
        return act.Write(self._some_ref(state, rng, pool), pool)

    def _every_announce(self, state: PoolState) -> Iterator[act.Announce]:
        if not any(state.entries):
            return
        for pool in self.pools:
            for group, span in enumerate(self.scope.spans):
                for prefix in self.prefixes:
                    for count in range(1, self.scope.depth // span + 1):
                        if prefix == 0 or count * span > self.scope.shared:
                            yield act.Announce(prefix, count, group, pool)

    def _some_announce(self, state: PoolState, rng: Random) -> act.Announce:
        group = rng.randrange(self.scope.groups)
        count = 1 + rng.randrange(max(1, self.scope.depth // self.scope.spans[group]))
        return act.Announce(rng.randrange(self.scope.prefixes), count, group, self._some_pool(rng))
