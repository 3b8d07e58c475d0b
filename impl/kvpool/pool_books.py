"""The state that a block pool keeps, and the callbacks that it makes.

The other halves of the pool change this state: `references` (who holds which block) and `prefix_cache`
(what a block stands for). Here are its making, its figures, its events and its audit (P5, P7), and the rule
that a callback must not change the pool that is calling it.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .audit import find_violations
from .block import KVCacheBlock, NullBlock
from .errors import InvalidArgumentError, InvariantViolation, ReentrantCallError
from .event_log import EventLog
from .events import EventTypes
from .free_queue import FreeQueue
from .metrics import MetricsCollector
from .prefix_index import PrefixIndex
from .snapshot import PoolSnapshot, take_snapshot
from .watchers import ReuseCallback, ReuseWatchers

__all__ = ["PoolBooks"]

logger = logging.getLogger(__name__)


class PoolBooks:
    """Blocks, free queue, prefix index, watchers and events of one pool."""

    # Adapters may replace this on a subclass to emit a publisher's own event classes.
    event_types = EventTypes()

    def __init__(
        self,
        num_gpu_blocks: int,
        enable_caching: bool,
        hash_block_size: int,
        enable_kv_cache_events: bool = False,
        metrics_collector: MetricsCollector | None = None,
        num_hash_lookahead_tokens: int = 0,
        medium: str = "GPU",
    ) -> None:
        _check_setting("num_gpu_blocks", num_gpu_blocks, 1)
        _check_setting("hash_block_size", hash_block_size, 1)
        _check_setting("num_hash_lookahead_tokens", num_hash_lookahead_tokens, 0)
        self.num_gpu_blocks = num_gpu_blocks
        self.enable_caching = enable_caching
        self.hash_block_size = hash_block_size
        self.enable_kv_cache_events = enable_kv_cache_events
        self.metrics_collector = metrics_collector
        self.num_hash_lookahead_tokens = num_hash_lookahead_tokens
        self.medium = medium
        self.null_block = NullBlock(self)
        self.blocks: list[KVCacheBlock] = _make_blocks(self, num_gpu_blocks)
        self.free_block_queue = FreeQueue(self.blocks)
        self.cached_block_hash_to_block = PrefixIndex()
        self._watchers = ReuseWatchers()
        self._events = EventLog(self.event_types, medium, num_hash_lookahead_tokens)
        # True while callbacks run, when every changing method refuses.
        self._calling_back = False

    # ---- figures ----

    def get_num_free_blocks(self) -> int:
        """Blocks that can be handed out, cached ones included."""
        return self.free_block_queue.num_free_blocks

    def get_usage(self) -> float:
        """Share of blocks that are held, from 0 to 1; the null block does not count."""
        usable = self.num_gpu_blocks - 1
        return 1.0 - self.free_block_queue.num_free_blocks / usable if usable else 0.0

    # ---- events ----

    @property
    def kv_event_queue(self) -> list[Any]:
        """Events not taken yet, oldest first."""
        return self._events.pending

    def take_events(self) -> list[Any]:
        """Hand over the queued events, oldest first; empty when events are off."""
        return self._events.take() if self.enable_kv_cache_events else []

    # ---- inspection ----

    def outstanding_watchers(self) -> Mapping[int, Sequence[ReuseCallback]]:
        """Reuse watchers not called yet, by block id. Read only."""
        return self._watchers.by_block

    def snapshot(self) -> PoolSnapshot:
        """An immutable copy of the books. Linear in the number of blocks."""
        return take_snapshot(self)

    def check(self, holders: Mapping[str, Iterable[KVCacheBlock]] | None = None) -> None:
        """Recompute every invariant; raise InvariantViolation listing those that are broken.

        `holders` maps a name to the blocks it holds, once per reference; with it, reference counts are
        compared with the holders (P10). Linear in the number of blocks: for tests and debugging.
        """
        violations = find_violations(self, holders)
        if violations:
            raise InvariantViolation(tuple(violations))

    # ---- shared by both halves ----

    def _drop_entries(self, blocks: Sequence[KVCacheBlock]) -> None:
        """Drop every entry of `blocks`, with one BlockRemoved per entry."""
        index = self.cached_block_hash_to_block
        if self.enable_kv_cache_events:
            for block in blocks:
                self._events.removed(index.entries_of(block))
        index.drop(blocks)

    def _fire_watchers(self, blocks: Iterable[KVCacheBlock]) -> None:
        self._calling_back = True
        try:
            self._watchers.fire(blocks)
        finally:
            self._calling_back = False

    def _tell_each(self, hook: str, blocks: Sequence[KVCacheBlock]) -> None:
        """Tell the metrics collector of each block, if there is a collector."""
        if self.metrics_collector is not None:
            listener = getattr(self.metrics_collector, hook)
            self._tell(lambda: [listener(block) for block in blocks])

    def _tell(self, call: Callable[[], object]) -> None:
        self._calling_back = True
        try:
            call()
        except Exception:
            logger.exception("metrics collector raised; the pool is unaffected")
        finally:
            self._calling_back = False

    def _refuse_in_callback(self, operation: str) -> None:
        if self._calling_back:
            raise ReentrantCallError(
                f"{operation} refused: a reuse watcher or metrics hook of this pool is running; expected "
                "callbacks that leave the pool alone. Note the block and act after the call returns."
            )


def _make_blocks(pool: PoolBooks, count: int) -> list[KVCacheBlock]:
    # Collections while a million objects appear find nothing and double the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return [pool.null_block, *[KVCacheBlock(block_id, pool) for block_id in range(1, count)]]
    finally:
        if was_enabled:
            gc.enable()


def _check_setting(name: str, value: int, lowest: int) -> None:
    if type(value) is not int or value < lowest:
        raise InvalidArgumentError(
            f"BlockPool refused: {name} is {value!r}; expected an integer of at least {lowest}. "
            "Correct the pool's settings."
        )
