"""The pool's outgoing events: builds them and keeps them until they are taken.

Replayed by a consumer, the stream yields the resident identities (P7). That holds because the pool
calls here exactly where it changes an entry; this module only gives the calls their shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .block_key import BlockHash
from .events import EventTypes
from .extra_keys import event_extra_keys, has_extra_keys

__all__ = ["EventLog"]


class EventLog:
    """Pending events of one pool, oldest first. Not used at all when events are off."""

    __slots__ = (
        "_external_hash",
        "_lookahead_tokens",
        "_make_cleared",
        "_make_removed",
        "_make_stored",
        "_medium",
        "pending",
    )

    def __init__(self, types: EventTypes, medium: str, lookahead_tokens: int) -> None:
        # Unpacked, since every event of a busy pool passes here.
        self._make_stored, self._make_removed, self._make_cleared, self._external_hash = types
        self._medium = medium
        self._lookahead_tokens = lookahead_tokens
        self.pending: list[Any] = []

    def take(self) -> list[Any]:
        """Hand over the pending events and start anew."""
        taken, self.pending = self.pending, []
        return taken

    def removed(self, block_hash: BlockHash, group_id: int) -> None:
        """A block is about to lose the entry of this hash in this group."""
        convert = self._external_hash
        external = block_hash if convert is None else convert(block_hash)
        self.pending.append(self._make_removed([external], self._medium, group_idx=group_id))

    def cleared(self) -> None:
        """Every entry is gone."""
        self.pending.append(self._make_cleared())

    def stored(
        self,
        request: Any,
        hashes: list[BlockHash],
        parent: BlockHash | None,
        start: int,
        stop: int,
        block_size: int,
        group_id: int,
        block_starts: Sequence[int] | None = None,
    ) -> None:
        """One event for `hashes` in the token range `start` to `stop`.

        `block_starts` says where the hashes' blocks begin; None if they fill the range. `hashes` is kept.
        """
        lookahead, tokens, lora = self._lookahead_tokens, request.all_token_ids, request.lora_request
        if lookahead or has_extra_keys(request):
            starts = range(start, stop, block_size) if block_starts is None else block_starts
            # Extra keys cover what the hash covers, tokens behind the block included.
            extra_keys = event_extra_keys(request, starts, block_size + lookahead)
            tokens_behind = _tokens_behind(tokens, starts, block_size, lookahead) if lookahead else None
        else:
            extra_keys, tokens_behind = [None] * len(hashes) or None, None
        external: list[Any] = hashes
        external_parent: Any = parent
        convert = self._external_hash
        if convert is not None:
            external = [convert(block_hash) for block_hash in hashes]
            external_parent = None if parent is None else convert(parent)
        self.pending.append(
            self._make_stored(
                external,
                external_parent,
                tokens[start:stop],
                block_size,
                lora.adapter_id if lora else None,
                self._medium,
                lora.name if lora else None,
                extra_keys=extra_keys,
                group_idx=group_id,
                session_id=request.session_id,
                lookahead_token_ids=tokens_behind,
            )
        )


def _tokens_behind(
    tokens: Sequence[int], block_starts: Sequence[int], block_size: int, count: int
) -> list[Sequence[int]]:
    return [tokens[start + block_size : start + block_size + count] for start in block_starts]
