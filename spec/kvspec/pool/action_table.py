"""Which actions a run tries, for every driver: all of them in a state, or a random one.

`every` leaves aliases out: a block that several roles name is tried under one. Lists of blocks are enumerated in full
while tables are short (all ordered subsets up to three entries), and by shape beyond that (single entries, neighbours,
the whole table in both directions); the walk's random lists cover the rest. Misuse is tried in one or two
representative forms in each state, and only where the scope asks for it.
"""

from __future__ import annotations

from kvspec.model import ActionKind
from kvspec.pool import actions as act
from kvspec.pool.identity_actions import IdentityActions
from kvspec.pool.reference_actions import ReferenceActions
from kvspec.pool.scope import PoolScope


def pool_actions(scope: PoolScope) -> tuple[ActionKind, ...]:
    """One row for each action kind that can take part at this scope."""
    fills_a_block = any(span <= scope.depth for span in scope.spans)
    references, identities = ReferenceActions(scope), IdentityActions(scope)
    table = [
        ActionKind("allocate", act.Allocate, references.every_allocate, references.some_allocate, 3.0),
        ActionKind("touch", act.Touch, references.every_touch, references.some_touch, 2.0),
        ActionKind("free", act.Free, references.every_free, references.some_free, 4.0),
        ActionKind("evict", act.Evict, identities.every_evict, identities.some_evict, 0.7),
        ActionKind("reset", act.Reset, identities.every_reset, identities.some_reset, 0.5),
        ActionKind("write", act.Write, identities.every_write, identities.some_write, 2.0),
        ActionKind("lookup", act.Lookup, references.every_lookup, references.some_lookup, 1.0, scope.caching),
        ActionKind(
            "cache_full",
            act.CacheFull,
            identities.every_cache_full,
            identities.some_cache_full,
            3.0,
            scope.caching and fills_a_block,
        ),
    ]
    if scope.caching:
        table.append(ActionKind("hit", act.Hit, references.every_hit, references.some_hit, 2.0))
        table.append(ActionKind("move_hashes", act.MoveHashes, identities.every_move, identities.some_move, 1.0))
    if scope.caching and scope.events and fills_a_block:
        table.append(ActionKind("announce", act.Announce, identities.every_announce, identities.some_announce, 0.4))
    if scope.has_partial:
        table.append(
            ActionKind(
                "cache_partial",
                act.CachePartial,
                identities.every_cache_partial,
                identities.some_cache_partial,
                2.0,
                scope.caching,
            )
        )
    if scope.watchers:
        table.append(ActionKind("unpin", act.Unpin, references.every_unpin, references.some_unpin, 2.0))
    return tuple(table)
