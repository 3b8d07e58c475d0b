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
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.steps = 0
        self.situations = {
            entry.id: entry.sentence
            for entry in model.properties
            if isinstance(entry, Sometimes) and entry.id not in excused
        }
        self.reached: set[str] = set()
        self._pending = [p for p in model.properties if isinstance(p, Sometimes) and p.id in self.situations]
        self._kinds = {kind.type: kind.name for kind in model.actions}
        self._required_kinds = {kind.name for kind in model.actions if kind.takes_effect and kind.name not in excused}
        self._previous = ""

    def start(self) -> None:
        """A new run begins: its first action follows nothing."""
        self._previous = ""

    def record(self, action: Any, step: Step) -> None:
        """One step that was really taken."""
        kind = self._kinds[type(action)]
        self.steps += 1
        self.outcomes[kind, step.outcome.label] += 1
        self.pairs[self._previous, kind] += 1
        self._previous = kind
        if self._pending:
            met = [entry for entry in self._pending if entry.reached(step)]
            if met:
                self.reached.update(entry.id for entry in met)
                self._pending = [entry for entry in self._pending if entry.id not in self.reached]

    def merge(self, other: Coverage) -> None:
        """Add what another run at the same scope has met."""
        self.outcomes.update(other.outcomes)
        self.pairs.update(other.pairs)
        self.steps += other.steps
        self.reached |= other.reached
        self._pending = [entry for entry in self._pending if entry.id not in self.reached]

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
