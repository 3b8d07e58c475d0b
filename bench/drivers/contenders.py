"""The drivers under comparison, each as a function that works for a while and says what it got done.

A step counts if it was really executed in lockstep: actions that were skipped because their roles did not exist, or
that an adapter's limits exclude, cost time and count nothing. CPU time is that of this process, and contains all that
a driver does: choosing actions, resetting the implementation, comparing, judging properties, counting coverage.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as hypothesis_seed
from hypothesis.stateful import run_state_machine_as_test

from kvfuzz.adapters.kvpool_target import make
from kvfuzz.coverage import Coverage
from kvfuzz.explorer import ExploreBudget, Explorer
from kvfuzz.lockstep import Failure
from kvfuzz.machine import LockstepMachine
from kvfuzz.walk import Walk, WalkBudget
from kvspec.pool import PoolModel, PoolScope

RULES_PER_RUN = 50  # Hypothesis' own default for a state machine
SHIPPED_STRIDE = 16
"""The walk judges properties on every 16th step; that the pool equals the model is checked after each."""


class Work(NamedTuple):
    """What one driver did in one turn; `states` is 0 for drivers that do not recognise states."""

    steps: int
    cpu_seconds: float
    states: int = 0

    @property
    def steps_per_second(self) -> float:
        return self.steps / self.cpu_seconds

    @property
    def states_per_second(self) -> float:
        return self.states / self.cpu_seconds


Contender = Callable[[int, float], Work]
"""`contender(seed, CPU seconds)`. Raises `KvpoolFailed` if the pool is found wrong: then speed does not matter."""


class KvpoolFailed(RuntimeError):
    """A driver found a failure where there must be none."""


def walk(scope: PoolScope, stride: int) -> Contender:
    """The random walk, with properties judged on every `stride`th step."""

    def turn(seed: int, cpu_seconds: float) -> Work:
        driver = Walk(PoolModel(scope), make(), seed, WalkBudget(cpu_seconds=cpu_seconds))
        driver.lockstep.stride = stride
        result = _quietly(driver.run)
        _must_hold(result.failure)
        return Work(result.steps, result.cpu_seconds)

    return turn


def explorer(scope: PoolScope, in_lockstep: bool) -> Contender:
    """The explorer, with the pool or on the model alone."""

    def turn(seed: int, cpu_seconds: float) -> Work:
        adapter = make() if in_lockstep else None
        result = _quietly(Explorer(PoolModel(scope), adapter, budget=ExploreBudget(cpu_seconds=cpu_seconds)).run)
        _must_hold(result.failure)
        return Work(result.transitions, result.cpu_seconds, result.states)

    return turn


def machine(scope: PoolScope, stride: int) -> Contender:
    """The Hypothesis machine as users subclass it, with generation alone: no shrinking, no example database."""

    class Machine(LockstepMachine):
        def __init__(self) -> None:
            super().__init__()
            self.lockstep.stride = stride

    names = {"level": "pool", "target": staticmethod(make), "scope": scope, "__module__": __name__}
    kind: Any = type("MeasuredMachine", (Machine,), names)
    runs_per_second = 20.0  # a guess, until the first turn has told

    def turn(seed: int, cpu_seconds: float) -> Work:
        nonlocal runs_per_second
        runs = max(5, int(runs_per_second * cpu_seconds))
        kind.coverage = Coverage(PoolModel(scope))
        profile = settings(
            max_examples=runs,
            stateful_step_count=RULES_PER_RUN,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        started = time.process_time()
        _quietly(lambda: run_state_machine_as_test(hypothesis_seed(seed)(kind), settings=profile))
        spent = time.process_time() - started
        runs_per_second = runs / spent
        return Work(kind.coverage.steps, spent)

    return turn


def _quietly(work: Callable[[], Any]) -> Any:
    """Do it without the rubbish of the turn before."""
    gc.collect()
    return work()


def _must_hold(failure: Failure | None) -> None:
    if failure is not None:
        raise KvpoolFailed(
            f"kvpool failed while drivers were measured: {failure.headline}. Find it with `kvproof fuzz`."
        )
