"""Errors that end a command before, or instead of, a verdict.

They are not verdicts: a property that fails or an implementation that diverges is a result, not an exception.

    KvproofError
    +-- UsageError          the request makes no sense: unknown scope field, profile, option value
    +-- TargetError         the implementation under test cannot be reached, loaded or driven
    |   +-- AdapterError    the adapter itself failed while it was driven
    +-- TraceError          a trace file cannot be read
    +-- Irreproducible      the same calls gave different answers
"""

from __future__ import annotations


class KvproofError(Exception):
    """Printed without a traceback; the command ends with `exit_code`."""

    exit_code = 2


class UsageError(KvproofError):
    """What was asked for does not exist or makes no sense; the message says what would."""


class TargetError(KvproofError):
    """The implementation under test cannot be reached, loaded or driven. Nothing was checked."""


class AdapterError(TargetError):
    """The adapter raised where it must answer."""


class TraceError(KvproofError):
    """A trace file is cut, foreign or of a newer schema."""


class Irreproducible(KvproofError):
    """The implementation or its adapter answered the same calls differently on a second run."""

    exit_code = 3
