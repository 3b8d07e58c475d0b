"""The explorer and Spin on the same scopes, taking turns: do they agree, and what does each cost in CPU seconds?

On a busy machine absolute times wander, but two neighbouring runs wander together; so the ratio is the median of the
ratios of neighbouring runs. Neither side is told the number of states in advance.
"""

from __future__ import annotations

import gc
from statistics import median
from typing import NamedTuple

from bench.explorer.small_model import SmallModel, SmallScope
from bench.explorer.spin import SpinRun, Verifier, is_installed
from kvfuzz.explorer import Explorer, ExploreResult


class Agreement(NamedTuple):
    """Every state and transition of one scope, counted by both without symmetry, and the explorer's count with it.

    spin is None where Spin is missing: then only the explorer's two verdicts can be compared.
    """

    scope: SmallScope
    spin: SpinRun | None
    plain: ExploreResult
    full: ExploreResult

    @property
    def holds(self) -> bool:
        """Whether both exhausted the scope and found it right, with the same states and transitions."""
        alone = self.plain.exhausted and self.full.exhausted and self.plain.failure is self.full.failure is None
        if self.spin is None:
            return alone
        counted = (self.spin.states, self.spin.transitions, self.spin.errors)
        return alone and counted == (self.plain.states, self.plain.transitions, 0)


class Race(NamedTuple):
    """CPU seconds at one scope, run by run; entry i of both lists was measured one after the other."""

    scope: SmallScope
    compile_cpu_seconds: float
    spin: list[SpinRun]
    full: list[ExploreResult]

    @property
    def ratio(self) -> float:
        """Explorer with full symmetry, divided by Spin: median over the rounds."""
        pairs = zip(self.full, self.spin, strict=True)
        return median(ours.cpu_seconds / theirs.cpu_seconds for ours, theirs in pairs)

    @property
    def spin_cpu_seconds(self) -> float:
        return median(run.cpu_seconds for run in self.spin)

    @property
    def full_cpu_seconds(self) -> float:
        return median(run.cpu_seconds for run in self.full)


class Planted(NamedTuple):
    """What each says about the model with the planted bug; spin is None where Spin is missing."""

    scope: SmallScope
    spin: SpinRun | None
    full: ExploreResult
    plain: ExploreResult

    @property
    def is_found(self) -> bool:
        """Whether everybody who looked found it."""
        return (
            self.full.failure is not None
            and self.plain.failure is not None
            and (self.spin is None or self.spin.errors > 0)
        )


def explore(scope: SmallScope, symmetry: str, planted: bool = False) -> ExploreResult:
    """One exploration of the model alone, from nothing."""
    gc.collect()
    return Explorer(SmallModel(scope, planted), symmetry=symmetry).run()


def verify(scope: SmallScope, planted: bool = False) -> SpinRun | None:
    """One run of Spin, or None where it is missing."""
    if not is_installed():
        return None
    with Verifier(scope, planted) as verifier:
        return verifier.run()


def count(scope: SmallScope) -> Agreement:
    """Both without symmetry, and the explorer with it."""
    return Agreement(scope, verify(scope), explore(scope, "none"), explore(scope, "full"))


def plant(scope: SmallScope) -> Planted:
    """The model with one bug, given to all."""
    return Planted(scope, verify(scope, True), explore(scope, "full", True), explore(scope, "none", True))


def race(scope: SmallScope, rounds: int) -> Race:
    """Both in turns; who goes first changes with each round, to cancel drift. Spin must be installed."""
    spin: list[SpinRun] = []
    full: list[ExploreResult] = []
    with Verifier(scope) as verifier:
        for number in range(rounds):
            if number % 2:
                full.append(explore(scope, "full"))
                spin.append(verifier.run())
            else:
                spin.append(verifier.run())
                full.append(explore(scope, "full"))
        return Race(scope, verifier.compile_cpu_seconds, spin, full)
