"""Pools that file a block under the wrong identity, or under too many or too few (P7, P11, or no property at all)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kvpool import BlockPool, KVCacheBlock, RefusedError
from kvpool.block_key import BlockKey, make_block_key
from seeded_bugs.seeded_bug import CHAINS, GROUPS, PARTIAL, PLAIN, UNCACHED, SeededBug

Blocks = Sequence[KVCacheBlock]
Mask = Sequence[bool] | None


class OpeningHashUsed(BlockPool):
    """Block i is filed under block hash i, although a block spans several hash blocks."""

    def cache_full_blocks(
        self, request: Any, blocks: Blocks, start: int, stop: int, block_size: int, group: int, block_mask: Mask = None
    ) -> None:
        hashes, span = request.block_hashes, block_size // self.hash_block_size
        opening = [hashes[number // span] for number in range(len(hashes))]
        request = replace(request, block_hashes=opening, hasher=None)
        super().cache_full_blocks(request, blocks, start, stop, block_size, group, block_mask)


class GroupLeftOutOfKey(BlockPool):
    """Every block is filed under group 0."""

    def cache_full_blocks(
        self, request: Any, blocks: Blocks, start: int, stop: int, block_size: int, group: int, block_mask: Mask = None
    ) -> None:
        super().cache_full_blocks(request, blocks, start, stop, block_size, 0, block_mask)

    def get_cached_block(self, block_hash: bytes, kv_cache_group_ids: Sequence[int]) -> list[KVCacheBlock] | None:
        return super().get_cached_block(block_hash, [0] * len(kv_cache_group_ids))


class MaskIgnored(BlockPool):
    """Blocks that the mask leaves out are filed all the same."""

    def cache_full_blocks(
        self, request: Any, blocks: Blocks, start: int, stop: int, block_size: int, group: int, block_mask: Mask = None
    ) -> None:
        right = block_mask is not None and len(block_mask) == stop - start
        super().cache_full_blocks(request, blocks, start, stop, block_size, group, None if right else block_mask)


class PromotionKeepsPartialEntry(BlockPool):
    """A block that grows from a partial entry to a full one is still found under the partial one."""

    def cache_full_blocks(
        self, request: Any, blocks: Blocks, start: int, stop: int, block_size: int, group: int, block_mask: Mask = None
    ) -> None:
        carried = {block: block.block_hash for block in blocks[start:stop]}
        super().cache_full_blocks(request, blocks, start, stop, block_size, group, block_mask)
        for block, key in carried.items():
            if key is not None and key != block.block_hash:
                self.cached_block_hashes_by_block.setdefault(block.block_id, set()).add(key)
                self.cached_block_hash_to_block.insert(key, block)


class OtherChainRenamed(BlockPool):
    """A block that stands for one prefix can be filed as another one: the old entries are dropped silently."""

    def cache_full_blocks(
        self, request: Any, blocks: Blocks, start: int, stop: int, block_size: int, group: int, block_mask: Mask = None
    ) -> None:
        try:
            super().cache_full_blocks(request, blocks, start, stop, block_size, group, block_mask)
        except RefusedError:
            self.evict_blocks([b.block_id for b in blocks[start:stop] if b.pool is self and b.ref_cnt > 0])
            super().cache_full_blocks(request, blocks, start, stop, block_size, group, block_mask)


class DuplicateNotFiled(BlockPool):
    """A block whose identity another block has already is not filed."""

    def cache_full_blocks(
        self, request: Any, blocks: Blocks, start: int, stop: int, block_size: int, group: int, block_mask: Mask = None
    ) -> None:
        size, index = block_size // self.hash_block_size, self.cached_block_hash_to_block
        mask = list(block_mask or [True] * (stop - start))
        for at in range(start, min(stop, start + len(mask), len(request.block_hashes) // size)):
            key = make_block_key(request.block_hashes[(at + 1) * size - 1], group)
            mask[at - start] &= index.get_one_block(key) in (None, blocks[at])
        super().cache_full_blocks(request, blocks, start, stop, block_size, group, mask)


class CachingSwitchIgnored(BlockPool):
    """A pool that was told not to cache files blocks and finds them."""

    def cache_full_blocks(
        self, request: Any, blocks: Blocks, start: int, stop: int, block_size: int, group: int, block_mask: Mask = None
    ) -> None:
        self.enable_caching = True
        try:
            super().cache_full_blocks(request, blocks, start, stop, block_size, group, block_mask)
        finally:
            self.enable_caching = False


class ReplacementKeepsOldEntries(BlockPool):
    """Asking to replace the entries of a block adds one to them."""

    def cache_partial_block(
        self, request: Any, block: KVCacheBlock, num_tokens: int, group: int, block_size: int,
        replace_existing_hashes: bool = False,
    ) -> BlockKey | None:  # fmt: skip
        return super().cache_partial_block(request, block, num_tokens, group, block_size)


class MoveCopiesEntries(BlockPool):
    """Moving entries leaves them on the source too."""

    def move_block_hashes(self, src_block: KVCacheBlock, dst_block: KVCacheBlock) -> None:
        key, num_tokens = src_block.block_hash, src_block.block_hash_num_tokens
        super().move_block_hashes(src_block, dst_block)
        if key is not None:
            src_block.set_block_hash(key, num_tokens)
            self.cached_block_hash_to_block.insert(key, src_block)


class MoveLosesSecondaryKeys(BlockPool):
    """Moving entries takes the primary one along and drops the others."""

    def move_block_hashes(self, src_block: KVCacheBlock, dst_block: KVCacheBlock) -> None:
        super().move_block_hashes(src_block, dst_block)
        for key in self.cached_block_hashes_by_block.pop(dst_block.block_id, ()):
            self.cached_block_hash_to_block.pop(key, dst_block.block_id)


class MoveForgetsTokens(BlockPool):
    """Moved entries no longer know how many tokens they cover, so the block cannot grow."""

    def move_block_hashes(self, src_block: KVCacheBlock, dst_block: KVCacheBlock) -> None:
        super().move_block_hashes(src_block, dst_block)
        dst_block.block_hash_num_tokens = None


class ResetWhileHeld(BlockPool):
    """A reset goes ahead although blocks are held."""

    def reset_prefix_cache(self) -> bool:
        if not super().reset_prefix_cache():
            self.evict_blocks(range(self.num_gpu_blocks))
        return True


BUGS = (
    SeededBug(OpeningHashUsed, "K3", (36,), "P11", PARTIAL, 2),
    SeededBug(GroupLeftOutOfKey, "K8", (), "P11", GROUPS, 2),
    SeededBug(MaskIgnored, "K3", (), "P11", CHAINS, 2),
    SeededBug(PromotionKeepsPartialEntry, "K3", (), "P7", PARTIAL, 3),
    SeededBug(OtherChainRenamed, "K3", (32,), "diverged", PLAIN, 3),
    SeededBug(DuplicateNotFiled, "K10", (97,), "diverged", PLAIN, 5),
    SeededBug(CachingSwitchIgnored, "K3", (), "diverged", UNCACHED, 2),
    SeededBug(ReplacementKeepsOldEntries, "K10", (102,), "diverged", PARTIAL, 3),
    SeededBug(MoveCopiesEntries, "K10", (), "P7", PLAIN, 4),
    SeededBug(MoveLosesSecondaryKeys, "K10", (), "P7", PARTIAL, 5),
    SeededBug(MoveForgetsTokens, "K10", (), "diverged", PARTIAL, 8, False),
    SeededBug(ResetWhileHeld, "K3", (90,), "diverged", PLAIN, 3),
)
