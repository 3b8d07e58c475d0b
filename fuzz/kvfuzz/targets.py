"""Targets by name: `kvpool`, `vllm`, `vllm@PATH`, an entry point of another package, or `module:object`.

An entry point of group `kvproof.adapters` is a function `make(argument: str | None) -> Adapter`; the argument is what
follows the @. With `module:object` the object is such a function, an adapter class, or any function without
arguments that returns an adapter; the current directory is importable.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from kvfuzz.adapter import Adapter
from kvfuzz.errors import TargetError

GROUP = "kvproof.adapters"


class KnownTarget(NamedTuple):
    """One line of `kvproof targets`."""

    name: str
    origin: str
    sentence: str


def known_targets() -> list[KnownTarget]:
    """What is registered here and by installed packages; nothing is loaded."""
    return sorted(KnownTarget(entry.name, entry.value, _sentence(entry.name)) for entry in entry_points(group=GROUP))


def _sentence(name: str) -> str:
    return {
        "kvpool": "kvproof's own block pool",
        "vllm": "the installed vLLM's BlockPool; vllm@PATH: a source tree or an unpacked wheel, without installing it",
    }.get(name, "registered by an installed package")


def load_target(name: str, **options: Any) -> Adapter:
    """A new adapter for the target. Raises TargetError. `options` go to the maker if it takes them."""
    head, _, argument = name.partition("@")
    if ":" in head:
        maker = _from_module(head)
    else:
        found = [entry for entry in entry_points(group=GROUP) if entry.name == head]
        if not found:
            names = ", ".join(target.name for target in known_targets()) or "none"
            raise TargetError(
                f"unknown target {name!r}: registered are {names}; a vLLM source tree is given as vllm@PATH, your own "
                "adapter as module:object (docs/adapter.md)"
            )
        maker = found[0].load()
    return _make(name, maker, argument or None, options)


def _from_module(head: str) -> Any:
    module_name, _, attribute = head.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise TargetError(
            f"target {head!r}: module {module_name!r} cannot be imported ({error}). It must be installed, or lie in "
            f"the current directory {here}"
        ) from error
    if not hasattr(module, attribute):
        names = ", ".join(sorted(name for name in vars(module) if not name.startswith("_"))[:12])
        raise TargetError(f"target {head!r}: module {module_name} has no {attribute!r}; it has {names}")
    return getattr(module, attribute)


def _make(name: str, maker: Any, argument: str | None, options: dict[str, Any]) -> Adapter:
    if not callable(maker):
        raise TargetError(
            f"target {name!r} is a {type(maker).__name__}; expected a function or class that makes an adapter"
        )
    parameters = inspect.signature(maker).parameters
    takes_argument = any(
        parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.VAR_POSITIONAL)
        for parameter in parameters.values()
    )
    if argument and not takes_argument:
        raise TargetError(
            f"target {name!r}: {getattr(maker, '__name__', maker)} takes no argument; leave @{argument} out"
        )
    accepted = {key: value for key, value in options.items() if key in parameters}
    adapter = maker(argument, **accepted) if argument else maker(**accepted)
    missing = [part for part in ("name", "level", "limits", "reset", "apply", "observe") if not hasattr(adapter, part)]
    if missing:
        raise TargetError(
            f"target {name!r} made a {type(adapter).__name__}, which is no adapter: it lacks {', '.join(missing)} "
            "(docs/adapter.md)"
        )
    return adapter  # type: ignore[no-any-return]
