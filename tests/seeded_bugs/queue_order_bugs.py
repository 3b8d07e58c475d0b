"""Pools that hand blocks out in the wrong order (P8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kvpool import BlockPool, KVCacheBlock
from kvpool.watchers import ReuseCallback
from seeded_bugs.queue_places import own_free, release_unidentified, to_head, to_tail
from seeded_bugs.seeded_bug import PLAIN, WATCHED, SeededBug


class UnidentifiedReleasedToTail(BlockPool):
    """A released block without an entry waits behind the cached ones."""

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        entries = list(ordered_blocks)
        super().free_blocks(entries)
        to_tail(self, [block for block in own_free(self, entries) if block.block_hash is None])


class IdentifiedReleasedToHead(BlockPool):
    """A released block with an entry is the next to be evicted."""

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        release_unidentified(self, ordered_blocks)


class ReleaseOrderReversed(BlockPool):
    """The last block of a release is treated as if it were the first."""

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        super().free_blocks(list(ordered_blocks)[::-1])


class UnpinnedToHead(BlockPool):
    """An unpinned block is the next to be taken, while a transfer still reads it."""

    def unpin_blocks(self, blocks: Iterable[KVCacheBlock], on_reuse: ReuseCallback) -> None:
        entries = list(blocks)
        super().unpin_blocks(entries, on_reuse)
        to_head(self, own_free(self, entries))


class UnpinnedByIdentity(BlockPool):
    """An unpinned block without an entry goes to the head, as if it had been released."""

    def unpin_blocks(self, blocks: Iterable[KVCacheBlock], on_reuse: ReuseCallback) -> None:
        entries = list(blocks)
        super().unpin_blocks(entries, on_reuse)
        to_head(self, [block for block in own_free(self, entries) if block.block_hash is None])


class EvictionMovesQueuedBlock(BlockPool):
    """A queued block that loses its entries is moved to the head."""

    def evict_blocks(self, block_ids: Iterable[int]) -> None:
        ids = list(block_ids)
        super().evict_blocks(ids)
        to_head(self, own_free(self, (self.blocks[block_id] for block_id in ids)))


class TakesFromTail(BlockPool):
    """The block that was used last is taken first."""

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        if 0 < num_blocks <= self.get_num_free_blocks():
            to_head(self, self.free_block_queue.get_all_free_blocks()[-num_blocks:])
        return super().get_new_blocks(num_blocks)


class LookupRefreshesBlock(BlockPool):
    """A lookup without a touch moves the free block that it finds to the tail."""

    def get_cached_block(self, block_hash: bytes, kv_cache_group_ids: Sequence[int]) -> list[KVCacheBlock] | None:
        found = super().get_cached_block(block_hash, kv_cache_group_ids)
        to_tail(self, own_free(self, found or []))
        return found


class ResetSortsQueue(BlockPool):
    """A reset rebuilds the queue in the order of block ids."""

    def reset_prefix_cache(self) -> bool:
        done = super().reset_prefix_cache()
        if done:
            to_tail(self, self.blocks[1:])
        return done


BUGS = (
    SeededBug(UnidentifiedReleasedToTail, "K13", (), "P8", PLAIN, 2),
    SeededBug(IdentifiedReleasedToHead, "K13", (), "P8", PLAIN, 3),
    SeededBug(ReleaseOrderReversed, "K13", (), "P8", PLAIN, 2),
    SeededBug(UnpinnedToHead, "K13", (), "P8", WATCHED, 2),
    SeededBug(UnpinnedByIdentity, "K13", (), "P8", WATCHED, 2),
    SeededBug(EvictionMovesQueuedBlock, "K13", (), "P8", PLAIN, 1),
    SeededBug(TakesFromTail, "K13", (), "P8", PLAIN, 1),
    SeededBug(LookupRefreshesBlock, "K13", (), "P8", PLAIN, 7),
    SeededBug(ResetSortsQueue, "K13", (), "P8", PLAIN, 5, False),
)
