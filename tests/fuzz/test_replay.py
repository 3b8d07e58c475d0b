"""Replays: Reproduced, Fixed or Diverged, and a run that does not fail again is not judged."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kvfuzz.adapter import Limit
from kvfuzz.adapters.block_pool import BlockPoolAdapter
from kvfuzz.adapters.kvpool_target import KvpoolFamily, make
from kvfuzz.errors import Irreproducible
from kvfuzz.levels import level_named
from kvfuzz.replay import DIVERGED, FIXED, REPRODUCED, confirm, replay, run
from kvfuzz.trace import Trace
from kvspec.pool import Allocate, CacheFull, Free, PoolModel, PoolScope, held, queued
from seeded_bugs.catalogue import bug_named

SCOPE = PoolScope(blocks=(3,), holders=1, prefixes=1, hold=2)
MODEL = PoolModel(SCOPE)
RELEASE = (Allocate(0, 1), CacheFull((held(0, 0),), 0), Free(0, (held(0, 0),)))
TRACE = Trace(level_named("pool"), "kvpool", SCOPE, RELEASE, "P8")


def test_same_failure_is_reproduced() -> None:
    result, failure, executed = replay(TRACE, bug_named("identified-released-to-head").adapter())
    assert result == REPRODUCED
    assert failure is not None
    assert failure.fingerprint == "P8"
    assert executed == 3


def test_failure_that_is_gone_is_fixed() -> None:
    assert replay(TRACE, make()) == (FIXED, None, 3)


def test_other_failure_has_diverged() -> None:
    result, failure, _ = replay(TRACE, bug_named("allocated-without-reference").adapter())
    assert result == DIVERGED
    assert failure is not None
    assert failure.fingerprint == "P1"


def test_trace_of_a_run_that_held_is_reproduced_by_holding() -> None:
    held_once = TRACE._replace(fingerprint="")
    assert replay(held_once, make()).result == REPRODUCED
    assert replay(held_once, bug_named("identified-released-to-head").adapter()).result == DIVERGED


def test_run_stops_at_the_failure() -> None:
    failure, executed = run(MODEL, bug_named("allocated-without-reference").adapter(), RELEASE)
    assert failure is not None
    assert failure.position == 0
    assert executed <= 1


@pytest.mark.parametrize("skipped", [(), (Free(0, (held(0, 0),)),)], ids=["at once", "after a skipped action"])
def test_call_that_fails_counts_as_executed(skipped: tuple[Any, ...]) -> None:
    adapter = bug_named("allocated-without-reference").adapter()
    failure, executed = run(MODEL, adapter, [*skipped, Allocate(0, 1)])
    assert failure is not None
    assert executed == 1


def test_limit_that_was_lifted_when_the_trace_was_found_is_lifted_again() -> None:
    never = Limit("never", "It takes no calls.", lambda *_: True)
    adapter = bug_named("identified-released-to-head").adapter()
    adapter.limits = (never,)
    assert replay(TRACE, adapter) == (FIXED, None, 0)
    assert replay(TRACE._replace(lifted=("never",)), adapter).result == REPRODUCED


class Throws(BlockPoolAdapter):
    """An adapter that throws dice: now and then it claims that nothing was released."""

    def __init__(self, *faces: bool) -> None:
        super().__init__(KvpoolFamily())
        self.faces = list(faces)

    def reset(self, scope: Any) -> None:
        super().reset(scope)
        self.is_wrong = self.faces.pop(0)
        self.has_moved = False

    def observe(self) -> Any:
        seen = super().observe()
        is_idle = seen.refs == (0, 0, 0, 0)
        return seen._replace(refs=(0, 1, 0, 0)) if self.is_wrong and is_idle and self.has_moved else seen

    def apply(self, call: Any) -> Any:
        self.has_moved = True
        return super().apply(call)


def test_failure_that_comes_again_is_confirmed() -> None:
    adapter = Throws(True, True)
    failure, _ = run(MODEL, adapter, RELEASE)
    assert failure is not None
    confirm(MODEL, adapter, RELEASE, failure)


def test_failure_that_does_not_come_again_is_irreproducible() -> None:
    adapter = Throws(True, False)
    failure, _ = run(MODEL, adapter, RELEASE)
    assert failure is not None
    with pytest.raises(Irreproducible) as caught:
        confirm(MODEL, adapter, RELEASE, failure)
    message = str(caught.value)
    assert "target 'kvpool' is not reproducible: the same 3 actions first gave P1 broken" in message
    assert "then it held" in message
    assert "make it a function of the calls" in message
    assert caught.value.exit_code == 3


def test_failure_that_comes_back_as_another_one_is_irreproducible() -> None:
    failure, _ = run(MODEL, bug_named("identified-released-to-head").adapter(), RELEASE)
    assert failure is not None
    with pytest.raises(Irreproducible, match=r"then P1 broken: .* \(at action 1\)"):
        confirm(MODEL, bug_named("allocated-without-reference").adapter(), RELEASE, failure)


def confirm_often(adapter: Any, actions: Any, failure: Any) -> None:
    for _ in range(20):
        confirm(MODEL, adapter, actions, failure)


def test_random_target_is_caught_by_its_confirmation() -> None:
    dice = Random(7)

    class Dicing(BlockPoolAdapter):
        def observe(self) -> Any:
            seen = super().observe()
            return seen._replace(free=(99,)) if dice.random() < 0.1 else seen

    adapter = Dicing(KvpoolFamily())
    actions = [Allocate(0, 1), Free(0, (held(0, 0),)), Free(0, (queued(0),))] * 10
    failure = None
    while failure is None:
        failure, _ = run(MODEL, adapter, actions)
    failing = actions[: failure.position + 1]
    with pytest.raises(Irreproducible):
        confirm_often(adapter, failing, failure)
