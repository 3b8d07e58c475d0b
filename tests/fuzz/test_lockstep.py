"""Lockstep: differences, broken properties, skipped and excluded calls, adapters that fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvfuzz.adapter import Limit
from kvfuzz.adapters.block_pool import BlockPoolAdapter
from kvfuzz.adapters.kvpool_target import KvpoolFamily, make
from kvfuzz.errors import AdapterError, TargetError
from kvfuzz.lockstep import Lockstep
from kvspec import Outcome, Transition
from kvspec.pool import Allocate, CacheFull, Free, Lookup, PoolModel, PoolScope, Touch, Write, calls, held, null, queued
from seeded_bugs.catalogue import bug_named

SCOPE = PoolScope(blocks=(3,), holders=2, prefixes=1, hold=2)
MODEL = PoolModel(SCOPE)


class Altered(BlockPoolAdapter):
    """kvpool, with what it shows or answers changed."""

    def __init__(self, seen: dict[str, Any] | None = None, answers: Outcome | None = None) -> None:
        super().__init__(KvpoolFamily())
        self.seen = seen or {}
        self.answers = answers

    def apply(self, call: Any) -> Outcome:
        outcome = super().apply(call)
        return self.answers or outcome

    def observe(self) -> Any:
        return super().observe()._replace(**self.seen)


def started(adapter: Any, stride: int = 1) -> Lockstep:
    lockstep = Lockstep(MODEL, adapter, stride)
    assert lockstep.start() is None
    return lockstep


def test_calls_that_agree_move_the_model_on() -> None:
    lockstep = started(make())
    assert lockstep.apply(Allocate(0, 2)) is None
    assert lockstep.state.tables == ((1, 2), ())
    assert lockstep.last is not None
    assert lockstep.last.outcome == Outcome("done", (1, 2))
    assert lockstep.position == 0


def test_difference_is_reported_with_field_values_and_the_broken_property() -> None:
    lockstep = started(bug_named("touched-block-stays-queued").adapter())
    failure = lockstep.apply(Touch(0, (queued(0),)))
    assert failure is not None
    assert failure.verdict == "violated"
    (difference, *_) = failure.differences
    assert (difference.field, difference.expected, difference.shown) == ("queues", ((2, 3),), ((1, 2, 3),))
    assert failure.broken[0][0] == failure.fingerprint == "P1"
    assert "P1 broken: block 1 " in failure.headline
    assert failure.before == MODEL.initial()
    assert failure.expected.queues == ((2, 3),)
    assert failure.after.queues == ((1, 2, 3),)


def test_wrong_answer_that_breaks_no_property_is_a_divergence_that_shows_what_is_allowed() -> None:
    lockstep = started(Altered(answers=Outcome("true")))
    failure = lockstep.apply(Write(null()))
    assert failure is not None
    assert failure.verdict == "diverged"
    assert failure.fingerprint == "WriteBlock:outcome"
    assert "answered true; the specification says refused (not writable)" in failure.headline


def test_undocumented_exception_of_the_implementation_is_an_answer() -> None:
    class Bursts(BlockPoolAdapter):
        def _write(self, call: calls.WriteBlock) -> Outcome:
            raise ZeroDivisionError("nothing to write")

    failure = started(Bursts(KvpoolFamily())).apply(Write(null()))
    assert failure is not None
    assert failure.shown == Outcome("raised", reason="ZeroDivisionError: nothing to write")


def test_initial_state_is_compared() -> None:
    failure = Lockstep(MODEL, bug_named("usage-counts-null-block").adapter()).start()
    assert failure is not None
    assert failure.position == -1
    assert failure.fingerprint == "P5"


def test_fields_that_an_adapter_cannot_show_are_not_compared() -> None:
    blind = {"queues": None, "refs": None, "entries": None, "lookup": None, "free": None, "usage": None}
    lockstep = started(Altered(seen=blind))
    assert lockstep.apply(Allocate(0, 2)) is None
    assert lockstep.differences(lockstep.state, lockstep.adapter.observe()) == ()


def test_refusal_without_a_reason_matches_every_reason_and_a_wrong_reason_none() -> None:
    assert started(Altered(answers=Outcome("refused"))).apply(Allocate(0, -1)) is None
    lockstep = started(Altered(answers=Outcome("refused", reason="not enough free blocks")))
    assert lockstep.apply(Allocate(0, -1)) is not None


def test_reason_that_the_implementation_leaves_open_is_the_models_in_the_step() -> None:
    lockstep = started(Altered(answers=Outcome("refused")))
    lockstep.apply(Allocate(0, -1))
    assert lockstep.last is not None
    assert lockstep.last.outcome.reason == "negative count"


def test_action_whose_roles_do_not_exist_asks_nothing_of_the_implementation() -> None:
    lockstep = started(Altered(answers=Outcome("never asked")))
    assert lockstep.apply(Free(0, (held(0, 0),))) is None
    assert lockstep.last is None
    assert lockstep.state == MODEL.initial()


def test_call_that_a_limit_excludes_is_not_sent() -> None:
    adapter = Altered(answers=Outcome("never asked"))
    adapter.limits = (Limit("no writes", "It has none.", lambda _state, call, _: isinstance(call, calls.WriteBlock)),)
    lockstep = started(adapter)
    assert lockstep.apply(Write(null())) is None
    assert lockstep.last is None
    assert lockstep.apply(Allocate(0, 1)) is not None


def test_of_several_allowed_answers_the_one_shown_is_followed() -> None:
    def with_two_equal_blocks(adapter: Any) -> Lockstep:
        lockstep = started(adapter)
        for action in (Allocate(0, 2), CacheFull((held(0, 0),), 0), CacheFull((held(0, 1),), 0)):
            assert lockstep.apply(action) is None
        return lockstep

    assert with_two_equal_blocks(make()).apply(Lookup(0, 1)) is None
    adapter = Altered()
    lockstep = with_two_equal_blocks(adapter)
    for answer, is_right in ((1, True), (2, True), (3, False)):
        adapter.answers = Outcome("hit", (answer,))
        assert (lockstep.apply(Lookup(0, 1)) is None) == is_right


@pytest.mark.parametrize("method", ["reset", "apply", "observe"])
def test_adapter_that_raises_is_named_with_file_line_and_what_to_do(method: str) -> None:
    def burst(*_: Any) -> None:
        raise KeyError("lost")

    adapter: Any = make()
    lockstep = Lockstep(MODEL, adapter)
    if method == "apply":
        lockstep.start()
    setattr(adapter, method, burst)
    with pytest.raises(AdapterError) as caught:
        lockstep.apply(Allocate(0, 1)) if method == "apply" else lockstep.start()
    message = str(caught.value)
    assert "the adapter 'kvpool' raised KeyError: 'lost' during" in message
    assert f"{Path(__file__).name}:{burst.__code__.co_firstlineno + 1}" in message
    assert "fix the adapter" in message
    assert ("GetNewBlocks" in message) == (method == "apply")


def test_target_that_cannot_be_reset_says_so_itself() -> None:
    class Unreachable(BlockPoolAdapter):
        def reset(self, scope: Any) -> None:
            raise TargetError("no such device")

    with pytest.raises(TargetError, match="no such device"):
        Lockstep(MODEL, Unreachable(KvpoolFamily())).start()


def test_faults_of_one_cause_are_akin_and_of_two_causes_are_not() -> None:
    def first_failure(name: str, *actions: Any) -> Any:
        lockstep = started(bug_named(name).adapter())
        return next(failure for action in actions if (failure := lockstep.apply(action)) is not None)

    below_zero = first_failure("count-falls-below-zero", Free(0, (queued(0),)))  # breaks P1 and P10
    no_reference = first_failure("allocated-without-reference", Allocate(0, 1))  # P1 and P10
    backwards = first_failure("release-order-reversed", Allocate(0, 2), Free(0, (held(0, 0), held(0, 1))))  # P8
    assert below_zero.is_akin(no_reference)
    assert not below_zero.is_akin(backwards)


class EndsInTwoWays(PoolModel):
    """Every call may also end with the same outcome and no change."""

    def __init__(self, scope: PoolScope) -> None:
        super().__init__(scope)
        relation = self.transitions
        self.transitions = lambda state, call: (
            Transition(relation(state, call)[0].outcome, state),
            *relation(state, call),
        )


def test_of_transitions_with_one_outcome_the_one_that_is_shown_is_taken() -> None:
    lockstep = Lockstep(EndsInTwoWays(PoolScope()), make())
    assert lockstep.start() is None
    assert lockstep.apply(Allocate(0, 1)) is None
    assert lockstep.state.tables[0] == (1,)
