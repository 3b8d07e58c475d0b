"""The fast random walk: many short runs in lockstep, each with its own mix of actions.

Swarm testing (Groce et al., ISSTA 2012): every run leaves some kinds of action out and favours others, which reaches
states that a uniform mix hardly ever does. A run is a function of (seed, run number) alone, so any run can be repeated
without the ones before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import accumulate
from random import Random
from typing import Any, NamedTuple

from kvfuzz.adapter import Adapter
from kvfuzz.coverage import Coverage
from kvfuzz.lockstep import Failure, Lockstep
from kvspec import ActionKind, Model

_LEFT_OUT = 0.2
_STRIDE = 16  # properties of the model are evaluated on every 16th step; equality with the model is checked on all


class WalkBudget(NamedTuple):
    """`steps` or `cpu_seconds`, whichever is spent first. `run_length`: actions in one run."""

    steps: int | None = None
    cpu_seconds: float | None = None
    run_length: int = 80


class WalkResult(NamedTuple):
    """`actions`: everything since the start of the failing run. `run`: its number. `steps`: calls executed."""

    failure: Failure | None
    actions: tuple[Any, ...]
    run: int
    seed: int
    runs: int
    steps: int
    cpu_seconds: float
    coverage: Coverage


class WalkProgress(NamedTuple):
    """A sign of life, about twice a second."""

    runs: int
    steps: int
    cpu_seconds: float
    summary: str


def run_random(seed: int, run: int) -> Random:
    """The source of one run's choices."""
    return Random(f"{seed}:{run}")


def swarm(kinds: tuple[ActionKind, ...], rng: Random) -> list[float]:
    """Cumulative weights of the kinds for one run. The first kind, which makes everything else possible, stays."""
    weights = []
    for number, kind in enumerate(kinds):
        if number and rng.random() < _LEFT_OUT:
            weights.append(0.0)
        else:
            weights.append(kind.weight * 4.0 ** (rng.random() * 2.0 - 1.0))
    return list(accumulate(weights))


class Walk:
    """Random runs of one adapter against one model."""

    def __init__(
        self,
        model: Model,
        adapter: Adapter,
        seed: int,
        budget: WalkBudget,
        progress: Callable[[WalkProgress], None] | None = None,
    ) -> None:
        self.model = model
        self.lockstep = Lockstep(model, adapter, stride=_STRIDE)
        self.seed = seed
        self.budget = budget
        self.coverage = Coverage(model, adapter.limits)
        self._progress = progress
        self._reported = 0.0

    def run(self, first_run: int = 0) -> WalkResult:
        """Walk until something fails or the budget is spent; `first_run` continues an earlier walk."""
        started = time.process_time()
        run = first_run
        while True:
            actions: list[Any] = []
            failure = self._one_run(run_random(self.seed, run), actions)
            run += 1
            cpu = time.process_time() - started
            if failure is not None or self._spent(cpu):
                return WalkResult(
                    failure,
                    tuple(actions),
                    run - 1,
                    self.seed,
                    run - first_run,
                    self.coverage.steps,
                    cpu,
                    self.coverage,
                )
            if self._progress is not None and cpu - self._reported >= 0.5:
                self._reported = cpu
                self._progress(WalkProgress(run - first_run, self.coverage.steps, cpu, self.coverage.summary))

    def _one_run(self, rng: Random, actions: list[Any]) -> Failure | None:
        lockstep, record = self.lockstep, self.coverage.record
        failure = lockstep.start()
        if failure is not None:
            return failure
        self.coverage.start()
        kinds = self.model.actions
        chosen = rng.choices(kinds, cum_weights=swarm(kinds, rng), k=self.budget.run_length)
        for kind in chosen:
            action = kind.some(lockstep.state, rng)
            actions.append(action)
            failure = lockstep.apply(action)
            if failure is not None:
                return failure
            step = lockstep.last
            if step is None:
                actions.pop()
            else:
                record(action, step)
        return None

    def _spent(self, cpu: float) -> bool:
        steps = self.budget.steps
        return (steps is not None and self.coverage.steps >= steps) or (
            self.budget.cpu_seconds is not None and cpu >= self.budget.cpu_seconds
        )
