"""The aged lane of the free queue: blocks worth keeping, oldest first, as a linked list through the blocks.

A linked list, because hits take blocks out of its middle all the time. The links are slots of the blocks, so no
operation allocates, and are None outside the lane, so "is it queued here" is a safe question.

Owns nothing of its own: P1, P5 and P8 are the queue's. The count is kept here, since the pool writes both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .block import KVCacheBlock
from .errors import InvariantViolation, Violation

__all__ = ["AgedLane", "queued_while_referenced"]


class AgedLane:
    """Blocks between two sentinels. `count` is their number.

    The pool links single blocks in and out by itself where a call per block would cost too much; it then
    keeps `count` in step.
    """

    __slots__ = ("count", "head", "tail")

    def __init__(self) -> None:
        self.count = 0
        self.head = KVCacheBlock(-1)
        self.tail = KVCacheBlock(-1)
        self.head.next_free_block = self.tail
        self.tail.prev_free_block = self.head
        # A walk that runs past the last block meets a count that no queued block has.
        self.tail.ref_cnt = 1

    def __iter__(self) -> Iterator[KVCacheBlock]:
        return self.behind(self.head)

    def behind(self, block: KVCacheBlock) -> Iterator[KVCacheBlock]:
        """Blocks behind `block`, which is in the lane."""
        tail = self.tail
        after = block.next_free_block
        while after is not tail and after is not None:
            yield after
            after = after.next_free_block

    def first(self, count: int) -> list[KVCacheBlock]:
        """The first `count` blocks; InvariantViolation if there are fewer, or one of them is referenced."""
        block = self.head.next_free_block
        found = []
        for _ in range(count):
            if block.ref_cnt:
                raise queued_while_referenced(block)
            found.append(block)
            block = block.next_free_block
        return found

    def cut(self, blocks: list[KVCacheBlock]) -> None:
        """Remove `blocks`, which are the first ones, in order."""
        head, after = self.head, blocks[-1].next_free_block
        head.next_free_block = after
        after.prev_free_block = head
        for block in blocks:
            block.prev_free_block = block.next_free_block = None
        self.count -= len(blocks)

    def push(self, blocks: list[KVCacheBlock]) -> None:
        """Put `blocks` at the tail in the given order."""
        tail = self.tail
        last = tail.prev_free_block
        for block in blocks:
            last.next_free_block = block
            block.prev_free_block = last
            last = block
        last.next_free_block = tail
        tail.prev_free_block = last
        self.count += len(blocks)

    def unlink_behind(self, end: KVCacheBlock, last: KVCacheBlock) -> list[KVCacheBlock]:
        """Undo what a caller has linked, up to `last`, behind `end`, the last block of the lane.

        Returns the blocks so unlinked, in the order in which they were linked.
        """
        unlinked = []
        while last is not end:
            unlinked.append(last)
            before = last.prev_free_block
            last.prev_free_block = last.next_free_block = None
            last = before
        end.next_free_block = self.tail
        unlinked.reverse()
        return unlinked

    def remove(self, blocks: list[KVCacheBlock]) -> list[KVCacheBlock] | None:
        """Take distinct `blocks` out of turn; returns those that are not in the lane, None if all are.

        The chain of a request lies here back to back and in reverse, because its tail was released first.
        The gap that such a run leaves is closed once, when the run ends.
        """
        elsewhere: list[KVCacheBlock] | None = None
        before: KVCacheBlock | Any = None
        after: KVCacheBlock | Any = None
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
                    elsewhere = elsewhere or []
                    elsewhere.append(block)
                    self.count += 1
                    continue
                before = block.prev_free_block
            block.prev_free_block = block.next_free_block = None
        if before is not None:
            before.next_free_block = after
            after.prev_free_block = before
        self.count -= len(blocks)
        return elsewhere

    def find_violations(self) -> Iterator[Violation]:
        """Links that do not lead back, a chain that ends early, a count that is wrong."""
        block, linked = self.head, -1
        while block.next_free_block is not None:
            linked += 1
            after = block.next_free_block
            if after.prev_free_block is not block:
                yield Violation(
                    "P1",
                    f"the link from block {block.block_id} to block {after.block_id} does not lead back",
                    (block.block_id, after.block_id),
                )
            block = after
        if block is not self.tail:
            yield Violation("P1", f"the chain of links ends at block {block.block_id}", (block.block_id,))
        elif linked != self.count:
            yield Violation("P5", f"the aged lane counts {self.count} blocks, but {linked} are linked")


def queued_while_referenced(block: KVCacheBlock) -> InvariantViolation:
    """What to raise for a block at the head of the queue that somebody seems to hold; or for the end of it."""
    if block.block_id < 0:
        return InvariantViolation((Violation("P5", "fewer blocks are queued than are counted as free"),))
    return InvariantViolation(
        (
            Violation(
                "P1",
                f"block {block.block_id} is next in the free queue but its ref_cnt is {block.ref_cnt}, expected 0; "
                "its count was changed while it was free",
                (block.block_id,),
            ),
        )
    )
