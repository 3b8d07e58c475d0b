"""Calls: actions with their roles resolved to block numbers. This is what an implementation executes.

Block numbers run through all pools of the scope (`Geometry`); `STRANGER` stands for a block object that no pool owns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kvspec.pool import actions as act
from kvspec.pool.scope import PoolScope
from kvspec.pool.state import Geometry, PoolState
from kvspec.prefix import Identities

STRANGER = -1


class GetNewBlocks(NamedTuple):
    holder: int
    num_blocks: int
    pool: int


class TouchBlocks(NamedTuple):
    holder: int
    blocks: tuple[int, ...]
    pool: int


class HitBlocks(NamedTuple):
    """Look up (prefix, boundary) in each group and touch what was found."""

    holder: int
    prefix: int
    boundary: int
    groups: tuple[int, ...]
    pool: int


class GetCachedBlock(NamedTuple):
    prefix: int
    boundary: int
    groups: tuple[int, ...]
    pool: int


class FreeBlocks(NamedTuple):
    """entries: positions in the holder's table that are given up; blocks: the list as passed, in order."""

    holder: int
    entries: tuple[int, ...]
    blocks: tuple[int, ...]
    pool: int


class UnpinBlocks(NamedTuple):
    holder: int
    entries: tuple[int, ...]
    blocks: tuple[int, ...]
    pool: int


class CacheFullBlocks(NamedTuple):
    """blocks[i] holds logical block at+i of the prefix; bit i of skip masks it out; -1: mask of wrong length."""

    blocks: tuple[int, ...]
    prefix: int
    at: int
    group: int
    skip: int
    pool: int


class CachePartialBlock(NamedTuple):
    block: int
    prefix: int
    boundary: int
    group: int
    replace: bool
    pool: int


class MoveBlockHashes(NamedTuple):
    src: int
    dst: int
    pool: int


class EvictBlocks(NamedTuple):
    """ids are local to the pool, as a connector reports them; they may lie outside it."""

    ids: tuple[int, ...]
    pool: int


class ResetPrefixCache(NamedTuple):
    pool: int


class WriteBlock(NamedTuple):
    block: int
    pool: int


class EmitCachedBlockEvents(NamedTuple):
    prefix: int
    num_blocks: int
    group: int
    pool: int


def block_of(state: PoolState, ref: act.Ref) -> int | None:
    """The block that plays the role in this state, `STRANGER`, or None when nobody plays it."""
    owner, index = ref
    if owner >= 0:
        if owner < len(state.tables) and 0 <= index < len(state.tables[owner]):
            return state.tables[owner][index]
        return None
    if ref.is_stranger:
        return STRANGER
    pool = ref.queue_pool
    if pool is not None:
        if 0 <= pool < len(state.queues) and 0 <= index < len(state.queues[pool]):
            return state.queues[pool][index]
        return None
    return None  # the null block: resolved by the caller, which knows the geometry


