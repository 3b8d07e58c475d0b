"""The comparison with Spin as Markdown: pure functions from results to text.

The word "missed" stands in the text exactly if a goal was missed or two counts that must be equal are not.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.explorer.comparison import Agreement, Planted, Race
from bench.explorer.spin import MISSING

GOAL = 0.25
"""CPU seconds of the explorer with full symmetry divided by Spin's, at every scope that is raced."""

_INTRODUCTION = (
    "One small block pool, written twice: bench/explorer/small_model.py for kvproof's explorer, small_model.pml beside "
    "it for Spin. The rules are the same, and so are the properties; Spin asserts them after every operation. Scopes "
    "are blocks x requests x hashes; L is the longest table. Spin's time is that of its verifier alone (`gcc -O2 "
    "-DSAFETY`, user and system)."
)


def render(spin: str, agreements: Sequence[Agreement], races: Sequence[Race], planted: Planted) -> str:
    """The whole section, without a heading. `spin` names its version, "" if it is missing."""
    parts = [_INTRODUCTION]
    if not spin:
        parts.append(MISSING + ".")
    parts += ["\n".join(_counts(agreements)), "\n".join(_costs(spin, agreements, races)), _verdict(planted)]
    return "\n\n".join(parts)


def _counts(agreements: Sequence[Agreement]) -> list[str]:
    lines = [
        "| scope | states, Spin | states, explorer | transitions, Spin | transitions, explorer | full symmetry | |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for agreed in agreements:
        spin = (
            ("not run", "not run")
            if agreed.spin is None
            else (f"{agreed.spin.states:,}", f"{agreed.spin.transitions:,}")
        )
        verdict = "equal" if agreed.holds else "**missed**: not equal"
        lines.append(
            f"| {agreed.scope} | {spin[0]} | {agreed.plain.states:,} | {spin[1]} | {agreed.plain.transitions:,} | "
            f"{agreed.full.states:,} | {verdict} |"
        )
    return lines


def _costs(spin: str, agreements: Sequence[Agreement], races: Sequence[Race]) -> list[str]:
    lines = ["| scope | engine | states | CPU s | ratio to Spin | goal | |", "|---|---|---:|---:|---:|---:|---|"]
    for raced in races:
        first, verdict = raced.spin[0], "kept" if round(raced.ratio, 2) <= GOAL else "**missed**"
        lines += [
            f"| {raced.scope} | {spin} | {first.states:,} | {raced.spin_cpu_seconds:.2f} | 1 | | compiling took "
            f"{raced.compile_cpu_seconds:.1f} s more, memory {first.memory_mb:.0f} MB |",
            f"| {raced.scope} | explorer, full symmetry | {raced.full[0].states:,} | {raced.full_cpu_seconds:.2f} | "
            f"{raced.ratio:.2f} | {GOAL} | {verdict} |",
        ]
    for agreed in agreements:
        lines.append(_plain_cost(agreed))
        if agreed.spin is None:
            full = agreed.full
            lines.append(
                f"| {agreed.scope} | explorer, full symmetry | {full.states:,} | {full.cpu_seconds:.2f} | | | |"
            )
    if races:
        lines += [
            "",
            f"Full symmetry and Spin took turns, {len(races[0].full)} rounds: medians, and the median of the ratios of "
            "neighbouring runs. No symmetry: one run.",
        ]
    return lines


def _plain_cost(agreed: Agreement) -> str:
    plain = agreed.plain
    ratio = "" if agreed.spin is None else f"{plain.cpu_seconds / max(agreed.spin.cpu_seconds, 0.001):.1f}"
    return f"| {agreed.scope} | explorer, no symmetry | {plain.states:,} | {plain.cpu_seconds:.2f} | {ratio} | | |"


def _verdict(planted: Planted) -> str:
    """Who found the planted bug, and how."""
    found = [] if planted.spin is None else [f"Spin: {planted.spin.complaint or 'no error'}"]
    for name, result in (("full symmetry", planted.full), ("no symmetry", planted.plain)):
        what = "no failure" if result.failure is None else result.failure.headline
        found.append(f"explorer, {name}: {what}, after {len(result.actions)} operations")
    verdict = "found by all" if planted.is_found else "**missed**"
    return (
        f"Planted bug (a release puts blocks into the queue that another request still holds) at {planted.scope}: "
        f"{verdict}. {'; '.join(found)}."
    )
