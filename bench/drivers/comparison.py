"""Drivers taking turns at one scope. On a busy machine rates wander, but neighbouring turns wander together."""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from bench.drivers.contenders import Contender, Work


class Turns(NamedTuple):
    """All turns of the drivers at one scope: entry i of every list belongs to the same round."""

    work: dict[str, list[Work]]

    def rate(self, name: str) -> float:
        """Steps per CPU second, median over the rounds."""
        return median(done.steps_per_second for done in self.work[name])

    def state_rate(self, name: str) -> float:
        """States taken up per CPU second, median over the rounds."""
        return median(done.states_per_second for done in self.work[name])

    def steps(self, name: str) -> int:
        return sum(done.steps for done in self.work[name])

    def ratio(self, name: str, other: str) -> float:
        """How many times the rate of `other`, median over the rounds."""
        pairs = zip(self.work[name], self.work[other], strict=True)
        return median(ours.steps_per_second / theirs.steps_per_second for ours, theirs in pairs)


def take_turns(contenders: dict[str, Contender], rounds: int, cpu_seconds: float) -> Turns:
    """Each contender works about `cpu_seconds` a round, in an order that turns round with every round. A short first
    turn of each, which imports and fills caches, does not count."""
    for contender in contenders.values():
        contender(0, cpu_seconds / 4)
    work: dict[str, list[Work]] = {name: [] for name in contenders}
    for number in range(rounds):
        order = list(contenders)
        for name in reversed(order) if number % 2 else order:
            work[name].append(contenders[name](number + 1, cpu_seconds))
    return Turns(work)
