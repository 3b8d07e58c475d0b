"""Handing out, sharing and releasing: what the calls do when they are in order."""

from collections.abc import Callable

import pytest

from kvpool import BlockPool, InvariantViolation, KVCacheBlock, NotEnoughBlocksError, Request

Chain = tuple[Request, list[KVCacheBlock]]
MakeRequest = Callable[..., Request]


def test_new_blocks_have_one_reference_and_no_identity(pool: BlockPool, cached_chain: Chain) -> None:
    _, chain = cached_chain
    pool.free_blocks(reversed(chain))
    blocks = pool.get_new_blocks(9)
    assert {block.ref_cnt for block in blocks} == {1}
    assert {block.block_hash for block in blocks} == {None}
    assert len({*blocks}) == 9
    assert len(pool.cached_block_hash_to_block) == 0


@pytest.mark.parametrize("count", [0, 1, 2, 5, 9])
def test_free_count_falls_by_what_was_handed_out(pool: BlockPool, count: int) -> None:
    assert len(pool.get_new_blocks(count)) == count
    assert pool.get_num_free_blocks() == 9 - count
    assert pool.get_usage() == pytest.approx(count / 9)


def test_blocks_come_from_all_three_lanes_in_one_call(pool: BlockPool, cached_chain: Chain) -> None:
    _, cached = cached_chain
    plain = pool.get_new_blocks(2)
    pool.free_blocks([*cached, *plain])
    assert [block.block_id for block in pool.get_new_blocks(8)] == [4, 5, 6, 7, 8, 9, 1, 2]
    pool.check()


def test_usage_of_idle_pool_is_zero_and_of_full_pool_one(pool: BlockPool) -> None:
    assert pool.get_usage() == 0
    pool.get_new_blocks(9)
    assert pool.get_usage() == 1


def test_pool_of_the_null_block_alone_has_nothing_to_give() -> None:
    pool = BlockPool(1, True, 4)
    assert pool.get_usage() == 0
    assert pool.get_new_blocks(0) == []
    with pytest.raises(NotEnoughBlocksError):
        pool.get_new_blocks(1)
    assert pool.reset_prefix_cache()
    pool.check()


def test_shared_block_stays_out_of_the_queue_until_its_last_release(pool: BlockPool) -> None:
    (block,) = pool.get_new_blocks(1)
    pool.touch([block])
    pool.free_blocks([block])
    assert block.ref_cnt == 1
    assert block not in pool.free_block_queue.get_all_free_blocks()
    pool.free_blocks([block])
    assert pool.free_block_queue.get_all_free_blocks()[0] is block


def test_touch_adds_one_reference_per_entry(pool: BlockPool) -> None:
    block = pool.blocks[4]
    pool.touch([block, block, pool.null_block, block])
    assert block.ref_cnt == 3
    assert pool.null_block.ref_cnt == 0
    pool.check({"test": [block] * 3})


@pytest.mark.parametrize("make", [list, tuple, iter, lambda blocks: {*blocks}])
def test_touch_takes_any_iterable(pool: BlockPool, make: Callable[[list[KVCacheBlock]], list[KVCacheBlock]]) -> None:
    (block,) = pool.get_new_blocks(1)
    pool.touch(make([block]))
    assert block.ref_cnt == 2


def test_hit_keeps_its_identity_while_touched_and_released(pool: BlockPool, cached_chain: Chain) -> None:
    request, blocks = cached_chain
    pool.free_blocks(reversed(blocks))
    (hits,) = pool.get_cached_blocks(request.block_hashes, [0])
    pool.touch(hits)
    assert hits == blocks
    pool.check({"hit": hits})
    pool.free_blocks(reversed(hits))
    assert pool.get_cached_blocks(request.block_hashes, [0]) == (blocks,)


def test_null_blocks_are_skipped_by_touch_and_release(pool: BlockPool) -> None:
    null = pool.null_block
    (block,) = pool.get_new_blocks(1)
    pool.touch([null, block, null])
    pool.free_blocks([null, block, null, block])
    pool.free_blocks([null])
    assert null.ref_cnt == 0
    pool.check({})


def test_blocks_of_other_pools_go_back_to_their_own() -> None:
    home, abroad = BlockPool(6, True, 4), BlockPool(60, True, 4)
    own = home.get_new_blocks(2)
    foreign = abroad.get_new_blocks(50)[-2:]
    home.free_blocks([foreign[0], own[0], home.null_block, foreign[1], abroad.null_block, own[1]])
    assert home.free_block_queue.get_all_free_blocks()[:2] == own
    assert abroad.free_block_queue.get_all_free_blocks()[:2] == foreign
    home.check({})
    abroad.check({"rest": abroad.blocks[1:49]})


def test_shared_and_foreign_entries_of_one_release_keep_their_order(pool: BlockPool, make_request: MakeRequest) -> None:
    blocks = pool.get_new_blocks(4)
    pool.cache_full_blocks(make_request(4), blocks, 0, 4, 4, 0)
    a, b, c, d = blocks
    pool.touch([b])
    (foreign,) = BlockPool(3, True, 4).get_new_blocks(1)
    pool.free_blocks([c, b, a, foreign, b, d])
    assert pool.free_block_queue.get_all_free_blocks()[-4:] == [c, a, b, d]


def test_release_of_mixed_blocks_frees_each_pool_once(pool: BlockPool) -> None:
    other = BlockPool(4, False, 4)
    (foreign,) = other.get_new_blocks(1)
    other.touch([foreign])
    pool.free_blocks([foreign, foreign])
    assert other.get_num_free_blocks() == 3
    other.check({})


def test_only_an_unshared_unidentified_block_is_writable(pool: BlockPool, cached_chain: Chain) -> None:
    _, (cached, *_) = cached_chain
    plain, shared = pool.get_new_blocks(2)
    pool.touch([shared])
    assert pool.is_block_writable(plain)
    assert not pool.is_block_writable(shared)
    assert not pool.is_block_writable(cached)
    assert not pool.is_block_writable(pool.blocks[9])
    assert not pool.is_block_writable(pool.null_block)


@pytest.mark.parametrize("count", [1, 2, 9])
@pytest.mark.parametrize("lane", ["recent", "unused", "aged"])
def test_count_changed_behind_the_pool_is_noticed_before_the_block_is_given_out(
    pool: BlockPool, cached_chain: Chain, lane: str, count: int
) -> None:
    _, cached = cached_chain
    plain = pool.get_new_blocks(6 if lane != "unused" else 0)
    pool.free_blocks([*cached, *(plain if lane != "aged" else [])])
    if lane == "aged":
        count = min(count, 3)
    victim = pool.free_block_queue.get_all_free_blocks()[0]
    victim.ref_cnt += 1
    free = pool.get_num_free_blocks()
    with pytest.raises(InvariantViolation, match=f"block {victim.block_id} is next in the free queue"):
        pool.get_new_blocks(count)
    assert pool.get_num_free_blocks() == free
    victim.ref_cnt -= 1
    assert pool.get_new_blocks(count)[0] is victim
