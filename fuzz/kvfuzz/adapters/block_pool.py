"""Adapter for every pool with the interface of vLLM V1's BlockPool.

The same code drives kvpool and any vLLM version; what differs between them is in a `BlockPoolFamily`. Blocks of all
pools are numbered through as in the specification, hashes are translated to its identities, watchers and published
events to its effects.

Not checked: contents of events other than hash and group, and the metrics hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

from kvfuzz.adapter import Limit
from kvspec import Effect, Identities, Outcome
from kvspec.pool import Geometry, PoolObservation, PoolScope
from kvspec.pool import calls as call_types

HASH_BLOCK_SIZE = 2  # tokens; small, so that a request stays cheap to hash. The pool only ever compares hashes.

_DONE = Outcome("done")
_MISS = Outcome("miss")


class BlockPoolFamily(Protocol):
    """What the adapter needs to know about one implementation or version of it."""

    name: str
    limits: tuple[Limit, ...]
    refusals: tuple[type[Exception], ...]

    def make_pool(self, num_blocks: int, enable_caching: bool, hash_block_size: int, events: bool) -> Any:
        """A pool of `num_blocks` blocks, the null block included."""
        ...

    def make_request(self, token_ids: Sequence[int], hash_block_size: int) -> Any:
        """A request with the hashes of all its hash blocks."""
        ...

    def make_stranger(self) -> Any:
        """A block object that no pool owns."""
        ...

    def group_key(self, block_hash: Any, group: int) -> Any:
        """The key of a hash in a KV-cache group, as blocks carry it."""
        ...

    def event_hash(self, block_hash: Any) -> Any:
        """The hash as events carry it."""
        ...

    def event_kind(self, event: Any) -> str:
        """ "stored", "removed" or "cleared"."""
        ...

    def event_group(self, event: Any) -> int:
        """The KV-cache group that an event speaks of."""
        ...

    def queue(self, pool: Any) -> Iterator[Any]:
        """Free blocks, eviction end first. May be endless on a corrupted pool: the adapter stops reading."""
        ...

    def index_entries(self, pool: Any) -> Iterable[tuple[Any, Iterable[int]]]:
        """(key, ids of the blocks that lookup knows under it) for the whole index."""
        ...

    def secondary_keys(self, pool: Any) -> Mapping[int, Iterable[Any]]:
        """Block id -> keys that the block carries besides its primary one."""
        ...

    def touch(self, pool: Any, blocks: Sequence[Any]) -> None:
        """`pool.touch(blocks)`."""
        ...

    def cache_full_blocks(self, pool: Any, *args: Any) -> None:
        """`pool.cache_full_blocks(*args)`, arguments as in the newest version."""
        ...

    def reset_prefix_cache(self, pool: Any) -> bool:
        """`pool.reset_prefix_cache()`."""
        ...

    def reason(self, error: Exception) -> str:
        """The specification's name for a refusal, or "" where the implementation does not say."""
        ...


