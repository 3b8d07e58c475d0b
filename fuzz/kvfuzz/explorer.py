"""Breadth-first exploration of every state of a scope, alone or in lockstep with an implementation.

States are visited as they are reached, and recognised by their canonical form; so a path from the initial state is
always a real sequence of actions, never one under renamed roles. With an implementation, every transition of every
visited state is executed on it, by replaying the shortest path to the state: the implementation needs no copying.

What exhaustion means. Model alone: every state of the scope is reached and every property holds on every transition.
In lockstep: every action was executed in every state up to symmetry. Where several transitions are allowed, the one
that the implementation takes is followed. An implementation with hidden memory (something that it does not show and
the model does not have) may behave differently on a longer path to the same state; the walk is there for that.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Container, Hashable
from typing import Any, NamedTuple

from kvfuzz.adapter import Adapter
from kvfuzz.coverage import Coverage
from kvfuzz.lockstep import Failure, Lockstep
from kvspec import Always, Model, Step, broken, holds, judged


class ExploreBudget(NamedTuple):
    """Where exploration stops if the scope is not exhausted before. None is no bound. `depth` counts actions."""

    states: int | None = None
    cpu_seconds: float | None = None
    depth: int | None = None


UNBOUNDED = ExploreBudget()


class ExploreResult(NamedTuple):
    """`exhausted`: every state within `budget.depth` was expanded. `actions`: path to the failure, if there is one.
    `depth`: length of the longest shortest path. `stopped_by`: which bound ended an unfinished exploration."""

    failure: Failure | None
    actions: tuple[Any, ...]
    exhausted: bool
    states: int
    transitions: int
    depth: int
    cpu_seconds: float
    stopped_by: str
    coverage: Coverage


class ExploreProgress(NamedTuple):
    """A sign of life, about twice a second."""

    states: int
    waiting: int
    transitions: int
    depth: int
    cpu_seconds: float


class _Node(NamedTuple):
    """A visited state and how it was first reached."""

    state: Any
    parent: _Node | None
    action: Any
    call: Any
    depth: int

    def _chain(self) -> list[_Node]:
        nodes = []
        node: _Node | None = self
        while node is not None and node.parent is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]

    def path(self) -> list[Any]:
        """The actions that lead here."""
        return [node.action for node in self._chain()]

    def calls(self) -> list[Any]:
        """The same as calls, which is what an implementation replays."""
        return [node.call for node in self._chain()]


_CACHED_MAX = 1 << 18  # states


def _as_is(state: Hashable) -> Hashable:
    return state


def _never_again(_state: Hashable) -> Hashable:
    return object()


_KEYS = {"none": _as_is, "paths": _never_again}


class Explorer:
    """One exploration. symmetry: "full" visits one state of each orbit, "none" every state, "paths" every path (of a
    bounded depth): the only one that judges an implementation which remembers more than it shows. `accept` decides
    whether a failure ends it; by default any does."""

    def __init__(
        self,
        model: Model,
        adapter: Adapter | None = None,
        symmetry: str = "full",
        budget: ExploreBudget = UNBOUNDED,
        progress: Callable[[ExploreProgress], None] | None = None,
        accept: Callable[[Failure], bool] | None = None,
    ) -> None:
        self.model = model
        self.lockstep = None if adapter is None else Lockstep(model, adapter)
        self.budget = budget
        self.coverage = Coverage(model, adapter.limits if adapter else ())
        self._key: Callable[[Any], Hashable] = _KEYS.get(symmetry, model.canonical)
        self._progress = progress
        self._accept = accept
        self._seen: dict[Hashable, int] = {}
        # States as they are, so that the canonical form of one that comes again is not worked out again. A cache,
        # which may forget; where a state is its own form, `_seen` itself.
        self._cache: set[Hashable] | None = set() if symmetry == "full" else None
        self._met: Container[Hashable] = (
            self._seen if symmetry == "none" else (() if self._cache is None else self._cache)
        )
        # A property of the state alone is judged once for each state that is taken up. Symmetry asks no more of it
        # than it asks anyway: to hold, or not, in all states of one form.
        self._judged = judged(model.properties)
        self._judged_on_steps = tuple(
            entry for entry in self._judged if not (isinstance(entry, Always) and entry.of_state)
        )
        self._started = 0.0
        self._reported = 0.0

    def run(self) -> ExploreResult:
        """Explore until the scope is exhausted, a failure is accepted, or the budget is spent."""
        if self.lockstep is not None or not gc.isenabled():
            return self._explored()
        # A specification makes no reference cycles, and its states are many: looking for cycles costs a tenth.
        gc.disable()
        try:
            return self._explored()
        finally:
            gc.enable()

    def _explored(self) -> ExploreResult:
        self._started = time.process_time()
        root = _Node(self.model.initial(), None, None, None, 0)
        failure = self.lockstep.start() if self.lockstep else self._initial_failure(root.state)
        if failure is not None:
            return self._result(failure, [], False, 0, "")
        self._is_new(root.state, 0)
        frontier, depth = [root], 0
        while frontier:
            if self.budget.depth is not None and depth >= self.budget.depth:
                return self._result(None, [], True, depth, "")
            following: list[_Node] = []
            for number, node in enumerate(frontier):
                stopped = self._spent(depth, len(frontier) - number + len(following))
                if stopped:
                    return self._result(None, [], False, depth, stopped)
                found = self._expand(node, following)
                if found is not None:
                    failure, actions = found
                    return self._result(failure, [*node.path(), *actions], False, depth + 1, "")
            if following:
                depth += 1
            frontier = following
        return self._result(None, [], True, depth, "")

    def distance(self, state: Any) -> int | None:
        """Actions on the shortest path to such a state, as far as explored; None if it was not reached."""
        return self._seen.get(self._key(state))

    def _expand(self, node: _Node, following: list[_Node]) -> tuple[Failure, list[Any]] | None:
        if self.lockstep is None:
            return self._expand_model(node, following)
        return self._expand_lockstep(node, following)

    def _expand_model(self, node: _Node, following: list[_Node]) -> tuple[Failure, list[Any]] | None:
        model, state, met = self.model, node.state, self._met
        resolve, transitions, record = model.resolve, model.transitions, self.coverage.record_alternative
        self.coverage.start(node.action)
        for action in model.enabled(state):
            call = resolve(state, action)
            for outcome, after in transitions(state, call):
                step = Step(state, call, outcome, after)
                record(action, step)
                is_new = after is not state and after not in met and self._is_new(after, node.depth + 1)
                if not holds(self._judged if is_new else self._judged_on_steps, step):
                    found = tuple(broken(model.properties, step))
                    failure = Failure(
                        "violated", action, call, (outcome,), None, (), found, node.depth, state, after, after
                    )
                    if self._accept is None or self._accept(failure):
                        return failure, [action]
                if is_new:
                    following.append(_Node(after, node, action, call, node.depth + 1))
        return None

    def _expand_lockstep(self, node: _Node, following: list[_Node]) -> tuple[Failure, list[Any]] | None:
        """The implementation is put back into the node's state only when an action has changed it. Until then the
        actions add up: what they do to an implementation beyond what it shows may be why a later one fails; then, and
        only then, they belong to the path of the failure."""
        lockstep = self.lockstep
        assert lockstep is not None
        since: list[Any] = []
        moved = True
        self.coverage.start(node.action)
        for action in self.model.enabled(node.state):
            if moved:
                self._return_to(node)
                since, moved = [], False
            failure = lockstep.apply(action)
            if failure is not None:
                moved = True
                if since:
                    self._return_to(node)
                    alone = lockstep.apply(action)
                    failure, since = (failure, since) if alone is None else (alone, [])
                if self._accept is None or self._accept(failure):
                    return failure._replace(position=node.depth + len(since)), [*since, action]
                continue
            step = lockstep.last
            if step is None:
                continue
            self.coverage.record_alternative(action, step)
            since.append(action)
            if step.after is not node.state:
                moved = step.after != node.state
                if step.after not in self._met and self._is_new(step.after, node.depth + 1):
                    following.append(_Node(step.after, node, action, step.call, node.depth + 1))
        return None

    def _return_to(self, node: _Node) -> None:
        """Replay without checking: every step of the path was checked when it was first taken. An implementation that
        answers differently this time shows at the next comparison."""
        lockstep = self.lockstep
        assert lockstep is not None
        adapter = lockstep.adapter
        adapter.reset(self.model.scope)
        for call in node.calls():
            adapter.apply(call)
        adapter.observe()
        lockstep.state = node.state
        lockstep.position = node.depth - 1

    def _is_new(self, state: Any, depth: int) -> bool:
        """Whether no state like this one was taken up before. From now on, one was."""
        if self._cache is not None:
            if len(self._cache) >= _CACHED_MAX:
                self._cache.clear()
            self._cache.add(state)
        key = self._key(state)
        if key in self._seen:
            return False
        self._seen[key] = depth
        return True

    def _initial_failure(self, state: Any) -> Failure | None:
        found = broken(self.model.properties, Step(state, None, None, state))  # type: ignore[arg-type]
        return Failure("violated", None, None, (), None, (), tuple(found), -1, state, state, state) if found else None

    def _spent(self, depth: int, waiting: int) -> str:
        """Which bound is used up, if any; reports progress on the way."""
        cpu = time.process_time() - self._started
        if self.budget.states is not None and len(self._seen) >= self.budget.states:
            return f"the bound of {self.budget.states} states"
        if self.budget.cpu_seconds is not None and cpu >= self.budget.cpu_seconds:
            return f"the bound of {self.budget.cpu_seconds:g} CPU seconds"
        if self._progress is not None and cpu - self._reported >= 0.5:
            self._reported = cpu
            self._progress(ExploreProgress(len(self._seen), waiting, self.coverage.steps, depth, cpu))
        return ""

    def _result(
        self, failure: Failure | None, actions: list[Any], exhausted: bool, depth: int, stopped_by: str
    ) -> ExploreResult:
        return ExploreResult(
            failure,
            tuple(actions),
            exhausted,
            len(self._seen),
            self.coverage.steps,
            depth,
            time.process_time() - self._started,
            stopped_by,
            self.coverage,
        )
