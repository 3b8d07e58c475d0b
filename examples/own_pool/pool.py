"""A block pool as a small engine might have it: counted, found again by key, taken in the order of release."""

from collections.abc import Hashable, Mapping, Sequence


class PoolError(ValueError):
    """The pool turned a call down and did not change."""


class Pool:
    """Blocks are numbers from 0. A released block keeps its key, and can be found, until it is taken again."""

    def __init__(self, num_blocks: int) -> None:
        self.free = list(range(num_blocks))
        self.ref_counts = [0] * num_blocks
        self.keys: list[Hashable | None] = [None] * num_blocks
        self.block_of: dict[Hashable, int] = {}

    def take(self, count: int) -> list[int]:
        if not 0 <= count <= len(self.free):
            raise PoolError(f"cannot take {count} blocks: {len(self.free)} are free")
        taken, self.free = self.free[:count], self.free[count:]
        for block in taken:
            self._forget(block)
            self.ref_counts[block] = 1
        return taken

    def share(self, blocks: Sequence[int]) -> None:
        for block in blocks:
            if self.ref_counts[block] == 0:
                self.free.remove(block)
            self.ref_counts[block] += 1

    def release(self, blocks: Sequence[int]) -> None:
        if any(blocks.count(block) > self.ref_counts[block] for block in blocks):
            raise PoolError(f"cannot release {blocks}: the reference counts are {self.ref_counts}")
        for block in blocks:
            self.ref_counts[block] -= 1
            if self.ref_counts[block] == 0:
                self.free.append(block)

    def register(self, keys: Mapping[int, Hashable]) -> None:
        if any(self.ref_counts[block] == 0 or self.keys[block] is not None for block in keys):
            raise PoolError(f"cannot register {sorted(keys)}: a block must be held and have no key yet")
        for block, key in keys.items():
            self.keys[block] = key
            self.block_of[key] = block

    def clear(self) -> bool:
        if len(self.free) < len(self.ref_counts):
            return False
        for block in self.free:
            self._forget(block)
        return True

    def _forget(self, block: int) -> None:
        key, self.keys[block] = self.keys[block], None
        if key is not None:
            del self.block_of[key]