class BlockPoolAdapter:
    """`kvfuzz.adapter.Adapter` over one family."""

    level = "pool"

    def __init__(self, family: BlockPoolFamily) -> None:
        self.family = family
        self.name = family.name
        self.limits = family.limits
        self.dialect = dict(getattr(family, "dialect", {}))
        self._scope: PoolScope | None = None
        self._dispatch: dict[type, Callable[[Any], Outcome]] = {
            call_types.GetNewBlocks: self._get_new_blocks,
            call_types.TouchBlocks: self._touch,
            call_types.HitBlocks: self._hit,
            call_types.GetCachedBlock: self._lookup,
            call_types.FreeBlocks: self._free_blocks,
            call_types.UnpinBlocks: self._unpin_blocks,
            call_types.CacheFullBlocks: self._cache_full_blocks,
            call_types.CachePartialBlock: self._cache_partial_block,
            call_types.MoveBlockHashes: self._move_block_hashes,
            call_types.EvictBlocks: self._evict_blocks,
            call_types.ResetPrefixCache: self._reset_prefix_cache,
            call_types.WriteBlock: self._write,
            call_types.EmitCachedBlockEvents: self._announce,
        }

    # Life cycle ------------------------------------------------------------------------------------------------

    def reset(self, scope: PoolScope) -> None:
        """New pools; requests and translation tables are kept while the scope stays the same."""
        if scope != self._scope:
            self._prepare(scope)
        family = self.family
        self.pools = [family.make_pool(size + 1, scope.caching, HASH_BLOCK_SIZE, scope.events) for size in scope.blocks]
        self.blocks = [block for pool in self.pools for block in pool.blocks]
        # The last one is the stranger: call_types.STRANGER is -1.
        self.blocks.append(family.make_stranger())
        self._own = self.blocks[:-1]
        self._fired: list[Effect] = []
        self._carried: tuple[tuple[int, ...], ...] = ((),) * len(self._own)

    def _prepare(self, scope: PoolScope) -> None:
        self._scope = scope
        self._geometry = Geometry.of(scope)
        self._identities = identities = Identities(scope.prefixes, scope.depth, scope.groups, scope.shared)
        self._per_pool = scope.prefixes * scope.depth * scope.groups
        self._nulls = frozenset(self._geometry.nulls)
        self._requests = []
        self._by_key: dict[Any, int] = {}
        self._by_event: dict[tuple[Any, int], int] = {}
        shared = scope.shared * HASH_BLOCK_SIZE
        for prefix in range(scope.prefixes):
            tokens = [
                position if position < shared else 1000 * (prefix + 1) + position
                for position in range(scope.depth * HASH_BLOCK_SIZE)
            ]
            request = self.family.make_request(tokens, HASH_BLOCK_SIZE)
            self._requests.append(request)
            for boundary in range(1, scope.depth + 1):
                block_hash = request.block_hashes[boundary - 1]
                for group in range(scope.groups):
                    identity = identities.pack(prefix, boundary, group)
                    self._by_key[self.family.group_key(block_hash, group)] = identity
                    self._by_event[self.family.event_hash(block_hash), group] = identity

    def apply(self, call: Any) -> Outcome:
        """One call on the real pool. Documented refusals become "refused", other exceptions "raised"."""
        try:
            outcome = self._dispatch[type(call)](call)
        except self.family.refusals as error:
            outcome = Outcome("refused", reason=self.family.reason(error))
        except Exception as error:
            outcome = Outcome("raised", reason=f"{type(error).__name__}: {error}")
        effects = self._effects(call)
        return outcome._replace(effects=effects) if effects else outcome

    # Effects ---------------------------------------------------------------------------------------------------

    def _effects(self, call: Any) -> tuple[Effect, ...]:
        effects = self._fired
        if effects:
            self._fired = []
        if self._scope.events:  # type: ignore[union-attr]
            for number, pool in enumerate(self.pools):
                events = pool.take_events()
                if events:
                    effects = [*effects, *self._translate(number, events, call)]
        return tuple(effects)

    def _translate(self, number: int, events: Iterable[Any], call: Any) -> Iterator[Effect]:
        offset = number * self._per_pool
        for event in events:
            kind = self.family.event_kind(event)
            if kind == "cleared":
                yield "cleared", number
                continue
            if kind == "stored" and type(call) is call_types.EmitCachedBlockEvents:
                kind = "announced"
            group = self.family.event_group(event)
            for block_hash in event.block_hashes:
                yield kind, offset + self._by_event.get((block_hash, group), -1)

    def _on_reuse(self, block: Any) -> None:
        """A watcher: late if the block has a new owner or has lost what the reader still wanted to find."""
        number = self._number(block)
        late = block.ref_cnt != 0 or (bool(self._carried[number]) and block.block_hash is None)
        self._fired.append(("fired_late" if late else "fired", number))

    def _number(self, block: Any) -> int:
        for pool, start in zip(self.pools, self._geometry.nulls, strict=True):
            if 0 <= block.block_id < len(pool.blocks) and pool.blocks[block.block_id] is block:
                return start + int(block.block_id)
        return call_types.STRANGER

    # Calls -----------------------------------------------------------------------------------------------------

    def _get_new_blocks(self, call: call_types.GetNewBlocks) -> Outcome:
        pool = self.pools[call.pool]
        start, own = self._geometry.nulls[call.pool], pool.blocks
        taken = pool.get_new_blocks(call.num_blocks)
        # A block is the object that the pool lists. A copy with the same id keeps a count of its own.
        numbers = [start + block.block_id if own[block.block_id] is block else self._number(block) for block in taken]
        return Outcome("done", tuple(numbers))

    def _objects(self, numbers: Iterable[int]) -> list[Any]:
        return [self.blocks[number] for number in numbers]

    def _touch(self, call: call_types.TouchBlocks) -> Outcome:
        self.family.touch(self.pools[call.pool], self._objects(call.blocks))
        return _DONE

    def _find(self, call: call_types.GetCachedBlock | call_types.HitBlocks) -> list[Any] | None:
        block_hash = self._requests[call.prefix].block_hashes[call.boundary - 1]
        found: list[Any] | None = self.pools[call.pool].get_cached_block(block_hash, list(call.groups))
        return found

    def _lookup(self, call: call_types.GetCachedBlock) -> Outcome:
        found = self._find(call)
        if not found:
            return _MISS
        return Outcome("hit", tuple([self._number(block) for block in found]))

    def _hit(self, call: call_types.HitBlocks) -> Outcome:
        found = self._find(call)
        if not found:
            return _MISS
        self.family.touch(self.pools[call.pool], found)
        return Outcome("hit", tuple([self._number(block) for block in found]))

    def _free_blocks(self, call: call_types.FreeBlocks) -> Outcome:
        self.pools[call.pool].free_blocks(iter(self._objects(call.blocks)))
        return _DONE

    def _unpin_blocks(self, call: call_types.UnpinBlocks) -> Outcome:
        self.pools[call.pool].unpin_blocks(self._objects(call.blocks), self._on_reuse)
        return _DONE

    def _cache_full_blocks(self, call: call_types.CacheFullBlocks) -> Outcome:
        assert self._scope is not None
        pool = self.pools[call.pool]
        # Blocks in front of `at` are of no account to the pool: a request's table may hold null there.
        table = [pool.null_block] * call.at + self._objects(call.blocks)
        mask = None
        if call.skip:
            width = len(call.blocks)
            mask = [True] * (width + 1) if call.skip < 0 else [not call.skip >> bit & 1 for bit in range(width)]
        size = self._scope.spans[call.group] * HASH_BLOCK_SIZE
        self.family.cache_full_blocks(
            pool, self._requests[call.prefix], table, call.at, len(table), size, call.group, mask
        )
        return _DONE

    def _cache_partial_block(self, call: call_types.CachePartialBlock) -> Outcome:
        assert self._scope is not None
        # Asked for by keyword only where it is wanted: earlier versions do not have it.
        more = {"replace_existing_hashes": True} if call.replace else {}
        key = self.pools[call.pool].cache_partial_block(
            self._requests[call.prefix],
            self.blocks[call.block],
            call.boundary * HASH_BLOCK_SIZE,
            call.group,
            self._scope.spans[call.group] * HASH_BLOCK_SIZE,
            **more,
        )
        return _DONE if key is None else Outcome("done", (self._by_key.get(key, -1),))

    def _move_block_hashes(self, call: call_types.MoveBlockHashes) -> Outcome:
        self.pools[call.pool].move_block_hashes(self.blocks[call.src], self.blocks[call.dst])
        return _DONE

    def _evict_blocks(self, call: call_types.EvictBlocks) -> Outcome:
        self.pools[call.pool].evict_blocks(set(call.ids))
        return _DONE

    def _reset_prefix_cache(self, call: call_types.ResetPrefixCache) -> Outcome:
        return Outcome("true" if self.family.reset_prefix_cache(self.pools[call.pool]) else "false")

    def _write(self, call: call_types.WriteBlock) -> Outcome:
        if self.pools[call.pool].is_block_writable(self.blocks[call.block]):
            return _DONE
        return Outcome("refused")

    def _announce(self, call: call_types.EmitCachedBlockEvents) -> Outcome:
        assert self._scope is not None
        size = self._scope.spans[call.group] * HASH_BLOCK_SIZE
        self.pools[call.pool].emit_cached_block_events(self._requests[call.prefix], call.num_blocks, size, call.group)
        return _DONE

    # Observation -----------------------------------------------------------------------------------------------

    def observe(self) -> PoolObservation:
        """Read through the pool's own structures, from both sides where there are two."""
        family, by_key = self.family, self._by_key
        queues, free, usage = [], [], []
        carried: list[tuple[int, ...]] = []
        lookup: dict[int, list[int]] = {}
        for start, pool in zip(self._geometry.nulls, self.pools, strict=True):
            blocks = pool.blocks
            # A queue that does not end shows as one that is too long.
            queue = islice(family.queue(pool), len(blocks) + 1)
            queues.append(tuple([start + block.block_id for block in queue]))
            free.append(pool.get_num_free_blocks())
            usage.append(pool.get_usage())
            keys = [block.block_hash for block in blocks]
            carried += [() if key is None else (by_key.get(key, -1),) for key in keys]
            for number, further in family.secondary_keys(pool).items():
                rest = sorted([by_key.get(key, -1) for key in further], reverse=True)
                carried[start + number] = (*carried[start + number], *rest)
            for key, ids in family.index_entries(pool):
                identity = by_key.get(key, -1)
                for number in ids:
                    lookup.setdefault(start + number, []).append(identity)
        self._carried = tuple(carried)
        refs = tuple([block.ref_cnt for block in self._own])
        return PoolObservation(tuple(queues), refs, self._carried, self._found(lookup), tuple(free), tuple(usage))

    def _found(self, lookup: dict[int, list[int]]) -> tuple[tuple[int, ...], ...]:
        """Per block, the identities under which the index has it. Blocks that no pool owns come last, where the
        specification has nothing."""
        count = len(self._own)
        if not lookup:
            return ((),) * count
        strays = [number for number in lookup if not 0 <= number < count]
        rows: list[tuple[int, ...]] = []
        for number in (*range(count), *strays):
            row = lookup.get(number)
            rows.append(() if row is None else (row[0],) if len(row) == 1 else tuple(sorted(row, reverse=True)))
        return tuple(rows)
