"""Prefix-cache entries: registering full blocks, finding them, losing them (P3)."""

from collections.abc import Callable

import pytest

from kvpool import BlockPool, KVCacheBlock, PrefixHasher, Request
from kvpool.block_key import get_block_hash, get_group_id, make_block_key

Chain = tuple[Request, list[KVCacheBlock]]
MakeRequest = Callable[..., Request]


def test_registered_blocks_are_found_by_their_hashes(pool: BlockPool, cached_chain: Chain) -> None:
    request, blocks = cached_chain
    for block_hash, block in zip(request.block_hashes, blocks, strict=True):
        assert pool.get_cached_block(block_hash, [0]) == [block]
        assert block.block_hash == make_block_key(block_hash, 0)
    assert [block.block_hash_num_tokens for block in blocks] == [4, 8, 12]
    assert len(pool.cached_block_hash_to_block) == 3
    pool.check({"request": blocks})


def test_nothing_to_cache_is_a_no_op_even_without_caching(make_request: MakeRequest) -> None:
    pool = BlockPool(4, False, 4)
    pool.cache_full_blocks(make_request(2), [], 2, 2, 4, 0)
    pool.cache_full_blocks(make_request(2), [], 3, 2, 4, 0)


def test_blocks_cached_one_at_a_time_are_the_same_as_in_one_call(make_request: MakeRequest) -> None:
    request, at_once, step_by_step = make_request(3), BlockPool(5, True, 4), BlockPool(5, True, 4)
    for pool in (at_once, step_by_step):
        blocks = pool.get_new_blocks(3)
        for start, stop in [(0, 3)] if pool is at_once else [(0, 1), (1, 2), (2, 3)]:
            pool.cache_full_blocks(request, blocks, start, stop, 4, 0)
    assert at_once.snapshot() == step_by_step.snapshot()


def test_null_and_masked_blocks_get_no_entry(pool: BlockPool, make_request: MakeRequest) -> None:
    request = make_request(4)
    a, b, c = pool.get_new_blocks(3)
    pool.cache_full_blocks(request, [pool.null_block, a, b, c], 0, 4, 4, 0, block_mask=[True, True, False, True])
    hits = [pool.get_cached_block(block_hash, [0]) for block_hash in request.block_hashes]
    assert hits == [None, [a], None, [c]]
    assert b.block_hash is None
    pool.check()


def test_masked_block_may_be_anything(pool: BlockPool, make_request: MakeRequest, cached_chain: Chain) -> None:
    _, (cached, *_) = cached_chain
    (block,) = pool.get_new_blocks(1)
    pool.cache_full_blocks(make_request(2, 500), [cached, block], 0, 2, 4, 0, block_mask=[False, True])
    assert block.block_hash_num_tokens == 8


def test_wide_block_is_filed_under_the_hash_that_closes_it(pool: BlockPool, make_request: MakeRequest) -> None:
    request = make_request(5)
    blocks = pool.get_new_blocks(2)
    pool.cache_full_blocks(request, blocks, 0, 2, 8, 0)
    found = [pool.get_cached_block(block_hash, [0]) for block_hash in request.block_hashes]
    assert found == [None, [blocks[0]], None, [blocks[1]], None]
    assert [block.block_hash_num_tokens for block in blocks] == [8, 16]


class ScaledHashes:
    """The view that upstream passes: hashes of blocks of two hash blocks each."""

    scale_factor = 2

    def __init__(self, hashes: list[bytes]) -> None:
        self.hashes = hashes

    def __len__(self) -> int:
        return len(self.hashes) // 2

    def __getitem__(self, index: int) -> bytes:
        return self.hashes[2 * index + 1]


def test_hashes_that_are_scaled_already_are_taken_as_they_are(pool: BlockPool, make_request: MakeRequest) -> None:
    request, plain = make_request(4), make_request(4)
    request.block_hashes = ScaledHashes(request.block_hashes)  # type: ignore[assignment]
    blocks = pool.get_new_blocks(2)
    pool.cache_full_blocks(request, blocks, 0, 2, 8, 0)
    assert pool.get_cached_block(plain.block_hashes[1], [0]) == [blocks[0]]
    assert pool.get_cached_block(plain.block_hashes[3], [0]) == [blocks[1]]


def test_groups_do_not_share_entries(pool: BlockPool, make_request: MakeRequest) -> None:
    request = make_request(1)
    (h,) = request.block_hashes
    a, b = pool.get_new_blocks(2)
    pool.cache_full_blocks(request, [a], 0, 1, 4, 0)
    assert pool.get_cached_block(h, [1]) is None
    assert pool.get_cached_block(h, [0, 1]) is None
    pool.cache_full_blocks(request, [b], 0, 1, 4, 1)
    assert pool.get_cached_block(h, [0, 1]) == [a, b]
    assert pool.get_cached_block(h, [1, 0]) == [b, a]
    assert pool.get_cached_block(h, []) == []
    assert len(pool.cached_block_hash_to_block) == 2


