"""Scopes: what makes no sense is refused with the field, its value and what it may be."""

from __future__ import annotations

from typing import Any

import pytest

from kvspec.pool import Geometry, PoolModel, PoolScope, ScopeError

RICH = PoolScope(blocks=(3, 2), holders=3, prefixes=2, depth=4, shared=1, spans=(1, 2), hold=4, watchers=2)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("blocks", ()),
        ("blocks", (0,)),
        ("blocks", (2, -1)),
        ("blocks", ("4",)),
        ("holders", 0),
        ("holders", 1.5),
        ("prefixes", 0),
        ("depth", 0),
        ("shared", -1),
        ("shared", 2),
        ("spans", ()),
        ("spans", (1, 0)),
        ("hold", 0),
        ("watchers", -1),
        ("watchers", None),
    ],
)
def test_field_that_makes_no_sense_is_named_with_its_value(field: str, value: Any) -> None:
    scope = PoolScope()._replace(**{field: value})
    with pytest.raises(ScopeError, match=f"scope field {field} is ") as caught:
        PoolModel(scope)
    assert repr(value) in str(caught.value)


def test_scope_survives_the_way_through_plain_data() -> None:
    data = RICH.to_data()
    assert data["blocks"] == [3, 2]
    assert PoolScope.from_data(data) == RICH


def test_plain_data_may_leave_fields_out() -> None:
    assert PoolScope.from_data({"blocks": [2]}) == PoolScope(blocks=(2,))


def test_field_of_a_newer_version_is_not_passed_over() -> None:
    with pytest.raises(ScopeError, match=r"unknown fields \['colour'\]"):
        PoolScope.from_data({"colour": "red"})


def test_plain_data_is_checked() -> None:
    with pytest.raises(ScopeError, match="scope field hold is 0"):
        PoolScope.from_data({"hold": 0})


def test_printed_scope_shows_what_differs_from_the_default() -> None:
    assert str(PoolScope()) == "blocks=4 holders=2 prefixes=2 hold=2"
    assert "spans=1+2" in str(RICH)
    assert "caching=False" in str(PoolScope(caching=False))


def test_blocks_are_numbered_through_all_pools_with_a_null_block_in_front_of_each() -> None:
    geometry = Geometry.of(RICH)
    assert geometry.nulls == (0, 4)
    assert geometry.owner == (0, 0, 0, 0, 1, 1, 1)
    assert geometry.local == (0, 1, 2, 3, 0, 1, 2)
    assert list(geometry.blocks_of(1)) == [4, 5, 6]


def test_every_block_but_null_is_free_in_the_beginning() -> None:
    state = PoolModel(RICH).initial()
    assert state.queues == ((1, 2, 3), (5, 6))
    assert not any(state.refs)
    assert not any(state.entries)
    assert state.tables == ((), (), ())
