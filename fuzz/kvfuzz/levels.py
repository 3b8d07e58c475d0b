"""The levels of the specification as drivers use them: how a model is made, stored and made smaller.

A level registers here once; explorer, walk, machine, minimiser, traces and the command line know no level by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kvfuzz.errors import UsageError
from kvspec import Model
from kvspec.pool import PoolModel, PoolScope
from kvspec.pool import codec as pool_codec


class Level(NamedTuple):
    """make_model(scope); read_scope(plain data) -> scope; encode and decode of actions; smaller_scopes(scope): each one
    step smaller; search_ladder(scope): scopes up to this one in which a search for short traces pays, smallest first;
    vocabulary: the module from which exported tests import the names that actions print with."""

    name: str
    default_scope: Any
    make_model: Callable[[Any], Model]
    read_scope: Callable[[dict[str, Any]], Any]
    encode: Callable[[Any], dict[str, Any]]
    decode: Callable[[dict[str, Any]], Any]
    smaller_scopes: Callable[[Any], Iterator[Any]]
    search_ladder: Callable[[Any], Iterator[Any]]
    vocabulary: str


def smaller_pool_scopes(scope: PoolScope) -> Iterator[PoolScope]:
    """Scopes that are one step smaller in one respect, the cheapest to explore first."""
    if len(scope.blocks) > 1:
        yield scope._replace(blocks=scope.blocks[:-1])
    for pool, size in enumerate(scope.blocks):
        if size > 1:
            yield scope._replace(blocks=scope.blocks[:pool] + (size - 1,) + scope.blocks[pool + 1 :])
    if len(scope.spans) > 1:
        yield scope._replace(spans=scope.spans[:-1])
        yield scope._replace(spans=scope.spans[1:])
    if scope.shared:
        yield scope._replace(shared=scope.shared - 1)
    for field in ("holders", "prefixes", "depth", "hold", "watchers"):
        value, least = getattr(scope, field), 0 if field == "watchers" else 1
        if value > least and not (field == "depth" and scope.shared >= value):
            yield scope._replace(**{field: value - 1})
    for span in range(len(scope.spans)):
        if scope.spans[span] > 1:
            yield scope._replace(spans=(*scope.spans[:span], scope.spans[span] - 1, *scope.spans[span + 1 :]))
    if scope.events:
        yield scope._replace(events=False)
    # Misuse stays: it decides which actions an exploration tries, so a proof without it would prove less.


def pool_search_ladder(scope: PoolScope) -> Iterator[PoolScope]:
    """Fewer blocks, holders and entries; what kind of entries there can be stays as it is. The last is the scope
    itself."""
    seen = set()
    for size, holders, hold in ((1, 1, 1), (1, 1, 2), (2, 1, 2), (2, 2, 2), (3, 2, 2), (3, 1, 3), (3, 2, 3)):
        rung = scope._replace(
            blocks=tuple(min(size, count) for count in scope.blocks),
            holders=min(holders, scope.holders),
            hold=min(hold, scope.hold),
        )
        if rung not in seen:
            seen.add(rung)
            yield rung
    if scope not in seen:
        yield scope


LEVELS: dict[str, Level] = {
    "pool": Level(
        name="pool",
        default_scope=PoolScope(),
        make_model=PoolModel,
        read_scope=PoolScope.from_data,
        encode=pool_codec.encode,
        decode=pool_codec.decode,
        smaller_scopes=smaller_pool_scopes,
        search_ladder=pool_search_ladder,
        vocabulary="kvspec.pool",
    )
}


def level_named(name: str) -> Level:
    """Raises UsageError for a level that does not exist."""
    if name not in LEVELS:
        raise UsageError(f"unknown level {name!r}: the levels are {', '.join(LEVELS)}")
    return LEVELS[name]
