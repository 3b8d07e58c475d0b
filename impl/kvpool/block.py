"""One KV-cache block: its id, its reference count, its identity, its place in the free queue.

Metadata only: the KV tensors live elsewhere, at row `block_id`. Blocks are made by their pool, once,
and compare and hash by identity. Owns half of P4: the null block cannot be counted or hashed at all.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from .block_key import GROUP_ID_BYTES, BlockHash, BlockKey, get_block_hash, get_group_id
from .errors import IdentityConflictError, NullBlockError

if TYPE_CHECKING:
    from .block_pool import BlockPool

__all__ = ["KVCacheBlock", "NullBlock", "make_blocks"]


class KVCacheBlock:
    """Metadata of one block.

    `ref_cnt` is a plain slot, since engines read it and add to it directly. They may do so only while they hold the
    block; the pool detects a queued block whose count is not 0 and then refuses to go on. `prev_free_block` and
    `next_free_block` belong to the free queue and are None unless the block is in its linked part.

    A block made by hand belongs to no pool, and a block cannot be copied alone: `pool` then tells that a block is
    the very object that its pool lists under `block_id`. Eight slots: as small as a block of upstream's.
    """

    __slots__ = (
        "_pool",
        "block_hash_num_tokens",
        "block_id",
        "group_id",
        "next_free_block",
        "prev_free_block",
        "raw_hash",
        "ref_cnt",
    )

    # The null block is the only instance of a subclass, which saves every other block a slot.
    is_null = False

    _pool: BlockPool | None
    block_id: int
    ref_cnt: int
    raw_hash: BlockHash | None
    group_id: int | None
    block_hash_num_tokens: int | None
    prev_free_block: KVCacheBlock | Any
    next_free_block: KVCacheBlock | Any

    def __init__(self, block_id: int) -> None:
        self._pool = None
        self.block_id = block_id
        self.ref_cnt = 0
        self.raw_hash = None
        self.group_id = None
        self.block_hash_num_tokens = None
        self.prev_free_block = None
        self.next_free_block = None

    @property
    def pool(self) -> BlockPool | None:
        """The pool that made the block; None for a block made by hand."""
        return self._pool

    def __copy__(self) -> KVCacheBlock:
        raise TypeError(
            f"copy refused: block {self.block_id} is one object in one pool; expected no second one. "
            "Hand the block itself around, or copy the whole pool with copy.deepcopy."
        )

    @property
    def block_hash(self) -> BlockKey | None:
        """The primary key (hash and group id), or None when the block has no entry."""
        if self.raw_hash is None:
            return None
        assert self.group_id is not None
        return self.raw_hash + self.group_id.to_bytes(GROUP_ID_BYTES, "big")

    def set_block_hash(self, block_hash: BlockKey, num_tokens: int | None = None) -> None:
        """Give an unidentified block its primary key, which covers `num_tokens` prefix tokens.

        The index does not learn of it: `BlockPool` methods keep both in step. Raises
        IdentityConflictError if the block already has a primary key.
        """
        if self.raw_hash is not None or self.block_hash_num_tokens is not None:
            raise IdentityConflictError(
                f"set_block_hash refused: block {self.block_id} already has key {_short(self.block_hash)} "
                f"covering {self.block_hash_num_tokens} tokens; expected an unidentified block. "
                "Drop its entries first."
            )
        self.raw_hash = get_block_hash(block_hash)
        self.group_id = get_group_id(block_hash)
        self.block_hash_num_tokens = num_tokens

    def reset_hash(self) -> None:
        """Forget the primary key. The index does not learn of it."""
        self.raw_hash = None
        self.group_id = None
        self.block_hash_num_tokens = None

    def __repr__(self) -> str:
        # Neighbours by id, since a repr that follows links would print the whole queue.
        before, after = self.prev_free_block, self.next_free_block
        return (
            f"{type(self).__name__}(block_id={self.block_id}, ref_cnt={self.ref_cnt}, "
            f"block_hash={_short(self.block_hash)}, block_hash_num_tokens={self.block_hash_num_tokens}, "
            f"prev={None if before is None else before.block_id}, "
            f"next={None if after is None else after.block_id})"
        )


class NullBlock(KVCacheBlock):
    """Block 0, the placeholder in block tables: never queued, never hashed, its count always reads 0."""

    __slots__ = ()

    is_null = True

    def __init__(self, pool: BlockPool) -> None:
        self._pool = pool
        self.block_id = 0
        self.reset_hash()
        self.prev_free_block = None
        self.next_free_block = None

    @property
    def ref_cnt(self) -> int:
        """Always 0: references to the null block are not counted."""
        return 0

    @ref_cnt.setter
    def ref_cnt(self, value: int) -> None:
        if value != 0:
            raise NullBlockError(
                f"write of ref_cnt refused: block 0 is the null block and cannot count {value} references; "
                "expected 0, as its count is not kept. Skip null blocks when you count references."
            )

    def set_block_hash(self, block_hash: BlockKey, num_tokens: int | None = None) -> None:
        """Always raises NullBlockError."""
        raise NullBlockError(
            f"set_block_hash refused: block 0 is the null block and cannot carry {_short(block_hash)}; "
            "expected a block that holds content. Skip null blocks when you register entries."
        )


def make_blocks(pool: BlockPool, null_block: NullBlock, count: int) -> list[KVCacheBlock]:
    """The blocks of `pool`, `null_block` first."""
    blocks: list[KVCacheBlock] = [null_block]
    new, append = KVCacheBlock.__new__, blocks.append
    # Pools have up to millions of blocks. Written out, this takes half the time of calling the class; and
    # garbage collections would only look at what has just been made.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for block_id in range(1, count):
            block = new(KVCacheBlock)
            block._pool = pool
            block.block_id = block_id
            block.ref_cnt = 0
            block.raw_hash = block.group_id = block.block_hash_num_tokens = None
            block.prev_free_block = block.next_free_block = None
            append(block)
    finally:
        if was_enabled:
            gc.enable()
    return blocks


def _short(key: BlockKey | None) -> str:
    if key is None:
        return "None"
    text = key.hex()
    return text if len(text) <= 20 else f"{text[:8]}..{text[-8:]}"
