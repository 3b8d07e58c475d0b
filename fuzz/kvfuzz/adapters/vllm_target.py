"""A real vLLM pool as a target: the installed one, or any source tree.

The limits say what upstream leaves to its callers. They were found by running every suite without them (`kvproof gate
--strict`, docs/vllm-findings.md): most are misuse that upstream does not check, or checks half-way through the
change.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kvfuzz.adapter import Limit, does_not_refuse, lacks
from kvfuzz.adapters.block_pool import HASH_BLOCK_SIZE, BlockPoolAdapter
from kvfuzz.adapters.vllm_tree import load_tree
from kvspec import Transition
from kvspec.pool import Geometry, PoolScope, calls
from kvspec.pool import transitions as reasons

_METHODS: dict[str, tuple[tuple[type, ...], tuple[str, ...]]] = {
    # method -> calls that need it, Sometimes properties that are out of reach without it, and actions
    "unpin_blocks": ((calls.UnpinBlocks,), ("S13", "S14", "S15", "S16", "S17", "unpin")),
    "cache_partial_block": ((calls.CachePartialBlock,), ("S18", "S19", "cache_partial")),
    "move_block_hashes": ((calls.MoveBlockHashes,), ("S20", "move_hashes")),
    "evict_blocks": ((calls.EvictBlocks,), ("S22", "S23", "evict")),
    "is_block_writable": ((calls.WriteBlock,), ("S26", "S27", "S28", "write")),
    "emit_cached_block_events": ((calls.EmitCachedBlockEvents,), ("announce",)),
}


def _second_watcher(state: Any, call: Any, _allowed: tuple[Transition, ...]) -> bool:
    return isinstance(call, calls.UnpinBlocks) and any(
        block >= 0 and state.watchers[block] + call.blocks.count(block) > 1 for block in call.blocks
    )


def _is_masked(_state: Any, call: Any, _allowed: tuple[Transition, ...]) -> bool:
    return isinstance(call, calls.CacheFullBlocks) and call.skip != 0


def _is_promotion(state: Any, call: Any, _allowed: tuple[Transition, ...]) -> bool:
    return isinstance(call, calls.CacheFullBlocks) and any(block >= 0 and state.entries[block] for block in call.blocks)


def _is_replacement(_state: Any, call: Any, _allowed: tuple[Transition, ...]) -> bool:
    return isinstance(call, calls.CachePartialBlock) and call.replace


UNCHECKED: tuple[Limit, ...] = (
    does_not_refuse(reasons.NEGATIVE_COUNT, "get_new_blocks(-1) is not refused: the free count grows by one."),
    does_not_refuse(
        reasons.REF_CNT_UNDERFLOW, "A double free is not refused: the block is queued twice.", ("S11", "S12")
    ),
    does_not_refuse(reasons.FOREIGN_BLOCK, "A block that the pool does not own is accepted."),
    does_not_refuse(reasons.NULL_BLOCK, "Refusing null in the middle of a list leaves the release half done."),
    does_not_refuse(reasons.NOT_OWNED, "A free block can be given an identity or be the target of a move."),
    does_not_refuse(reasons.REPEATED_BLOCK, "A block listed for two boundaries loses the first one."),
    does_not_refuse(reasons.ALREADY_IDENTIFIED, "A block on another chain is renamed, or refused half-way."),
    does_not_refuse(reasons.CACHING_DISABLED, "Blocks can be identified while caching is off."),
    does_not_refuse(reasons.BAD_BOUNDARY, "A boundary beyond the request's hashes is noticed half-way."),
    does_not_refuse(reasons.ID_OUT_OF_RANGE, "A negative id is accepted; one past the end is noticed half-way."),
    Limit("one watcher a block", "Only the last of several watchers of a block is kept.", _second_watcher, ("S16",)),
)


class VllmFamily:
    """`BlockPoolFamily` of one vLLM tree."""

    refusals: tuple[type[Exception], ...] = (ValueError, AssertionError, RuntimeError)

    def __init__(self, path: Path | None, strict: bool = False) -> None:
        self.upstream = load_tree(path)
        self.name = f"vllm {self.upstream.version}"
        self.limits: tuple[Limit, ...] = (*self._missing(), *(() if strict else UNCHECKED))
        self.dialect: dict[str, Any] = {}
        if not self._releases_to_head():
            self.dialect["lifo"] = False
        if not self._names_blocks_by_closing_hash():
            self.dialect["spans"] = (1,)
        self.scope = PoolScope()  # the one in use; two of the limits depend on it
        self._kinds = {
            self.upstream.BlockStored: "stored",
            self.upstream.BlockRemoved: "removed",
            self.upstream.AllBlocksCleared: "cleared",
        }

    def _missing(self) -> Iterator[Limit]:
        """What this version's interface lacks, found by looking at it."""
        version = self.upstream.version
        for method, (call_types, excuses) in _METHODS.items():
            if method not in self.upstream.methods:
                yield lacks(call_types, method, f"vLLM {version} has no BlockPool.{method}.", excuses)
        if "block_mask" not in self.upstream.cache_full_parameters:
            sentence = f"cache_full_blocks of vLLM {version} takes no mask."
            yield Limit("lacks: block_mask", sentence, _is_masked, ("S21",))
        if not hasattr(self.upstream.KVCacheBlock(0), "pool"):
            sentence = f"Blocks of vLLM {version} do not know their pool: a release names blocks of one pool only."
            yield Limit("lacks: release across pools", sentence, self._is_across_pools, ("S9",))
        partial = getattr(self.upstream.BlockPool, "cache_partial_block", None)
        if partial is None:
            yield Limit("lacks: promotion", f"vLLM {version} promotes no entries.", _is_promotion, ("S18",))
        elif "replace_existing_hashes" not in inspect.signature(partial).parameters:
            sentence = f"cache_partial_block of vLLM {version} replaces no entries."
            yield Limit("lacks: replace_existing_hashes", sentence, _is_replacement)
        if partial is not None and not self._takes_partial_entry_at_block_end():
            sentence = f"cache_partial_block of vLLM {version} takes no boundary at the end of a block."
            yield Limit("lacks: partial entry at block end", sentence, self._is_at_block_end)

    def _is_at_block_end(self, _state: Any, call: Any, _allowed: tuple[Transition, ...]) -> bool:
        if not isinstance(call, calls.CachePartialBlock) or call.replace:
            return False
        return call.boundary % self.scope.spans[call.group] == 0

    def _is_across_pools(self, _state: Any, call: Any, _allowed: tuple[Transition, ...]) -> bool:
        if not isinstance(call, calls.FreeBlocks) or len(self.scope.blocks) == 1:
            return False
        owner = Geometry.of(self.scope).owner
        return any(block >= 0 and owner[block] != call.pool for block in call.blocks)

    def _takes_partial_entry_at_block_end(self) -> bool:
        pool = self.upstream.make_pool(3, True, HASH_BLOCK_SIZE, False)
        (block,) = pool.get_new_blocks(1)
        request = self.upstream.make_request(range(HASH_BLOCK_SIZE), HASH_BLOCK_SIZE)
        try:
            pool.cache_partial_block(request, block, HASH_BLOCK_SIZE, 0, HASH_BLOCK_SIZE)
        except AssertionError:
            return False
        return True

    def _names_blocks_by_closing_hash(self) -> bool:
        """Whether a block that spans several hash blocks is named by its last hash. Earlier versions join all of
        them, or know one block size only; there, one hash block a block is all that is checked."""
        view = getattr(self.upstream.hashing, "BlockHashListWithBlockSize", None)
        return view is not None and view([b"first", b"last"], 1, 2)[0] == b"last"

    def _releases_to_head(self) -> bool:
        """Whether an unidentified block that is released is the next to be taken (since 0.24). Asked of a pool with
        caching on; that one without caching does the same is left to be checked."""
        pool = self.upstream.make_pool(3, True, HASH_BLOCK_SIZE, False)
        (block,) = pool.get_new_blocks(1)
        pool.free_blocks([block])
        return next(self.queue(pool)) is block

    def make_pool(self, num_blocks: int, enable_caching: bool, hash_block_size: int, events: bool) -> Any:
        return self.upstream.make_pool(num_blocks, enable_caching, hash_block_size, events)

    def make_request(self, token_ids: Sequence[int], hash_block_size: int) -> Any:
        return self.upstream.make_request(token_ids, hash_block_size)

    def make_stranger(self) -> Any:
        return self.upstream.KVCacheBlock(1_000_000)

    def group_key(self, block_hash: Any, group: int) -> Any:
        return self.upstream.group_key(block_hash, group)

    def event_hash(self, block_hash: Any) -> Any:
        return self.upstream.event_hash(block_hash)

    def event_kind(self, event: Any) -> str:
        return self._kinds[type(event)]

    def event_group(self, event: Any) -> int:
        return int(getattr(event, "group_idx", 0) or 0)

    def queue(self, pool: Any) -> Iterator[Any]:
        """Along the links themselves: upstream's own listing does not end on a damaged list."""
        queue = pool.free_block_queue
        end = queue.fake_free_list_tail
        block = queue.fake_free_list_head.next_free_block
        while block is not None and block is not end:
            yield block
            block = block.next_free_block

    def index_entries(self, pool: Any) -> Iterable[tuple[Any, Iterable[int]]]:
        return self.upstream.index_entries(pool).items()

    def secondary_keys(self, pool: Any) -> Mapping[int, Iterable[Any]]:
        keys: Mapping[int, Iterable[Any]] = getattr(pool, "cached_block_hashes_by_block", {})
        return keys

    def touch(self, pool: Any, blocks: Sequence[Any]) -> None:
        self.upstream.touch(pool, blocks)

    def cache_full_blocks(self, pool: Any, *args: Any) -> None:
        self.upstream.cache_full_blocks(pool, *args)

    def reset_prefix_cache(self, pool: Any) -> bool:
        return bool(pool.reset_prefix_cache())

    def reason(self, error: Exception) -> str:
        """Upstream asserts; it does not say why in a form that a program can read."""
        return ""


class VllmAdapter(BlockPoolAdapter):
    """The null block's ref_cnt is not maintained upstream before 0.33, so it is not compared."""

    family: VllmFamily

    def reset(self, scope: PoolScope) -> None:
        self.family.scope = scope
        super().reset(scope)

    def observe(self) -> Any:
        shown = super().observe()
        refs = list(shown.refs or ())
        for null in self._geometry.nulls:
            refs[null] = 0
        return shown._replace(refs=tuple(refs))


def make(argument: str | None = None, strict: bool = False) -> VllmAdapter:
    """Entry point `vllm`: the installed package, or `vllm@PATH` for a source tree or an unpacked wheel."""
    return VllmAdapter(VllmFamily(Path(argument) if argument else None, strict))
