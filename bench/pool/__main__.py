"""Command line: `python -m bench.pool --tree PATH [--quick] [--write FILE]`, from the repository root."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

from .contender import Contender, own_pool, upstream_pool
from .measure import bytes_per_block, compare_construction, compare_cycles, compare_hashing
from .rows import PROMISES, cycle_kinds
from .table import Cell, Figure, render

SIZES = {"1k": 1_025, "64k": 65_537, "1M": 1_000_001}
BATCHES = (1, 16, 1024)
SEED = 20_240_901
CONSTRUCTION_PROMISE = 0.4
HASHING_PROMISES = {16: 0.4, 128: 0.65}


def main() -> int:
    """Measure and print; exit code 1 if a promise was missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.pool", description=__doc__)
    parser.add_argument("--tree", type=Path, required=True, help="source tree (or its vllm directory) of vLLM")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the table to this Markdown file")
    parser.add_argument("--quick", action="store_true", help="smallest pool, few repetitions: does it run at all?")
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES), help="pool sizes to measure")
    parser.add_argument("--repetitions", type=int, default=61, help="paired repetitions per row (default 61)")
    arguments = parser.parse_args()
    sizes = ["1k"] if arguments.quick else arguments.sizes
    repetitions = 3 if arguments.quick else arguments.repetitions
    own, upstream = own_pool(), upstream_pool(arguments.tree)

    cells = _operations(own, upstream, sizes, repetitions)
    figures = _figures(own, upstream, sizes, repetitions)
    text = render(upstream.name, sizes, cells, figures, describe_machine())
    print(text)
    if arguments.write is not None:
        arguments.write.write_text(text + "\n", encoding="utf-8")
    return 1 if "missed" in text else 0


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
            CONSTRUCTION_PROMISE,
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


def describe_machine() -> str:
    """Processor, cores and Python; nothing that names the machine."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"


if __name__ == "__main__":
    sys.exit(main())
