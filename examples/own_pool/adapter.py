"""Lets kvproof drive `Pool`."""

from typing import Any

from kvfuzz.adapter import Limit, does_not_refuse
from kvfuzz.adapters.pool_adapter import Identity, PoolAdapter
from kvspec.pool import PoolScope
from kvspec.pool.transitions import CACHING_DISABLED, FOREIGN_BLOCK
from pool import Pool, PoolError


def makes_twins(_state: Any, _call: Any, allowed: Any) -> bool:
    """Whether two blocks would carry one identity after the call."""
    carried = [identity for entries in allowed[0].state.entries for identity in entries]
    return len(set(carried)) != len(carried)


class MyAdapter(PoolAdapter):
    name = "own pool"
    refusals = (PoolError,)
    has_null_block = False
    lifo = False
    extra_limits = (
        does_not_refuse(FOREIGN_BLOCK, "Block numbers are not checked."),
        does_not_refuse(CACHING_DISABLED, "Caching cannot be turned off."),
        Limit("one block a key", "A key is registered for one block at a time.", makes_twins, ("S6",)),
    )

    def build(self, scope: PoolScope) -> None:
        self.pool = Pool(scope.blocks[0])

    def get_new_blocks(self, count: int) -> list[int]:
        return self.pool.take(count)

    def free_blocks(self, blocks: list[int]) -> None:
        self.pool.release(blocks)

    def touch(self, blocks: list[int]) -> None:
        self.pool.share(blocks)

    def get_cached_block(self, identity: Identity) -> int | None:
        return self.pool.block_of.get(identity)

    def cache_full_blocks(self, identities: dict[int, Identity]) -> None:
        self.pool.register(identities)

    def reset_prefix_cache(self) -> bool:
        return self.pool.clear()

    def free_queue(self) -> list[int]:
        return self.pool.free

    def ref_counts(self) -> list[int]:
        return self.pool.ref_counts

    def identities(self) -> list[Any]:
        return [() if key is None else (key,) for key in self.pool.keys]

    def index(self) -> Any:
        return self.pool.block_of.items()
