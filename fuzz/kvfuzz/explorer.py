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

import time
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from kvfuzz.adapter import Adapter
from kvfuzz.coverage import Coverage
from kvfuzz.lockstep import Failure, Lockstep
from kvspec import Model, Step, broken, holds, judged


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
        # States as they are, so that the canonical form of one that comes again is not worked out again.
        self._met: set[Hashable] | None = set() if symmetry == "full" else None
        self._judged = judged(model.properties)
        self._transitions = 0
        self._started = 0.0
        self._reported = 0.0

    def run(self) -> ExploreResult:
        """Explore until the scope is exhausted, a failure is accepted, or the budget is spent."""
        self._started = time.process_time()
        root = _Node(self.model.initial(), None, None, None, 0)
        failure = self.lockstep.start() if self.lockstep else self._initial_failure(root.state)
        if failure is not None:
            return self._result(failure, [], False, 0, "")
        self._seen = {self._key(root.state): 0}
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
        model, state = self.model, node.state
        for action in model.enabled(state):
            call = model.resolve(state, action)
            for transition in model.transitions(state, call):
                self._transitions += 1
                step = Step(state, call, transition.outcome, transition.state)
                self.coverage.record(action, step)
                if not holds(self._judged, step):
                    found = broken(model.properties, step)
                    failure = Failure(
                        "violated",
                        action,
                        call,
                        (transition.outcome,),
                        None,
                        (),
                        tuple(found),
                        node.depth,
                        state,
                        step.after,
                        step.after,
                    )
                    if self._accept is None or self._accept(failure):
                        return failure, [action]
                self._visit(node, action, call, transition.state, following)
        return None

    def _expand_lockstep(self, node: _Node, following: list[_Node]) -> tuple[Failure, list[Any]] | None:
        """The implementation is put back into the node's state only when an action has changed it. Until then the
        actions add up: what they do to an implementation beyond what it shows may be why a later one fails; then, and
        only then, they belong to the path of the failure."""
        lockstep = self.lockstep
        assert lockstep is not None
        since: list[Any] = []
        moved = True
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
            self._transitions += 1
            self.coverage.record(action, step)
            since.append(action)
            if step.after is not node.state:
                moved = step.after != node.state
                self._visit(node, action, step.call, step.after, following)
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

    def _visit(self, node: _Node, action: Any, call: Any, state: Any, following: list[_Node]) -> None:
        if state is node.state:
            return
        if self._met is not None:
            if state in self._met:
                return
            self._met.add(state)
        key = self._key(state)
        if key not in self._seen:
            self._seen[key] = node.depth + 1
            following.append(_Node(state, node, action, call, node.depth + 1))

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
            self._progress(ExploreProgress(len(self._seen), waiting, self._transitions, depth, cpu))
        return ""

    def _result(
        self, failure: Failure | None, actions: list[Any], exhausted: bool, depth: int, stopped_by: str
    ) -> ExploreResult:
        return ExploreResult(
            failure,
            tuple(actions),
            exhausted,
            len(self._seen),
            self._transitions,
            depth,
            time.process_time() - self._started,
            stopped_by,
            self.coverage,
        )
