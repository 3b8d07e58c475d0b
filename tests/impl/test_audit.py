"""check() finds corruption that was planted, and says where; snapshots compare what can be observed."""

from collections.abc import Callable

import pytest

from kvpool import BlockPool, InvariantViolation, KVCacheBlock, KVPoolError, Request, Violation
from kvpool.block_key import make_block_key

Chain = tuple[Request, list[KVCacheBlock]]
Plant = Callable[[BlockPool, list[KVCacheBlock]], object]


def found(pool: BlockPool, holders: dict[str, list[KVCacheBlock]] | None = None) -> tuple[Violation, ...]:
    with pytest.raises(InvariantViolation) as caught:
        pool.check(holders)
    return caught.value.violations


def relink(pool: BlockPool, blocks: list[KVCacheBlock]) -> None:
    blocks[0].next_free_block.prev_free_block = blocks[2]


def forget_links(pool: BlockPool, blocks: list[KVCacheBlock]) -> None:
    blocks[1].next_free_block = None


def queue_twice(pool: BlockPool, blocks: list[KVCacheBlock]) -> None:
    pool.free_block_queue.recent.append(blocks[0])


def queue_null(pool: BlockPool, blocks: list[KVCacheBlock]) -> None:
    pool.free_block_queue.recent.append(pool.null_block)


def name_null(pool: BlockPool, blocks: list[KVCacheBlock]) -> None:
    pool.null_block.raw_hash, pool.null_block.group_id = b"hash", 0


def forge_block(pool: BlockPool, blocks: list[KVCacheBlock]) -> None:
    pool.blocks[8] = KVCacheBlock(8)


def insert_stranger(pool: BlockPool, blocks: list[KVCacheBlock]) -> None:
    pool.cached_block_hash_to_block.insert(b"hash" + bytes(4), KVCacheBlock(3))


def set_attribute(name: str, value: object) -> Plant:
    return lambda pool, blocks: setattr(pool, name, value)


