"""Events: their shape, their order, and that replaying them yields what is resident (P7)."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kvpool import (
    AllBlocksCleared,
    BlockPool,
    BlockRemoved,
    BlockStored,
    EventTypes,
    KVCacheBlock,
    LoraAdapter,
    MultimodalFeature,
    PlaceholderRange,
    PrefixHasher,
    RefusedError,
    Request,
)
from kvpool.block_key import make_block_key

Chain = tuple[Request, list[KVCacheBlock]]
MakeRequest = Callable[..., Request]


def test_stored_event_describes_the_range(pool: BlockPool, make_request: MakeRequest) -> None:
    request = make_request(3, session_id="chat")
    blocks = pool.get_new_blocks(3)
    pool.cache_full_blocks(request, blocks, 0, 1, 4, 7)
    pool.cache_full_blocks(request, blocks, 1, 3, 4, 7)
    first, second = pool.take_events()
    assert first.parent_block_hash is None
    assert second == BlockStored(
        block_hashes=request.block_hashes[1:],
        parent_block_hash=request.block_hashes[0],
        token_ids=list(range(14, 22)),
        block_size=4,
        lora_id=None,
        medium="GPU",
        lora_name=None,
        extra_keys=[None, None],
        group_idx=7,
        session_id="chat",
    )


def test_stored_event_of_wide_blocks_names_the_closing_hashes(pool: BlockPool, make_request: MakeRequest) -> None:
    request = make_request(5)
    blocks = pool.get_new_blocks(2)
    pool.cache_full_blocks(request, blocks, 1, 2, 8, 0)
    (stored,) = pool.take_events()
    assert stored.block_hashes == [request.block_hashes[3]]
    assert stored.parent_block_hash == request.block_hashes[1]
    assert stored.token_ids == list(range(18, 26))
    assert stored.block_size == 8


def test_skipped_blocks_are_in_the_tokens_but_not_in_the_hashes(pool: BlockPool, make_request: MakeRequest) -> None:
    request = make_request(3)
    (block,) = pool.get_new_blocks(1)
    null = pool.null_block
    pool.cache_full_blocks(request, [null, block, null], 0, 3, 4, 0)
    (stored,) = pool.take_events()
    assert stored.block_hashes == request.block_hashes[1:2]
    assert stored.extra_keys == [None]
    assert len(stored.token_ids) == 12


def test_call_that_skips_everything_still_emits_one_event(pool: BlockPool, make_request: MakeRequest) -> None:
    pool.cache_full_blocks(make_request(2), [pool.null_block] * 2, 0, 2, 4, 0)
    (stored,) = pool.take_events()
    assert (stored.block_hashes, stored.extra_keys, len(stored.token_ids)) == ([], None, 8)


def test_partial_event_spans_one_hash_block(pool: BlockPool, make_request: MakeRequest) -> None:
    request = make_request(3)
    a, b = pool.get_new_blocks(2)
    pool.cache_partial_block(request, a, 4, 0, 12)
    pool.cache_partial_block(request, b, 8, 0, 12)
    first, second = pool.take_events()
    assert (first.parent_block_hash, first.token_ids) == (None, [10, 11, 12, 13])
    assert (second.parent_block_hash, second.token_ids) == (request.block_hashes[0], [14, 15, 16, 17])
    assert (second.block_hashes, second.block_size) == ([request.block_hashes[1]], 4)


def test_handing_out_removes_one_entry_per_event(pool: BlockPool, cached_chain: Chain) -> None:
    request, blocks = cached_chain
    pool.free_blocks(reversed(blocks))
    pool.get_new_blocks(9)
    assert pool.take_events() == [
        BlockRemoved(block_hashes=[block_hash], medium="GPU", group_idx=0)
        for block_hash in reversed(request.block_hashes)
    ]


def test_reuse_is_reported_without_any_change(pool: BlockPool, cached_chain: Chain) -> None:
    request, _ = cached_chain
    before = pool.snapshot()
    pool.emit_cached_block_events(request, 2, 4, 0)
    (stored,) = pool.take_events()
    assert stored.block_hashes == request.block_hashes[:2]
    assert (stored.parent_block_hash, len(stored.token_ids)) == (None, 8)
    pool.emit_cached_block_events(request, 0, 4, 0)
    assert pool.take_events() == []
    assert pool.snapshot() == before


def test_events_are_taken_once_and_only_when_on(make_request: MakeRequest) -> None:
    for on in (True, False):
        pool = BlockPool(4, True, 4, enable_kv_cache_events=on, medium="CPU")
        pool.cache_full_blocks(make_request(1), pool.get_new_blocks(1), 0, 1, 4, 0)
        pool.emit_cached_block_events(make_request(1), 1, 4, 0)
        assert [event.medium for event in pool.take_events()] == ["CPU"] * (2 if on else 0)
        assert pool.take_events() == []


def test_reset_emits_one_clearing_event(pool: BlockPool) -> None:
    pool.reset_prefix_cache()
    assert pool.take_events() == [AllBlocksCleared()]


def test_extra_keys_are_published_in_the_untagged_shapes(pool: BlockPool) -> None:
    request = Request(
        "r",
        list(range(12)),
        mm_features=[MultimodalFeature("image", PlaceholderRange(2, 4))],
        lora_request=LoraAdapter(7, "tuned", "adapters/tuned"),
        cache_salt="tenant",
        prompt_embeds_digest=lambda start, end: b"%d-%d" % (start, end) if start == 8 else None,
        weight_epoch=3,
        hasher=PrefixHasher(4),
    )
    pool.cache_full_blocks(request, pool.get_new_blocks(3), 0, 3, 4, 0)
    (stored,) = pool.take_events()
    assert stored.extra_keys == [("tuned", ("image", 2), "tenant"), ("tuned", ("image", -2)), ("tuned", b"8-12")]
    assert (stored.lora_id, stored.lora_name) == (7, "tuned")


def test_lookahead_tokens_and_their_keys_are_published(make_request: MakeRequest) -> None:
    pool = BlockPool(5, True, 4, enable_kv_cache_events=True, num_hash_lookahead_tokens=2)
    request = Request(
        "r",
        list(range(10)),
        mm_features=[MultimodalFeature("image", PlaceholderRange(5, 1))],
        hasher=PrefixHasher(4, num_lookahead_tokens=2),
    )
    pool.cache_full_blocks(request, pool.get_new_blocks(2), 0, 2, 4, 0)
    (stored,) = pool.take_events()
    assert stored.lookahead_token_ids == [[4, 5], [8, 9]]
    assert stored.extra_keys == [(("image", 5),), (("image", 1),)]


def test_pool_emits_the_event_classes_that_an_adapter_names(make_request: MakeRequest) -> None:
    class Adapted(BlockPool):
        event_types = EventTypes(
            stored=lambda *fields, **more: ("stored", fields[0], fields[1], more["group_idx"]),
            removed=lambda hashes, medium, group_idx: ("removed", hashes),
            cleared=lambda: "cleared",
            external_hash=lambda block_hash: int.from_bytes(block_hash) & 0xFF,
        )

    pool = Adapted(4, True, 4, enable_kv_cache_events=True)
    request = make_request(2)
    pool.cache_full_blocks(request, pool.get_new_blocks(2), 1, 2, 4, 0)
    pool.evict_blocks([2])
    low_bytes = [block_hash[-1] for block_hash in request.block_hashes]
    assert pool.take_events() == [("stored", low_bytes[1:], low_bytes[0], 0), ("removed", low_bytes[1:])]


class Mirror:
    """A consumer: how many resident blocks carry each key, from events alone."""

    def __init__(self) -> None:
        self.resident: Counter[bytes] = Counter()

    def consume(self, events: list[Any]) -> None:
        for event in events:
            match event:
                case AllBlocksCleared():
                    self.resident.clear()
                case BlockStored():
                    self.resident.update(make_block_key(h, event.group_idx) for h in event.block_hashes)
                case BlockRemoved():
                    for block_hash in event.block_hashes:
                        key = make_block_key(block_hash, event.group_idx)
                        self.resident[key] -= 1
                        assert self.resident[key] >= 0, f"removed more often than stored: {key.hex()}"
        self.resident += Counter()


@pytest.mark.parametrize("seed", range(15))
def test_replayed_events_yield_the_resident_keys(seed: int, make_request: MakeRequest) -> None:
    draw = random.Random(seed)
    pool, mirror = BlockPool(8, True, 4, enable_kv_cache_events=True), Mirror()
    requests = [make_request(6, first) for first in (10, 10, 500)]
    held: list[KVCacheBlock] = []
    for step in range(150):
        request, group = draw.choice(requests), draw.randrange(2)
        try:
            match draw.randrange(7):
                case 0:
                    held += pool.get_new_blocks(draw.randrange(4))
                case 1:
                    out = draw.sample(held, draw.randrange(len(held) + 1))
                    pool.free_blocks(out)
                    held = [block for block in held if block not in out]
                case 2:
                    table = draw.sample(held, min(len(held), 2))
                    pool.cache_full_blocks(request, table, draw.randrange(2), len(table), draw.choice([4, 8]), group)
                case 3:
                    replace = draw.random() < 0.3
                    pool.cache_partial_block(request, draw.choice(held), 4 * draw.randint(1, 4), group, 8, replace)
                case 4:
                    pool.move_block_hashes(draw.choice(held), draw.choice(held))
                case 5:
                    pool.evict_blocks([draw.randrange(8)])
                case 6 if draw.random() < 0.3:
                    pool.free_blocks(held)
                    held = []
                    pool.reset_prefix_cache()
        except (RefusedError, IndexError):
            pass
        mirror.consume(pool.take_events())
        entries = {key: len(blocks) for key, blocks in pool.cached_block_hash_to_block.items()}
        assert mirror.resident == entries, f"seed {seed}, step {step}"
    pool.check({"walk": held})
