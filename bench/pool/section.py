"""The whole comparison: measures every row and figure at the chosen pool sizes and returns the text.

Takes from seconds (one small pool) to some minutes (a million blocks). Progress goes to standard error.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .contender import Contender, own_pool, upstream_pool
from .measure import bytes_per_block, compare_construction, compare_cycles, compare_hashing
from .rows import PROMISES, cycle_kinds
from .table import Cell, Figure, render

# One block more than the numbers say: the null block.
SIZES = {"1k": 1_025, "64k": 65_537, "1M": 1_000_001}
BATCHES = (1, 16, 1024)
SEED = 20_240_901
# Upper bounds of kvpool / vLLM: building the largest pool, and hashing by tokens in a block.
CONSTRUCTION_PROMISE = 0.4
HASHING_PROMISES = {16: 0.4, 128: 0.65}


def compare_pools(tree: Path, sizes: list[str], repetitions: int) -> str:
    """Markdown tables of kvpool beside the vLLM tree at `tree`; a row that breaks its promise says "missed"."""
    own, upstream = own_pool(), upstream_pool(tree)
    cells = _operations(own, upstream, sizes, repetitions)
    figures = _figures(own, upstream, sizes, repetitions)
    return render(upstream.name, sizes, cells, figures)


def _operations(own: Contender, upstream: Contender, sizes: list[str], repetitions: int) -> list[Cell]:
    cells = []
    for size in sizes:
        for kind in cycle_kinds(SIZES[size], BATCHES, SEED):
            for name, comparison in compare_cycles(kind, own, upstream, repetitions).items():
                column = 0 if kind.batch is None else BATCHES.index(kind.batch)
                cells.append(Cell(name, kind.batch, size, comparison, PROMISES[name][column]))
            print(f"measured {size}, batch {kind.batch}", file=sys.stderr)
    return cells


def _figures(own: Contender, upstream: Contender, sizes: list[str], repetitions: int) -> list[Figure]:
    figures = []
    for num_tokens, promise in HASHING_PROMISES.items():
        hashed = compare_hashing(own, upstream, num_tokens, repetitions)
        figures.append(
            Figure(
                f"hash of {num_tokens} tokens (sha256), ns",
                hashed.own_ns,
                hashed.upstream_ns,
                hashed.ratio,
                promise,
            )
        )
    largest = sizes[-1]
    built = compare_construction(own, upstream, SIZES[largest], min(repetitions, 5))
    figures.append(
        Figure(
            f"build a {largest} pool, ms",
            built.own_ns / 1e6,
            built.upstream_ns / 1e6,
            built.ratio,
            CONSTRUCTION_PROMISE if largest == "1M" else None,
        )
    )
    for size in sizes:
        own_bytes, upstream_bytes = (bytes_per_block(side, SIZES[size]) for side in (own, upstream))
        figures.append(
            Figure(
                f"memory per block, {size} pool, bytes",
                own_bytes,
                upstream_bytes,
                own_bytes / upstream_bytes,
                1.0,
            )
        )
    return figures
