"""The state that a block pool keeps, and the callbacks that it makes.

The other halves of the pool change this state: `references` (who holds which block) and `prefix_cache`
(what a block stands for). Here are its making, its figures, its events and its audit (P5, P7), and the rule
that a callback must not change the pool that is calling it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from .audit import find_violations
from .block import KVCacheBlock, NullBlock, make_blocks
from .block_key import get_block_hash, get_group_id
from .errors import InvalidArgumentError, InvariantViolation, ReentrantCallError
from .event_log import EventLog
from .events import EventTypes
from .free_queue import FreeQueue
from .metrics import MetricsCollector
from .prefix_index import PrefixIndex
from .snapshot import PoolSnapshot, take_snapshot
from .watchers import ReuseCallback, ReuseWatchers

if TYPE_CHECKING:
    from .block_pool import BlockPool

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
        self.num_hash_lookahead_tokens = num_hash_lookahead_tokens
        self.medium = medium
        whole = cast("BlockPool", self)  # This class is only ever a part of one.
        self.null_block = NullBlock(whole)
        self.blocks: list[KVCacheBlock] = make_blocks(whole, self.null_block, num_gpu_blocks)
        self.free_block_queue = FreeQueue(self.blocks)
        self._aged = self.free_block_queue.aged
        self.cached_block_hash_to_block = PrefixIndex()
        self._watchers = ReuseWatchers()
        self._events = EventLog(self.event_types, medium, num_hash_lookahead_tokens)
        self._metrics_collector = metrics_collector
        # True while callbacks run, when every changing method refuses.
        self._calling_back = False
        # True while nobody needs to be told of a reuse or a touch: one question in place of three.
        self._unobserved = metrics_collector is None

    @property
    def metrics_collector(self) -> MetricsCollector | None:
        """Hears of allocations, touches and evictions; may be set at any time."""
        return self._metrics_collector

    @metrics_collector.setter
    def metrics_collector(self, collector: MetricsCollector | None) -> None:
        self._metrics_collector = collector
        self._note_observers()

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
        if self.enable_kv_cache_events:
            for block in blocks:
                self._announce_removal(block)
        self.cached_block_hash_to_block.drop(blocks)

    def _announce_removal(self, block: KVCacheBlock) -> None:
        """One BlockRemoved for each entry that `block` is about to lose, the primary one first."""
        if block.raw_hash is not None and block.group_id is not None:
            self._events.removed(block.raw_hash, block.group_id)
            index = self.cached_block_hash_to_block
            if index.secondary_keys:
                for key in index.keys_of(block)[1:]:
                    self._events.removed(get_block_hash(key), get_group_id(key))

    def _note_observers(self) -> None:
        self._unobserved = not (self._calling_back or self._watchers.by_block or self._metrics_collector is not None)

    def _fire_watchers(self, blocks: Iterable[KVCacheBlock]) -> None:
        self._call_back(lambda: self._watchers.fire(blocks))

    def _tell_each(self, hook: str, blocks: Sequence[KVCacheBlock]) -> None:
        """Tell the metrics collector of each block, if there is a collector."""
        if self._metrics_collector is not None:
            listener = getattr(self._metrics_collector, hook)
            self._tell(lambda: [listener(block) for block in blocks])

    def _tell(self, call: Callable[[], object]) -> None:
        try:
            self._call_back(call)
        except Exception:
            logger.exception("metrics collector raised; the pool is unaffected")

    def _call_back(self, call: Callable[[], object]) -> None:
        self._calling_back, self._unobserved = True, False
        try:
            call()
        finally:
            self._calling_back = False
            self._note_observers()

    def _refuse_in_callback(self, operation: str) -> None:
        if self._calling_back:
            raise ReentrantCallError(
                f"{operation} refused: a reuse watcher or metrics hook of this pool is running; expected "
                "callbacks that leave the pool alone. Note the block and act after the call returns."
            )


def _check_setting(name: str, value: int, lowest: int) -> None:
    if type(value) is not int or value < lowest:
        raise InvalidArgumentError(
            f"BlockPool refused: {name} is {value!r}; expected an integer of at least {lowest}. "
            "Correct the pool's settings."
        )
