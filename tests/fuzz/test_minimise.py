"""The minimiser: from a long failing run to a short one that fails for the same reason, and an honest claim."""

from __future__ import annotations

from typing import Any

import pytest

from kvfuzz.adapters.kvpool_target import adapter_for, make
from kvfuzz.levels import level_named
from kvfuzz.minimise import Minimised, Minimiser, simpler_values
from kvfuzz.replay import run
from kvfuzz.walk import Walk, WalkBudget
from kvpool import BlockPool
from kvspec.pool import (
    Allocate,
    CacheFull,
    CachePartial,
    Evict,
    Free,
    Hit,
    Lookup,
    PoolModel,
    PoolScope,
    Reset,
    Touch,
    Unpin,
    Write,
    held,
    queued,
)
from seeded_bugs.catalogue import bug_named
from seeded_bugs.seeded_bug import SeededBug

LEVEL = level_named("pool")


def minimised(bug: SeededBug, scope: PoolScope, actions: Any, seconds: float = 20.0) -> Minimised:
    found = Minimiser(LEVEL, bug.adapter(), seconds).minimise(PoolModel(scope), actions)
    assert found is not None
    return found


LONG_RUN = [
    Allocate(0, 2),
    Write(held(0, 0)),
    CacheFull((held(0, 0), held(0, 1)), 1),
    Touch(1, (held(0, 0),)),
    Allocate(1, 1),
    Lookup(1, 1),
    Free(0, (held(0, 1),)),
    Hit(0, 1, 2),
    Evict((held(0, 1),)),
    Reset(),
    Free(1, (held(1, 0),)),
    Free(0, (held(0, 0),)),
    Allocate(0, 1),
]


def test_long_run_shrinks_to_a_proved_minimum() -> None:
    bug = bug_named("identified-released-to-head")
    scope = PoolScope(blocks=(4,), holders=2, prefixes=2, depth=2, hold=3)
    small = minimised(bug, scope, LONG_RUN)
    assert [type(action) for action in small.actions] == [Allocate, CacheFull, Free]
    assert small.proved
    assert small.verdict == "3 operations, proved minimal at this scope"
    assert small.failure.position == 2
    assert small.failure.fingerprint == "P8"


def test_scope_shrinks_with_the_trace() -> None:
    bug = bug_named("identified-released-to-head")
    scope = PoolScope(blocks=(4,), holders=2, prefixes=2, depth=2, hold=3)
    shrunk = minimised(bug, scope, LONG_RUN).model.scope
    assert (shrunk.holders, shrunk.prefixes, shrunk.depth, shrunk.events) == (1, 1, 1, False)
    assert shrunk.blocks < scope.blocks
    assert shrunk.hold < scope.hold
    assert shrunk.misuse


@pytest.mark.parametrize("name", ["shared-block-writable", "allocation-keeps-entry", "watcher-fires-at-unpin"])
def test_minimal_trace_fails_for_the_reason_that_the_long_one_had(name: str) -> None:
    bug = bug_named(name)
    long = Walk(bug.model, bug.adapter(), 3, WalkBudget(steps=20_000)).run()
    assert long.failure is not None
    small = minimised(bug, bug.scope, long.actions)
    assert small.failure.is_akin(long.failure)
    assert len(small.actions) <= len(long.actions)
    again, executed = run(small.model, bug.adapter(), small.actions)
    assert again is not None
    assert again.headline == small.failure.headline
    assert executed == len(small.actions)


class TwoFaults(BlockPool):
    """Writes are allowed to identified blocks, and usage is wrong once something is held."""

    def is_block_writable(self, block: Any) -> bool:
        return bool(block.ref_cnt == 1)

    def touch(self, blocks: Any) -> None:
        """A touch does nothing, which shows at once."""


def test_trace_never_slides_into_another_fault() -> None:
    model = PoolModel(PoolScope(blocks=(3,), holders=1, prefixes=1))
    actions = [Allocate(0, 2), CacheFull((held(0, 0),), 0), Lookup(0, 1), Write(held(0, 0))]
    small = Minimiser(LEVEL, adapter_for(TwoFaults)).minimise(model, actions)
    assert small is not None
    assert small.failure.fingerprint == "P2"
    assert [type(action) for action in small.actions] == [Allocate, CacheFull, Write]
    assert small.proved  # although a touch alone fails, in another way
    other = Minimiser(LEVEL, adapter_for(TwoFaults)).minimise(model, [Touch(0, (queued(0),))])
    assert other is not None
    assert other.failure.fingerprint != "P2"


