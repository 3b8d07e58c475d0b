"""Checks that a block is one of a pool's own, somebody's, and not the null block.

A pool acts only on the very objects in its `blocks` list. An equal id proves nothing: a copy, a block of another
pool or a leftover of an older pool has one too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .block import KVCacheBlock
from .errors import NotOwnedError, NullBlockError, UnknownBlockError

__all__ = ["check_member", "check_not_null", "check_owned", "is_member"]


def is_member(own_blocks: Sequence[KVCacheBlock], block: Any) -> bool:
    """Whether `block` is the object that `own_blocks` has under its id."""
    if not isinstance(block, KVCacheBlock):
        return False
    block_id = block.block_id
    return 0 <= block_id < len(own_blocks) and own_blocks[block_id] is block


def check_member(operation: str, own_blocks: Sequence[KVCacheBlock], block: Any) -> None:
    """Refuse anything but one of this pool's own block objects."""
    if not is_member(own_blocks, block):
        raise UnknownBlockError(
            f"{operation} refused: {block!r} is not one of this pool's {len(own_blocks)} blocks; expected "
            "the very object at pool.blocks[block_id]. Look the block up in its own pool."
        )


def check_owned(operation: str, block: KVCacheBlock) -> None:
    """Refuse a block that nobody holds."""
    if block.ref_cnt < 1:
        raise NotOwnedError(
            f"{operation} refused: block {block.block_id} has ref_cnt {block.ref_cnt}; expected at least 1, "
            "since a block that nobody holds may be handed out at any moment. Touch it first."
        )


def check_not_null(operation: str, block: KVCacheBlock) -> None:
    """Refuse the null block."""
    if block.is_null:
        raise NullBlockError(
            f"{operation} refused: block 0 is the null block, which has no content and no references; "
            "expected other blocks. Skip null blocks."
        )
