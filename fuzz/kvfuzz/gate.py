"""Runs suites side by side in worker processes and tells listeners what happens.

One event stream: `started`, `progress`, `finished` for each suite. Reports are listeners; this module prints nothing.
Workers are spawned, so that no state of one suite reaches another.
"""

from __future__ import annotations

import multiprocessing
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Any, NamedTuple

from kvfuzz.judge import Judge
from kvfuzz.result import ERROR, EXIT_CODES, HOLDS, INCONCLUSIVE, IRREPRODUCIBLE, SuiteResult
from kvfuzz.suites import Suite

_POLL_SECONDS = 0.25
_channel: Any = None  # in a worker: the queue to the parent


class Event(NamedTuple):
    """kind: started, progress or finished. `text` with progress, `result` with finished."""

    kind: str
    suite: str
    text: str = ""
    result: SuiteResult | None = None


Listener = Callable[[Event], None]


def run_suites(judge: Judge, suites: Sequence[Suite], workers: int, listener: Listener) -> list[SuiteResult]:
    """Results in the order of the suites. With one worker everything runs in this process.

    On an interrupt the results so far are lost to the caller, but every trace found is on disk; KeyboardInterrupt
    passes through after the workers have been stopped.
    """
    if workers <= 1 or len(suites) <= 1:
        return [_in_process(judge, suite, listener) for suite in suites]
    context = multiprocessing.get_context("spawn")
    channel = context.Queue()
    results: dict[str, SuiteResult] = {}
    # The longest first: a long suite that starts last would run alone.
    order = sorted(suites, key=_cost, reverse=True)
    pool = ProcessPoolExecutor(min(workers, len(suites)), context, _set_up, (channel,))
    try:
        waiting: dict[Future[SuiteResult], Suite] = {pool.submit(_work, judge, suite): suite for suite in order}
        while waiting:
            finished, _ = wait(waiting, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            _drain(channel, listener)
            for future in finished:
                suite = waiting.pop(future)
                results[suite.name] = _result(future, suite)
                listener(Event("finished", suite.name, result=results[suite.name]))
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    return [results[suite.name] for suite in suites]


def overall(results: Sequence[SuiteResult]) -> tuple[str, int]:
    """(verdict, exit code) of a gate: the worst result. A failure of the target weighs more than one of the run."""
    weight = {HOLDS: 0, INCONCLUSIVE: 1, ERROR: 2, IRREPRODUCIBLE: 3, "diverged": 4, "violated": 5}
    worst = max((result.verdict for result in results), key=weight.__getitem__, default=HOLDS)
    return worst, EXIT_CODES[worst]


def _cost(suite: Suite) -> int:
    if suite.driver == "explore":
        return 200_000 * int(sum(suite.scope.blocks) * suite.scope.holders)
    return suite.steps + 10_000 * suite.examples


def _in_process(judge: Judge, suite: Suite, listener: Listener) -> SuiteResult:
    listener(Event("started", suite.name))
    result = judge.run(suite, lambda text: listener(Event("progress", suite.name, text)))
    listener(Event("finished", suite.name, result=result))
    return result


def _set_up(channel: Any) -> None:
    global _channel
    _channel = channel


def _work(judge: Judge, suite: Suite) -> SuiteResult:
    _channel.put(Event("started", suite.name))
    return judge.run(suite, lambda text: _channel.put(Event("progress", suite.name, text)))


def _drain(channel: Any, listener: Listener) -> None:
    while True:
        try:
            listener(channel.get_nowait())
        except queue.Empty:
            return


def _result(future: Future[SuiteResult], suite: Suite) -> SuiteResult:
    """A worker that died is an error of the run, not a verdict on the target."""
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, KeyboardInterrupt):
        raise error
    return SuiteResult(suite.name, ERROR, f"the worker process ended: {type(error).__name__}: {error}", 0.0)
