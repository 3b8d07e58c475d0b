"""One loaded vLLM block pool, and the calls whose shape changed between versions.

What this module does not do: it loads nothing (vllm_tree), and it neither checks nor observes a pool beyond
listing its index. It owns no property.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from kvfuzz.adapters.vllm_request import RequestHashing, UpstreamRequest
from kvfuzz.errors import TargetError


@dataclass(frozen=True)
class UpstreamPool:
    """The pool of one vLLM tree. Two of them, of different trees, share nothing.

    The classes and `hashing` (the module kv_cache_utils) are the tree's own. `constructor_parameters` are the
    names that BlockPool takes after self, in order. `methods` are the public names of its methods: what a
    version lacks is not in it. `touch_takes_groups`: whether `touch` takes one list of blocks per KV-cache
    group.
    """

    version: str
    root: Path
    BlockPool: Any
    KVCacheBlock: Any
    BlockStored: Any
    BlockRemoved: Any
    AllBlocksCleared: Any
    hashing: ModuleType
    request_hashing: RequestHashing
    constructor_parameters: tuple[str, ...]
    methods: frozenset[str]
    cache_full_parameters: frozenset[str]
    touch_takes_groups: bool

    def make_pool(
        self,
        num_blocks: int,
        enable_caching: bool = True,
        hash_block_size: int = 16,
        events: bool = False,
        **more: Any,
    ) -> Any:
        """A BlockPool of `num_blocks` blocks, the null block included.

        `hash_block_size` is dropped where the version has only one block size; `more` goes to the constructor
        and raises TargetError where the version does not take it.
        """
        given = {"hash_block_size": hash_block_size, "enable_kv_cache_events": events}
        known = {name: value for name, value in given.items() if name in self.constructor_parameters}
        unknown = sorted(set(more) - set(self.constructor_parameters))
        if unknown:
            raise TargetError(
                f"BlockPool of vLLM {self.version} takes no {', '.join(unknown)}: "
                f"it takes {', '.join(self.constructor_parameters)}. Drop the argument or use a later tree"
            )
        return self.BlockPool(num_blocks, enable_caching, **known, **more)

    def make_request(
        self,
        token_ids: Sequence[int],
        hash_block_size: int,
        cache_salt: str | None = None,
        *,
        request_id: str = "request",
        lora_name: str | None = None,
        mm_items: Sequence[tuple[str, int, int]] = (),
        num_lookahead_tokens: int = 0,
    ) -> UpstreamRequest:
        """A request with the block hashes of all its complete hash blocks.

        `mm_items` are (identifier, first token, token count), ordered and disjoint. `append` on the result
        adds tokens and hashes.
        """
        request = UpstreamRequest(request_id, token_ids, cache_salt, lora_name, mm_items)
        request.attach(self.request_hashing.extender(hash_block_size, num_lookahead_tokens))
        return request

    def group_key(self, block_hash: Any, group_id: int) -> Any:
        """The key under which the pool's index keeps `block_hash` for a KV-cache group."""
        pack = getattr(self.hashing, "make_block_hash_with_group_id", None) or getattr(
            self.hashing, "BlockHashWithGroupId", None
        )
        return block_hash if pack is None else pack(block_hash, group_id)

    def event_hash(self, block_hash: Any) -> Any:
        """What events of this version carry for `block_hash` (switches of the environment are off)."""
        convert = getattr(self.hashing, "maybe_convert_block_hash", None)
        return convert(block_hash) if convert else getattr(block_hash, "hash_value", block_hash)

    def index_entries(self, pool: Any) -> dict[Any, tuple[int, ...]]:
        """The pool's index: per key the ids of its blocks, the one that a lookup returns first."""
        index = pool.cached_block_hash_to_block
        entries: dict[Any, Any] = getattr(index, "_cache", index)
        # Versions before 0.11 keep a key whose last block is gone, with an empty mapping.
        return {
            key: tuple(held) if isinstance(held, dict) else (held.block_id,)
            for key, held in entries.items()
            if not isinstance(held, dict) or held
        }

    def touch(self, pool: Any, blocks: Sequence[Any]) -> None:
        """`pool.touch`, which took one list per KV-cache group up to 0.13."""
        pool.touch((blocks,) if self.touch_takes_groups else blocks)

    def cache_full_blocks(
        self,
        pool: Any,
        request: UpstreamRequest,
        blocks: Sequence[Any],
        num_cached_blocks: int,
        num_full_blocks: int,
        block_size: int,
        kv_cache_group_id: int = 0,
        block_mask: Sequence[bool] | None = None,
    ) -> None:
        """`pool.cache_full_blocks`, with the arguments that this version takes.

        Raises TargetError when a mask is asked of a version without masks.
        """
        given: dict[str, Any] = {
            "request": request,
            "blocks": blocks,
            "num_cached_blocks": num_cached_blocks,
            "num_full_blocks": num_full_blocks,
            "block_size": block_size,
            "kv_cache_group_id": kv_cache_group_id,
            "block_hashes": request.block_hashes,
            "hash_fn": self.request_hashing.hash_function,
        }
        if block_mask is not None:
            if "block_mask" not in self.cache_full_parameters:
                raise TargetError(
                    f"cache_full_blocks of vLLM {self.version} takes no block_mask. "
                    "Pass None, or use a tree that has it (docs/vllm-versions.md)"
                )
            given["block_mask"] = block_mask
        pool.cache_full_blocks(**{k: v for k, v in given.items() if k in self.cache_full_parameters})
