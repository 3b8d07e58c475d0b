"""Prefix hashes: equal content gives equal hashes everywhere, and nothing else does."""

import hashlib
import itertools
import os
import struct
import subprocess
import sys
from array import array
from collections.abc import Callable
from typing import Any

import pytest

from kvpool import HashInputError, LoraAdapter, MultimodalFeature, PlaceholderRange, PrefixHasher, Request
from kvpool.extra_keys import request_extra_keys

TOKENS = list(range(100, 112))


def hashes(hasher: PrefixHasher | None = None, tokens: list[int] = TOKENS, **request: Any) -> list[bytes]:
    return (hasher or PrefixHasher(4))(Request("r", list(tokens), **request))


def image(identifier: str, offset: int, length: int = 2) -> MultimodalFeature:
    return MultimodalFeature(identifier, PlaceholderRange(offset, length))


# Requests with one token sequence and different KV. Every pair must differ in the last hash.
DISTINCT: dict[str, dict[str, Any]] = {
    "plain": {},
    "salt": {"cache_salt": "a"},
    "other salt": {"cache_salt": "b"},
    "lora": {"lora_request": LoraAdapter(1, "a")},
    "lora of equal name": {"lora_request": LoraAdapter(2, "a")},
    "lora of equal id": {"lora_request": LoraAdapter(1, "b")},
    "lora of other path": {"lora_request": LoraAdapter(1, "a", "v2")},
    "lora with path in its name": {"lora_request": LoraAdapter(1, "av2")},
    "lora named like a salt": {"lora_request": LoraAdapter(1, "cache_salt")},
    "image": {"mm_features": [image("a", 1)]},
    "other image": {"mm_features": [image("b", 1)]},
    "image one token later": {"mm_features": [image("a", 2)]},
    "image with an offset in its name": {"mm_features": [image("a1", 1)]},
    "image in the second block": {"mm_features": [image("a", 5)]},
    "image in both blocks": {"mm_features": [image("a", 1, 6)]},
    "two images": {"mm_features": [image("a", 1, 1), image("b", 2, 1)]},
    "two images swapped": {"mm_features": [image("b", 1, 1), image("a", 2, 1)]},
    "two images glued": {"mm_features": [image("ab", 1, 1)]},
    "image named like the salt": {"mm_features": [image("a", 0)]},
    "salt and image": {"cache_salt": "a", "mm_features": [image("a", 1)]},
    "embeds": {"prompt_embeds_digest": lambda start, end: b"a"},
    "other embeds": {"prompt_embeds_digest": lambda start, end: b"b"},
    "embeds of one block": {"prompt_embeds_digest": lambda start, end: b"a" if start == 4 else None},
    "epoch 0": {"weight_epoch": 0},
    "epoch 1": {"weight_epoch": 1},
    "epoch and salt": {"weight_epoch": 0, "cache_salt": "0"},
}


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(DISTINCT, 2)])
def test_requests_with_different_kv_share_no_hash_beyond_what_they_share(one: str, other: str) -> None:
    assert hashes(**DISTINCT[one])[-1] != hashes(**DISTINCT[other])[-1]


@pytest.mark.parametrize("name", DISTINCT)
def test_equal_requests_have_equal_hashes(name: str) -> None:
    assert hashes(**DISTINCT[name]) == hashes(PrefixHasher(4), **DISTINCT[name])


HASHERS: dict[str, PrefixHasher] = {
    "plain": PrefixHasher(4),
    "seeded": PrefixHasher(4, seed=b"a"),
    "other seed": PrefixHasher(4, seed=b"b"),
    "wider": PrefixHasher(12),
    "lookahead": PrefixHasher(4, num_lookahead_tokens=4),
    "blake2b": PrefixHasher(4, "blake2b"),
    "own": PrefixHasher(4, lambda data: data[-16:].rjust(16)),
}


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(HASHERS, 2)])
def test_hashers_with_different_settings_share_no_hash(one: str, other: str) -> None:
    assert not {*hashes(HASHERS[one]), HASHERS[one].root} & {*hashes(HASHERS[other]), HASHERS[other].root}


