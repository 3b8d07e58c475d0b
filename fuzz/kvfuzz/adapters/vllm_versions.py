"""The vLLM releases whose block pool was loaded and driven, and what each of them lacks.

The table is data for messages and for choosing a tree. `python -m kvfuzz.adapters.vllm_survey TREE ...`
measures it again and writes docs/vllm-versions.md. It owns no property.
"""

from __future__ import annotations

from collections.abc import Mapping

OPTIONAL_METHODS = (
    "evict_blocks",
    "cache_partial_block",
    "emit_cached_block_events",
    "move_block_hashes",
    "is_block_writable",
    "unpin_blocks",
)
"""Methods of BlockPool that a version may lack and still be driven, in the order in which they came."""

NOT_LOADED: Mapping[str, str] = {
    "0.8.5": "the module `vllm.distributed.kv_events`",
    "0.9.0.1": "`kv_cache_group_id` of `cache_full_blocks`, `kv_cache_group_ids` of `get_cached_block`",
}
"""Releases that were tried and are refused, with what they lack."""

_LOADED_BY_METHOD_COUNT: Mapping[int, str] = {
    0: "0.9.1 0.9.2 0.10.0 0.10.1 0.10.2 0.11.0 0.11.2 0.12.0",
    1: "0.13.0 0.14.1 0.15.1 0.16.0 0.17.1 0.18.1 0.19.0 0.19.1 0.20.0 0.20.1 0.20.2 0.21.0 0.22.0 0.22.1 0.23.0",
    2: "0.24.0 0.25.0 0.25.1",
    4: "0.26.0 0.27.0 0.27.1 0.28.0",
    5: "0.29.0",
    6: "0.30.0 0.31.0 0.32.0 0.33.0",
}

TRIED: Mapping[str, tuple[str, ...]] = {
    version: OPTIONAL_METHODS[count:]
    for count, versions in _LOADED_BY_METHOD_COUNT.items()
    for version in versions.split()
}
"""Releases that load, oldest first, with the optional methods that each lacks."""


def tried_versions() -> str:
    """The releases that load, for a message: how many, the first and the last."""
    versions = list(TRIED)
    return f"{len(versions)} releases from {versions[0]} to {versions[-1]} (docs/vllm-versions.md)"
