"""P1 to P12: what must hold on every step of a block pool.

The checks restate the rules from the side of what is visible; they do not reuse the transition relation, and they
are total: a lifted state of a broken pool may hold duplicates, unknown blocks or negative counts.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from kvspec.model import Step
from kvspec.pool import calls
from kvspec.pool.scope import PoolScope
from kvspec.pool.state import Geometry, PoolState
from kvspec.prefix import Identities
from kvspec.properties import Always

_TAKES: Final = calls.GetNewBlocks
_RELEASES: Final = (calls.FreeBlocks, calls.UnpinBlocks)
_IDENTIFIES: Final = (calls.CacheFullBlocks, calls.CachePartialBlock)


def _blocks(numbers: Any) -> str:
    return ", ".join(map(str, sorted(numbers)))


class PoolProperties:
    """The Always properties of one scope. Each method is one check; `always` lists them as values."""

    def __init__(self, scope: PoolScope, geometry: Geometry, identities: Identities) -> None:
        self.scope = scope
        self.geometry = geometry
        self.identities = identities
        self.nulls = frozenset(geometry.nulls)
        self._count = scope.prefixes * scope.depth * scope.groups

    def always(self) -> tuple[Always, ...]:
        return (
            Always(
                "P1",
                "A block is in its pool's free queue exactly once if its ref_cnt is 0 and it is not null, else never.",
                self.queued_iff_unreferenced,
                ("queues", "refs"),
            ),
            Always(
                "P2",
                "No operation writes in place to a block that is shared, identified, unowned or null.",
                self.writes_only_private,
                ("refs", "entries"),
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
                ("queues", "refs", "entries"),
            ),
            Always(
                "P5",
                "The reported free count is the length of the queue; usage is 1 - free / allocatable, within 0 and 1.",
                self.counters_count,
                ("queues", "free", "usage"),
            ),
            Always("P6", "A refused operation changes nothing.", self.refusal_is_atomic, ("*",)),
            Always(
                "P7",
                "The published events, replayed by a consumer that counts them, yield exactly the resident identities.",
                self.events_tell_residency,
                ("entries",),
            ),
            Always(
                "P8",
                "Blocks are taken from the head; an unidentified block returns to the head and an identified one to "
                "the tail, in the order given; an unpinned one to the tail; nothing else moves.",
                self.queue_order_follows,
                ("queues",),
            ),
            Always(
                "P9",
                "Every reuse watcher fires exactly once, when its block is taken or the cache is reset, before the "
                "block loses its entries or gains a reference.",
                self.watchers_fire_once,
                ("watchers",),
            ),
            Always(
                "P10",
                "A block's ref_cnt equals the number of references that holders have to it.",
                self.refs_equal_holders,
                ("refs", "tables"),
            ),
            Always(
                "P11",
                "A block is handed out without entries, and an entry appears only where it was registered or moved to.",
                self.entries_appear_when_registered,
                ("entries",),
            ),
            Always(
                "P12",
                "An entry disappears only when its block is taken, evicted, reset, promoted, replaced or moved from.",
                self.entries_disappear_for_cause,
                ("entries",),
            ),
        )

    # Structure of one state --------------------------------------------------------------------------------------

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
                return f"the free queue of pool {pool} names blocks {_blocks(foreign)} that it does not own"
        return ""

    def index_agrees(self, step: Step) -> str:
        state: PoolState = step.after
        if len(state.lookup) != len(state.entries):
            return (
                f"lookup knows {self._names(sum(state.lookup[len(state.entries) :], ()))} on blocks that no pool owns"
            )
        for block, (carried, found) in enumerate(zip(state.entries, state.lookup, strict=True)):
            if sorted(carried) != sorted(found):
                return f"block {block} carries {self._names(carried)} but lookup finds it under {self._names(found)}"
            if len(set(carried)) != len(carried):
                return f"block {block} carries an identity twice: {self._names(carried)}"
        if step.outcome is not None and step.outcome.label == "hit":
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
                return (
                    f"the null block {null} is identified as {self._names(state.entries[null] or state.lookup[null])}"
                )
            if state.refs[null] != 0:
                return f"the null block {null} has ref_cnt {state.refs[null]}"
            if step.outcome is not None and isinstance(step.call, _TAKES) and null in step.outcome.value:
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

    # What one call may do ----------------------------------------------------------------------------------------

    def writes_only_private(self, step: Step) -> str:
        if not isinstance(step.call, calls.WriteBlock) or step.outcome.label != "done":
            return ""
        block, before = step.call.block, step.before
        if block in self.nulls:
            return f"a write to the null block {block} was allowed"
        if before.refs[block] != 1 or before.entries[block]:
            return (
                f"a write to block {block} was allowed: ref_cnt {before.refs[block]}, entries "
                f"{self._names(before.entries[block])}"
            )
        return ""

    def refusal_is_atomic(self, step: Step) -> str:
        if step.outcome is None or step.outcome.label not in ("refused", "false", "miss"):
            return ""
        if step.outcome.effects:
            return f"the {step.outcome.label} operation had effects {list(step.outcome.effects)}"
        for field, was, now in zip(step.before._fields, step.before, step.after, strict=True):
            if was != now:
                return f"the {step.outcome.label} operation changed {field} from {was} to {now}"
        return ""

    def events_tell_residency(self, step: Step) -> str:
        if step.outcome is None or not self.scope.events:
            return ""
        mirror, resident = self._resident(step.before), self._resident(step.after)
        for kind, what in step.outcome.effects:
            if kind == "stored":
                mirror[what] += 1
            elif kind == "removed":
                mirror[what] -= 1
                if mirror[what] < 0:
                    return f"{self._published_name(what)} was published as removed while it was not stored"
            elif kind == "cleared":
                first = what * self._count
                mirror = Counter({k: n for k, n in mirror.items() if not first <= k < first + self._count})
        for what in sorted(set(mirror) | set(resident)):
            if mirror[what] != resident[what]:
                return (
                    f"a consumer of the events counts {mirror[what]} blocks for {self._published_name(what)}; "
                    f"{resident[what]} are resident"
                )
        return ""

    def _resident(self, state: PoolState) -> Counter[int]:
        owner = self.geometry.owner
        return Counter(
            owner[block] * self._count + identity for block, carried in enumerate(state.entries) for identity in carried
        )

    def _published_name(self, what: int) -> str:
        pool, identity = divmod(what, self._count)
        return self.identities.name(identity) + (f" of pool {pool}" if len(self.geometry.sizes) > 1 else "")

    def queue_order_follows(self, step: Step) -> str:
        if step.outcome is None:
            return ""
        before, after, call = step.before, step.after, step.call
        for pool, (was, now) in enumerate(zip(before.queues, after.queues, strict=True)):
            expected: tuple[int, ...] = was
            if isinstance(call, _TAKES) and step.outcome.label == "done" and call.pool == pool:
                if step.outcome.value != was[: call.num_blocks]:
                    return (
                        f"took {list(step.outcome.value)} from a queue that starts with {list(was[: call.num_blocks])}"
                    )
                expected = was[call.num_blocks :]
            elif isinstance(call, calls.TouchBlocks) and step.outcome.label == "done":
                expected = tuple(block for block in was if block not in call.blocks)
            elif isinstance(call, calls.HitBlocks) and step.outcome.label == "hit":
                expected = tuple(block for block in was if block not in step.outcome.value)
            elif isinstance(call, _RELEASES) and step.outcome.label == "done":
                expected = self._after_release(before, call, pool)
            if now != expected:
                return f"the free queue of pool {pool} went from {list(was)} to {list(now)}; expected {list(expected)}"
        return ""

    def _after_release(
        self, before: PoolState, call: calls.FreeBlocks | calls.UnpinBlocks, pool: int
    ) -> tuple[int, ...]:
        """A block joins the queue at the entry of the list that gives up its last reference."""
        left = Counter({block: before.refs[block] for block in call.blocks if block != calls.STRANGER})
        head: list[int] = []
        tail: list[int] = []
        for block in call.blocks:
            if block == calls.STRANGER or block in self.nulls or self.geometry.owner[block] != pool:
                continue
            left[block] -= 1
            if left[block] == 0:
                kept = before.entries[block] and self.scope.caching
                last = kept or isinstance(call, calls.UnpinBlocks) or not self.scope.lifo
                (tail if last else head).append(block)
        return (*head, *before.queues[pool], *tail)

    def watchers_fire_once(self, step: Step) -> str:
        if step.outcome is None:
            return ""
        before: PoolState = step.before
        late = [what for kind, what in step.outcome.effects if kind == "fired_late"]
        if late:
            return f"watchers of blocks {_blocks(late)} fired after the block lost its entries or gained a reference"
        fired = Counter(what for kind, what in step.outcome.effects if kind == "fired")
        due: Counter[int] = Counter()
        if isinstance(step.call, _TAKES) and step.outcome.label == "done":
            due = Counter(
                {block: before.watchers[block] for block in step.outcome.value if block < len(before.watchers)}
            )
        elif isinstance(step.call, calls.ResetPrefixCache) and step.outcome.label == "true":
            due = Counter({block: before.watchers[block] for block in self.geometry.blocks_of(step.call.pool)})
        for block in sorted(set(fired) | set(due)):
            if fired[block] != due[block]:
                return f"{fired[block]} watchers of block {block} fired; {due[block]} were due"
        return ""

    def entries_appear_when_registered(self, step: Step) -> str:
        if step.outcome is None:
            return ""
        call, before, after = step.call, step.before, step.after
        if isinstance(call, _TAKES) and step.outcome.label == "done":
            for block in step.outcome.value:
                if after.entries[block] or after.lookup[block]:
                    return f"block {block} was handed out while it carries {self._names(after.entries[block])}"
        for block, carried in enumerate(after.entries):
            new = set(carried) - set(before.entries[block])
            if not new:
                continue
            if isinstance(call, calls.MoveBlockHashes):
                allowed = set(before.entries[call.src]) if block == call.dst else set()
            elif isinstance(call, _IDENTIFIES):
                allowed = self._registered(call, block)
            else:
                allowed = set()
            if new - allowed:
                return f"block {block} gained {self._names(new - allowed)}, which nobody registered for it"
        return ""

    def _registered(self, call: calls.CacheFullBlocks | calls.CachePartialBlock, block: int) -> set[int]:
        if isinstance(call, calls.CachePartialBlock):
            if block != call.block or not 1 <= call.boundary <= self.scope.depth:
                return set()
            return {self.identities.pack(call.prefix, call.boundary, call.group)}
        span = self.scope.spans[call.group]
        return {
            self.identities.pack(call.prefix, (call.at + i + 1) * span, call.group)
            for i, listed in enumerate(call.blocks)
            if listed == block
            and (call.at + i + 1) * span <= self.scope.depth
            and not (call.skip > 0 and call.skip >> i & 1)
        }

    def entries_disappear_for_cause(self, step: Step) -> str:
        if step.outcome is None:
            return ""
        call, before, after = step.call, step.before, step.after
        for block, carried in enumerate(before.entries):
            lost = set(carried) - set(after.entries[block])
            if lost and not self._may_lose(call, step.outcome.value, block):
                return f"block {block} lost {self._names(lost)} without cause"
        return ""

    def _may_lose(self, call: Any, value: tuple[int, ...], block: int) -> bool:
        if isinstance(call, _TAKES):
            return block in value
        if isinstance(call, calls.EvictBlocks):
            return self.geometry.owner[block] == call.pool and self.geometry.local[block] in call.ids
        if isinstance(call, calls.ResetPrefixCache):
            return self.geometry.owner[block] == call.pool
        if isinstance(call, calls.CacheFullBlocks):
            return block in call.blocks
        if isinstance(call, calls.CachePartialBlock):
            return block == call.block
        return isinstance(call, calls.MoveBlockHashes) and block == call.src

    def _names(self, identities: Any) -> str:
        return "[" + ", ".join(self.identities.name(identity) for identity in identities) + "]"
