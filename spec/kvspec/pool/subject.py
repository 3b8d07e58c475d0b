"""What both groups of properties know of their subject: the scope, its geometry and its identities."""

from __future__ import annotations

from collections.abc import Iterable

from kvspec.pool.scope import PoolScope
from kvspec.pool.state import Geometry
from kvspec.prefix import Identities


class PoolSubject:
    """The pool of one scope, as far as properties need it."""

    def __init__(self, scope: PoolScope, geometry: Geometry, identities: Identities) -> None:
        self.scope = scope
        self.geometry = geometry
        self.identities = identities
        self.nulls = frozenset(geometry.nulls)
        self.per_pool = scope.prefixes * scope.depth * scope.groups

    def names(self, identities: Iterable[int]) -> str:
        """Identities for people."""
        return "[" + ", ".join(self.identities.name(identity) for identity in identities) + "]"


def numbers(blocks: Iterable[int]) -> str:
    """Block numbers for people."""
    return ", ".join(map(str, sorted(blocks)))
