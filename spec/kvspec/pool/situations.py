"""Sometimes properties of the pool level: what a run must have met before its verdict counts.

Each situation says for which scopes it can occur; a scope that cannot reach it does not require it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kvspec.model import Step
from kvspec.pool import calls
from kvspec.pool.scope import PoolScope
from kvspec.pool.transitions import NOT_ENOUGH_FREE, REF_CNT_UNDERFLOW
from kvspec.properties import Sometimes


class Situation(NamedTuple):
    """A Sometimes property and the scopes in which it is within reach."""

    property: Sometimes
    possible: Callable[[PoolScope], bool]


def _is(step: Step, kind: type, label: str = "done") -> bool:
    return isinstance(step.call, kind) and step.outcome.label == label


def _taken_with_entries(step: Step) -> bool:
    return _is(step, calls.GetNewBlocks) and any(step.before.entries[block] for block in step.outcome.value)


def _refused_for_space(step: Step) -> bool:
    return _is(step, calls.GetNewBlocks, "refused") and step.outcome.reason == NOT_ENOUGH_FREE


def _shared(step: Step) -> bool:
    return any(refs > 1 for refs in step.after.refs)


def _revived(step: Step) -> bool:
    return _is(step, calls.HitBlocks, "hit") and any(step.before.refs[block] == 0 for block in step.outcome.value)


def _hit_while_held(step: Step) -> bool:
    return _is(step, calls.HitBlocks, "hit") and any(step.before.refs[block] > 0 for block in step.outcome.value)


def _duplicate_identity(step: Step) -> bool:
    carried = [identity for entries in step.after.entries for identity in entries]
    return len(set(carried)) != len(carried)


def _middle_of_queue_touched(step: Step) -> bool:
    if not _is(step, calls.TouchBlocks):
        return False
    inner = {block for queue in step.before.queues for block in queue[1:-1]}
    return any(block in inner for block in step.call.blocks)


def _released_both_lanes(step: Step) -> bool:
    if not _is(step, calls.FreeBlocks):
        return False
    freed = [b for b in step.call.blocks if b >= 0 and step.after.refs[b] == 0 and step.before.refs[b]]
    return len({bool(step.before.entries[block]) for block in freed}) == 2


def _released_several_pools(step: Step) -> bool:
    return (
        _is(step, calls.FreeBlocks)
        and sum(a != b for a, b in zip(step.before.queues, step.after.queues, strict=True)) > 1
    )


def _released_twice_in_one_call(step: Step) -> bool:
    return _is(step, calls.FreeBlocks) and len(set(step.call.blocks)) != len(step.call.blocks)


def _double_free_refused(step: Step) -> bool:
    return _is(step, calls.FreeBlocks, "refused") and step.outcome.reason == REF_CNT_UNDERFLOW


def _mixed_release_refused(step: Step) -> bool:
    return _double_free_refused(step) and any(b >= 0 and step.before.refs[b] > 0 for b in step.call.blocks)


def _unpinned_without_entry(step: Step) -> bool:
    if not _is(step, calls.UnpinBlocks):
        return False
    return any(step.after.refs[b] == 0 and not step.before.entries[b] for b in step.call.blocks)


def _effects(step: Step, kind: str) -> int:
    return 0 if step.outcome is None else sum(effect[0] == kind for effect in step.outcome.effects)


def _fired_on_take(step: Step) -> bool:
    return _is(step, calls.GetNewBlocks) and _effects(step, "fired") > 0


def _fired_on_reset(step: Step) -> bool:
    return _is(step, calls.ResetPrefixCache, "true") and _effects(step, "fired") > 0


def _two_watchers(step: Step) -> bool:
    return any(count > 1 for count in step.after.watchers)


def _watched_then_touched(step: Step) -> bool:
    return any(count and refs for count, refs in zip(step.after.watchers, step.after.refs, strict=True))


def _promoted(step: Step) -> bool:
    return _is(step, calls.CacheFullBlocks) and _effects(step, "removed") > 0


def _several_entries(step: Step) -> bool:
    return any(len(entries) > 1 for entries in step.after.entries)


def _moved_entries(step: Step) -> bool:
    return _is(step, calls.MoveBlockHashes) and step.before.entries != step.after.entries


def _masked(step: Step) -> bool:
    return _is(step, calls.CacheFullBlocks) and step.call.skip > 0 and step.before.entries != step.after.entries


def _evicted_while_held(step: Step) -> bool:
    changed = zip(step.before.entries, step.after.entries, step.after.refs, strict=True)
    return _is(step, calls.EvictBlocks) and any(was != now and refs for was, now, refs in changed)


def _evicted_while_queued(step: Step) -> bool:
    changed = zip(step.before.entries, step.after.entries, step.after.refs, strict=True)
    return _is(step, calls.EvictBlocks) and any(was != now and not refs for was, now, refs in changed)


def _reset_refused(step: Step) -> bool:
    return _is(step, calls.ResetPrefixCache, "false")


def _reset_dropped(step: Step) -> bool:
    return _is(step, calls.ResetPrefixCache, "true") and step.before.entries != step.after.entries


def _write_allowed(step: Step) -> bool:
    return _is(step, calls.WriteBlock)


def _write_refused_shared(step: Step) -> bool:
    return _is(step, calls.WriteBlock, "refused") and step.before.refs[step.call.block] > 1


def _write_refused_identified(step: Step) -> bool:
    return _is(step, calls.WriteBlock, "refused") and bool(step.before.entries[step.call.block])


def _groups_agree(step: Step) -> bool:
    return _is(step, calls.HitBlocks, "hit") and len(step.outcome.value) > 1


def _cached(scope: PoolScope) -> bool:
    return scope.caching


def _every(scope: PoolScope) -> bool:
    return True


def _watched(scope: PoolScope) -> bool:
    return scope.watchers > 0


def _shareable(scope: PoolScope) -> bool:
    return scope.holders > 1 or scope.hold > 1


def _partial(scope: PoolScope) -> bool:
    return scope.caching and scope.has_partial and scope.depth > 1


SITUATIONS = (
    Situation(Sometimes("S1", "A block had two references.", _shared), _shareable),
    Situation(Sometimes("S2", "A block was taken while it carried an entry.", _taken_with_entries), _cached),
    Situation(Sometimes("S3", "An allocation was refused at capacity.", _refused_for_space), lambda s: s.misuse),
    Situation(Sometimes("S4", "A hit took a block out of the free queue.", _revived), _cached),
    Situation(
        Sometimes("S5", "A hit found a block that was held.", _hit_while_held),
        lambda s: s.caching and _shareable(s),
    ),
    Situation(
        Sometimes("S6", "Two blocks carried one identity.", _duplicate_identity),
        lambda s: s.caching and s.holders * s.hold > 1 and sum(s.blocks) > 1,
    ),
    Situation(
        Sometimes("S7", "A block was touched in the middle of the queue.", _middle_of_queue_touched),
        lambda s: max(s.blocks) > 2,
    ),
    Situation(
        Sometimes("S8", "One release gave back blocks to both ends.", _released_both_lanes),
        lambda s: s.caching and s.hold > 1 and sum(s.blocks) > 1,
    ),
    Situation(
        Sometimes("S9", "One release gave back blocks of several pools.", _released_several_pools),
        lambda s: len(s.blocks) > 1 and s.hold > 1,
    ),
    Situation(
        Sometimes("S10", "One release listed a block twice, rightly.", _released_twice_in_one_call),
        lambda s: s.hold > 1,
    ),
    Situation(Sometimes("S11", "A double free was refused.", _double_free_refused), lambda s: s.misuse),
    Situation(
        Sometimes("S12", "A release that was right in part was refused as a whole.", _mixed_release_refused),
        lambda s: s.misuse,
    ),
    Situation(
        Sometimes("S13", "A block without an entry was unpinned to the tail.", _unpinned_without_entry),
        _watched,
    ),
    Situation(Sometimes("S14", "A watcher fired when its block was taken.", _fired_on_take), _watched),
    Situation(Sometimes("S15", "A watcher fired at a reset.", _fired_on_reset), _watched),
    Situation(Sometimes("S16", "A block had two watchers pending.", _two_watchers), lambda s: s.watchers > 1),
    Situation(Sometimes("S17", "A watched block was in use again.", _watched_then_touched), _watched),
    Situation(
        Sometimes("S18", "A partial entry was promoted to a full one.", _promoted),
        lambda s: _partial(s) and s.events and any(1 < span <= s.depth for span in s.spans),
    ),
    Situation(Sometimes("S19", "A block carried several entries.", _several_entries), _partial),
    Situation(
        Sometimes("S20", "Entries moved to another block.", _moved_entries),
        lambda s: s.caching and s.holders * s.hold > 1 and max(s.blocks) > 1,
    ),
    Situation(
        Sometimes("S21", "A mask left blocks out.", _masked),
        lambda s: s.caching and s.hold > 1 and any(s.depth // span > 1 for span in s.spans),
    ),
    Situation(Sometimes("S22", "A held block lost its entries to eviction.", _evicted_while_held), _cached),
    Situation(Sometimes("S23", "A queued block lost its entries to eviction.", _evicted_while_queued), _cached),
    Situation(Sometimes("S24", "A reset was declined because a block was held.", _reset_refused), _every),
    Situation(Sometimes("S25", "A reset dropped entries.", _reset_dropped), _cached),
    Situation(Sometimes("S26", "A write in place was allowed.", _write_allowed), _every),
    Situation(Sometimes("S27", "A write to a shared block was refused.", _write_refused_shared), _shareable),
    Situation(Sometimes("S28", "A write to an identified block was refused.", _write_refused_identified), _cached),
    Situation(
        Sometimes("S29", "One lookup hit in several groups.", _groups_agree),
        lambda s: s.caching and s.groups > 1 and s.hold > 1 and max(s.blocks) > 1,
    ),
)


def situations(scope: PoolScope) -> tuple[Sometimes, ...]:
    """The Sometimes properties that a run at this scope must reach."""
    return tuple(situation.property for situation in SITUATIONS if situation.possible(scope))
