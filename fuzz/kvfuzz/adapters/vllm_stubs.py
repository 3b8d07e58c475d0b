"""Inert stand-ins for the parts of vLLM that the pool-level files import but do not need.

A stand-in can be subclassed, subscripted, used in annotations and unions, applied as a decorator and asked
for any attribute (another stand-in). It is false, so a switch read from it is off. Calling one is allowed
while files are being loaded, where a call only builds a declaration. After `Seal.close` a call raises
TargetError: the pool then runs, and an answer made up by a stand-in would be judged as if it came from vLLM.

What this module does not do: it decides nothing about which modules are real (vllm_importer). It owns no
property.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from kvfuzz.errors import TargetError


class Seal:
    """Whether the load of one tree is over, shared by all stand-ins of that tree."""

    def __init__(self, tree: str) -> None:
        self.tree = tree
        self.closed = False

    def close(self) -> None:
        """From now on no stand-in of this tree may be called."""
        self.closed = True


class StandInType(type):
    """The class of stand-in classes. Subclasses written in the tree behave like ordinary classes."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") or "_seal" not in cls.__dict__:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        child = stand_in(f"{cls._dotted}.{name}", cls._seal)
        setattr(cls, name, child)
        return child

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if "_seal" not in cls.__dict__:
            return super().__call__(*args, **kwargs)
        return _declare(cls, args, kwargs)

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __bool__(cls) -> bool:
        return "_seal" not in cls.__dict__


class _StandIn(metaclass=StandInType):
    """What a stand-in class makes when it is called at load time."""

    def __getattr__(self, name: str) -> Any:
        kind = type(self)
        if name.startswith("__") or "_seal" not in kind.__dict__:
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
        return getattr(kind, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _declare(type(self), args, kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return "_seal" not in type(self).__dict__


def stand_in(dotted: str, seal: Seal) -> Any:
    """A new stand-in class for the object that vLLM calls `dotted`, for example "vllm.config.VllmConfig"."""
    return StandInType(dotted.rpartition(".")[2], (_StandIn,), {"_dotted": dotted, "_seal": seal})


def _declare(kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of calling a stand-in at load time: the decorated object, or an inert instance."""
    if kind._seal.closed:
        raise TargetError(
            f"the pool code of {kind._seal.tree} called {kind._dotted}, which is only a stand-in here. "
            "The call must reach vLLM's own code to mean anything. "
            "List its module in PURE_MODULES or the function in EXCERPTS of kvfuzz.adapters.vllm_importer"
        )
    if len(args) == 1 and not kwargs and callable(args[0]):
        return args[0]
    return type.__call__(kind)


class StandInModule(ModuleType):
    """A module every attribute of which is what `member(name)` makes of it, once."""

    def __init__(self, dotted: str, member: Callable[[str], Any]) -> None:
        super().__init__(dotted)
        self.__path__: list[str] = []
        self._member = member

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = self._member(name)
        setattr(self, name, value)
        return value


class QuietLogger:
    """A logger that drops everything, for every level and `*_once` variant a tree may know.

    The pool logs each refused reset; in a run of a million operations that would bury the report.
    """

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return _drop


def _drop(*args: Any, **kwargs: Any) -> None:
    return None
