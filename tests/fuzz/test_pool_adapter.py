"""PoolAdapter with a pool that has every operation, right and with one fault at a time.

The pool here is written for this test and shares no code with kvpool or the specification. What an adapter that leaves
operations out does is shown by tests/docs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from kvfuzz.adapter import in_dialect
from kvfuzz.adapters.pool_adapter import Identity, PoolAdapter
from kvfuzz.conformance import check_conformance
from kvfuzz.errors import TargetError
from kvfuzz.explorer import Explorer
from kvfuzz.walk import Walk, WalkBudget
from kvspec.pool import PoolModel, PoolScope

SCOPE = PoolScope(blocks=(4,), holders=2, prefixes=2, depth=4, shared=1, spans=(1, 2), hold=4, watchers=2)
SMALL = PoolScope(blocks=(2,), holders=1, prefixes=1, depth=2, spans=(2,), watchers=1)


class Refused(Exception):
    pass


class CompletePool(PoolAdapter):
    """Pool and adapter in one: lists, no hashing, one pass a call."""

    name = "complete pool"
    refusals = (Refused,)

    def build(self, scope: PoolScope) -> None:
        count = scope.blocks[0] + 1
        self.scope = scope
        self.free = list(range(1, count))
        self.refs = [0] * count
        self.keys: list[list[Identity]] = [[] for _ in range(count)]
        self.watchers: list[list[Callable[[int], None]]] = [[] for _ in range(count)]
        self.events: list[tuple[str, Identity | None]] = []

    def publish(self, kind: str, keys: Iterable[Identity | None]) -> None:
        if self.scope.events:
            self.events += [(kind, key) for key in keys]

    def forget(self, block: int) -> None:
        self.publish("removed", self.keys[block])
        self.keys[block] = []

    def fire(self, block: int) -> None:
        watchers, self.watchers[block] = self.watchers[block], []
        for watcher in watchers:
            watcher(block)

    def check(self, *blocks: int) -> None:
        if any(not 0 <= block < len(self.refs) for block in blocks):
            raise Refused

    def get_new_blocks(self, count: int) -> Sequence[int]:
        if not 0 <= count <= len(self.free):
            raise Refused
        taken = [self.free.pop(0) for _ in range(count)]
        for block in taken:
            self.fire(block)
        for block in taken:
            self.forget(block)
            self.refs[block] = 1
        return taken

    def touch(self, blocks: list[int]) -> None:
        self.check(*blocks)
        for block in filter(None, blocks):
            if not self.refs[block]:
                self.free.remove(block)
            self.refs[block] += 1

    def check_release(self, blocks: list[int]) -> None:
        self.check(*blocks)
        if any(block and blocks.count(block) > self.refs[block] for block in blocks):
            raise Refused

    def free_blocks(self, blocks: list[int]) -> None:
        self.check_release(blocks)
        head, tail = [], []
        for block in filter(None, blocks):
            self.refs[block] -= 1
            if not self.refs[block]:
                (tail if self.keys[block] and self.scope.caching else head).append(block)
        self.free = [*head, *self.free, *tail]

    def unpin_blocks(self, blocks: list[int], on_reuse: Callable[[int], None]) -> None:
        self.check_release(blocks)
        if 0 in blocks:
            raise Refused
        for block in blocks:
            self.refs[block] -= 1
            self.watchers[block].append(on_reuse)
            if not self.refs[block]:
                self.free.append(block)

    def get_cached_block(self, identity: Identity) -> int | None:
        return next((block for block, keys in enumerate(self.keys) if identity in keys), None)

    def is_growth(self, block: int, key: Identity) -> bool:
        longest = self.keys[block][0]
        same = longest[0] == key[0] or longest[1] <= self.scope.shared
        return same and longest[2] == key[2] and longest[1] < key[1]

    def cache_full_blocks(self, identities: dict[int, Identity]) -> None:
        self.check(*identities)
        if not self.scope.caching or any(
            not self.refs[block] or (self.keys[block] and not self.is_growth(block, key))
            for block, key in identities.items()
        ):
            raise Refused
        for block, key in identities.items():
            self.forget(block)
            self.keys[block] = [key]
            self.publish("stored", [key])

    def cache_partial_block(self, block: int, identity: Identity, replace: bool) -> None:
        if block == 0:
            return
        self.check(block)
        if not self.scope.caching or not self.refs[block]:
            raise Refused
        keys = self.keys[block]
        grows = bool(keys) and self.is_growth(block, identity)
        related = not keys or grows or (keys[0][0] == identity[0] and keys[0][2] == identity[2])
        if not replace and not related:
            raise Refused
        if identity in keys and not replace:
            return
        if replace or grows:
            self.forget(block)
        self.keys[block] = sorted([*self.keys[block], identity], key=lambda key: -key[1])
        self.publish("stored", [identity])

    def move_block_hashes(self, src: int, dst: int) -> None:
        self.check(src, dst)
        if not src or not dst or self.keys[dst] or not self.refs[dst]:
            raise Refused
        self.keys[dst], self.keys[src] = self.keys[src], []

    def evict_blocks(self, blocks: list[int]) -> None:
        self.check(*blocks)
        for block in blocks:
            self.forget(block)

    def reset_prefix_cache(self) -> bool:
        if any(self.refs):
            return False
        for block in range(len(self.refs)):
            self.fire(block)
        self.keys = [[] for _ in self.keys]
        self.publish("cleared", [None])
        return True

    def is_block_writable(self, block: int) -> bool:
        return block != 0 and self.refs[block] == 1 and not self.keys[block]

    def free_queue(self) -> Sequence[int]:
        return self.free

    def ref_counts(self) -> Sequence[int]:
        return self.refs

    def identities(self) -> Sequence[Iterable[Identity]]:
        return self.keys

    def index(self) -> Iterable[tuple[Identity, int]]:
        return [(key, block) for block, keys in enumerate(self.keys) for key in keys]

    def num_free_blocks(self) -> int:
        return len(self.free)

    def usage(self) -> float:
        return 1 - len(self.free) / (len(self.refs) - 1)

    def take_events(self) -> Iterable[tuple[str, Identity | None]]:
        events, self.events = self.events, []
        return events


def walk(adapter: PoolAdapter, scope: PoolScope = SCOPE, steps: int = 4_000) -> Any:
    return Walk(PoolModel(in_dialect(scope, adapter)), adapter, seed=1, budget=WalkBudget(steps=steps)).run()


def test_complete_pool_holds_and_everything_is_reached() -> None:
    adapter = CompletePool()
    assert {limit.id for limit in adapter.limits} == {
        "lacks: requests and masks",
        "lacks: announce",
        "lacks: several pools",
    }
    result = walk(adapter, steps=15_000)
    assert result.failure is None, result.failure.headline
    assert result.coverage.missing == []


@pytest.mark.parametrize(
    "scope", [SMALL, SMALL._replace(caching=False), PoolScope(blocks=(2, 1), holders=1, prefixes=1, watchers=1)]
)
def test_complete_pool_holds_in_every_state(scope: PoolScope) -> None:
    result = Explorer(PoolModel(scope), CompletePool()).run()
    assert result.failure is None, result.failure.headline
    assert result.exhausted


def test_complete_pool_is_a_conforming_adapter() -> None:
    assert check_conformance(CompletePool, PoolModel(SCOPE)).unseen == ()


class FiresAfterForgetting(CompletePool):
    def get_new_blocks(self, count: int) -> Sequence[int]:
        if count < 0 or count > len(self.free):
            raise Refused
        taken = [self.free.pop(0) for _ in range(count)]
        for block in taken:
            self.forget(block)
            self.fire(block)
            self.refs[block] = 1
        return taken


class FiresAfterOwning(CompletePool):
    def fire(self, block: int) -> None:
        self.refs[block] += 1
        super().fire(block)
        self.refs[block] -= 1


class KeepsOneWatcher(CompletePool):
    def fire(self, block: int) -> None:
        self.watchers[block] = self.watchers[block][-1:]
        super().fire(block)


class ForgetsInSilence(CompletePool):
    def evict_blocks(self, blocks: list[int]) -> None:
        self.check(*blocks)
        for block in blocks:
            self.keys[block] = []


class CountsNull(CompletePool):
    def usage(self) -> float:
        return 1 - len(self.free) / len(self.refs)


class FindsNothing(CompletePool):
    def index(self) -> Iterable[tuple[Identity, int]]:
        return []


class FindsTooMuch(CompletePool):
    def index(self) -> Iterable[tuple[Identity, int]]:
        return [*super().index(), ((0, 1, 0), 99)]


class SharesWrites(CompletePool):
    def is_block_writable(self, block: int) -> bool:
        return block != 0 and self.refs[block] > 0 and not self.keys[block]


@pytest.mark.parametrize(
    ("adapter", "fingerprint"),
    [
        (FiresAfterForgetting, "P9"),
        (FiresAfterOwning, "P9"),
        (KeepsOneWatcher, "P9"),
        (ForgetsInSilence, "P7"),
        (CountsNull, "P5"),
        (FindsNothing, "P3"),
        (FindsTooMuch, "P3"),
        (SharesWrites, "P2"),
    ],
)
def test_fault_is_named_by_the_property_that_it_breaks(adapter: type[PoolAdapter], fingerprint: str) -> None:
    walked = Walk(PoolModel(SCOPE), adapter(), seed=1, budget=WalkBudget(steps=4_000))
    failure = walked.run().failure
    assert failure is not None
    assert failure.fingerprint == fingerprint


def test_exception_that_is_no_refusal_is_a_failure() -> None:
    class Crashes(CompletePool):
        def touch(self, blocks: list[int]) -> None:
            raise KeyError(blocks[0])

    failure = walk(Crashes()).failure
    assert failure is not None
    assert failure.shown is not None
    assert failure.shown.label == "raised"
    assert failure.shown.reason.startswith("KeyError")


class WithoutCache(PoolAdapter):
    """The least that is a pool: numbers from 0, no null block, no cache."""

    has_null_block = False
    refusals = (Refused,)

    def build(self, scope: PoolScope) -> None:
        self.free = list(range(scope.blocks[0]))
        self.held: list[int] = []

    def get_new_blocks(self, count: int) -> Sequence[int]:
        if not 0 <= count <= len(self.free):
            raise Refused
        taken, self.free = self.free[:count], self.free[count:]
        self.held += taken
        return taken

    def free_blocks(self, blocks: list[int]) -> None:
        if len(set(blocks)) < len(blocks) or not set(blocks) <= set(self.held):
            raise Refused
        self.held = [block for block in self.held if block not in blocks]
        self.free = blocks + self.free

    def free_queue(self) -> Sequence[int]:
        return self.free


def test_pool_of_two_operations_is_asked_for_these_two_only() -> None:
    adapter = WithoutCache()
    assert adapter.dialect == {"lifo": True, "events": False, "caching": False}
    result = walk(adapter)
    assert result.failure is None, result.failure.headline
    assert result.coverage.missing == []
    assert {kind for kind, _ in result.coverage.outcomes} == {"allocate", "free"}


def test_wrong_order_of_release_is_seen_from_the_queue_alone() -> None:
    class ToTheTail(WithoutCache):
        def free_blocks(self, blocks: list[int]) -> None:
            queue = self.free
            super().free_blocks(blocks)
            self.free = queue + blocks

    failure = walk(ToTheTail()).failure
    assert failure is not None
    assert failure.fingerprint == "P8"


def test_scope_that_the_pool_cannot_do_is_refused_with_what_it_can() -> None:
    adapter = WithoutCache()
    with pytest.raises(TargetError, match=r"events=False.*in_dialect"):
        adapter.reset(PoolScope())


def test_class_without_the_least_operations_is_refused() -> None:
    class Nothing(PoolAdapter):
        pass

    with pytest.raises(TargetError, match="Nothing has no build, get_new_blocks, free_blocks"):
        Nothing()


def test_observation_of_a_wrong_length_is_refused_with_both_lengths() -> None:
    class TooLong(WithoutCache):
        def ref_counts(self) -> Sequence[int]:
            return [0] * 5

    adapter = TooLong()
    with pytest.raises(TargetError, match=r"ref_counts\(\) shows 5 blocks; expected 4"):
        adapter.reset(in_dialect(PoolScope(), adapter))
