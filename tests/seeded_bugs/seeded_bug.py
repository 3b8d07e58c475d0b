"""What is known of one seeded bug, and the scopes at which bugs show.

A seeded bug is a subclass of `kvpool.BlockPool` that is wrong in one way. Its class docstring says in one
sentence what it does wrong.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kvfuzz.adapter import Adapter
from kvfuzz.adapters.kvpool_target import adapter_for
from kvfuzz.levels import level_named
from kvpool import BlockPool
from kvspec import Model
from kvspec.pool import PoolScope

PLAIN = PoolScope(blocks=(4,), holders=2, prefixes=2, hold=2)
WATCHED = PLAIN._replace(watchers=2)
PARTIAL = PLAIN._replace(blocks=(3,), prefixes=1, depth=2, spans=(2,))
GROUPS = PLAIN._replace(spans=(1, 1))
CHAINS = PLAIN._replace(depth=2)
UNCACHED = PLAIN._replace(caching=False)
TWO_POOLS = PLAIN._replace(blocks=(2, 2))


class SeededBug(NamedTuple):
    """kind: as in the log of public bugs; public: numbers there of bugs that this one re-creates, none for our own.
    breaks: the property that must be among those broken, or "diverged" where the pool differs from the specification
    and no property is broken. length: operations of the minimal trace. proved: whether an exploration proves it
    minimal, which it cannot for a pool that remembers what it does not show."""

    pool: type[BlockPool]
    kind: str
    public: tuple[int, ...]
    breaks: str
    scope: PoolScope
    length: int
    proved: bool = True

    @property
    def id(self) -> str:
        """The class name in words."""
        return re.sub(r"(?<!^)(?=[A-Z])", "-", self.pool.__name__).lower()

    @property
    def sentence(self) -> str:
        """What is wrong."""
        return self.pool.__doc__ or ""

    @property
    def model(self) -> Model:
        """The specification at the bug's scope."""
        return level_named("pool").make_model(self.scope)

    def adapter(self) -> Adapter:
        """A new adapter of the faulty pool."""
        return adapter_for(self.pool, self.id)
