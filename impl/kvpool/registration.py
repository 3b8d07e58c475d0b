"""Who may be given which identity: the checks before an entry is registered.

Every function here looks and refuses; none changes anything (P6). Entries must end on a hash that the
request has, belong to a block that somebody holds, and never contradict what the block already stands
for: a block keeps to one chain of prefixes in one group until its entries are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

from .block import KVCacheBlock
from .block_key import BlockHash
from .errors import BoundaryError, CachingDisabledError, IdentityConflictError, InvalidArgumentError
from .membership import check_member, check_owned

__all__ = ["check_partial_target", "full_block_targets", "hashes_per_block"]

GROUP_ID_MAX = 2**32 - 1


def hashes_per_block(operation: str, enable_caching: bool, block_size: int, hash_block_size: int, group_id: int) -> int:
    """How many hash blocks one block spans, once the settings of a registration are found to be sound."""
    if not enable_caching:
        raise CachingDisabledError(
            f"{operation} refused: the pool was built with enable_caching=False; "
            "expected a pool with prefix caching. Do not register entries, or build the pool with caching on."
        )
    if type(block_size) is not int or block_size < 1 or block_size % hash_block_size:
        raise BoundaryError(
            f"{operation} refused: block_size is {block_size!r}; expected a positive multiple of the hash block "
            f"size {hash_block_size}. Use the hash block size that all groups share."
        )
    if type(group_id) is not int or not 0 <= group_id <= GROUP_ID_MAX:
        raise InvalidArgumentError(
            f"{operation} refused: kv_cache_group_id is {group_id!r}; expected an integer from 0 to 2**32 - 1. "
            "Pass the index of the KV-cache group."
        )
    return block_size // hash_block_size


def full_block_targets(
    own_blocks: Sequence[KVCacheBlock],
    hashes: Sequence[BlockHash],
    blocks: Sequence[KVCacheBlock],
    span: tuple[int, int],
    scale: int,
    hash_block_size: int,
    group_id: int,
    mask: Sequence[bool] | None,
) -> list[int]:
    """The positions in `span` whose blocks get an entry; null and masked-out blocks are left out."""
    start, stop = span
    if type(start) is not int or type(stop) is not int or start < 0:
        raise InvalidArgumentError(
            f"cache_full_blocks refused: num_cached_blocks is {start!r} and num_full_blocks is {stop!r}; "
            "expected integers with 0 <= num_cached_blocks. Pass counts of whole blocks."
        )
    if mask is not None and len(mask) != stop - start:
        raise InvalidArgumentError(
            f"cache_full_blocks refused: block_mask has {len(mask)} entries for {stop - start} blocks "
            f"({start} to {stop - 1}); expected one per block. Align the mask with the new full blocks."
        )
    if len(hashes) < stop * scale:
        raise BoundaryError(
            f"cache_full_blocks refused: {stop} full blocks need {stop * scale} block hashes, the request has "
            f"{len(hashes)}; expected at least as many. Hash the request's tokens before registering its blocks."
        )
    if len(blocks) < stop:
        raise InvalidArgumentError(
            f"cache_full_blocks refused: num_full_blocks is {stop} but only {len(blocks)} blocks were passed; expected "
            "at least as many. Pass the request's whole block table."
        )
    targets: list[int] = []
    for position in range(start, stop):
        if mask is not None and not mask[position - start]:
            continue
        block = blocks[position]
        check_member("cache_full_blocks", own_blocks, block)
        if block.is_null:
            continue
        check_owned("cache_full_blocks", block)
        if block.raw_hash is not None:
            _check_promotion(block, hashes, (position + 1) * scale, hash_block_size, group_id)
        targets.append(position)
    if len(targets) > 1 and len({blocks[position] for position in targets}) < len(targets):
        raise _listed_twice(blocks, targets)
    return targets


def _check_promotion(
    block: KVCacheBlock, hashes: Sequence[BlockHash], boundary: int, hash_block_size: int, group_id: int
) -> None:
    """A partial entry may grow into a full one of the same prefix; nothing else may be overwritten."""
    covered = block.block_hash_num_tokens
    if (
        block.group_id == group_id
        and covered is not None
        and 0 < covered < boundary * hash_block_size
        and covered % hash_block_size == 0
        and hashes[covered // hash_block_size - 1] == block.raw_hash
    ):
        return
    raise IdentityConflictError(
        f"cache_full_blocks refused: block {block.block_id} already has an entry in group {block.group_id} that "
        f"covers {covered} tokens; expected none, or one of the same group and request that covers fewer than "
        f"{boundary * hash_block_size}. Register each block once, or evict its entries first."
    )


def _listed_twice(blocks: Sequence[KVCacheBlock], targets: list[int]) -> IdentityConflictError:
    seen: dict[KVCacheBlock, int] = {}
    for position in targets:
        block = blocks[position]
        if block in seen:
            break
        seen[block] = position
    return IdentityConflictError(
        f"cache_full_blocks refused: block {block.block_id} is listed for block positions {seen[block]} and "
        f"{position}; expected one position per block, since a block holds the content of one. Check the block table."
    )


def check_partial_target(
    own_blocks: Sequence[KVCacheBlock],
    hashes: Sequence[BlockHash],
    block: KVCacheBlock,
    num_tokens: int,
    hash_block_size: int,
    group_id: int,
    replace: bool,
) -> None:
    """Refuse a partial entry that has no hash or contradicts the block's primary entry."""
    if type(num_tokens) is not int or num_tokens < 1 or num_tokens % hash_block_size:
        raise BoundaryError(
            f"cache_partial_block refused: num_tokens is {num_tokens!r}; expected a positive multiple of the "
            f"hash block size {hash_block_size}. Round down to the last hashed boundary."
        )
    if num_tokens // hash_block_size > len(hashes):
        raise BoundaryError(
            f"cache_partial_block refused: {num_tokens} tokens need {num_tokens // hash_block_size} block hashes, "
            f"the request has {len(hashes)}; expected at least as many. Hash the request's tokens first."
        )
    check_member("cache_partial_block", own_blocks, block)
    check_owned("cache_partial_block", block)
    if replace or block.raw_hash is None:
        return
    covered = block.block_hash_num_tokens
    if block.group_id == group_id:
        if covered is None or covered % hash_block_size or not 0 < covered // hash_block_size <= len(hashes):
            return  # The request does not reach the primary's boundary: nothing to compare with.
        if hashes[covered // hash_block_size - 1] == block.raw_hash:
            return
    raise IdentityConflictError(
        f"cache_partial_block refused: block {block.block_id} has a primary entry in group {block.group_id} that "
        f"covers {covered} tokens of another prefix; expected group {group_id} and the request's own prefix. "
        "Pass replace_existing_hashes=True if the content was replaced."
    )
