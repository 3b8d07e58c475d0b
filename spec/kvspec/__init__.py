"""Executable abstract specification of paged KV-cache block management.

The package imports the standard library only and does no I/O. A *model* says what the states of a
level are, which actions are enabled and what each may lead to; *properties* say what must hold.
Everything that checks an implementation is written against these two, in another package.
"""

from kvspec.model import SKIPPED, ActionKind, Effect, Model, Outcome, Step, Transition, done, refused
from kvspec.prefix import Identities
from kvspec.properties import Always, Property, Quiescent, Sometimes, broken, holds, judged

__all__ = [
    "SKIPPED",
    "ActionKind",
    "Always",
    "Effect",
    "Identities",
    "Model",
    "Outcome",
    "Property",
    "Quiescent",
    "Sometimes",
    "Step",
    "Transition",
    "broken",
    "done",
    "holds",
    "judged",
    "refused",
]
