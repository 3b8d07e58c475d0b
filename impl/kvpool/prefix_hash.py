"""Prefix hashes: a name for "these tokens, behind that prefix, with everything else that changes their KV".

A hash chains over its parent, so it names the whole prefix up to its boundary. The hashed bytes are

    header | parent digest | tokens, four bytes each, little endian | extra keys | tokens behind the block

where the header fixes the scheme, the block size, the number of tokens behind the block and whether
extra keys follow. Every other field has a fixed length, or carries its tag and its length in front, so no value
can be read as a part of its neighbour: equal bytes mean equal fields. The first parent is the digest of the
seed. Nothing is read from the environment or from Python's randomised `hash`: equal settings give equal
hashes in every process, on every machine.

Group ids are appended to a hash later (`block_key`). What counts as an extra key is decided in `extra_keys`.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from .block_key import BlockHash
from .errors import HashInputError
from .extra_keys import ExtraKey, has_extra_keys, request_extra_keys

__all__ = ["DigestFunction", "PrefixHasher", "digest_function"]

DigestFunction = Callable[[bytes], bytes]

SCHEME = b"kvpool.prefix.1"
TOKEN_ID_MAX = 2**32 - 1
TOKEN_BYTES = 4
_BIG_ENDIAN = sys.byteorder == "big"
# The C type behind a type code varies, its size is what matters.
_TOKEN_TYPECODE = next(code for code in "IL" if array(code).itemsize == TOKEN_BYTES)
_PACKED_ONE = (1).to_bytes(TOKEN_BYTES, "little")
_PACKED_ZERO = bytes(TOKEN_BYTES)


class PrefixHasher:
    """Hashes blocks of `hash_block_size` tokens into chains.

    `algorithm` is "sha256", "blake2b" (32-byte digests), "xxhash" (if that package is installed) or any function
    from bytes to a digest of constant length. `seed` separates caches that must not share entries. With
    `num_lookahead_tokens`, each hash also covers that many tokens behind its block, for drafters whose KV depends
    on them. xxhash is not collision resistant, so it needs a seed that others cannot guess.

    Raises HashInputError for settings, tokens or keys that cannot be hashed without ambiguity.
    """

    __slots__ = (
        "_digest",
        "_keyed_header",
        "_plain_header",
        "hash_block_size",
        "num_lookahead_tokens",
        "root",
    )

    def __init__(
        self,
        hash_block_size: int,
        algorithm: str | DigestFunction = "sha256",
        seed: bytes = b"",
        num_lookahead_tokens: int = 0,
    ) -> None:
        if type(hash_block_size) is not int or hash_block_size < 1:
            raise HashInputError(
                f"hasher refused: hash_block_size is {hash_block_size!r}; expected a positive integer of tokens."
            )
        if type(num_lookahead_tokens) is not int or num_lookahead_tokens < 0:
            raise HashInputError(
                f"hasher refused: num_lookahead_tokens is {num_lookahead_tokens!r}; expected an integer of at least 0."
            )
        if algorithm == "xxhash" and not seed:
            raise HashInputError(
                "hasher refused: xxhash with an empty seed; expected secret bytes, since colliding prompts can be "
                "computed for a known seed. Pass seed=os.urandom(32), the same for all processes that share a cache."
            )
        self.hash_block_size = hash_block_size
        self.num_lookahead_tokens = num_lookahead_tokens
        self._digest = digest_function(algorithm) if isinstance(algorithm, str) else algorithm
        self.root: BlockHash = self._digest(SCHEME + b"\x00root" + _sized(seed))
        settings = (
            SCHEME
            + b"\x00block"
            + hash_block_size.to_bytes(8, "big")
            + num_lookahead_tokens.to_bytes(8, "big")
        )
        settings += len(self.root).to_bytes(8, "big")
        self._plain_header = settings + b"\x00"
        self._keyed_header = settings + b"\x01"

    def hash_block(
        self,
        parent: BlockHash | None,
        token_ids: Sequence[int],
        extra_keys: Sequence[ExtraKey] = (),
        lookahead_token_ids: Sequence[int] = (),
    ) -> BlockHash:
        """The hash of one block behind `parent` (None: at the start of a prompt).

        `token_ids` has exactly one block of tokens, `lookahead_token_ids` as many as the hasher was built for.
        """
        if len(token_ids) != self.hash_block_size or len(lookahead_token_ids) != self.num_lookahead_tokens:
            raise HashInputError(
                f"hash refused: {len(token_ids)} tokens and {len(lookahead_token_ids)} behind them; expected "
                f"{self.hash_block_size} and {self.num_lookahead_tokens}. Hash complete blocks only."
            )
        if parent is None:
            parent = self.root
        elif len(parent) != len(self.root):
            raise HashInputError(
                f"hash refused: the parent has {len(parent)} bytes; expected a hash of this hasher, "
                f"{len(self.root)} bytes. Do not mix algorithms in one chain."
            )
        tokens = _packed(token_ids)
        if lookahead_token_ids:
            tokens_behind = _packed(lookahead_token_ids)
            if extra_keys:
                return self._digest(
                    self._keyed_header + parent + tokens + _encoded(extra_keys) + tokens_behind
                )
            return self._digest(self._plain_header + parent + tokens + tokens_behind)
        if extra_keys:
            return self._digest(self._keyed_header + parent + tokens + _encoded(extra_keys))
        return self._digest(self._plain_header + parent + tokens)

    def __call__(self, request: Any) -> list[BlockHash]:
        """Hashes of the complete blocks of `request` that it has no hash for yet; the request is left alone.

        A block is complete once the tokens that its hash covers are known, those behind it included.
        """
        size, behind = self.hash_block_size, self.num_lookahead_tokens
        known: Sequence[BlockHash] = request.block_hashes
        tokens = request.all_token_ids
        start, available = len(known) * size, len(tokens) - behind
        if start + size > available:
            return []
        stop = start + (available - start) // size * size
        if behind or has_extra_keys(request):
            return self._keyed_run(request, start, stop)
        # Without extra keys a run is packed and checked once.
        packed, header, digest = _packed(tokens[start:stop]), self._plain_header, self._digest
        parent = known[-1] if known else self.root
        hashes: list[BlockHash] = []
        step = size * TOKEN_BYTES
        for at in range(0, len(packed), step):
            parent = digest(header + parent + packed[at : at + step])
            hashes.append(parent)
        return hashes

    def _keyed_run(self, request: Any, start: int, stop: int) -> list[BlockHash]:
        size, behind = self.hash_block_size, self.num_lookahead_tokens
        tokens = request.all_token_ids
        parent = request.block_hashes[-1] if request.block_hashes else None
        hashes: list[BlockHash] = []
        for at in range(start, stop, size):
            end = at + size
            keys = request_extra_keys(request, at, end + behind)
            parent = self.hash_block(parent, tokens[at:end], keys, tokens[end : end + behind])
            hashes.append(parent)
        return hashes


def digest_function(name: str) -> DigestFunction:
    """The digest called `name`; HashInputError if there is none or its package is not installed."""
    if name == "sha256":
        return _sha256
    if name == "blake2b":
        return _blake2b
    if name == "xxhash":
        try:
            import xxhash
        except ImportError as error:
            raise HashInputError(
                "hasher refused: algorithm 'xxhash' needs the package xxhash, which is not installed. "
                "Install it, or use 'sha256'."
            ) from error
        digest: DigestFunction = xxhash.xxh3_128_digest
        return digest
    raise HashInputError(
        f"hasher refused: unknown algorithm {name!r}; expected 'sha256', 'blake2b', 'xxhash' or a function."
    )


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _blake2b(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=32).digest()


def _packed(token_ids: Sequence[int]) -> bytes:
    """Token ids as four little-endian bytes each."""
    try:
        tokens = array(_TOKEN_TYPECODE, token_ids)
    except (TypeError, OverflowError, ValueError) as error:
        raise _bad_token(token_ids) from error
    if _BIG_ENDIAN:
        tokens.byteswap()
    packed = tokens.tobytes()
    # An array takes True for 1. Packed bytes without a 1 or a 0 cannot come from a bool, and searching them
    # is much cheaper than looking at every type. Hits at odd offsets only cost the closer look.
    if _PACKED_ONE in packed or _PACKED_ZERO in packed:
        for token in token_ids:
            if isinstance(token, bool):
                raise _bad_token(token_ids)
    return packed


def _bad_token(token_ids: Sequence[Any]) -> HashInputError:
    for place, token in enumerate(token_ids):
        if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token <= TOKEN_ID_MAX:
            return HashInputError(
                f"hash refused: token {place} of {len(token_ids)} is {token!r} ({type(token).__name__}); expected an "
                f"integer from 0 to {TOKEN_ID_MAX}. Convert token ids before hashing."
            )
    return HashInputError(
        f"hash refused: {type(token_ids).__name__} is not a sequence of token ids. Pass a list."
    )


def _encoded(extra_keys: Sequence[ExtraKey]) -> bytes:
    """Keys as bytes that can be read back: counts, tags and lengths stand before what they describe."""
    parts = [len(extra_keys).to_bytes(8, "big")]
    for key in extra_keys:
        parts.append(len(key).to_bytes(8, "big"))
        parts.extend(map(_encoded_value, key))
    return b"".join(parts)


def _encoded_value(value: Any) -> bytes:
    if value is None:
        return b"n"
    if isinstance(value, str):
        return b"s" + _sized(value.encode())
    if isinstance(value, bytes):
        return b"b" + _sized(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return b"i" + _sized(str(value).encode())
    raise HashInputError(
        f"hash refused: extra key value {value!r} is a {type(value).__name__}; expected str, bytes, int or None. "
        "Pass a digest of the object instead."
    )


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data
