"""The small model on which the explorer is compared with Spin: what it says must be what Spin says.

Spin itself is not run here; the figures it gave are recorded below and `python -m bench.explorer` counts them again.
"""

from __future__ import annotations

from random import Random

import pytest
from bench.explorer.small_model import Allocate, Evict, Identify, Release, SmallModel, SmallScope, SmallState

from kvfuzz.explorer import Explorer, ExploreResult
from kvspec import SKIPPED

SCOPE = SmallScope(blocks=3, requests=2, hashes=2, longest=3)
STATES_OF_SPIN = 7_290
TRANSITIONS_OF_SPIN = 54_648  # without the one that leads to the initial state
STATES_UP_TO_NAMES = 364


def explored(symmetry: str, planted: bool = False) -> ExploreResult:
    return Explorer(SmallModel(SCOPE, planted), symmetry=symmetry).run()


def test_plain_exploration_counts_what_spin_counts() -> None:
    result = explored("none")
    assert result.exhausted
    assert (result.states, result.transitions) == (STATES_OF_SPIN, TRANSITIONS_OF_SPIN)


@pytest.mark.parametrize("symmetry", ["full", "none"])
def test_properties_hold_and_every_situation_is_met(symmetry: str) -> None:
    result = explored(symmetry)
    assert result.exhausted
    assert result.failure is None
    assert result.coverage.missing == []


def test_symmetry_leaves_one_state_of_each_form() -> None:
    model = SmallModel(SCOPE)
    assert explored("full").states == STATES_UP_TO_NAMES == len({model.canonical(state) for state in all_states(model)})


@pytest.mark.parametrize("symmetry", ["full", "none"])
def test_planted_bug_is_found_on_a_shortest_path(symmetry: str) -> None:
    result = explored(symmetry, planted=True)
    assert result.failure is not None
    assert result.failure.fingerprint == "S1"
    # Take, identify, share, release: nothing shorter makes a shared block that is released.
    assert len(result.actions) == 4


def test_canonical_form_does_not_depend_on_names() -> None:
    rng, model = Random(7), SmallModel(SCOPE)
    states = rng.sample(sorted(all_states(model)), 300)
    forms = {state: model.canonical(state) for state in states}
    for state in states:
        blocks, hashes = rng.sample(range(3), 3), [0, *rng.sample((1, 2), 2)]
        assert model.canonical(renamed(state, blocks, hashes, rng.sample(range(2), 2))) == forms[state]


def test_canonical_form_keeps_order_in_queue_and_table_apart() -> None:
    model = SmallModel(SCOPE)
    waiting_first = SmallState((0, 1), (1, 0, 0), ((2,), ()))
    waiting_second = SmallState((1, 0), (1, 0, 0), ((2,), ()))
    assert model.canonical(waiting_first) != model.canonical(waiting_second)
    assert model.canonical(waiting_first) != model.canonical(SmallState((0, 1), (1, 2, 0), ((2,), ())))


def test_release_orders_the_queue_by_hash_and_from_the_end_of_the_table() -> None:
    model = SmallModel(SmallScope(blocks=4, requests=1, hashes=1, longest=4))
    state = SmallState((3,), (1, 0, 0, 0), ((0, 1, 2),))
    (transition,) = model.step(state, Release(0))
    assert transition.state == SmallState((2, 1, 3, 0), (1, 0, 0, 0), ((),))


def test_step_skips_what_is_not_enabled() -> None:
    model = SmallModel(SCOPE)
    for action in (Release(0), Evict(0), Identify(0, 1)):
        assert [transition.outcome for transition in model.step(model.initial(), action)] == [SKIPPED]
    assert [transition.outcome.value for transition in model.step(model.initial(), Allocate(1))] == [(0,)]


def all_states(model: SmallModel) -> set[SmallState]:
    """Reached without the explorer."""
    seen = {model.initial()}
    waiting = list(seen)
    while waiting:
        state = waiting.pop()
        for action in model.enabled(state):
            for transition in model.transitions(state, action):
                if transition.state not in seen:
                    seen.add(transition.state)
                    waiting.append(transition.state)
    return seen


def renamed(state: SmallState, blocks: list[int], hashes: list[int], requests: list[int]) -> SmallState:
    """Block b becomes blocks[b], hash h hashes[h], request r takes the table of requests[r]."""
    carried = [0] * len(blocks)
    for block, value in enumerate(state.hashes):
        carried[blocks[block]] = hashes[value]
    tables = [tuple(blocks[block] for block in table) for table in state.tables]
    return SmallState(
        tuple(blocks[block] for block in state.queue), tuple(carried), tuple(tables[request] for request in requests)
    )
