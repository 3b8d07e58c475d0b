"""Pools that have changed something before they refuse (P6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvpool import BlockPool, KVCacheBlock, RefusedError
from kvpool.watchers import ReuseCallback
from seeded_bugs.seeded_bug import CHAINS, PLAIN, TWO_POOLS, WATCHED, SeededBug


class RefusedTouchCountsUp(BlockPool):
    """A touch refers to block after block until it meets one that is not its own."""

    def touch(self, blocks: Iterable[KVCacheBlock]) -> None:
        entries = list(blocks)
        try:
            super().touch(entries)
        except RefusedError:
            for block in entries:
                super().touch([block])


class RefusedUnpinCountsDown(BlockPool):
    """An unpin gives up block after block until it meets one that does not fit."""

    def unpin_blocks(self, blocks: Iterable[KVCacheBlock], on_reuse: ReuseCallback) -> None:
        entries = list(blocks)
        try:
            super().unpin_blocks(entries, on_reuse)
        except RefusedError:
            for block in entries:
                super().unpin_blocks([block], on_reuse)


class RefusedEvictionDropsEntries(BlockPool):
    """An eviction drops entries until it meets an id that does not exist."""

    def evict_blocks(self, block_ids: Iterable[int]) -> None:
        ids = list(block_ids)
        try:
            super().evict_blocks(ids)
        except RefusedError:
            super().evict_blocks([block_id for block_id in ids if 0 <= block_id < self.num_gpu_blocks])
            raise


class RefusedRegistrationFiles(BlockPool):
    """A registration files block after block until it meets one that does not fit."""

    def cache_full_blocks(self, *args: Any) -> None:
        request, blocks, start, stop, block_size, group, mask = args
        try:
            super().cache_full_blocks(*args)
        except RefusedError:
            if mask is not None:
                raise
            for at in range(start, stop):
                super().cache_full_blocks(request, blocks, at, at + 1, block_size, group)


class RefusedMoveDropsEntries(BlockPool):
    """A move takes the entries off the source before it finds that the target cannot have them."""

    def move_block_hashes(self, src_block: KVCacheBlock, dst_block: KVCacheBlock) -> None:
        try:
            super().move_block_hashes(src_block, dst_block)
        except RefusedError:
            self.evict_blocks([src_block.block_id] if src_block.pool is self else [])
            raise


class DeclinedResetDropsEntries(BlockPool):
    """A reset that is declined because blocks are held has dropped the entries of the free ones."""

    def reset_prefix_cache(self) -> bool:
        done = super().reset_prefix_cache()
        if not done:
            self.evict_blocks([block.block_id for block in self.free_block_queue.get_all_free_blocks()])
        return done


BUGS = (
    SeededBug(RefusedTouchCountsUp, "K1", (), "P6", TWO_POOLS, 1),
    SeededBug(RefusedUnpinCountsDown, "K1", (), "P6", WATCHED, 2),
    SeededBug(RefusedEvictionDropsEntries, "K3", (), "P6", PLAIN, 3),
    SeededBug(RefusedRegistrationFiles, "K3", (), "P6", CHAINS, 2),
    SeededBug(RefusedMoveDropsEntries, "K3", (), "P6", PLAIN, 3),
    SeededBug(DeclinedResetDropsEntries, "K3", (), "P6", PLAIN, 5),
)
