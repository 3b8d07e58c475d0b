"""A request as the block pool of vLLM sees it: tokens, what else changes their KV, and their block hashes.

The hashes are computed by the tree's own functions. What this is not: a schedulable request; it has only the
attributes that the pool and the hashing functions of the supported versions read. It owns no property.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

from kvfuzz.errors import TargetError

BlockHashes = list[Any]


class UpstreamRequest:
    """The attributes are vLLM's, old and new names side by side; `block_hashes` grows with the tokens."""

    def __init__(
        self,
        request_id: str,
        token_ids: Sequence[int],
        cache_salt: str | None,
        lora_name: str | None,
        mm_items: Sequence[tuple[str, int, int]],
    ) -> None:
        self.request_id = request_id
        self.all_token_ids = list(token_ids)
        self.cache_salt = cache_salt
        self.lora_request = _lora(lora_name) if lora_name else None
        self.mm_features = [
            SimpleNamespace(identifier=name, mm_position=SimpleNamespace(offset=offset, length=length))
            for name, offset, length in mm_items
        ]
        self.mm_positions = [feature.mm_position for feature in self.mm_features]
        self.mm_hashes = [feature.identifier for feature in self.mm_features]
        self.prompt_embeds = None
        self.session_id = None
        self.block_hashes: BlockHashes = []
        self._extend: Callable[[UpstreamRequest], None] | None = None

    @property
    def num_tokens(self) -> int:
        return len(self.all_token_ids)

    def append(self, token_ids: Sequence[int]) -> None:
        """Add generated tokens; the hashes of the blocks that they complete are added too."""
        self.all_token_ids.extend(token_ids)
        if self._extend is not None:
            self._extend(self)

    def attach(self, extend: Callable[[UpstreamRequest], None]) -> None:
        """Set the function that brings `block_hashes` up to date with the tokens, and run it."""
        self._extend = extend
        extend(self)


class RequestHashing:
    """How one tree hashes requests. `hashing` is its kv_cache_utils module, `hash_function` its sha256."""

    def __init__(self, hashing: ModuleType, hash_function: Callable[[Any], Any]) -> None:
        self._hashing = hashing
        self.hash_function = hash_function
        if hasattr(hashing, "init_none_hash"):
            with reproducible_seed():
                hashing.init_none_hash(hash_function)

    def extender(self, hash_block_size: int, num_lookahead_tokens: int) -> Callable[[UpstreamRequest], None]:
        """A function that appends the missing hashes of a request, one per `hash_block_size` tokens.

        Raises TargetError when lookahead is asked of a version that does not know it.
        """
        make_hasher = getattr(self._hashing, "get_request_block_hasher", None)
        if make_hasher is None:
            return lambda request: self._rehash(request, hash_block_size)
        if num_lookahead_tokens == 0:
            hasher = make_hasher(hash_block_size, self.hash_function)
        else:
            try:
                hasher = make_hasher(hash_block_size, self.hash_function, num_lookahead_tokens)
            except TypeError as error:
                raise TargetError(
                    f"this vLLM cannot hash {num_lookahead_tokens} lookahead tokens: its "
                    "get_request_block_hasher takes no such argument. Use 0, or a tree of 0.33.0 or later"
                ) from error
        return lambda request: request.block_hashes.extend(hasher(request))

    def _rehash(self, request: UpstreamRequest, hash_block_size: int) -> None:
        """Versions before 0.10.1 only hash a whole request."""
        hashes = self._hashing.hash_request_tokens(self.hash_function, hash_block_size, request)
        request.block_hashes.extend(hashes[len(request.block_hashes) :])


@contextmanager
def reproducible_seed() -> Iterator[None]:
    """Give vLLM a fixed seed for its first parent hash, unless the environment sets one.

    Several versions draw it from the system's randomness otherwise, and two runs of one trace would differ.
    """
    if "PYTHONHASHSEED" in os.environ:
        yield
        return
    os.environ["PYTHONHASHSEED"] = "0"
    try:
        yield
    finally:
        del os.environ["PYTHONHASHSEED"]


def _lora(name: str) -> SimpleNamespace:
    number = zlib.crc32(name.encode()) or 1
    return SimpleNamespace(
        id=number,
        adapter_id=number,
        lora_int_id=number,
        name=name,
        lora_name=name,
        lora_path=f"/adapters/{name}",
    )
