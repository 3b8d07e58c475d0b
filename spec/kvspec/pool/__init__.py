"""The pool level: free queue, reference counts, prefix entries, reuse watchers and published events."""

from kvspec.pool.actions import (
    Allocate,
    Announce,
    CacheFull,
    CachePartial,
    Evict,
    Free,
    Hit,
    Lookup,
    MoveHashes,
    PoolAction,
    Ref,
    Reset,
    Touch,
    Unpin,
    Write,
    held,
    null,
    queued,
    stranger,
)
from kvspec.pool.model import PoolModel
from kvspec.pool.scope import PoolScope, ScopeError
from kvspec.pool.state import Geometry, PoolObservation, PoolState

__all__ = [
    "Allocate",
    "Announce",
    "CacheFull",
    "CachePartial",
    "Evict",
    "Free",
    "Geometry",
    "Hit",
    "Lookup",
    "MoveHashes",
    "PoolAction",
    "PoolModel",
    "PoolObservation",
    "PoolScope",
    "PoolState",
    "Ref",
    "Reset",
    "ScopeError",
    "Touch",
    "Unpin",
    "Write",
    "held",
    "null",
    "queued",
    "stranger",
]
