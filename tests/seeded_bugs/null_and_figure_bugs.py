"""Pools that let the null block into play, report wrong figures, or allow wrong writes (P2, P4, P5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvpool import BlockPool, KVCacheBlock
from kvpool.block_key import make_block_key
from seeded_bugs.queue_places import QueueWithStrays
from seeded_bugs.seeded_bug import CHAINS, PLAIN, SeededBug


class NullBlockQueued(BlockPool):
    """A released null block is put into the free queue."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.free_block_queue: Any = QueueWithStrays(self.free_block_queue)

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        entries = list(ordered_blocks)
        super().free_blocks(entries)
        self.free_block_queue.strays.extend(block for block in entries if block is self.null_block)


class NullBlockHandedOut(BlockPool):
    """An allocation beyond capacity is filled up with the null block."""

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        short = num_blocks - self.get_num_free_blocks()
        if short <= 0:
            return super().get_new_blocks(num_blocks)
        return [*super().get_new_blocks(num_blocks - short), *[self.null_block] * short]


class NullBlockIdentified(BlockPool):
    """A null placeholder in the table of a request is entered into the index like any block."""

    def cache_full_blocks(
        self,
        request: Any,
        blocks: Any,
        num_cached_blocks: int,
        num_full_blocks: int,
        block_size: int,
        kv_cache_group_id: int,
        block_mask: Any = None,
    ) -> None:
        super().cache_full_blocks(
            request, blocks, num_cached_blocks, num_full_blocks, block_size, kv_cache_group_id, block_mask
        )
        for at in range(num_cached_blocks, num_full_blocks):
            if blocks[at] is self.null_block:
                key = make_block_key(request.block_hashes[at], kv_cache_group_id)
                self.cached_block_hash_to_block.insert(key, self.null_block)


class UsageCountsNullBlock(BlockPool):
    """Usage is a share of all blocks, the null block included."""

    def get_usage(self) -> float:
        return 1.0 - self.get_num_free_blocks() / self.num_gpu_blocks


class FreeCountIncludesNullBlock(BlockPool):
    """The null block is counted as free, so the usage of an idle pool is negative."""

    def get_num_free_blocks(self) -> int:
        return super().get_num_free_blocks() + 1

    def get_usage(self) -> float:
        return 1.0 - self.get_num_free_blocks() / (self.num_gpu_blocks - 1)


class RevivalKeepsFreeCount(BlockPool):
    """The free count is lowered by allocations only, not by a touch that takes a block out of the queue."""

    revived = 0

    def touch(self, blocks: Iterable[KVCacheBlock]) -> None:
        before = super().get_num_free_blocks()
        super().touch(list(blocks))
        self.revived += before - super().get_num_free_blocks()

    def get_num_free_blocks(self) -> int:
        return super().get_num_free_blocks() + self.revived


class SharedBlockWritable(BlockPool):
    """A block may be written to in place however many hold it."""

    def is_block_writable(self, block: KVCacheBlock) -> bool:
        return not block.is_null and block.ref_cnt > 0 and block.block_hash is None


class IdentifiedBlockWritable(BlockPool):
    """A block that lookup can find may be written to by its only holder."""

    def is_block_writable(self, block: KVCacheBlock) -> bool:
        return not block.is_null and block.ref_cnt == 1


class FreeBlockWritable(BlockPool):
    """A block that nobody holds may be written to."""

    def is_block_writable(self, block: KVCacheBlock) -> bool:
        return not block.is_null and block.ref_cnt <= 1 and block.block_hash is None


class NullBlockWritable(BlockPool):
    """The null block, which all tables share, may be written to."""

    def is_block_writable(self, block: KVCacheBlock) -> bool:
        return block.is_null or super().is_block_writable(block)


BUGS = (
    SeededBug(NullBlockQueued, "K16", (4,), "P4", PLAIN, 1),
    SeededBug(NullBlockHandedOut, "K16", (), "P4", PLAIN, 1),
    SeededBug(NullBlockIdentified, "K16", (), "P4", CHAINS, 1),
    SeededBug(UsageCountsNullBlock, "K14", (128,), "P5", PLAIN, 0),
    SeededBug(FreeCountIncludesNullBlock, "K14", (127,), "P5", PLAIN, 0),
    SeededBug(RevivalKeepsFreeCount, "K14", (127,), "P5", PLAIN, 1),
    SeededBug(SharedBlockWritable, "K10", (98,), "P2", PLAIN, 3),
    SeededBug(IdentifiedBlockWritable, "K10", (102,), "P2", PLAIN, 3),
    SeededBug(FreeBlockWritable, "K10", (), "P2", PLAIN, 1),
    SeededBug(NullBlockWritable, "K16", (), "P2", PLAIN, 1),
)
