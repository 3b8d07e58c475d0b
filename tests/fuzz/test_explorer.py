"""The explorer: real paths, symmetry, budgets, and exhaustion said only where it happened."""

from __future__ import annotations

from typing import Any

import pytest

from kvfuzz.adapters.kvpool_target import adapter_for, make
from kvfuzz.explorer import ExploreBudget, Explorer
from kvfuzz.replay import run
from kvpool import BlockPool
from kvspec import Always
from kvspec.pool import Allocate, CacheFull, PoolModel, PoolScope
from seeded_bugs.catalogue import bug_named

SCOPE = PoolScope(blocks=(2,), holders=2, prefixes=1, hold=2)
MODEL = PoolModel(SCOPE)

FAULTY = ["identified-released-to-head", "allocation-keeps-block-hash", "watcher-fires-twice", "reset-while-held"]


@pytest.mark.parametrize("name", FAULTY)
@pytest.mark.parametrize("symmetry", ["full", "none"])
def test_path_to_a_failure_is_one_that_leads_there(name: str, symmetry: str) -> None:
    bug = bug_named(name)
    model = PoolModel(bug.scope._replace(blocks=(2,), prefixes=1))
    result = Explorer(model, bug.adapter(), symmetry).run()
    assert result.failure is not None
    assert not result.exhausted
    assert result.failure.position == len(result.actions) - 1
    again, executed = run(model, bug.adapter(), result.actions)
    assert again is not None
    assert again.fingerprint == result.failure.fingerprint
    assert again.headline == result.failure.headline
    assert executed == len(result.actions)


def test_first_failure_found_has_a_shortest_path() -> None:
    bug = bug_named("identified-released-to-head")
    model = PoolModel(SCOPE)
    found = Explorer(model, bug.adapter()).run()
    below = Explorer(model, bug.adapter(), budget=ExploreBudget(depth=len(found.actions) - 1)).run()
    assert len(found.actions) == found.depth == 3
    assert below.failure is None
    assert below.exhausted


class LookupForgetsRegistration(BlockPool):
    """After a lookup, nothing is registered any more: a fault that no observation shows."""

    looked_up = False

    def get_cached_block(self, *args: Any) -> Any:
        self.looked_up = True
        return super().get_cached_block(*args)

    def cache_full_blocks(self, *args: Any) -> None:
        if not self.looked_up:
            super().cache_full_blocks(*args)


def test_path_holds_what_the_implementation_remembers_and_the_model_does_not() -> None:
    adapter = adapter_for(LookupForgetsRegistration)
    result = Explorer(MODEL, adapter).run()
    assert result.failure is not None
    again, _ = run(MODEL, adapter, result.actions)
    assert again is not None
    assert again.is_akin(result.failure)


def test_right_pool_is_explored_to_the_end_by_lockstep_and_by_model_alike() -> None:
    alone, beside = Explorer(MODEL).run(), Explorer(MODEL, make()).run()
    for result in (alone, beside):
        assert result.failure is None
        assert result.exhausted
        assert result.stopped_by == ""
        assert result.coverage.missing == []
    assert (alone.states, alone.depth) == (beside.states, beside.depth)
    assert alone.transitions > beside.transitions  # where several answers are allowed, the pool gives one


def test_symmetry_changes_the_number_of_states_and_not_the_verdict() -> None:
    full, none = Explorer(MODEL, make()).run(), Explorer(MODEL, make(), "none").run()
    assert full.exhausted
    assert none.exhausted
    assert full.failure is none.failure is None
    assert full.states < none.states
    assert full.coverage.reached == none.coverage.reached


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (ExploreBudget(states=20), "the bound of 20 states"),
        (ExploreBudget(cpu_seconds=0.0), "the bound of 0 CPU seconds"),
    ],
    ids=["states", "seconds"],
)
def test_spent_budget_is_named_and_is_no_exhaustion(budget: ExploreBudget, reason: str) -> None:
    result = Explorer(MODEL, make(), budget=budget).run()
    assert result.failure is None
    assert not result.exhausted
    assert result.stopped_by == reason


def test_bound_of_states_is_kept_to_within_the_successors_of_one_state() -> None:
    result = Explorer(MODEL, make(), budget=ExploreBudget(states=20)).run()
    assert 20 <= result.states < 60


def test_everything_within_a_bound_of_depth_is_an_exhaustion_of_that_depth() -> None:
    states = [Explorer(MODEL, make(), budget=ExploreBudget(depth=depth)).run() for depth in range(4)]
    assert all(result.exhausted for result in states)
    assert [result.depth for result in states] == [0, 1, 2, 3]
    assert [result.states for result in states] == sorted({result.states for result in states})
    assert states[0].states == 1


def test_failure_that_is_not_wanted_is_passed_over() -> None:
    bug = bug_named("identified-released-to-head")
    asked: list[Any] = []

    def only_p9(failure: Any) -> bool:
        asked.append(failure)
        return bool(failure.fingerprint == "P9")

    result = Explorer(MODEL, bug.adapter(), budget=ExploreBudget(depth=4), accept=only_p9).run()
    assert asked
    assert result.failure is None
    assert result.exhausted


def test_wrong_initial_state_is_a_failure_without_actions() -> None:
    bug = bug_named("usage-counts-null-block")
    result = Explorer(MODEL, bug.adapter()).run()
    assert result.failure is not None
    assert result.actions == ()


def test_property_that_the_specification_itself_breaks_is_found() -> None:
    model = PoolModel(SCOPE)
    nothing_cached = Always(
        "X1", "Nothing is cached.", lambda step: str(step.after.entries) * any(step.after.entries), ()
    )
    model.properties = (*model.properties, nothing_cached)
    result = Explorer(model).run()
    assert result.failure is not None
    assert result.failure.fingerprint == "X1"
    assert [type(action) for action in result.actions] == [Allocate, CacheFull]
    assert result.failure.position == 1


def test_explorer_tells_of_its_progress() -> None:
    signs: list[Any] = []
    big = PoolModel(PoolScope(blocks=(4,), holders=2, prefixes=2, hold=2))
    Explorer(big, make(), budget=ExploreBudget(cpu_seconds=1.3), progress=signs.append).run()
    assert signs
    assert signs[-1].states > signs[-1].depth > 0
