"""P1 to P12 as one list: what must hold on every step of a block pool."""

from __future__ import annotations

from kvspec.pool.scope import PoolScope
from kvspec.pool.state import Geometry
from kvspec.pool.state_properties import StateProperties
from kvspec.pool.step_properties import StepProperties
from kvspec.prefix import Identities
from kvspec.properties import Always


def pool_properties(scope: PoolScope, geometry: Geometry, identities: Identities) -> tuple[Always, ...]:
    """The Always properties of a scope, in the order of their ids."""
    subject = scope, geometry, identities
    listed = (*StateProperties(*subject).always(), *StepProperties(*subject).always())
    return tuple(sorted(listed, key=lambda entry: int(entry.id[1:])))
