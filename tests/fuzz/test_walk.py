"""The random walk: repeatable run by run, different from run to run, within its budget."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from kvfuzz.adapters.kvpool_target import make
from kvfuzz.replay import run
from kvfuzz.walk import Walk, WalkBudget, run_random, swarm
from kvspec.pool import PoolModel, PoolScope
from seeded_bugs.catalogue import bug_named

SCOPE = PoolScope(blocks=(3,), holders=2, prefixes=2, depth=2, hold=2, watchers=1)
MODEL = PoolModel(SCOPE)


def actions_of(seed: int, number: int) -> tuple[Any, ...]:
    return Walk(MODEL, make(), seed, WalkBudget(steps=1, run_length=60)).run(first_run=number).actions


def test_seed_and_run_number_decide_every_action() -> None:
    assert actions_of(1, 5) == actions_of(1, 5)
    assert len(actions_of(1, 5)) > 10


def test_other_run_numbers_and_other_seeds_do_other_things() -> None:
    runs = {actions_of(seed, number) for seed in (1, 2) for number in range(5)}
    assert len(runs) == 10


def test_run_does_not_depend_on_the_runs_before_it() -> None:
    bug = bug_named("shared-block-writable")
    found = Walk(bug.model, bug.adapter(), 1, WalkBudget(steps=20_000)).run()
    assert found.failure is not None
    alone = Walk(bug.model, bug.adapter(), 1, WalkBudget(steps=20_000)).run(first_run=found.run)
    assert alone.actions == found.actions
    assert alone.run == found.run
    assert alone.runs == 1


def test_actions_of_a_failing_run_fail_again_by_themselves() -> None:
    bug = bug_named("shared-block-writable")
    found = Walk(bug.model, bug.adapter(), 1, WalkBudget(steps=20_000)).run()
    assert found.failure is not None
    failure, executed = run(bug.model, bug.adapter(), found.actions)
    assert failure is not None
    assert failure.headline == found.failure.headline
    assert executed == len(found.actions)


@pytest.mark.parametrize(("steps", "run_length"), [(1, 20), (100, 20), (500, 80)])
def test_budget_of_steps_is_kept_to_within_one_run(steps: int, run_length: int) -> None:
    result = Walk(MODEL, make(), 1, WalkBudget(steps=steps, run_length=run_length)).run()
    assert result.failure is None
    assert steps <= result.steps < steps + run_length
    assert result.steps == result.coverage.steps


def test_budget_of_time_ends_the_walk() -> None:
    result = Walk(MODEL, make(), 1, WalkBudget(cpu_seconds=0.0)).run()
    assert result.runs == 1


def test_walk_stops_at_the_initial_state_if_that_is_wrong() -> None:
    bug = bug_named("usage-counts-null-block")
    result = Walk(bug.model, bug.adapter(), 1, WalkBudget(steps=100)).run()
    assert result.failure is not None
    assert result.actions == ()


def test_walk_tells_of_its_progress() -> None:
    signs: list[Any] = []
    Walk(MODEL, make(), 1, WalkBudget(cpu_seconds=1.2), signs.append).run()
    assert signs
    assert signs[-1].steps > 0
    assert "actions" in signs[-1].summary


def test_every_run_has_its_own_mix_and_always_the_first_kind() -> None:
    mixes = [swarm(MODEL.actions, Random(seed)) for seed in range(50)]
    assert len({tuple(mix) for mix in mixes}) == 50
    assert all(mix[0] > 0 for mix in mixes)
    left_out = [sum(a == b for a, b in pairwise(mix)) for mix in mixes]
    assert any(left_out)
    assert not all(left_out)


def test_source_of_a_run_is_a_function_of_seed_and_run() -> None:
    assert run_random(3, 4).random() == run_random(3, 4).random()
    assert run_random(3, 4).random() != run_random(4, 3).random()
