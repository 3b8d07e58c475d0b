"""The command line as its users meet it: exit codes, messages for bad input, JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kvfuzz.cli import main

FAULTY = """
from kvfuzz.adapters.kvpool_target import KvpoolFamily, adapter_for
from kvfuzz.adapters.block_pool import BlockPoolAdapter
from kvpool import BlockPool


class Forgets(BlockPool):
    def free_blocks(self, ordered_blocks):
        super().free_blocks(list(ordered_blocks)[:1])


def forgets():
    return adapter_for(Forgets)


class Raises(BlockPoolAdapter):
    def __init__(self):
        super().__init__(KvpoolFamily())
        self.calls = 0

    def observe(self):
        self.calls += 1
        if self.calls > 20:
            raise KeyError("no such block")
        return super().observe()


class Moody(BlockPoolAdapter):
    moods = 0

    def __init__(self):
        super().__init__(KvpoolFamily())

    def reset(self, scope):
        super().reset(scope)
        Moody.moods += 1
        if Moody.moods % 2:
            self.pools[0].get_new_blocks(1)


def no_adapter():
    return 5
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every command runs in a folder of its own, in which a module with adapters lies."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "faulty_adapters", raising=False)
    (tmp_path / "faulty_adapters.py").write_text(FAULTY)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out, captured.err


def test_help_lists_commands_and_exit_codes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[1:] = ['--help']; import kvfuzz.cli; kvfuzz.cli.main(['--help'])"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "4  inconclusive" in done.stdout
    for name in ("gate", "fuzz", "explore", "replay", "trim", "export", "targets"):
        assert f"  {name} " in done.stdout


def test_walk_that_holds_ends_with_0_and_json_says_what_was_covered(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, _ = run(capsys, "fuzz", "--target", "kvpool", "--steps", "30000", "--seed", "3", "--json", "out.json")
    data = json.loads(Path("out.json").read_text())
    assert code == 0
    assert data["verdict"] == "holds"
    assert data["steps"] >= 30000
    assert data["seed"] == 3
    assert data["coverage"]["missing"] == []


def test_short_walk_is_inconclusive_and_names_what_it_did_not_reach(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "fuzz", "--target", "kvpool", "--steps", "5", "--seed", "3")
    assert code == 4
    assert "not reached: S" in out


def test_exploration_that_is_exhausted_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, _ = run(capsys, "explore", "--target", "spec", "--blocks", "2", "--json", "out.json")
    data = json.loads(Path("out.json").read_text())
    assert code == 0
    assert data["exhausted"] is True
    assert data["states"] == 77


def test_exploration_that_is_cut_short_is_inconclusive_and_says_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = run(capsys, "explore", "--target", "spec", "--max-states", "20")
    assert code == 4
    assert "stopped by the bound of 20 states" in out
    assert "raise --max-states or make the scope smaller" in out


def test_failure_ends_with_1_and_its_trace_can_be_replayed_trimmed_and_exported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = run(capsys, "fuzz", "--target", "faulty_adapters:forgets", "--seed", "1", "--json", "out.json")
    data = json.loads(Path("out.json").read_text())
    assert code == 1
    assert data["verdict"] == "violated"
    assert data["proved_minimal"] is True
    assert data["trace_length"] == 2
    assert f"kvproof replay {data['trace']}" in out
    code, out, _ = run(capsys, "replay", data["trace"])
    assert code == 1
    assert "Reproduced" in out
    code, out, _ = run(capsys, "replay", data["trace"], "--target", "kvpool")
    assert code == 0
    assert "Fixed" in out
    code, out, _ = run(capsys, "trim", data["trace"], "--output", "small.itf.json")
    assert code == 1
    assert "2 operations became 2 operations, proved minimal" in out
    code, out, _ = run(capsys, "export", data["trace"], "--output", "test_found.py")
    assert code == 0
    assert "check_actions" in Path("test_found.py").read_text()


def test_machine_finds_the_same_failure(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, _ = run(
        capsys,
        "fuzz",
        "--driver",
        "machine",
        "--target",
        "faulty_adapters:forgets",
        "--seed",
        "1",
        "--json",
        "out.json",
    )
    assert code == 1
    assert json.loads(Path("out.json").read_text())["trace_length"] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gate", "--target", "nothing"], ["unknown target 'nothing'", "kvpool, vllm", "vllm@PATH"]),
        (["gate", "--target", "vllm@missing"], ["missing"]),
        (["gate", "--target", "vllm@."], ["block_pool.py"]),
        (["gate", "--target", "kvpool@here"], ["takes no path"]),
        (["gate", "--target", "no_module:thing"], ["'no_module' cannot be imported", "current directory"]),
        (["gate", "--target", "faulty_adapters:absent"], ["has no 'absent'", "it has"]),
        (["gate", "--target", "faulty_adapters:no_adapter"], ["made a int, which is no adapter", "docs/adapter.md"]),
        (["gate", "--profile", "weekly"], ["unknown profile 'weekly'", "dev, ci, nightly"]),
        (["gate", "--profile", "dev", "--traces", "nowhere"], ["no trace file or folder nowhere"]),
        (["fuzz", "--blocks", "four"], ["--blocks four", "whole numbers"]),
        (["fuzz", "--holders", "0"], ["holders is 0", "at least 1"]),
        (["explore", "--shared", "3"], ["shared is 3", "only 1 hash blocks deep"]),
        (["replay", "absent.itf.json"], ["no trace file absent.itf.json"]),
    ],
)
def test_bad_input_ends_with_2_and_says_what_would_be_right(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: list[str]
) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 2
    for word in words:
        assert word in out + err
    assert "Traceback" not in out + err


