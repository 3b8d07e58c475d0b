"""P2, P6 to P9, P11, P12: what one call may do to a block pool.

The checks restate the rules from the side of what is visible; they do not reuse the transition relation, and they
are total: the states may be lifted from a broken pool.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from kvspec.model import Step
from kvspec.pool import calls
from kvspec.pool.state import PoolState
from kvspec.pool.subject import PoolSubject, numbers
from kvspec.properties import Always

_TAKES: Final = calls.GetNewBlocks
_RELEASES: Final = (calls.FreeBlocks, calls.UnpinBlocks)
_IDENTIFIES: Final = (calls.CacheFullBlocks, calls.CachePartialBlock)


class StepProperties(PoolSubject):
    """Each method is one check; `always` lists them as values."""

    def always(self) -> tuple[Always, ...]:
        """In the order of their ids."""
        return (
            Always(
                "P2",
                "No operation writes in place to a block that is shared, identified, unowned or null.",
                self.writes_only_private,
                ("refs", "entries"),
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
                ("queues", "refs", "entries"),
            ),
            Always(
                "P9",
                "Every reuse watcher fires exactly once, when its block is taken or the cache is reset, before the "
                "block loses its entries or gains a reference.",
                self.watchers_fire_once,
                ("watchers",),
            ),
            Always(
                "P11",
                "A block is handed out without entries, and an entry appears only where it was registered or moved to.",
                self.entries_appear_when_registered,
                ("entries", "lookup"),
            ),
            Always(
                "P12",
                "An entry disappears only when its block is taken, evicted, reset, promoted, replaced or moved from.",
                self.entries_disappear_for_cause,
                ("entries",),
            ),
        )

    def writes_only_private(self, step: Step) -> str:
        if not isinstance(step.call, calls.WriteBlock) or step.outcome.label != "done":
            return ""
        block, before = step.call.block, step.before
        if block in self.nulls:
            return f"a write to the null block {block} was allowed"
        if before.refs[block] != 1 or before.entries[block]:
            return (
                f"a write to block {block} was allowed: ref_cnt {before.refs[block]}, entries "
                f"{self.names(before.entries[block])}"
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
        if not step.outcome.effects and step.before.entries == step.after.entries:
            return ""
        before, resident = self._resident(step.before), self._resident(step.after)
        mirror = before.copy()
        for kind, what in step.outcome.effects:
            if kind == "stored":
                mirror[what] += 1
                if mirror[what] > max(before[what], resident[what]):
                    return f"{self._published_name(what)} was published as stored before it was removed"
            elif kind == "removed":
                mirror[what] -= 1
                if mirror[what] < 0:
                    return f"{self._published_name(what)} was published as removed while it was not stored"
            elif kind == "cleared":
                first = what * self.per_pool
                mirror = Counter({k: n for k, n in mirror.items() if not first <= k < first + self.per_pool})
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
            owner[block] * self.per_pool + identity
            for block, carried in enumerate(state.entries)
            for identity in carried
        )

    def _published_name(self, what: int) -> str:
        pool, identity = divmod(what, self.per_pool)
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
            return f"watchers of blocks {numbers(late)} fired after the block lost its entries or gained a reference"
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
                if 0 <= block < len(after.entries) and (after.entries[block] or after.lookup[block]):
                    return f"block {block} was handed out while it carries {self.names(after.entries[block])}"
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
                return f"block {block} gained {self.names(new - allowed)}, which nobody registered for it"
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
                return f"block {block} lost {self.names(lost)} without cause"
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
