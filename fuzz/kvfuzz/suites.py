"""Suites and profiles: what `kvproof gate` runs, and how much of it.

A suite is one driver at one scope with one budget. Budgets are in steps and states, not in seconds, so that a verdict
does not depend on the machine; the time beside a profile is what it took on two shared cores.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kvfuzz.errors import UsageError
from kvspec.pool import PoolScope

CONFORMANCE, EXPLORE, WALK, MACHINE, TRACES, STRICT = "conformance", "explore", "walk", "machine", "traces", "strict"


class Suite(NamedTuple):
    """name is unique in a profile. steps: of a walk. examples and run_length: of a walk's run or the machine's
    examples. states: the most an exploration may visit. seconds: CPU time, where steps or states are not the bound.
    limit: the id that a strict suite lifts."""

    name: str
    driver: str
    level: str
    scope: Any
    steps: int = 0
    run_length: int = 80
    examples: int = 0
    states: int | None = None
    seconds: float | None = None
    limit: str = ""


class Profile(NamedTuple):
    """A named selection of suites."""

    name: str
    sentence: str
    suites: tuple[Suite, ...]


_SMALL = PoolScope(blocks=(3,), holders=2, prefixes=2, depth=2, hold=3, watchers=2)
_ROOMY = PoolScope(blocks=(6,), holders=3, prefixes=2, depth=4, shared=1, spans=(1, 2), hold=4, watchers=2)
_TWO_POOLS = PoolScope(blocks=(3, 2), holders=2, prefixes=2, depth=2, hold=4, watchers=1)
# Large enough for what an implementation does only now and then, such as tidying up a long queue.
_WIDE = PoolScope(blocks=(100,), holders=2, prefixes=1, hold=100)
_UNCACHED = PoolScope(blocks=(4,), holders=2, prefixes=1, hold=3, watchers=1, caching=False)

DEFAULT_WALK_SCOPE = _ROOMY
DEFAULT_MACHINE_SCOPE = _SMALL  # few examples must collide often

_EXPLORED: dict[str, PoolScope] = {
    "base": PoolScope(blocks=(4,)),
    "tables": PoolScope(blocks=(3,), prefixes=1, hold=3),
    "watchers": PoolScope(blocks=(3,), prefixes=1, watchers=1),
    "two-watchers": PoolScope(blocks=(2,), prefixes=1, watchers=2),
    "partial": PoolScope(blocks=(3,), holders=1, prefixes=2, depth=2, spans=(2,)),
    "groups": PoolScope(blocks=(2,), holders=2, prefixes=1, depth=2, spans=(1, 2)),
    "pools": PoolScope(blocks=(2, 2), holders=1, prefixes=1, hold=3),
    "uncached": PoolScope(blocks=(3,), holders=2, prefixes=1, watchers=1, caching=False),
}
_EXPLORED_NIGHTLY: dict[str, PoolScope] = {
    "base-deep": PoolScope(blocks=(4,), hold=3),
    "watchers-deep": PoolScope(blocks=(3,), watchers=2),
    "partial-deep": PoolScope(blocks=(3,), holders=1, prefixes=2, depth=3, shared=1, spans=(2,)),
    "groups-deep": PoolScope(blocks=(3,), holders=2, prefixes=1, depth=2, spans=(1, 2)),
    "pools-deep": PoolScope(blocks=(2, 2), holders=2, prefixes=1, hold=2),
}


def _explorations(scopes: dict[str, PoolScope]) -> tuple[Suite, ...]:
    return tuple(Suite(f"explore/{name}", EXPLORE, "pool", scope) for name, scope in scopes.items())


def _walks(steps: int) -> tuple[Suite, ...]:
    scopes = {"small": _SMALL, "roomy": _ROOMY, "pools": _TWO_POOLS}
    walks = tuple(Suite(f"walk/{name}", WALK, "pool", scope, steps=steps) for name, scope in scopes.items())
    return (
        *walks,
        Suite("walk/uncached", WALK, "pool", _UNCACHED, steps=steps // 4),
        Suite("walk/wide", WALK, "pool", _WIDE, steps=max(10_000, steps // 10)),
    )


def _machines(examples: int) -> tuple[Suite, ...]:
    return (
        Suite("machine/base", MACHINE, "pool", PoolScope(blocks=(4,)), run_length=50, examples=examples),
        Suite("machine/small", MACHINE, "pool", _SMALL, run_length=50, examples=examples),
    )


_CONFORMANCE = Suite("conformance", CONFORMANCE, "pool", _SMALL)
_TRACES = Suite("traces", TRACES, "pool", None)

PROFILES: dict[str, Profile] = {
    "dev": Profile(
        "dev",
        "a look before a commit: the smallest scopes and short walks, about 15 s",
        (
            _CONFORMANCE,
            *_explorations({name: _EXPLORED[name] for name in ("two-watchers", "pools", "uncached")}),
            *_walks(20_000),
            _TRACES,
        ),
    ),
    "ci": Profile(
        "ci",
        "every pull request: all small scopes exhausted, longer walks, the Hypothesis machine, under 3 minutes",
        (_CONFORMANCE, *_explorations(_EXPLORED), *_walks(250_000), *_machines(60), _TRACES),
    ),
    "nightly": Profile(
        "nightly",
        "larger scopes exhausted, walks twenty times as long",
        (
            _CONFORMANCE,
            *_explorations({**_EXPLORED, **_EXPLORED_NIGHTLY}),
            *_walks(5_000_000),
            *_machines(1_000),
            _TRACES,
        ),
    ),
}


def profile_named(name: str) -> Profile:
    """Raises UsageError for a profile that does not exist."""
    if name not in PROFILES:
        raise UsageError(f"unknown profile {name!r}: the profiles are {', '.join(PROFILES)}")
    return PROFILES[name]


def strict_suites(limits: list[str]) -> tuple[Suite, ...]:
    """One walk for each limit that can be lifted: it shows what the limit hides, or that it hides nothing."""
    suites = []
    for limit in limits:
        scope = _UNCACHED if "caching disabled" in limit else _ROOMY
        suites.append(Suite(f"strict/{limit}", STRICT, "pool", scope, steps=25_000, limit=limit))
    return tuple(suites)
