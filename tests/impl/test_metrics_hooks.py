"""The metrics collector: told of allocations, touches and evictions, and unable to harm the pool."""

import pytest

from kvpool import BlockPool, KVCacheBlock, ReentrantCallError


class Collector:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def on_block_allocated(self, block: KVCacheBlock) -> None:
        self.told.append(("allocated", block.block_id))

    def on_block_accessed(self, block: KVCacheBlock) -> None:
        self.told.append(("accessed", block.block_id))

    def on_block_evicted(self, block: KVCacheBlock) -> None:
        self.told.append(("evicted", block.block_id))

    def reset(self) -> None:
        self.told.append(("reset", -1))


@pytest.fixture
def collector() -> Collector:
    return Collector()


@pytest.fixture
def metered(collector: Collector) -> BlockPool:
    return BlockPool(4, True, 4, metrics_collector=collector)


def test_collector_hears_of_every_block_once(metered: BlockPool, collector: Collector) -> None:
    (block,) = metered.get_new_blocks(1)
    metered.touch([block, metered.null_block, block])
    metered.free_blocks([block] * 3)
    metered.evict_blocks([2])
    metered.reset_prefix_cache()
    assert collector.told == [
        ("evicted", 1),
        ("allocated", 1),
        ("accessed", 1),
        ("accessed", 1),
        ("evicted", 2),
        ("reset", -1),
    ]


def test_nothing_is_evicted_without_caching(collector: Collector) -> None:
    BlockPool(4, False, 4, metrics_collector=collector).get_new_blocks(2)
    assert collector.told == [("allocated", 1), ("allocated", 2)]


def test_refused_calls_are_not_reported(metered: BlockPool, collector: Collector) -> None:
    for call in (lambda: metered.get_new_blocks(4), lambda: metered.touch([metered.blocks[1], KVCacheBlock(2)])):
        with pytest.raises(ValueError, match="refused"):
            call()
    assert collector.told == []


def test_collector_may_be_set_later(collector: Collector) -> None:
    pool = BlockPool(4, True, 4)
    (block,) = pool.get_new_blocks(1)
    pool.metrics_collector = collector
    pool.touch([block])
    pool.metrics_collector = None
    pool.touch([block])
    assert collector.told == [("accessed", 1)]


def test_failing_collector_is_logged_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Collector):
        def on_block_allocated(self, block: KVCacheBlock) -> None:
            raise OSError("no metrics today")

    pool = BlockPool(4, True, 4, metrics_collector=Failing())
    blocks = pool.get_new_blocks(2)
    assert len(blocks) == 2
    assert "no metrics today" in caplog.text
    pool.check({"test": blocks})


def test_collector_that_changes_its_pool_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    class Meddling(Collector):
        def on_block_accessed(self, block: KVCacheBlock) -> None:
            try:
                pool.free_blocks([block])
            except ReentrantCallError:
                self.told.append(("refused", block.block_id))
                raise

    collector = Meddling()
    pool = BlockPool(4, True, 4, metrics_collector=collector)
    blocks = pool.get_new_blocks(1)
    pool.touch(blocks)
    assert collector.told[-1] == ("refused", 1)
    assert "free_blocks refused" in caplog.text
    pool.free_blocks(blocks * 2)
    pool.check({})
