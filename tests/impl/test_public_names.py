"""The public surface: what kvpool exports, and upstream's names and signatures on the pool."""

import inspect

import pytest

import kvpool
from kvpool import BlockPool, errors


def test_every_listed_name_exists_and_every_error_is_listed() -> None:
    assert len(set(kvpool.__all__)) == len(kvpool.__all__)
    assert all(hasattr(kvpool, name) for name in kvpool.__all__)
    assert {*errors.__all__} <= {*kvpool.__all__}


def test_errors_form_one_tree() -> None:
    for name in errors.__all__:
        error = getattr(errors, name)
        if isinstance(error, type) and issubclass(error, BaseException):
            assert issubclass(error, kvpool.KVPoolError)
            assert issubclass(error, ValueError) == (error not in (kvpool.KVPoolError, kvpool.InvariantViolation))
            assert (error.__doc__ or "").endswith(".")


SIGNATURES = {
    "__init__": "num_gpu_blocks enable_caching hash_block_size enable_kv_cache_events metrics_collector "
    "num_hash_lookahead_tokens medium",
    "get_cached_block": "block_hash kv_cache_group_ids",
    "cache_full_blocks": "request blocks num_cached_blocks num_full_blocks block_size kv_cache_group_id block_mask",
    "cache_partial_block": "request block num_tokens kv_cache_group_id block_size replace_existing_hashes",
    "emit_cached_block_events": "request num_cached_blocks block_size kv_cache_group_id",
    "move_block_hashes": "src_block dst_block",
    "get_new_blocks": "num_blocks",
    "touch": "blocks",
    "is_block_writable": "block",
    "free_blocks": "ordered_blocks",
    "unpin_blocks": "blocks on_reuse",
    "evict_blocks": "block_ids",
    "reset_prefix_cache": "",
    "get_num_free_blocks": "",
    "get_usage": "",
    "take_events": "",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_method_takes_upstreams_arguments(name: str) -> None:
    parameters = list(inspect.signature(getattr(BlockPool, name)).parameters)
    assert parameters == ["self", *SIGNATURES[name].split()]


def test_attributes_that_upstreams_managers_read() -> None:
    pool = BlockPool(5, True, 4, medium="CPU")
    assert (pool.num_gpu_blocks, pool.enable_caching, pool.hash_block_size, pool.medium) == (5, True, 4, "CPU")
    assert (pool.enable_kv_cache_events, pool.kv_event_queue, pool.num_hash_lookahead_tokens) == (False, [], 0)
    assert (pool.metrics_collector, pool.null_block.block_id, len(pool.blocks)) == (None, 0, 5)
    assert pool.free_block_queue.num_free_blocks == 4
    assert pool.cached_block_hashes_by_block == {}
    assert not pool.cached_block_hash_to_block
