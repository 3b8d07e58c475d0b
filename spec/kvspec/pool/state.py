"""The state of the pool level.

Blocks of all pools are numbered through: pool k's null block is the first of its range. Reference counts are kept
beside the tables that explain them, so that P10 says something.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kvspec.pool.scope import PoolScope


class PoolState(NamedTuple):
    """queues: free blocks of each pool, eviction end first. refs: reference count of each block.
    entries: identities registered for each block, the one that covers most tokens first. watchers: reuse watchers
    pending on each block. tables: the references of each holder, oldest first."""

    queues: tuple[tuple[int, ...], ...]
    refs: tuple[int, ...]
    entries: tuple[tuple[int, ...], ...]
    watchers: tuple[int, ...]
    tables: tuple[tuple[int, ...], ...]

    @property
    def lookup(self) -> tuple[tuple[int, ...], ...]:
        """Identities that lookup finds for each block; in the model the same as what the block carries."""
        return self.entries

    @property
    def free(self) -> tuple[int, ...]:
        """The number of free blocks that each pool reports."""
        return tuple(map(len, self.queues))

    def usage(self, geometry: Geometry) -> tuple[float, ...]:
        """The usage that each pool reports: 1 - free / (blocks without the null block)."""
        return tuple(
            1.0 - len(queue) / size if size else 0.0 for queue, size in zip(self.queues, geometry.sizes, strict=True)
        )


class PoolObservation(NamedTuple):
    """What an implementation shows after a call, in the model's numbering.

    lookup: the identities under which lookup finds each block, largest first. free and usage: as the pool reports
    them, one number for each pool. A field that an adapter cannot show is None and is not compared.
    """

    queues: tuple[tuple[int, ...], ...] | None
    refs: tuple[int, ...] | None
    entries: tuple[tuple[int, ...], ...] | None
    lookup: tuple[tuple[int, ...], ...] | None
    free: tuple[int, ...] | None
    usage: tuple[float, ...] | None


class ObservedState(PoolState):
    """A state lifted from an observation: lookup, free count and usage are what the implementation claims."""

    _claims: tuple[Any, Any, Any]

    @classmethod
    def of(cls, state: PoolState, shown: PoolObservation) -> ObservedState:
        lifted = cls(
            state.queues if shown.queues is None else shown.queues,
            state.refs if shown.refs is None else shown.refs,
            state.entries if shown.entries is None else shown.entries,
            state.watchers,
            state.tables,
        )
        lifted._claims = (shown.lookup, shown.free, shown.usage)
        return lifted

    @property
    def lookup(self) -> tuple[tuple[int, ...], ...]:
        return self.entries if self._claims[0] is None else self._claims[0]

    @property
    def free(self) -> tuple[int, ...]:
        return super().free if self._claims[1] is None else self._claims[1]

    def usage(self, geometry: Geometry) -> tuple[float, ...]:
        return super().usage(geometry) if self._claims[2] is None else self._claims[2]


class Geometry(NamedTuple):
    """Block numbers of a scope. sizes: allocatable blocks of each pool. nulls: each pool's null block.
    owner: the pool of each block. local: each block's number inside its pool."""

    sizes: tuple[int, ...]
    nulls: tuple[int, ...]
    owner: tuple[int, ...]
    local: tuple[int, ...]

    @classmethod
    def of(cls, scope: PoolScope) -> Geometry:
        owner = tuple(pool for pool, size in enumerate(scope.blocks) for _ in range(size + 1))
        local = tuple(number for size in scope.blocks for number in range(size + 1))
        nulls = tuple(block for block, number in enumerate(local) if number == 0)
        return cls(scope.blocks, nulls, owner, local)

    def blocks_of(self, pool: int) -> range:
        """All blocks of a pool, its null block first."""
        return range(self.nulls[pool], self.nulls[pool] + self.sizes[pool] + 1)


def initial_state(scope: PoolScope, geometry: Geometry) -> PoolState:
    """Every allocatable block is free, in the order of its number; nothing is cached, held or watched."""
    count = len(geometry.owner)
    return PoolState(
        queues=tuple(tuple(geometry.blocks_of(pool))[1:] for pool in range(len(scope.blocks))),
        refs=(0,) * count,
        entries=((),) * count,
        watchers=(0,) * count,
        tables=((),) * scope.holders,
    )