def test_run_that_does_not_fail_has_no_minimum() -> None:
    assert Minimiser(LEVEL, make()).minimise(PoolModel(PoolScope()), [Allocate(0, 1), Reset()]) is None


def test_wrong_initial_state_needs_no_action() -> None:
    bug = bug_named("usage-counts-null-block")
    small = minimised(bug, bug.scope, [Allocate(0, 1)])
    assert small.actions == ()
    assert small.proved
    assert small.verdict.startswith("0 operations, proved")


def test_without_time_for_a_search_nothing_is_claimed() -> None:
    bug = bug_named("identified-released-to-head")
    small = minimised(bug, bug.scope, LONG_RUN[:1] + [CacheFull((held(0, 0),), 0), Free(0, (held(0, 0),))], seconds=0.0)
    assert len(small.actions) == 3
    assert not small.proved
    assert small.verdict == "3 operations, not proved minimal"


def test_search_leaves_a_minimum_that_deletion_cannot() -> None:
    """Deleting from this run leads nowhere shorter: sharing by a touch of the held block needs both holders."""
    bug = bug_named("shared-block-writable")
    actions = [Allocate(0, 1), CacheFull((held(0, 0),), 0), Hit(0, 0, 1), Evict((held(0, 0),)), Write(held(0, 0))]
    by_deletion = minimised(bug, PoolScope(blocks=(2,), hold=2), actions, seconds=0.0)
    by_search = minimised(bug, PoolScope(blocks=(2,), hold=2), actions)
    assert len(by_search.actions) == 2 < len(by_deletion.actions)
    assert by_search.proved


def test_scope_keeps_the_kinds_of_action_that_the_trace_has() -> None:
    bug = bug_named("replacement-keeps-old-entries")
    actions = [
        Touch(0, (queued(0),)),
        Touch(1, (queued(0),)),
        CachePartial(held(0, 0), 0, 2),
        Hit(1, 0, 2),
        CachePartial(held(1, 1), 0, 2, 0, True),
    ]
    small = minimised(bug, PoolScope(blocks=(2,), holders=2, prefixes=1, depth=2, spans=(2,), hold=2), actions)
    kinds = {kind.type for kind in small.model.actions}
    assert {type(action) for action in small.actions} <= kinds
    assert len(small.actions) == 3


def test_pool_that_remembers_more_than_it_shows_is_searched_along_all_paths() -> None:
    """Every one of these runs comes through a state twice: a search that visits each state once finds none of them."""
    bug = bug_named("watcher-never-forgotten")
    scope = PoolScope(blocks=(1,), holders=1, prefixes=1, hold=1, watchers=1)
    take, back = Allocate(0, 1), Free(0, (held(0, 0),))
    short = [take, Unpin(0, (held(0, 0),)), take, back, take]
    long = [take, Unpin(0, (held(0, 0),)), take, back, Touch(0, (queued(0),)), back, take]
    for actions in (short, long):
        small = minimised(bug, scope, actions)
        assert len(small.actions) == 4
        assert small.proved


def test_minimality_over_all_paths_is_not_claimed_without_time_to_walk_them() -> None:
    bug = bug_named("watcher-never-forgotten")
    scope = PoolScope(blocks=(1,), holders=1, prefixes=1, hold=1, watchers=1)
    take, back = Allocate(0, 1), Free(0, (held(0, 0),))
    small = minimised(bug, scope, [take, Unpin(0, (held(0, 0),)), take, back, take], seconds=0.0)
    assert not small.proved


@pytest.mark.parametrize(
    ("value", "simpler"),
    [
        (3, [0, 1, 2]),
        (0, []),
        (-1, []),
        (True, [False]),
        (False, []),
        ((2,), [(), (0,), (1,)]),
        (Allocate(1, 2), [Allocate(0, 2), Allocate(1, 0), Allocate(1, 1)]),
        (Write(held(0, 1)), [Write(held(0, 0))]),
        (Write(queued(0)), []),
        ("word", []),
    ],
    ids=repr,
)
def test_simpler_values_are_of_the_same_type_and_smaller(value: Any, simpler: list[Any]) -> None:
    found = list(simpler_values(value))
    assert found == simpler
    assert all(type(one) is type(value) for one in found)
