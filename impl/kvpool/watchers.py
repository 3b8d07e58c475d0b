"""Reuse watchers: callbacks of those who still read blocks that they have let go.

`unpin_blocks` gives a block back while its content stays readable until the pool hands it out anew. Each
registration is a promise to call back exactly once, at reuse or at a reset (P9). This module keeps
and fires registrations; when that is due is the pool's decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .block import KVCacheBlock

__all__ = ["ReuseCallback", "ReuseWatchers"]

ReuseCallback = Callable[[KVCacheBlock], None]


class ReuseWatchers:
    """Outstanding registrations by block id, each list in order of registration."""

    __slots__ = ("by_block",)

    def __init__(self) -> None:
        self.by_block: dict[int, list[ReuseCallback]] = {}

    def register(self, block: KVCacheBlock, callback: ReuseCallback) -> None:
        """Promise one call of `callback`. The same callback may be registered repeatedly."""
        self.by_block.setdefault(block.block_id, []).append(callback)

    def fire(self, blocks: Iterable[KVCacheBlock]) -> None:
        """Call and forget the watchers of `blocks`, in that order.

        A watcher that raises does not keep the others from being called. Afterwards its exception is
        raised, or a group of them if several raised.
        """
        raised: list[BaseException] = []
        for block in blocks:
            for callback in self.by_block.pop(block.block_id, ()):
                try:
                    callback(block)
                except BaseException as error:
                    raised.append(error)
        if len(raised) == 1:
            raise raised[0]
        if raised:
            raise BaseExceptionGroup(f"{len(raised)} reuse watchers raised; every watcher was called", raised)
