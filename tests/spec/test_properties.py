"""Each property reports a step that breaks it, names the block, and stays calm on states that make no sense."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kvspec import Always, Model, Outcome, Step, broken
from kvspec.pool import PoolModel, PoolObservation, PoolScope, PoolState, calls

SCOPE = PoolScope(blocks=(3,), holders=2, prefixes=2, hold=2, watchers=2)
MODEL: Model = PoolModel(SCOPE)
START = MODEL.initial()
DONE = Outcome("done")

# Holder 0 has block 1, identified as identity 0; 2 and 3 are free, 3 with identity 1 and one watcher.
BUSY = PoolState(((2, 3),), (0, 1, 0, 0), ((), (0,), (), (1,)), (0, 0, 0, 1), ((1,), ()))
FREE_1 = calls.FreeBlocks(0, (0,), (1,), 0)
FREED = BUSY._replace(queues=((2, 3, 1),), refs=(0, 0, 0, 0), tables=((), ()))
ANY = calls.GetCachedBlock(0, 1, (0,), 0)
TAKE = calls.GetNewBlocks(1, 1, 0)
TAKEN_3 = PoolState(((),), (0, 1, 1, 1), ((), (0,), (), ()), (0, 0, 0, 0), ((1,), (2, 3)))
TAKE_2 = calls.GetNewBlocks(1, 2, 0)


def shown(state: PoolState, **claims: Any) -> Any:
    """The state as an implementation that claims these figures shows it."""
    honest = MODEL.observe(state)
    return MODEL.lift(state, honest._replace(**claims))


BROKEN_STEPS = [
    ("P1", "block 1 ", Step(BUSY, FREE_1, DONE, FREED._replace(queues=((2, 3, 1, 1),)))),
    ("P1", "block 1 ", Step(BUSY, FREE_1, DONE, FREED._replace(queues=((2, 3),)))),
    ("P1", "block 1 ", Step(BUSY, ANY, Outcome("miss"), BUSY._replace(queues=((2, 3, 1),)))),
    ("P1", "blocks 9 ", Step(BUSY, ANY, Outcome("miss"), BUSY._replace(queues=((2, 3, 9),)))),
    ("P2", "block 1 ", Step(BUSY, calls.WriteBlock(1, 0), DONE, BUSY)),
    ("P2", "block 2 ", Step(BUSY, calls.WriteBlock(2, 0), DONE, BUSY)),
    ("P2", "null block 0 ", Step(BUSY, calls.WriteBlock(0, 0), DONE, BUSY)),
    ("P3", "block 1 ", Step(BUSY, ANY, DONE, shown(BUSY, lookup=((), (), (), (1,))))),
    ("P3", "block 2 ", Step(BUSY, ANY, DONE, shown(BUSY, lookup=((), (0,), (0,), (1,))))),
    ("P3", "blocks that no pool owns", Step(BUSY, ANY, DONE, shown(BUSY, lookup=((), (0,), (), (1,), (0,))))),
    ("P3", "block 2,", Step(BUSY, ANY, Outcome("hit", (2,)), BUSY)),
    ("P3", "block 1 ", Step(BUSY, ANY, DONE, BUSY._replace(entries=((), (0, 0), (), (1,))))),
    ("P4", "null block 0 ", Step(BUSY, ANY, DONE, BUSY._replace(queues=((0, 2, 3),)))),
    ("P4", "null block 0 ", Step(BUSY, ANY, DONE, BUSY._replace(entries=((1,), (0,), (), (1,))))),
    ("P4", "null block 0 ", Step(BUSY, ANY, DONE, BUSY._replace(refs=(1, 1, 0, 0)))),
    ("P4", "null block 0 ", Step(BUSY, TAKE, Outcome("done", (0,)), BUSY)),
    ("P5", "reports 3 free", Step(BUSY, ANY, DONE, shown(BUSY, free=(3,)))),
    ("P5", "reports usage -0.5", Step(BUSY, ANY, DONE, shown(BUSY, usage=(-0.5,)))),
    ("P6", "changed refs", Step(BUSY, FREE_1, Outcome("refused"), BUSY._replace(refs=(0, 0, 0, 0)))),
    ("P6", "changed entries", Step(BUSY, ANY, Outcome("miss"), BUSY._replace(entries=((),) * 4))),
    ("P6", "had effects", Step(BUSY, FREE_1, Outcome("refused", effects=(("fired", 3),)), BUSY)),
    ("P7", "p1[1]; 0 are", Step(BUSY, calls.EvictBlocks((3,), 0), DONE, BUSY._replace(entries=((), (0,), (), ())))),
    ("P7", "p0[1] was published", Step(START, ANY, Outcome("done", effects=(("removed", 0),)), START)),
    ("P8", "went from [2, 3]", Step(BUSY, FREE_1, DONE, FREED._replace(queues=((1, 2, 3),)))),
    ("P8", "took [3] from", Step(BUSY, TAKE, Outcome("done", (3,)), BUSY)),
    ("P9", "0 watchers of block 3 ", Step(BUSY, TAKE_2, Outcome("done", (2, 3)), TAKEN_3)),
    ("P9", "1 watchers of block 1 ", Step(BUSY, ANY, Outcome("hit", (1,), (("fired", 1),)), BUSY)),
    ("P9", "blocks 3 ", Step(BUSY, TAKE_2, Outcome("done", (2, 3), (("fired_late", 3),)), TAKEN_3)),
    ("P10", "block 1 ", Step(BUSY, ANY, DONE, BUSY._replace(refs=(0, 2, 0, 0)))),
    ("P10", "block 1 ", Step(BUSY, ANY, DONE, BUSY._replace(tables=((1, 1), ())))),
    ("P11", "block 2 ", Step(BUSY, ANY, DONE, BUSY._replace(entries=((), (0,), (1,), (1,))))),
    ("P11", "block 3 ", Step(BUSY, TAKE_2, Outcome("done", (2, 3)), TAKEN_3._replace(entries=BUSY.entries))),
    ("P12", "block 3 ", Step(BUSY, FREE_1, DONE, FREED._replace(entries=((), (0,), (), ())))),
]


def named(steps: list[Any]) -> list[str]:
    return [f"{name} {words.strip()}" for name, words, _ in steps]


@pytest.mark.parametrize(("name", "words", "step"), BROKEN_STEPS, ids=named(BROKEN_STEPS))
def test_broken_step_is_reported_with_the_block_concerned(name: str, words: str, step: Step) -> None:
    found = dict(broken(MODEL.properties, step))
    assert name in found, f"nothing but {found}"
    assert words in found[name]


def test_every_property_is_broken_by_a_step_above() -> None:
    listed = [entry.id for entry in MODEL.properties if isinstance(entry, Always)]
    assert listed == [f"P{number}" for number in range(1, 13)]
    assert {name for name, _, _ in BROKEN_STEPS} == set(listed)


@pytest.mark.parametrize(
    "step",
    [
        Step(BUSY, FREE_1, DONE, FREED),
        Step(BUSY, ANY, Outcome("hit", (1,)), BUSY),
        Step(
            BUSY,
            TAKE_2,
            Outcome("done", (2, 3), (("fired", 3), ("removed", 1))),
            TAKEN_3,
        ),
    ],
    ids=["release", "hit", "allocation"],
)
def test_right_step_is_not_reported(step: Step) -> None:
    assert broken(MODEL.properties, step) == []


def test_properties_and_situations_have_ids_of_their_own_and_a_sentence() -> None:
    ids = [entry.id for entry in MODEL.properties]
    assert len(ids) == len(set(ids))
    assert all(entry.sentence.endswith(".") for entry in MODEL.properties)


number = st.integers(-3, 6)
row = st.lists(number, max_size=5).map(tuple)
four = st.tuples(number, number, number, number)
rows = st.tuples(row, row, row, row)
observation = st.builds(
    PoolObservation,
    st.none() | st.tuples(row),
    st.none() | four,
    st.none() | rows,
    st.none() | rows | st.lists(row, min_size=4, max_size=6).map(tuple),
    st.none() | st.tuples(number),
    st.none() | st.tuples(st.floats(allow_nan=True)),
)
outcome = st.builds(
    Outcome,
    st.sampled_from(["done", "refused", "hit", "miss", "true", "false", "raised"]),
    row,
    st.lists(
        st.tuples(st.sampled_from(["fired", "fired_late", "stored", "removed", "cleared", "announced"]), number),
        max_size=4,
    ).map(tuple),
)
CALLS = [
    None,
    TAKE,
    TAKE_2,
    FREE_1,
    ANY,
    calls.TouchBlocks(0, (2, calls.STRANGER), 0),
    calls.HitBlocks(0, 0, 1, (0,), 0),
    calls.FreeBlocks(0, (0, 0), (1, 1, 0, calls.STRANGER), 0),
    calls.UnpinBlocks(0, (0,), (1,), 0),
    calls.CacheFullBlocks((1, calls.STRANGER), 0, 0, 0, -1, 0),
    calls.CachePartialBlock(1, 0, 7, 0, False, 0),
    calls.MoveBlockHashes(3, 1, 0),
    calls.EvictBlocks((9, -1), 0),
    calls.ResetPrefixCache(0),
    calls.WriteBlock(2, 0),
    calls.EmitCachedBlockEvents(0, 1, 0, 0),
]


@given(observation, st.sampled_from(CALLS), outcome)
def test_checks_answer_in_words_whatever_an_implementation_shows(seen: Any, call: Any, answer: Outcome) -> None:
    assume(answer.label != "hit" or isinstance(call, calls.GetCachedBlock | calls.HitBlocks))
    assume(call not in (TAKE, TAKE_2) or all(0 <= block <= 3 for block in answer.value))
    lifted = MODEL.lift(BUSY, seen)
    for entry in MODEL.properties:
        if isinstance(entry, Always):
            assert isinstance(entry.check(Step(BUSY, call, answer if call else None, lifted)), str)  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [Outcome("done", (4,)), Outcome("hit", (1,))], ids=str)
def test_allocation_that_is_answered_with_nonsense_is_judged_too(answer: Outcome) -> None:
    assert all(words for _, words in broken(MODEL.properties, Step(BUSY, TAKE, answer, BUSY)))


def test_move_from_a_block_that_no_pool_owns_is_judged_too() -> None:
    move = calls.MoveBlockHashes(calls.STRANGER, 1, 0)
    gained = BUSY._replace(entries=((), (0, 1), (), (1,)))
    assert "P7" in dict(broken(MODEL.properties, Step(BUSY, move, DONE, gained)))
