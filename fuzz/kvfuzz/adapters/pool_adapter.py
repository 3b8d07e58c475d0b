"""The comfortable way to write an adapter for a pool of your own.

Subclass `PoolAdapter`, make your pool in `build`, and override one short method for each operation that it has, with
your own block numbers and your own keys. Roles, holders, outcomes, watchers and several groups are taken care of here.
An operation that is not overridden is declared as a limit and never asked for. docs/adapter.md has a whole example.

Not checked through this interface: releases across several pools, masks of a wrong length, repeated announcements
(`emit_cached_block_events`), and whatever the methods of the last section do not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from kvfuzz.adapter import Limit, in_dialect, lacks
from kvfuzz.errors import TargetError
from kvspec import Effect, Identities, Outcome, Transition
from kvspec.pool import Geometry, PoolObservation, PoolScope, calls
from kvspec.pool import transitions as reasons
from kvspec.pool.state import initial_state

Identity = tuple[int, int, int]
"""(prefix, boundary, group): the first `boundary` hash blocks of a prefix, in a KV-cache group. The tuple can serve as
your pool's key as it is; two of them are equal exactly when the same KV is meant."""

# method -> (call, Sometimes properties and actions that are out of reach without it)
_OPERATIONS: dict[str, tuple[type, tuple[str, ...]]] = {
    "get_new_blocks": (calls.GetNewBlocks, ()),
    "free_blocks": (calls.FreeBlocks, ()),
    "touch": (calls.TouchBlocks, ("S1", "S7", "S10", "S27", "touch")),
    "get_cached_block": (calls.GetCachedBlock, ("lookup",)),
    "cache_full_blocks": (calls.CacheFullBlocks, ("S18", "S21", "cache_full")),
    "cache_partial_block": (calls.CachePartialBlock, ("S18", "S19", "cache_partial")),
    "move_block_hashes": (calls.MoveBlockHashes, ("S20", "move_hashes")),
    "evict_blocks": (calls.EvictBlocks, ("S22", "S23", "evict")),
    "reset_prefix_cache": (calls.ResetPrefixCache, ("S15", "S24", "S25", "reset")),
    "is_block_writable": (calls.WriteBlock, ("S26", "S27", "S28", "write")),
    "unpin_blocks": (calls.UnpinBlocks, ("S13", "S14", "S15", "S16", "S17", "unpin")),
}
_REQUIRED = ("build", "get_new_blocks", "free_blocks")
_UNTOLD = (reasons.MASK_LENGTH, reasons.BAD_BOUNDARY, reasons.REPEATED_BLOCK)


def _named_blocks(call: Any) -> tuple[int, ...]:
    """The block numbers that a call passes to the pool."""
    if isinstance(call, calls.MoveBlockHashes):
        return call.src, call.dst
    if isinstance(call, calls.CachePartialBlock | calls.WriteBlock):
        return (call.block,)
    return call.ids if isinstance(call, calls.EvictBlocks) else getattr(call, "blocks", ())


