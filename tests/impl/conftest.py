"""Requests with real hashes, and pools in the states that the tests of kvpool start from."""

from collections.abc import Callable

import pytest

from kvpool import BlockPool, KVCacheBlock, PrefixHasher, Request

HASH_BLOCK_SIZE = 4

MakeRequest = Callable[..., Request]


@pytest.fixture
def make_request() -> MakeRequest:
    """make_request(3) has three complete hash blocks; `first_token` tells prefixes apart."""

    def make(num_blocks: int, first_token: int = 10, request_id: str = "request", **more: object) -> Request:
        tokens = list(range(first_token, first_token + num_blocks * HASH_BLOCK_SIZE))
        return Request(request_id, tokens, hasher=PrefixHasher(HASH_BLOCK_SIZE), **more)  # type: ignore[arg-type]

    return make


@pytest.fixture
def pool() -> BlockPool:
    """Nine usable blocks, caching and events on."""
    return BlockPool(10, True, HASH_BLOCK_SIZE, enable_kv_cache_events=True)


@pytest.fixture
def cached_chain(pool: BlockPool, make_request: MakeRequest) -> tuple[Request, list[KVCacheBlock]]:
    """A request whose three full blocks of `pool` are held and cached; the events are taken."""
    request = make_request(3)
    blocks = pool.get_new_blocks(3)
    pool.cache_full_blocks(request, blocks, 0, 3, HASH_BLOCK_SIZE, 0)
    pool.take_events()
    return request, blocks
