"""kvproof as tests of `Pool`."""

from adapter import MyAdapter
from hypothesis import Phase, settings

from kvfuzz.adapter import in_dialect
from kvfuzz.explorer import Explorer
from kvfuzz.machine import PoolMachine
from kvspec.pool import PoolModel, PoolScope

SCOPE = in_dialect(PoolScope(blocks=(5,), holders=2, prefixes=2, depth=3, hold=3), MyAdapter())


class MyPoolMachine(PoolMachine):
    target = MyAdapter
    scope = SCOPE


class TestMyPool(MyPoolMachine.TestCase):
    """Random runs; Hypothesis shrinks a failing one and prints it step by step."""

    # Explaining a failure line by line takes far longer than finding and shrinking it.
    settings = settings(max_examples=50, stateful_step_count=30, deadline=None, phases=set(Phase) - {Phase.explain})


def test_every_state_of_a_small_pool():
    scope = SCOPE._replace(blocks=(2,), depth=2, hold=2)
    result = Explorer(PoolModel(scope), MyAdapter()).run()
    assert result.failure is None, result.failure.headline
    assert result.exhausted
    assert result.coverage.missing == []
