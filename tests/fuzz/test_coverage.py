"""Coverage: a run that has not met what its scope requires says what is missing."""

from __future__ import annotations

from typing import Any

from kvfuzz.adapter import Limit
from kvfuzz.adapters.kvpool_target import make
from kvfuzz.coverage import Coverage
from kvfuzz.lockstep import Lockstep
from kvfuzz.walk import Walk, WalkBudget
from kvspec.pool import Allocate, CacheFull, Free, Lookup, PoolModel, PoolScope, Reset, Write, held, null

SCOPE = PoolScope(blocks=(3,), holders=2, prefixes=1, hold=2)
MODEL = PoolModel(SCOPE)


def covered(*actions: Any, limits: tuple[Limit, ...] = ()) -> Coverage:
    lockstep, coverage = Lockstep(MODEL, make()), Coverage(MODEL, limits)
    lockstep.start()
    coverage.start()
    for action in actions:
        assert lockstep.apply(action) is None
        assert lockstep.last is not None
        coverage.record(action, lockstep.last)
    return coverage


def test_run_that_never_allocates_says_so() -> None:
    missing = covered(Reset(), Lookup(0, 1), Write(null())).missing
    assert "action allocate never took effect" in missing
    assert "S26: A write in place was allowed." in missing


def test_refusals_and_misses_do_not_count_as_taking_effect() -> None:
    assert "action write never took effect" in covered(Write(null())).missing
    assert "action lookup never took effect" in covered(Lookup(0, 1)).missing


def test_what_was_met_is_not_missing() -> None:
    coverage = covered(Allocate(0, 1), Write(held(0, 0)), CacheFull((held(0, 0),), 0), Write(held(0, 0)), Lookup(0, 1))
    assert {"S26", "S28"} <= coverage.reached
    words = " ".join(coverage.missing)
    for met in ("S26", "S28", "action allocate", "action write", "action cache_full", "action lookup"):
        assert met not in words
    assert coverage.outcomes["write", "done"] == coverage.outcomes["write", "refused"] == 1
    assert coverage.pairs["allocate", "write"] == 1


def test_first_action_of_a_run_follows_nothing() -> None:
    coverage = covered(Allocate(0, 1), Allocate(0, 1))
    coverage.start()
    lockstep = Lockstep(MODEL, make())
    lockstep.start()
    lockstep.apply(Reset())
    assert lockstep.last is not None
    coverage.record(Reset(), lockstep.last)
    assert coverage.pairs["allocate", "reset"] == 0
    assert " 1/" in coverage.summary  # one pair: allocate after allocate


def test_what_a_limit_puts_out_of_reach_is_not_required() -> None:
    limit = Limit("no writes", "It has none.", lambda *_: False, ("S26", "S27", "S28", "write"))
    words = " ".join(covered(limits=(limit,)).missing)
    for excused in ("S26:", "S27:", "S28:", "action write"):
        assert excused not in words
    assert "S24:" in words


def test_coverage_of_several_runs_adds_up() -> None:
    one, other = covered(Allocate(0, 1), Write(held(0, 0))), covered(Allocate(0, 1), Free(0, (held(0, 0),)))
    steps = one.steps + other.steps
    one.merge(other)
    assert one.steps == steps
    assert one.outcomes["allocate", "done"] == 2
    assert "action free never took effect" not in one.missing
    assert "action write never took effect" not in one.missing


def test_long_walk_of_a_right_pool_misses_nothing() -> None:
    result = Walk(MODEL, make(), 1, WalkBudget(steps=8_000)).run()
    assert result.failure is None
    assert result.coverage.missing == []
    data = result.coverage.to_data()
    assert data["steps"] == result.steps
    assert data["missing"] == []
    assert data["reached"][0] == "S1"
