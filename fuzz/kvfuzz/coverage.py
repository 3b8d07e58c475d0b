"""What a run has met: outcomes of each action kind, pairs of consecutive kinds, and Sometimes properties.

A run that has not met everything its scope requires proved less than it seems to: it is inconclusive, never green.
Counting is part of the walk's inner loop, so a Sometimes property is evaluated only until it has been reached once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from kvfuzz.adapter import Limit
from kvspec import Model, Sometimes, Step

_NO_EFFECT = ("refused", "miss", "false", "skipped")


class Coverage:
    """Counters of one or several runs of a model."""

    def __init__(self, model: Model, limits: Iterable[Limit] = ()) -> None:
        excused = {name for limit in limits for name in limit.excuses}
        self.situations = {
            entry.id: entry.sentence
            for entry in model.properties
            if isinstance(entry, Sometimes) and entry.id not in excused
        }
        self.reached: set[str] = set()
        self._pending = [p for p in model.properties if isinstance(p, Sometimes) and p.id in self.situations]
        self._kinds = {kind.type: kind.name for kind in model.actions}
        self._required_kinds = {kind.name for kind in model.actions if kind.takes_effect and kind.name not in excused}
        # One counter by type, because counting is in the inner loop of every driver; names come in when somebody reads.
        self._taken: Counter[tuple[type | None, type, str]] = Counter()
        self._previous: type | None = None

    def start(self, after: Any = None) -> None:
        """What is recorded next was done after this action; None: it begins a run."""
        self._previous = None if after is None else type(after)

    def record(self, action: Any, step: Step) -> None:
        """One step that was really taken, as the next one of a run."""
        self.record_alternative(action, step)
        self._previous = type(action)

    def record_alternative(self, action: Any, step: Step) -> None:
        """One step that was really taken; the next one will start from the same place."""
        self._taken[self._previous, type(action), step.outcome.label] += 1
        if self._pending:
            met = [entry for entry in self._pending if entry.reached(step)]
            if met:
                self.reached.update(entry.id for entry in met)
                self._pending = [entry for entry in self._pending if entry.id not in self.reached]

    def merge(self, other: Coverage) -> None:
        """Add what another run at the same scope has met."""
        self._taken.update(other._taken)
        self.reached |= other.reached
        self._pending = [entry for entry in self._pending if entry.id not in self.reached]

    @property
    def steps(self) -> int:
        """Steps that were really taken."""
        return sum(self._taken.values())

    @property
    def outcomes(self) -> Counter[tuple[str, str]]:
        """(action kind, label) -> how often it ended so."""
        found: Counter[tuple[str, str]] = Counter()
        for (_, kind, label), count in self._taken.items():
            found[self._kinds[kind], label] += count
        return found

    @property
    def pairs(self) -> Counter[tuple[str, str]]:
        """(action kind, the kind done right after it) -> how often; the first is "" where a run began."""
        found: Counter[tuple[str, str]] = Counter()
        for (previous, kind, _), count in self._taken.items():
            found["" if previous is None else self._kinds[previous], self._kinds[kind]] += count
        return found

    @property
    def missing(self) -> list[str]:
        """What is required and was not met, in words."""
        effective = {kind for kind, label in self.outcomes if label not in _NO_EFFECT}
        lost = [f"{name}: {sentence}" for name, sentence in self.situations.items() if name not in self.reached]
        return lost + [f"action {kind} never took effect" for kind in sorted(self._required_kinds - effective)]

    @property
    def summary(self) -> str:
        """For one line of a report."""
        kinds = len(self._required_kinds)
        effective = {kind for kind, label in self.outcomes if label not in _NO_EFFECT} & self._required_kinds
        pairs = sum(1 for before, _ in self.pairs if before)
        return (
            f"{len(effective)}/{kinds} actions, {len(self.reached)}/{len(self.situations)} situations, "
            f"{pairs}/{len(self._kinds) ** 2} pairs"
        )

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON reports."""
        return {
            "steps": self.steps,
            "outcomes": {f"{kind} {label}": count for (kind, label), count in sorted(self.outcomes.items())},
            "pairs": {f"{first} {then}": count for (first, then), count in sorted(self.pairs.items()) if first},
            "reached": sorted(self.reached, key=lambda name: (len(name), name)),
            "missing": self.missing,
        }
