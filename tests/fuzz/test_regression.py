"""Exported traces: a pytest file that fails while the fault is there and passes when it is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvfuzz.levels import level_named
from kvfuzz.regression import check_actions, pytest_file
from kvfuzz.trace import Trace
from kvspec.pool import Allocate, CacheFull, Free, PoolScope, held, queued

SCOPE = PoolScope(blocks=(2,), holders=1, prefixes=1, hold=2)
ACTIONS = (Allocate(0, 1), CacheFull((held(0, 0),), 0), Free(0, (held(0, 0),)))
TRACE = Trace(
    level_named("pool"),
    "faulty_pool:make",
    SCOPE,
    ACTIONS,
    "P8",
    "P8 broken: the free queue of pool 0 went wrong",
    "walk, seed 1, run 2",
    True,
)
FAULTY = """
from kvfuzz.adapters.kvpool_target import adapter_for
from kvpool import BlockPool


class EverythingToHead(BlockPool):
    def free_blocks(self, ordered_blocks):
        self.enable_caching = False
        super().free_blocks(ordered_blocks)
        self.enable_caching = True


def make():
    return adapter_for(EverythingToHead, "everything to head")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "faulty_pool.py").write_text(FAULTY)
    (tmp_path / "test_exported.py").write_text(pytest_file(TRACE))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def pytest_in(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    variables = {key: value for key, value in os.environ.items() if key not in ("KVPROOF_TARGET", "PYTEST_ADDOPTS")}
    return subprocess.run(
        command, cwd=folder, env={**variables, **environment}, capture_output=True, text=True, check=False, timeout=60
    )


def test_exported_test_fails_on_the_pool_with_the_fault_and_tells_the_story(folder: Path) -> None:
    run = pytest_in(folder)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "1 failed" in run.stdout
    assert "everything to head: P8 broken" in run.stdout
    assert "Free(holder=0, refs=(held(0, 0),), pool=0)" in run.stdout


def test_exported_test_passes_on_a_pool_without_the_fault(folder: Path) -> None:
    run = pytest_in(folder, KVPROOF_TARGET="kvpool")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 passed" in run.stdout


def test_exported_test_is_readable_and_says_where_it_comes_from() -> None:
    text = pytest_file(TRACE)
    assert text.startswith('"""P8 broken: the free queue of pool 0 went wrong\n')
    assert "Found on faulty_pool:make by walk, seed 1, run 2; proved minimal at this scope." in text
    assert "from kvspec.pool import Allocate, CacheFull, Free, PoolScope, held\n" in text
    assert "def test_p8_broken_the_free_queue_of_pool_0_went_wrong():" in text
    assert "            Allocate(holder=0, num_blocks=1, pool=0),\n" in text
    compile(text, "exported", "exec")


def test_exported_test_can_be_named_and_its_name_is_a_python_name() -> None:
    assert "def test_no_two_owners():" in pytest_file(TRACE, "no two owners!")
    text = pytest_file(TRACE._replace(headline=""))
    assert "def test_trace():" in text
    compile(text, "exported", "exec")


def test_exported_roles_are_imported_only_if_they_are_used() -> None:
    text = pytest_file(TRACE._replace(actions=(Free(0, (queued(1, 0),)),)))
    assert "from kvspec.pool import Free, PoolScope, queued\n" in text


def test_lifted_limits_are_exported() -> None:
    assert "lifted=('no writes',)," in pytest_file(TRACE._replace(lifted=("no writes",)))
    assert "lifted" not in pytest_file(TRACE)


def test_check_passes_where_target_and_specification_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KVPROOF_TARGET", raising=False)
    check_actions("pool", "kvpool", SCOPE, ACTIONS)


def test_check_raises_an_assertion_with_the_steps_up_to_the_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KVPROOF_TARGET", raising=False)
    monkeypatch.syspath_prepend(str(folder))
    with pytest.raises(AssertionError) as caught:
        check_actions("pool", "faulty_pool:make", SCOPE, [*ACTIONS, Allocate(0, 2)])
    assert "!  3  Free" in str(caught.value)
    assert "Allocate(holder=0, num_blocks=2" not in str(caught.value)
