"""Which pool states are the same up to names.

Holders are interchangeable, prefixes are (their shared boundaries stay), and the blocks of one pool are, apart from
the null block. Every block is in a queue or in a table, so once holders and prefixes are put in an order, naming the
blocks by first appearance is canonical; the least result over all orders of holders and prefixes is the form.

Not used: KV-cache groups with equal spans, and pools with equal sizes. What it rests on: an implementation whose
behaviour depends on block numbers beyond their order of appearance, or on anything that it does not show, is explored
in representatives only. `--symmetry none` visits every state.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

from kvspec.pool.scope import PoolScope
from kvspec.pool.state import Geometry, PoolState
from kvspec.prefix import Identities


class PoolSymmetry:
    """`canonical(state)` for one scope."""

    def __init__(self, scope: PoolScope, geometry: Geometry, identities: Identities) -> None:
        self.geometry = geometry
        self.holder_orders = tuple(permutations(range(scope.holders)))
        self.renamings = tuple(identities.renaming(order) for order in permutations(range(scope.prefixes)))

    def canonical(self, state: PoolState) -> tuple[Any, ...]:
        """Equal for two states exactly if a renaming of holders, prefixes and blocks takes one to the other."""
        queues, refs, entries, watchers, tables = state
        nulls = self.geometry.nulls
        best: tuple[Any, ...] | None = None
        seen_tables = set()
        for order in self.holder_orders:
            ordered = tuple([tables[holder] for holder in order])
            if ordered in seen_tables:
                continue
            seen_tables.add(ordered)
            names: dict[int, int] = dict.fromkeys(nulls, 0)
            for row in ordered:
                for block in row:
                    names.setdefault(block, len(names))
            for queue in queues:
                for block in queue:
                    names.setdefault(block, len(names))
            shape = tuple([tuple([names[block] for block in row]) for row in ordered])
            lengths = tuple([tuple([names[block] for block in queue]) for queue in queues])
            blocks = list(names)
            weight = tuple([watchers[block] for block in blocks])
            owners = tuple([self.geometry.owner[block] for block in blocks])
            counted = tuple([refs[block] for block in blocks])
            carried = [entries[block] for block in blocks]
            for renaming in self.renamings:
                renamed = tuple(
                    [tuple(sorted([renaming[i] for i in row], reverse=True)) if row else () for row in carried]
                )
                form = (shape, renamed, lengths, weight, owners, counted)
                if best is None or form < best:
                    best = form
        assert best is not None
        return best
