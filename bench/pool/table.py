"""The result as Markdown: one row per operation and batch size, one ratio per pool size.

Pure functions from measurements to text. A row is *missed* if its ratio exceeds the promise at any size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .measure import Comparison


@dataclass(frozen=True)
class Cell:
    """One operation at one pool and batch size; `batch` is None where it has no meaning."""

    operation: str
    batch: int | None
    size: str
    comparison: Comparison
    promise: float


@dataclass(frozen=True)
class Figure:
    """One number per side that does not depend on a batch."""

    name: str
    own: float
    upstream: float
    ratio: float
    # None where kvpool promises nothing.
    promise: float | None


def render(upstream_name: str, sizes: Sequence[str], cells: Iterable[Cell], figures: Iterable[Figure]) -> str:
    """The whole report."""
    lines = [
        f"kvpool beside {upstream_name}: time of kvpool divided by time of vLLM, median of paired, interleaved "
        "repetitions in one process (lower is better; under 1 kvpool is faster).",
        "",
        _row(
            "operation",
            "batch",
            *(f"ratio, {size}" for size in sizes),
            "kvpool, ns per block",
            "vLLM, ns",
            "promise",
            "",
        ),
        "|---|---:|" + "---:|" * (len(sizes) + 3) + "---|",
    ]
    by_row: dict[tuple[str, int | None], dict[str, Cell]] = {}
    for cell in cells:
        by_row.setdefault((cell.operation, cell.batch), {})[cell.size] = cell
    for (operation, batch), of_size in sorted(by_row.items(), key=lambda item: (item[0][0], item[0][1] or 0)):
        row = [of_size[size] for size in sizes]
        lines.append(
            _row(
                operation,
                "" if batch is None else str(batch),
                *(f"{cell.comparison.ratio:.2f}" for cell in row),
                " / ".join(f"{cell.comparison.own_ns:.0f}" for cell in row),
                " / ".join(f"{cell.comparison.upstream_ns:.0f}" for cell in row),
                f"{row[0].promise:.2f}",
                _verdict([cell.comparison.ratio for cell in row], row[0].promise),
            )
        )
    lines += ["", _row("figure", "kvpool", "vLLM", "ratio", "promise", ""), "|---|---:|---:|---:|---:|---|"]
    for figure in figures:
        promise, verdict = "", ""
        if figure.promise is not None:
            promise, verdict = f"{figure.promise:.2f}", _verdict([figure.ratio], figure.promise)
        lines.append(
            _row(
                figure.name,
                f"{figure.own:.1f}",
                f"{figure.upstream:.1f}",
                f"{figure.ratio:.2f}",
                promise,
                verdict,
            )
        )
    return "\n".join(lines)


def _verdict(ratios: list[float], promise: float) -> str:
    # Compared as printed, so that a reader can check the verdict.
    return "**missed**" if any(round(ratio, 2) > promise for ratio in ratios) else "kept"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
