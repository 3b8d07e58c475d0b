"""How pool scopes and pool traces are made smaller and plainer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kvspec.pool import PoolScope, Ref


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


def pool_search_ladder(scope: PoolScope, widest: PoolScope) -> Iterator[PoolScope]:
    """Scopes in which a search for short traces pays, smallest first.

    What kinds of entries and events there are is as in `scope`, which a trace was lowered to and which is among them.
    The numbers of blocks, holders and entries held go up to two beyond it, though not beyond `widest`: with more room
    a shorter trace may do, and two of each are cheap to search.
    """
    pools = range(len(scope.blocks))
    seen = set()
    for size, holders, hold in ((1, 1, 1), (1, 1, 2), (2, 1, 2), (2, 2, 2), (3, 2, 2), (3, 1, 3), (3, 2, 3)):
        bound = widest if max(size, holders, hold) <= 2 else scope
        rung = scope._replace(
            blocks=tuple(min(size, bound.blocks[pool]) for pool in pools),
            holders=min(holders, bound.holders),
            hold=min(hold, bound.hold),
        )
        if rung not in seen:
            seen.add(rung)
            yield rung
    if scope not in seen:
        yield scope


def renamed_pool_actions(actions: Sequence[Any]) -> list[Any]:
    """The same run with holders and prefixes numbered in the order of their first use."""
    holders: dict[int, int] = {}
    prefixes: dict[int, int] = {}

    def renamed_ref(ref: Ref) -> Ref:
        return ref._replace(owner=holders.setdefault(ref.owner, len(holders))) if ref.is_held else ref

    def renamed(field: str, value: Any) -> Any:
        if isinstance(value, Ref):
            return renamed_ref(value)
        if field == "refs":
            return tuple(renamed_ref(ref) for ref in value)
        if field == "holder":
            return holders.setdefault(value, len(holders))
        if field == "prefix":
            return prefixes.setdefault(value, len(prefixes))
        return value

    return [
        action._replace(**{field: renamed(field, value) for field, value in action._asdict().items()})
        for action in actions
    ]
