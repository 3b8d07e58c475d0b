"""What each call does to the pool: the meaning of DESIGN's table of operations, one function a call.

Every function returns all allowed transitions. A refusal leaves the state as it is; when several reasons apply, each
is allowed, because the order in which an implementation checks them is its own business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

from kvspec.model import Effect, Outcome, Transition, done, refused
from kvspec.pool import calls as call_types
from kvspec.pool.calls import STRANGER
from kvspec.pool.scope import PoolScope
from kvspec.pool.state import Geometry, PoolState
from kvspec.prefix import Identities

NEGATIVE_COUNT = "negative count"
NOT_ENOUGH_FREE = "not enough free blocks"
FOREIGN_BLOCK = "foreign block"
NULL_BLOCK = "null block"
REF_CNT_UNDERFLOW = "ref_cnt below zero"
CACHING_DISABLED = "caching disabled"
MASK_LENGTH = "mask length"
BAD_BOUNDARY = "boundary"
NOT_OWNED = "not owned"
REPEATED_BLOCK = "repeated block"
ALREADY_IDENTIFIED = "already identified"
DESTINATION_IDENTIFIED = "destination identified"
ID_OUT_OF_RANGE = "id out of range"
NOT_WRITABLE = "not writable"

REFUSALS = (
    NEGATIVE_COUNT,
    NOT_ENOUGH_FREE,
    FOREIGN_BLOCK,
    NULL_BLOCK,
    REF_CNT_UNDERFLOW,
    CACHING_DISABLED,
    MASK_LENGTH,
    BAD_BOUNDARY,
    NOT_OWNED,
    REPEATED_BLOCK,
    ALREADY_IDENTIFIED,
    DESTINATION_IDENTIFIED,
    ID_OUT_OF_RANGE,
    NOT_WRITABLE,
)

Transitions = tuple[Transition, ...]


def _put(row: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    return row[:index] + (value,) + row[index + 1 :]


def _without(row: tuple[int, ...], positions: Iterable[int]) -> tuple[int, ...]:
    gone = set(positions)
    return tuple(value for position, value in enumerate(row) if position not in gone)


class PoolTransitions:
    """The transition relation of one scope: `relation(state, call) -> every allowed Transition`."""

    def __init__(self, scope: PoolScope, geometry: Geometry, identities: Identities) -> None:
        self.scope = scope
        self.geometry = geometry
        self.identities = identities
        self.nulls = frozenset(geometry.nulls)
        self._count = scope.prefixes * scope.depth * scope.groups
        self._by_type: dict[type, Callable[[PoolState, Any], Transitions]] = {
            call_types.GetNewBlocks: self._get_new_blocks,
            call_types.TouchBlocks: self._touch,
            call_types.HitBlocks: self._hit,
            call_types.GetCachedBlock: self._lookup,
            call_types.FreeBlocks: self._free_blocks,
            call_types.UnpinBlocks: self._unpin_blocks,
            call_types.CacheFullBlocks: self._cache_full_blocks,
            call_types.CachePartialBlock: self._cache_partial_block,
            call_types.MoveBlockHashes: self._move_block_hashes,
            call_types.EvictBlocks: self._evict_blocks,
            call_types.ResetPrefixCache: self._reset_prefix_cache,
            call_types.WriteBlock: self._write,
            call_types.EmitCachedBlockEvents: self._announce,
        }

    def __call__(self, state: PoolState, call: Any) -> Transitions:
        return self._by_type[type(call)](state, call)

    # Effects ---------------------------------------------------------------------------------------------------

    def _published(self, kind: str, block: int, identities: Iterable[int]) -> list[Effect]:
        """Events of one block, numbered apart for each pool: a consumer sees which pool spoke."""
        if not self.scope.events:
            return []
        offset = self.geometry.owner[block] * self._count
        return [(kind, offset + identity) for identity in identities]

    @staticmethod
    def _refuse(state: PoolState, reasons: Iterable[str]) -> Transitions:
        return tuple(Transition(refused(reason), state) for reason in dict.fromkeys(reasons))

    # Allocation ------------------------------------------------------------------------------------------------

    def _get_new_blocks(self, state: PoolState, call: call_types.GetNewBlocks) -> Transitions:
        queue = state.queues[call.pool]
        if call.num_blocks < 0:
            return self._refuse(state, [NEGATIVE_COUNT])
        if call.num_blocks > len(queue):
            return self._refuse(state, [NOT_ENOUGH_FREE])
        if call.num_blocks == 0:
            return (Transition(done(), state),)
        taken = queue[: call.num_blocks]
        refs, entries, watchers = list(state.refs), list(state.entries), list(state.watchers)
        effects: list[Effect] = [("fired", block) for block in taken for _ in range(watchers[block])]
        for block in taken:
            if entries[block]:
                effects += self._published("removed", block, entries[block])
                entries[block] = ()
            refs[block] = 1
            watchers[block] = 0
        after = PoolState(
            _put(state.queues, call.pool, queue[call.num_blocks :]),
            tuple(refs),
            tuple(entries),
            tuple(watchers),
            _put(state.tables, call.holder, state.tables[call.holder] + taken),
        )
        return (Transition(Outcome("done", taken, tuple(effects)), after),)

    # Sharing ---------------------------------------------------------------------------------------------------

    def _with_touched(self, state: PoolState, holder: int, blocks: Iterable[int]) -> PoolState:
        """One more reference for each listed block; a free block leaves its queue; null is passed over."""
        refs, queues, gained = list(state.refs), state.queues, []
        for block in blocks:
            if block in self.nulls:
                continue
            if refs[block] == 0:
                pool = self.geometry.owner[block]
                queues = _put(queues, pool, tuple(b for b in queues[pool] if b != block))
            refs[block] += 1
            gained.append(block)
        tables = _put(state.tables, holder, state.tables[holder] + tuple(gained))
        return PoolState(queues, tuple(refs), state.entries, state.watchers, tables)

    def _touch(self, state: PoolState, call: call_types.TouchBlocks) -> Transitions:
        if any(block == STRANGER or self.geometry.owner[block] != call.pool for block in call.blocks):
            return self._refuse(state, [FOREIGN_BLOCK])
        return (Transition(done(), self._with_touched(state, call.holder, call.blocks)),)

    def _found(self, state: PoolState, call: call_types.GetCachedBlock | call_types.HitBlocks) -> list[tuple[int, ...]]:
        """Every right answer of a lookup: one block per group, any of several that carry the identity."""
        per_group = []
        for group in call.groups:
            identity = self.identities.pack(call.prefix, call.boundary, group)
            blocks = [b for b in self.geometry.blocks_of(call.pool) if identity in state.entries[b]]
            if not blocks:
                return []
            per_group.append(blocks)
        return list(product(*per_group))

    def _lookup(self, state: PoolState, call: call_types.GetCachedBlock) -> Transitions:
        answers = self._found(state, call)
        if not answers:
            return (Transition(Outcome("miss"), state),)
        return tuple(Transition(Outcome("hit", answer), state) for answer in answers)

    def _hit(self, state: PoolState, call: call_types.HitBlocks) -> Transitions:
        answers = self._found(state, call)
        if not answers:
            return (Transition(Outcome("miss"), state),)
        return tuple(
            Transition(Outcome("hit", answer), self._with_touched(state, call.holder, answer)) for answer in answers
        )

    # Release ---------------------------------------------------------------------------------------------------

    def _release_faults(self, state: PoolState, blocks: tuple[int, ...]) -> list[str]:
        faults = [FOREIGN_BLOCK] if STRANGER in blocks else []
        if any(b != STRANGER and b not in self.nulls and blocks.count(b) > state.refs[b] for b in blocks):
            faults.append(REF_CNT_UNDERFLOW)
        return faults

    def _free_blocks(self, state: PoolState, call: call_types.FreeBlocks) -> Transitions:
        faults = self._release_faults(state, call.blocks)
        if faults:
            return self._refuse(state, faults)
        refs = list(state.refs)
        heads: dict[int, list[int]] = {}
        tails: dict[int, list[int]] = {}
        for block in call.blocks:
            if block in self.nulls:
                continue
            refs[block] -= 1
            if refs[block] == 0:
                identified = state.entries[block] and self.scope.caching
                lane = tails if identified or not self.scope.lifo else heads
                lane.setdefault(self.geometry.owner[block], []).append(block)
        queues = tuple(
            tuple(heads.get(pool, ())) + queue + tuple(tails.get(pool, ())) for pool, queue in enumerate(state.queues)
        )
        tables = _put(state.tables, call.holder, _without(state.tables[call.holder], call.entries))
        return (Transition(done(), PoolState(queues, tuple(refs), state.entries, state.watchers, tables)),)

    def _unpin_blocks(self, state: PoolState, call: call_types.UnpinBlocks) -> Transitions:
        faults = self._release_faults(state, call.blocks)
        if any(block in self.nulls for block in call.blocks):
            faults.append(NULL_BLOCK)
        if any(block != STRANGER and self.geometry.owner[block] != call.pool for block in call.blocks):
            faults.append(FOREIGN_BLOCK)
        if faults:
            return self._refuse(state, faults)
        refs, watchers, released = list(state.refs), list(state.watchers), []
        for block in call.blocks:
            refs[block] -= 1
            watchers[block] += 1
            if refs[block] == 0:
                released.append(block)
        queues = _put(state.queues, call.pool, state.queues[call.pool] + tuple(released))
        tables = _put(state.tables, call.holder, _without(state.tables[call.holder], call.entries))
        return (Transition(done(), PoolState(queues, tuple(refs), state.entries, tuple(watchers), tables)),)

    # Identities ------------------------------------------------------------------------------------------------

    def _may_become(self, state: PoolState, block: int, prefix: int, boundary: int, group: int) -> bool:
        """Whether the block can be identified as this full boundary: it has no entry, or it grows from a partial
        entry on the same chain (partial to full promotion)."""
        carried = state.entries[block]
        if not carried:
            return True
        return self.identities.unpack(carried[0]).boundary < boundary and self.identities.is_on_chain(
            carried[0], prefix, group
        )

    def _cache_full_blocks(self, state: PoolState, call: call_types.CacheFullBlocks) -> Transitions:
        span = self.scope.spans[call.group]
        chosen = [
            (block, (call.at + i + 1) * span)
            for i, block in enumerate(call.blocks)
            if block not in self.nulls and not (call.skip > 0 and call.skip >> i & 1)
        ]
        faults = [] if self.scope.caching else [CACHING_DISABLED]
        if call.skip < 0:
            faults.append(MASK_LENGTH)
        if (call.at + len(call.blocks)) * span > self.scope.depth:
            faults.append(BAD_BOUNDARY)
        blocks = [block for block, _ in chosen]
        if len(set(blocks)) != len(blocks):
            faults.append(REPEATED_BLOCK)
        for block, boundary in chosen:
            if block == STRANGER:
                faults.append(FOREIGN_BLOCK)
                continue
            if self.geometry.owner[block] != call.pool:
                faults.append(FOREIGN_BLOCK)
            if state.refs[block] == 0:
                faults.append(NOT_OWNED)
            if not self._may_become(state, block, call.prefix, boundary, call.group):
                faults.append(ALREADY_IDENTIFIED)
        if faults:
            return self._refuse(state, faults)
        entries, effects, stored = list(state.entries), [], []
        for block, boundary in chosen:
            effects += self._published("removed", block, entries[block])
            identity = self.identities.pack(call.prefix, boundary, call.group)
            entries[block] = (identity,)
            stored += self._published("stored", block, (identity,))
        after = state._replace(entries=tuple(entries))
        return (Transition(done(effects=tuple(effects + stored)), after),)

    def _cache_partial_block(self, state: PoolState, call: call_types.CachePartialBlock) -> Transitions:
        block = call.block
        if block in self.nulls:
            return (Transition(done(), state),)
        faults = [] if self.scope.caching else [CACHING_DISABLED]
        if not 1 <= call.boundary <= self.scope.depth:
            faults.append(BAD_BOUNDARY)
        if block == STRANGER:
            return self._refuse(state, [*faults, FOREIGN_BLOCK])
        if self.geometry.owner[block] != call.pool:
            faults.append(FOREIGN_BLOCK)
        if state.refs[block] == 0:
            faults.append(NOT_OWNED)
        carried = state.entries[block]
        if carried and not call.replace and not self.identities.is_on_chain(carried[0], call.prefix, call.group):
            faults.append(ALREADY_IDENTIFIED)
        if faults:
            return self._refuse(state, faults)
        identity = self.identities.pack(call.prefix, call.boundary, call.group)
        if identity in carried and not call.replace:
            return (Transition(done((identity,)), state),)
        grows = bool(carried) and self.identities.unpack(carried[0]).boundary < call.boundary
        effects = []
        if call.replace or grows:
            effects += self._published("removed", block, carried)
            carried = ()
        effects += self._published("stored", block, (identity,))
        after = state._replace(entries=_put(state.entries, block, tuple(sorted((*carried, identity), reverse=True))))
        return (Transition(done((identity,), tuple(effects)), after),)

    def _move_block_hashes(self, state: PoolState, call: call_types.MoveBlockHashes) -> Transitions:
        src, dst = call.src, call.dst
        faults = []
        if any(b == STRANGER or self.geometry.owner[b] != call.pool for b in (src, dst)):
            faults.append(FOREIGN_BLOCK)
        if src in self.nulls or dst in self.nulls:
            faults.append(NULL_BLOCK)
        if dst != STRANGER:
            if state.entries[dst]:
                faults.append(DESTINATION_IDENTIFIED)
            if state.refs[dst] == 0 and dst not in self.nulls:
                faults.append(NOT_OWNED)
        if faults:
            return self._refuse(state, faults)
        entries = _put(_put(state.entries, dst, state.entries[src]), src, ())
        return (Transition(done(), state._replace(entries=entries)),)

    def _evict_blocks(self, state: PoolState, call: call_types.EvictBlocks) -> Transitions:
        size = self.geometry.sizes[call.pool]
        if any(not 0 <= number <= size for number in call.ids):
            return self._refuse(state, [ID_OUT_OF_RANGE])
        entries, effects = list(state.entries), []
        for number in call.ids:
            block = self.geometry.nulls[call.pool] + number
            effects += self._published("removed", block, entries[block])
            entries[block] = ()
        return (Transition(done(effects=tuple(effects)), state._replace(entries=tuple(entries))),)

    def _reset_prefix_cache(self, state: PoolState, call: call_types.ResetPrefixCache) -> Transitions:
        blocks = self.geometry.blocks_of(call.pool)
        if any(state.refs[block] for block in blocks):
            return (Transition(Outcome("false"), state),)
        effects: list[Effect] = [("fired", block) for block in blocks for _ in range(state.watchers[block])]
        if self.scope.events:
            effects.append(("cleared", call.pool))
        entries, watchers = list(state.entries), list(state.watchers)
        for block in blocks:
            entries[block], watchers[block] = (), 0
        after = state._replace(entries=tuple(entries), watchers=tuple(watchers))
        return (Transition(Outcome("true", effects=tuple(effects)), after),)

    # Use -------------------------------------------------------------------------------------------------------

    def _write(self, state: PoolState, call: call_types.WriteBlock) -> Transitions:
        """The contents of a block are not part of this level; that a write is allowed is."""
        if call.block in self.nulls or state.refs[call.block] != 1 or state.entries[call.block]:
            return self._refuse(state, [NOT_WRITABLE])
        return (Transition(done(), state),)

    def _announce(self, state: PoolState, call: call_types.EmitCachedBlockEvents) -> Transitions:
        span = self.scope.spans[call.group]
        boundaries = range(span, call.num_blocks * span + 1, span)
        identities = [self.identities.pack(call.prefix, boundary, call.group) for boundary in boundaries]
        return (
            Transition(
                done(effects=tuple(self._published("announced", self.geometry.nulls[call.pool], identities))),
                state,
            ),
        )