class PoolAdapter:
    """Base class, an `Adapter` of the pool level.

    name: shown in reports. refusals: the exceptions with which your pool turns a call down; any other exception is a
    failure. Prefer a class of your own: `list.remove` raises ValueError too. has_null_block: whether block 0 is a
    placeholder that is never allocated and 1 to N are allocatable; False: 0 to N - 1 are. lifo: whether a block
    without a key goes to the head of the free queue when it is released; False: to the tail, like any other.
    extra_limits: what else your pool does not do.

    A block that your pool does not own is passed as -1. Two adapters must not share anything.
    """

    level = "pool"
    name: ClassVar[str] = "my pool"
    refusals: ClassVar[tuple[type[Exception], ...]] = (ValueError,)
    has_null_block: ClassVar[bool] = True
    lifo: ClassVar[bool] = True
    extra_limits: ClassVar[tuple[Limit, ...]] = ()

    def __init__(self) -> None:
        """Raises TargetError for a class that cannot be driven at all."""
        missing = [method for method in _REQUIRED if not self._has(method)]
        if missing:
            raise TargetError(
                f"{type(self).__name__} has no {', '.join(missing)}; every PoolAdapter must override "
                f"{', '.join(_REQUIRED)} (docs/adapter.md)"
            )
        absent = [method for method in _OPERATIONS if not self._has(method)]
        self.limits: tuple[Limit, ...] = (*self._limits(absent), *self.extra_limits)
        self.dialect: dict[str, Any] = {"lifo": self.lifo}
        if not self._has("take_events"):
            self.dialect["events"] = False
        if "cache_full_blocks" in absent and "cache_partial_block" in absent:
            self.dialect["caching"] = False
        self._scope: PoolScope | None = None
        self._names = Identities(1, 1, 1)
        self._fired: list[Effect] = []
        self._by_type: dict[type, Callable[[Any], Outcome]] = {
            calls.GetNewBlocks: self._get_new_blocks,
            calls.TouchBlocks: lambda call: _done(self.touch, self._own(call.blocks)),
            calls.FreeBlocks: lambda call: _done(self.free_blocks, self._own(call.blocks)),
            calls.UnpinBlocks: lambda call: _done(self.unpin_blocks, self._own(call.blocks), self._on_reuse),
            calls.CacheFullBlocks: self._cache_full,
            calls.CachePartialBlock: self._cache_partial,
            calls.MoveBlockHashes: lambda call: _done(self.move_block_hashes, *self._own((call.src, call.dst))),
            calls.EvictBlocks: lambda call: _done(self.evict_blocks, self._own(call.ids)),
            calls.ResetPrefixCache: lambda _: Outcome("true" if self.reset_prefix_cache() else "false"),
            calls.WriteBlock: self._write,
            calls.GetCachedBlock: lambda call: self._find(call, keep=False),
            calls.HitBlocks: lambda call: self._find(call, keep=True),
        }

    # Operations: override what your pool has ---------------------------------------------------------------------

    def build(self, scope: PoolScope) -> None:
        """Make a fresh pool of `scope.blocks[0]` allocatable blocks, numbered in the order in which they are taken."""
        raise NotImplementedError

    def get_new_blocks(self, count: int) -> Sequence[int]:
        """The blocks taken, in order. Refuse a negative count and one that does not fit."""
        raise NotImplementedError

    def free_blocks(self, blocks: list[int]) -> None:
        """Give up one reference per entry, in order. Refuse the whole list when a count would fall below zero."""
        raise NotImplementedError

    def touch(self, blocks: list[int]) -> None:
        """One more reference per entry; a free block leaves the queue."""
        raise NotImplementedError

    def get_cached_block(self, identity: Identity) -> int | None:
        """Any block that carries the identity. Asked once for each group of a lookup."""
        raise NotImplementedError

    def cache_full_blocks(self, identities: dict[int, Identity]) -> None:
        """Give each block its identity, all or none. Null and masked blocks are left out before."""
        raise NotImplementedError

    def cache_partial_block(self, block: int, identity: Identity, replace: bool) -> None:
        """Give a block the identity of a boundary inside it, in place of its others if `replace`."""
        raise NotImplementedError

    def move_block_hashes(self, src: int, dst: int) -> None:
        """Move all identities of one block to another that has none."""
        raise NotImplementedError

    def evict_blocks(self, blocks: list[int]) -> None:
        """Drop the identities of these blocks; who holds them and where they are queued stays."""
        raise NotImplementedError

    def reset_prefix_cache(self) -> bool:
        """Drop every identity if nothing is held, and say whether it was done."""
        raise NotImplementedError

    def is_block_writable(self, block: int) -> bool:
        """Whether the one holder of a block may write to it in place."""
        raise NotImplementedError

    def unpin_blocks(self, blocks: list[int], on_reuse: Callable[[int], None]) -> None:
        """As `free_blocks`, to the tail; `on_reuse(block)` is called once per entry before the block is reused."""
        raise NotImplementedError

    # Observation: override what your pool can show; what stays None is not compared --------------------------------

    def free_queue(self) -> Sequence[int] | None:
        """Free block numbers, next to be taken first."""
        return None

    def ref_counts(self) -> Sequence[int] | None:
        """Reference counts, by block number from 0; the null block's is 0."""
        return None

    def identities(self) -> Sequence[Iterable[Identity]] | None:
        """What each block is registered as, by block number from 0."""
        return None

    def index(self) -> Iterable[tuple[Identity, int]] | None:
        """Every (identity, block) that lookup could answer with: the other side of `identities`."""
        return None

    def num_free_blocks(self) -> int | None:
        """The free count that your pool reports."""
        return None

    def usage(self) -> float | None:
        """The usage that your pool reports, 0 to 1."""
        return None

    def take_events(self) -> Iterable[tuple[str, Identity | None]]:
        """What was published since the last call, in order: ("stored", identity), ("removed", identity) or
        ("cleared", None). Without this method a scope has no events."""
        raise NotImplementedError

    def reason(self, error: Exception) -> str:
        """The specification's name for a refusal (kvspec.pool.transitions.REFUSALS); "" matches every reason."""
        return ""

    # Adapter -----------------------------------------------------------------------------------------------------

    def reset(self, scope: PoolScope) -> None:
        """Raises TargetError for a scope that this pool cannot do, and for observations of a wrong length."""
        if scope != self._scope:
            self._prepare(scope)
        self._fired = []
        self._carried: tuple[tuple[int, ...], ...] | None = None
        self.build(scope)
        if self._has("take_events"):
            self.take_events()

    def apply(self, call: Any) -> Outcome:
        """One call on your pool. `refusals` become "refused", other exceptions "raised"."""
        try:
            outcome = self._by_type[type(call)](call)
        except self.refusals as error:
            outcome = Outcome("refused", reason=self.reason(error))
        except Exception as error:
            outcome = Outcome("raised", reason=f"{type(error).__name__}: {error}")
        effects, self._fired = self._fired, []
        if self.dialect.get("events", True):
            effects += [(kind, 0 if of is None else self._names.pack(*of)) for kind, of in self.take_events()]
        return outcome._replace(effects=tuple(effects)) if effects else outcome

    def observe(self) -> PoolObservation:
        """Blocks of further pools of the scope are shown as they were at the start: nothing is ever asked of them."""
        queue, refs, found = self.free_queue(), self.ref_counts(), self.index()
        free, usage = self.num_free_blocks(), self.usage()
        others = self._others
        self._carried = self._entries()
        return PoolObservation(
            None if queue is None else (self._theirs(queue), *others.queues[1:]),
            None if refs is None else (*self._null(0), *refs, *others.refs[self._size + 1 :]),
            self._carried,
            None if found is None else self._lookup(found),
            None if free is None else (free, *others.free[1:]),
            None if usage is None else (usage, *others.usage(self._geometry)[1:]),
        )

    def _has(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(PoolAdapter, method)

    def _limits(self, absent: Sequence[str]) -> list[Limit]:
        limits = [
            lacks((_OPERATIONS[method][0],), method, f"{self.name} has no {method}.", _OPERATIONS[method][1])
            for method in absent
        ]
        if "get_cached_block" in absent or "touch" in absent:
            limits.append(
                lacks((calls.HitBlocks,), "hit", f"{self.name} cannot look up and touch.", ("S4", "S5", "S29", "hit"))
            )
        if "cache_partial_block" in absent:
            sentence = f"{self.name} has no partial entries, so no block grows from one."
            limits.append(Limit("lacks: promotion", sentence, self._is_promotion))
        if not self.has_null_block:
            limits.append(Limit("lacks: null block", f"{self.name} has no null block.", self._names_null))
        said = (
            f"Keys say all that {self.name} is told: no request, no mask, no list with repeats, no end of the prefix."
        )
        limits.append(Limit("lacks: requests and masks", said, self._is_untold))
        limits.append(lacks((calls.EmitCachedBlockEvents,), "announce", "Nothing is announced again.", ("announce",)))
        one = f"{self.name} is one pool; nothing is asked of a second one."
        limits.append(Limit("lacks: several pools", one, self._is_elsewhere, ("S9",)))
        return limits

    def _is_promotion(self, state: Any, call: Any, allowed: tuple[Transition, ...]) -> bool:
        return (
            isinstance(call, calls.CacheFullBlocks)
            and allowed[0].outcome.label == "done"
            and any(state.entries[block] for block in call.blocks)
        )

    def _is_untold(self, state: Any, call: Any, allowed: tuple[Transition, ...]) -> bool:
        """A shared boundary has one key, so a request of prefix 1 that goes back to it looks like one of prefix 0."""
        shared, goes_back = self._names.shared, False
        if isinstance(call, calls.CachePartialBlock) and call.block >= 0 and call.boundary <= shared:
            goes_back = any(self._names.unpack(carried).boundary > shared for carried in state.entries[call.block])
        return goes_back or any(transition.outcome.reason in _UNTOLD for transition in allowed)

    def _names_null(self, _state: Any, call: Any, _allowed: tuple[Transition, ...]) -> bool:
        return 0 in _named_blocks(call) and not isinstance(call, calls.CacheFullBlocks)

    def _is_elsewhere(self, _state: Any, call: Any, _allowed: tuple[Transition, ...]) -> bool:
        if self._scope is None or len(self._scope.blocks) == 1:
            return False
        return call.pool != 0 or any(block > self._size for block in _named_blocks(call))

    def _prepare(self, scope: PoolScope) -> None:
        if in_dialect(scope, self) != scope:
            fixed = ", ".join(f"{field}={value}" for field, value in self.dialect.items())
            raise TargetError(
                f"{self.name} does not do scope {scope}: it has {fixed}. Write that into the scope, or pass it "
                "through kvfuzz.adapter.in_dialect(scope, adapter)"
            )
        self._scope, self._size = scope, scope.blocks[0]
        self._names = Identities(scope.prefixes, scope.depth, scope.groups, scope.shared)
        self._geometry = Geometry.of(scope)
        self._others = initial_state(scope, self._geometry)
        self.build(scope)
        expected = self._size + self.has_null_block
        for method, shown in (("ref_counts", self.ref_counts()), ("identities", self.identities())):
            if shown is not None and len(shown) != expected:
                raise TargetError(
                    f"{self.name}: {method}() shows {len(shown)} blocks; expected {expected}, numbers 0 to "
                    f"{expected - 1}. Correct build, or has_null_block (now {self.has_null_block})"
                )

    # Numbers: here 0 is null and 1 to N are allocatable ------------------------------------------------------------

    def _null(self, value: Any) -> tuple[Any, ...]:
        """What a pool without a null block does not show of it."""
        return () if self.has_null_block else (value,)

    def _own(self, blocks: Iterable[int]) -> list[int]:
        shift = 0 if self.has_null_block else 1
        return [block - shift if block > 0 else block for block in blocks]

    def _theirs(self, blocks: Iterable[int]) -> tuple[int, ...]:
        shift = 0 if self.has_null_block else 1
        return tuple([block + shift if block >= 0 else block for block in blocks])

    def _identity(self, prefix: int, boundary: int, group: int) -> Identity:
        """As the specification names it: a boundary that all prefixes share belongs to prefix 0."""
        return self._names.unpack(self._names.pack(prefix, boundary, group))

    def _row(self, identities: Iterable[Identity]) -> tuple[int, ...]:
        return tuple(sorted([self._names.pack(*identity) for identity in identities], reverse=True))

    def _entries(self) -> tuple[tuple[int, ...], ...] | None:
        shown = self.identities()
        if shown is None:
            return None
        return (*self._null(()), *map(self._row, shown), *self._others.entries[self._size + 1 :])

    def _lookup(self, found: Iterable[tuple[Identity, int]]) -> tuple[tuple[int, ...], ...]:
        """Blocks that no pool owns come last, where the specification has nothing."""
        rows: dict[int, list[Identity]] = {}
        for identity, block in found:
            rows.setdefault(self._theirs((block,))[0], []).append(identity)
        total = len(self._geometry.owner)
        strays = [block for block in rows if not 0 <= block < total]
        return tuple([self._row(rows.get(block, ())) for block in (*range(total), *strays)])

    # Calls -------------------------------------------------------------------------------------------------------

    def _get_new_blocks(self, call: calls.GetNewBlocks) -> Outcome:
        return Outcome("done", self._theirs(self.get_new_blocks(call.num_blocks)))

    def _cache_full(self, call: calls.CacheFullBlocks) -> Outcome:
        assert self._scope is not None
        span = self._scope.spans[call.group]
        registered = {
            own: self._identity(call.prefix, (call.at + i + 1) * span, call.group)
            for i, (block, own) in enumerate(zip(call.blocks, self._own(call.blocks), strict=True))
            if block != 0 and not (call.skip > 0 and call.skip >> i & 1)
        }
        return _done(self.cache_full_blocks, registered)

    def _cache_partial(self, call: calls.CachePartialBlock) -> Outcome:
        identity = self._identity(call.prefix, call.boundary, call.group)
        self.cache_partial_block(self._own((call.block,))[0], identity, call.replace)
        return Outcome("done", (self._names.pack(*identity),) if call.block else ())

    def _write(self, call: calls.WriteBlock) -> Outcome:
        return Outcome("done" if self.is_block_writable(self._own((call.block,))[0]) else "refused")

    def _find(self, call: calls.GetCachedBlock | calls.HitBlocks, keep: bool) -> Outcome:
        found = []
        for group in call.groups:
            block = self.get_cached_block(self._identity(call.prefix, call.boundary, group))
            if block is None:
                return Outcome("miss")
            found.append(block)
        if keep:
            self.touch(found)
        return Outcome("hit", self._theirs(found))

    def _on_reuse(self, block: int) -> None:
        """A watcher: late if what the pool shows of the block is no longer what the watcher was promised."""
        number = self._theirs((block,))[0]
        refs, now = self.ref_counts(), self._entries()
        late = refs is not None and refs[block] != 0
        if now is not None and self._carried is not None:
            late = late or now[number] != self._carried[number]
        self._fired.append(("fired_late" if late else "fired", number))


def _done(operation: Callable[..., None], *args: Any) -> Outcome:
    operation(*args)
    return Outcome("done")