def test_lookup_of_equal_contents_finds_the_first_registered(pool: BlockPool, make_request: MakeRequest) -> None:
    request = make_request(1)
    key = make_block_key(request.block_hashes[0], 0)
    a, b, c = pool.get_new_blocks(3)
    for block in (b, a, c):
        pool.cache_full_blocks(request, [block], 0, 1, 4, 0)
    index = pool.cached_block_hash_to_block
    assert len(index) == 1
    for gone, left in ((a, [b, c]), (b, [c]), (c, [])):
        pool.evict_blocks([gone.block_id])
        assert index.get_blocks(key) == left
        assert index.get_one_block(key) is (left[0] if left else None)
        assert {block for block in (a, b, c) if index.contain(key, block.block_id)} == {*left}
        pool.check()


def test_run_of_hits_ends_at_the_first_miss_of_any_group(pool: BlockPool, make_request: MakeRequest) -> None:
    request = make_request(4)
    blocks, others = pool.get_new_blocks(4), pool.get_new_blocks(3)
    pool.cache_full_blocks(request, blocks, 0, 4, 4, 0)
    pool.cache_full_blocks(request, others, 0, 3, 4, 1)
    hashes = request.block_hashes
    assert pool.get_cached_blocks(hashes, [0]) == (blocks,)
    assert pool.get_cached_blocks(iter(hashes), [1]) == (others,)
    assert pool.get_cached_blocks(iter(hashes), [0, 1]) == (blocks[:3], others)
    assert pool.get_cached_blocks(hashes, [0, 7]) == ([], [])
    assert pool.get_cached_blocks(hashes, []) == ()
    pool.evict_blocks([blocks[1].block_id])
    assert pool.get_cached_blocks(hashes, [0]) == (blocks[:1],)


@pytest.mark.parametrize("missing", [None, 0, 1, 15, 16, 17, 31, 32, 99, 100, 199])
def test_long_run_of_hits_is_what_single_lookups_find(missing: int | None) -> None:
    pool = BlockPool(201, True, 1)
    request = Request("long", list(range(200)), hasher=PrefixHasher(1))
    blocks = pool.get_new_blocks(200)
    pool.cache_full_blocks(request, blocks, 0, 200, 1, 0)
    if missing is not None:
        pool.evict_blocks([blocks[missing].block_id])
    assert pool.get_cached_blocks(request.block_hashes, [0]) == (blocks[:missing],)


def test_eviction_takes_entries_but_neither_references_nor_place(pool: BlockPool, cached_chain: Chain) -> None:
    request, blocks = cached_chain
    pool.evict_blocks({blocks[1].block_id, 0, 9})
    assert [block.ref_cnt for block in blocks] == [1, 1, 1]
    assert pool.get_cached_block(request.block_hashes[1], [0]) is None
    assert pool.get_cached_block(request.block_hashes[2], [0]) == [blocks[2]]
    pool.check({"request": blocks})


def test_reset_is_refused_while_blocks_are_held(
    pool: BlockPool, cached_chain: Chain, caplog: pytest.LogCaptureFixture
) -> None:
    request, _ = cached_chain
    before = pool.snapshot()
    assert not pool.reset_prefix_cache()
    assert pool.snapshot() == before
    assert pool.get_cached_block(request.block_hashes[0], [0]) is not None
    assert "3 of 9 blocks are held" in caplog.text


def test_reset_forgets_every_entry(pool: BlockPool, cached_chain: Chain) -> None:
    request, blocks = cached_chain
    pool.cache_partial_block(request, blocks[2], 4, 0, 8)
    pool.free_blocks(reversed(blocks))
    assert pool.reset_prefix_cache()
    assert not pool.cached_block_hash_to_block
    assert pool.cached_block_hashes_by_block == {}
    assert {block.block_hash for block in pool.blocks} == {None}
    pool.check({})


def test_ready_key_is_registered_for_a_tier_that_copies_entries(pool: BlockPool, cached_chain: Chain) -> None:
    _, (block, *_) = cached_chain
    tier = BlockPool(4, True, 4)
    (copy,) = tier.get_new_blocks(1)
    key = block.block_hash
    assert key is not None
    tier._insert_block_hash(key, copy, num_tokens=4)
    tier._insert_block_hash(key, copy, num_tokens=4)
    second = make_block_key(b"finer", 0)
    tier._insert_block_hash(second, copy, num_tokens=None)
    assert tier.get_cached_block(get_block_hash(key), [get_group_id(key)]) == [copy]
    assert tier.cached_block_hashes_by_block == {copy.block_id: {second}}
    tier.check()
    assert tier._maybe_evict_cached_block(copy)
    assert not tier._maybe_evict_cached_block(copy)
    assert len(tier.cached_block_hash_to_block) == 0
