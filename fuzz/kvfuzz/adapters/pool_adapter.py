"""The comfortable way to write an adapter for a pool of your own.

Subclass `PoolAdapter`, build your pool in `build`, and write one short method for each operation that it has, in its
own block numbers (0 is the null block, 1 to N are allocatable). Roles, holders, several drivers and outcomes are
taken care of here. An operation that is left out is declared as a limit and never asked for. See docs/adapter.md for
a whole example.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from kvfuzz.adapter import Limit, lacks
from kvfuzz.errors import TargetError
from kvspec import Effect, Identities, Outcome
from kvspec.pool import PoolObservation, PoolScope, calls

Identity = tuple[int, int, int]
"""(prefix, boundary, group): the first `boundary` hash blocks of a prefix, in a KV-cache group. Any hashable key of
your pool may stand for it; the tuple itself is the simplest."""

# method -> (call, Sometimes properties and actions that are out of reach without it)
_OPERATIONS: dict[str, tuple[type, tuple[str, ...]]] = {
    "get_new_blocks": (calls.GetNewBlocks, ()),
    "touch": (calls.TouchBlocks, ("S7", "touch")),
    "free_blocks": (calls.FreeBlocks, ()),
    "unpin_blocks": (calls.UnpinBlocks, ("S13", "S14", "S15", "S16", "S17", "unpin")),
    "cache_full_blocks": (calls.CacheFullBlocks, ("cache_full",)),
    "cache_partial_block": (calls.CachePartialBlock, ("S18", "S19", "cache_partial")),
    "move_block_hashes": (calls.MoveBlockHashes, ("S20", "move_hashes")),
    "evict_blocks": (calls.EvictBlocks, ("S22", "S23", "evict")),
    "reset_prefix_cache": (calls.ResetPrefixCache, ("S15", "S24", "S25", "reset")),
    "is_block_writable": (calls.WriteBlock, ("S26", "S27", "S28", "write")),
    "get_cached_block": (calls.GetCachedBlock, ("lookup",)),
}
_SHARING = ("S1", "S4", "S5", "S27")


class PoolAdapter:
    """Base class. `name` is shown in reports; `refusals` are the exceptions with which your pool turns a call down.

    `build(scope)` makes the pool: `scope.blocks[0]` allocatable blocks and the null block. One pool only. Of the
    observation, write what your pool can show; a method that returns None is not compared.
    """

    level = "pool"
    name: ClassVar[str] = "my pool"
    refusals: ClassVar[tuple[type[Exception], ...]] = (ValueError,)
    extra_limits: ClassVar[tuple[Limit, ...]] = ()

    get_new_blocks: Callable[[int], Sequence[int]] | None = None
    touch: Callable[[list[int]], None] | None = None
    free_blocks: Callable[[list[int]], None] | None = None
    unpin_blocks: Callable[[list[int], Callable[[int], None]], None] | None = None
    cache_full_blocks: Callable[[dict[int, Identity]], None] | None = None
    cache_partial_block: Callable[[int, Identity, bool], None] | None = None
    move_block_hashes: Callable[[int, int], None] | None = None
    evict_blocks: Callable[[list[int]], None] | None = None
    reset_prefix_cache: Callable[[], bool] | None = None
    is_block_writable: Callable[[int], bool] | None = None
    get_cached_block: Callable[[Identity], int | None] | None = None

    def __init__(self) -> None:
        absent = [method for method in _OPERATIONS if getattr(self, method) is None]
        limits = [
            lacks((_OPERATIONS[method][0],), method, f"{self.name} has no {method}.", _OPERATIONS[method][1])
            for method in absent
        ]
        if "get_cached_block" in absent or "touch" in absent:
            limits.append(
                lacks((calls.HitBlocks,), "hit", f"{self.name} cannot look up and touch.", (*_SHARING, "hit"))
            )
        limits.append(
            lacks((calls.EmitCachedBlockEvents,), "events", f"{self.name} publishes no events.", ("announce",))
        )
        self.limits = (*limits, *self.extra_limits)
        self._scope: PoolScope | None = None
        self._fired: list[Effect] = []
        self._by_type: dict[type, Callable[[Any], Outcome]] = {
            calls.GetNewBlocks: lambda call: Outcome("done", tuple(self._must("get_new_blocks")(call.num_blocks))),
            calls.TouchBlocks: lambda call: self._done("touch", list(call.blocks)),
            calls.FreeBlocks: lambda call: self._done("free_blocks", list(call.blocks)),
            calls.UnpinBlocks: lambda call: self._done("unpin_blocks", list(call.blocks), self._on_reuse),
            calls.CacheFullBlocks: self._cache_full,
            calls.CachePartialBlock: self._cache_partial,
            calls.MoveBlockHashes: lambda call: self._done("move_block_hashes", call.src, call.dst),
            calls.EvictBlocks: lambda call: self._done("evict_blocks", list(call.ids)),
            calls.ResetPrefixCache: lambda _: Outcome("true" if self._must("reset_prefix_cache")() else "false"),
            calls.WriteBlock: lambda call: Outcome(
                "done" if self._must("is_block_writable")(call.block) else "refused"
            ),
            calls.GetCachedBlock: lambda call: self._find(call, keep=False),
            calls.HitBlocks: lambda call: self._find(call, keep=True),
        }

    # To be written by you ----------------------------------------------------------------------------------------

    def build(self, scope: PoolScope) -> None:
        """Make a fresh pool."""
        raise NotImplementedError

    def free_queue(self) -> Sequence[int] | None:
        """Free block numbers, next to be taken first."""
        return None

    def ref_counts(self) -> Sequence[int] | None:
        """Reference count of each block, the null block's (as 0) first."""
        return None

    def identities(self) -> Sequence[Sequence[Identity]] | None:
        """What each block is registered as, the null block's (nothing) first."""
        return None

    # Adapter ---------------------------------------------------------------------------------------------------

    def reset(self, scope: PoolScope) -> None:
        """Raises TargetError where the scope needs what a single pool without events cannot do."""
        if len(scope.blocks) > 1:
            raise TargetError(f"{self.name} is one pool; scope {scope} has {len(scope.blocks)}")
        self._scope = scope
        self._names = Identities(scope.prefixes, scope.depth, scope.groups, scope.shared)
        self._fired = []
        self.build(scope)

    def apply(self, call: Any) -> Outcome:
        try:
            outcome = self._by_type[type(call)](call)
        except self.refusals:
            outcome = Outcome("refused")
        except Exception as error:
            outcome = Outcome("raised", reason=f"{type(error).__name__}: {error}")
        fired, self._fired = self._fired, []
        return outcome._replace(effects=tuple(fired)) if fired else outcome

    def observe(self) -> PoolObservation:
        queue, refs, identities = self.free_queue(), self.ref_counts(), self.identities()
        entries = None
        if identities is not None:
            entries = tuple(tuple(sorted((self._names.pack(*i) for i in row), reverse=True)) for row in identities)
        return PoolObservation(
            None if queue is None else (tuple(queue),), None if refs is None else tuple(refs), entries, None, None, None
        )

    # Calls -----------------------------------------------------------------------------------------------------

    def _must(self, method: str) -> Callable[..., Any]:
        found: Callable[..., Any] | None = getattr(self, method)
        assert found is not None, f"{method} is declared as a limit, so it is not called"
        return found

    def _done(self, method: str, *args: Any) -> Outcome:
        self._must(method)(*args)
        return Outcome("done")

    def _on_reuse(self, block: int) -> None:
        self._fired.append(("fired", block))

    def _identity(self, prefix: int, boundary: int, group: int) -> Identity:
        """As the specification names it: a boundary that all prefixes share belongs to prefix 0."""
        assert self._scope is not None
        return (0 if boundary <= self._scope.shared else prefix, boundary, group)

    def _cache_full(self, call: calls.CacheFullBlocks) -> Outcome:
        assert self._scope is not None
        span = self._scope.spans[call.group]
        registered = {
            block: self._identity(call.prefix, (call.at + i + 1) * span, call.group)
            for i, block in enumerate(call.blocks)
            if block != 0 and not (call.skip > 0 and call.skip >> i & 1)
        }
        return self._done("cache_full_blocks", registered)

    def _cache_partial(self, call: calls.CachePartialBlock) -> Outcome:
        identity = self._identity(call.prefix, call.boundary, call.group)
        self._must("cache_partial_block")(call.block, identity, call.replace)
        return Outcome("done", (self._names.pack(*identity),) if call.block else ())

    def _find(self, call: calls.GetCachedBlock | calls.HitBlocks, keep: bool) -> Outcome:
        found = []
        for group in call.groups:
            block = self._must("get_cached_block")(self._identity(call.prefix, call.boundary, group))
            if block is None:
                return Outcome("miss")
            found.append(block)
        if keep:
            self._must("touch")(found)
        return Outcome("hit", tuple(found))
