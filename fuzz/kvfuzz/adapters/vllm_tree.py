"""The real block pool of any vLLM version, loaded from a source tree without installing vLLM.

`load_tree` executes `block_pool.py`, `kv_cache_utils.py` and `kv_events.py` of the tree unmodified (see
vllm_importer) and returns what the adapter needs of them. What this module does not do: it drives and
observes nothing (the adapter does), and it makes no managers and no scheduler. It owns no property.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kvfuzz.adapters.vllm_importer import TreeImporter
from kvfuzz.adapters.vllm_location import FETCH_HINT, find_root, find_version
from kvfuzz.adapters.vllm_pool import UpstreamPool
from kvfuzz.adapters.vllm_request import RequestHashing, reproducible_seed
from kvfuzz.adapters.vllm_versions import tried_versions
from kvfuzz.errors import TargetError

_NEEDED: dict[str, tuple[str, ...]] = {
    "vllm.v1.core.kv_cache_utils": ("KVCacheBlock",),
    "vllm.distributed.kv_events": ("AllBlocksCleared", "BlockRemoved", "BlockStored"),
    "vllm.v1.core.block_pool": ("BlockPool",),
}
_NEEDED_METHODS = {
    "cache_full_blocks": "kv_cache_group_id",
    "free_blocks": "",
    "get_cached_block": "kv_cache_group_ids",
    "get_new_blocks": "",
    "get_num_free_blocks": "",
    "get_usage": "",
    "reset_prefix_cache": "",
    "take_events": "",
    "touch": "blocks",
}
"""Methods without which no pool action can be driven, with the parameter that each must have."""


def load_tree(path: Path | None) -> UpstreamPool:
    """Load the pool of the tree at `path` (its root or its `vllm` directory; None: the installed vLLM).

    Raises TargetError when there is no tree, when a package that the files import is missing, when a file of
    the tree fails on import, or when the version lacks what is needed. Nothing is kept of a failed load.
    """
    root = find_root(path)
    version = find_version(root)
    importer = TreeImporter(root, f"vLLM {version} at {root}")
    try:
        with reproducible_seed():
            upstream = _assemble(importer, version)
    except TargetError:
        importer.forget()
        raise
    except Exception as error:
        importer.forget()
        raise TargetError(_about_failure(error, root, version)) from error
    importer.seal.close()
    return upstream


def _assemble(importer: TreeImporter, version: str) -> UpstreamPool:
    absent = [dotted for dotted in _NEEDED if importer.source(dotted) is None]
    _refuse_if(absent, version, importer.root)
    modules = {dotted: importer.load(dotted) for dotted in _NEEDED}
    _refuse_if(
        [
            f"{dotted}.{name}"
            for dotted, names in _NEEDED.items()
            for name in names
            if not hasattr(modules[dotted], name)
        ],
        version,
        importer.root,
    )
    hashing, events, core = modules.values()
    pool_class = core.BlockPool
    _refuse_if(_missing_methods(pool_class), version, importer.root)
    touched = str(inspect.signature(pool_class.touch).parameters["blocks"].annotation)
    return UpstreamPool(
        version=version,
        root=importer.root,
        BlockPool=pool_class,
        KVCacheBlock=hashing.KVCacheBlock,
        BlockStored=events.BlockStored,
        BlockRemoved=events.BlockRemoved,
        AllBlocksCleared=events.AllBlocksCleared,
        hashing=hashing,
        request_hashing=RequestHashing(hashing, _hash_function(importer)),
        constructor_parameters=tuple(inspect.signature(pool_class).parameters),
        methods=frozenset(name for name, _ in inspect.getmembers(pool_class, callable) if name[0] != "_"),
        cache_full_parameters=frozenset(inspect.signature(pool_class.cache_full_blocks).parameters),
        touch_takes_groups=touched.startswith("tuple["),
    )


def _missing_methods(pool_class: Any) -> list[str]:
    missing = []
    for name, parameter in _NEEDED_METHODS.items():
        method = getattr(pool_class, name, None)
        if method is None:
            missing.append(f"BlockPool.{name}")
        elif parameter and parameter not in inspect.signature(method).parameters:
            missing.append(f"BlockPool.{name}({parameter})")
    return missing


def _hash_function(importer: TreeImporter) -> Callable[[Any], Any]:
    """vLLM's sha256, which moved out of vllm.utils in 0.11.1."""
    home = "vllm.utils.hashing" if importer.source("vllm.utils.hashing") else "vllm.utils"
    function: Callable[[Any], Any] = importer.load(home).sha256
    return function


def _refuse_if(missing: Sequence[str], version: str, root: Path) -> None:
    if missing:
        raise TargetError(
            f"vLLM {version} at {root} cannot be driven: it lacks {', '.join(missing)}. "
            f"Tried and usable are {tried_versions()}. Use one of them; {FETCH_HINT}"
        )


def _about_failure(error: Exception, root: Path, version: str) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.partition(".")[0] != "vllm":
        return (
            f"vLLM {version} at {root} needs the package {error.name.partition('.')[0]!r}, "
            "which is not installed. Run `pip install 'kvproof[vllm]'`"
        )
    place = f"{root}"
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{error.filename}:{error.lineno}"
    else:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(root)]
        if frames:
            place = f"{frames[-1].filename}:{frames[-1].lineno}"
    return (
        f"vLLM {version} fails on import at {place}: {type(error).__name__}: {error}. "
        "The file is the tree's own, loaded unmodified with stand-ins around it. "
        "Check that the tree is complete and that its Python version matches this one"
    )
