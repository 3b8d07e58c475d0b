"""An immutable copy of a pool's books, for comparison, reports and traces.

Plain integers, bytes and tuples: two snapshots are equal iff the pools are observably equal. Taking
one is linear in the number of blocks. It judges nothing; `audit` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .block_key import BlockKey

if TYPE_CHECKING:
    from .pool_books import PoolBooks

__all__ = ["PoolSnapshot", "take_snapshot"]


class PoolSnapshot(NamedTuple):
    """Books of a pool at one moment. Ids index `ref_counts`, whose entry 0 is the null block's."""

    num_gpu_blocks: int
    enable_caching: bool
    # Ids in eviction order, next taken first.
    free_order: tuple[int, ...]
    num_free_blocks: int
    ref_counts: tuple[int, ...]
    # (block id, primary key, tokens covered), by rising id.
    primary: tuple[tuple[int, BlockKey, int | None], ...]
    # (block id, secondary keys in byte order), by rising id.
    secondary: tuple[tuple[int, tuple[BlockKey, ...]], ...]
    # (key, ids of the blocks that carry it, longest first), by key.
    entries: tuple[tuple[BlockKey, tuple[int, ...]], ...]
    # (block id, number of outstanding watcher registrations), by rising id.
    watchers: tuple[tuple[int, int], ...]
    num_pending_events: int


def take_snapshot(pool: PoolBooks) -> PoolSnapshot:
    """Copy the books of `pool`."""
    index = pool.cached_block_hash_to_block
    return PoolSnapshot(
        num_gpu_blocks=pool.num_gpu_blocks,
        enable_caching=pool.enable_caching,
        free_order=tuple(block.block_id for block in pool.free_block_queue),
        num_free_blocks=pool.free_block_queue.num_free_blocks,
        ref_counts=tuple(block.ref_cnt for block in pool.blocks),
        primary=tuple(
            (block.block_id, key, block.block_hash_num_tokens)
            for block in pool.blocks
            if (key := block.block_hash) is not None
        ),
        secondary=tuple((block_id, tuple(sorted(keys))) for block_id, keys in sorted(index.secondary_keys.items())),
        entries=tuple(sorted((key, tuple(block.block_id for block in blocks)) for key, blocks in index.items())),
        watchers=tuple(sorted((block_id, len(calls)) for block_id, calls in pool.outstanding_watchers().items())),
        num_pending_events=len(pool.kv_event_queue),
    )
