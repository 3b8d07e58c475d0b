"""The pool's outgoing events: builds them and keeps them until they are taken.

Replayed by a consumer, the stream yields the resident identities (P7). That holds because the pool
calls here exactly where it changes an entry; this module only gives the calls their shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .block_key import BlockHash
from .events import EventTypes
from .extra_keys import event_extra_keys

__all__ = ["EventLog"]


class EventLog:
    """Pending events of one pool, oldest first. Not used at all when events are off."""

    __slots__ = ("lookahead_tokens", "medium", "pending", "types")

    def __init__(self, types: EventTypes, medium: str, lookahead_tokens: int) -> None:
        self.types = types
        self.medium = medium
        self.lookahead_tokens = lookahead_tokens
        self.pending: list[Any] = []

    def take(self) -> list[Any]:
        """Hand over the pending events and start anew."""
        taken, self.pending = self.pending, []
        return taken

    def removed(self, entries: Iterable[tuple[BlockHash, int]]) -> None:
        """One event per (hash, group) that a block is about to lose."""
        convert, make, medium = self.types.external_hash, self.types.removed, self.medium
        for block_hash, group_id in entries:
            external = block_hash if convert is None else convert(block_hash)
            self.pending.append(make(block_hashes=[external], medium=medium, group_idx=group_id))

    def cleared(self) -> None:
        """Every entry is gone."""
        self.pending.append(self.types.cleared())

    def stored(
        self,
        request: Any,
        hashes: list[BlockHash],
        parent: BlockHash | None,
        span: tuple[int, int],
        block_size: int,
        block_starts: Sequence[int],
        group_id: int,
    ) -> None:
        """One event for `hashes`, whose blocks begin at `block_starts`; `span` is the whole token range."""
        lookahead, tokens = self.lookahead_tokens, request.all_token_ids
        lora = request.lora_request
        self.pending.append(
            self.types.stored(
                block_hashes=self._external(hashes),
                parent_block_hash=None if parent is None else self._external([parent])[0],
                token_ids=tokens[span[0] : span[1]],
                block_size=block_size,
                lora_id=lora.adapter_id if lora else None,
                medium=self.medium,
                lora_name=lora.name if lora else None,
                # Extra keys cover what the hash covers, tokens beyond the block included.
                extra_keys=event_extra_keys(request, [(s, s + block_size + lookahead) for s in block_starts]),
                group_idx=group_id,
                session_id=getattr(request, "session_id", None),
                lookahead_token_ids=[
                    tokens[s + block_size : s + block_size + lookahead] for s in block_starts
                ]
                if lookahead
                else None,
            )
        )

    def _external(self, hashes: list[BlockHash]) -> list[Any]:
        convert = self.types.external_hash
        return hashes if convert is None else [convert(block_hash) for block_hash in hashes]
