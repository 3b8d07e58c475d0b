"""Releases that the one-pass fast path of `BlockPool.free_blocks` does not handle: mixed pools and refusals.

The fast path gives up at the first entry that is not plainly a held block of its own pool, restores what it
counted, and calls `sort_by_pool` and `check_references` to find out what the entry is. Nothing here changes a pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .block import KVCacheBlock
from .errors import ReferenceUnderflowError, UnknownBlockError
from .free_queue import FreeQueue
from .membership import is_member

if TYPE_CHECKING:
    from .block_pool import BlockPool

__all__ = ["check_references", "sort_by_pool"]


def sort_by_pool(entries: Iterable[Any], home: BlockPool) -> dict[BlockPool, list[KVCacheBlock]]:
    """Entries by the pool that owns them, each in the given order, without null blocks; `home` first.

    Raises UnknownBlockError for anything that is no pool's own block.
    """
    by_pool: dict[BlockPool, list[KVCacheBlock]] = {home: []}
    for block in entries:
        pool = block.pool if isinstance(block, KVCacheBlock) else None
        if pool is None or not is_member(pool.blocks, block):
            raise UnknownBlockError(
                f"free_blocks refused: {block!r} is not a block of any pool; expected the very object at "
                "pool.blocks[block_id] of its pool. Release the blocks that the pool handed out."
            )
        if not block.is_null:
            by_pool.setdefault(pool, []).append(block)
    return by_pool


def check_references(operation: str, queue: FreeQueue, entries: Sequence[KVCacheBlock]) -> None:
    """Refuse if a block is listed more often than it has references."""
    for block, listed in Counter(entries).items():
        if listed > block.ref_cnt:
            place = queue.position(block)
            queued = (
                "is not in the free queue"
                if place is None
                else f"is already in the free queue at position {place} of {queue.num_free_blocks}"
            )
            raise ReferenceUnderflowError(
                f"{operation} refused: block {block.block_id} has ref_cnt {block.ref_cnt}, is listed {listed} "
                f"time(s) and {queued}; expected at most one entry per reference. Release each reference once."
            )
