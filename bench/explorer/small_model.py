"""A small block pool as a `kvspec.Model`: the same rules, states and checks as small_model.pml beside this file.

It exists to compare the explorer with Spin on one problem, and is no part of the specification. An ordered free queue,
at most one hash per block, and append-only tables: a request takes the block at the head of the queue, or shares any
block with a wanted hash; a held block without a hash may be identified; any hash may be evicted; a request gives its
whole table up at once, from its end, blocks without a hash to the head of the queue and the others to its tail. Where
several blocks carry a wanted hash, each of them is a right answer: "the lowest number" would depend on names, and
blocks would no longer be interchangeable.

`planted=True` plants one bug: a release puts blocks into the queue that another request still holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from random import Random
from typing import Any, NamedTuple

from kvspec import SKIPPED, ActionKind, Always, Outcome, Sometimes, Step, Transition

Tables = tuple[tuple[int, ...], ...]

_DONE = Outcome("done")


class SmallScope(NamedTuple):
    """blocks, requests and hashes: how many. longest: most entries of a table."""

    blocks: int
    requests: int
    hashes: int
    longest: int

    def __str__(self) -> str:
        return f"{self.blocks}x{self.requests}x{self.hashes} L{self.longest}"


class SmallState(NamedTuple):
    """queue: free blocks, the next to be taken first. hashes: 0 is none. tables: blocks of each request, oldest
    first."""

    queue: tuple[int, ...]
    hashes: tuple[int, ...]
    tables: Tables


class Allocate(NamedTuple):
    """Take the block at the head of the queue; it loses its hash."""

    request: int


class Hit(NamedTuple):
    """Share a block that carries the hash and that the request does not hold yet."""

    request: int
    wanted: int


class Identify(NamedTuple):
    """Give a hash to a held block that has none."""

    block: int
    value: int


class Evict(NamedTuple):
    """Take a block's hash away; its holders and its place in the queue stay."""

    block: int


class Release(NamedTuple):
    """Give up the whole table of a request."""

    request: int


