"""Pools that count references wrongly, or queue a block that is held, twice or never (P1, P5, P10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kvpool import BlockPool, KVCacheBlock, RefusedError
from seeded_bugs.queue_places import queue_again
from seeded_bugs.seeded_bug import GROUPS, PLAIN, TWO_POOLS, SeededBug


class DoubleFreeAccepted(BlockPool):
    """Releasing a block that is free already queues it a second time."""

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        entries = list(ordered_blocks)
        for block in entries:
            if not block.is_null and block.ref_cnt == 0:
                block.ref_cnt = 1
        super().free_blocks(entries)


class RepeatedReleaseQueuedTwice(BlockPool):
    """A release first counts every entry down and then queues each entry whose block is at 0, repeats included."""

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        entries = list(ordered_blocks)
        super().free_blocks(entries)
        for block in {block for block in entries if entries.count(block) > 1 and block.ref_cnt == 0}:
            queue_again(self, block)


class CountFallsBelowZero(BlockPool):
    """Releasing a free block counts it down to -1 without a word."""

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        entries = list(ordered_blocks)
        for block in entries:
            if block.pool is self and not block.is_null and block.ref_cnt == 0:
                block.ref_cnt = -1
        super().free_blocks(block for block in entries if block.is_null or block.ref_cnt >= 0)


class AllocatedWithoutReference(BlockPool):
    """A block is handed out with ref_cnt 0."""

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        taken = super().get_new_blocks(num_blocks)
        for block in taken:
            block.ref_cnt = 0
        return taken


class TouchedBlockStaysQueued(BlockPool):
    """A touch counts a free block up and leaves it in the queue."""

    def touch(self, blocks: Iterable[KVCacheBlock]) -> None:
        entries = list(blocks)
        idle = {block for block in entries if block.pool is self and not block.is_null and block.ref_cnt == 0}
        for block in idle:
            block.ref_cnt += 1
        try:
            super().touch(entries)
        finally:
            for block in idle:
                block.ref_cnt -= 1


class HitTakesNoReference(BlockPool):
    """A touch of a block that is held adds no reference."""

    def touch(self, blocks: Iterable[KVCacheBlock]) -> None:
        entries = list(blocks)
        held = {block: block.ref_cnt for block in entries if block.ref_cnt > 0}
        super().touch(entries)
        for block, references in held.items():
            block.ref_cnt = references


class RepeatedTouchCountsOnce(BlockPool):
    """A block that is listed twice in one touch gets one reference."""

    def touch(self, blocks: Iterable[KVCacheBlock]) -> None:
        super().touch(list(dict.fromkeys(blocks)))


class NullEndsRelease(BlockPool):
    """A release stops at the first null block; what follows it is leaked."""

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        entries = list(ordered_blocks)
        stop = next((place for place, block in enumerate(entries) if block.is_null), len(entries))
        super().free_blocks(entries[:stop])


class ForeignReleaseTakenForOwn(BlockPool):
    """A released block of another pool is taken for the own block with its id."""

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        super().free_blocks(self.blocks[b.block_id] if b.block_id < len(self.blocks) else b for b in ordered_blocks)


class ForeignReleaseDropped(BlockPool):
    """Blocks of another pool are left out of a release and never come back."""

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        entries = list(ordered_blocks)
        wrong = {block for block in entries if entries.count(block) > block.ref_cnt}
        super().free_blocks(block for block in entries if block.pool in (self, None) or block in wrong)


class LastReferenceKept(BlockPool):
    """An identified block that loses its last reference is not queued, so it is lost."""

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        entries = list(ordered_blocks)
        super().free_blocks(entries)
        lost = {block for block in entries if block.pool is self and block.ref_cnt == 0 and block.block_hash}
        super().touch(list(lost))
        for block in lost:
            block.ref_cnt = 0


class ShortAllocation(BlockPool):
    """An allocation beyond capacity hands out what there is."""

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        return super().get_new_blocks(min(num_blocks, self.get_num_free_blocks()))


class NegativeAllocationCounts(BlockPool):
    """An allocation of a negative number takes nothing and raises the free count."""

    surplus = 0

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        if num_blocks < 0:
            self.surplus -= num_blocks
            return []
        return super().get_new_blocks(num_blocks)

    def get_num_free_blocks(self) -> int:
        return super().get_num_free_blocks() + self.surplus


class FailedAllocationKeepsBlocks(BlockPool):
    """An allocation beyond capacity takes what there is before it is refused."""

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        if num_blocks > self.get_num_free_blocks():
            super().get_new_blocks(self.get_num_free_blocks())
        return super().get_new_blocks(num_blocks)


class MissKeepsReferences(BlockPool):
    """A lookup references what it finds group by group, and keeps that when a later group misses."""

    def get_cached_block(self, block_hash: bytes, kv_cache_group_ids: Sequence[int]) -> list[KVCacheBlock] | None:
        found = super().get_cached_block(block_hash, kv_cache_group_ids)
        if found is None:
            for group in kv_cache_group_ids:
                super().touch(super().get_cached_block(block_hash, [group]) or [])
        return found


class RefusedReleaseCountsDown(BlockPool):
    """A release counts down entry by entry and is refused at the one that does not fit."""

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        entries = list(ordered_blocks)
        try:
            super().free_blocks(entries)
        except RefusedError:
            for block in entries:
                super().free_blocks([block])


BUGS = (
    SeededBug(DoubleFreeAccepted, "K1", (4, 7, 9), "P1", PLAIN, 1),
    SeededBug(RepeatedReleaseQueuedTwice, "K1", (1, 5), "P1", PLAIN, 2),
    SeededBug(CountFallsBelowZero, "K1", (1, 12), "P1", PLAIN, 1),
    SeededBug(AllocatedWithoutReference, "K1", (12,), "P10", PLAIN, 1),
    SeededBug(TouchedBlockStaysQueued, "K1", (34,), "P1", PLAIN, 1),
    SeededBug(HitTakesNoReference, "K10", (98,), "P10", PLAIN, 2),
    SeededBug(RepeatedTouchCountsOnce, "K1", (), "P10", PLAIN, 1),
    SeededBug(NullEndsRelease, "K2", (), "P10", PLAIN, 2),
    SeededBug(ForeignReleaseTakenForOwn, "K1", (8,), "P10", TWO_POOLS, 2),
    SeededBug(ForeignReleaseDropped, "K2", (), "P10", TWO_POOLS, 2),
    SeededBug(LastReferenceKept, "K2", (23,), "P1", PLAIN, 3),
    SeededBug(ShortAllocation, "K1", (), "P10", PLAIN, 1),
    SeededBug(NegativeAllocationCounts, "K1", (2, 3), "P5", PLAIN, 1),
    SeededBug(FailedAllocationKeepsBlocks, "K2", (22,), "P6", PLAIN, 1),
    SeededBug(MissKeepsReferences, "K2", (20,), "P6", GROUPS, 3),
    SeededBug(RefusedReleaseCountsDown, "K1", (4,), "P6", PLAIN, 2),
)
