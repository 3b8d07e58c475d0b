"""Calls that must be refused, each with its own error, and with nothing changed (P6)."""

from collections.abc import Callable
from typing import Any

import pytest

from kvpool import (
    BlockPool,
    BoundaryError,
    CachingDisabledError,
    IdentityConflictError,
    InvalidArgumentError,
    KVCacheBlock,
    KVPoolError,
    NotEnoughBlocksError,
    NotOwnedError,
    NullBlockError,
    PrefixHasher,
    ReferenceUnderflowError,
    RefusedError,
    Request,
    UnknownBlockError,
)


class Scene:
    """A pool with one block of every kind that the refusals are about."""

    def __init__(self) -> None:
        self.pool = BlockPool(12, True, 4, enable_kv_cache_events=True)
        self.request = Request("r", list(range(1, 21)), hasher=PrefixHasher(4))
        self.other_request = Request("o", list(range(101, 121)), hasher=PrefixHasher(4))
        self.cached, self.partial, self.plain, self.shared, self.freed, self.spare, self.wide = (
            self.pool.get_new_blocks(7)
        )
        self.pool.cache_full_blocks(self.request, [self.cached], 0, 1, 4, 0)
        self.pool.cache_partial_block(self.request, self.partial, 4, 0, 8)
        self.pool.cache_partial_block(self.request, self.wide, 8, 0, 8)
        self.pool.touch([self.shared])
        self.pool.free_blocks([self.freed])
        self.unused = self.pool.blocks[9]
        self.null = self.pool.null_block
        self.abroad = BlockPool(40, True, 4)
        self.foreign = self.abroad.get_new_blocks(3)[-1]
        self.far = self.abroad.blocks[30]
        self.made_by_hand = KVCacheBlock(3)
        self.made_by_hand.ref_cnt = 1
        self.uncaching = BlockPool(4, False, 4)
        self.held_there = self.uncaching.get_new_blocks(1)

    def full(self, blocks: list[Any], **changes: Any) -> None:
        """A call of cache_full_blocks that is in order unless `blocks` or `changes` spoil it."""
        arguments = {
            "start": 0,
            "stop": len(blocks),
            "block_size": 4,
            "group": 0,
            "mask": None,
            "request": self.request,
        }
        start, stop, block_size, group, mask, request = {**arguments, **changes}.values()
        self.pool.cache_full_blocks(request, blocks, start, stop, block_size, group, mask)

    def part(self, block: Any, num_tokens: Any = 4, **changes: Any) -> None:
        arguments = {"group": 0, "block_size": 8, "replace": False, "request": self.request}
        group, block_size, replace, request = {**arguments, **changes}.values()
        self.pool.cache_partial_block(request, block, num_tokens, group, block_size, replace)