def _put(row: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    return row[:index] + (value,) + row[index + 1 :]


class SmallModel:
    """Stateless: all methods are pure functions of their arguments."""

    level = "small"

    def __init__(self, scope: SmallScope, planted: bool = False) -> None:
        self.scope = scope
        self.planted = planted
        self.properties = PROPERTIES
        self._blocks = blocks = range(scope.blocks)
        hashes = range(1, scope.hashes + 1)
        # Every action of the scope, made once: states offer the same few again and again.
        self._allocations = tuple(Allocate(request) for request in range(scope.requests))
        self._hits = tuple((None, *(Hit(request, wanted) for wanted in hashes)) for request in range(scope.requests))
        self._releases = tuple(Release(request) for request in range(scope.requests))
        self._identifications = tuple(tuple(Identify(block, value) for value in hashes) for block in blocks)
        self._evictions = tuple(Evict(block) for block in blocks)
        self._orders = _orders(scope)
        self._renamed_hashes = _renamed_hashes(scope)
        self._effects = {
            Allocate: self._allocate,
            Hit: self._hit,
            Identify: self._identify,
            Evict: self._evict,
            Release: self._release,
        }
        self.actions = tuple(
            ActionKind(kind.__name__.lower(), kind, self._every(kind), self._some(kind)) for kind in self._effects
        )

    def initial(self) -> SmallState:
        """Every block is free, in the order of its number."""
        return SmallState(tuple(self._blocks), (0,) * self.scope.blocks, ((),) * self.scope.requests)

    def enabled(self, state: SmallState) -> Iterator[Any]:
        """Only what takes effect; there are no refusals at this level."""
        queue, hashes, tables = state
        for request, table in enumerate(tables):
            if len(table) < self.scope.longest:
                if queue:
                    yield self._allocations[request]
                for wanted in {hashes[block] for block in self._blocks if block not in table} - {0}:
                    yield self._hits[request][wanted]
            if table:
                yield self._releases[request]
        for block, carried in enumerate(hashes):
            if carried:
                yield self._evictions[block]
            elif block not in queue:
                yield from self._identifications[block]

    def resolve(self, state: SmallState, action: Any) -> Any | None:
        """Actions of this model name blocks and requests: they are their own calls."""
        return action

    def transitions(self, state: SmallState, call: Any) -> tuple[Transition, ...]:
        return self._effects[type(call)](state, call)  # type: ignore[operator, no-any-return]

    def step(self, state: SmallState, action: Any) -> tuple[Transition, ...]:
        # Named tuples of two types are equal if their fields are: Release(0) == Evict(0).
        if any(type(action) is type(enabled) and action == enabled for enabled in self.enabled(state)):
            return self.transitions(state, action)
        return (Transition(SKIPPED, state),)

    # Effects -----------------------------------------------------------------------------------------------------

    def _allocate(self, state: SmallState, call: Allocate) -> tuple[Transition, ...]:
        queue, hashes, tables = state
        block, request = queue[0], call.request
        after = SmallState(queue[1:], _put(hashes, block, 0), _put(tables, request, (*tables[request], block)))
        return (Transition(Outcome("done", (block,)), after),)

    def _hit(self, state: SmallState, call: Hit) -> tuple[Transition, ...]:
        queue, hashes, tables = state
        request, wanted = call
        table = tables[request]
        answers = []
        for block, carried in enumerate(hashes):
            if carried == wanted and block not in table:
                left = tuple([other for other in queue if other != block])
                shared = SmallState(left, hashes, _put(tables, request, (*table, block)))
                answers.append(Transition(Outcome("hit", (block,)), shared))
        return tuple(answers)

    def _identify(self, state: SmallState, call: Identify) -> tuple[Transition, ...]:
        queue, hashes, tables = state
        return (Transition(_DONE, SmallState(queue, _put(hashes, call.block, call.value), tables)),)

    def _evict(self, state: SmallState, call: Evict) -> tuple[Transition, ...]:
        queue, hashes, tables = state
        return (Transition(_DONE, SmallState(queue, _put(hashes, call.block, 0), tables)),)

    def _release(self, state: SmallState, call: Release) -> tuple[Transition, ...]:
        queue, hashes, tables = state
        left = _put(tables, call.request, ())
        still_held = () if self.planted else sum(left, ())
        head: list[int] = []
        tail: list[int] = []
        for block in reversed(tables[call.request]):
            if block not in still_held:
                (tail if hashes[block] else head).append(block)
        return (Transition(_DONE, SmallState((*head, *queue, *tail), hashes, left)),)

    # Symmetry ----------------------------------------------------------------------------------------------------

    def canonical(self, state: SmallState) -> tuple[Any, ...]:
        """Equal for two states exactly if a renaming of requests, blocks and hashes takes one to the other.

        Every block is in a table or in the queue. So once the requests are in an order, blocks and then hashes are
        named by first appearance; the order is by length, and only requests with tables of one length are permuted.
        """
        queue, hashes, tables = state
        lengths, orders = self._orders[tuple(map(len, tables))]
        best: tuple[Any, ...] | None = None
        for order in orders:
            listed = sum(map(tables.__getitem__, order), queue)
            blocks = list(dict.fromkeys(listed))
            carried = tuple(map(hashes.__getitem__, blocks))
            form = (tuple(map(blocks.index, listed)), self._renamed_hashes[carried])
            if best is None or form < best:
                best = form
        return lengths, best

    # What drivers other than the explorer need -------------------------------------------------------------------

    def _every(self, kind: type) -> Any:
        return lambda state: (action for action in self.enabled(state) if type(action) is kind)

    def _some(self, kind: type) -> Any:
        def some(state: SmallState, rng: Random) -> Any:
            possible = [action for action in self.enabled(state) if type(action) is kind]
            return rng.choice(possible or list(self.enabled(state)))

        return some

    def observe(self, state: SmallState) -> SmallState:
        return state

    def lift(self, state: SmallState, observation: SmallState) -> SmallState:
        return observation

    def matches(self, expected: Outcome, shown: Outcome) -> bool:
        return expected == shown

    def describe(self, state: SmallState) -> dict[str, Any]:
        return state._asdict()


def _orders(scope: SmallScope) -> dict[tuple[int, ...], tuple[tuple[int, ...], list[tuple[int, ...]]]]:
    """For the lengths of the tables: the same by size, and every order of requests that sorts them."""
    found = {}
    for lengths in product(range(scope.longest + 1), repeat=scope.requests):
        by_size = tuple(sorted(lengths))
        orders = permutations(range(scope.requests))
        found[lengths] = (by_size, [order for order in orders if tuple(lengths[i] for i in order) == by_size])
    return found


def _renamed_hashes(scope: SmallScope) -> dict[tuple[int, ...], tuple[int, ...]]:
    """For the hashes of a row of blocks: the same, named by first appearance; 0 stays."""
    found = {}
    for carried in product(range(scope.hashes + 1), repeat=scope.blocks):
        names = {value: name for name, value in enumerate(dict.fromkeys((0, *carried)))}
        found[carried] = tuple(names[value] for value in carried)
    return found


def _queued_iff_unused(step: Step) -> str:
    queue, _, tables = step.after
    held = sum(tables, ())
    unused = [block for block in range(len(step.after.hashes)) if block not in held]
    if sorted(queue) == unused:
        return ""
    return f"the free queue is {list(queue)}; the blocks that no table names are {unused}"


def _taken_without_hash(step: Step) -> str:
    if type(step.call) is Allocate:
        (block,) = step.outcome.value
        if step.after.hashes[block]:
            return f"block {block} was handed out with hash {step.after.hashes[block]}"
    return ""


def _tables_name_once(step: Step) -> str:
    for request, table in enumerate(step.after.tables):
        if len(set(table)) != len(table):
            return f"the table of request {request} names a block twice: {list(table)}"
    return ""


def _shared(step: Step) -> bool:
    held = sum(step.after.tables, ())
    return len(set(held)) != len(held)


def _taken_from_cache(step: Step) -> bool:
    return type(step.call) is Allocate and step.before.hashes[step.outcome.value[0]] != 0


def _revived(step: Step) -> bool:
    return type(step.call) is Hit and step.outcome.value[0] in step.before.queue


PROPERTIES = (
    Always(
        "S1",
        "A block is in the free queue, once, iff no table names it.",
        _queued_iff_unused,
        ("queue", "tables"),
        of_state=True,
    ),
    Always("S2", "A table names a block once.", _tables_name_once, ("tables",), of_state=True),
    Always("S3", "A block is handed out without a hash.", _taken_without_hash, ("hashes",)),
    Sometimes("S4", "A block was shared.", _shared),
    Sometimes("S5", "A block was taken while it carried a hash.", _taken_from_cache),
    Sometimes("S6", "A hit took a block out of the free queue.", _revived),
)
