"""Every seeded bug of the pool level."""

from __future__ import annotations

from seeded_bugs import (
    event_bugs,
    identity_bugs,
    null_and_figure_bugs,
    queue_order_bugs,
    reference_bugs,
    refusal_bugs,
    registration_bugs,
    watcher_bugs,
)
from seeded_bugs.seeded_bug import SeededBug

BUGS: tuple[SeededBug, ...] = (
    *reference_bugs.BUGS,
    *queue_order_bugs.BUGS,
    *null_and_figure_bugs.BUGS,
    *identity_bugs.BUGS,
    *registration_bugs.BUGS,
    *event_bugs.BUGS,
    *watcher_bugs.BUGS,
    *refusal_bugs.BUGS,
)


def bug_named(name: str) -> SeededBug:
    """The bug with this id."""
    return next(bug for bug in BUGS if bug.id == name)
