"""The loader on one real vLLM release: events, hashes and the recorded survey.

The tree is `.vllm-trees/vllm-0.32.0`, or the one that the environment variable KVPROOF_VLLM_TREE names.
Without one the tests are skipped and say how to get it.
"""

import os
from pathlib import Path

import pytest

from kvfuzz.adapters.vllm_location import POOL_FILE
from kvfuzz.adapters.vllm_pool import UpstreamPool
from kvfuzz.adapters.vllm_survey import lacks, unhashed_release_end
from kvfuzz.adapters.vllm_tree import load_tree
from kvfuzz.adapters.vllm_versions import OPTIONAL_METHODS, TRIED

REPOSITORY = Path(__file__).parents[2]
REAL_TREE = Path(os.environ.get("KVPROOF_VLLM_TREE", REPOSITORY / ".vllm-trees" / "vllm-0.32.0"))
pytestmark = pytest.mark.skipif(
    not (REAL_TREE / POOL_FILE).is_file(),
    reason=f"no vLLM tree at {REAL_TREE}: `python -m kvfuzz.adapters.fetch_tree 0.32.0 --into .vllm-trees`",
)


@pytest.fixture(scope="module")
def real() -> UpstreamPool:
    return load_tree(REAL_TREE)


def test_the_real_pool_agrees_with_the_recorded_survey(real: UpstreamPool) -> None:
    assert lacks(real) == TRIED.get(real.version, lacks(real))
    assert unhashed_release_end(real) == ("head" if "cache_partial_block" in real.methods else "tail")
    assert set(OPTIONAL_METHODS) - set(lacks(real)) <= real.methods


def test_the_real_pool_stores_and_removes_what_its_events_say(real: UpstreamPool) -> None:
    pool = real.make_pool(3, hash_block_size=4, events=True)
    request = real.make_request(range(8), 4)
    blocks = pool.get_new_blocks(2)
    real.cache_full_blocks(pool, request, blocks, 0, 2, 4)
    pool.free_blocks(reversed(blocks))
    pool.get_new_blocks(2)
    stored, *removed = pool.take_events()
    assert isinstance(stored, real.BlockStored)
    assert stored.block_hashes == [real.event_hash(block_hash) for block_hash in request.block_hashes]
    assert [type(event) for event in removed] == [real.BlockRemoved, real.BlockRemoved]
    assert real.index_entries(pool) == {}


def test_everything_that_changes_kv_changes_the_real_hashes(real: UpstreamPool) -> None:
    def first_hash(**changes: object) -> object:
        return real.make_request(range(4), 4, **changes).block_hashes[0]  # type: ignore[arg-type]

    variants = [
        first_hash(),
        first_hash(cache_salt="tenant"),
        first_hash(lora_name="adapter"),
        first_hash(mm_items=[("image", 1, 2)]),
    ]
    assert len(set(variants)) == len(variants)


def test_the_window_of_multimodal_items_is_computed_by_the_real_function(real: UpstreamPool) -> None:
    items = [("image", 1, 2), ("video", 5, 2)]
    request = real.make_request(range(5), 4, mm_items=items)
    request.append([5, 6, 7])
    assert request.block_hashes == real.make_request(range(8), 4, mm_items=items).block_hashes
