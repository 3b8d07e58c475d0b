"""Prefix hashes: a name for "these tokens, behind that prefix, with everything else that changes their KV".

A hash chains over its parent, so it names the whole prefix up to its boundary. The hashed bytes are

    header | parent digest | tokens, four bytes each, little endian | tokens behind the block | extra keys

where the header holds the block size, the number of tokens behind the block and whether extra keys follow.
Every other field has a fixed length, or carries its tag and its length in front, so no value can be read as a
part of its neighbour: equal bytes mean equal fields. The first parent is the digest of scheme and seed.
Nothing is read from the environment or from Python's randomised `hash`: equal settings give equal hashes in
every process, on every machine.

Group ids are appended to a hash later (`block_key`). What counts as an extra key is decided in `extra_keys`.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Callable, Sequence
from importlib import import_module
from struct import iter_unpack
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
# Above this many candidates in one run it is cheaper to look at the type of every token.
MAYBE_BOOLS_MAX = 64


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
        _check_settings(hash_block_size, algorithm, seed, num_lookahead_tokens)
        self.hash_block_size = hash_block_size
        self.num_lookahead_tokens = num_lookahead_tokens
        self._digest = digest_function(algorithm) if isinstance(algorithm, str) else algorithm
        # Short headers: SHA-256 works in steps of 64 bytes, and 16 tokens then fit into two.
        settings = hash_block_size.to_bytes(4, "big") + num_lookahead_tokens.to_bytes(4, "big")
        self._plain_header = b"\x00" + settings
        self._keyed_header = b"\x01" + settings
        self.root: BlockHash = self._digest(b"\x02" + SCHEME + settings + _sized(seed))
        if not isinstance(self.root, bytes) or not self.root:
            raise HashInputError(
                f"hasher refused: the digest function returned {self.root!r}; expected bytes of constant length."
            )

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
        data = parent + _packed(token_ids)
        if lookahead_token_ids:
            data += _packed(lookahead_token_ids)
        if extra_keys:
            return self._digest(self._keyed_header + data + _encoded(extra_keys))
        return self._digest(self._plain_header + data)

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
        blocks = iter_unpack(f"{size * TOKEN_BYTES}s", packed)
        if digest is _sha256:
            # The default does without a Python call per block.
            sha256 = hashlib.sha256
            for (block,) in blocks:
                parent = sha256(header + parent + block).digest()
                hashes.append(parent)
        else:
            for (block,) in blocks:
                parent = digest(header + parent + block)
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


def _check_settings(size: int, algorithm: str | DigestFunction, seed: bytes, num_lookahead_tokens: int) -> None:
    for name, value, lowest in (("hash_block_size", size, 1), ("num_lookahead_tokens", num_lookahead_tokens, 0)):
        if type(value) is not int or not lowest <= value < 2**32:
            raise HashInputError(
                f"hasher refused: {name} is {value!r}; expected an integer from {lowest} to 2**32 - 1. "
                "Give numbers of tokens."
            )
    if not isinstance(seed, bytes):
        raise HashInputError(
            f"hasher refused: seed is a {type(seed).__name__}; expected bytes. Encode text before passing it."
        )
    if algorithm == "xxhash" and not seed:
        raise HashInputError(
            "hasher refused: xxhash with an empty seed; expected secret bytes, since colliding prompts can be computed "
            "for a known seed. Pass seed=os.urandom(32), the same for all processes that share a cache."
        )


def digest_function(name: str) -> DigestFunction:
    """The digest called `name`; HashInputError if there is none or its package is not installed."""
    if name == "sha256":
        return _sha256
    if name == "blake2b":
        return _blake2b
    if name == "xxhash":
        try:
            # By name, since this package is optional and the pool needs nothing but the standard library.
            xxhash = import_module("xxhash")
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
    if _has_bool(token_ids, packed[::TOKEN_BYTES]):
        raise _bad_token(token_ids)
    return packed


def _has_bool(token_ids: Sequence[int], low_bytes: bytes) -> bool:
    """Whether a token is a bool, which an array takes for 0 or 1; `low_bytes` holds the lowest byte of each.

    Looking at every type would take longer than hashing, but only tokens whose lowest byte is 0 or 1 can be bools,
    and those few are found quickly.
    """
    looks_left = MAYBE_BOOLS_MAX
    for low_byte in (0, 1):
        place = low_bytes.find(low_byte)
        while place >= 0:
            if type(token_ids[place]) is bool:
                return True
            looks_left -= 1
            if not looks_left:
                return bool in set(map(type, token_ids))
            place = low_bytes.find(low_byte, place + 1)
    return False


def _bad_token(token_ids: Sequence[Any]) -> HashInputError:
    for place, token in enumerate(token_ids):
        if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token <= TOKEN_ID_MAX:
            return HashInputError(
                f"hash refused: token {place} of {len(token_ids)} is {token!r} ({type(token).__name__}); expected an "
                f"integer from 0 to {TOKEN_ID_MAX}. Convert token ids before hashing."
            )
    return HashInputError(f"hash refused: {type(token_ids).__name__} is not a sequence of token ids. Pass a list.")


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