@pytest.mark.parametrize("place", range(12))
def test_changed_token_changes_its_block_and_all_after_it(place: int) -> None:
    changed = [*TOKENS]
    changed[place] += 1
    same = [a == b for a, b in zip(hashes(), hashes(tokens=changed), strict=True)]
    assert same == [block < place // 4 for block in range(3)]


def test_hash_depends_on_the_parent_and_not_on_the_position() -> None:
    hasher = PrefixHasher(4)
    first = hasher.hash_block(None, TOKENS[:4])
    assert first == hasher.hash_block(hasher.root, TOKENS[:4])
    assert first != hasher.hash_block(first, TOKENS[:4])


@pytest.mark.parametrize(
    ("start", "end", "offset"),
    [(0, 2, None), (0, 3, 2), (2, 4, 0), (3, 5, -1), (4, 6, -2), (5, 8, None), (0, 12, 2)],
)
def test_item_belongs_to_the_blocks_that_it_overlaps(start: int, end: int, offset: int | None) -> None:
    request = Request("r", TOKENS, mm_features=[image("a", 2, 3)])
    expected = () if offset is None else (("mm", "a", offset),)
    assert request_extra_keys(request, start, end) == expected


def test_values_moved_between_keys_do_not_collide() -> None:
    hasher = PrefixHasher(4)
    variants: list[list[tuple[Any, ...]]] = [
        [("a", "bc")],
        [("ab", "c")],
        [("a", "b"), ("c",)],
        [("a",), ("b", "c")],
        [("a", "b", "c")],
        [("a", b"bc")],
        [("a", None), ("bc",)],
        [("a", 1)],
        [("a", "1")],
        [("a", -1)],
        [("a", 1), ()],
        [(), ("a", 1)],
        [("a", b"1")],
        [("a", "i1")],
    ]
    found = [hasher.hash_block(None, TOKENS[:4], keys) for keys in variants]
    assert len({*found, hasher.hash_block(None, TOKENS[:4])}) == len(variants) + 1


def test_hashes_are_computed_for_complete_blocks_as_they_fill() -> None:
    request = Request("r", TOKENS[:3], hasher=PrefixHasher(4))
    assert request.block_hashes == []
    for token in TOKENS[3:]:
        request.append([token])
        assert len(request.block_hashes) == request.num_tokens // 4
    assert request.block_hashes == hashes()
    assert PrefixHasher(4)(request) == []


@pytest.mark.parametrize("name", DISTINCT)
@pytest.mark.parametrize("behind", [0, 1, 3])
def test_step_by_step_gives_the_hashes_of_the_whole(name: str, behind: int) -> None:
    hasher = PrefixHasher(4, num_lookahead_tokens=behind)
    request = Request("r", [], hasher=hasher, **DISTINCT[name])
    for at in range(0, 12, 5):
        request.append(TOKENS[at : at + 5])
    assert request.block_hashes == hashes(hasher, **DISTINCT[name])
    assert len(request.block_hashes) == (12 - behind) // 4


def test_lookahead_tokens_are_part_of_the_hash() -> None:
    hasher = PrefixHasher(4, num_lookahead_tokens=2)
    one, other = hashes(hasher, TOKENS[:6]), hashes(hasher, [*TOKENS[:5], 9])
    assert len(one) == len(other) == 1
    assert one != other


def test_block_by_block_gives_the_same_as_a_run() -> None:
    hasher, parent, found = PrefixHasher(4), None, []
    for at in range(0, 12, 4):
        parent = hasher.hash_block(parent, TOKENS[at : at + 4])
        found.append(parent)
    assert found == hashes(hasher)


PROGRAM = """
from kvpool import LoraAdapter, PrefixHasher, Request
request = Request("r", list(range(64)), lora_request=LoraAdapter(1, "a"), cache_salt="s", weight_epoch=2)
for hasher in (PrefixHasher(8, seed=b"x"), PrefixHasher(8, "blake2b")):
    print(*(h.hex() for h in hasher(request)))
"""


def test_processes_with_different_hash_seeds_agree() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "random")
    }
    assert len(outputs) == 1
    assert len(outputs.pop().split()) == 16


