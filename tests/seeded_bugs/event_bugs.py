"""Pools whose published events do not tell what is resident (P7, P6)."""

from __future__ import annotations

from typing import Any

from kvpool import AllBlocksCleared, BlockPool, BlockRemoved, BlockStored, KVCacheBlock, RefusedError
from kvpool.block_key import get_block_hash, get_group_id, make_block_key
from seeded_bugs.seeded_bug import GROUPS, PARTIAL, PLAIN, SeededBug


class RemovalNotPublished(BlockPool):
    """A block that is taken loses its entries silently."""

    silent = False

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        self.silent = True
        return super().get_new_blocks(num_blocks)

    def take_events(self) -> list[Any]:
        was, self.silent = self.silent, False
        return [event for event in super().take_events() if not (was and isinstance(event, BlockRemoved))]


class OneRemovalPerBlock(BlockPool):
    """Of a block with several entries only one is published as removed."""

    def take_events(self) -> list[Any]:
        events = super().take_events()
        first = next((event for event in events if isinstance(event, BlockRemoved)), None)
        return [event for event in events if event is first or not isinstance(event, BlockRemoved)]


class RemovalOfDuplicateNotPublished(BlockPool):
    """A removal is published only if no other block carries the same hash."""

    def take_events(self) -> list[Any]:
        return [event for event in super().take_events() if not self._is_still_there(event)]

    def _is_still_there(self, event: Any) -> bool:
        if not isinstance(event, BlockRemoved):
            return False
        index, group = self.cached_block_hash_to_block, event.group_idx or 0
        return any(index.get_one_block(make_block_key(key, group)) for key in event.block_hashes)  # type: ignore[arg-type]


class StoredPublishedTwice(BlockPool):
    """Every stored event is published twice."""

    def take_events(self) -> list[Any]:
        return [event for e in super().take_events() for event in ([e, e] if isinstance(e, BlockStored) else [e])]


class PartialEntryNotPublished(BlockPool):
    """Partial entries are stored silently."""

    silent = False

    def cache_partial_block(self, *args: Any, **options: Any) -> Any:
        self.silent = True
        return super().cache_partial_block(*args, **options)

    def take_events(self) -> list[Any]:
        was, self.silent = self.silent, False
        return [event for event in super().take_events() if not (was and isinstance(event, BlockStored))]


class EventNamesWrongGroup(BlockPool):
    """Stored events speak of group 0 whatever the group."""

    def take_events(self) -> list[Any]:
        events = super().take_events()
        for event in events:
            if isinstance(event, BlockStored):
                event.group_idx = 0
        return events


class ClearNotPublished(BlockPool):
    """A reset drops every entry silently."""

    def take_events(self) -> list[Any]:
        return [event for event in super().take_events() if not isinstance(event, AllBlocksCleared)]


class MovePublishedAsRemoval(BlockPool):
    """Moving entries publishes them as removed, though lookup still finds them."""

    def move_block_hashes(self, src_block: KVCacheBlock, dst_block: KVCacheBlock) -> None:
        key = src_block.block_hash
        super().move_block_hashes(src_block, dst_block)
        if key is not None and self.enable_kv_cache_events:
            self.kv_event_queue.append(BlockRemoved([get_block_hash(key)], self.medium, get_group_id(key)))


class AnnouncementLost(BlockPool):
    """Hits are not announced."""

    def emit_cached_block_events(self, *args: Any) -> None:
        """Nothing."""


class RefusedRegistrationPublished(BlockPool):
    """A refused registration has published its blocks as stored."""

    def cache_full_blocks(self, *args: Any) -> None:
        try:
            super().cache_full_blocks(*args)
        except RefusedError:
            request, _, start, _, block_size, group, _ = args
            self.emit_cached_block_events(request, start + 1, block_size, group)
            raise


BUGS = (
    SeededBug(RemovalNotPublished, "K14", (125,), "P7", PLAIN, 4),
    SeededBug(OneRemovalPerBlock, "K14", (125,), "P7", PARTIAL, 5),
    SeededBug(RemovalOfDuplicateNotPublished, "K14", (), "P7", PLAIN, 5),
    SeededBug(StoredPublishedTwice, "K14", (), "P7", PLAIN, 2),
    SeededBug(PartialEntryNotPublished, "K14", (), "P7", PARTIAL, 2),
    SeededBug(EventNamesWrongGroup, "K14", (), "P7", GROUPS, 2),
    SeededBug(ClearNotPublished, "K14", (126,), "P7", PLAIN, 4),
    SeededBug(MovePublishedAsRemoval, "K14", (), "P7", PLAIN, 4),
    SeededBug(AnnouncementLost, "K14", (), "diverged", PLAIN, 3),
    SeededBug(RefusedRegistrationPublished, "K14", (), "P6", PLAIN, 1),
)
