"""The levels of the specification as drivers use them: how a model is made, stored and made smaller.

A level registers here once; explorer, walk, machine, minimiser, traces and the command line know no level by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from kvfuzz.errors import UsageError
from kvfuzz.pool_reduction import pool_search_ladder, renamed_pool_actions, smaller_pool_scopes
from kvspec import Model
from kvspec.pool import PoolModel, PoolScope
from kvspec.pool import codec as pool_codec


class Level(NamedTuple):
    """make_model(scope); read_scope(plain data) -> scope; encode and decode of actions; smaller_scopes(scope): each
    one step smaller; search_ladder(scope, widest): scopes up to this one in which a search for short traces pays,
    smallest first; renamed(actions): the same with interchangeable roles numbered by first use; vocabulary: the
    module from which exported tests import the names that actions print with."""

    name: str
    default_scope: Any
    make_model: Callable[[Any], Model]
    read_scope: Callable[[dict[str, Any]], Any]
    encode: Callable[[Any], dict[str, Any]]
    decode: Callable[[dict[str, Any]], Any]
    smaller_scopes: Callable[[Any], Iterator[Any]]
    search_ladder: Callable[[Any, Any], Iterator[Any]]
    renamed: Callable[[Sequence[Any]], list[Any]]
    vocabulary: str


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
        renamed=renamed_pool_actions,
        vocabulary="kvspec.pool",
    )
}


def level_named(name: str) -> Level:
    """Raises UsageError for a level that does not exist."""
    if name not in LEVELS:
        raise UsageError(f"unknown level {name!r}: the levels are {', '.join(LEVELS)}")
    return LEVELS[name]
