"""Results: verdicts, exit codes, and what a report says of one suite. Plain values that cross process boundaries."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from kvfuzz.minimise import Minimised
from kvfuzz.story import table, tell
from kvfuzz.trace import Trace, write_trace

HOLDS, VIOLATED, IRREPRODUCIBLE, INCONCLUSIVE, ERROR = "holds", "violated", "irreproducible", "inconclusive", "error"
EXIT_CODES = {HOLDS: 0, VIOLATED: 1, "diverged": 1, ERROR: 2, IRREPRODUCIBLE: 3, INCONCLUSIVE: 4}


class Finding(NamedTuple):
    """A failure as it is reported. call: the operation that failed. minimal: verdict of the minimisation. story: the
    numbered steps as text."""

    headline: str
    call: str
    fingerprint: str
    trace: str
    trace_length: int
    proved_minimal: bool
    minimal: str
    scope: str
    story: str


class SuiteResult(NamedTuple):
    """One line of a report. Numbers that a driver does not have are None; `detail` is the line's text."""

    suite: str
    verdict: str
    detail: str
    cpu_seconds: float
    scope: str = ""
    seed: int | None = None
    exhausted: bool | None = None
    states: int | None = None
    transitions: int | None = None
    steps: int | None = None
    coverage: dict[str, Any] | None = None
    missing: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """For JSON: the first finding's keys at top level, all of them as a list, nothing that does not apply."""
        data = {key: value for key, value in self._asdict().items() if value not in (None, ()) and key != "findings"}
        if self.findings:
            data |= self.findings[0]._asdict()
            data["findings"] = [finding._asdict() for finding in self.findings]
        return data


def write_minimised(trace: Trace, small: Minimised, path: Path | None = None) -> Path:
    """Store what minimisation left of a trace."""
    return write_trace(
        trace._replace(
            scope=small.model.scope,
            actions=small.actions,
            headline=small.failure.headline,
            fingerprint=small.failure.fingerprint,
            proved=small.proved,
        ),
        small.failure,
        path,
    )


def finding_of(small: Minimised, path: Path) -> Finding:
    """The report of a minimised failure."""
    story = table(tell(small.model, small.actions, small.failure))
    return Finding(
        small.failure.headline,
        type(small.failure.call).__name__,
        small.failure.fingerprint,
        str(path),
        len(small.actions),
        small.proved,
        small.verdict,
        str(small.model.scope),
        story,
    )
