"""Model and implementation side by side, one call at a time.

Checked after every call: the outcome is one that the model allows, and everything the implementation shows equals the
model's state after that outcome. Since the properties hold in every reachable model state of an explored scope, an
implementation that stays equal keeps them too; they are evaluated on the model every `stride` steps all the same, and
on the implementation's own state when it differs, to say which rule was broken.

Not checked: what the adapter cannot show (fields that are None) and calls that its limits exclude.
"""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from kvfuzz.adapter import Adapter
from kvfuzz.errors import AdapterError, TargetError
from kvspec import Model, Outcome, Step, Transition, broken, holds, judged

# With the state unchanged and equal on both sides, an answer of this kind without effects breaks no property that the
# step into this state did not break; effects would not have matched.
_CHANGES_NOTHING = ("refused", "miss", "false")


class Difference(NamedTuple):
    """One observable field that is not as the model says."""

    field: str
    expected: Any
    shown: Any


class Failure(NamedTuple):
    """Why a run stopped.

    verdict: "diverged" (the implementation differs from the model) or "violated" (a property does not hold).
    action, call: what was asked. allowed: the outcomes that the model allows. shown: the implementation's.
    differences: fields that differ, empty where the outcome alone is wrong. broken: (property id, explanation),
    judged on the implementation's state. position: index of the action in the run; -1 is the initial state.
    before: the model's state in which the call was made. expected: its state after the call, for the allowed outcome
    nearest to the one shown. after: the same with everything that the implementation shows put in.
    """

    verdict: str
    action: Any
    call: Any
    allowed: tuple[Outcome, ...]
    shown: Outcome | None
    differences: tuple[Difference, ...]
    broken: tuple[tuple[str, str], ...]
    position: int
    before: Any
    expected: Any
    after: Any

    @property
    def fingerprint(self) -> str:
        """Equal for failures that have the same cause as far as can be told: the first broken property, else what
        was called and what differed."""
        if self.broken:
            return self.broken[0][0]
        fields = "+".join(difference.field for difference in self.differences) or "outcome"
        return f"{type(self.call).__name__}:{fields}"

    def is_akin(self, other: Failure) -> bool:
        """Whether the two may well have one cause: a broken property in common, or the same fingerprint. One fault
        breaks one set of properties in one run and another in the next, with a common core."""
        ours, theirs = {name for name, _ in self.broken}, {name for name, _ in other.broken}
        return bool(ours & theirs) if ours and theirs else self.fingerprint == other.fingerprint

    @property
    def headline(self) -> str:
        """One sentence for a report."""
        if self.shown is not None and self.shown.label == "raised":
            return f"{type(self.call).__name__} {self.shown}"
        if self.broken:
            name, why = self.broken[0]
            return f"{name} broken: {why}"
        if self.differences:
            first = self.differences[0]
            return f"{first.field} is {first.shown}, the specification says {first.expected}"
        expected = " or ".join(dict.fromkeys(str(outcome) for outcome in self.allowed))
        return f"{type(self.call).__name__} answered {self.shown}; the specification says {expected}"


