"""Everything besides tokens that changes the KV of a block.

Two requests with equal tokens may have different KV: another LoRA adapter, another image behind equal
placeholders, a tenant's cache salt, prompt embeddings, other weights. Each source yields a tagged key; the hasher
feeds the tagged keys to the hash, events carry the older untagged shapes that consumers parse.

This module collects keys; it does not hash them (`prefix_hash`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["ExtraKey", "event_extra_keys", "has_extra_keys", "request_extra_keys"]

# (tag, value, ...): the tag names the source, the values are str, bytes, int or None.
ExtraKey = tuple[Any, ...]

LORA, MULTIMODAL, CACHE_SALT, PROMPT_EMBEDS, WEIGHT_EPOCH = (
    "lora",
    "mm",
    "cache_salt",
    "prompt_embeds",
    "weight_epoch",
)


def has_extra_keys(request: Any) -> bool:
    """Whether any block of `request` may have an extra key."""
    if request.mm_features or request.lora_request or request.cache_salt:
        return True
    return (
        getattr(request, "prompt_embeds_digest", None) is not None or getattr(request, "weight_epoch", None) is not None
    )


def request_extra_keys(request: Any, start: int, end: int) -> tuple[ExtraKey, ...]:
    """Tagged keys of the tokens `start` to `end` (exclusive): LoRA, multimodal, salt, embeddings, weights.

    The salt is part of the first block only, since the hash chain carries it on. A multimodal item is
    named with its offset relative to `start`, so that one item at two places differs.
    """
    keys: list[ExtraKey] = []
    lora = request.lora_request
    if lora:
        keys.append((LORA, lora.adapter_id, lora.name, getattr(lora, "lora_path", "") or ""))
    keys += _multimodal_keys(request.mm_features, start, end)
    if start == 0 and request.cache_salt:
        keys.append((CACHE_SALT, request.cache_salt))
    digest_of = getattr(request, "prompt_embeds_digest", None)
    if digest_of is not None:
        digest = digest_of(start, end)
        if digest is not None:
            keys.append((PROMPT_EMBEDS, digest))
    epoch = getattr(request, "weight_epoch", None)
    if epoch is not None:
        keys.append((WEIGHT_EPOCH, epoch))
    return tuple(keys)


def _multimodal_keys(features: Sequence[Any], start: int, end: int) -> list[ExtraKey]:
    keys: list[ExtraKey] = []
    for feature in features or ():
        position = feature.mm_position
        if position.offset >= end:
            break
        if position.offset + position.length > start:
            keys.append((MULTIMODAL, feature.identifier, position.offset - start))
    return keys


def event_extra_keys(request: Any, block_starts: Sequence[int], num_tokens: int) -> list[tuple[Any, ...] | None] | None:
    """What an event says about the `num_tokens` tokens from each start on.

    Bare names, salts and digests, and (identifier, offset) pairs; None for a block without keys, None altogether
    without blocks. The weight epoch stays out: consumers learn of new weights through AllBlocksCleared.
    """
    return [_untagged(request_extra_keys(request, start, start + num_tokens)) for start in block_starts] or None


def _untagged(keys: tuple[ExtraKey, ...]) -> tuple[Any, ...] | None:
    shapes: list[Any] = []
    for key in keys:
        if key[0] == LORA:
            shapes.append(key[2])
        elif key[0] == MULTIMODAL:
            shapes.append(key[1:])
        elif key[0] != WEIGHT_EPOCH:
            shapes.append(key[1])
    return tuple(shapes) or None
