"""Reuse watchers: each fires exactly once, before the block is reused, whatever the others do (P9)."""

from collections.abc import Callable

import pytest

from kvpool import BlockPool, KVCacheBlock, ReentrantCallError, Request

Chain = tuple[Request, list[KVCacheBlock]]


class Witness:
    """Notes each call, with what the block looked like at that moment."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int, bool]] = []

    def watcher(self, name: str) -> Callable[[KVCacheBlock], None]:
        return lambda block: self.calls.append((name, block.block_id, block.ref_cnt, block.block_hash is not None))


def take_all(pool: BlockPool) -> list[KVCacheBlock]:
    return pool.get_new_blocks(pool.get_num_free_blocks())


def test_watcher_fires_once_before_eviction_and_before_the_reference(pool: BlockPool, cached_chain: Chain) -> None:
    _, (block, *_) = cached_chain
    witness = Witness()
    pool.unpin_blocks([block], witness.watcher("w"))
    assert witness.calls == []
    taken = take_all(pool)
    assert witness.calls == [("w", block.block_id, 0, True)]
    pool.free_blocks(taken)
    take_all(pool)
    assert len(witness.calls) == 1


def test_every_registration_fires_in_order_of_registration(pool: BlockPool) -> None:
    a, b = pool.get_new_blocks(2)
    pool.touch([a, a])
    witness = Witness()
    pool.unpin_blocks([a, a], witness.watcher("twice"))
    pool.unpin_blocks([b], witness.watcher("b"))
    pool.unpin_blocks([a], witness.watcher("last"))
    take_all(pool)
    assert [call[:2] for call in witness.calls] == [("b", 2), ("twice", 1), ("twice", 1), ("last", 1)]


def test_watcher_survives_a_touch_and_a_release(pool: BlockPool) -> None:
    (block,) = pool.get_new_blocks(1)
    witness = Witness()
    pool.unpin_blocks([block], witness.watcher("w"))
    pool.touch([block])
    take_all(pool)
    assert witness.calls == []
    pool.free_blocks([block])
    assert pool.get_new_blocks(1) == [block]
    assert witness.calls == [("w", 1, 0, False)]


def test_watcher_on_a_block_that_is_still_held_waits(pool: BlockPool) -> None:
    (block,) = pool.get_new_blocks(1)
    pool.touch([block])
    witness = Witness()
    pool.unpin_blocks([block], witness.watcher("w"))
    assert block.ref_cnt == 1
    take_all(pool)
    assert witness.calls == []
    pool.check()


@pytest.mark.parametrize("released_plainly", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_watchers_fire_whatever_the_size_of_the_request(pool: BlockPool, released_plainly: bool, count: int) -> None:
    blocks = take_all(pool)
    witness = Witness()
    pool.unpin_blocks(blocks[:2], witness.watcher("w"))
    if released_plainly:
        pool.touch(blocks[:2])
        pool.free_blocks(blocks[:2])
    pool.get_new_blocks(count)
    assert [call[:3] for call in witness.calls] == [("w", 1, 0), ("w", 2, 0)][:count]


@pytest.mark.parametrize("count", [1, 3])
def test_other_blocks_are_handed_out_without_firing(pool: BlockPool, count: int) -> None:
    (block,) = pool.get_new_blocks(1)
    witness = Witness()
    pool.unpin_blocks([block], witness.watcher("w"))
    assert block not in pool.get_new_blocks(count)
    assert witness.calls == []


def test_successful_reset_fires_all_watchers_before_it_forgets(pool: BlockPool, cached_chain: Chain) -> None:
    _, chain = cached_chain
    witness = Witness()
    pool.unpin_blocks(chain[:2], witness.watcher("w"))
    assert not pool.reset_prefix_cache()
    assert witness.calls == []
    pool.free_blocks(chain[2:])
    assert pool.reset_prefix_cache()
    assert witness.calls == [("w", 1, 0, True), ("w", 2, 0, True)]
    take_all(pool)
    assert len(witness.calls) == 2


def fail(block: KVCacheBlock) -> None:
    raise OSError(f"watcher of {block.block_id}")


def test_failing_watcher_keeps_the_blocks_in_place_and_the_others_fire(pool: BlockPool, cached_chain: Chain) -> None:
    _, chain = cached_chain
    witness = Witness()
    pool.unpin_blocks(chain[:1], fail)
    pool.unpin_blocks(chain[1:], witness.watcher("w"))
    before = pool.snapshot()
    with pytest.raises(OSError, match="watcher of 1"):
        take_all(pool)
    assert [call[:2] for call in witness.calls] == [("w", 2), ("w", 3)]
    assert pool.snapshot() == before._replace(watchers=())
    pool.check({})
    assert len(take_all(pool)) == 9
    assert len(witness.calls) == 2


def test_failing_watcher_does_not_keep_the_next_one_of_its_block_from_firing(pool: BlockPool) -> None:
    (block,) = pool.get_new_blocks(1)
    pool.touch([block])
    witness = Witness()
    pool.unpin_blocks([block], fail)
    pool.unpin_blocks([block], witness.watcher("w"))
    with pytest.raises(OSError, match="watcher of 1"):
        take_all(pool)
    assert witness.calls == [("w", 1, 0, False)]


def test_several_failing_watchers_raise_a_group(pool: BlockPool) -> None:
    blocks = pool.get_new_blocks(2)
    pool.unpin_blocks(blocks, fail)
    with pytest.raises(ExceptionGroup) as caught:
        take_all(pool)
    assert [str(error) for error in caught.value.exceptions] == ["watcher of 1", "watcher of 2"]
    pool.check({})


def test_failing_watcher_stops_a_reset_but_not_the_next_one(pool: BlockPool, cached_chain: Chain) -> None:
    request, chain = cached_chain
    pool.unpin_blocks(chain, fail)
    with pytest.raises(ExceptionGroup):
        pool.reset_prefix_cache()
    assert pool.get_cached_block(request.block_hashes[0], [0]) is not None
    assert pool.take_events() == []
    assert pool.reset_prefix_cache()
    assert pool.get_cached_block(request.block_hashes[0], [0]) is None


MUTATIONS: dict[str, Callable[[BlockPool, KVCacheBlock, Request], object]] = {
    "get": lambda pool, block, request: pool.get_new_blocks(1),
    "get two": lambda pool, block, request: pool.get_new_blocks(2),
    "touch": lambda pool, block, request: pool.touch([block]),
    "free": lambda pool, block, request: pool.free_blocks([pool.blocks[9]]),
    "free by another pool": lambda pool, block, request: BlockPool(2, True, 4).free_blocks([pool.blocks[9]]),
    "unpin": lambda pool, block, request: pool.unpin_blocks([pool.blocks[9]], print),
    "cache": lambda pool, block, request: pool.cache_full_blocks(request, [pool.blocks[9]], 0, 1, 4, 0),
    "cache partial": lambda pool, block, request: pool.cache_partial_block(request, pool.blocks[9], 4, 0, 4),
    "move": lambda pool, block, request: pool.move_block_hashes(block, pool.blocks[9]),
    "evict": lambda pool, block, request: pool.evict_blocks([block.block_id]),
    "reset": lambda pool, block, request: pool.reset_prefix_cache(),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_watcher_that_changes_its_pool_is_refused(pool: BlockPool, cached_chain: Chain, name: str) -> None:
    request, (block, *_) = cached_chain
    pool.touch([pool.blocks[9]])
    pool.unpin_blocks([block], lambda unpinned: MUTATIONS[name](pool, unpinned, request) and None)
    before = pool.snapshot()
    with pytest.raises(ReentrantCallError):
        take_all(pool)
    assert pool.snapshot() == before._replace(watchers=())
    assert len(take_all(pool)) == 6
    pool.check()


def test_watcher_may_look_at_its_pool(pool: BlockPool) -> None:
    blocks = pool.get_new_blocks(2)
    seen: list[int] = []
    pool.unpin_blocks(blocks, lambda block: seen.append(pool.get_num_free_blocks()))
    take_all(pool)
    assert seen == [9, 9]