class Lockstep:
    """Drives one adapter and the model together. `start` before the first `apply`.

    After `apply`: `state` is the model's state, `last` the step taken, or None when the action was skipped or failed.
    """

    def __init__(self, model: Model, adapter: Adapter, stride: int = 1) -> None:
        self.model = model
        self.adapter = adapter
        self.stride = stride
        self.state: Any = None
        self.last: Step | None = None
        self.position = -1
        self._resolve = model.resolve
        self._transitions = model.transitions
        self._observe = model.observe
        self._matches = model.matches
        self._judged = judged(model.properties)
        self._limits = tuple(limit.excludes for limit in adapter.limits)

    def start(self) -> Failure | None:
        """Reset the implementation and compare the initial states."""
        try:
            self.adapter.reset(self.model.scope)
            shown = self.adapter.observe()
        except TargetError:
            raise
        except Exception as error:
            raise AdapterError(_told("reset", self.adapter, error)) from error
        self.state = self.model.initial()
        self.position = -1
        self.last = None
        differences = self.differences(self.state, shown)
        if differences:
            lifted = self.model.lift(self.state, shown)
            step = Step(lifted, None, None, lifted)  # type: ignore[arg-type]
            found = tuple(broken(self.model.properties, step))
            verdict = "violated" if found else "diverged"
            return Failure(verdict, None, None, (), None, differences, found, -1, self.state, self.state, lifted)
        return None

    def differences(self, state: Any, shown: Any) -> tuple[Difference, ...]:
        """The fields of an observation that are not as in the model's state; None fields are not compared."""
        expected = self._observe(state)
        if expected == shown:
            return ()
        return tuple(
            Difference(field, wanted, got)
            for field, wanted, got in zip(expected._fields, expected, shown, strict=True)
            if got is not None and got != wanted
        )

    def apply(self, action: Any) -> Failure | None:
        """Do one action on both sides; returns what went wrong, if anything."""
        before = self.state
        self.position += 1
        self.last = None
        call = self._resolve(before, action)
        if call is None:
            return None
        allowed = self._transitions(before, call)
        for excludes in self._limits:
            if excludes(before, call, allowed):
                return None
        try:
            outcome = self.adapter.apply(call)
            shown = self.adapter.observe()
        except Exception as error:
            raise AdapterError(_told(repr(call), self.adapter, error)) from error
        differences = None
        for transition in allowed:
            if transition.outcome == outcome or self._matches(transition.outcome, outcome):
                after = transition.state
                found = () if self._observe(after) == shown else self.differences(after, shown)
                if found:
                    # Another allowed transition may end with the same outcome and in the state that is shown.
                    differences = differences or found
                    continue
                self.state = after
                # The model's outcome, not the implementation's, which may leave the reason of a refusal open.
                self.last = Step(before, call, transition.outcome, after)
                if self.position % self.stride == 0 and not (after is before and outcome.label in _CHANGES_NOTHING):
                    return self._check_properties(action, allowed, outcome)
                return None
        if differences is None:
            differences = self.differences(allowed[0].state, shown)
        return self._failure(action, call, allowed, outcome, differences, before, shown)

    def _check_properties(self, action: Any, allowed: tuple[Transition, ...], outcome: Outcome) -> Failure | None:
        """The model's step, with the implementation's own effects in the order in which they happened."""
        step = self.last
        assert step is not None
        step = step._replace(outcome=step.outcome._replace(effects=outcome.effects))
        if holds(self._judged, step):
            return None
        found = broken(self.model.properties, step)
        expected = tuple(transition.outcome for transition in allowed)
        return Failure(
            "violated",
            action,
            step.call,
            expected,
            outcome,
            (),
            tuple(found),
            self.position,
            step.before,
            step.after,
            step.after,
        )

    def _failure(
        self,
        action: Any,
        call: Any,
        allowed: tuple[Transition, ...],
        outcome: Outcome,
        differences: tuple[Difference, ...],
        before: Any,
        shown: Any,
    ) -> Failure:
        """Judge the properties on the implementation's state, to name the rule behind a difference."""
        base = next((t.state for t in allowed if t.outcome.label == outcome.label), allowed[0].state)
        after = self.model.lift(base, shown)
        found = tuple(broken(self.model.properties, Step(before, call, outcome, after)))
        expected = tuple(transition.outcome for transition in allowed)
        verdict = "violated" if found else "diverged"
        return Failure(verdict, action, call, expected, outcome, differences, found, self.position, before, base, after)


def _told(what: str, adapter: Adapter, error: Exception) -> str:
    """The message of an AdapterError: what was asked, who failed, where, and what to do."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"
    return (
        f"the adapter {adapter.name!r} raised {type(error).__name__}: {error} during {what} ({where}). An adapter must "
        "return every answer of the implementation as an outcome; fix the adapter, or catch the implementation's error "
        "there"
    )
