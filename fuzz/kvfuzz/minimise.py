"""From a failing run to a minimal trace.

Three passes. Deletion by delta debugging, then of single actions and of pairs, with lowering of arguments; numbering
of roles by first use and shrinking of the scope; at last breadth-first searches for anything shorter, in scopes from
the smallest upwards, which either find it or prove that there is nothing: deletion alone cannot leave a local
minimum. The proof covers the actions that an exploration of the scope tries (the level's `every`), not longer lists
of blocks that only a walk makes. A candidate counts only if it fails for the same reason (`Failure.is_akin`), so a
trace never slides into another fault.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from kvfuzz.adapter import Adapter
from kvfuzz.explorer import ExploreBudget, Explorer
from kvfuzz.levels import Level
from kvfuzz.lockstep import Failure, Lockstep
from kvspec import Model

_PAIRS_UP_TO = 40  # pair deletion is quadratic; longer traces first shrink by the other passes


class Minimised(NamedTuple):
    """`proved`: no run of fewer actions fails for this reason in the scope (see explorer for what that covers).
    `model`: the model at the scope that the trace needs. `replays`: candidates that were run."""

    failure: Failure
    actions: tuple[Any, ...]
    model: Model
    proved: bool
    replays: int

    @property
    def verdict(self) -> str:
        length = len(self.actions)
        noun = "operation" if length == 1 else "operations"
        return f"{length} {noun}, " + ("proved minimal at this scope" if self.proved else "not proved minimal")


class Minimiser:
    """Shrinks traces of one target. `search_seconds`: CPU time for the searches at the end, all together."""

    def __init__(
        self,
        level: Level,
        adapter: Adapter,
        search_seconds: float = 20.0,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self._level = level
        self._adapter = adapter
        self._search_seconds = search_seconds
        self._progress = progress or (lambda _text: None)
        self._replays = 0
        self._original: Failure | None = None

    def minimise(self, model: Model, actions: Sequence[Any]) -> Minimised | None:
        """The shortest trace found, or None when `actions` does not fail here."""
        found = self._replay(model, list(actions))
        if found is None:
            return None
        failure, kept = found
        self._original = failure
        widest = model.scope
        failure, kept = self._reduce(model, failure, kept)
        failure, kept = self._same(model, self._level.renamed(kept)) or (failure, kept)
        model, failure, kept = self._lower_scope(model, failure, kept)
        failure, kept = self._reduce(model, failure, kept)
        return self._search_below(model, failure, kept, widest)

    def _replay(self, model: Model, actions: list[Any]) -> tuple[Failure, list[Any]] | None:
        """The failure of a run and the actions that took part, or None when it does not fail."""
        self._replays += 1
        lockstep = Lockstep(model, self._adapter)
        failure = lockstep.start()
        if failure is not None:
            return failure, []
        executed: list[Any] = []
        for action in actions:
            failure = lockstep.apply(action)
            if failure is not None:
                return failure._replace(position=len(executed)), [*executed, action]
            if lockstep.last is not None:
                executed.append(action)
        return None

    def _same(self, model: Model, actions: list[Any]) -> tuple[Failure, list[Any]] | None:
        found = self._replay(model, actions)
        return found if found is not None and self._is_wanted(found[0]) else None

    def _is_wanted(self, failure: Failure) -> bool:
        """Compared with the first failure, not with the last, so that many small steps do not lead elsewhere."""
        assert self._original is not None
        return failure.is_akin(self._original)

    def _reduce(self, model: Model, failure: Failure, actions: list[Any]) -> tuple[Failure, list[Any]]:
        """Deletion and lowering until neither helps."""
        while True:
            before = actions
            failure, actions = self._delete_chunks(model, failure, actions)
            failure, actions = self._delete_pairs(model, failure, actions)
            failure, actions = self._lower_arguments(model, failure, actions)
            self._progress(f"{len(actions)} operations after {self._replays} replays")
            if actions == before:
                return failure, actions

    def _delete_chunks(self, model: Model, failure: Failure, actions: list[Any]) -> tuple[Failure, list[Any]]:
        size = max(1, len(actions) // 2)
        while True:
            start = 0
            while start < len(actions):
                found = self._same(model, actions[:start] + actions[start + size :])
                if found is not None and len(found[1]) < len(actions):
                    failure, actions = found
                else:
                    start += size
            if size == 1:
                return failure, actions
            size = max(1, size // 2)

    def _delete_pairs(self, model: Model, failure: Failure, actions: list[Any]) -> tuple[Failure, list[Any]]:
        again = len(actions) <= _PAIRS_UP_TO
        while again:
            again = False
            for first, second in combinations(range(len(actions)), 2):
                candidate = [action for place, action in enumerate(actions) if place not in (first, second)]
                found = self._same(model, candidate)
                if found is not None and len(found[1]) < len(actions):
                    failure, actions = found
                    again = True
                    break
        return failure, actions

    def _lower_arguments(self, model: Model, failure: Failure, actions: list[Any]) -> tuple[Failure, list[Any]]:
        place = 0
        while place < len(actions):
            for simpler in simpler_values(actions[place]):
                found = self._same(model, [*actions[:place], simpler, *actions[place + 1 :]])
                if found is not None and len(found[1]) <= len(actions):
                    failure, actions = found
                    break
            else:
                place += 1
        return failure, actions

    def _lower_scope(self, model: Model, failure: Failure, actions: list[Any]) -> tuple[Model, Failure, list[Any]]:
        """The smallest scope in which the trace still fails makes the proof of minimality cheap."""
        again = True
        while again:
            again = False
            for scope in self._level.smaller_scopes(model.scope):
                candidate = self._level.make_model(scope)
                if not {type(action) for action in actions} <= {kind.type for kind in candidate.actions}:
                    continue  # no search in this scope would try what the trace does
                found = self._same(candidate, actions)
                if found is not None and len(found[1]) <= len(actions):
                    model, (failure, actions), again = candidate, found, True
                    break
        return model, failure, actions

    def _search_below(self, model: Model, failure: Failure, actions: list[Any], widest: Any) -> Minimised:
        """Everything shorter, breadth first, rung by rung. A first hit on a rung is a shortest one there."""
        deadline = time.process_time() + self._search_seconds
        proved, remembers = len(actions) <= 1, False
        for scope in self._level.search_ladder(model.scope, widest):
            left = deadline - time.process_time()
            if len(actions) <= 1 or left <= 0:
                break
            self._progress(f"searching for less than {len(actions)} operations at {scope}")
            rung = self._level.make_model(scope)
            found, exhausted, explorer = self._shorter(rung, len(actions), "full", left)
            if found is not None:
                failure, actions = self._lower_arguments(rung, *found)
                model, proved, remembers = rung, True, _has_shorter_way(explorer, failure, actions)
            elif scope == model.scope:
                proved, remembers = exhausted, _has_shorter_way(explorer, failure, actions)
        if proved and remembers:
            left = deadline - time.process_time()
            found, proved, _ = self._shorter(model, len(actions), "paths", left) if left > 0 else (None, False, None)
            if found is not None:
                failure, actions = self._lower_arguments(model, *found)
                proved = True
        return Minimised(failure, tuple(actions), model, proved, self._replays)

    def _shorter(
        self, model: Model, length: int, symmetry: str, seconds: float
    ) -> tuple[tuple[Failure, list[Any]] | None, bool, Explorer]:
        """(a failing run of fewer actions, whether all of them were tried, the exploration)."""
        budget = ExploreBudget(depth=length - 1, cpu_seconds=seconds)
        explorer = Explorer(model, self._adapter, symmetry, budget, accept=self._is_wanted)
        result = explorer.run()
        if result.failure is None:
            return None, result.exhausted, explorer
        found = self._same(model, list(result.actions))
        return (found if found is not None and len(found[1]) < length else None), False, explorer


def _has_shorter_way(explorer: Explorer, failure: Failure, actions: Sequence[Any]) -> bool:
    """Whether a shorter run leads to the state in which this one fails.

    That run does not fail there, or it would have been found. So the implementation remembers more than it shows (or
    goes by the numbers of its blocks), and a search that visits each state once proves nothing about it.
    """
    distance = explorer.distance(failure.before)
    return distance is not None and distance < len(actions) - 1


def simpler_values(value: Any) -> Iterator[Any]:
    """Values of the same type that are simpler: smaller numbers, False, shorter tuples. Simplest first.

    Negative numbers name special roles or misuse and are left as they are.
    """
    if isinstance(value, bool):
        if value:
            yield False
    elif isinstance(value, int):
        yield from range(max(0, value)) if value > 0 else ()
    elif isinstance(value, tuple):
        make = type(value)._make if hasattr(value, "_make") else tuple
        if not hasattr(value, "_make"):
            for place in range(len(value)):
                yield value[:place] + value[place + 1 :]
        for place, part in enumerate(value):
            for simpler in simpler_values(part):
                yield make((*value[:place], simpler, *value[place + 1 :]))
