"""What a metrics collector may hear from the pool.

The hooks mirror upstream's. They are told, never asked: a hook that raises is logged and ignored, and
a hook that calls back into a changing method of the pool gets a ReentrantCallError.
"""

from __future__ import annotations

from typing import Protocol

from .block import KVCacheBlock

__all__ = ["MetricsCollector"]


class MetricsCollector(Protocol):
    """Listener for block residency. Hooks run synchronously; keep them short."""

    def on_block_allocated(self, block: KVCacheBlock) -> None:
        """`block` was handed out by `get_new_blocks`."""

    def on_block_accessed(self, block: KVCacheBlock) -> None:
        """`block` was touched (once per listed entry)."""

    def on_block_evicted(self, block: KVCacheBlock) -> None:
        """`block` is about to lose its content: it is handed out anew, or its entries are evicted."""

    def reset(self) -> None:
        """The prefix cache was reset."""
