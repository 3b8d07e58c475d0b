"""Which block is handed out next (P8), and that the three lanes of the queue act as one list."""

import random
from collections.abc import Callable, Iterable

import pytest

from kvpool import BlockPool, KVCacheBlock, Request

Chain = tuple[Request, list[KVCacheBlock]]
MakeRequest = Callable[..., Request]


def order(pool: BlockPool) -> list[int]:
    return [block.block_id for block in pool.free_block_queue.get_all_free_blocks()]


def ids(blocks: list[KVCacheBlock]) -> list[int]:
    return [block.block_id for block in blocks]


def test_new_pool_hands_out_by_rising_id(pool: BlockPool) -> None:
    assert ids(pool.get_new_blocks(4)) == [1, 2, 3, 4]
    assert order(pool) == [5, 6, 7, 8, 9]


def test_blocks_without_identity_go_to_the_head_first_given_first(pool: BlockPool) -> None:
    blocks = pool.get_new_blocks(4)
    pool.free_blocks([blocks[2], blocks[0]])
    assert order(pool)[:3] == [3, 1, 5]
    assert ids(pool.get_new_blocks(2)) == [3, 1]


def test_blocks_with_identity_go_to_the_tail_in_given_order(pool: BlockPool, cached_chain: Chain) -> None:
    _, blocks = cached_chain
    pool.free_blocks(reversed(blocks))
    assert order(pool) == [4, 5, 6, 7, 8, 9, 3, 2, 1]


def test_one_release_sorts_its_blocks_into_both_ends(pool: BlockPool, cached_chain: Chain) -> None:
    _, cached = cached_chain
    plain = pool.get_new_blocks(2)
    pool.free_blocks([cached[0], plain[0], cached[1], plain[1]])
    assert order(pool) == [4, 5, 6, 7, 8, 9, 1, 2]


def test_without_caching_every_block_goes_to_the_head() -> None:
    pool = BlockPool(5, False, 4)
    blocks = pool.get_new_blocks(3)
    pool._insert_block_hash(b"hash" + bytes(4), blocks[1], 4)
    pool.free_blocks(blocks)
    assert order(pool) == [1, 2, 3, 4]


def test_block_listed_twice_is_placed_by_the_entry_that_frees_it(pool: BlockPool, cached_chain: Chain) -> None:
    _, (a, b, _c) = cached_chain
    pool.touch([a])
    pool.free_blocks([a, b, a])
    assert order(pool)[-2:] == [b.block_id, a.block_id]


@pytest.mark.parametrize("make", [list, tuple, iter, lambda blocks: (block for block in blocks)])
def test_any_iterable_is_released_in_its_order(
    pool: BlockPool, make: Callable[[list[KVCacheBlock]], Iterable[KVCacheBlock]]
) -> None:
    blocks = pool.get_new_blocks(3)
    pool.free_blocks(make(blocks))
    assert order(pool)[:3] == [1, 2, 3]


def test_unpinned_block_goes_to_the_tail_whatever_its_identity(pool: BlockPool, cached_chain: Chain) -> None:
    _, (cached, _, _) = cached_chain
    (plain,) = pool.get_new_blocks(1)
    pool.unpin_blocks([plain, cached], lambda block: None)
    assert order(pool)[-2:] == [plain.block_id, cached.block_id]


def test_losing_its_entries_does_not_move_a_queued_block(pool: BlockPool, cached_chain: Chain) -> None:
    _, blocks = cached_chain
    pool.free_blocks(reversed(blocks))
    before = order(pool)
    pool.evict_blocks({2})
    assert order(pool) == before
    pool.reset_prefix_cache()
    assert order(pool) == before


@pytest.mark.parametrize("indices", [(0, 1, 2, 3), (3, 2, 1, 0), (1,), (0, 3), (1, 2), (0, 2, 1), (3, 0, 1)])
def test_touched_blocks_leave_the_others_in_order(
    pool: BlockPool, make_request: MakeRequest, indices: tuple[int, ...]
) -> None:
    blocks = pool.get_new_blocks(4)
    pool.cache_full_blocks(make_request(4), blocks, 0, 4, 4, 0)
    pool.free_blocks(reversed(blocks))
    touched = [blocks[index] for index in indices]
    pool.touch(touched)
    assert order(pool) == [5, 6, 7, 8, 9] + [b.block_id for b in reversed(blocks) if b not in touched]
    assert all(block.next_free_block is None and block.prev_free_block is None for block in touched)
    pool.check({"touch": touched})


def test_touched_unused_block_is_not_handed_out_and_comes_back_at_the_head(pool: BlockPool) -> None:
    block = pool.blocks[3]
    pool.touch([block])
    assert order(pool) == [1, 2, 4, 5, 6, 7, 8, 9]
    pool.free_blocks([block])
    assert ids(pool.get_new_blocks(4)) == [3, 1, 2, 4]