def test_hashed_bytes_are_laid_out_as_documented() -> None:
    """Entries outlive a process in tiers that store them, so the layout must not drift."""
    settings = (4).to_bytes(4, "big") + (0).to_bytes(4, "big")
    root = hashlib.sha256(b"\x02kvpool.prefix.1" + settings + (4).to_bytes(8, "big") + b"seed").digest()
    tokens = struct.pack("<4I", 1, 2, 3, 2**32 - 1)
    salt = b"".join(len(text).to_bytes(8, "big").rjust(9, b"s") + text for text in (b"cache_salt", b"x"))
    keys = (1).to_bytes(8, "big") + (2).to_bytes(8, "big") + salt
    hasher = PrefixHasher(4, seed=b"seed")
    assert hasher.root == root
    plain = hashlib.sha256(b"\x00" + settings + root + tokens).digest()
    assert hasher.hash_block(None, [1, 2, 3, 2**32 - 1]) == plain
    keyed = hashlib.sha256(b"\x01" + settings + root + tokens + keys).digest()
    assert hasher.hash_block(None, [1, 2, 3, 2**32 - 1], [("cache_salt", "x")]) == keyed


@pytest.mark.parametrize("kind", [list, tuple, lambda tokens: array("Q", tokens)])
def test_any_sequence_of_tokens_gives_the_same_hash(kind: Callable[[list[int]], Any]) -> None:
    assert PrefixHasher(12).hash_block(None, kind(TOKENS)) == PrefixHasher(12).hash_block(None, TOKENS)


@pytest.mark.parametrize("bad", [True, False, -1, 2**32, 1.0, "7", None])
@pytest.mark.parametrize("place", [0, 3, 11])
@pytest.mark.parametrize("fill", [0, 1, 7, 256, 257])
def test_anything_but_token_ids_is_refused_by_place(bad: object, place: int, fill: int) -> None:
    tokens: list[Any] = [fill] * 12
    tokens[place] = bad
    with pytest.raises(HashInputError, match=f"token {place} of 12 is {bad!r}"):
        hashes(tokens=tokens)


def test_bool_is_found_among_many_tokens_that_look_like_one() -> None:
    tokens: list[Any] = [0, 1, 256, 257] * 64
    assert len(hashes(tokens=tokens)) == 64
    tokens[130] = True
    with pytest.raises(HashInputError, match="token 130 of 256 is True"):
        hashes(tokens=tokens)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PrefixHasher(0), "hash_block_size is 0"),
        (lambda: PrefixHasher(True), "hash_block_size is True"),
        (lambda: PrefixHasher(4, num_lookahead_tokens=-1), "num_lookahead_tokens is -1"),
        (lambda: PrefixHasher(4, seed="text"), "seed is a str"),  # type: ignore[arg-type]
        (lambda: PrefixHasher(4, "md5"), "unknown algorithm 'md5'"),
        (lambda: PrefixHasher(4, "xxhash"), "empty seed"),
        (lambda: PrefixHasher(4, lambda data: "text"), "returned 'text'"),  # type: ignore[arg-type,return-value]
        (lambda: PrefixHasher(4).hash_block(None, [1, 2, 3]), "3 tokens and 0 behind them"),
        (lambda: PrefixHasher(4).hash_block(None, [1, 2, 3, 4], (), [5]), "4 tokens and 1 behind them"),
        (lambda: PrefixHasher(4).hash_block(b"short", [1, 2, 3, 4]), "the parent has 5 bytes"),
        (lambda: PrefixHasher(4).hash_block(None, [1, 2, 3, 4], [("a", 1.5)]), "extra key value 1.5 is a float"),
        (lambda: PrefixHasher(4).hash_block(None, [1, 2, 3, 4], [("a", True)]), "extra key value True is a bool"),
    ],
)
def test_ambiguous_input_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(HashInputError, match=message):
        call()


def test_xxhash_is_used_if_installed_and_missed_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xxhash")
    assert len(hashes(PrefixHasher(4, "xxhash", seed=b"secret"))[0]) == 16
    monkeypatch.setitem(sys.modules, "xxhash", None)
    with pytest.raises(HashInputError, match="xxhash, which is not installed"):
        PrefixHasher(4, "xxhash", seed=b"secret")
