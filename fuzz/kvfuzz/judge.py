"""Runs one suite on one target and turns what it finds into a result with a verdict.

A failure is confirmed by running it again, stored at once as it was found, minimised, and stored again: an interrupt
loses the minimisation, never the trace. Results are plain values that cross process boundaries.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kvfuzz.adapter import Adapter, Limit, in_dialect
from kvfuzz.conformance import check_conformance
from kvfuzz.coverage import Coverage
from kvfuzz.errors import Irreproducible, KvproofError, UsageError
from kvfuzz.explorer import ExploreBudget, Explorer
from kvfuzz.levels import Level, level_named
from kvfuzz.lockstep import Failure
from kvfuzz.minimise import Minimiser
from kvfuzz.replay import DIVERGED, confirm, replay
from kvfuzz.result import (
    ERROR,
    HOLDS,
    INCONCLUSIVE,
    IRREPRODUCIBLE,
    VIOLATED,
    Finding,
    SuiteResult,
    finding_of,
    write_minimised,
)
from kvfuzz.story import table, tell
from kvfuzz.suites import CONFORMANCE, EXPLORE, MACHINE, STRICT, TRACES, WALK, Suite
from kvfuzz.targets import load_target
from kvfuzz.trace import Trace, read_trace, write_trace
from kvfuzz.walk import Walk, WalkBudget, WalkProgress
from kvspec import Model, Transition

Progress = Callable[[str], None]


class Judge:
    """Runs suites on one target. `traces`: files or folders of traces that must hold."""

    def __init__(
        self, target: str, seed: int, traces: tuple[str, ...] = (), search_seconds: float = 20.0, symmetry: str = "full"
    ) -> None:
        self.target = target
        self.seed = seed
        self.traces = traces
        self.search_seconds = search_seconds
        self.symmetry = symmetry

    def run(self, suite: Suite, progress: Progress | None = None) -> SuiteResult:
        """Never raises for what the target does; UsageError and interrupts pass through."""
        drivers: dict[str, Callable[[Suite, Progress], SuiteResult]] = {
            CONFORMANCE: self._conformance,
            EXPLORE: self._explore,
            WALK: self._walk,
            STRICT: self._strict,
            MACHINE: self._machine,
            TRACES: self._traces,
        }
        started = time.process_time()
        try:
            result = drivers[suite.driver](suite, progress or (lambda _text: None))
        except UsageError:
            raise
        except Irreproducible as error:
            result = SuiteResult(suite.name, IRREPRODUCIBLE, str(error), 0.0, seed=self.seed)
        except KvproofError as error:
            result = SuiteResult(suite.name, ERROR, str(error), 0.0, seed=self.seed)
        return result._replace(cpu_seconds=round(time.process_time() - started, 3))

    def _adapter(self) -> Adapter:
        return load_target(self.target)

    def _model(self, suite: Suite, adapter: Adapter) -> tuple[Level, Model]:
        level = level_named(suite.level)
        return level, level.make_model(in_dialect(suite.scope, adapter))

    def _conformance(self, suite: Suite, progress: Progress) -> SuiteResult:
        _, model = self._model(suite, self._adapter())
        found = check_conformance(self._adapter, model)
        unseen = f"; not shown and not checked: {', '.join(found.unseen)}" if found.unseen else ""
        return SuiteResult(suite.name, HOLDS, f"{len(found.checks)} checks of the adapter{unseen}", 0.0)

    def _explore(self, suite: Suite, progress: Progress) -> SuiteResult:
        adapter = None if self.target == "spec" else self._adapter()
        level = level_named(suite.level)
        model = level.make_model(suite.scope if adapter is None else in_dialect(suite.scope, adapter))
        result = Explorer(
            model,
            adapter,
            self.symmetry,
            ExploreBudget(states=suite.states, cpu_seconds=suite.seconds),
            lambda p: progress(
                f"{p.states:,} states, {p.waiting:,} waiting, depth {p.depth}, {p.transitions:,} transitions"
            ),
        ).run()
        base = SuiteResult(
            suite.name,
            HOLDS,
            f"exhausted {result.states:,} states, {result.transitions:,} transitions, depth {result.depth}",
            0.0,
            scope=str(model.scope),
            exhausted=result.exhausted,
            states=result.states,
            transitions=result.transitions,
            coverage=result.coverage.to_data(),
        )
        if result.failure is not None:
            if adapter is None:
                return base._replace(
                    verdict=VIOLATED, detail=result.failure.headline, findings=(self._told(model, result),)
                )
            return self._failed(base, level, model, adapter, result.failure, result.actions, "explore", progress)
        if not result.exhausted:
            return base._replace(
                verdict=INCONCLUSIVE,
                detail=f"not exhausted: stopped by {result.stopped_by} at {result.states:,} states, depth "
                f"{result.depth}; raise --max-states or make the scope smaller",
            )
        return base

    def _told(self, model: Model, result: Any) -> Finding:
        """A property that the model itself breaks: there is no implementation to minimise on."""
        story = table(tell(model, result.actions, result.failure))
        length = len(result.actions)
        return Finding(
            result.failure.headline,
            type(result.failure.call).__name__,
            result.failure.fingerprint,
            "",
            length,
            True,
            "shortest",
            str(model.scope),
            story,
        )

    def _walk(self, suite: Suite, progress: Progress) -> SuiteResult:
        return self._walk_with(self._adapter(), suite, progress)[0]

    def _walk_with(
        self, adapter: Adapter, suite: Suite, progress: Progress, lifted: tuple[str, ...] = ()
    ) -> tuple[SuiteResult, type | None]:
        """(result, type of the call that failed, as the walk met it)."""
        level, model = self._model(suite, adapter)
        budget = WalkBudget(steps=suite.steps or None, cpu_seconds=suite.seconds, run_length=suite.run_length)
        walk = Walk(
            model,
            adapter,
            self.seed,
            budget,
            lambda p: progress(
                f"{p.steps:,} steps ({_done(suite, p)}), {p.steps / max(p.cpu_seconds, 1e-9):,.0f} steps/s, {p.summary}"
            ),
        )
        result = walk.run()
        base = self._stepped(suite, model, result.coverage, f"{result.steps:,} steps in {result.runs:,} runs")
        if result.failure is not None:
            origin = f"walk, seed {self.seed}, run {result.run}"
            failed = self._failed(base, level, model, adapter, result.failure, result.actions, origin, progress, lifted)
            return failed, type(result.failure.call)
        return base, None

    def _stepped(self, suite: Suite, model: Model, coverage: Coverage, text: str) -> SuiteResult:
        missing = tuple(coverage.missing)
        detail = f"{text}; {coverage.summary}"
        if missing:
            detail += f"; not reached: {missing[0]}" + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
        return SuiteResult(
            suite.name,
            INCONCLUSIVE if missing else HOLDS,
            detail,
            0.0,
            scope=str(model.scope),
            seed=self.seed,
            steps=coverage.steps,
            coverage=coverage.to_data(),
            missing=missing,
        )

    def _strict(self, suite: Suite, progress: Progress) -> SuiteResult:
        """Walk with one limit lifted, again and again, each time with the operations left out that have shown what it
        hides. Missing coverage is no concern here."""
        adapter = self._adapter()
        lifted = next(limit for limit in adapter.limits if limit.id == suite.limit)
        others = tuple(limit for limit in adapter.limits if limit.id != suite.limit)
        findings: dict[type, Finding] = {}
        steps = 0
        while True:
            known = tuple(findings)
            adapter.limits = (*others, lifted._replace(excludes=_only(lifted, known)))
            result, call = self._walk_with(adapter, suite, progress, lifted=(suite.limit,))
            steps += result.steps or 0
            if call is None or call in findings or not result.findings:
                break
            findings[call] = result.findings[0]
        told = f"{lifted.sentence} {len(findings)} operations show it" if findings else "Nothing is behind this limit"
        return result._replace(
            verdict=VIOLATED if findings else HOLDS,
            detail=f"{told}, in {steps:,} steps",
            steps=steps,
            missing=(),
            findings=tuple(findings.values()),
        )

    def _machine(self, suite: Suite, progress: Progress) -> SuiteResult:
        # Imported here: Hypothesis takes longer to import than a small suite to run.
        from kvfuzz.machine import run_machine

        adapter = self._adapter()
        level, model = self._model(suite, adapter)
        progress(f"{suite.examples} examples of {suite.run_length} steps")
        result = run_machine(suite.level, self._adapter, model.scope, self.seed, suite.examples, suite.run_length)
        text = f"{result.coverage.steps:,} steps in {suite.examples} examples"
        # Coverage is asked of the walk, which is there to reach it; the machine is judged on what it met.
        base = self._stepped(suite, model, result.coverage, text)._replace(
            verdict=HOLDS, detail=f"{text}; {result.coverage.summary}", missing=()
        )
        if result.failure is not None:
            origin = f"Hypothesis machine, seed {self.seed}"
            return self._failed(base, level, model, adapter, result.failure, result.actions, origin, progress)
        return base

    def _traces(self, suite: Suite, progress: Progress) -> SuiteResult:
        """Every stored trace is a past failure: it must hold now."""
        files = [file for place in self.traces for file in trace_files(Path(place))]
        adapter = self._adapter()
        ran = 0
        for file in files:
            trace = read_trace(file)
            if trace.level.name != adapter.level or _needs(trace.scope, adapter):
                continue
            progress(f"{file.name}")
            ran += 1
            # In a gate the target's limits are in force, also for a trace that was found without one of them.
            replayed = replay(trace._replace(lifted=()), adapter)
            if replayed.failure is not None:
                how = "fails again" if replayed.result != DIVERGED else "fails in a new way"
                model = trace.model
                base = SuiteResult(suite.name, VIOLATED, f"{file} {how}", 0.0, scope=str(trace.scope))
                done = trace.actions[: replayed.failure.position + 1]
                return self._failed(
                    base, trace.level, model, adapter, replayed.failure, done, f"trace {file}", progress
                )
        return SuiteResult(suite.name, HOLDS, f"{ran} stored traces hold", 0.0)

    def _failed(
        self,
        base: SuiteResult,
        level: Level,
        model: Model,
        adapter: Adapter,
        failure: Failure,
        actions: tuple[Any, ...],
        origin: str,
        progress: Progress,
        lifted: tuple[str, ...] = (),
    ) -> SuiteResult:
        confirm(model, adapter, actions, failure)
        trace = Trace(
            level,
            self.target,
            model.scope,
            tuple(actions),
            failure.fingerprint,
            failure.headline,
            origin,
            proved=False,
            lifted=lifted,
        )
        raw = write_trace(trace, failure)
        progress(f"{failure.headline}; minimising {len(actions)} operations")
        small = Minimiser(level, adapter, self.search_seconds, progress).minimise(model, actions)
        if small is None:  # confirm() has just seen it fail, so this is the implementation changing its mind
            raise Irreproducible(f"target {adapter.name!r}: {failure.headline} did not show again; trace kept in {raw}")
        path = write_minimised(trace, small)
        if path != raw:
            raw.unlink(missing_ok=True)
        return base._replace(
            verdict=small.failure.verdict, detail=small.failure.headline, findings=(finding_of(small, path),)
        )


def _only(limit: Limit, known: tuple[type, ...]) -> Callable[[Any, Any, tuple[Transition, ...]], bool]:
    """The limit, for calls of the types that have shown already what is behind it."""
    return lambda state, call, allowed: isinstance(call, known) and limit.excludes(state, call, allowed)


def _done(suite: Suite, progress: WalkProgress) -> str:
    """How far a walk is, against the bound it has."""
    if suite.seconds:
        return f"{progress.cpu_seconds:.0f} of {suite.seconds:.0f} s"
    return f"{100 * progress.steps // suite.steps} %"


def _needs(scope: Any, adapter: Adapter) -> bool:
    """Whether the trace was recorded in another dialect than the implementation speaks."""
    return bool(in_dialect(scope, adapter) != scope)


def trace_files(place: Path) -> list[Path]:
    """A trace file, or all in a folder. Raises UsageError for a place that does not exist."""
    if place.is_dir():
        return sorted(place.glob("*.itf.json"))
    if not place.exists():
        raise UsageError(f"no trace file or folder {place}; correct `traces` in [tool.kvproof] or --traces")
    return [place]
