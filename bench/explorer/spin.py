"""Spin on small_model.pml: generate a verifier for one scope, compile it, run it, and read what it counted.

What is timed is the verifier alone, user and system time of its process; generating and compiling are reported apart.
Spin counts the initial state as the end of a transition; that one is taken off, so that its counts and the explorer's
mean the same.
"""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from bench.explorer.small_model import SmallScope

MODEL = Path(__file__).with_name("small_model.pml")
DEPTH_MAX = 1_000_000  # -m; the longest depth-first path at 4x2x2 L4 has 93,462 states
TABLE_SLOTS_LOG2 = 21  # -w; enough for the largest scope measured here, and no slower than less or more
MISSING = (
    "Spin is not measured: `spin` or `gcc` is not on the path. Debian and Ubuntu: `apt-get install spin gcc`; macOS: "
    "`brew install spin`; elsewhere: https://spinroot.com/spin/Man/README.html"
)


class SpinRun(NamedTuple):
    """transitions: without the one that leads to the initial state. errors: violated assertions and deadlocks."""

    states: int
    transitions: int
    errors: int
    complaint: str
    memory_mb: float
    cpu_seconds: float


class SpinFailed(RuntimeError):
    """Spin, the compiler or the verifier did not do its work; the message holds what it printed."""


def is_installed() -> bool:
    """Whether both programs that a verifier needs can be started."""
    return shutil.which("spin") is not None and shutil.which("gcc") is not None


def version() -> str:
    """For example "Spin 6.5.2"."""
    found = re.search(r"Version (\S+)", _run(["spin", "-V"], Path.cwd()))
    return f"Spin {found[1]}" if found else "Spin"


class Verifier:
    """The compiled verifier of one scope, in a folder of its own that is removed on exit.

    with Verifier(SmallScope(3, 2, 2, 3)) as verifier:
        verifier.run().states
    """

    def __init__(self, scope: SmallScope, planted: bool = False) -> None:
        self.scope = scope
        self.planted = planted
        self.compile_cpu_seconds = 0.0

    def __enter__(self) -> Verifier:
        self._folder = tempfile.TemporaryDirectory(prefix="kvproof-spin-")
        here = Path(self._folder.name)
        shutil.copy(MODEL, here)
        bounds = {
            "BLOCKS": self.scope.blocks,
            "REQUESTS": self.scope.requests,
            "HASHES": self.scope.hashes,
            "LONGEST": self.scope.longest,
        }
        defines = [f"-D{name}={value}" for name, value in bounds.items()] + ["-DPLANTED"] * self.planted
        before = _children_cpu_seconds()
        _run(["spin", "-a", *defines, MODEL.name], here)
        # The compiler warns of stores behind the end of an array, in code that Spin generated with a check in front.
        _run(["gcc", "-O2", "-DSAFETY", "-w", "-o", "pan", "pan.c"], here)
        self.compile_cpu_seconds = _children_cpu_seconds() - before
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def run(self) -> SpinRun:
        """Verify once, from nothing."""
        before = _children_cpu_seconds()
        text = _run(["./pan", f"-m{DEPTH_MAX}", f"-w{TABLE_SLOTS_LOG2}"], Path(self._folder.name))
        spent = _children_cpu_seconds() - before
        if "max search depth too small" in text:
            raise SpinFailed(f"pan at {self.scope} reached its depth of {DEPTH_MAX}: raise DEPTH_MAX\n{text}")
        complaint = re.search(r"^pan:\d*:? *(.+)$", text, re.MULTILINE)
        errors = int(_number(r"errors: (\d+)", text))
        return SpinRun(
            states=int(_number(r"(\d+) states, stored", text)),
            transitions=int(_number(r"(\d+) transitions", text)) - 1,
            errors=errors,
            complaint=complaint[1] if complaint and errors else "",
            memory_mb=_number(r"([\d.]+)\s+total actual memory usage", text),
            cpu_seconds=spent,
        )


def _number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    if found is None:
        raise SpinFailed(f"pan printed nothing that matches {pattern!r}; another version of Spin? It printed:\n{text}")
    return float(found[1])


def _children_cpu_seconds() -> float:
    """User and system time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SpinFailed(f"{' '.join(command)} ended with code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout
