"""Pools that break their promise to those who still read a block that they let go (P9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from kvpool import BlockPool, KVCacheBlock, RefusedError
from kvpool.watchers import ReuseCallback
from seeded_bugs.seeded_bug import WATCHED, SeededBug


class LastWatcherOnly(BlockPool):
    """A new watcher of a block takes the place of the one before."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.latest: dict[KVCacheBlock, object] = {}

    def unpin_blocks(self, blocks: Iterable[KVCacheBlock], on_reuse: ReuseCallback) -> None:
        entries = list(blocks)

        def if_latest(block: KVCacheBlock) -> None:
            if self.latest.get(block) is if_latest:
                del self.latest[block]
                on_reuse(block)

        super().unpin_blocks(entries, if_latest)
        self.latest.update(dict.fromkeys(entries, if_latest))


class WatcherFiresTwice(BlockPool):
    """A watcher is called twice."""

    def unpin_blocks(self, blocks: Iterable[KVCacheBlock], on_reuse: ReuseCallback) -> None:
        def twice(block: KVCacheBlock) -> None:
            on_reuse(block)
            on_reuse(block)

        super().unpin_blocks(blocks, twice)


class WatcherFiresAfterReuse(BlockPool):
    """A watcher is called when its block belongs to somebody else already."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.due: list[tuple[ReuseCallback, KVCacheBlock]] = []

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        taken = super().get_new_blocks(num_blocks)
        self.call_those_due()
        return taken

    def reset_prefix_cache(self) -> bool:
        done = super().reset_prefix_cache()
        self.call_those_due()
        return done

    def call_those_due(self) -> None:
        while self.due:
            on_reuse, block = self.due.pop(0)
            on_reuse(block)

    def unpin_blocks(self, blocks: Iterable[KVCacheBlock], on_reuse: ReuseCallback) -> None:
        super().unpin_blocks(blocks, lambda block: self.due.append((on_reuse, block)))


class WatcherFiresAfterEviction(BlockPool):
    """Entries are dropped before the watcher is called, so the reader cannot tell any more what it was reading."""

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        if 0 <= num_blocks <= self.get_num_free_blocks():
            queue = self.free_block_queue.get_all_free_blocks()
            self.evict_blocks([block.block_id for block in queue[:num_blocks]])
        return super().get_new_blocks(num_blocks)


class ResetLeavesWatchers(BlockPool):
    """A reset does not call the watchers."""

    resetting = False

    def reset_prefix_cache(self) -> bool:
        self.resetting = True
        try:
            return super().reset_prefix_cache()
        finally:
            self.resetting = False

    def unpin_blocks(self, blocks: Iterable[KVCacheBlock], on_reuse: ReuseCallback) -> None:
        super().unpin_blocks(blocks, lambda block: None if self.resetting else on_reuse(block))


class TouchCancelsWatcher(BlockPool):
    """A block that is touched again loses its watchers."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.touched: Counter[KVCacheBlock] = Counter()

    def touch(self, blocks: Iterable[KVCacheBlock]) -> None:
        entries = list(blocks)
        super().touch(entries)
        self.touched.update(entries)

    def unpin_blocks(self, blocks: Iterable[KVCacheBlock], on_reuse: ReuseCallback) -> None:
        entries, before = list(blocks), self.touched.copy()
        super().unpin_blocks(entries, lambda block: on_reuse(block) if self.touched[block] == before[block] else None)


class WatcherFiresAtUnpin(BlockPool):
    """A watcher is called as soon as it is registered, and never again."""

    def unpin_blocks(self, blocks: Iterable[KVCacheBlock], on_reuse: ReuseCallback) -> None:
        entries = list(blocks)
        super().unpin_blocks(entries, lambda _block: None)
        for block in entries:
            on_reuse(block)


class WatcherNeverForgotten(BlockPool):
    """A watcher is called again at every later reuse of its block."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.past: dict[KVCacheBlock, list[ReuseCallback]] = {}

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        for block in self.free_block_queue.get_all_free_blocks()[: max(0, num_blocks)]:
            for on_reuse in self.past.get(block, ()):
                on_reuse(block)
        return super().get_new_blocks(num_blocks)

    def unpin_blocks(self, blocks: Iterable[KVCacheBlock], on_reuse: ReuseCallback) -> None:
        def and_remember(block: KVCacheBlock) -> None:
            on_reuse(block)
            self.past.setdefault(block, []).append(on_reuse)

        super().unpin_blocks(blocks, and_remember)


class RefusedUnpinWatches(BlockPool):
    """A refused unpin has registered its watcher for the blocks that were all right."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.waiting: dict[KVCacheBlock, ReuseCallback] = {}

    def unpin_blocks(self, blocks: Iterable[KVCacheBlock], on_reuse: ReuseCallback) -> None:
        entries = list(blocks)

        def with_those(block: KVCacheBlock) -> None:
            on_reuse(block)
            if block in self.waiting:
                self.waiting.pop(block)(block)

        try:
            super().unpin_blocks(entries, with_those)
        except RefusedError:
            self.waiting.update((block, on_reuse) for block in entries if block.pool is self and block.ref_cnt > 0)
            raise


BUGS = (
    SeededBug(LastWatcherOnly, "K5", (), "P9", WATCHED, 3),
    SeededBug(WatcherFiresTwice, "K5", (), "P9", WATCHED, 3),
    SeededBug(WatcherFiresAfterReuse, "K5", (), "P9", WATCHED, 3),
    SeededBug(WatcherFiresAfterEviction, "K5", (), "P9", WATCHED, 4),
    SeededBug(ResetLeavesWatchers, "K5", (), "P9", WATCHED, 3),
    SeededBug(TouchCancelsWatcher, "K5", (), "P9", WATCHED, 10, False),
    SeededBug(WatcherFiresAtUnpin, "K5", (), "P9", WATCHED, 2),
    SeededBug(WatcherNeverForgotten, "K5", (), "P9", WATCHED, 9, False),
    SeededBug(RefusedUnpinWatches, "K5", (), "P9", WATCHED, 7, False),
)
