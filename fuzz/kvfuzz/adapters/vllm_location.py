"""Where a vLLM source tree is and which version it holds.

A tree is a directory that contains `vllm/v1/core/block_pool.py`: a checkout, an unpacked wheel or source
distribution, or the site-packages directory of an installed vLLM. Nothing here imports vLLM, not even to find
an installed one. This module does not judge whether the tree is complete (vllm_tree). It owns no property.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from kvfuzz.errors import TargetError

POOL_FILE = Path("vllm/v1/core/block_pool.py")
UNKNOWN_VERSION = "unknown"
FETCH_HINT = "fetch one with `python -m kvfuzz.adapters.fetch_tree 0.32.0 --into .vllm-trees`"

_ARCHIVE_SUFFIXES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar")
_VERSION_LINE = re.compile(r"^__version__\s*=\s*(?:version\s*=\s*)?['\"]([^'\"]+)['\"]", re.MULTILINE)
_METADATA_LINE = re.compile(r"^Version:\s*(\S+)", re.MULTILINE)


def find_root(path: Path | None) -> Path:
    """The directory that contains the `vllm` package, resolved.

    `path` is that directory, or the `vllm` directory itself, or None for the installed vLLM. Raises
    TargetError that says what was looked for and what is there instead.
    """
    if path is None:
        path = _installed_root()
    if not path.exists():
        raise TargetError(f"no vLLM tree at {path}: the path does not exist. Give a source tree, or {FETCH_HINT}")
    if path.is_file():
        raise TargetError(_about_file(path))
    path = path.resolve()
    for root in (path, path.parent) if path.name == "vllm" else (path,):
        if (root / POOL_FILE).is_file():
            return root
    raise TargetError(_about_directory(path))


def find_version(root: Path) -> str:
    """The version that the tree states about itself, else "unknown" (a plain checkout states none)."""
    sources = [
        (root / "vllm" / "_version.py", _VERSION_LINE),
        (root / "PKG-INFO", _METADATA_LINE),
        *((file, _METADATA_LINE) for file in sorted(root.glob("vllm*.dist-info/METADATA"))),
        *((file, _METADATA_LINE) for file in sorted(root.glob("vllm*.egg-info/PKG-INFO"))),
    ]
    for file, pattern in sources:
        if file.is_file():
            match = pattern.search(file.read_text(encoding="utf-8", errors="replace"))
            if match:
                return match.group(1)
    return UNKNOWN_VERSION


def _installed_root() -> Path:
    try:
        spec = importlib.util.find_spec("vllm")
    except ValueError:  # `vllm` is in sys.modules without a spec: some other stub put it there
        spec = None
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not places:
        raise TargetError(
            "vLLM is not installed in this environment, and no tree was named. "
            f"Name a source tree (`vllm@PATH`), or {FETCH_HINT}"
        )
    return Path(places[0]).parent


def _about_file(path: Path) -> str:
    if path.name.endswith(_ARCHIVE_SUFFIXES):
        return (
            f"{path} is not a vLLM tree: this looks like a wheel or source archive. A directory with "
            f"{POOL_FILE} was expected. Unpack it first (for a wheel: `unzip -d TREE {path.name}`)"
        )
    return f"{path} is not a vLLM tree but a file. A directory with {POOL_FILE} was expected. Name its root"


def _about_directory(path: Path) -> str:
    looked = f"{path} holds no usable vLLM tree: {POOL_FILE} was not found there"
    nested = sorted(file.parents[3] for file in path.glob(f"*/{POOL_FILE}"))
    if nested:
        return f"{looked}, but {nested[0]} holds one. Name that directory"
    package = path / "vllm" if (path / "vllm").is_dir() else path
    if package.name == "vllm" and (package / "__init__.py").is_file():
        version = find_version(package.parent)
        age = "it only has the V0 block manager" if (package / "core").is_dir() else "it has no V1 core"
        return f"{looked}. This is vLLM {version}, and {age}. Version 0.10.1 or later is needed; {FETCH_HINT}"
    archives = sorted(file.name for file in path.iterdir() if file.name.endswith(_ARCHIVE_SUFFIXES))
    if archives:
        return f"{looked}, only the archive {archives[0]}. Unpack it first, then name the unpacked directory"
    names = sorted(file.name for file in path.iterdir())
    there = f"{len(names)} other entries ({', '.join(names[:5])})" if names else "nothing at all"
    return f"{looked}; it holds {there}. Name the directory that contains the `vllm` package, or {FETCH_HINT}"
