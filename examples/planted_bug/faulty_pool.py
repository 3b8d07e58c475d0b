"""Two faulty pools, to see kvproof find something. Each is one method away from kvpool's own BlockPool.

kvproof fuzz --target faulty_pool:unhashed_to_tail
kvproof fuzz --target faulty_pool:queued_twice
"""

from __future__ import annotations

from collections.abc import Iterable

from kvfuzz.adapters.block_pool import BlockPoolAdapter
from kvfuzz.adapters.kvpool_target import adapter_for
from kvpool import BlockPool, KVCacheBlock


class UnhashedToTail(BlockPool):
    """A released block goes to the tail of the free queue although nothing can hit it any more. It then waits behind
    blocks that are still worth keeping, which are evicted in its place."""

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        blocks = list(ordered_blocks)
        super().free_blocks(blocks)
        for block in dict.fromkeys(blocks):
            if block.pool is self and not block.is_null and block.ref_cnt == 0 and block.block_hash is None:
                self.touch([block])
                self.unpin_blocks([block], lambda _block: None)


class QueuedTwice(BlockPool):
    """First takes one reference from every listed block, then queues every listed block that has none left: a block
    listed twice is queued twice, and later handed to two owners. vLLM did this up to 0.23 (vllm #42571)."""

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        blocks = list(ordered_blocks)
        super().free_blocks(blocks)
        for block in dict.fromkeys(blocks):
            if block.pool is self and not block.is_null and block.ref_cnt == 0 and blocks.count(block) > 1:
                block.ref_cnt = 1
                super().free_blocks([block])


def unhashed_to_tail() -> BlockPoolAdapter:
    """Target with the first bug."""
    return adapter_for(UnhashedToTail)


def queued_twice() -> BlockPoolAdapter:
    """Target with the second bug."""
    return adapter_for(QueuedTwice)
