"""What a block stands for: lookup, registration and removal of prefix-cache entries.

Owns P3 with `prefix_index` and P7 with `event_log`. What may be registered is decided in `registration`; here it is
done. Entries and references are independent: entries stay when a block is released, and go when it is
handed out anew, evicted or moved.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from .block import KVCacheBlock
from .block_key import BlockHash, BlockKey, make_block_key
from .errors import BoundaryError, IdentityConflictError, InvalidArgumentError
from .membership import check_member, check_not_null, check_owned
from .pool_books import PoolBooks
from .registration import check_partial_target, full_block_targets, hashes_per_block
from .request import RequestView

__all__ = ["PrefixCache"]

logger = logging.getLogger(__name__)


class PrefixCache(PoolBooks):
    """The half of a pool that knows identities."""

    # ---- lookup ----

    def get_cached_block(self, block_hash: BlockHash, kv_cache_group_ids: Sequence[int]) -> list[KVCacheBlock] | None:
        """The block that has carried `block_hash` longest in each group; None if any group has none."""
        by_group = self.cached_block_hash_to_block.by_group
        found: list[KVCacheBlock] = []
        for group_id in kv_cache_group_ids:
            group = by_group.get(group_id)
            if group is None:
                return None
            block = group.get(block_hash)
            if block is None:
                return None
            found.append(block)
        return found

    def get_cached_blocks(
        self, block_hashes: Iterable[BlockHash], kv_cache_group_ids: Sequence[int]
    ) -> tuple[list[KVCacheBlock], ...]:
        """The longest run of hits from the first hash on: one list per group, all equally long.

        The same answer as asking `get_cached_block` hash by hash until it returns None, in one call.
        """
        by_group = self.cached_block_hash_to_block.by_group
        if len(kv_cache_group_ids) == 1:
            return (_run_of_hits(by_group.get(kv_cache_group_ids[0], {}), block_hashes),)
        hashes = list(block_hashes)
        runs = tuple(_run_of_hits(by_group.get(group_id, {}), hashes) for group_id in kv_cache_group_ids)
        length = min(map(len, runs), default=0)
        for run in runs:
            del run[length:]
        return runs

    @property
    def cached_block_hashes_by_block(self) -> dict[int, set[BlockKey]]:
        """Secondary keys by block id. Read only."""
        return self.cached_block_hash_to_block.secondary_keys

    # ---- registration ----

    def cache_full_blocks(
        self,
        request: RequestView,
        blocks: Sequence[KVCacheBlock],
        num_cached_blocks: int,
        num_full_blocks: int,
        block_size: int,
        kv_cache_group_id: int,
        block_mask: Sequence[bool] | None = None,
    ) -> None:
        """Register blocks `num_cached_blocks` to `num_full_blocks` (exclusive) of a block table as full.

        Null and masked-out blocks are skipped. A block with a partial entry of the same prefix loses it and
        gets the full one. Equal contents are not merged. Emits one BlockStored, even if all were skipped.
        """
        if num_cached_blocks >= num_full_blocks:
            return
        hashes = request.block_hashes
        if (
            block_size == self.hash_block_size
            and self.enable_caching
            and block_mask is None
            and not self._calling_back
            and type(kv_cache_group_id) is int
            and self.cached_block_hash_to_block.add_plain_run(
                self, kv_cache_group_id, hashes, blocks, num_cached_blocks, num_full_blocks, block_size
            )
        ):
            if self.enable_kv_cache_events:
                stored = hashes[num_cached_blocks:num_full_blocks]
                self._events.stored(
                    request,
                    stored if type(stored) is list else list(stored),
                    hashes[num_cached_blocks - 1] if num_cached_blocks else None,
                    num_cached_blocks * block_size,
                    num_full_blocks * block_size,
                    block_size,
                    kv_cache_group_id,
                )
            return
        self._cache_full_blocks_with_care(
            request, blocks, num_cached_blocks, num_full_blocks, block_size, kv_cache_group_id, block_mask
        )

    def _cache_full_blocks_with_care(
        self,
        request: RequestView,
        blocks: Sequence[KVCacheBlock],
        num_cached_blocks: int,
        num_full_blocks: int,
        block_size: int,
        group_id: int,
        mask: Sequence[bool] | None,
    ) -> None:
        self._refuse_in_callback("cache_full_blocks")
        scale = hashes_per_block("cache_full_blocks", self.enable_caching, block_size, self.hash_block_size, group_id)
        hashes, scale = _hashes_at(request.block_hashes, scale)
        span = (num_cached_blocks, num_full_blocks)
        targets = full_block_targets(self.blocks, hashes, blocks, span, scale, block_size // scale, group_id, mask)
        self._drop_entries([block for at in targets if (block := blocks[at]).raw_hash is not None])
        index = self.cached_block_hash_to_block
        for at in targets:
            index.add_primary(group_id, hashes[(at + 1) * scale - 1], (at + 1) * block_size, blocks[at])
        if self.enable_kv_cache_events:
            self._events.stored(
                request,
                [hashes[(at + 1) * scale - 1] for at in targets],
                hashes[num_cached_blocks * scale - 1] if num_cached_blocks else None,
                num_cached_blocks * block_size,
                num_full_blocks * block_size,
                block_size,
                group_id,
                [at * block_size for at in targets],
            )

    def emit_cached_block_events(
        self, request: RequestView, num_cached_blocks: int, block_size: int, kv_cache_group_id: int
    ) -> None:
        """Queue one BlockStored for the first `num_cached_blocks` blocks, which were hits; no other change."""
        if not self.enable_kv_cache_events or num_cached_blocks == 0:
            return
        scale = hashes_per_block("emit_cached_block_events", True, block_size, self.hash_block_size, kv_cache_group_id)
        hashes, scale = _hashes_at(request.block_hashes, scale)
        if not 0 < num_cached_blocks * scale <= len(hashes):
            raise BoundaryError(
                f"emit_cached_block_events refused: num_cached_blocks is {num_cached_blocks}, the request has "
                f"hashes for {len(hashes) // scale} blocks; expected no more than that. Report hits only."
            )
        self._events.stored(
            request,
            [hashes[(at + 1) * scale - 1] for at in range(num_cached_blocks)],
            None,
            0,
            num_cached_blocks * block_size,
            block_size,
            kv_cache_group_id,
        )

    def cache_partial_block(
        self,
        request: RequestView,
        block: KVCacheBlock,
        num_tokens: int,
        kv_cache_group_id: int,
        block_size: int,
        replace_existing_hashes: bool = False,
    ) -> BlockKey | None:
        """Make `block` reachable at the prefix of `num_tokens` tokens, which may end inside it.

        Returns the key, or None for the null block, which is never registered. Beside a primary entry that
        covers at least as many tokens the new entry is secondary; one that covers fewer is replaced, with
        all others of the block. `replace_existing_hashes` drops the old entries in any case.
        """
        if block is self.null_block:
            return None
        self._refuse_in_callback("cache_partial_block")
        unit = self.hash_block_size
        hashes_per_block("cache_partial_block", self.enable_caching, block_size, unit, kv_cache_group_id)
        hashes = request.block_hashes
        check_partial_target(self.blocks, hashes, block, num_tokens, unit, kv_cache_group_id, replace_existing_hashes)
        boundary = num_tokens // unit
        block_hash = hashes[boundary - 1]
        key = make_block_key(block_hash, kv_cache_group_id)
        index = self.cached_block_hash_to_block
        if not replace_existing_hashes and index.contain(key, block.block_id):
            return key
        covered = block.block_hash_num_tokens
        if replace_existing_hashes or (covered is not None and covered < num_tokens):
            self._drop_entries([block])
        if block.raw_hash is None:
            index.add_primary(kv_cache_group_id, block_hash, num_tokens, block)
        else:
            index.add_secondary(key, block)
        if self.enable_kv_cache_events:
            parent = hashes[boundary - 2] if boundary > 1 else None
            self._events.stored(request, [block_hash], parent, num_tokens - unit, num_tokens, unit, kv_cache_group_id)
        return key

    def move_block_hashes(self, src_block: KVCacheBlock, dst_block: KVCacheBlock) -> None:
        """Move every entry of `src_block` to `dst_block`, which somebody holds and which has none.

        For a request that goes on writing into the source: the cache keeps a private copy. No event.
        """
        self._refuse_in_callback("move_block_hashes")
        for block in (src_block, dst_block):
            check_member("move_block_hashes", self.blocks, block)
            check_not_null("move_block_hashes", block)
        check_owned("move_block_hashes", dst_block)
        if dst_block.raw_hash is not None:
            raise IdentityConflictError(
                f"move_block_hashes refused: block {dst_block.block_id} already has an entry covering "
                f"{dst_block.block_hash_num_tokens} tokens; expected a target without one. Use a fresh block."
            )
        self.cached_block_hash_to_block.move(src_block, dst_block)

    # ---- removal ----

    def evict_blocks(self, block_ids: Iterable[int]) -> None:
        """Drop the entries of these blocks. Who holds them and their place in the queue stay as they are."""
        self._refuse_in_callback("evict_blocks")
        ids = list(block_ids)
        for block_id in ids:
            if type(block_id) is not int or not 0 <= block_id < self.num_gpu_blocks:
                raise InvalidArgumentError(
                    f"evict_blocks refused: {block_id!r} is not a block id; expected integers from 0 to "
                    f"{self.num_gpu_blocks - 1}. Report only blocks that this pool has handed out."
                )
        for block_id in ids:
            self._maybe_evict_cached_block(self.blocks[block_id])

    def reset_prefix_cache(self) -> bool:
        """Forget every entry, after calling every reuse watcher. False, and no change, while blocks are held.

        If a watcher raises, the others are still called, no entry is dropped, and the exception propagates.
        """
        self._refuse_in_callback("reset_prefix_cache")
        usable = self.num_gpu_blocks - 1
        held = usable - self.free_block_queue.num_free_blocks
        if held:
            logger.warning("prefix cache not reset: %d of %d blocks are held; release them first", held, usable)
            return False
        if self._watchers.by_block:
            self._fire_watchers([self.blocks[block_id] for block_id in self._watchers.by_block])
        self.cached_block_hash_to_block.clear()
        if self.enable_kv_cache_events:
            self._events.cleared()
        if self._metrics_collector is not None:
            self._tell(self._metrics_collector.reset)
        return True

    # ---- names that upstream's managers and offloading tiers call ----

    def _maybe_evict_cached_block(self, block: KVCacheBlock) -> bool:
        """Drop the entries of one block; whether it had any."""
        self._tell_each("on_block_evicted", [block])
        if block.raw_hash is None:
            return False
        self._drop_entries([block])
        return True

    def _insert_block_hash(
        self, block_hash_with_group_id: BlockKey, block: KVCacheBlock, num_tokens: int | None
    ) -> None:
        """Register a ready key, as a tier does that copies entries from another pool. No event, no checks."""
        index = self.cached_block_hash_to_block
        if index.contain(block_hash_with_group_id, block.block_id):
            return
        if block.raw_hash is None:
            block.set_block_hash(block_hash_with_group_id, num_tokens)
            index.insert(block_hash_with_group_id, block)
        else:
            index.add_secondary(block_hash_with_group_id, block)


def _run_of_hits(group: dict[BlockHash, KVCacheBlock], hashes: Iterable[BlockHash]) -> list[KVCacheBlock]:
    # Whole portions at the speed of C, growing with the run, so that an early miss wastes little.
    found: Iterator[Any] = map(group.get, hashes)
    run: list[KVCacheBlock] = []
    while portion := list(islice(found, max(16, len(run)))):
        if all(portion):
            run += portion
            continue
        for block in portion:
            if block is None:
                return run
            run.append(block)
    return run


def _hashes_at(hashes: Any, scale: int) -> tuple[Any, int]:
    """Hashes and how many make one block; upstream sometimes passes a view that is scaled already."""
    if scale != 1 and getattr(hashes, "scale_factor", None) == scale:
        return hashes, 1
    return hashes, scale
