"""Every seeded bug is found by the walk and shrunk; a choice of them by the explorer and the Hypothesis machine.

Budgets are several times what it took when the bug was added. That the faulty line ran need not be shown: nothing
else can fail.
"""

from __future__ import annotations

from functools import cache

import pytest

from kvfuzz.adapters.kvpool_target import adapter_for
from kvfuzz.explorer import ExploreBudget, Explorer
from kvfuzz.levels import level_named
from kvfuzz.lockstep import Failure
from kvfuzz.machine import run_machine
from kvfuzz.minimise import Minimiser
from kvfuzz.walk import Walk, WalkBudget, WalkResult
from kvpool import BlockPool
from kvspec.pool import PoolModel, PoolScope
from seeded_bugs.catalogue import BUGS
from seeded_bugs.seeded_bug import SeededBug

SEED = 1
STEPS = 50_000
# Long queues and long lists: code of a pool that runs only from a certain length on is out of reach of small scopes.
WIDE = PoolScope(blocks=(100,), holders=2, prefixes=1, hold=100)
PROPERTIES = tuple(f"P{number}" for number in range(1, 13))
BY_ID = {bug.id: bug for bug in BUGS}

EXPLORED = {
    "P1": "count-falls-below-zero",
    "P2": "shared-block-writable",
    "P3": "allocation-keeps-index-entry",
    "P4": "null-block-handed-out",
    "P5": "revival-keeps-free-count",
    "P6": "refused-eviction-drops-entries",
    "P7": "move-copies-entries",
    "P8": "identified-released-to-head",
    "P9": "watcher-fires-twice",
    "P10": "hit-takes-no-reference",
    "P11": "mask-ignored",
    "P12": "release-drops-entries",
}
BY_MACHINE = (
    "touched-block-stays-queued",
    "hit-takes-no-reference",
    "identified-released-to-head",
    "eviction-keeps-block-hash",
    "stored-published-twice",
    "watcher-fires-twice",
)


def broken_by(failure: Failure) -> set[str]:
    return {name for name, _ in failure.broken} or {"diverged"}


@cache
def caught(bug: SeededBug) -> WalkResult | None:
    """The first failure that breaks the stated property. A fault may show in other ways first."""
    walk = Walk(bug.model, bug.adapter(), SEED, WalkBudget(steps=STEPS))
    result = walk.run()
    while result.failure is not None and bug.breaks not in broken_by(result.failure):
        result = walk.run(first_run=result.run + 1)
    return result if result.failure is not None else None


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.id)
def test_walk_catches_it_by_the_property_that_it_breaks(bug: SeededBug) -> None:
    assert caught(bug) is not None, (
        f"{bug.id} survived {STEPS} steps (seed {SEED}) at {bug.scope}, or broke something else than {bug.breaks}: the "
        "drivers or the specification have become weaker, or the pool is no longer wrong in this way"
    )


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.id)
def test_minimal_trace_is_as_short_as_it_can_be(bug: SeededBug) -> None:
    found = caught(bug)
    assert found is not None
    assert found.failure is not None
    # The searches at the end cannot prove anything where `proved` is False: there is no need to wait for them.
    minimiser = Minimiser(level_named("pool"), bug.adapter(), search_seconds=20 if bug.proved else 0)
    small = minimiser.minimise(bug.model, found.actions)
    assert small is not None, "the failure did not come again"
    assert small.failure.is_akin(found.failure)
    assert len(small.actions) <= bug.length, f"{small.verdict}: {small.actions}"
    assert small.proved >= bug.proved, f"{small.verdict} in {small.model.scope}: {small.actions}"


@pytest.mark.parametrize("name", PROPERTIES)
def test_explorer_catches_a_bug_that_breaks_it(name: str) -> None:
    bug = BY_ID[EXPLORED[name]]
    model = PoolModel(bug.scope._replace(blocks=(2,)))
    result = Explorer(model, bug.adapter(), budget=ExploreBudget(states=1_000)).run()
    assert result.failure is not None
    assert name in broken_by(result.failure)
    assert len(result.actions) <= bug.length


@pytest.mark.parametrize("name", BY_MACHINE)
def test_hypothesis_machine_catches_it(name: str) -> None:
    bug = BY_ID[name]
    result = run_machine("pool", bug.adapter, bug.scope, SEED, examples=60, steps=30)
    assert result.failure is not None, f"{name} survived 60 examples of 30 steps (seed {SEED}) at {bug.scope}"
    assert bug.breaks in broken_by(result.failure)


@pytest.mark.parametrize("name", PROPERTIES)
def test_property_has_a_seeded_bug(name: str) -> None:
    assert any(bug.breaks == name for bug in BUGS), f"nothing shows that {name} can fail: add a bug that breaks it"


@pytest.mark.parametrize("scope", [*sorted({bug.scope for bug in BUGS}), WIDE], ids=str)
def test_pool_without_a_bug_passes_where_bugs_are_looked_for(scope: PoolScope) -> None:
    result = Walk(PoolModel(scope), adapter_for(BlockPool), SEED, WalkBudget(steps=3_000)).run()
    assert result.failure is None, result.failure.headline


def test_bugs_are_told_apart_by_id_and_explained_in_one_sentence() -> None:
    assert len(BY_ID) == len(BUGS)
    assert [bug.id for bug in BUGS if not bug.sentence.endswith(".") or "\n" in bug.sentence] == []
