"""Small scopes visited completely: every property holds, and every situation that a scope requires is reached."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from kvspec import Model, Sometimes, Step, broken
from kvspec.pool import PoolModel, PoolScope
from kvspec.pool.situations import SITUATIONS

SCOPES = {
    "sharing": PoolScope(blocks=(3,), holders=2, prefixes=1, hold=2),
    "watchers": PoolScope(blocks=(2,), holders=2, prefixes=1, hold=2, watchers=2),
    "partial entries": PoolScope(blocks=(2,), holders=1, prefixes=2, depth=2, spans=(2,), hold=2),
    "masks": PoolScope(blocks=(2,), holders=1, prefixes=1, depth=2, hold=2),
    "groups": PoolScope(blocks=(2,), holders=1, prefixes=1, depth=2, spans=(1, 2), hold=2),
    "two pools": PoolScope(blocks=(2, 1), holders=1, prefixes=1, hold=2),
    "no caching": PoolScope(blocks=(3,), holders=2, prefixes=1, watchers=1, caching=False),
    "no misuse": PoolScope(blocks=(2,), holders=2, prefixes=1, misuse=False),
    "released to the tail": PoolScope(blocks=(2,), holders=1, prefixes=1, lifo=False),
}


def situations_of(model: Model) -> set[str]:
    return {entry.id for entry in model.properties if isinstance(entry, Sometimes)}


def explored(model: Model, by: Any) -> tuple[dict[Any, Any], set[str], list[str]]:
    """(a representative of each state, situations reached, broken properties with the call)."""
    start = model.initial()
    seen, waiting = {by(start): start}, [start]
    situations = [entry for entry in model.properties if isinstance(entry, Sometimes)]
    reached: set[str] = set()
    wrong: list[str] = []
    while waiting:
        state = waiting.pop()
        for action in model.enabled(state):
            call = model.resolve(state, action)
            for outcome, after in model.transitions(state, call):
                step = Step(state, call, outcome, after)
                wrong += [f"{name} after {call}: {why}" for name, why in broken(model.properties, step)]
                reached.update(entry.id for entry in situations if entry.id not in reached and entry.reached(step))
                key = by(after)
                if key not in seen:
                    seen[key] = after
                    waiting.append(after)
    return seen, reached, wrong


@pytest.mark.parametrize("name", SCOPES)
def test_every_property_holds_on_every_transition_and_every_situation_is_reached(name: str) -> None:
    model = PoolModel(SCOPES[name])
    seen, reached, wrong = explored(model, model.canonical)
    assert wrong == []
    assert situations_of(model) - reached == set()
    assert len(seen) > 10


def test_scopes_together_require_every_situation() -> None:
    required = set().union(*(situations_of(PoolModel(scope)) for scope in SCOPES.values()))
    assert required == {situation.property.id for situation in SITUATIONS}


TINY = {
    "one block": PoolScope(blocks=(1,), holders=1, prefixes=1, hold=2),
    "one block, two groups": PoolScope(blocks=(1,), holders=1, prefixes=1, spans=(1, 1), hold=2),
    "one block in each pool": PoolScope(blocks=(1, 1), holders=1, prefixes=1, hold=2),
    "blocks longer than prefixes": PoolScope(blocks=(2,), holders=1, prefixes=1, depth=1, spans=(2,), hold=2),
}


@pytest.mark.parametrize("name", TINY)
def test_only_what_can_be_reached_is_required(name: str) -> None:
    model = PoolModel(TINY[name])
    _, reached, _ = explored(model, model.canonical)
    assert situations_of(model) - reached == set()
    identifies = {kind.name for kind in model.actions if kind.takes_effect} & {"cache_full", "announce"}
    assert not identifies or model.scope.depth >= min(model.scope.spans)


SYMMETRIC = {
    "holders": PoolScope(blocks=(2,), holders=2, prefixes=1),
    "prefixes": PoolScope(blocks=(2,), holders=1, prefixes=2, depth=2, shared=1, hold=2),
    "pools": PoolScope(blocks=(1, 1), holders=2, prefixes=1, hold=1, watchers=1),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetry_visits_one_state_of_each_orbit_and_misses_none(name: str) -> None:
    model = PoolModel(SYMMETRIC[name])
    every, reached, wrong = explored(model, lambda state: state)
    orbits, reached_up_to_names, wrong_up_to_names = explored(model, model.canonical)
    assert {model.canonical(state) for state in every} == set(orbits)
    assert len(orbits) < len(every)
    assert reached == reached_up_to_names
    assert wrong == wrong_up_to_names == []


@pytest.mark.parametrize("name", SCOPES)
def test_names_of_holders_prefixes_and_blocks_do_not_matter_to_the_canonical_form(name: str) -> None:
    model = PoolModel(SCOPES[name])
    for seed in range(60):
        rng, state = Random(seed), model.initial()
        for kind in rng.choices(model.actions, k=seed // 2):
            state = rng.choice(model.step(state, kind.some(state, rng))).state
        assert model.canonical(renamed(model, state, rng)) == model.canonical(state)


def renamed(model: PoolModel, state: Any, rng: Random) -> Any:
    """The same state after a random renaming that keeps every block in its pool and null blocks null."""
    scope, geometry = model.scope, model.geometry
    holders = rng.sample(range(scope.holders), scope.holders)
    prefixes = rng.sample(range(scope.prefixes), scope.prefixes)
    identity = model.identities.renaming(tuple(prefixes))
    block = list(range(len(geometry.owner)))
    for pool in range(len(scope.blocks)):
        own = list(geometry.blocks_of(pool))[1:]
        for old, new in zip(own, rng.sample(own, len(own)), strict=True):
            block[old] = new
    back = [block.index(new) for new in range(len(block))]
    return type(state)(
        queues=tuple(tuple(block[old] for old in queue) for queue in state.queues),
        refs=tuple(state.refs[old] for old in back),
        entries=tuple(tuple(sorted((identity[i] for i in state.entries[old]), reverse=True)) for old in back),
        watchers=tuple(state.watchers[old] for old in back),
        tables=tuple(tuple(block[old] for old in state.tables[holder]) for holder in holders),
    )


def test_states_that_differ_in_more_than_names_have_different_canonical_forms() -> None:
    """Two states have one form only if some renaming takes one to the other: checked by trying all of them."""
    model = PoolModel(PoolScope(blocks=(2,), holders=2, prefixes=2, hold=1, events=False, misuse=False))
    every, _, _ = explored(model, lambda state: state)
    orbit: dict[Any, set[Any]] = {}
    for state in every:
        names = {renamed(model, state, Random(seed)) for seed in range(40)}
        orbit[state] = names
    for one, other in product(every, repeat=2):
        assert (model.canonical(one) == model.canonical(other)) == (other in orbit[one])
