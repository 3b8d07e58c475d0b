"""Events that tell other processes which prefixes this pool holds.

Plain records with upstream's field names, in upstream's order. `EventTypes` names the classes that a
pool emits, so that an adapter can have it emit a publisher's own classes instead. Nothing here
decides when an event is due: that is the pool's part of P7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from .block_key import BlockHash

__all__ = ["AllBlocksCleared", "BlockRemoved", "BlockStored", "EventTypes", "ExternalHash", "KVCacheEvent"]

# Some consumers want integers; the pool itself always works on bytes.
ExternalHash = bytes | int

_new = object.__new__


@dataclass(slots=True)
class KVCacheEvent:
    """Common type of all events."""


@dataclass(slots=True)
class BlockStored(KVCacheEvent):
    """Blocks became resident under `block_hashes`, in prefix order.

    `token_ids` covers the whole range of the call, skipped blocks included. `parent_block_hash` is the
    hash just before the range, None at the start. `extra_keys` has one entry per hash: a tuple of LoRA
    name, (multimodal identifier, offset) pairs, cache salt and prompt-embedding digest, or None.
    `lookahead_token_ids` has one list per hash when hashes cover tokens beyond their block.
    """

    block_hashes: list[ExternalHash]
    parent_block_hash: ExternalHash | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None
    medium: str | None
    lora_name: str | None
    extra_keys: list[tuple[Any, ...] | None] | None = None
    group_idx: int | None = None
    kv_cache_spec_kind: str | None = None
    kv_cache_spec_sliding_window: int | None = None
    locality: str | None = None
    ownership: str | None = None
    session_id: str | None = None
    lookahead_token_ids: list[list[int]] | None = None


@dataclass(slots=True)
class BlockRemoved(KVCacheEvent):
    """One block stopped being resident under each of `block_hashes` in group `group_idx`."""

    block_hashes: list[ExternalHash]
    medium: str | None
    group_idx: int | None = None
    locality: str | None = None
    ownership: str | None = None


@dataclass(slots=True)
class AllBlocksCleared(KVCacheEvent):
    """Nothing is resident any more."""


def make_block_stored(
    block_hashes: list[ExternalHash],
    parent_block_hash: ExternalHash | None,
    token_ids: list[int],
    block_size: int,
    lora_id: int | None,
    medium: str | None,
    lora_name: str | None,
    extra_keys: list[tuple[Any, ...] | None] | None,
    group_idx: int,
    session_id: str | None,
    lookahead_token_ids: list[list[int]] | None,
) -> BlockStored:
    """A BlockStored, made in half the time that a call of the class with keywords takes."""
    event = _new(BlockStored)
    event.block_hashes = block_hashes
    event.parent_block_hash = parent_block_hash
    event.token_ids = token_ids
    event.block_size = block_size
    event.lora_id = lora_id
    event.medium = medium
    event.lora_name = lora_name
    event.extra_keys = extra_keys
    event.group_idx = group_idx
    event.session_id = session_id
    event.lookahead_token_ids = lookahead_token_ids
    event.kv_cache_spec_kind = event.kv_cache_spec_sliding_window = event.locality = event.ownership = None
    return event


def make_block_removed(block_hashes: list[ExternalHash], medium: str | None, group_idx: int) -> BlockRemoved:
    """A BlockRemoved, made in half the time that a call of the class with keywords takes."""
    event = _new(BlockRemoved)
    event.block_hashes = block_hashes
    event.medium = medium
    event.group_idx = group_idx
    event.locality = event.ownership = None
    return event


class EventTypes(NamedTuple):
    """What a pool calls to build its events: classes or functions.

    They are given upstream's required fields by position (seven for `stored`, two for `removed`) and
    `extra_keys`, `group_idx`, `session_id` and `lookahead_token_ids` by keyword, where they apply.
    `external_hash` turns a block hash into what consumers expect; None passes the bytes through.
    """

    stored: Callable[..., Any] = make_block_stored
    removed: Callable[..., Any] = make_block_removed
    cleared: Callable[[], Any] = AllBlocksCleared
    external_hash: Callable[[BlockHash], ExternalHash] | None = None