def test_adapter_that_raises_is_an_error_of_the_adapter(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "fuzz", "--target", "faulty_adapters:Raises", "--seed", "1")
    assert code == 2
    assert "raised KeyError: 'no such block'" in out
    assert "faulty_adapters.py:" in out
    assert "fix the adapter" in out


def test_target_that_changes_its_mind_is_not_reproducible(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "fuzz", "--target", "faulty_adapters:Moody", "--seed", "1")
    assert code == 3
    assert "not reproducible" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"#meta": {"format": "ITF"', ["is not whole JSON", "cut"]),
        ('{"name": "something else"}', ["is no kvproof trace", "name"]),
        ('{"#meta": {"kvproof": {"schema": 99, "version": "9.0"}}, "states": []}', ["schema 99", "update kvproof"]),
        (
            '{"#meta": {"kvproof": {"schema": 1, "level": "pool", "target": "kvpool", "scope": {"block": 1}}}, '
            '"states": []}',
            ["unknown fields ['block']"],
        ),
    ],
)
def test_trace_that_cannot_be_read_ends_with_2_and_says_why(
    capsys: pytest.CaptureFixture[str], text: str, words: list[str]
) -> None:
    Path("bad.itf.json").write_text(text)
    code, _, err = run(capsys, "replay", "bad.itf.json")
    assert code == 2
    for word in words:
        assert word in err


def test_unknown_configuration_key_is_named_with_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text("[tool.kvproof]\nworkerz = 3\n")
    code, _, err = run(capsys, "gate", "--profile", "dev")
    assert code == 2
    assert "workerz" in err
    assert "pyproject.toml" in err
    assert "search_seconds" in err


def test_configured_target_is_used_where_none_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text('[tool.kvproof]\ntarget = "faulty_adapters:forgets"\nworkers = 1\n')
    code, out, _ = run(capsys, "fuzz", "--seed", "1")
    assert code == 1
    assert "Forgets" in out


def test_gate_of_a_faulty_pool_fails_and_keeps_going_through_all_suites(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(
        capsys,
        "gate",
        "--profile",
        "dev",
        "--workers",
        "1",
        "--target",
        "faulty_adapters:forgets",
        "--json",
        "out.json",
    )
    data = json.loads(Path("out.json").read_text())
    assert code == 1
    assert data["verdict"] == "violated"
    assert {suite["verdict"] for suite in data["suites"]} >= {"holds", "violated"}
    assert "suites did not hold" in out


def test_interrupted_run_keeps_the_trace_that_it_had_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kvfuzz.judge.Minimiser.minimise", interrupted)
    code, _, err = run(capsys, "fuzz", "--target", "faulty_adapters:forgets", "--seed", "1")
    assert code == 130
    assert ".kvproof/traces" in err
    (kept,) = Path(".kvproof/traces").glob("*.itf.json")
    assert json.loads(kept.read_text())["#meta"]["kvproof"]["proved_minimal"] is False


def test_targets_are_listed_without_loading_them(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "targets")
    assert code == 0
    assert "kvpool" in out
    assert "vllm@PATH" in out