PLANTED: dict[str, tuple[str, Plant]] = {
    "queued block referenced": ("P1", lambda pool, blocks: setattr(blocks[0], "ref_cnt", 1)),
    "unused block referenced": ("P1", lambda pool, blocks: setattr(pool.blocks[9], "ref_cnt", 2)),
    "recent block referenced": ("P1", lambda pool, blocks: setattr(pool.blocks[5], "ref_cnt", 1)),
    "held block lost": ("P1", lambda pool, blocks: setattr(pool.blocks[4], "ref_cnt", 0)),
    "negative count": ("P1", lambda pool, blocks: setattr(pool.blocks[4], "ref_cnt", -1)),
    "link one-way": ("P1", relink),
    "chain broken": ("P1", forget_links),
    "queued twice": ("P1", queue_twice),
    "entry lost": ("P3", lambda pool, blocks: pool.cached_block_hash_to_block.pop(blocks[0].block_hash, 1)),
    "hash forgotten": ("P3", lambda pool, blocks: blocks[0].reset_hash()),
    "hash of another": ("P3", lambda pool, blocks: setattr(blocks[0], "raw_hash", blocks[1].raw_hash)),
    "group of another": ("P3", lambda pool, blocks: setattr(blocks[0], "group_id", 5)),
    "stranger listed": ("P3", insert_stranger),
    "secondary without primary": (
        "P3",
        lambda pool, blocks: pool.cached_block_hashes_by_block.update({5: {b"hash" + bytes(4)}}),
    ),
    "empty secondary set": ("P3", lambda pool, blocks: pool.cached_block_hashes_by_block.update({1: set()})),
    "null queued": ("P4", queue_null),
    "null named": ("P4", name_null),
    "null replaced": ("P4", set_attribute("null_block", KVCacheBlock(0))),
    "aged count": ("P5", lambda pool, blocks: setattr(pool.free_block_queue.aged, "count", 9)),
    "size": ("P5", set_attribute("num_gpu_blocks", 11)),
    "block forged": ("P5", forge_block),
    "id changed": ("P5", lambda pool, blocks: setattr(pool.blocks[4], "block_id", 5)),
    "watcher of null": ("P9", lambda pool, blocks: pool._watchers.by_block.update({0: [print]})),
    "watcher of no block": ("P9", lambda pool, blocks: pool._watchers.by_block.update({10: [print]})),
    "watcher list empty": ("P9", lambda pool, blocks: pool._watchers.by_block.update({2: []})),
    "watcher not callable": ("P9", lambda pool, blocks: pool._watchers.by_block.update({2: [None]})),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_corruption_is_found_under_its_property(pool: BlockPool, cached_chain: Chain, name: str) -> None:
    """Blocks 1 to 3 are aged, 4 is held, 5 and 6 are recent, 7 to 9 unused."""
    property_id, plant = PLANTED[name]
    _, chain = cached_chain
    rest = pool.get_new_blocks(3)
    pool.free_blocks(chain)
    pool.free_blocks(rest[1:])
    pool.check({"holder": rest[:1]})
    plant(pool, chain)
    assert property_id in {violation.property_id for violation in found(pool)}


def test_message_names_block_count_and_place(pool: BlockPool) -> None:
    pool.blocks[9].ref_cnt = 2
    with pytest.raises(KVPoolError, match="P1: block 9 is in the free queue with ref_cnt 2, expected 0") as caught:
        pool.check()
    assert "block pool inconsistent: 1 broken invariant(s)" in str(caught.value)


def test_all_broken_invariants_are_listed_at_once(pool: BlockPool, cached_chain: Chain) -> None:
    _, (a, b, _) = cached_chain
    a.reset_hash()
    pool.blocks[7].ref_cnt = 1
    assert {(v.property_id, v.block_ids) for v in found(pool)} == {("P1", (7,)), ("P3", (a.block_id,))}
    assert {v.property_id for v in found(pool, {"nobody": [b]})} == {"P1", "P3", "P10"}


def test_holders_are_compared_with_reference_counts(pool: BlockPool) -> None:
    a, b, c = pool.get_new_blocks(3)
    pool.touch([b])
    pool.check({"table": [a, b, pool.null_block], "step 7": [b], "copy": [c]})
    (violation,) = found(pool, {"table": [a, b], "step 7": [b, b], "copy": [c]})
    assert violation.property_id == "P10"
    assert violation.message == "block 2 has ref_cnt 2 but 3 reference(s) are held, by step 7 x2, table x1"
    leaked, dangling = found(pool, {"table": [a, b, b, pool.blocks[9]]})
    assert leaked.message == "block 3 has ref_cnt 1 but 0 reference(s) are held, by nobody"
    assert dangling.block_ids == (9,)


def test_holder_of_a_foreign_block_is_named(pool: BlockPool) -> None:
    foreign = BlockPool(4, True, 4).get_new_blocks(1)
    (violation,) = found(pool, {"table": foreign})
    assert "holder 'table' holds" in violation.message


def test_snapshot_shows_the_books(pool: BlockPool, cached_chain: Chain) -> None:
    request, (a, _, c) = cached_chain
    pool.cache_partial_block(request, c, 8, 0, 4)
    pool.unpin_blocks([a], print)
    keys = [make_block_key(block_hash, 0) for block_hash in request.block_hashes]
    shot = pool.snapshot()
    assert shot.free_order == (4, 5, 6, 7, 8, 9, 1)
    assert shot.num_free_blocks == 7
    assert shot.ref_counts == (0, 0, 1, 1, 0, 0, 0, 0, 0, 0)
    assert shot.primary == ((1, keys[0], 4), (2, keys[1], 8), (3, keys[2], 12))
    assert shot.secondary == ((3, (keys[1],)),)
    assert dict(shot.entries) == {keys[0]: (1,), keys[1]: (2, 3), keys[2]: (3,)}
    assert shot.watchers == ((1, 1),)
    assert shot.num_pending_events == 1
    assert hash(shot) == hash(pool.snapshot())


@pytest.mark.parametrize(
    "change",
    [
        lambda pool, blocks: pool.free_blocks(blocks[:1]),
        lambda pool, blocks: pool.touch(blocks[:1]),
        lambda pool, blocks: pool.touch([pool.blocks[9]]),
        lambda pool, blocks: pool.evict_blocks([2]),
        lambda pool, blocks: pool.unpin_blocks(blocks[:1], print),
        lambda pool, blocks: pool.get_new_blocks(1),
        lambda pool, blocks: pool.move_block_hashes(blocks[0], pool.get_new_blocks(1)[0]),
    ],
)
def test_snapshots_differ_after_any_change(pool: BlockPool, cached_chain: Chain, change: Plant) -> None:
    before = pool.snapshot()
    change(pool, cached_chain[1])
    assert pool.snapshot() != before
