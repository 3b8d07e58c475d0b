"""The free queue: which block is handed out next.

Its order, head first, is the concatenation of three lanes:

    recent   released without an identity, newest first: a list whose *end* is the head of the queue
    unused   never handed out, by rising id: only the first id is stored
    aged     released with an identity, or unpinned, oldest first: a linked list through the blocks

A block stays in its lane when it gains or loses entries while queued, so its place in the eviction
order cannot change behind the caller's back.

A block that leaves `recent` or `unused` out of turn is not searched for. It leaves a stale mention, told by its
reference count or its links, which the next take steps over. A block may thus be mentioned in `recent` more than
once; the mention nearest the end is the one that counts, because every later release was put nearer to the end.
The mention in `unused` is older than any in `recent`.

Owns P8 together with the pool, and the queue's half of P1 and P5. It does not decide who may release
what, and it knows nothing of hashes: the pool refuses first, then calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from .aged_lane import AgedLane, queued_while_referenced
from .block import KVCacheBlock
from .errors import Violation

__all__ = ["FreeQueue"]

# Below this many stale mentions a rebuild of the lane costs more than stepping over them.
STALE_MENTIONS_MIN = 64


class FreeQueue:
    """Free blocks in eviction order.

    The pool takes and puts blocks at the end of `recent` without a call, as long as `stale_count`, the number of
    stale mentions in it, is 0. `has_unused` says whether the unused lane may have blocks left.
    """

    __slots__ = ("_blocks", "_unused_gone", "_unused_start", "aged", "has_unused", "recent", "stale_count")

    def __init__(self, blocks: list[KVCacheBlock]) -> None:
        """Queue every block but the first, which is the null block. `blocks` is kept, not copied."""
        self._blocks = blocks
        self.recent: list[KVCacheBlock] = []
        self.stale_count = 0
        self._unused_start = 1
        # Ids from `_unused_start` on that left the unused lane out of turn.
        self._unused_gone: set[int] = set()
        self.has_unused = len(blocks) > 1
        self.aged = AgedLane()

    @property
    def num_free_blocks(self) -> int:
        """Number of free blocks, from the sizes of the lanes."""
        unused = len(self._blocks) - self._unused_start - len(self._unused_gone)
        return len(self.recent) - self.stale_count + unused + self.aged.count

    # ---- changes; the caller has checked the arguments ----

    def take(self, count: int) -> list[KVCacheBlock]:
        """Remove and return the first `count` blocks; there must be that many.

        Looks first and cuts afterwards: a queue that turns out to be corrupted is left as it was found.
        """
        aged = self.aged
        if not self.recent and not self.has_unused and count:
            taken = aged.first(count)
            aged.cut(taken)
            return taken
        taken, num_mentions = self._first_recent(count)
        num_stale = num_mentions - len(taken)
        left = count - len(taken)
        from_unused = self._first_unused(left) if left else []
        taken += from_unused
        left -= len(from_unused)
        from_aged = aged.first(left) if left else []
        for block in taken:
            if block.ref_cnt:
                raise queued_while_referenced(block)
        if num_mentions:
            del self.recent[-num_mentions:]
            self.stale_count -= num_stale
        if from_unused:
            self._cut_unused(from_unused[-1].block_id + 1)
        if from_aged:
            aged.cut(from_aged)
            taken += from_aged
        return taken

    def _first_recent(self, count: int) -> tuple[list[KVCacheBlock], int]:
        """The first `count` blocks of the recent lane, fewer if it ends, and how many mentions that takes."""
        recent = self.recent
        if not self.stale_count:
            start = max(0, len(recent) - count)
            return recent[start:][::-1], len(recent) - start
        found: dict[KVCacheBlock, None] = {}
        walked = 0
        for block in reversed(recent):
            if len(found) == count:
                break
            walked += 1
            if block.ref_cnt == 0 and block.next_free_block is None:
                found[block] = None
        return list(found), walked

    def _first_unused(self, count: int) -> list[KVCacheBlock]:
        blocks, start, gone = self._blocks, self._unused_start, self._unused_gone
        if not gone:
            return blocks[start : start + count]
        return list(islice((blocks[i] for i in range(start, len(blocks)) if i not in gone), count))

    def _cut_unused(self, start: int) -> None:
        if self._unused_gone:
            self._unused_gone.difference_update(range(self._unused_start, start))
        self._unused_start = start
        self.has_unused = start < len(self._blocks)

    def leave_mentions(self, blocks: list[KVCacheBlock]) -> None:
        """Account for distinct `blocks` of the recent and unused lanes that have just been given references."""
        for block in blocks:
            block_id = block.block_id
            if block_id >= self._unused_start and block_id not in self._unused_gone:
                self._unused_gone.add(block_id)
            else:
                self.stale_count += 1
        if self.stale_count > max(STALE_MENTIONS_MIN, len(self.recent) // 2):
            # The lane at least halves, so the cost per block stays constant.
            self.recent = list(self._valid_recent())
            self.recent.reverse()
            self.stale_count = 0

    # ---- questions ----

    def peek(self, count: int) -> list[KVCacheBlock]:
        """The first `count` blocks in eviction order, fewer if the queue is shorter. Nothing changes."""
        return list(islice(self, count))

    def get_all_free_blocks(self) -> list[KVCacheBlock]:
        """All free blocks in eviction order. Linear in their number."""
        return list(self)

    def iter_blocks_after(self, cursor: KVCacheBlock | None) -> Iterator[KVCacheBlock]:
        """Free blocks behind `cursor` in eviction order; all if it is None, none if it is not queued.

        Do not change the pool while iterating. Finding a cursor that is not in the aged lane takes time
        linear in the number of blocks before it.
        """
        if cursor is None:
            yield from self
        elif cursor.next_free_block is not None:
            yield from self.aged.behind(cursor)
        elif cursor.ref_cnt == 0:
            blocks = iter(self)
            for block in blocks:
                if block is cursor:
                    yield from blocks

    def position(self, block: KVCacheBlock) -> int | None:
        """Place of `block` counted from the head, or None if it is not queued. Linear; for messages."""
        for place, queued in enumerate(self):
            if queued is block:
                return place
        return None

    def __iter__(self) -> Iterator[KVCacheBlock]:
        yield from self._valid_recent() if self.stale_count else reversed(self.recent)
        blocks, gone = self._blocks, self._unused_gone
        if gone:
            yield from (blocks[i] for i in range(self._unused_start, len(blocks)) if i not in gone)
        else:
            yield from islice(blocks, self._unused_start, None)
        yield from self.aged

    def _valid_recent(self) -> Iterator[KVCacheBlock]:
        seen: set[KVCacheBlock] = set()
        for block in reversed(self.recent):
            if block.ref_cnt == 0 and block.next_free_block is None and block not in seen:
                seen.add(block)
                yield block

    def find_violations(self) -> Iterator[Violation]:
        """What is wrong with the lanes themselves; whether the right blocks are queued is for the audit to say."""
        yield from self.aged.find_violations()
        stale = len(self.recent) - sum(1 for _ in self._valid_recent())
        if stale != self.stale_count:
            referenced = tuple(sorted({block.block_id for block in self.recent if block.ref_cnt}))
            yield Violation(
                "P1",
                f"{stale} mention(s) in the recent lane are stale, {self.stale_count} are accounted for; "
                f"of the blocks mentioned there {referenced} have references",
                referenced,
            )
        for block in islice(self._blocks, self._unused_start, None):
            if block.block_id not in self._unused_gone and block.next_free_block is not None:
                yield Violation(
                    "P1", f"block {block.block_id} is queued twice: as unused and as aged", (block.block_id,)
                )
