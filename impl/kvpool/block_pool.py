"""The block pool: who holds which block, which block is next, and what each block stands for.

Names and signatures are vLLM V1's, so that this pool can take the place of upstream's. It keeps books only:
tensors, copies and requests live elsewhere, and calls must come from one thread. Every method looks first
and changes afterwards, so a refused call has changed nothing (P6).

The two halves are `references` and `prefix_cache`; `check()` audits P1, P3, P4, P5, P9 and P10.
"""

from __future__ import annotations

from .prefix_cache import PrefixCache
from .references import References

__all__ = ["BlockPool"]


class BlockPool(References, PrefixCache):
    """A pool of `num_gpu_blocks` blocks, block 0 being the null block.

    `hash_block_size` is the number of tokens that one block hash covers; block sizes of the KV-cache groups
    are multiples of it. With `enable_kv_cache_events`, changes of the prefix cache are queued for
    `take_events`. `metrics_collector` hears of allocations, touches and evictions. `num_hash_lookahead_tokens` is
    how many tokens behind its block each hash covers, and `medium` where the blocks live: both only shape events.

    Raises InvalidArgumentError for sizes that are not positive.
    """