def test_block_touched_at_the_head_is_stepped_over(pool: BlockPool) -> None:
    blocks = pool.get_new_blocks(3)
    pool.free_blocks(blocks)
    pool.touch([blocks[1]])
    assert ids(pool.get_new_blocks(1)) == [1]
    assert ids(pool.get_new_blocks(2)) == [3, 4]
    pool.check({"all": [*blocks, pool.blocks[4]]})


def test_block_released_again_keeps_only_its_latest_place(pool: BlockPool) -> None:
    a, b = pool.get_new_blocks(2)
    pool.free_blocks([a, b])
    pool.touch([b])
    pool.free_blocks([b])
    assert order(pool)[:3] == [2, 1, 3]
    assert ids(pool.get_new_blocks(9)) == [2, 1, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_block_that_aged_since_is_not_taken_from_its_earlier_place(
    pool: BlockPool, make_request: MakeRequest, count: int
) -> None:
    blocks = pool.get_new_blocks(6)
    pool.free_blocks(blocks)
    moved = blocks[:1]
    pool.touch(moved)
    pool.cache_full_blocks(make_request(1), moved, 0, 1, 4, 0)
    pool.free_blocks(moved)
    pool.evict_blocks([moved[0].block_id])
    assert order(pool) == [2, 3, 4, 5, 6, 7, 8, 9, 1]
    assert ids(pool.get_new_blocks(count)) == [2, 3, 4, 5][:count]
    pool.check({"test": blocks[1 : count + 1]})


@pytest.mark.parametrize("count", [1, 2, 3])
def test_block_mentioned_twice_is_handed_out_once(pool: BlockPool, count: int) -> None:
    blocks = pool.get_new_blocks(4)
    pool.free_blocks(blocks)
    pool.touch(blocks[1:2])
    pool.free_blocks(blocks[1:2])
    taken = [block for _ in range(9 // count) for block in pool.get_new_blocks(count)]
    assert ids(taken) == [2, 1, 3, 4, 5, 6, 7, 8, 9][: len(taken)]


def test_endless_touch_and_release_does_not_grow_the_queue(pool: BlockPool) -> None:
    blocks = pool.get_new_blocks(3)
    pool.free_blocks(blocks)
    for _ in range(2000):
        pool.touch(blocks[1:])
        pool.free_blocks(blocks[1:])
    assert len(pool.free_block_queue.recent) < 300
    assert order(pool)[:4] == [2, 3, 1, 4]
    pool.check()


def test_blocks_after_a_cursor_follow_the_eviction_order(pool: BlockPool, cached_chain: Chain) -> None:
    _, cached = cached_chain
    plain = pool.get_new_blocks(2)
    pool.free_blocks(cached + plain)
    queue = pool.free_block_queue
    whole = queue.get_all_free_blocks()
    assert list(queue.iter_blocks_after(None)) == whole
    for place, block in enumerate(whole):
        assert list(queue.iter_blocks_after(block)) == whole[place + 1 :]
    pool.touch([cached[0]])
    assert list(queue.iter_blocks_after(cached[0])) == []


@pytest.mark.parametrize("seed", range(20))
def test_queue_acts_as_one_plain_list(seed: int) -> None:
    """The model: a list of ids; releases go to one end or the other; identities come from `_insert_block_hash`."""
    draw = random.Random(seed)
    pool = BlockPool(24, True, 4)
    queued, held = list(range(1, 24)), []
    for step in range(400):
        match draw.randrange(4):
            case 0:
                count = draw.randrange(min(6, len(queued)) + 1)
                taken = ids(pool.get_new_blocks(count))
                assert taken == queued[:count], f"seed {seed}, step {step}"
                del queued[:count]
                held += taken
            case 1:
                out = draw.sample(held, draw.randrange(len(held) + 1))
                for block_id in out:
                    held.remove(block_id)
                    if draw.random() < 0.5:
                        pool._insert_block_hash(b"%d" % step + bytes(4), pool.blocks[block_id], 4)
                pool.free_blocks([pool.blocks[i] for i in out])
                queued = (
                    [i for i in out if pool.blocks[i].block_hash is None]
                    + queued
                    + [i for i in out if pool.blocks[i].block_hash is not None]
                )
            case 2:
                out = draw.sample(queued, min(len(queued), draw.randrange(5)))
                pool.touch([pool.blocks[i] for i in out])
                queued = [i for i in queued if i not in out]
                held += out
            case 3:
                out = draw.sample(held, min(len(held), draw.randrange(3)))
                pool.unpin_blocks([pool.blocks[i] for i in out], lambda block: None)
                held = [i for i in held if i not in out]
                queued += out
        assert order(pool) == queued, f"seed {seed}, step {step}"
        assert pool.get_num_free_blocks() == len(queued)
    pool.check({"walk": [pool.blocks[i] for i in held]})
