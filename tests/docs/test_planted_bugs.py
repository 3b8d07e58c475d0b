"""The faulty pools under examples/planted_bug: found by each driver, shrunk, exported, and gone when mended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "planted_bug"
DRIVERS = {
    "walk": ["fuzz", "--seed", "1"],
    "machine": ["fuzz", "--driver", "machine", "--seed", "1"],
    "explorer": ["explore"],
}
BUGS = {"unhashed_to_tail": "P8", "queued_twice": "P1"}


def kvproof(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from kvfuzz.cli import main; main()", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLE)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bug_is_found_by_each_driver_with_a_trace_of_two_operations(
    tmp_path: Path, bug: str, driver: str
) -> None:
    done = kvproof(tmp_path, *DRIVERS[driver], "--target", f"faulty_pool:{bug}", "--json", "out.json")
    data = json.loads((tmp_path / "out.json").read_text())
    assert done.returncode == 1, done.stdout + done.stderr
    assert data["fingerprint"] == BUGS[bug]
    assert data["trace_length"] == 2
    assert data["proved_minimal"] is True


def test_exported_test_fails_on_the_faulty_pool_and_passes_on_the_mended_one(tmp_path: Path) -> None:
    kvproof(tmp_path, "fuzz", "--seed", "1", "--target", "faulty_pool:queued_twice", "--json", "out.json")
    trace = json.loads((tmp_path / "out.json").read_text())["trace"]
    assert "Reproduced" in kvproof(tmp_path, "replay", trace).stdout
    assert kvproof(tmp_path, "export", trace, "--output", "test_found.py").returncode == 0

    def outcome(**more: str) -> int:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_found.py"]
        environment = {**os.environ, "PYTHONPATH": str(EXAMPLE), **more}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False).returncode

    assert outcome() == 1
    assert outcome(KVPROOF_TARGET="kvpool") == 0
