"""The free queue: which block is handed out next.

Its order, head first, is the concatenation of three lanes:

    recent   released without an identity, newest first: a list whose *end* is the head of the queue
    unused   never handed out, by rising id: only the first id is stored
    aged     released with an identity, or unpinned, oldest first: a linked list through the blocks

A block stays in its lane when it gains or loses entries while queued, so its place in the eviction
order cannot change behind the caller's back.

A block that leaves `recent` or `unused` out of turn is not searched for. It leaves a stale mention,
told by its reference count or its links, which the next take steps over. A block may thus be mentioned
in `recent` more than once; the mention nearest the end is the one that counts, because every later
release was put nearer to the end. The mention in `unused` is older than any in `recent`.

Owns P8 together with the pool, and the queue's half of P1 and P5. It does not decide who may release
what, and it knows nothing of hashes: the pool refuses first, then calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from .block import KVCacheBlock
from .errors import InvariantViolation, Violation

__all__ = ["FreeQueue"]

# Below this many stale mentions a rebuild of the lane costs more than stepping over them.
STALE_MENTIONS_MIN = 64


class FreeQueue:
    """Free blocks in eviction order.

    `recent` is open to the pool, which takes and puts single blocks at its end without a call, as long as
    `stale_count`, the number of stale mentions in it, is 0.
    """

    __slots__ = (
        "_aged_count",
        "_aged_head",
        "_aged_tail",
        "_blocks",
        "_unused_gone",
        "_unused_start",
        "recent",
        "stale_count",
    )

    def __init__(self, blocks: list[KVCacheBlock]) -> None:
        """Queue every block but the first, which is the null block. `blocks` is kept, not copied."""
        self._blocks = blocks
        self.recent: list[KVCacheBlock] = []
        self.stale_count = 0
        self._unused_start = 1
        self._unused_gone: set[int] = set()
        self._aged_head = KVCacheBlock(-1)
        self._aged_tail = KVCacheBlock(-1)
        self._aged_head.next_free_block = self._aged_tail
        self._aged_tail.prev_free_block = self._aged_head
        # A walk that runs past the last block meets a count that no queued block has.
        self._aged_tail.ref_cnt = 1
        self._aged_count = 0

    @property
    def num_free_blocks(self) -> int:
        """Number of free blocks, from the sizes of the lanes."""
        unused = len(self._blocks) - self._unused_start - len(self._unused_gone)
        return len(self.recent) - self.stale_count + unused + self._aged_count

    # ---- changes; the caller has checked the arguments ----

    def take(self, count: int) -> list[KVCacheBlock]:
        """Remove and return the first `count` blocks; there must be that many.

        Looks first and cuts afterwards: a queue that turns out to be corrupted is left as it was found.
        """
        recent = self.recent
        if not self.stale_count:
            walked = count if count < len(recent) else len(recent)
            taken = recent[len(recent) - walked :]
            taken.reverse()
        else:
            taken, walked = self._walk_recent(count)
        stepped_over = walked - len(taken)
        left = count - len(taken)
        from_unused = self._next_unused(left) if left else None
        if from_unused:
            taken += from_unused
            left -= len(from_unused)
        from_aged = self._next_aged(left) if left else None
        for block in taken:
            if block.ref_cnt:
                raise _corrupted(block)
        if walked:
            del recent[-walked:]
            self.stale_count -= stepped_over
        if from_unused:
            self._cut_unused(from_unused[-1].block_id + 1)
        if from_aged:
            self._cut_aged(from_aged)
            taken += from_aged
        return taken

    def take_one_aged(self) -> KVCacheBlock | None:
        """Remove and return the first block if it is an aged one, else None."""
        if self.recent or self._unused_start < len(self._blocks) or not self._aged_count:
            return None
        head = self._aged_head
        block = head.next_free_block
        if block.ref_cnt:
            raise _corrupted(block)
        head.next_free_block = after = block.next_free_block
        after.prev_free_block = head
        block.prev_free_block = block.next_free_block = None
        self._aged_count -= 1
        return block

    def _walk_recent(self, count: int) -> tuple[list[KVCacheBlock], int]:
        """The first `count` blocks of the recent lane, fewer if it ends, and how many mentions that takes."""
        found: dict[KVCacheBlock, None] = {}
        walked = 0
        for block in reversed(self.recent):
            if len(found) == count:
                break
            walked += 1
            if block.ref_cnt == 0 and block.next_free_block is None:
                found[block] = None
        return list(found), walked

    def _next_unused(self, count: int) -> list[KVCacheBlock]:
        blocks, start, gone = self._blocks, self._unused_start, self._unused_gone
        if not gone:
            return blocks[start : start + count]
        return list(islice((blocks[i] for i in range(start, len(blocks)) if i not in gone), count))

    def _cut_unused(self, start: int) -> None:
        if self._unused_gone:
            self._unused_gone.difference_update(range(self._unused_start, start))
        self._unused_start = start

    def _next_aged(self, count: int) -> list[KVCacheBlock]:
        block = self._aged_head.next_free_block
        found = []
        for _ in range(count):
            if block.ref_cnt:
                raise _corrupted(block)
            found.append(block)
            block = block.next_free_block
        return found

    def _cut_aged(self, blocks: list[KVCacheBlock]) -> None:
        head, after = self._aged_head, blocks[-1].next_free_block
        head.next_free_block = after
        after.prev_free_block = head
        for block in blocks:
            block.prev_free_block = block.next_free_block = None
        self._aged_count -= len(blocks)

    def push_recent(self, blocks: list[KVCacheBlock]) -> None:
        """Put `blocks` at the head, the first becoming the next to be taken. Consumes the list."""
        blocks.reverse()
        self.recent += blocks

    def push_aged(self, blocks: list[KVCacheBlock]) -> None:
        """Put `blocks` at the tail in the given order."""
        tail = self._aged_tail
        last = tail.prev_free_block
        for block in blocks:
            last.next_free_block = block
            block.prev_free_block = last
            last = block
        last.next_free_block = tail
        tail.prev_free_block = last
        self._aged_count += len(blocks)

    def push_one_aged(self, block: KVCacheBlock) -> None:
        """Put `block` at the tail."""
        tail = self._aged_tail
        last = tail.prev_free_block
        last.next_free_block = tail.prev_free_block = block
        block.prev_free_block = last
        block.next_free_block = tail
        self._aged_count += 1

    def remove_one(self, block: KVCacheBlock) -> None:
        """Take one queued block out of turn; it has been given its reference already."""
        after = block.next_free_block
        if after is None:
            self.remove([block])
            return
        before = block.prev_free_block
        before.next_free_block = after
        after.prev_free_block = before
        block.prev_free_block = block.next_free_block = None
        self._aged_count -= 1

    def remove(self, blocks: list[KVCacheBlock]) -> None:
        """Take distinct queued `blocks` out of turn; they have been given their references already.

        The chain of a request lies in the aged lane back to back and in reverse, because its tail was
        released first. The gap that such a run leaves is closed once, when the run ends.
        """
        before: KVCacheBlock | Any = None
        after: KVCacheBlock | Any = None
        mentions = 0
        for block in blocks:
            if block is before:
                before = block.prev_free_block
            else:
                if before is not None:
                    before.next_free_block = after
                    after.prev_free_block = before
                after = block.next_free_block
                if after is None:
                    before = None
                    mentions += 1
                    self._leave_mention(block)
                    continue
                before = block.prev_free_block
            block.prev_free_block = block.next_free_block = None
        if before is not None:
            before.next_free_block = after
            after.prev_free_block = before
        self._aged_count -= len(blocks) - mentions
        if self.stale_count > STALE_MENTIONS_MIN:
            self._rebuild_recent_if_mostly_stale()

    def _leave_mention(self, block: KVCacheBlock) -> None:
        block_id = block.block_id
        if block_id >= self._unused_start and block_id not in self._unused_gone:
            self._unused_gone.add(block_id)
        else:
            self.stale_count += 1

    def _rebuild_recent_if_mostly_stale(self) -> None:
        # The lane at least halves, so the cost per removal stays constant.
        if self.stale_count * 2 > len(self.recent):
            self.recent = list(self._iter_valid_recent())
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

        Do not change the pool while iterating. Finding a cursor that was released without an
        identity takes time linear in the number of such blocks.
        """
        if cursor is None:
            yield from self
        elif cursor.next_free_block is not None:
            yield from self._iter_aged(cursor)
        else:
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

    def find_violations(self) -> Iterator[Violation]:
        """What is wrong with the lanes themselves: links, stale mentions, blocks queued while referenced."""
        block, linked = self._aged_head, -1
        while block.next_free_block is not None:
            linked += 1
            after = block.next_free_block
            if after.prev_free_block is not block:
                yield Violation(
                    "P1",
                    f"the link from block {block.block_id} to {after.block_id} is one-way",
                    (block.block_id,),
                )
            block = after
        if block is not self._aged_tail:
            yield Violation("P1", f"the chain of links ends at block {block.block_id}", (block.block_id,))
        elif linked != self._aged_count:
            yield Violation("P5", f"{self._aged_count} aged blocks are counted, but {linked} are linked")
        stale = len(self.recent) - sum(1 for _ in self._iter_valid_recent())
        if stale != self.stale_count:
            referenced = tuple(sorted({block.block_id for block in self.recent if block.ref_cnt}))
            yield Violation(
                "P1",
                f"{stale} mention(s) in the recent lane are out of date, {self.stale_count} are accounted for; "
                f"of the blocks mentioned there {referenced} have references",
                referenced,
            )
        for block_id in range(self._unused_start, len(self._blocks)):
            if block_id not in self._unused_gone and self._blocks[block_id].next_free_block is not None:
                yield Violation("P1", f"block {block_id} is queued twice: unused and linked", (block_id,))

    def __iter__(self) -> Iterator[KVCacheBlock]:
        if self.stale_count:
            yield from self._iter_valid_recent()
        else:
            yield from reversed(self.recent)
        blocks, gone = self._blocks, self._unused_gone
        if gone:
            yield from (blocks[i] for i in range(self._unused_start, len(blocks)) if i not in gone)
        else:
            yield from islice(blocks, self._unused_start, None)
        yield from self._iter_aged(self._aged_head)

    def _iter_valid_recent(self) -> Iterator[KVCacheBlock]:
        seen: set[KVCacheBlock] = set()
        for block in reversed(self.recent):
            if block.ref_cnt == 0 and block.next_free_block is None and block not in seen:
                seen.add(block)
                yield block

    def _iter_aged(self, start: KVCacheBlock) -> Iterator[KVCacheBlock]:
        tail = self._aged_tail
        block = start.next_free_block
        while block is not tail and block is not None:
            yield block
            block = block.next_free_block


def _corrupted(block: KVCacheBlock) -> InvariantViolation:
    if block.block_id < 0:
        return InvariantViolation((Violation("P5", "fewer blocks are queued than are counted as free"),))
    return InvariantViolation(
        (
            Violation(
                "P1",
                f"block {block.block_id} is next in the free queue but its ref_cnt is {block.ref_cnt}, "
                "expected 0; its count was changed while it was free",
                (block.block_id,),
            ),
        )
    )
