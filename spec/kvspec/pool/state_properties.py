"""P1, P3, P4, P5, P10: what holds in every state of a block pool, whatever was called.

The checks are total: a lifted state of a broken pool may hold duplicates, unknown blocks or negative counts.
"""

from __future__ import annotations

from collections import Counter

from kvspec.model import Step
from kvspec.pool import calls
from kvspec.pool.state import PoolState
from kvspec.pool.subject import PoolSubject, numbers
from kvspec.properties import Always


class StateProperties(PoolSubject):
    """Each method is one check; `always` lists them as values."""

    def always(self) -> tuple[Always, ...]:
        """In the order of their ids."""
        return (
            Always(
                "P1",
                "A block is in its pool's free queue exactly once if its ref_cnt is 0 and it is not null, else never.",
                self.queued_iff_unreferenced,
                ("queues", "refs"),
                of_state=True,
            ),
            Always(
                "P3",
                "Lookup finds a block under an identity exactly if the block carries it, and answers with one.",
                self.index_agrees,
                ("entries", "lookup"),
            ),
            Always(
                "P4",
                "The null block is never queued, never identified and never counted.",
                self.null_stays_apart,
                ("queues", "refs", "entries", "lookup"),
            ),
            Always(
                "P5",
                "The reported free count is the length of the queue; usage is 1 - free / allocatable, within 0 and 1.",
                self.counters_count,
                ("queues", "free", "usage"),
                of_state=True,
            ),
            Always(
                "P10",
                "A block's ref_cnt equals the number of references that holders have to it.",
                self.refs_equal_holders,
                ("refs", "tables"),
                of_state=True,
            ),
        )

    def queued_iff_unreferenced(self, step: Step) -> str:
        state: PoolState = step.after
        for pool, queue in enumerate(state.queues):
            times = Counter(queue)
            for block in self.geometry.blocks_of(pool):
                if block in self.nulls:
                    continue
                expected = 1 if state.refs[block] == 0 else 0
                if times[block] != expected:
                    return (
                        f"block {block} has ref_cnt {state.refs[block]} and stands {times[block]} times in the free "
                        f"queue of pool {pool} ({list(queue)}); expected {expected}"
                    )
            foreign = set(queue) - set(self.geometry.blocks_of(pool))
            if foreign:
                return f"the free queue of pool {pool} names blocks {numbers(foreign)} that it does not own"
        return ""

    def index_agrees(self, step: Step) -> str:
        state: PoolState = step.after
        if len(state.lookup) != len(state.entries):
            return f"lookup knows {self.names(sum(state.lookup[len(state.entries) :], ()))} on blocks that no pool owns"
        for block, (carried, found) in enumerate(zip(state.entries, state.lookup, strict=True)):
            if sorted(carried) != sorted(found):
                return f"block {block} carries {self.names(carried)} but lookup finds it under {self.names(found)}"
            if len(set(carried)) != len(carried):
                return f"block {block} carries an identity twice: {self.names(carried)}"
        if isinstance(step.call, calls.GetCachedBlock | calls.HitBlocks) and step.outcome.label == "hit":
            call = step.call
            for group, block in zip(call.groups, step.outcome.value, strict=False):
                identity = self.identities.pack(call.prefix, call.boundary, group)
                if not 0 <= block < len(step.before.entries) or identity not in step.before.entries[block]:
                    return f"lookup of {self.identities.name(identity)} answered block {block}, which does not carry it"
        return ""

    def null_stays_apart(self, step: Step) -> str:
        state: PoolState = step.after
        for null in self.geometry.nulls:
            if any(null in queue for queue in state.queues):
                return f"the null block {null} is in a free queue"
            if state.entries[null] or state.lookup[null]:
                return f"the null block {null} is identified as {self.names(state.entries[null] or state.lookup[null])}"
            if state.refs[null] != 0:
                return f"the null block {null} has ref_cnt {state.refs[null]}"
            if step.outcome is not None and isinstance(step.call, calls.GetNewBlocks) and null in step.outcome.value:
                return f"the null block {null} was handed out"
        return ""

    def counters_count(self, step: Step) -> str:
        state: PoolState = step.after
        for pool, (free, usage) in enumerate(zip(state.free, state.usage(self.geometry), strict=True)):
            length, size = len(state.queues[pool]), self.geometry.sizes[pool]
            if free != length:
                return f"pool {pool} reports {free} free blocks, its queue holds {length}"
            if not 0.0 <= usage <= 1.0 or abs(usage - (1.0 - length / size)) > 1e-9:
                return f"pool {pool} reports usage {usage}; {length} of {size} blocks are free"
        return ""

    def refs_equal_holders(self, step: Step) -> str:
        state: PoolState = step.after
        held = Counter(block for table in state.tables for block in table)
        for block, refs in enumerate(state.refs):
            if refs != held[block] and block not in self.nulls:
                holders = [number for number, table in enumerate(state.tables) if block in table]
                return f"block {block} has ref_cnt {refs}; holders {holders} have {held[block]} references to it"
        return ""
