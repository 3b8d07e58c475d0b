"""Pool actions as plain data and back, for trace files.

An action is {"action": its type's name, field: value, ...}; a `Ref` is a short list that starts with its role's word.
Fields that have their default value are written too: a trace must not change its meaning when a default does.
"""

from __future__ import annotations

from typing import Any

from kvspec.pool import actions as act
from kvspec.pool.actions import Ref, held, null, queued, stranger

_TYPES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        act.Allocate,
        act.Touch,
        act.Hit,
        act.Lookup,
        act.Free,
        act.Unpin,
        act.CacheFull,
        act.CachePartial,
        act.MoveHashes,
        act.Evict,
        act.Reset,
        act.Write,
        act.Announce,
    )
}
_REF_FIELDS = ("ref", "src", "dst")


class CodecError(ValueError):
    """Data that is no action: the message shows the data and says what was expected."""


def encode(action: Any) -> dict[str, Any]:
    """Plain data: strings, ints, bools and lists."""
    data: dict[str, Any] = {"action": type(action).__name__}
    for field, value in action._asdict().items():
        if isinstance(value, Ref):
            data[field] = _encode_ref(value)
        elif isinstance(value, tuple):
            data[field] = [_encode_ref(part) if isinstance(part, Ref) else part for part in value]
        else:
            data[field] = value
    return data


def decode(data: dict[str, Any]) -> Any:
    """The inverse of `encode`. Raises `CodecError`."""
    name = data.get("action")
    if name not in _TYPES:
        raise CodecError(f"unknown pool action {name!r} in {data}: known are {', '.join(sorted(_TYPES))}")
    kind = _TYPES[name]
    fields = {field: value for field, value in data.items() if field != "action"}
    unknown = sorted(set(fields) - set(kind._fields))
    absent = sorted(set(kind._fields) - set(kind._field_defaults) - set(fields))
    if unknown or absent:
        raise CodecError(f"pool action {name} in {data}: unknown fields {unknown}, missing fields {absent}")
    return kind(**{field: _decode_value(field, value) for field, value in fields.items()})


def _encode_ref(ref: Ref) -> list[Any]:
    if ref.is_held:
        return ["held", ref.owner, ref.position]
    if ref.is_stranger:
        return ["stranger"]
    if ref.null_pool is not None:
        return ["null", ref.null_pool]
    return ["queued", ref.position, ref.queue_pool]


def _decode_value(field: str, value: Any) -> Any:
    if field in _REF_FIELDS:
        return _decode_ref(value)
    if field == "refs":
        return tuple(_decode_ref(part) for part in value)
    return tuple(value) if isinstance(value, list) else value


def _decode_ref(data: Any) -> Ref:
    roles = {"held": held, "queued": queued, "null": null, "stranger": stranger}
    if not isinstance(data, list) or not data or data[0] not in roles:
        raise CodecError(f"{data!r} names no block: expected [role, numbers...] with a role of {', '.join(roles)}")
    try:
        return roles[data[0]](*data[1:])  # type: ignore[operator, no-any-return]
    except TypeError as error:
        raise CodecError(f"{data!r} names no block: {error}") from error
