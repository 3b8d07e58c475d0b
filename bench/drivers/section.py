"""Rates of the drivers as Markdown: pure functions from turns to text.

The word "missed" stands in the text exactly if a goal was missed.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.drivers.comparison import Turns
from bench.drivers.contenders import SHIPPED_STRIDE
from kvspec.pool import PoolScope

WALK = "walk"
MACHINE = "Hypothesis machine"
WALK_ALL = "walk, every property on every step"
MACHINE_ALL = "Hypothesis machine, every property on every step"
EXPLORER = "explorer, every property on every step"
MODEL = "explorer, model alone"

RATIO_GOAL = 20.0
"""Steps per CPU second of the walk divided by the machine's, same checks."""
RATE_GOAL = 25_000.0
"""Steps per CPU second of the walk on an idle core; its best turn had the core most to itself, so that one counts."""

_INTRODUCTION = (
    "Steps really executed on kvpool and on the specification, side by side; after each, the outcome and everything "
    "that the pool shows are compared. Walk and machine are compared at the same checks twice: with the properties "
    "judged on every {stride}th step, as the walk is shipped, and on every step. The explorer's steps include putting "
    "the pool back into the state by replay."
)


def render(turns: Sequence[tuple[PoolScope, Turns]]) -> str:
    """The whole section, without a heading."""
    return "\n\n".join(
        [_INTRODUCTION.format(stride=SHIPPED_STRIDE), *(_of_scope(scope, measured) for scope, measured in turns)]
    )


def _of_scope(scope: PoolScope, measured: Turns) -> str:
    rounds = len(measured.work[WALK])
    lines = [
        f"Scope {scope}; all took turns, medians of {rounds}:",
        "",
        "| driver | steps counted | steps per CPU s | states per CPU s | times the machine | goal | |",
        "|---|---:|---:|---:|---:|---|---|",
    ]
    for name in measured.work:
        states = f"{measured.state_rate(name):,.0f}" if name in (EXPLORER, MODEL) else ""
        ratio, goal, verdict = _comparison(name, measured)
        lines.append(
            f"| {name} | {measured.steps(name):,} | {measured.rate(name):,.0f} | {states} | {ratio} | {goal} | "
            f"{verdict} |"
        )
    best = max(done.steps_per_second for done in measured.work[WALK])
    verdict = "kept" if best >= RATE_GOAL else "**missed**"
    goal = f"Goal for the walk on an idle core: {RATE_GOAL:,.0f} steps per CPU second."
    return "\n".join([*lines, "", f"{goal} Its best turn did {best:,.0f}: {verdict}."])


def _comparison(name: str, measured: Turns) -> tuple[str, str, str]:
    if name == WALK_ALL:
        return f"{measured.ratio(name, MACHINE_ALL):.1f}", "", ""
    if name != WALK:
        return "", "", ""
    ratio = measured.ratio(WALK, MACHINE)
    kept = "kept" if round(ratio, 1) >= RATIO_GOAL else "**missed**"
    return f"{ratio:.1f}", f"{RATIO_GOAL:.0f}", kept
