"""What is measured: the operations, their batch sizes, and the promise for each.

A *cycle* runs a group of operations that undo each other, so that a pool of any size is built once and stays
in its steady state. Each cycle yields the nanoseconds per block of each of its operations. Work that is not
measured (drawing hashes, giving blocks back) happens outside the timed loops.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from .contender import BenchRequest, Contender, fresh_hashes

BLOCK_SIZE = 16
# Blocks moved per cycle: enough to dwarf the timer, few enough for the smallest pool.
BLOCKS_PER_CYCLE = 1024

# Nanoseconds per block (or per hash) by operation.
Timings = dict[str, float]
Cycle = Callable[[], Timings]

# Upper bounds of kvpool / vLLM per operation, for batches of 1, 16 and 1024 blocks.
PROMISES: dict[str, tuple[float, float, float]] = {
    "get, unhashed, caching on": (0.5, 0.25, 0.25),
    "get, caching off": (0.6, 0.6, 0.6),
    "get, evicting": (0.5, 0.5, 0.5),
    "free, unhashed": (0.4, 0.65, 0.65),
    "free, hashed, reversed order": (0.65, 0.65, 0.65),
    "touch, one request's chain": (0.9, 0.8, 0.8),
    "touch, random cold blocks": (1.05, 1.05, 1.05),
    "cache_full_blocks": (0.4, 0.4, 0.4),
    "get_cached_block": (0.6, 0.6, 0.6),
    "lookup of 1,000 hashes in one call": (0.15, 0.15, 0.15),
    "with events: cache": (0.5, 0.5, 0.5),
    "with events: evicting get": (0.5, 0.5, 0.5),
}


def _timed(work: Callable[[], Any], count: int = BLOCKS_PER_CYCLE) -> tuple[float, Any]:
    start = time.perf_counter_ns()
    result = work()
    return (time.perf_counter_ns() - start) / count, result


def _full_of_cached_blocks(contender: Contender, pool_size: int, events: bool) -> Any:
    """A pool in which every block was computed once and is free, cached and evictable."""
    pool = contender.make_pool(pool_size, True, BLOCK_SIZE, events)
    left = pool_size - 1
    chains = []
    while left:
        count = min(left, BLOCKS_PER_CYCLE)
        blocks = pool.get_new_blocks(count)
        pool.cache_full_blocks(BenchRequest(fresh_hashes(count), count * BLOCK_SIZE), blocks, 0, count, BLOCK_SIZE, 0)
        chains.append(blocks)
        left -= count
    for blocks in chains:
        pool.free_blocks(reversed(blocks))
    pool.take_events()
    return pool


def uncached_cycle(contender: Contender, pool_size: int, batch: int, caching: bool) -> Cycle:
    """Take blocks that were released without an identity, and release them again."""
    pool = contender.make_pool(pool_size, caching, BLOCK_SIZE, False)
    pool.free_blocks(pool.get_new_blocks(pool_size - 1))
    calls = range(BLOCKS_PER_CYCLE // batch)
    get, free = pool.get_new_blocks, pool.free_blocks

    def cycle() -> Timings:
        get_ns, batches = _timed(lambda: [get(batch) for _ in calls])
        free_ns, _ = _timed(lambda: [free(blocks) for blocks in batches])
        if not caching:
            return {"get, caching off": get_ns}
        return {"get, unhashed, caching on": get_ns, "free, unhashed": free_ns}

    return cycle


def eviction_cycle(contender: Contender, pool_size: int, batch: int, events: bool) -> Cycle:
    """Take the oldest cached blocks, give them new identities, release them as cached."""
    pool = _full_of_cached_blocks(contender, pool_size, events)
    calls = range(BLOCKS_PER_CYCLE // batch)
    get, free, cache = pool.get_new_blocks, pool.free_blocks, pool.cache_full_blocks

    def cycle() -> Timings:
        requests = [BenchRequest(fresh_hashes(batch), batch * BLOCK_SIZE) for _ in calls]
        get_ns, batches = _timed(lambda: [get(batch) for _ in calls])
        work = list(zip(requests, batches, strict=True))
        cache_ns, _ = _timed(lambda: [cache(request, blocks, 0, batch, BLOCK_SIZE, 0) for request, blocks in work])
        free_ns, _ = _timed(lambda: [free(reversed(blocks)) for blocks in batches])
        pool.take_events()
        if events:
            return {"with events: evicting get": get_ns, "with events: cache": cache_ns}
        return {
            "get, evicting": get_ns,
            "cache_full_blocks": cache_ns,
            "free, hashed, reversed order": free_ns,
        }

    return cycle


def touch_cycle(contender: Contender, pool_size: int, batch: int, scattered: bool, seed: int) -> Cycle:
    """Hit cached free blocks: the chain of one request, or blocks from all over the queue."""
    pool = _full_of_cached_blocks(contender, pool_size, False)
    touch, free = pool.touch, pool.free_blocks
    draw = random.Random(seed)
    name = "touch, random cold blocks" if scattered else "touch, one request's chain"

    def cycle() -> Timings:
        if scattered:
            blocks = draw.sample(pool.blocks[1:], BLOCKS_PER_CYCLE)
        else:
            start = draw.randrange((pool_size - 1) // BLOCKS_PER_CYCLE) * BLOCKS_PER_CYCLE
            blocks = pool.blocks[1 + start : 1 + start + BLOCKS_PER_CYCLE]
        batches = [blocks[at : at + batch] for at in range(0, len(blocks), batch)]
        touch_ns, _ = _timed(lambda: [touch(part) for part in batches])
        free(reversed(blocks))
        return {name: touch_ns}

    return cycle


def lookup_cycle(contender: Contender, pool_size: int, seed: int) -> Cycle:
    """Ask for cached prefixes, hash by hash and as one run of 1,000."""
    pool = contender.make_pool(pool_size, True, BLOCK_SIZE, False)
    hashes = fresh_hashes(pool_size - 1)
    blocks = pool.get_new_blocks(pool_size - 1)
    pool.cache_full_blocks(BenchRequest(hashes, len(hashes) * BLOCK_SIZE), blocks, 0, len(blocks), BLOCK_SIZE, 0)
    pool.free_blocks(reversed(blocks))
    draw, get, groups = random.Random(seed), pool.get_cached_block, [0]

    def cycle() -> Timings:
        start = draw.randrange(len(hashes) - 1000)
        wanted = hashes[start : start + 1000]
        single_ns, _ = _timed(lambda: [get(block_hash, groups) for block_hash in wanted], 1000)
        run_ns, run = _timed(lambda: contender.lookup_run(pool, wanted), 1000)
        assert len(run) == 1000
        return {"get_cached_block": single_ns, "lookup of 1,000 hashes in one call": run_ns}

    return cycle


@dataclass(frozen=True)
class CycleKind:
    """A way to build a cycle for one contender; `batch` is None where it has no meaning."""

    batch: int | None
    build: Callable[[Contender], Cycle]


def cycle_kinds(pool_size: int, batches: tuple[int, ...], seed: int) -> Iterator[CycleKind]:
    """Everything that is measured at one pool size."""
    for batch in batches:
        for caching in (True, False):
            yield CycleKind(batch, partial(uncached_cycle, pool_size=pool_size, batch=batch, caching=caching))
        for events in (False, True):
            yield CycleKind(batch, partial(eviction_cycle, pool_size=pool_size, batch=batch, events=events))
        for scattered in (False, True):
            yield CycleKind(
                batch, partial(touch_cycle, pool_size=pool_size, batch=batch, scattered=scattered, seed=seed)
            )
    yield CycleKind(None, partial(lookup_cycle, pool_size=pool_size, seed=seed))
