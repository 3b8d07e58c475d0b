"""Keys of the prefix cache: a block hash followed by the KV-cache group's id.

A key is bytes: the hash, then the group id as four bytes, big endian, so that equal content in two
groups never shares an entry. The index stores hash and group apart; keys are composed only for
callers. This module neither hashes tokens (`prefix_hash`) nor stores entries (`prefix_index`).
"""

from __future__ import annotations

__all__ = ["GROUP_ID_BYTES", "BlockHash", "BlockKey", "get_block_hash", "get_group_id", "make_block_key"]

BlockHash = bytes
BlockKey = bytes

GROUP_ID_BYTES = 4


def make_block_key(block_hash: BlockHash, group_id: int) -> BlockKey:
    """The key of `block_hash` in group `group_id` (0 to 2**32 - 1; OverflowError outside)."""
    return block_hash + group_id.to_bytes(GROUP_ID_BYTES, "big")


def get_block_hash(key: BlockKey) -> BlockHash:
    """The hash part of a key."""
    return key[:-GROUP_ID_BYTES]


def get_group_id(key: BlockKey) -> int:
    """The group part of a key."""
    return int.from_bytes(key[-GROUP_ID_BYTES:], "big")
