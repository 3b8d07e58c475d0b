"""Symbolic prefix identities: what a block hash stands for.

An identity says "the KV of the first `boundary` hash blocks of prefix `prefix`, as KV-cache group `group` stores
it". Two prefixes may have their first `shared` boundaries in common, as two requests with one system prompt do;
there they have one identity. Identities are small integers so that states stay cheap; `Identities` packs,
unpacks and names them. Within one prefix and group a longer boundary has a larger number, so the entry that
covers most tokens is the largest.
"""

from __future__ import annotations

from typing import NamedTuple


class Identity(NamedTuple):
    """prefix: which token sequence. boundary: how many hash blocks of it, from 1. group: KV-cache group."""

    prefix: int
    boundary: int
    group: int


class Identities:
    """The finite set of identities of a scope.

    `depth` is the number of hash blocks in each prefix; `shared` of them, from the front, are common to all.
    """

    __slots__ = ("depth", "groups", "prefixes", "shared")

    def __init__(self, prefixes: int, depth: int, groups: int, shared: int = 0) -> None:
        if prefixes < 1 or depth < 1 or groups < 1 or not 0 <= shared <= depth:
            raise ValueError(
                f"identities of {prefixes} prefixes, depth {depth}, {groups} groups, {shared} shared: prefixes, depth "
                "and groups must be at least 1 and shared between 0 and depth"
            )
        self.prefixes = prefixes
        self.depth = depth
        self.groups = groups
        self.shared = shared

    def pack(self, prefix: int, boundary: int, group: int) -> int:
        """The identity's number. `boundary` must lie in 1..depth."""
        if boundary <= self.shared:
            prefix = 0
        return (prefix * self.depth + boundary - 1) * self.groups + group

    def unpack(self, identity: int) -> Identity:
        """The inverse of `pack`; a shared boundary is reported under prefix 0."""
        rest, group = divmod(identity, self.groups)
        prefix, boundary = divmod(rest, self.depth)
        return Identity(prefix, boundary + 1, group)

    def is_on_chain(self, identity: int, prefix: int, group: int) -> bool:
        """Whether `prefix` passes through this identity in this group."""
        named = self.unpack(identity)
        return named.group == group and (named.prefix == prefix or named.boundary <= self.shared)

    def renaming(self, order: tuple[int, ...]) -> tuple[int, ...]:
        """Table old number -> new number when prefix p is renamed to order[p]. Shared boundaries keep theirs."""
        table = []
        for number in range(self.prefixes * self.depth * self.groups):
            old = self.unpack(number)
            table.append(self.pack(order[old.prefix], old.boundary, old.group))
        return tuple(table)

    def name(self, identity: int) -> str:
        """For people: p1[2] is the second boundary of prefix 1; with several groups, @g is appended."""
        if not 0 <= identity < self.prefixes * self.depth * self.groups:
            return "(no identity of this scope)"
        prefix, boundary, group = self.unpack(identity)
        suffix = f"@g{group}" if self.groups > 1 else ""
        return f"p{prefix}[{boundary}]{suffix}"