class Resolver:
    """Turns actions into calls. A role that does not exist, or that would leave the scope, resolves to None."""

    def __init__(self, scope: PoolScope, geometry: Geometry, identities: Identities) -> None:
        self.scope = scope
        self.geometry = geometry
        self.identities = identities
        self._by_type: dict[type, Callable[[PoolState, Any], Any]] = {
            act.Allocate: self._allocate,
            act.Touch: self._touch,
            act.Hit: self._hit,
            act.Lookup: self._lookup,
            act.Free: self._free,
            act.Unpin: self._unpin,
            act.CacheFull: self._cache_full,
            act.CachePartial: self._cache_partial,
            act.MoveHashes: self._move,
            act.Evict: self._evict,
            act.Reset: self._reset,
            act.Write: self._write,
            act.Announce: self._announce,
        }

    def __call__(self, state: PoolState, action: Any) -> Any | None:
        return self._by_type[type(action)](state, action)

    def _block(self, state: PoolState, ref: act.Ref) -> int | None:
        pool = ref.null_pool
        if pool is not None:
            return self.geometry.nulls[pool] if self._has_pool(pool) else None
        return block_of(state, ref)

    def _blocks(self, state: PoolState, refs: tuple[act.Ref, ...]) -> tuple[int, ...] | None:
        found = []
        for ref in refs:
            block = self._block(state, ref)
            if block is None:
                return None
            found.append(block)
        return tuple(found)

    def _has_room(self, state: PoolState, holder: int, more: int) -> bool:
        return 0 <= holder < len(state.tables) and len(state.tables[holder]) + more <= self.scope.hold

    def _has_pool(self, pool: int) -> bool:
        return 0 <= pool < len(self.geometry.sizes)

    def _allocate(self, state: PoolState, action: act.Allocate) -> GetNewBlocks | None:
        if not self._has_pool(action.pool) or not self._has_room(state, action.holder, 0):
            return None
        fits = 0 <= action.num_blocks <= len(state.queues[action.pool])
        if fits and not self._has_room(state, action.holder, action.num_blocks):
            return None
        return GetNewBlocks(action.holder, action.num_blocks, action.pool)

    def _touch(self, state: PoolState, action: act.Touch) -> TouchBlocks | None:
        blocks = self._blocks(state, action.refs)
        if blocks is None or not self._has_pool(action.pool):
            return None
        if not self._has_room(
            state, action.holder, sum(b != STRANGER and b not in self.geometry.nulls for b in blocks)
        ):
            return None
        return TouchBlocks(action.holder, blocks, action.pool)

    def _hit(self, state: PoolState, action: act.Hit) -> HitBlocks | None:
        if not self._names_prefix(action) or not self._has_room(state, action.holder, len(action.groups)):
            return None
        return HitBlocks(*action)

    def _lookup(self, state: PoolState, action: act.Lookup) -> GetCachedBlock | None:
        return GetCachedBlock(*action) if self._names_prefix(action) else None

    def _names_prefix(self, action: act.Hit | act.Lookup) -> bool:
        return (
            0 <= action.prefix < self.scope.prefixes
            and 1 <= action.boundary <= self.scope.depth
            and 0 < len(action.groups) == len(set(action.groups))
            and all(0 <= group < self.scope.groups for group in action.groups)
            and self._has_pool(action.pool)
        )

    def _given_up(
        self, state: PoolState, action: act.Free | act.Unpin
    ) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """(table positions, blocks). A holder may list only what it holds: the pool cannot tell whose reference a
        release gives back, so giving back somebody else's is not an action. Listing one entry twice is one only
        where it takes the count below zero, because then the pool must notice."""
        blocks = self._blocks(state, action.refs)
        if (
            blocks is None
            or not self._has_pool(action.pool)
            or not action.refs
            or not 0 <= action.holder < len(state.tables)
        ):
            return None
        entries = [ref.position for ref in action.refs if ref.is_held]
        if any(ref.is_held and ref.owner != action.holder for ref in action.refs):
            return None
        if len(set(entries)) != len(entries) and not any(
            block != STRANGER and blocks.count(block) > state.refs[block] for block in blocks
        ):
            return None
        return tuple(entries), blocks

    def _free(self, state: PoolState, action: act.Free) -> FreeBlocks | None:
        given_up = self._given_up(state, action)
        return None if given_up is None else FreeBlocks(action.holder, *given_up, action.pool)

    def _unpin(self, state: PoolState, action: act.Unpin) -> UnpinBlocks | None:
        given_up = self._given_up(state, action)
        if given_up is None or not self.scope.watchers:
            return None
        _, blocks = given_up
        if any(b != STRANGER and state.watchers[b] + blocks.count(b) > self.scope.watchers for b in blocks):
            return None
        return UnpinBlocks(action.holder, *given_up, action.pool)

    def _cache_full(self, state: PoolState, action: act.CacheFull) -> CacheFullBlocks | None:
        blocks = self._blocks(state, action.refs)
        if not blocks or action.at < 0 or not self._has_pool(action.pool):
            return None
        if not (0 <= action.prefix < self.scope.prefixes and 0 <= action.group < self.scope.groups):
            return None
        return CacheFullBlocks(blocks, *action[1:])

    def _cache_partial(self, state: PoolState, action: act.CachePartial) -> CachePartialBlock | None:
        block = self._block(state, action.ref)
        if block is None or not self._has_pool(action.pool) or action.boundary < 0:
            return None
        if not (0 <= action.prefix < self.scope.prefixes and 0 <= action.group < self.scope.groups):
            return None
        return CachePartialBlock(block, *action[1:])

    def _move(self, state: PoolState, action: act.MoveHashes) -> MoveBlockHashes | None:
        blocks = self._blocks(state, (action.src, action.dst))
        return (
            None
            if blocks is None or not self._has_pool(action.pool)
            else MoveBlockHashes(blocks[0], blocks[1], action.pool)
        )

    def _evict(self, state: PoolState, action: act.Evict) -> EvictBlocks | None:
        blocks = self._blocks(state, action.refs)
        if blocks is None or not self._has_pool(action.pool) or STRANGER in blocks:
            return None
        if any(self.geometry.owner[block] != action.pool for block in blocks):
            return None
        ids = [self.geometry.local[block] for block in blocks]
        if action.beyond:
            ids.append(self.geometry.sizes[action.pool] + action.beyond if action.beyond > 0 else action.beyond)
        return EvictBlocks(tuple(ids), action.pool) if ids else None

    def _reset(self, state: PoolState, action: act.Reset) -> ResetPrefixCache | None:
        return ResetPrefixCache(action.pool) if self._has_pool(action.pool) else None

    def _write(self, state: PoolState, action: act.Write) -> WriteBlock | None:
        block = self._block(state, action.ref)
        if block is None or block == STRANGER or self.geometry.owner[block] != action.pool:
            return None
        return WriteBlock(block, action.pool)

    def _announce(self, state: PoolState, action: act.Announce) -> EmitCachedBlockEvents | None:
        """Only for identities that are resident: what else it could mean, the pool's interface leaves open."""
        scope = self.scope
        if not scope.events or not self._has_pool(action.pool) or not 0 <= action.prefix < scope.prefixes:
            return None
        if not 0 <= action.group < scope.groups or action.num_blocks < 1:
            return None
        span = scope.spans[action.group]
        if action.num_blocks * span > scope.depth:
            return None
        resident = {identity for block in self.geometry.blocks_of(action.pool) for identity in state.entries[block]}
        for i in range(1, action.num_blocks + 1):
            if self.identities.pack(action.prefix, i * span, action.group) not in resident:
                return None
        return EmitCachedBlockEvents(*action)
