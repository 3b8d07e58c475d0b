"""What a run can ask of a pool, in terms of roles.

A `Ref` names a block by the part it plays: `held(0, 1)` is the second entry of holder 0's table, `queued(2)` the third
block from the eviction end of a free queue, `null()` the null block, `stranger()` a block object that no pool of
the run owns. Actions are plain values with small integers, so that traces stay meaningful when they are shortened.
"""

from __future__ import annotations

from typing import NamedTuple

_NULL = -1
_STRANGER = -2
_QUEUE = -10


class Ref(NamedTuple):
    """owner >= 0: entry `position` of that holder's table. The negative owners are made by the functions below."""

    owner: int
    position: int

    def __repr__(self) -> str:
        if self.owner >= 0:
            return f"held({self.owner}, {self.position})"
        if self.owner == _NULL:
            return f"null({self.position})"
        if self.owner == _STRANGER:
            return "stranger()"
        return (
            f"queued({self.position}, pool={_QUEUE - self.owner})"
            if self.owner != _QUEUE
            else f"queued({self.position})"
        )

    @property
    def is_held(self) -> bool:
        return self.owner >= 0

    @property
    def is_stranger(self) -> bool:
        return self.owner == _STRANGER

    @property
    def null_pool(self) -> int | None:
        """The pool whose null block is meant, or None."""
        return self.position if self.owner == _NULL else None

    @property
    def queue_pool(self) -> int | None:
        """The pool whose free queue is meant, or None."""
        return _QUEUE - self.owner if self.owner <= _QUEUE else None


def held(holder: int, index: int) -> Ref:
    """Entry `index` of a holder's table."""
    return Ref(holder, index)


def queued(position: int, pool: int = 0) -> Ref:
    """The block at a position of a pool's free queue, 0 being next to be taken."""
    return Ref(_QUEUE - pool, position)


def null(pool: int = 0) -> Ref:
    """A pool's null block."""
    return Ref(_NULL, pool)


def stranger() -> Ref:
    """A block object that belongs to no pool of the run."""
    return Ref(_STRANGER, 0)


class Allocate(NamedTuple):
    """`get_new_blocks(num_blocks)`; the holder's table grows by the blocks. A negative number is misuse."""

    holder: int
    num_blocks: int
    pool: int = 0


class Touch(NamedTuple):
    """`touch(blocks)`; the holder's table grows by the blocks that are not null."""

    holder: int
    refs: tuple[Ref, ...]
    pool: int = 0


class Hit(NamedTuple):
    """`get_cached_block` at one boundary of a prefix, then `touch` of what was found, for the holder."""

    holder: int
    prefix: int
    boundary: int
    groups: tuple[int, ...] = (0,)
    pool: int = 0


class Lookup(NamedTuple):
    """`get_cached_block` alone."""

    prefix: int
    boundary: int
    groups: tuple[int, ...] = (0,)
    pool: int = 0


class Free(NamedTuple):
    """`free_blocks(ordered)` called on a pool; entries of the holder's table are given up, in the order listed."""

    holder: int
    refs: tuple[Ref, ...]
    pool: int = 0


class Unpin(NamedTuple):
    """`unpin_blocks(blocks, on_reuse)`; one watcher is registered for each reference given up."""

    holder: int
    refs: tuple[Ref, ...]
    pool: int = 0


class CacheFull(NamedTuple):
    """`cache_full_blocks`: the blocks become logical blocks at, at+1, ... of the prefix, in one group.

    Bit i of `skip` masks block i out; skip = -1 passes a mask of the wrong length.
    """

    refs: tuple[Ref, ...]
    prefix: int
    at: int = 0
    group: int = 0
    skip: int = 0
    pool: int = 0


class CachePartial(NamedTuple):
    """`cache_partial_block` at a boundary in hash blocks; boundary 0 and one past the prefix are misuse."""

    ref: Ref
    prefix: int
    boundary: int
    group: int = 0
    replace: bool = False
    pool: int = 0


class MoveHashes(NamedTuple):
    """`move_block_hashes(src, dst)`."""

    src: Ref
    dst: Ref
    pool: int = 0


class Evict(NamedTuple):
    """`evict_blocks(ids)`. `beyond` adds an id that the pool does not have: 1 past the end, -1 negative."""

    refs: tuple[Ref, ...]
    beyond: int = 0
    pool: int = 0


class Reset(NamedTuple):
    """`reset_prefix_cache()`."""

    pool: int = 0


class Write(NamedTuple):
    """A holder writes in place, which `is_block_writable` must have allowed."""

    ref: Ref
    pool: int = 0


class Announce(NamedTuple):
    """`emit_cached_block_events` for the first `num_blocks` blocks of a prefix in a group, all of them resident."""

    prefix: int
    num_blocks: int
    group: int = 0
    pool: int = 0


PoolAction = (
    Allocate
    | Touch
    | Hit
    | Lookup
    | Free
    | Unpin
    | CacheFull
    | CachePartial
    | MoveHashes
    | Evict
    | Reset
    | Write
    | Announce
)
