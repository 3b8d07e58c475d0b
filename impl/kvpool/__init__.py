"""kvpool: a production block pool for paged KV caches."""

from __future__ import annotations

from .block import KVCacheBlock
from .block_pool import BlockPool
from .errors import (
    BoundaryError,
    CachingDisabledError,
    HashInputError,
    IdentityConflictError,
    InvalidArgumentError,
    InvariantViolation,
    KVPoolError,
    NotEnoughBlocksError,
    NotOwnedError,
    NullBlockError,
    ReentrantCallError,
    ReferenceUnderflowError,
    RefusedError,
    UnknownBlockError,
    Violation,
)
from .events import AllBlocksCleared, BlockRemoved, BlockStored, EventTypes
from .prefix_hash import PrefixHasher
from .request import LoraAdapter, MultimodalFeature, PlaceholderRange, Request
from .snapshot import PoolSnapshot

__all__ = [
    "AllBlocksCleared",
    "BlockPool",
    "BlockRemoved",
    "BlockStored",
    "BoundaryError",
    "CachingDisabledError",
    "EventTypes",
    "HashInputError",
    "IdentityConflictError",
    "InvalidArgumentError",
    "InvariantViolation",
    "KVCacheBlock",
    "KVPoolError",
    "LoraAdapter",
    "MultimodalFeature",
    "NotEnoughBlocksError",
    "NotOwnedError",
    "NullBlockError",
    "PlaceholderRange",
    "PoolSnapshot",
    "PrefixHasher",
    "ReentrantCallError",
    "ReferenceUnderflowError",
    "RefusedError",
    "Request",
    "UnknownBlockError",
    "Violation",
]
