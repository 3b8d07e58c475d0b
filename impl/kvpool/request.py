"""What the pool and the prefix hasher read of a request.

`RequestView` is the reading side: any engine's request with these attributes will do. `Request` is a
small record with the same attributes, for adapters and tests. Neither schedules anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .block_key import BlockHash

__all__ = ["LoraAdapter", "MultimodalFeature", "PlaceholderRange", "Request", "RequestView"]


@dataclass(frozen=True, slots=True)
class LoraAdapter:
    """A LoRA adapter: equal KV needs equal id, name and path."""

    adapter_id: int
    name: str
    lora_path: str = ""


@dataclass(frozen=True, slots=True)
class PlaceholderRange:
    """Where a multimodal item sits in the prompt, in tokens."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class MultimodalFeature:
    """One multimodal item: a digest of its content and its place."""

    identifier: str
    mm_position: PlaceholderRange


class RequestView(Protocol):
    """Attributes that `BlockPool` reads. `mm_features` is sorted by offset."""

    @property
    def block_hashes(self) -> Sequence[BlockHash]: ...
    @property
    def all_token_ids(self) -> Sequence[int]: ...
    @property
    def mm_features(self) -> Sequence[Any]: ...
    @property
    def lora_request(self) -> Any: ...
    @property
    def cache_salt(self) -> str | None: ...
    @property
    def session_id(self) -> str | None: ...


@dataclass(slots=True)
class Request:
    """A request as far as KV reuse is concerned.

    `prompt_embeds_digest(start, end)` returns a digest of the prompt embeddings at those token positions, or
    None where there are none. `weight_epoch` names the weights that compute the KV; None leaves it out
    of the hashes. `hasher`, if given, fills `block_hashes` at creation and after each `append`.
    """

    request_id: str
    all_token_ids: list[int]
    block_hashes: list[BlockHash] = field(default_factory=list)
    mm_features: Sequence[MultimodalFeature] = ()
    lora_request: LoraAdapter | None = None
    cache_salt: str | None = None
    session_id: str | None = None
    prompt_embeds_digest: Callable[[int, int], bytes | None] | None = None
    weight_epoch: int | None = None
    hasher: Callable[[Request], list[BlockHash]] | None = None

    def __post_init__(self) -> None:
        self._hash_new_blocks()

    @property
    def num_tokens(self) -> int:
        """Tokens known so far."""
        return len(self.all_token_ids)

    def append(self, token_ids: Sequence[int]) -> None:
        """Add tokens and the hashes of the blocks that they complete."""
        self.all_token_ids.extend(token_ids)
        self._hash_new_blocks()

    def _hash_new_blocks(self) -> None:
        if self.hasher is not None:
            self.block_hashes.extend(self.hasher(self))
