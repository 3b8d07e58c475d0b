"""Who holds which block: handing out, sharing and releasing.

Owns P1 and P10, and with the free queue P8 and P9. Each method looks first and changes afterwards. `touch` and
`free_blocks`, which engines call at every step, count in one pass and, if they meet an entry that does not fit,
count back exactly before anything else has changed (P6).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import length_hint
from typing import Any

from .block import KVCacheBlock
from .errors import InvalidArgumentError, NotEnoughBlocksError
from .membership import check_member, check_not_null, is_member
from .pool_books import PoolBooks
from .release import check_references, sort_by_pool
from .watchers import ReuseCallback

__all__ = ["References"]

# The interpreter keeps one object for 1, so identity tells it from True and 1.0.
ONE = 1


class References(PoolBooks):
    """The half of a pool that counts references."""

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        """Hand out the first `num_blocks` blocks of the free queue, each with one reference and no entry.

        Before that, their reuse watchers are called and their entries dropped. If a watcher raises, all
        watchers of these blocks have been called, no block is handed out, and the exception propagates.
        """
        queue, watchers = self.free_block_queue, self._watchers.by_block
        if num_blocks is ONE and not watchers and not self._calling_back and self.metrics_collector is None:
            # One block at a time is what a decode step asks for, so it does without lists and calls.
            recent = queue.recent
            if recent and not queue.stale_count:
                block = recent[-1]
                if block.raw_hash is None and block.ref_cnt == 0:
                    recent.pop()
                    block.ref_cnt = 1
                    return [block]
            elif (aged := queue.take_one_aged()) is not None:
                if aged.raw_hash is not None:
                    self._drop_entries((aged,))
                aged.ref_cnt = 1
                return [aged]
        if type(num_blocks) is not int or not 0 <= num_blocks <= queue.num_free_blocks:
            _refuse_count(num_blocks, queue.num_free_blocks)
        self._refuse_in_callback("get_new_blocks")
        if watchers:
            self._fire_watchers(queue.peek(num_blocks))
        taken = queue.take(num_blocks)
        if self.metrics_collector is not None and self.enable_caching:
            self._tell_each("on_block_evicted", taken)
        cached = [block for block in taken if block.raw_hash is not None]
        if cached:
            self._drop_entries(cached)
        for block in taken:
            block.ref_cnt = 1
        if self.metrics_collector is not None:
            self._tell_each("on_block_allocated", taken)
        return taken

    def touch(self, blocks: Iterable[KVCacheBlock]) -> None:
        """Add one reference per entry; free blocks leave the queue. Null blocks are skipped."""
        if self._calling_back:
            self._refuse_in_callback("touch")
        entries = blocks if type(blocks) is list else list(blocks)
        own, null = self.blocks, self.null_block
        revived: list[KVCacheBlock] = []
        try:
            for block in entries:
                if own[block.block_id] is not block:
                    raise LookupError
                count = block.ref_cnt
                if count:
                    block.ref_cnt = count + 1
                elif block is not null:
                    block.ref_cnt = 1
                    revived.append(block)
        except (LookupError, AttributeError, TypeError):
            self._refuse_touch(entries)
        if revived:
            if len(revived) == 1:
                self.free_block_queue.remove_one(revived[0])
            else:
                self.free_block_queue.remove(revived)
        if self.metrics_collector is not None:
            self._tell_each("on_block_accessed", [block for block in entries if block is not null])

    def _refuse_touch(self, entries: Sequence[KVCacheBlock]) -> None:
        """Count back the entries before the first that is not this pool's, and refuse that one."""
        for block in entries:
            if not is_member(self.blocks, block):
                break
            if block is not self.null_block:
                block.ref_cnt -= 1
        check_member("touch", self.blocks, block)

    def is_block_writable(self, block: KVCacheBlock) -> bool:
        """Whether its only holder may write into the block in place (P2)."""
        return not block.is_null and block.ref_cnt == 1 and block.raw_hash is None

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        """Drop one reference per entry, in order; a block without references becomes free.

        Free blocks without an identity go to the head of the queue, the first given being the next taken;
        those with one go to the tail in the given order. Null blocks are skipped, blocks of other pools go to
        their own. Refused as a whole, across all pools, if any count would fall below 0.
        """
        if self._calling_back:
            self._refuse_in_callback("free_blocks")
        entries = ordered_blocks if type(ordered_blocks) is list else list(ordered_blocks)
        own, null, caching = self.blocks, self.null_block, self.enable_caching
        first: list[KVCacheBlock] = []
        last: list[KVCacheBlock] = []
        walk = iter(entries)
        try:
            for block in walk:
                if own[block.block_id] is not block:
                    raise LookupError
                count = block.ref_cnt
                if count == 1:
                    block.ref_cnt = 0
                    if block.raw_hash is None or not caching:
                        first.append(block)
                    else:
                        last.append(block)
                elif count > 1:
                    block.ref_cnt = count - 1
                elif block is not null:
                    raise LookupError
        except (LookupError, AttributeError, TypeError):
            for block in _walked(entries, walk):
                if block is not null:
                    block.ref_cnt += 1
            self._free_across_pools(entries)
            return
        if first:
            self.free_block_queue.push_recent(first)
        if last:
            self.free_block_queue.push_aged(last)

    def _free_across_pools(self, entries: Sequence[KVCacheBlock]) -> None:
        by_pool = sort_by_pool(entries, self)
        for pool, blocks in by_pool.items():
            pool._refuse_in_callback("free_blocks")
            check_references("free_blocks", pool, blocks)
        for pool, blocks in by_pool.items():
            pool.free_blocks(blocks)

    def unpin_blocks(self, blocks: Iterable[KVCacheBlock], on_reuse: ReuseCallback) -> None:
        """Drop one reference per entry and promise one call of `on_reuse(block)` for it.

        A block without references goes to the tail of the queue, entries or not. The call comes just before
        the block is handed out anew, or at a successful reset, and survives a touch in between.
        """
        self._refuse_in_callback("unpin_blocks")
        entries = list(blocks)
        for block in entries:
            check_member("unpin_blocks", self.blocks, block)
            check_not_null("unpin_blocks", block)
        check_references("unpin_blocks", self, entries)
        if not callable(on_reuse):
            raise InvalidArgumentError(
                f"unpin_blocks refused: on_reuse is {on_reuse!r}; expected a callable that takes the block. "
                "Use free_blocks if nobody needs to know of the reuse."
            )
        released: list[KVCacheBlock] = []
        for block in entries:
            block.ref_cnt -= 1
            self._watchers.register(block, on_reuse)
            if block.ref_cnt == 0:
                released.append(block)
        self.free_block_queue.push_aged(released)


def _walked(entries: Sequence[KVCacheBlock], walk: Any) -> Sequence[KVCacheBlock]:
    """The entries that `walk`, an iterator over `entries`, had dealt with before the one it stopped at."""
    return entries[: len(entries) - length_hint(walk) - 1]


def _refuse_count(count: Any, available: int) -> None:
    """Refuse a count that is no natural number or exceeds what is free."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise InvalidArgumentError(
            f"get_new_blocks refused: num_blocks is {count!r}; expected an integer of at least 0. "
            "A negative need means that more blocks are held than required: ask for none."
        )
    if count > available:
        raise NotEnoughBlocksError(
            f"get_new_blocks refused: {count} blocks wanted, {available} are free; expected no more than that. "
            "Wait, preempt a request, or ask for fewer."
        )
