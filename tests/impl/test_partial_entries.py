"""Entries that end inside a block, their promotion to full ones, and entries that move to a private copy."""

from collections.abc import Callable

import pytest

from kvpool import BlockPool, BlockRemoved, BlockStored, KVCacheBlock, Request
from kvpool.block_key import make_block_key

Chain = tuple[Request, list[KVCacheBlock]]
MakeRequest = Callable[..., Request]

BLOCK_SIZE = 12  # Three hash blocks.


@pytest.fixture
def request_(make_request: MakeRequest) -> Request:
    return make_request(6)


@pytest.fixture
def block(pool: BlockPool) -> KVCacheBlock:
    return pool.get_new_blocks(1)[0]


def key(request: Request, num_tokens: int, group: int = 0) -> bytes:
    return make_block_key(request.block_hashes[num_tokens // 4 - 1], group)


def kinds(pool: BlockPool) -> list[type]:
    return [type(event) for event in pool.take_events()]


def test_first_partial_entry_is_primary(pool: BlockPool, block: KVCacheBlock, request_: Request) -> None:
    assert pool.cache_partial_block(request_, block, 8, 0, BLOCK_SIZE) == key(request_, 8)
    assert (block.block_hash, block.block_hash_num_tokens) == (key(request_, 8), 8)
    assert pool.get_cached_block(request_.block_hashes[1], [0]) == [block]
    assert pool.cached_block_hashes_by_block == {}
    pool.check()


def test_finer_entry_is_secondary_and_goes_with_the_primary(
    pool: BlockPool, block: KVCacheBlock, request_: Request
) -> None:
    pool.cache_partial_block(request_, block, 8, 0, BLOCK_SIZE)
    assert pool.cache_partial_block(request_, block, 4, 0, BLOCK_SIZE) == key(request_, 4)
    assert block.block_hash == key(request_, 8)
    assert pool.cached_block_hashes_by_block == {block.block_id: {key(request_, 4)}}
    assert pool.get_cached_block(request_.block_hashes[0], [0]) == [block]
    pool.check()
    pool.evict_blocks([block.block_id])
    assert len(pool.cached_block_hash_to_block) == 0
    assert pool.cached_block_hashes_by_block == {}
    assert kinds(pool) == [BlockStored, BlockStored, BlockRemoved, BlockRemoved]


def test_wider_entry_replaces_all_narrower_ones(pool: BlockPool, block: KVCacheBlock, request_: Request) -> None:
    pool.cache_partial_block(request_, block, 8, 0, BLOCK_SIZE)
    pool.cache_partial_block(request_, block, 4, 0, BLOCK_SIZE)
    pool.cache_partial_block(request_, block, 12, 0, BLOCK_SIZE)
    assert (block.block_hash, block.block_hash_num_tokens) == (key(request_, 12), 12)
    assert len(pool.cached_block_hash_to_block) == 1
    assert kinds(pool) == [BlockStored, BlockStored, BlockRemoved, BlockRemoved, BlockStored]


def test_entry_that_is_there_is_returned_without_event(pool: BlockPool, block: KVCacheBlock, request_: Request) -> None:
    pool.cache_partial_block(request_, block, 8, 0, BLOCK_SIZE)
    pool.cache_partial_block(request_, block, 4, 0, BLOCK_SIZE)
    before = pool.snapshot()
    for num_tokens in (4, 8):
        assert pool.cache_partial_block(request_, block, num_tokens, 0, BLOCK_SIZE) == key(request_, num_tokens)
    assert pool.snapshot() == before


def test_replacing_drops_whatever_the_block_stood_for(
    pool: BlockPool, block: KVCacheBlock, request_: Request, make_request: MakeRequest
) -> None:
    other = make_request(6, 900)
    pool.cache_partial_block(request_, block, 8, 0, BLOCK_SIZE)
    new_key = pool.cache_partial_block(other, block, 4, 1, BLOCK_SIZE, replace_existing_hashes=True)
    assert new_key == key(other, 4, group=1) == block.block_hash
    assert len(pool.cached_block_hash_to_block) == 1
    assert kinds(pool) == [BlockStored, BlockRemoved, BlockStored]
    pool.check()


def test_request_too_short_to_compare_is_taken_at_its_word(
    pool: BlockPool, block: KVCacheBlock, request_: Request, make_request: MakeRequest
) -> None:
    pool.cache_partial_block(request_, block, 12, 0, BLOCK_SIZE)
    short = make_request(1)
    assert pool.cache_partial_block(short, block, 4, 0, BLOCK_SIZE) == key(request_, 4)


def test_null_block_is_never_registered(pool: BlockPool, request_: Request) -> None:
    assert pool.cache_partial_block(request_, pool.null_block, 8, 0, BLOCK_SIZE) is None
    pool.check()


def test_partial_block_becomes_full_and_loses_its_finer_entries_first(
    pool: BlockPool, block: KVCacheBlock, request_: Request
) -> None:
    pool.cache_partial_block(request_, block, 8, 0, BLOCK_SIZE)
    pool.cache_partial_block(request_, block, 4, 0, BLOCK_SIZE)
    pool.take_events()
    pool.cache_full_blocks(request_, [block], 0, 1, BLOCK_SIZE, 0)
    assert (block.block_hash, block.block_hash_num_tokens) == (key(request_, 12), 12)
    removed_first, removed_second, stored = pool.take_events()
    assert removed_first.block_hashes == [request_.block_hashes[1]]
    assert removed_second.block_hashes == [request_.block_hashes[0]]
    assert stored.block_hashes == [request_.block_hashes[2]]
    pool.check()


def test_second_block_of_a_request_is_promoted_too(pool: BlockPool, request_: Request) -> None:
    first, second = pool.get_new_blocks(2)
    pool.cache_full_blocks(request_, [first], 0, 1, BLOCK_SIZE, 0)
    pool.cache_partial_block(request_, second, 20, 0, BLOCK_SIZE)
    pool.cache_full_blocks(request_, [first, second], 1, 2, BLOCK_SIZE, 0)
    assert second.block_hash_num_tokens == 24
    pool.check()


def test_moved_entries_lead_to_the_copy_and_emit_nothing(
    pool: BlockPool, block: KVCacheBlock, request_: Request
) -> None:
    (copy,) = pool.get_new_blocks(1)
    pool.cache_partial_block(request_, block, 8, 0, BLOCK_SIZE)
    pool.cache_partial_block(request_, block, 4, 0, BLOCK_SIZE)
    pool.take_events()
    pool.move_block_hashes(block, copy)
    assert (copy.block_hash, copy.block_hash_num_tokens) == (key(request_, 8), 8)
    assert (block.block_hash, block.block_hash_num_tokens) == (None, None)
    assert pool.cached_block_hashes_by_block == {copy.block_id: {key(request_, 4)}}
    assert pool.get_cached_blocks(request_.block_hashes, [0]) == ([copy, copy],)
    assert pool.take_events() == []
    assert pool.is_block_writable(block)
    pool.check({"test": [block, copy]})


def test_moved_entry_stays_behind_equal_contents(pool: BlockPool, cached_chain: Chain) -> None:
    request, (a, *_) = cached_chain
    b, copy = pool.get_new_blocks(2)
    pool.cache_full_blocks(request, [b], 0, 1, 4, 0)
    pool.move_block_hashes(a, copy)
    index = pool.cached_block_hash_to_block
    assert index.get_blocks(key(request, 4)) == [b, copy]
    pool.check()


def test_move_without_entries_does_nothing(pool: BlockPool) -> None:
    a, b = pool.get_new_blocks(2)
    before = pool.snapshot()
    pool.move_block_hashes(a, b)
    pool.move_block_hashes(a, a)
    pool.move_block_hashes(pool.blocks[7], b)
    assert pool.snapshot() == before


@pytest.mark.parametrize("alone", [True, False])
def test_block_with_many_entries_loses_all_when_handed_out(
    pool: BlockPool, block: KVCacheBlock, request_: Request, alone: bool
) -> None:
    pool.cache_partial_block(request_, block, 12, 0, BLOCK_SIZE)
    for num_tokens in (4, 8):
        pool.cache_partial_block(request_, block, num_tokens, 0, BLOCK_SIZE)
    if alone:
        pool.get_new_blocks(8)
    pool.free_blocks([block])
    pool.take_events()
    assert pool.get_new_blocks(1 if alone else 9)[-1] is block
    removed = [event.block_hashes[0] for event in pool.take_events()]
    assert removed[0] == request_.block_hashes[2]
    assert sorted(removed[1:]) == sorted(request_.block_hashes[:2])
    pool.check({"test": pool.blocks[1:]})
