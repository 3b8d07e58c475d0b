"""Pools whose index and blocks tell different stories about what is cached (P3, P11, P12)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kvpool import BlockPool, KVCacheBlock
from seeded_bugs.seeded_bug import GROUPS, PARTIAL, PLAIN, SeededBug

Entries = tuple[KVCacheBlock, bytes, int | None, tuple[bytes, ...]]


def entries_of(pool: BlockPool, blocks: Iterable[KVCacheBlock]) -> list[Entries]:
    """What is about to be dropped: block, primary key, tokens that it covers, secondary keys."""
    return [
        (block, key, block.block_hash_num_tokens, tuple(pool.cached_block_hashes_by_block.get(block.block_id, ())))
        for block in blocks
        if (key := block.block_hash) is not None
    ]


def next_blocks(pool: BlockPool, num_blocks: int) -> list[KVCacheBlock]:
    """The blocks that an allocation is going to take."""
    return pool.free_block_queue.get_all_free_blocks()[: max(0, num_blocks)]


def keep_on_block(entries: Iterable[Entries]) -> None:
    """Write the primary keys back to the blocks alone."""
    for block, key, num_tokens, _ in entries:
        block.set_block_hash(key, num_tokens)


def keep_in_index(pool: BlockPool, entries: Iterable[Entries]) -> None:
    """Enter the primary keys into the index alone."""
    for block, key, _, _ in entries:
        pool.cached_block_hash_to_block.insert(key, block)


class AllocationKeepsEntry(BlockPool):
    """A block that is taken keeps its entry, so its new content is found under the old prefix."""

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        entries = entries_of(self, next_blocks(self, num_blocks))
        taken = super().get_new_blocks(num_blocks)
        keep_on_block(entries)
        keep_in_index(self, entries)
        return taken


class AllocationKeepsIndexEntry(BlockPool):
    """The index still leads to a block that was taken anew."""

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        entries = entries_of(self, next_blocks(self, num_blocks))
        taken = super().get_new_blocks(num_blocks)
        keep_in_index(self, entries)
        return taken


class AllocationKeepsBlockHash(BlockPool):
    """A block that was taken anew still says that it carries the old hash."""

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        entries = entries_of(self, next_blocks(self, num_blocks))
        taken = super().get_new_blocks(num_blocks)
        keep_on_block(entries)
        return taken


class EvictionKeepsIndexEntry(BlockPool):
    """Eviction clears the block's hash and forgets the index."""

    def evict_blocks(self, block_ids: Iterable[int]) -> None:
        ids = list(block_ids)
        entries = entries_of(self, (self.blocks[i] for i in ids if 0 <= i < self.num_gpu_blocks))
        super().evict_blocks(ids)
        keep_in_index(self, entries)


class EvictionKeepsBlockHash(BlockPool):
    """Eviction removes the block from the index and leaves its hash on it."""

    def evict_blocks(self, block_ids: Iterable[int]) -> None:
        ids = list(block_ids)
        entries = entries_of(self, (self.blocks[i] for i in ids if 0 <= i < self.num_gpu_blocks))
        super().evict_blocks(ids)
        keep_on_block(entries)


class EvictionKeepsSecondaryKeys(BlockPool):
    """Eviction drops the primary key alone; finer boundaries of the block are still found."""

    def evict_blocks(self, block_ids: Iterable[int]) -> None:
        ids = list(block_ids)
        entries = entries_of(self, (self.blocks[i] for i in ids if 0 <= i < self.num_gpu_blocks))
        super().evict_blocks(ids)
        for block, _, _, secondary in entries:
            for key in secondary:
                self.cached_block_hash_to_block.insert(key, block)


class AllocationKeepsSecondaryKeys(BlockPool):
    """The list of secondary keys outlives the block's reuse."""

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        entries = entries_of(self, next_blocks(self, num_blocks))
        taken = super().get_new_blocks(num_blocks)
        for block, _, _, secondary in entries:
            if secondary:
                self.cached_block_hashes_by_block[block.block_id] = set(secondary)
        return taken


