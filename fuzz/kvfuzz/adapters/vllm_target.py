"""A real vLLM pool as a target: the installed one, or any source tree.

The limits say what upstream leaves to its callers. They were found by running every suite without them (`kvproof gate
--strict`, docs/vllm-findings.md): most are misuse that upstream does not check, or checks half-way through the
change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kvfuzz.adapter import Limit, does_not_refuse, lacks
from kvfuzz.adapters.block_pool import HASH_BLOCK_SIZE, BlockPoolAdapter
from kvfuzz.adapters.vllm_tree import load_tree
from kvspec import Transition
from kvspec.pool import calls
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
        missing = [
            lacks(call_types, method, f"vLLM {self.upstream.version} has no BlockPool.{method}.", excuses)
            for method, (call_types, excuses) in _METHODS.items()
            if method not in self.upstream.methods
        ]
        if "block_mask" not in self.upstream.cache_full_parameters:
            missing.append(
                Limit(
                    "lacks: block_mask",
                    f"cache_full_blocks of vLLM {self.upstream.version} takes no mask.",
                    lambda _state, call, _allowed: isinstance(call, calls.CacheFullBlocks) and call.skip != 0,
                    ("S21",),
                )
            )
        self.limits: tuple[Limit, ...] = (*missing, *(() if strict else UNCHECKED))
        self.dialect = {} if self._releases_to_head() else {"lifo": False}
        self._kinds = {
            self.upstream.BlockStored: "stored",
            self.upstream.BlockRemoved: "removed",
            self.upstream.AllBlocksCleared: "cleared",
        }

    def _releases_to_head(self) -> bool:
        """Whether an unidentified block that is released is the next to be taken (since 0.24). Asked of the pool."""
        pool = self.upstream.make_pool(3, False, HASH_BLOCK_SIZE, False)
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

    def secondary_keys(self, pool: Any, block: Any) -> Iterable[Any]:
        keys: Iterable[Any] = getattr(pool, "cached_block_hashes_by_block", {}).get(block.block_id, ())
        return keys

    def touch(self, pool: Any, blocks: Sequence[Any]) -> None:
        self.upstream.touch(pool, blocks)

    def cache_full_blocks(self, pool: Any, *args: Any) -> None:
        self.upstream.cache_full_blocks(pool, *args)

    def reason(self, error: Exception) -> str:
        """Upstream asserts; it does not say why in a form that a program can read."""
        return ""


class VllmAdapter(BlockPoolAdapter):
    """The null block's ref_cnt is not maintained upstream before 0.33, so it is not compared."""

    def observe(self) -> Any:
        shown = super().observe()
        refs = list(shown.refs or ())
        for null in self._geometry.nulls:
            refs[null] = 0
        return shown._replace(refs=tuple(refs))


def make(argument: str | None = None, strict: bool = False) -> VllmAdapter:
    """Entry point `vllm`: the installed package, or `vllm@PATH` for a source tree or an unpacked wheel."""
    return VllmAdapter(VllmFamily(Path(argument) if argument else None, strict))
