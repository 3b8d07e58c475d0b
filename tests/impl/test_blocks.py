"""Blocks: identity, the null block, and what a block says about itself."""

import copy
import sys

import pytest

from kvpool import BlockPool, IdentityConflictError, KVCacheBlock, NullBlockError


def test_blocks_compare_and_hash_by_identity() -> None:
    one, other = KVCacheBlock(3), KVCacheBlock(3)
    assert one != other
    assert len({one, other}) == 2


def test_every_block_knows_its_pool(pool: BlockPool) -> None:
    assert {block.pool for block in pool.blocks} == {pool}
    assert [block.block_id for block in pool.blocks] == list(range(10))
    assert KVCacheBlock(3).pool is None


def test_block_is_no_larger_than_eight_slots() -> None:
    assert len(KVCacheBlock.__slots__) == 8
    assert not hasattr(KVCacheBlock(3), "__dict__")
    assert sys.getsizeof(KVCacheBlock(3)) <= 96


def test_block_cannot_be_copied_alone_but_a_pool_can(pool: BlockPool) -> None:
    (block,) = pool.get_new_blocks(1)
    with pytest.raises(TypeError, match="copy refused: block 1"):
        copy.copy(block)
    twin = copy.deepcopy(pool)
    assert twin.snapshot() == pool.snapshot()
    twin.free_blocks([twin.blocks[1]])
    twin.check({})
    pool.check({"test": [block]})


def test_identity_is_set_once_and_reset(pool: BlockPool) -> None:
    block = KVCacheBlock(3)
    block.set_block_hash(b"hash\x00\x00\x00\x07", num_tokens=16)
    assert block.block_hash == b"hash\x00\x00\x00\x07"
    assert (block.raw_hash, block.group_id, block.block_hash_num_tokens) == (b"hash", 7, 16)
    with pytest.raises(IdentityConflictError, match="block 3 already has key"):
        block.set_block_hash(b"hash\x00\x00\x00\x07")
    block.reset_hash()
    assert (block.block_hash, block.block_hash_num_tokens) == (None, None)


def test_null_block_cannot_be_counted_or_named(pool: BlockPool) -> None:
    null = pool.null_block
    assert null is pool.blocks[0]
    assert null.is_null
    assert not pool.blocks[1].is_null
    null.ref_cnt = 0
    with pytest.raises(NullBlockError, match="cannot count 1 references"):
        null.ref_cnt += 1
    with pytest.raises(NullBlockError, match="cannot carry"):
        null.set_block_hash(b"hash" + bytes(4))
    assert null.ref_cnt == 0


def test_repr_names_neighbours_by_id_and_shortens_keys(pool: BlockPool) -> None:
    blocks = pool.get_new_blocks(3)
    for block in blocks:
        pool._insert_block_hash(bytes([block.block_id]) * 32 + bytes(4), block, 4)
    pool.free_blocks(blocks)
    assert repr(blocks[1]) == (
        "KVCacheBlock(block_id=2, ref_cnt=0, block_hash=02020202..00000000, block_hash_num_tokens=4, prev=1, next=3)"
    )
    assert repr(pool.null_block).startswith("NullBlock(block_id=0, ref_cnt=0, block_hash=None")
