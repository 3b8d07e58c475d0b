"""Paired measurement: both contenders in one process, taking turns, compared repetition by repetition.

On a busy machine absolute times wander, but two neighbouring repetitions wander together, so the median
of their ratios is stable where a ratio of medians is not. The order alternates to cancel drift.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from .contender import BenchRequest, Contender
from .rows import BLOCK_SIZE, CycleKind, Timings

PROMPT_TOKENS = 2048


@dataclass(frozen=True)
class Comparison:
    """One operation at one size: medians of both sides and of their paired ratios."""

    own_ns: float
    upstream_ns: float
    ratio: float


@contextmanager
def _collector_off() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def compare(own: Callable[[], Timings], upstream: Callable[[], Timings], repetitions: int) -> dict[str, Comparison]:
    """Run both, taking turns, and compare each operation."""
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with _collector_off():
        own()
        upstream()
        for repetition in range(repetitions):
            if repetition % 2:
                theirs, ours = upstream(), own()
            else:
                ours, theirs = own(), upstream()
            for name, own_ns in ours.items():
                pairs[name].append((own_ns, theirs[name]))
    return {
        name: Comparison(
            own_ns=median(pair[0] for pair in measured),
            upstream_ns=median(pair[1] for pair in measured),
            ratio=median(pair[0] / pair[1] for pair in measured),
        )
        for name, measured in pairs.items()
    }


def compare_cycles(kind: CycleKind, own: Contender, upstream: Contender, repetitions: int) -> dict[str, Comparison]:
    """Build one cycle for each side and compare them."""
    return compare(kind.build(own), kind.build(upstream), repetitions)


def compare_hashing(own: Contender, upstream: Contender, block_size: int, repetitions: int) -> Comparison:
    """SHA-256 of a prompt, per block of `block_size` tokens."""
    num_blocks = PROMPT_TOKENS // block_size

    def side(contender: Contender) -> Callable[[], Timings]:
        hasher, request = contender.make_hasher(block_size), BenchRequest([], PROMPT_TOKENS)

        def run() -> Timings:
            start = time.perf_counter_ns()
            hashes = hasher(request)
            spent = time.perf_counter_ns() - start
            assert len(hashes) == num_blocks
            return {"hash": spent / num_blocks}

        return run

    return compare(side(own), side(upstream), repetitions)["hash"]


def compare_construction(own: Contender, upstream: Contender, pool_size: int, repetitions: int) -> Comparison:
    """Building a pool, with the garbage collector left as a user would have it."""

    def build_ns(contender: Contender) -> int:
        gc.collect()
        start = time.perf_counter_ns()
        pool = contender.make_pool(pool_size, True, BLOCK_SIZE, False)
        spent = time.perf_counter_ns() - start
        del pool
        return spent

    pairs = [(build_ns(own), build_ns(upstream)) for _ in range(repetitions)]
    return Comparison(
        own_ns=median(pair[0] for pair in pairs),
        upstream_ns=median(pair[1] for pair in pairs),
        ratio=median(pair[0] / pair[1] for pair in pairs),
    )


def bytes_per_block(contender: Contender, pool_size: int) -> float:
    """Memory of a new pool, by the allocator's account, divided by its blocks."""
    gc.collect()
    tracemalloc.start()
    try:
        pool: Any = contender.make_pool(pool_size, True, BLOCK_SIZE, False)
        used = tracemalloc.get_traced_memory()[0]
        del pool
    finally:
        tracemalloc.stop()
    return used / pool_size
