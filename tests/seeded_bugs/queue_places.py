"""Moves of free blocks that no correct caller can ask for, made of public calls of the pool.

What a faulty pool does to its queue is said here in terms of what a correct one does when it is told lies, so that
the seeded bugs do not depend on how the queue is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kvpool import BlockPool, KVCacheBlock


def nobody(_block: KVCacheBlock) -> None:
    """A reuse watcher that does not care."""


def own_free(pool: BlockPool, blocks: Iterable[KVCacheBlock]) -> list[KVCacheBlock]:
    """The blocks among `blocks` that are free and this pool's own, each once, in the order given."""
    return [block for block in dict.fromkeys(blocks) if block.pool is pool and not block.is_null and not block.ref_cnt]


def to_head(pool: BlockPool, blocks: list[KVCacheBlock]) -> None:
    """Move free blocks to the head; the first becomes the next to be taken."""
    BlockPool.touch(pool, blocks)
    release_unidentified(pool, blocks)


def to_tail(pool: BlockPool, blocks: list[KVCacheBlock]) -> None:
    """Move free blocks to the tail, in the order given."""
    BlockPool.touch(pool, blocks)
    BlockPool.unpin_blocks(pool, blocks, nobody)


def release_unidentified(pool: BlockPool, blocks: Iterable[KVCacheBlock]) -> None:
    """Release as if no block had an entry."""
    was, pool.enable_caching = pool.enable_caching, False
    try:
        BlockPool.free_blocks(pool, blocks)
    finally:
        pool.enable_caching = was


class QueueWithStrays:
    """A free queue that has, behind its own blocks, some that do not belong there. Everything else is the queue's."""

    def __init__(self, queue: Any) -> None:
        self.__dict__.update(queue=queue, strays=[])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.queue, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.queue, name, value)

    def iter_blocks_after(self, cursor: KVCacheBlock | None) -> Iterator[KVCacheBlock]:
        """The queue's blocks, then the strays."""
        yield from self.queue.iter_blocks_after(cursor)
        yield from self.strays


def queue_again(pool: BlockPool, block: KVCacheBlock) -> None:
    """Put a block into the queue, whether it is there or not."""
    block.ref_cnt = 1
    BlockPool.free_blocks(pool, [block])
