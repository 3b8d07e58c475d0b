"""The two pools under comparison, behind one small constructor each.

Both pools are driven through the same method names with the same request objects, so a row measures the
pools and nothing else. The vLLM side is loaded unmodified from a source tree.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvpool import BlockPool, PrefixHasher

HASH_BYTES = 32


class BenchRequest:
    """A plain request: every attribute that either pool reads, and nothing that changes KV besides tokens."""

    __slots__ = (
        "_prompt_embeds_per_block_hashes",
        "all_token_ids",
        "block_hashes",
        "cache_salt",
        "lora_request",
        "mm_features",
        "num_tokens",
        "prompt_embeds",
        "session_id",
    )

    def __init__(self, block_hashes: Sequence[bytes], num_tokens: int) -> None:
        self.block_hashes = block_hashes
        self.all_token_ids = list(range(1000, 1000 + num_tokens))
        self.num_tokens = num_tokens
        self.mm_features: list[Any] = []
        self.lora_request = None
        self.cache_salt = None
        self.session_id = None
        self.prompt_embeds = None
        self._prompt_embeds_per_block_hashes: dict[tuple[int, int], bytes] = {}


def fresh_hashes(count: int) -> list[bytes]:
    """Hashes that no pool has seen."""
    return [os.urandom(HASH_BYTES) for _ in range(count)]


@dataclass(frozen=True)
class Contender:
    """How to build one side's pool and hasher, and how it looks up a prefix."""

    name: str
    make_pool: Callable[[int, bool, int, bool], Any]
    # SHA-256 over blocks of so many tokens: from a request to the hashes that it still lacks.
    make_hasher: Callable[[int], Callable[[Any], list[bytes]]]
    # The longest run of hits of a list of hashes in one group.
    lookup_run: Callable[[Any, list[bytes]], Sequence[Any]]


def own_pool() -> Contender:
    """kvpool's side."""
    return Contender(
        name="kvpool",
        make_pool=BlockPool,
        make_hasher=PrefixHasher,
        lookup_run=lambda pool, hashes: pool.get_cached_blocks(hashes, [0])[0],
    )


def upstream_pool(tree: Path) -> Contender:
    """vLLM's side, from the source tree at `tree`."""
    from kvfuzz.adapters.vllm_tree import load_tree

    upstream = load_tree(tree)
    hashing = upstream.hashing
    sha256 = hashing.xxhash.__globals__["sha256"]

    def lookup_run(pool: Any, hashes: list[bytes]) -> list[Any]:
        # How upstream's managers walk a prefix.
        run = []
        for block_hash in hashes:
            hit = pool.get_cached_block(block_hash, [0])
            if hit is None:
                break
            run.append(hit[0])
        return run

    return Contender(
        name=f"vLLM {upstream.version}",
        make_pool=upstream.BlockPool,
        make_hasher=lambda block_size: hashing.get_request_block_hasher(block_size, sha256),
        lookup_run=lookup_run,
    )