REFUSALS: dict[str, tuple[type[RefusedError], Callable[[Scene], object]]] = {
    "get more than there are": (NotEnoughBlocksError, lambda s: s.pool.get_new_blocks(6)),
    "get a negative number": (InvalidArgumentError, lambda s: s.pool.get_new_blocks(-1)),
    "get True": (InvalidArgumentError, lambda s: s.pool.get_new_blocks(True)),
    "get 1.0": (InvalidArgumentError, lambda s: s.pool.get_new_blocks(1.0)),
    "get a string": (InvalidArgumentError, lambda s: s.pool.get_new_blocks("1")),
    "touch foreign": (UnknownBlockError, lambda s: s.pool.touch([s.plain, s.freed, s.unused, s.foreign])),
    "touch foreign alone": (UnknownBlockError, lambda s: s.pool.touch([s.foreign])),
    "touch far id": (UnknownBlockError, lambda s: s.pool.touch([s.far])),
    "touch foreign null": (UnknownBlockError, lambda s: s.pool.touch([s.abroad.null_block])),
    "touch made by hand": (UnknownBlockError, lambda s: s.pool.touch([s.cached, s.made_by_hand])),
    "touch None": (UnknownBlockError, lambda s: s.pool.touch([s.null, s.cached, None])),
    "touch generator": (UnknownBlockError, lambda s: s.pool.touch(b for b in (s.freed, s.foreign))),
    "free twice": (ReferenceUnderflowError, lambda s: s.pool.free_blocks([s.freed])),
    "free unused": (ReferenceUnderflowError, lambda s: s.pool.free_blocks([s.plain, s.unused])),
    "free listed too often": (ReferenceUnderflowError, lambda s: s.pool.free_blocks([s.plain, s.cached, s.plain])),
    "free shared too often": (ReferenceUnderflowError, lambda s: s.pool.free_blocks([s.shared] * 3)),
    "free reversed": (ReferenceUnderflowError, lambda s: s.pool.free_blocks(reversed([s.freed, s.cached, s.plain]))),
    "free generator": (ReferenceUnderflowError, lambda s: s.pool.free_blocks(b for b in (s.cached, s.freed, s.plain))),
    "free made by hand": (UnknownBlockError, lambda s: s.pool.free_blocks([s.cached, s.made_by_hand])),
    "free made by hand alone": (UnknownBlockError, lambda s: s.pool.free_blocks([s.made_by_hand])),
    "free None": (UnknownBlockError, lambda s: s.pool.free_blocks([s.plain, None])),
    "free own after foreign": (ReferenceUnderflowError, lambda s: s.pool.free_blocks([s.foreign, s.plain, s.freed])),
    "free foreign twice": (ReferenceUnderflowError, lambda s: s.pool.free_blocks([s.plain, s.foreign, s.foreign])),
    "unpin null": (NullBlockError, lambda s: s.pool.unpin_blocks([s.plain, s.null], print)),
    "unpin free": (ReferenceUnderflowError, lambda s: s.pool.unpin_blocks([s.plain, s.freed], print)),
    "unpin too often": (ReferenceUnderflowError, lambda s: s.pool.unpin_blocks([s.plain, s.plain], print)),
    "unpin foreign": (UnknownBlockError, lambda s: s.pool.unpin_blocks([s.plain, s.foreign], print)),
    "unpin without callback": (InvalidArgumentError, lambda s: s.pool.unpin_blocks([s.plain], None)),
    "cache while off": (
        CachingDisabledError,
        lambda s: s.uncaching.cache_full_blocks(s.request, s.held_there, 0, 1, 4, 0),
    ),
    "cache odd block size": (BoundaryError, lambda s: s.full([s.plain], block_size=6)),
    "cache block size 0": (BoundaryError, lambda s: s.full([s.plain], block_size=0)),
    "cache negative start": (InvalidArgumentError, lambda s: s.full([s.plain], start=-1)),
    "cache negative start alone": (InvalidArgumentError, lambda s: s.full([s.plain], start=-1, stop=0)),
    "cache float start": (InvalidArgumentError, lambda s: s.full([s.plain], start=0.0)),
    "cache negative group": (InvalidArgumentError, lambda s: s.full([s.plain], group=-1)),
    "cache float group": (InvalidArgumentError, lambda s: s.full([s.plain], group=0.0)),
    "cache huge group": (InvalidArgumentError, lambda s: s.full([s.plain], group=2**32)),
    "cache short mask": (InvalidArgumentError, lambda s: s.full([s.plain, s.spare], mask=[True])),
    "cache without hashes": (BoundaryError, lambda s: s.full([s.plain], stop=6)),
    "cache wide without hashes": (BoundaryError, lambda s: s.full([s.plain, s.spare, s.shared], block_size=8)),
    "cache short table": (InvalidArgumentError, lambda s: s.full([s.plain], stop=2)),
    "cache free": (NotOwnedError, lambda s: s.full([s.plain, s.freed])),
    "cache free alone": (NotOwnedError, lambda s: s.full([s.unused])),
    "cache foreign": (UnknownBlockError, lambda s: s.full([s.plain, s.foreign])),
    "cache foreign alone": (UnknownBlockError, lambda s: s.full([s.foreign])),
    "cache made by hand": (UnknownBlockError, lambda s: s.full([s.made_by_hand])),
    "cache twice in a call": (IdentityConflictError, lambda s: s.full([s.plain, s.spare, s.plain])),
    "cache again": (IdentityConflictError, lambda s: s.full([s.cached])),
    "cache over other prefix": (
        IdentityConflictError,
        lambda s: s.full([s.partial], block_size=8, request=s.other_request),
    ),
    "cache over other group": (IdentityConflictError, lambda s: s.full([s.partial], block_size=8, group=1)),
    "cache over wider": (IdentityConflictError, lambda s: s.full([s.wide])),
    "part while off": (
        CachingDisabledError,
        lambda s: s.uncaching.cache_partial_block(s.request, s.held_there[0], 4, 0, 8),
    ),
    "part odd block size": (BoundaryError, lambda s: s.part(s.plain, block_size=6)),
    "part of 0 tokens": (BoundaryError, lambda s: s.part(s.plain, 0)),
    "part of -4 tokens": (BoundaryError, lambda s: s.part(s.plain, -4)),
    "part off the grid": (BoundaryError, lambda s: s.part(s.plain, 6)),
    "part of True tokens": (BoundaryError, lambda s: s.part(s.plain, True)),
    "part beyond the hashes": (BoundaryError, lambda s: s.part(s.plain, 24)),
    "part of free": (NotOwnedError, lambda s: s.part(s.freed)),
    "part of foreign": (UnknownBlockError, lambda s: s.part(s.foreign)),
    "part in other group": (IdentityConflictError, lambda s: s.part(s.partial, 8, group=1)),
    "part of other prefix": (IdentityConflictError, lambda s: s.part(s.partial, 8, request=s.other_request)),
    "move to cached": (IdentityConflictError, lambda s: s.pool.move_block_hashes(s.partial, s.cached)),
    "move onto itself": (IdentityConflictError, lambda s: s.pool.move_block_hashes(s.cached, s.cached)),
    "move to free": (NotOwnedError, lambda s: s.pool.move_block_hashes(s.cached, s.freed)),
    "move to null": (NullBlockError, lambda s: s.pool.move_block_hashes(s.cached, s.null)),
    "move from null": (NullBlockError, lambda s: s.pool.move_block_hashes(s.null, s.plain)),
    "move to foreign": (UnknownBlockError, lambda s: s.pool.move_block_hashes(s.cached, s.foreign)),
    "move from foreign": (UnknownBlockError, lambda s: s.pool.move_block_hashes(s.foreign, s.plain)),
    "evict negative": (InvalidArgumentError, lambda s: s.pool.evict_blocks([1, -1])),
    "evict too high": (InvalidArgumentError, lambda s: s.pool.evict_blocks([1, 12])),
    "evict True": (InvalidArgumentError, lambda s: s.pool.evict_blocks([1, True])),
    "evict a block": (InvalidArgumentError, lambda s: s.pool.evict_blocks([1, s.cached])),
    "report too many hits": (BoundaryError, lambda s: s.pool.emit_cached_block_events(s.request, 6, 4, 0)),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused_call_raises_its_error_and_changes_nothing(name: str) -> None:
    error, call = REFUSALS[name]
    scene = Scene()
    pools = (scene.pool, scene.abroad, scene.uncaching)
    before = [(pool.snapshot(), list(pool.kv_event_queue)) for pool in pools]
    with pytest.raises(error) as caught:
        call(scene)
    assert type(caught.value) is error
    assert [(pool.snapshot(), list(pool.kv_event_queue)) for pool in pools] == before
    scene.pool.check()
    scene.abroad.check()


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal_says_what_was_expected(name: str) -> None:
    _, call = REFUSALS[name]
    with pytest.raises(RefusedError, match=r"refused: .*; .*expected") as caught:
        call(Scene())
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, KVPoolError)
    assert str(caught.value).endswith(".")


def test_double_release_names_block_count_and_place() -> None:
    scene = Scene()
    with pytest.raises(ReferenceUnderflowError) as caught:
        scene.pool.free_blocks([scene.plain, scene.freed])
    block_id = scene.freed.block_id
    assert f"block {block_id} has ref_cnt 0, is listed 1 time(s)" in str(caught.value)
    assert "already in the free queue at position 0 of 5" in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [(0, True, 4), (-3, True, 4), (True, True, 4), (2.0, True, 4), (4, True, 0), (4, True, 4, False, None, -1)],
)
def test_pool_with_impossible_settings_is_refused(settings: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match="BlockPool refused"):
        BlockPool(*settings)


def test_exception_of_the_callers_generator_passes_and_changes_nothing(pool: BlockPool) -> None:
    blocks = pool.get_new_blocks(2)
    before = pool.snapshot()

    def spoilt():  # type: ignore[no-untyped-def]
        yield blocks[0]
        raise KeyError("the caller's own")

    for call in (pool.free_blocks, pool.touch, lambda entries: pool.unpin_blocks(entries, print)):
        with pytest.raises(KeyError, match="the caller's own"):
            call(spoilt())
        assert pool.snapshot() == before
