"""kvpool: a production block pool for paged KV caches."""

from __future__ import annotations

from .block import KVCacheBlock
from .block_key import BlockHash, BlockKey, get_block_hash, get_group_id, make_block_key
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
from .metrics import MetricsCollector
from .prefix_hash import PrefixHasher
from .request import LoraAdapter, MultimodalFeature, PlaceholderRange, Request
from .snapshot import PoolSnapshot
from .watchers import ReuseCallback

__all__ = [
    "AllBlocksCleared",
    "BlockHash",
    "BlockKey",
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
    "MetricsCollector",
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
    "ReuseCallback",
    "UnknownBlockError",
    "Violation",
    "get_block_hash",
    "get_group_id",
    "make_block_key",
]
