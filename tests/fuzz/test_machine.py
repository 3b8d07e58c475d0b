"""The Hypothesis machine, as its users write it and as the command line runs it."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from kvfuzz.adapters.kvpool_target import make
from kvfuzz.machine import LockstepMachine, PoolMachine, SpecificationBroken, run_machine
from kvfuzz.replay import run
from kvspec.pool import Allocate, PoolModel, PoolScope, Reset
from seeded_bugs.catalogue import bug_named

FEW = settings(
    max_examples=8,
    stateful_step_count=15,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
    derandomize=True,
)

# What users write in a test module of their own; pytest runs it here as well.
TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = FEW


class WithOwnRule(PoolMachine):
    """A machine with a rule and an invariant of the user's."""

    scope = PoolScope(blocks=(3,), holders=1, prefixes=1)
    resets: ClassVar[list[Any]] = []
    checked: ClassVar[list[int]] = []

    @rule()
    def reset_and_take_one(self) -> None:
        self.step(Reset())
        self.step(Allocate(0, 1))
        self.resets.append(self.lockstep.last)

    @invariant()
    def holder_has_no_more_than_fits(self) -> None:
        self.checked.append(len(self.lockstep.state.tables[0]))
        assert self.checked[-1] <= 2


def test_own_rules_and_invariants_run_beside_the_generated_ones() -> None:
    WithOwnRule.resets.clear()
    WithOwnRule.checked.clear()
    run_state_machine_as_test(WithOwnRule, settings=FEW)
    assert WithOwnRule.resets
    assert max(WithOwnRule.checked) > 0


def test_machine_has_one_rule_for_each_action_kind_and_one_for_misuse() -> None:
    for scope in (PoolScope(), PoolScope(watchers=1, spans=(2,), depth=2), PoolScope(misuse=False)):
        options = {"level": "pool", "target": "kvpool", "scope": scope}
        machine = type("Machine", (LockstepMachine,), options)
        assert all(hasattr(machine, kind.name) for kind in PoolModel(scope).actions)
        assert hasattr(machine, "misuse")


class Faulty(PoolMachine):
    """`target` may be a function that makes an adapter."""

    target: ClassVar[Any] = staticmethod(bug_named("hit-takes-no-reference").adapter)


def test_fault_is_raised_with_the_story_and_the_actions_that_lead_there() -> None:
    with pytest.raises(SpecificationBroken) as caught:
        run_state_machine_as_test(Faulty, settings=settings(FEW, max_examples=100, stateful_step_count=30))
    error = caught.value
    assert "P10 broken" in str(error)
    assert "!  " in str(error)
    failure, _ = run(error.model, bug_named("hit-takes-no-reference").adapter(), error.actions)
    assert failure is not None
    assert failure.fingerprint == error.failure.fingerprint


def test_own_step_is_judged_like_any_other() -> None:
    class OwnStep(LockstepMachine):
        level = "pool"
        target = staticmethod(bug_named("takes-from-tail").adapter)
        scope = PoolScope(misuse=False)

        @rule()
        def take(self) -> None:
            self.step(Allocate(0, 1))

    machine = OwnStep()
    with pytest.raises(SpecificationBroken, match="P8 broken"):
        machine.take()


def test_wrong_initial_state_is_raised_when_the_machine_is_made() -> None:
    machine = type("Machine", (PoolMachine,), {"target": staticmethod(bug_named("usage-counts-null-block").adapter)})
    with pytest.raises(SpecificationBroken, match="P5 broken"):
        machine()


def test_run_without_a_fault_reports_what_it_covered() -> None:
    result = run_machine("pool", make, PoolScope(blocks=(3,)), seed=1, examples=20, steps=20)
    assert result.failure is None
    assert result.actions == ()
    assert result.coverage.steps > 50
    assert ("allocate", "done") in result.coverage.outcomes


def test_seed_decides_what_a_run_does() -> None:
    def covered(seed: int) -> Any:
        return run_machine("pool", make, PoolScope(blocks=(3,)), seed, examples=10, steps=15).coverage.to_data()

    assert covered(1) == covered(1)
    assert covered(1) != covered(2)


def test_failing_run_ends_with_its_actions_and_its_failure() -> None:
    bug = bug_named("touched-block-stays-queued")
    result = run_machine("pool", bug.adapter, bug.scope, seed=1, examples=60, steps=30)
    assert result.failure is not None
    failure, _ = run(bug.model, bug.adapter(), result.actions)
    assert failure is not None
    assert failure.headline == result.failure.headline
