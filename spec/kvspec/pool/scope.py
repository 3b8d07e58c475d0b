"""How large the pool level is, and which of its features take part."""

from __future__ import annotations

from typing import Any, NamedTuple


class ScopeError(ValueError):
    """A scope that describes nothing: the message names the field, its value and what it may be."""


class PoolScope(NamedTuple):
    """Bounds of one pool-level model. Everything a run can do follows from these numbers.

    blocks: allocatable blocks of each pool; every pool has its null block on top of that.
    holders: owners of references (requests, steps, transfers: the pool cannot tell them apart).
    prefixes, depth, shared: token sequences, their length in hash blocks, and how many leading hash blocks all of
        them have in common.
    spans: hash blocks per block, one number for each KV-cache group; a span above 1 brings in partial entries.
    hold: longest table of a holder, in entries.
    watchers: most reuse watchers pending on one block; 0 leaves `unpin_blocks` out.
    caching, events: the pool's switches.
    lifo: an unidentified block that is released goes to the head of the queue (vLLM since 0.24, for locality); False:
        to the tail, like an identified one (vLLM before).
    misuse: whether calls that are wrong in themselves (a count below 0, a double free, a foreign block, ...) are part
        of the action table. Refusals that depend on the state, such as a write to a shared block, occur in any case.
    """

    blocks: tuple[int, ...] = (4,)
    holders: int = 2
    prefixes: int = 2
    depth: int = 1
    shared: int = 0
    spans: tuple[int, ...] = (1,)
    hold: int = 2
    watchers: int = 0
    caching: bool = True
    events: bool = True
    lifo: bool = True
    misuse: bool = True

    @property
    def groups(self) -> int:
        return len(self.spans)

    @property
    def has_partial(self) -> bool:
        """Whether some group's blocks can be cut at a hash boundary inside them."""
        return any(span > 1 for span in self.spans)

    def check(self) -> PoolScope:
        """Returns the scope itself; raises `ScopeError` where a number makes no sense."""
        least = {"holders": 1, "prefixes": 1, "depth": 1, "shared": 0, "hold": 1, "watchers": 0}
        for field, bound in least.items():
            value = getattr(self, field)
            if not isinstance(value, int) or value < bound:
                raise ScopeError(f"scope field {field} is {value!r}: it must be a whole number of at least {bound}")
        if not self.blocks or any(not isinstance(count, int) or count < 1 for count in self.blocks):
            raise ScopeError(
                f"scope field blocks is {self.blocks!r}: give each pool at least 1 allocatable block (the null block "
                "comes on top)"
            )
        if not self.spans or any(not isinstance(span, int) or span < 1 for span in self.spans):
            raise ScopeError(f"scope field spans is {self.spans!r}: give each group at least 1 hash block a block")
        if self.shared > self.depth:
            raise ScopeError(f"scope field shared is {self.shared}: prefixes are only {self.depth} hash blocks deep")
        return self

    def to_data(self) -> dict[str, Any]:
        """Plain data for traces; `from_data` is its inverse."""
        return {field: list(value) if isinstance(value, tuple) else value for field, value in self._asdict().items()}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> PoolScope:
        """Raises `ScopeError` for a field that is not known, so that a foreign trace is not half read."""
        unknown = sorted(set(data) - set(cls._fields))
        if unknown:
            raise ScopeError(f"scope has unknown fields {unknown}: the fields are {list(cls._fields)}")
        values: dict[str, Any] = {
            field: tuple(value) if isinstance(value, list) else value for field, value in data.items()
        }
        return cls(**values).check()

    def __str__(self) -> str:
        """Only what differs from the default, in the order of the fields."""
        parts = []
        for field, default in self._field_defaults.items():
            value = getattr(self, field)
            if value != default or field in ("blocks", "holders", "prefixes", "hold"):
                shown = "+".join(map(str, value)) if isinstance(value, tuple) else value
                parts.append(f"{field}={shown}")
        return " ".join(parts)
