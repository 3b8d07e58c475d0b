"""Recomputes the pool's invariants from scratch.

Verifies P1, P3, P4, P5, P9 and, given the holders, P10, on one state. It cannot see P2 (a write in place), P6
(what a refused call changed), P7 (what a consumer made of the events) or P8 (whether the order is the
right one): those concern steps, not states, and are compared in lockstep with a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from .block import KVCacheBlock
from .errors import Violation
from .membership import is_member

if TYPE_CHECKING:
    from .pool_books import PoolBooks

__all__ = ["find_violations"]


def find_violations(pool: PoolBooks, holders: Mapping[str, Iterable[KVCacheBlock]] | None) -> list[Violation]:
    """Every broken invariant, by property id; empty when the books are in order."""
    found = [
        *_queue_against_references(pool),
        *_entries_against_blocks(pool),
        *_null_block(pool),
        *_counters(pool),
        *_watchers(pool),
    ]
    if holders is not None:
        found += _references_against_holders(pool, holders)
    return found


def _queue_against_references(pool: PoolBooks) -> Iterator[Violation]:
    queue = pool.free_block_queue
    yield from queue.find_violations()
    queued = Counter(block.block_id for block in queue.get_all_free_blocks())
    for block_id, times in queued.items():
        if times > 1:
            yield Violation("P1", f"block {block_id} is queued {times} times, expected once", (block_id,))
    for block in pool.blocks:
        block_id, count = block.block_id, block.ref_cnt
        if count < 0:
            yield Violation("P1", f"block {block_id} has ref_cnt {count}, expected at least 0", (block_id,))
        elif count > 0 and block_id in queued:
            yield Violation(
                "P1", f"block {block_id} is in the free queue with ref_cnt {count}, expected 0", (block_id,)
            )
        elif count == 0 and block_id not in queued and not block.is_null:
            yield Violation(
                "P1", f"block {block_id} has ref_cnt 0 but is not in the free queue: it is lost", (block_id,)
            )


def _entries_against_blocks(pool: PoolBooks) -> Iterator[Violation]:
    index = pool.cached_block_hash_to_block
    listed: set[tuple[int, bytes]] = set()
    for key, blocks in index.items():
        for block in blocks:
            block_id = block.block_id
            listed.add((block_id, key))
            if not is_member(pool.blocks, block):
                yield Violation("P3", f"key {key.hex()} leads to {block!r}, which is not this pool's", (block_id,))
            elif key not in index.keys_of(block):
                yield Violation(
                    "P3", f"key {key.hex()} leads to block {block_id}, which does not carry it", (block_id,)
                )
    for block in pool.blocks:
        for key in index.keys_of(block):
            if (block.block_id, key) not in listed:
                yield Violation(
                    "P3",
                    f"block {block.block_id} carries key {key.hex()}, which does not lead back to it",
                    (block.block_id,),
                )
    for block_id, keys in index.secondary_keys.items():
        if not keys:
            yield Violation("P3", f"block {block_id} has an empty set of secondary keys", (block_id,))
        elif not 0 <= block_id < pool.num_gpu_blocks or pool.blocks[block_id].raw_hash is None:
            yield Violation("P3", f"block {block_id} has {len(keys)} secondary key(s) but no primary one", (block_id,))


def _null_block(pool: PoolBooks) -> Iterator[Violation]:
    null = pool.null_block
    if pool.blocks[0] is not null or null.block_id != 0 or not null.is_null:
        yield Violation("P4", f"block 0 is {pool.blocks[0]!r}, expected the null block", (0,))
    if null in pool.free_block_queue.get_all_free_blocks() or null.next_free_block or null.prev_free_block:
        yield Violation("P4", "the null block is linked into the free queue", (0,))
    if null.ref_cnt != 0:
        yield Violation("P4", f"the null block counts {null.ref_cnt} references, expected 0", (0,))
    if null.raw_hash is not None or 0 in pool.cached_block_hash_to_block.secondary_keys:
        yield Violation("P4", "the null block has a prefix-cache entry", (0,))
    for block in pool.blocks[1:]:
        if block.is_null:
            yield Violation("P4", f"block {block.block_id} is a second null block", (block.block_id,))


def _counters(pool: PoolBooks) -> Iterator[Violation]:
    queue = pool.free_block_queue
    walked = len(queue.get_all_free_blocks())
    if queue.num_free_blocks != walked:
        yield Violation("P5", f"num_free_blocks is {queue.num_free_blocks}, but {walked} blocks are queued")
    if not 0.0 <= pool.get_usage() <= 1.0:
        yield Violation("P5", f"usage is {pool.get_usage()}, expected a share between 0 and 1")
    if len(pool.blocks) != pool.num_gpu_blocks:
        yield Violation("P5", f"num_gpu_blocks is {pool.num_gpu_blocks}, but there are {len(pool.blocks)} blocks")
    for place, block in enumerate(pool.blocks):
        if block.block_id != place or block.pool is not pool:
            yield Violation("P5", f"place {place} of the block list holds {block!r}", (place,))


def _watchers(pool: PoolBooks) -> Iterator[Violation]:
    for block_id, calls in pool.outstanding_watchers().items():
        if not 0 < block_id < pool.num_gpu_blocks:
            yield Violation(
                "P9", f"{len(calls)} watcher(s) wait for block {block_id}, which is never reused", (block_id,)
            )
        elif not calls or not all(map(callable, calls)):
            yield Violation("P9", f"block {block_id} has a registration that cannot be called", (block_id,))


def _references_against_holders(pool: PoolBooks, holders: Mapping[str, Iterable[KVCacheBlock]]) -> Iterator[Violation]:
    claims: dict[int, Counter[str]] = {}
    for holder, blocks in holders.items():
        for block in blocks:
            if not is_member(pool.blocks, block):
                yield Violation("P10", f"holder {holder!r} holds {block!r}, which is not this pool's")
            elif not block.is_null:
                claims.setdefault(block.block_id, Counter())[holder] += 1
    for block in pool.blocks:
        claimed = claims.get(block.block_id, Counter())
        if block.ref_cnt != claimed.total():
            names = ", ".join(f"{name} x{times}" for name, times in sorted(claimed.items())) or "nobody"
            yield Violation(
                "P10",
                f"block {block.block_id} has ref_cnt {block.ref_cnt} but {claimed.total()} reference(s) are held, "
                f"by {names}",
                (block.block_id,),
            )
