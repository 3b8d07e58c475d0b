"""Who holds which block: handing out, sharing and releasing.

Owns P1 and P10, and with the free queue P8 and P9. Each method looks first and changes afterwards. `touch` and
`free_blocks`, which engines call at every step, count in one pass and, if they meet an entry that does not fit,
count back exactly before anything else has changed (P6).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from .block import KVCacheBlock
from .errors import InvalidArgumentError, NotEnoughBlocksError
from .membership import check_member, check_not_null
from .pool_books import PoolBooks
from .release import check_references, sort_by_pool
from .watchers import ReuseCallback

if TYPE_CHECKING:
    from .block_pool import BlockPool

__all__ = ["References"]

# The interpreter keeps one object for 1, so identity tells it from True and 1.0.
ONE = 1
# Walking these runs no code of the caller that could raise half-way through. The last is `reversed(list)`.
SAFE_TO_WALK = frozenset({list, tuple, type(reversed([]))})


class References(PoolBooks):
    """The half of a pool that counts references."""

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        """Hand out the first `num_blocks` blocks of the free queue, each with one reference and no entry.

        Before that, their reuse watchers are called and their entries dropped. If a watcher raises, all
        watchers of these blocks have been called, no block is handed out, and the exception propagates.
        """
        if self._unobserved:
            # What nearly every call asks for, without the steps that it does not need.
            queue = self.free_block_queue
            recent = queue.recent
            if num_blocks is ONE:
                lane = self._aged
                if recent:
                    block = recent[-1]
                    if block.raw_hash is None and block.ref_cnt == 0 and not queue.stale_count:
                        recent.pop()
                        block.ref_cnt = 1
                        return [block]
                elif lane.count and not queue.has_unused and (block := lane.head.next_free_block).ref_cnt == 0:
                    lane.head.next_free_block = after = block.next_free_block
                    after.prev_free_block = lane.head
                    block.prev_free_block = block.next_free_block = None
                    lane.count -= 1
                    if block.raw_hash is not None:
                        if self.enable_kv_cache_events:
                            self._announce_removal(block)
                        self.cached_block_hash_to_block.drop_one(block)
                    block.ref_cnt = 1
                    return [block]
            elif type(num_blocks) is int and 0 < num_blocks <= len(recent) and not queue.stale_count:
                taken = recent[-num_blocks:]
                for block in taken:
                    if block.ref_cnt or block.raw_hash is not None:
                        _take_back(taken, block)
                        break
                    block.ref_cnt = 1
                else:
                    del recent[-num_blocks:]
                    taken.reverse()
                    return taken
        return self._get_new_blocks_with_care(num_blocks)

    def _get_new_blocks_with_care(self, num_blocks: int) -> list[KVCacheBlock]:
        queue = self.free_block_queue
        if type(num_blocks) is not int or num_blocks < 0 or num_blocks > self._aged.count:
            _check_count(num_blocks, queue.num_free_blocks)
        if self._calling_back:
            self._refuse_in_callback("get_new_blocks")
        if self._watchers.by_block:
            self._fire_watchers(queue.peek(num_blocks))
        taken = queue.take(num_blocks)
        metered = self._metrics_collector is not None
        if metered and self.enable_caching:
            self._tell_each("on_block_evicted", taken)
        cached = []
        for block in taken:
            if block.raw_hash is not None:
                cached.append(block)
            block.ref_cnt = 1
        if cached:
            self._drop_entries(cached)
        if metered:
            self._tell_each("on_block_allocated", taken)
        return taken

    def touch(self, blocks: Sequence[KVCacheBlock]) -> None:
        """Add one reference per entry; free blocks leave the queue. Null blocks are skipped.

        Any iterable will do; refused as a whole if an entry is not one of this pool's blocks.
        """
        try:
            if len(blocks) == 1 and self._unobserved:
                block = blocks[0]
                if block._pool is self:
                    count = block.ref_cnt
                    after = block.next_free_block
                    if count:
                        block.ref_cnt = count + 1
                        return
                    if after is not None:
                        # `AgedLane.remove` for one block, written out.
                        before = block.prev_free_block
                        before.next_free_block = after
                        after.prev_free_block = before
                        block.prev_free_block = block.next_free_block = None
                        block.ref_cnt = 1
                        self._aged.count -= 1
                        return
        except (LookupError, AttributeError, TypeError):
            pass
        if self._calling_back:
            self._refuse_in_callback("touch")
        entries = blocks if type(blocks) is list else list(blocks)
        null = self.null_block
        revived: list[KVCacheBlock] = []
        try:
            for block in entries:
                if block._pool is not self:
                    raise LookupError
                count = block.ref_cnt
                if count:
                    block.ref_cnt = count + 1
                elif block is not null:
                    block.ref_cnt = 1
                    revived.append(block)
        except (LookupError, AttributeError, TypeError):
            self._refuse_touch(entries)
            raise
        if revived:
            not_aged = self._aged.remove(revived)
            if not_aged:
                self.free_block_queue.leave_mentions(not_aged)
        if self._metrics_collector is not None:
            self._tell_each("on_block_accessed", _without(null, entries))

    def _refuse_touch(self, entries: Sequence[KVCacheBlock]) -> None:
        """Count back the entries before the first that is not this pool's, and refuse that one."""
        for block in entries:
            check_member("touch", self.blocks, block)
            if block is not self.null_block:
                block.ref_cnt -= 1

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
        if type(ordered_blocks) is list and len(ordered_blocks) == 1:
            # The same as below for the most frequent case.
            block = ordered_blocks[0]
            if type(block) is KVCacheBlock and block._pool is self and block.ref_cnt == 1 and block.raw_hash is None:
                block.ref_cnt = 0
                self.free_block_queue.recent.append(block)
                return
        null, caching, lane = self.null_block, self.enable_caching, self._aged
        first: list[KVCacheBlock] = []
        shared: list[KVCacheBlock] = []
        # Blocks with an identity are linked into the aged lane at once, and unlinked again on refusal.
        end = last = lane.tail.prev_free_block
        num_aged = 0
        walk = iter(ordered_blocks if type(ordered_blocks) in SAFE_TO_WALK else list(ordered_blocks))
        try:
            for block in walk:
                if block._pool is not self:
                    raise LookupError
                count = block.ref_cnt
                if count == 1:
                    block.ref_cnt = 0
                    if block.raw_hash is None or not caching:
                        first.append(block)
                    else:
                        last.next_free_block = block
                        block.prev_free_block = last
                        last = block
                        num_aged += 1
                elif count > 1:
                    block.ref_cnt = count - 1
                    shared.append(block)
                elif block is not null:
                    raise LookupError
        except (LookupError, AttributeError, TypeError):
            counted = [*shared, *first, *lane.unlink_behind(end, last)]
            self._free_across_pools(counted, [block, *walk])
            return
        if first:
            first.reverse()
            self.free_block_queue.recent += first
        if num_aged:
            last.next_free_block = lane.tail
            lane.tail.prev_free_block = last
            lane.count += num_aged

    def _free_across_pools(self, counted: list[KVCacheBlock], left: list[KVCacheBlock]) -> None:
        """Take back what was counted for some entries, then look at all of them before releasing any."""
        for block in counted:
            block.ref_cnt += 1
        # A block is released by the entry that takes its count to 0; putting shared ones first changes no order.
        by_pool = sort_by_pool([*counted, *left], cast("BlockPool", self))
        for pool, blocks in by_pool.items():
            pool._refuse_in_callback("free_blocks")
            check_references("free_blocks", pool.free_block_queue, blocks)
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
        check_references("unpin_blocks", self.free_block_queue, entries)
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
        self._aged.push(released)
        self._note_observers()


def _without(null: KVCacheBlock, entries: Sequence[KVCacheBlock]) -> list[KVCacheBlock]:
    # A comprehension inside `touch` would turn its local variable into a cell, which costs at every call.
    return [block for block in entries if block is not null]


def _take_back(blocks: Sequence[KVCacheBlock], stop: KVCacheBlock) -> None:
    """Undo the references that were given to the blocks before `stop`."""
    for block in blocks:
        if block is stop:
            return
        block.ref_cnt = 0


def _check_count(count: Any, available: int) -> None:
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
