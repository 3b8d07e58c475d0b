"""Actions as plain data and back."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvspec.pool import Allocate, PoolModel, PoolScope, Write, held, null, queued, stranger
from kvspec.pool.codec import CodecError, decode, encode

SCOPE = PoolScope(blocks=(3, 2), holders=2, prefixes=2, depth=4, shared=1, spans=(1, 2), hold=3, watchers=2)
MODEL = PoolModel(SCOPE)


def through_json(action: Any) -> Any:
    return decode(json.loads(json.dumps(encode(action))))


@given(st.integers(0, 2**32), st.integers(1, 60))
def test_every_action_of_a_random_run_survives_json(seed: int, length: int) -> None:
    rng, state = Random(seed), MODEL.initial()
    for kind in rng.choices(MODEL.actions, k=length):
        action = kind.some(state, rng)
        assert through_json(action) == action
        assert type(through_json(action)) is type(action)
        state = MODEL.step(state, action)[0].state


def test_every_action_that_a_state_offers_survives_json() -> None:
    state = MODEL.step(MODEL.initial(), Allocate(0, 2))[0].state
    actions = list(MODEL.enabled(state))
    assert {type(action) for action in actions} >= {Allocate, Write}
    assert [through_json(action) for action in actions] == actions


@pytest.mark.parametrize(
    "ref", [held(0, 1), held(3, 0), queued(2), queued(0, 1), null(), null(1), stranger()], ids=repr
)
def test_every_role_survives_json_and_prints_as_it_is_written(ref: Any) -> None:
    vocabulary = {"held": held, "queued": queued, "null": null, "stranger": stranger}
    assert through_json(Write(ref)).ref == ref
    assert eval(repr(ref), vocabulary) == ref  # exported tests are written in these words


def test_default_values_are_written_too() -> None:
    assert encode(Allocate(0, 1)) == {"action": "Allocate", "holder": 0, "num_blocks": 1, "pool": 0}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"action": "Steal", "holder": 0}, "unknown pool action 'Steal'.*known are Allocate"),
        ({"holder": 0}, "unknown pool action None"),
        ({"action": "Allocate", "holder": 0}, r"missing fields \['num_blocks'\]"),
        ({"action": "Allocate", "holder": 0, "num_blocks": 1, "blocks": 2}, r"unknown fields \['blocks'\]"),
        ({"action": "Write", "ref": ["borrowed", 0]}, "names no block: expected .*held, queued, null, stranger"),
        ({"action": "Write", "ref": "held"}, "names no block"),
        ({"action": "Write", "ref": []}, "names no block"),
        ({"action": "Write", "ref": ["held", 0]}, "names no block"),
        ({"action": "Touch", "holder": 0, "refs": [["null", 0, 0]]}, "names no block"),
    ],
    ids=str,
)
def test_data_that_is_no_action_is_shown_with_what_was_expected(data: dict[str, Any], message: str) -> None:
    with pytest.raises(CodecError, match=message):
        decode(data)
