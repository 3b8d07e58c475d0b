"""Bugs that hide from a comparison by numbers: copies of blocks, and the order of events within one call."""

from __future__ import annotations

from typing import Any

import pytest

from kvfuzz.adapters.kvpool_target import adapter_for
from kvfuzz.walk import Walk, WalkBudget
from kvpool import BlockPool, BlockRemoved, KVCacheBlock
from kvspec.pool import PoolModel
from seeded_bugs.seeded_bug import PARTIAL, PLAIN


class CopiesHandedOut(BlockPool):
    """An allocation hands out copies of its blocks: what their holder counts, the pool does not see."""

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        copies = []
        for block in super().get_new_blocks(num_blocks):
            copies.append(KVCacheBlock(block.block_id))
            copies[-1].ref_cnt = block.ref_cnt
        return copies


class RemovalsPublishedLast(BlockPool):
    """Removals are published after what was stored in their place: a consumer that keeps a set ends up without it."""

    def take_events(self) -> list[Any]:
        return sorted(super().take_events(), key=lambda event: isinstance(event, BlockRemoved))


@pytest.mark.parametrize(
    ("pool", "scope"),
    [
        (CopiesHandedOut, PLAIN),
        (RemovalsPublishedLast, PARTIAL),
    ],
)
def test_walk_finds_what_numbers_do_not_show(pool: type[BlockPool], scope: Any) -> None:
    result = Walk(PoolModel(scope), adapter_for(pool), 1, WalkBudget(steps=5_000)).run()
    assert result.failure is not None
