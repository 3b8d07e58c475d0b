"""Errors of the bookkeeping half of the pool.

A refused call has changed nothing (P6): that is what tells a `RefusedError` from an
`InvariantViolation`, which reports that the books are already wrong.

    KVPoolError
    |-- RefusedError (ValueError)       the call was refused, the state is unchanged
    |   |-- NotEnoughBlocksError        more blocks wanted than are free: wait, preempt or shrink
    |   |-- InvalidArgumentError        a count, size, id or argument that no state would accept
    |   |-- UnknownBlockError           the block is not one of this pool's
    |   |-- NullBlockError              the operation is not defined for the null block
    |   |-- ReferenceUnderflowError     more releases than references
    |   |-- NotOwnedError               nobody holds the block, so its content is nobody's to name
    |   |-- IdentityConflictError       the block already stands for something else
    |   |-- BoundaryError               a size or hash boundary does not fit the hash block size
    |   |-- CachingDisabledError        the pool was built without prefix caching
    |   `-- ReentrantCallError          a reuse watcher or a metrics hook called back into its pool
    |-- HashInputError (ValueError)     tokens, keys or settings that cannot be hashed without ambiguity
    `-- InvariantViolation              `check()` or a mutation found books that contradict each other

Every refusal is also a `ValueError`, as upstream raises one when the pool is exhausted.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "BoundaryError",
    "CachingDisabledError",
    "HashInputError",
    "IdentityConflictError",
    "InvalidArgumentError",
    "InvariantViolation",
    "KVPoolError",
    "NotEnoughBlocksError",
    "NotOwnedError",
    "NullBlockError",
    "ReentrantCallError",
    "ReferenceUnderflowError",
    "RefusedError",
    "UnknownBlockError",
    "Violation",
]


class KVPoolError(Exception):
    """Root of everything that kvpool raises on purpose."""


class RefusedError(KVPoolError, ValueError):
    """The call was refused and the pool is exactly as it was before."""


class NotEnoughBlocksError(RefusedError):
    """More blocks were asked for than are free."""


class InvalidArgumentError(RefusedError):
    """An argument is out of range or of the wrong type in every state of the pool."""


class UnknownBlockError(RefusedError):
    """The block is not one of this pool's blocks."""


class NullBlockError(RefusedError):
    """The operation is not defined for the null block."""


class ReferenceUnderflowError(RefusedError):
    """The call releases more references than the block has."""


class NotOwnedError(RefusedError):
    """The block has no reference, so nobody may give it an identity."""


class IdentityConflictError(RefusedError):
    """The block already has prefix-cache entries that contradict the call."""


class BoundaryError(RefusedError):
    """A block size or token count does not end on a hash that the request has."""


class CachingDisabledError(RefusedError):
    """The pool was built with prefix caching off."""


class ReentrantCallError(RefusedError):
    """A callback of the pool tried to change the pool that is calling it."""


class HashInputError(KVPoolError, ValueError):
    """Input that cannot be hashed without ambiguity."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken invariant: its id (P1..P10) and a sentence with the blocks, counts and holders concerned."""

    property_id: str
    message: str
    block_ids: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.property_id}: {self.message}"


class InvariantViolation(KVPoolError):
    """The books contradict each other. `violations` lists every contradiction that was found."""

    def __init__(self, violations: tuple[Violation, ...]) -> None:
        self.violations = violations
        lines = "\n".join(f"  {violation}" for violation in violations)
        super().__init__(
            f"block pool inconsistent: {len(violations)} broken invariant(s), expected none\n{lines}\n"
            "The pool must not be used any further; look at the last operations on the blocks named above."
        )
