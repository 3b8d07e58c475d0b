"""Identities: small numbers that stand for (prefix, boundary, group), shared boundaries counted once."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import pytest

from kvspec import Identities

SIZES = [(1, 1, 1, 0), (2, 3, 2, 1), (3, 2, 1, 2), (2, 4, 2, 0)]


@pytest.fixture(params=SIZES, ids=str)
def identities(request: Any) -> Identities:
    return Identities(*request.param)


def every(identities: Identities) -> list[tuple[int, int, int]]:
    return list(product(range(identities.prefixes), range(1, identities.depth + 1), range(identities.groups)))


def test_number_and_name_of_an_identity_lead_to_each_other(identities: Identities) -> None:
    for prefix, boundary, group in every(identities):
        back = identities.unpack(identities.pack(prefix, boundary, group))
        assert back == (0 if boundary <= identities.shared else prefix, boundary, group)


def test_identities_are_equal_exactly_where_prefix_boundary_and_group_mean_the_same_tokens(
    identities: Identities,
) -> None:
    for one, other in product(every(identities), repeat=2):
        same_tokens = one[1:] == other[1:] and (one[0] == other[0] or one[1] <= identities.shared)
        assert (identities.pack(*one) == identities.pack(*other)) == same_tokens


def test_longer_boundary_of_one_prefix_and_group_has_the_larger_number(identities: Identities) -> None:
    for prefix, group in product(range(identities.prefixes), range(identities.groups)):
        own = range(identities.shared + 1, identities.depth + 1)
        numbers = [identities.pack(prefix, boundary, group) for boundary in own]
        assert numbers == sorted(set(numbers))


def test_chain_of_a_prefix_is_what_it_passes_through(identities: Identities) -> None:
    for prefix, group in product(range(identities.prefixes), range(identities.groups)):
        chain = {identities.pack(prefix, boundary, group) for boundary in range(1, identities.depth + 1)}
        for one in every(identities):
            number = identities.pack(*one)
            assert identities.is_on_chain(number, prefix, group) == (number in chain)


def test_renaming_of_prefixes_keeps_boundary_and_group(identities: Identities) -> None:
    for order in permutations(range(identities.prefixes)):
        table = identities.renaming(order)
        for prefix, boundary, group in every(identities):
            assert table[identities.pack(prefix, boundary, group)] == identities.pack(order[prefix], boundary, group)


def test_number_that_no_identity_has_is_named_as_such(identities: Identities) -> None:
    count = identities.prefixes * identities.depth * identities.groups
    for number in (-1, count, 10_000):
        assert "no identity" in identities.name(number)
    assert identities.name(0).startswith("p0[1]")


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1, 2), (1, 1, 1, -1)], ids=str)
def test_sizes_that_describe_nothing_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        Identities(*sizes)
