"""Reports on the terminal: one line a suite, and the whole story of a failure.

A listener of the gate's event stream. On a terminal a status line shows what is running; elsewhere a plain line about
every 15 seconds says that it still is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

from kvfuzz.adapter import Limit
from kvfuzz.gate import Event, overall
from kvfuzz.result import HOLDS, INCONCLUSIVE, Finding, SuiteResult
from kvfuzz.trace import kvproof_version

_QUIET_SECONDS = 15.0
_MARKS = {HOLDS: "ok  ", INCONCLUSIVE: "??  "}


class TerminalReport:
    """Writes to `out`; the status line goes to stderr if that is a terminal."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._running: dict[str, str] = {}
        self._status: Any = None
        self._last = time.monotonic()
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.status import Status

            self._status = Status("", console=Console(stderr=True))
            self._status.start()

    def close(self) -> None:
        """Take the status line away."""
        if self._status is not None:
            self._status.stop()

    def line(self, text: str) -> None:
        """One line of the report, at once."""
        print(text, file=self._out, flush=True)

    def header(self, what: str) -> None:
        self.line(f"kvproof {kvproof_version()}: {what}")

    def limits(self, limits: Sequence[Limit]) -> None:
        """What is not asked of the target; said before any verdict."""
        for limit in limits:
            self.line(f"  limit {limit.id}: {limit.sentence}")

    def __call__(self, event: Event) -> None:
        if event.kind == "finished":
            self._running.pop(event.suite, None)
            assert event.result is not None
            self.result(event.result)
        else:
            self._running[event.suite] = event.text or "started"
            self._tell_running()

    def _tell_running(self) -> None:
        if self._status is not None:
            told = " | ".join(f"{suite}: {text}" for suite, text in self._running.items())
            self._status.update(told[:200])
        elif time.monotonic() - self._last > _QUIET_SECONDS:
            for suite, text in self._running.items():
                self.line(f"  ...  {suite}: {text}")
            self._last = time.monotonic()

    def result(self, result: SuiteResult) -> None:
        """One suite's line, and the story if it failed."""
        self._last = time.monotonic()
        mark = _MARKS.get(result.verdict, "FAIL")
        self.line(f"  {mark} {result.suite:<22} {result.detail} ({result.cpu_seconds:.1f} CPU s)")
        for finding in result.findings:
            self._finding(finding)

    def _finding(self, finding: Finding) -> None:
        for row in finding.story.splitlines():
            self.line(f"       {row}")
        self.line(f"       {finding.minimal} ({finding.scope})")
        if finding.trace:
            self.line(f"       replay: kvproof replay {finding.trace}")
            self.line(f"       export: kvproof export {finding.trace} --output test_found.py")

    def verdict(self, results: Sequence[SuiteResult], target: str, seconds: float) -> None:
        """The last line: what held, or how many did not, and what is missing."""
        worst, _ = overall(results)
        failed = [result for result in results if result.verdict != HOLDS]
        reached: set[str] = set()
        for result in results:
            reached.update((result.coverage or {}).get("reached", ()))
        explored = sum(result.states or 0 for result in results if result.exhausted)
        steps = sum(result.steps or 0 for result in results)
        numbers = f"{explored:,} states exhausted, {steps:,} random steps, {len(reached)} situations reached"
        if failed:
            names = ", ".join(result.suite for result in failed)
            self.line(f"{worst}: {target}: {len(failed)} of {len(results)} suites did not hold: {names}")
        else:
            self.line(f"holds: {target}: {len(results)} suites; {numbers}; {seconds:.0f} s")
