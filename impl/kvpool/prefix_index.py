"""The prefix index: from a hash to the resident blocks that carry it, and back.

Per group one dict leads from the raw hash to the block that was registered first, which is all that a
lookup needs. Further blocks with an equal key wait in a side dict, in order of registration, and move
up when the first one leaves. A block's *primary* entry is stored in the block itself; *secondary* entries
(finer boundaries inside the same block) are listed in `secondary_keys`.

Owns P3. It trusts its caller: whether a block may be given an entry is decided in `registration`.
Composed keys (hash and group id) appear only at the edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .block import KVCacheBlock
from .block_key import BlockHash, BlockKey, get_block_hash, get_group_id, make_block_key
from .errors import InvariantViolation, Violation

if TYPE_CHECKING:
    from .pool_books import PoolBooks

__all__ = ["PrefixIndex"]


class PrefixIndex:
    """Entries of one pool. Lookups are O(1); `len()` is the number of distinct keys."""

    __slots__ = ("_further", "by_group", "secondary_keys")

    def __init__(self) -> None:
        # Read only outside this class.
        self.by_group: dict[int, dict[BlockHash, KVCacheBlock]] = {}
        # (group, hash) -> blocks behind the first one, as an insertion-ordered dict by block id.
        self._further: dict[tuple[int, BlockHash], dict[int, KVCacheBlock]] = {}
        self.secondary_keys: dict[int, set[BlockKey]] = {}

    # ---- lookup ----

    def get_one_block(self, key: BlockKey) -> KVCacheBlock | None:
        """The block that has carried `key` for longest, or None."""
        group = self.by_group.get(get_group_id(key))
        return None if group is None else group.get(get_block_hash(key))

    def get_blocks(self, key: BlockKey) -> list[KVCacheBlock]:
        """Every block that carries `key`, in order of registration."""
        group_id, block_hash = get_group_id(key), get_block_hash(key)
        first = self.by_group.get(group_id, {}).get(block_hash)
        if first is None:
            return []
        return [first, *self._further.get((group_id, block_hash), {}).values()]

    def contain(self, key: BlockKey, block_id: int) -> bool:
        """Whether block `block_id` carries `key`."""
        return self.holds(get_group_id(key), get_block_hash(key), block_id)

    def holds(self, group_id: int, block_hash: BlockHash, block_id: int) -> bool:
        """Whether block `block_id` is listed under `block_hash` in group `group_id`."""
        group = self.by_group.get(group_id)
        first = None if group is None else group.get(block_hash)
        if first is None:
            return False
        return first.block_id == block_id or block_id in self._further.get((group_id, block_hash), ())

    def __len__(self) -> int:
        return sum(map(len, self.by_group.values()))

    def items(self) -> Iterator[tuple[BlockKey, list[KVCacheBlock]]]:
        """Every key with its blocks in order of registration."""
        for group_id, group in self.by_group.items():
            for block_hash, first in group.items():
                further = self._further.get((group_id, block_hash), {})
                yield make_block_key(block_hash, group_id), [first, *further.values()]

    def blocks(self) -> Iterator[KVCacheBlock]:
        """Every listed block, once per entry."""
        for group in self.by_group.values():
            yield from group.values()
        for further in self._further.values():
            yield from further.values()

    def keys_of(self, block: KVCacheBlock) -> list[BlockKey]:
        """The block's keys: primary first, then the secondary ones in byte order."""
        primary = block.block_hash
        secondary = self.secondary_keys.get(block.block_id)
        keys = [] if primary is None else [primary]
        # Sorted, since set order of bytes differs from process to process.
        return keys if secondary is None else keys + sorted(secondary)

    # ---- single entries ----

    def insert(self, key: BlockKey, block: KVCacheBlock) -> None:
        """List `block` under `key`. The block's own fields are left alone."""
        self._list(get_group_id(key), get_block_hash(key), block)

    def pop(self, key: BlockKey, block_id: int) -> KVCacheBlock | None:
        """Strike block `block_id` off `key` and return it; None if it was not listed there."""
        group_id, block_hash = get_group_id(key), get_block_hash(key)
        if not self.holds(group_id, block_hash, block_id):
            return None
        further = self._further.get((group_id, block_hash), {})
        block = further.get(block_id) or self.by_group[group_id][block_hash]
        self._strike(group_id, block_hash, block)
        return block

    def _list(self, group_id: int, block_hash: BlockHash, block: KVCacheBlock) -> None:
        first = self.by_group.setdefault(group_id, {}).setdefault(block_hash, block)
        if first is not block:
            self._add_further(group_id, block_hash, block)

    def _add_further(self, group_id: int, block_hash: BlockHash, block: KVCacheBlock) -> None:
        self._further.setdefault((group_id, block_hash), {})[block.block_id] = block

    def _strike(self, group_id: int, block_hash: BlockHash, block: KVCacheBlock) -> None:
        if not self.holds(group_id, block_hash, block.block_id):
            raise _not_listed(block)
        group = self.by_group[group_id]
        further = self._further.get((group_id, block_hash))
        if further is None:
            del group[block_hash]
            return
        if group[block_hash] is block:
            group[block_hash] = further.pop(next(iter(further)))
        else:
            del further[block.block_id]
        if not further:
            del self._further[group_id, block_hash]

    # ---- entries of blocks ----

    def add_primary(self, group_id: int, block_hash: BlockHash, num_tokens: int | None, block: KVCacheBlock) -> None:
        """Make this the primary entry of an unidentified block."""
        block.raw_hash = block_hash
        block.group_id = group_id
        block.block_hash_num_tokens = num_tokens
        group = self.by_group.get(group_id)
        if group is None:
            group = self.by_group[group_id] = {}
        if group.setdefault(block_hash, block) is not block:
            self._add_further(group_id, block_hash, block)

    def add_secondary(self, key: BlockKey, block: KVCacheBlock) -> None:
        """Make `block`, which has a primary entry, reachable under `key` as well."""
        self.secondary_keys.setdefault(block.block_id, set()).add(key)
        self.insert(key, block)

    def add_plain_run(
        self,
        pool: PoolBooks,
        group_id: int,
        hashes: Sequence[BlockHash],
        blocks: Sequence[KVCacheBlock],
        start: int,
        stop: int,
        block_size: int,
    ) -> bool:
        """`add_primary` for blocks `start` to `stop` of a block table, if there is nothing special about them.

        That is: distinct blocks of `pool`, held and without an entry, with a hash each, in a group that has had
        entries. Else nothing is done; the answer False means only that `registration` must look closer.
        """
        try:
            group = self.by_group[group_id]
            if start < 0 or stop > len(hashes):
                return False
            if stop - start == 1:
                block, block_hash = blocks[start], hashes[start]
                if block._pool is not pool or block.raw_hash is not None or block.ref_cnt < 1:
                    return False
                block.raw_hash = block_hash
                block.group_id = group_id
                block.block_hash_num_tokens = stop * block_size
                if group.setdefault(block_hash, block) is not block:
                    self._add_further(group_id, block_hash, block)
                return True
        except (LookupError, AttributeError, TypeError):
            return False
        run, num_tokens = blocks[start:stop], start * block_size
        try:
            for block, block_hash in zip(run, hashes[start:stop], strict=True):
                if block._pool is not pool or block.raw_hash is not None or block.ref_cnt < 1:
                    raise LookupError
                num_tokens += block_size
                block.raw_hash = block_hash
                block.group_id = group_id
                block.block_hash_num_tokens = num_tokens
                if group.setdefault(block_hash, block) is not block:
                    self._add_further(group_id, block_hash, block)
        except (LookupError, AttributeError, ValueError):
            # A block that is listed twice is caught here too: by then it has an entry.
            self.drop(run[: num_tokens // block_size - start])
            return False
        return True

    def drop_one(self, block: KVCacheBlock) -> None:
        """Drop every entry of `block`, which has a primary one."""
        if self._further or self.secondary_keys:
            self.drop((block,))
            return
        group_id: Any = block.group_id
        block_hash: Any = block.raw_hash
        try:
            listed = self.by_group[group_id].pop(block_hash)
        except KeyError:
            raise _not_listed(block) from None
        if listed is not block:
            raise _not_listed(block)
        block.raw_hash = block.group_id = block.block_hash_num_tokens = None

    def drop(self, blocks: Iterable[KVCacheBlock]) -> None:
        """Drop every entry of `blocks`."""
        careful = bool(self._further or self.secondary_keys)
        group: dict[BlockHash, KVCacheBlock] = {}
        of_group: int | None = None
        for block in blocks:
            block_hash, group_id = block.raw_hash, block.group_id
            if block_hash is None or group_id is None:
                continue
            if careful:
                self._strike(group_id, block_hash, block)
                for key in self.secondary_keys.pop(block.block_id, ()):
                    self._strike(get_group_id(key), get_block_hash(key), block)
            else:
                if group_id != of_group:
                    group, of_group = self.by_group.get(group_id, {}), group_id
                if group.pop(block_hash, None) is not block:
                    raise _not_listed(block)
            block.raw_hash = block.group_id = block.block_hash_num_tokens = None

    def move(self, source: KVCacheBlock, target: KVCacheBlock) -> None:
        """Move every entry of `source` to the unidentified `target`; each stays listed throughout."""
        block_hash, group_id, num_tokens = source.raw_hash, source.group_id, source.block_hash_num_tokens
        if block_hash is None or group_id is None:
            return
        keys = sorted(self.secondary_keys.get(source.block_id, ()))
        self.add_primary(group_id, block_hash, num_tokens, target)
        for key in keys:
            self.add_secondary(key, target)
        self.drop([source])

    def clear(self) -> None:
        """Drop every entry of every block."""
        for block in self.blocks():
            block.raw_hash = block.group_id = block.block_hash_num_tokens = None
        self.by_group.clear()
        self._further.clear()
        self.secondary_keys.clear()


def _not_listed(block: KVCacheBlock) -> InvariantViolation:
    return InvariantViolation(
        (
            Violation(
                "P3",
                f"the index does not list {block!r} under the key that it carries; "
                "an identity was changed without the pool",
                (block.block_id,),
            ),
        )
    )
