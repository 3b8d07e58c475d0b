"""`resolve` and `step` answer every action in every state, sense or nonsense, and a refusal changes nothing."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvspec import SKIPPED, Model, Step, broken
from kvspec.pool import (
    Allocate,
    Announce,
    CacheFull,
    CachePartial,
    Evict,
    Free,
    Hit,
    Lookup,
    MoveHashes,
    PoolModel,
    PoolScope,
    Reset,
    Touch,
    Unpin,
    Write,
    held,
    null,
    queued,
    stranger,
)

MODELS: list[Model] = [
    PoolModel(scope)
    for scope in (
        PoolScope(blocks=(2, 2), holders=2, prefixes=2, depth=2, spans=(1, 2), hold=3, watchers=2),
        PoolScope(blocks=(3,), holders=1, hold=2, watchers=1, caching=False),
        PoolScope(blocks=(1,), holders=1, prefixes=1, hold=1, events=False, misuse=False),
    )
]

index = st.integers(0, 6) | st.just(99)
number = st.integers(-2, 6) | st.just(99)
ref = st.builds(held, index, number) | st.builds(queued, number, index) | st.builds(null, index) | st.builds(stranger)
refs = st.lists(ref, max_size=4).map(tuple)
groups = st.lists(number, max_size=3).map(tuple)
action = st.one_of(
    st.builds(Allocate, index, number, number),
    st.builds(Touch, index, refs, number),
    st.builds(Hit, index, number, number, groups, number),
    st.builds(Lookup, number, number, groups, number),
    st.builds(Free, index, refs, number),
    st.builds(Unpin, index, refs, number),
    st.builds(CacheFull, refs, number, number, number, number, number),
    st.builds(CachePartial, ref, number, number, number, st.booleans(), number),
    st.builds(MoveHashes, ref, ref, number),
    st.builds(Evict, refs, number, number),
    st.builds(Reset, number),
    st.builds(Write, ref, number),
    st.builds(Announce, number, number, number, number),
)


def random_state(model: Model, seed: int, length: int) -> Any:
    rng, state = Random(seed), model.initial()
    for kind in rng.choices(model.actions, k=length):
        state = rng.choice(model.step(state, kind.some(state, rng))).state
    return state


@given(st.sampled_from(MODELS), st.integers(0, 2**32), st.integers(0, 30), st.lists(action, min_size=5, max_size=5))
def test_every_action_has_an_answer_and_what_is_not_done_changes_nothing(
    model: Model, seed: int, length: int, actions: list[Any]
) -> None:
    state = random_state(model, seed, length)
    for nonsense in actions:
        call = model.resolve(state, nonsense)
        allowed = model.step(state, nonsense)
        assert allowed
        if call is None:
            assert [transition.outcome for transition in allowed] == [SKIPPED]
        for outcome, after in allowed:
            if outcome.label in ("refused", "false", "miss", "skipped"):
                assert after is state
            assert len(after.tables) == model.scope.holders
            assert all(len(table) <= model.scope.hold for table in after.tables)
            assert call is None or broken(model.properties, Step(state, call, outcome, after)) == []


@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model.scope))
def test_enabled_offers_only_actions_that_resolve(model: Model) -> None:
    for seed in range(20):
        state = random_state(model, seed, seed)
        offered = list(model.enabled(state))
        assert offered
        assert all(model.resolve(state, one) is not None for one in offered)


@pytest.mark.parametrize(
    "nonsense",
    [
        Allocate(-1, 1),
        Allocate(-9, 1),
        Touch(-1, (queued(0),)),
        Free(-1, (null(),)),
        Free(0, (null(-1),)),
        Free(0, (null(-9),)),
        Touch(0, (null(-9),)),
        Write(null(-1)),
        MoveHashes(null(-9), null()),
        Write(queued(0), 99),
    ],
    ids=repr,
)
def test_role_beyond_the_scope_does_not_exist(nonsense: Any) -> None:
    model = MODELS[0]
    assert model.step(model.initial(), nonsense)[0].outcome == SKIPPED


def test_several_reasons_for_a_refusal_are_all_allowed() -> None:
    model = PoolModel(PoolScope(blocks=(2, 2), watchers=1))
    outcomes = {
        transition.outcome.reason for transition in model.step(model.initial(), Unpin(0, (null(1), stranger())))
    }
    assert outcomes == {"foreign block", "null block"}


def test_any_of_several_equal_blocks_is_a_right_answer() -> None:
    model = PoolModel(PoolScope(blocks=(2,), holders=1, prefixes=1))
    state = model.initial()
    for one in (Allocate(0, 2), CacheFull((held(0, 0),), 0), CacheFull((held(0, 1),), 0)):
        ((_, state),) = model.step(state, one)
    answers = {transition.outcome.value for transition in model.step(state, Lookup(0, 1))}
    assert answers == {(1,), (2,)}