class LookupAnswersOtherGroup(BlockPool):
    """A lookup in one group is answered with a block of another."""

    def get_cached_block(self, block_hash: bytes, kv_cache_group_ids: Sequence[int]) -> list[KVCacheBlock] | None:
        groups = [[group, *{0, 1} - {group}] for group in kv_cache_group_ids]
        found = [self._first(block_hash, order) for order in groups]
        return None if None in found else [block for block in found if block is not None]

    def _first(self, block_hash: bytes, order: Sequence[int]) -> KVCacheBlock | None:
        answers = (super(LookupAnswersOtherGroup, self).get_cached_block(block_hash, [group]) for group in order)
        return next((answer[0] for answer in answers if answer), None)


class LookupFillsUpWithNull(BlockPool):
    """A lookup that hits in some of its groups is answered with null for the others."""

    def get_cached_block(self, block_hash: bytes, kv_cache_group_ids: Sequence[int]) -> list[KVCacheBlock] | None:
        found = [super(LookupFillsUpWithNull, self).get_cached_block(block_hash, [g]) for g in kv_cache_group_ids]
        return [answer[0] if answer else self.null_block for answer in found] if any(found) else None


class LookupRemembersAnswer(BlockPool):
    """A lookup is answered from memory, also after the block has lost its entry."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.memory: dict[object, list[KVCacheBlock]] = {}

    def get_cached_block(self, block_hash: bytes, kv_cache_group_ids: Sequence[int]) -> list[KVCacheBlock] | None:
        question = (block_hash, tuple(kv_cache_group_ids))
        found = self.memory.get(question) or super().get_cached_block(block_hash, kv_cache_group_ids)
        if found is not None:
            self.memory[question] = found
        return found


class ReleaseDropsEntries(BlockPool):
    """A block loses its entries with its last reference, so nothing is ever found again."""

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        entries = list(ordered_blocks)
        super().free_blocks(entries)
        self.evict_blocks({block.block_id for block in entries if block.pool is self and block.ref_cnt == 0})


class TouchDropsEntries(BlockPool):
    """A block that leaves the queue through a hit loses its entries, as if it had been taken."""

    def touch(self, blocks: Iterable[KVCacheBlock]) -> None:
        entries = list(blocks)
        idle = {block for block in entries if block.ref_cnt == 0}
        super().touch(entries)
        self.evict_blocks({block.block_id for block in idle})


class AllocationDropsDuplicates(BlockPool):
    """Taking a block drops the entries of every block that carries the same hash, held ones included."""

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        keys = {block.block_hash for block in next_blocks(self, num_blocks)} - {None}
        taken = super().get_new_blocks(num_blocks)
        self.evict_blocks([block.block_id for block in self.blocks if block.block_hash in keys])
        return taken


BUGS = (
    SeededBug(AllocationKeepsEntry, "K3", (34,), "P11", PLAIN, 4),
    SeededBug(AllocationKeepsIndexEntry, "K3", (27,), "P3", PLAIN, 4),
    SeededBug(AllocationKeepsBlockHash, "K3", (28, 32), "P3", PLAIN, 4),
    SeededBug(EvictionKeepsIndexEntry, "K3", (39,), "P3", PLAIN, 3),
    SeededBug(EvictionKeepsBlockHash, "K3", (28,), "P3", PLAIN, 3),
    SeededBug(EvictionKeepsSecondaryKeys, "K3", (), "P3", PARTIAL, 4),
    SeededBug(AllocationKeepsSecondaryKeys, "K3", (), "P3", PARTIAL, 5),
    SeededBug(LookupAnswersOtherGroup, "K3", (), "P3", GROUPS, 3),
    SeededBug(LookupFillsUpWithNull, "K3", (), "P3", GROUPS, 3),
    SeededBug(LookupRemembersAnswer, "K3", (34,), "P3", PLAIN, 9, False),
    SeededBug(ReleaseDropsEntries, "K3", (), "P12", PLAIN, 3),
    SeededBug(TouchDropsEntries, "K3", (35,), "P12", PLAIN, 4),
    SeededBug(AllocationDropsDuplicates, "K3", (13,), "P12", PLAIN, 6),
)
