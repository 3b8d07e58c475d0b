"""kvpool as a target: no limits, every refusal with its reason."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import kvpool
from kvfuzz.adapter import Limit
from kvfuzz.adapters.block_pool import BlockPoolAdapter
from kvfuzz.errors import TargetError
from kvpool.block_key import make_block_key
from kvspec.pool import transitions as reasons

_LOGGER = logging.getLogger("kvpool")

_EVENT_KINDS: dict[type, str] = {
    kvpool.BlockStored: "stored",
    kvpool.BlockRemoved: "removed",
    kvpool.AllBlocksCleared: "cleared",
}

# An error class that stands for several of the specification's reasons is left out: any reason matches it.
_REASONS: dict[type[Exception], str] = {
    kvpool.NotEnoughBlocksError: reasons.NOT_ENOUGH_FREE,
    kvpool.UnknownBlockError: reasons.FOREIGN_BLOCK,
    kvpool.NullBlockError: reasons.NULL_BLOCK,
    kvpool.ReferenceUnderflowError: reasons.REF_CNT_UNDERFLOW,
    kvpool.NotOwnedError: reasons.NOT_OWNED,
    kvpool.CachingDisabledError: reasons.CACHING_DISABLED,
    kvpool.BoundaryError: reasons.BAD_BOUNDARY,
}


class KvpoolFamily:
    """`BlockPoolFamily` of kvpool, or of a pool class derived from it."""

    limits: tuple[Limit, ...] = ()
    refusals: tuple[type[Exception], ...] = (kvpool.RefusedError,)

    def __init__(self, pool_class: type[kvpool.BlockPool] = kvpool.BlockPool, name: str = "kvpool") -> None:
        self.name = name
        self._pool_class = pool_class

    def make_pool(self, num_blocks: int, enable_caching: bool, hash_block_size: int, events: bool) -> Any:
        return self._pool_class(num_blocks, enable_caching, hash_block_size, events)

    def make_request(self, token_ids: Sequence[int], hash_block_size: int) -> Any:
        return kvpool.Request("request", list(token_ids), hasher=kvpool.PrefixHasher(hash_block_size))

    def make_stranger(self) -> Any:
        return kvpool.KVCacheBlock(1_000_000)

    def group_key(self, block_hash: Any, group: int) -> Any:
        return make_block_key(block_hash, group)

    def event_hash(self, block_hash: Any) -> Any:
        return block_hash

    def event_kind(self, event: Any) -> str:
        return _EVENT_KINDS[type(event)]

    def event_group(self, event: Any) -> int:
        return int(event.group_idx)

    def queue(self, pool: Any) -> Iterator[Any]:
        return iter(pool.free_block_queue.iter_blocks_after(None))

    def index_entries(self, pool: Any) -> Iterable[tuple[Any, Iterable[int]]]:
        for key, blocks in pool.cached_block_hash_to_block.items():
            yield key, [block.block_id for block in blocks]

    def secondary_keys(self, pool: Any) -> Mapping[int, Iterable[Any]]:
        keys: Mapping[int, Iterable[Any]] = pool.cached_block_hashes_by_block
        return keys

    def touch(self, pool: Any, blocks: Sequence[Any]) -> None:
        pool.touch(blocks)

    def cache_full_blocks(self, pool: Any, *args: Any) -> None:
        pool.cache_full_blocks(*args)

    def reset_prefix_cache(self, pool: Any) -> bool:
        """Without the warning of a declined reset, which is an ordinary answer here, a thousand times over."""
        level = _LOGGER.level
        _LOGGER.setLevel(logging.ERROR)
        try:
            return bool(pool.reset_prefix_cache())
        finally:
            _LOGGER.setLevel(level)

    def reason(self, error: Exception) -> str:
        return _REASONS.get(type(error), "")


def make(argument: str | None = None) -> BlockPoolAdapter:
    """Entry point `kvpool`. Takes no argument."""
    if argument:
        raise TargetError(f"target kvpool@{argument}: kvpool is the installed package and takes no path; use `kvpool`")
    return BlockPoolAdapter(KvpoolFamily())


def adapter_for(pool_class: type[kvpool.BlockPool], name: str | None = None) -> BlockPoolAdapter:
    """An adapter for a class derived from `kvpool.BlockPool`, for example one with a seeded bug."""
    return BlockPoolAdapter(KvpoolFamily(pool_class, name or pool_class.__name__))
