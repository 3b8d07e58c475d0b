"""A closed importer that runs the pool-level files of one vLLM tree, unmodified and alone.

Each file is compiled from its source and executed with a private `__import__`. Imports of `vllm...` are
answered from the tree: the real file for the pure modules listed here, a stand-in for everything else.
Imports of other packages go to the ordinary import system, except torch, which the pool does not need.

Consequences: `sys.modules` never holds the name `vllm`, so a later `import vllm` is not disturbed and trees
of several versions live side by side; nothing is written into the tree, because the import system, which
writes bytecode, is not used. The modules are registered under a private alias, because dataclasses look up
the module of a class by name.

What this module does not do: it finds no tree, and it translates no error (vllm_tree). It owns no property.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from kvfuzz.adapters.vllm_stubs import QuietLogger, Seal, StandInModule, stand_in

PURE_MODULES = frozenset(
    {
        "vllm.distributed.kv_events",
        "vllm.utils.hashing",
        "vllm.utils.math_utils",
        "vllm.utils.mem_constants",
    }
)
"""Modules served from the tree, with every direct child of vllm.v1.core: they import no torch."""

EXCERPTS: Mapping[str, frozenset[str]] = {
    "vllm.multimodal.utils": frozenset({"get_mm_features_in_window"}),
    # Older trees keep all of these in one module, which also imports torch and half of vLLM.
    "vllm.utils": frozenset({"cdiv", "round_up", "sha256", "sha256_cbor", "sha256_cbor_64bit"}),
}
"""Pure functions that live in modules which are not: only these are compiled out of the tree's file."""

UNWANTED_PACKAGES = frozenset({"torch"})
"""Third-party packages answered with stand-ins: costly to import and unused by the pool."""

_numbers = itertools.count(1)


class TreeImporter:
    """The modules of one tree. `root` is the directory that contains the `vllm` package."""

    def __init__(self, root: Path, label: str) -> None:
        self.root = root
        self.seal = Seal(label)
        self._alias = f"kvfuzz_vllm_{next(_numbers)}"
        self._modules: dict[str, ModuleType] = {}
        self._builtins = {**vars(builtins), "__import__": self._import}

    def load(self, dotted: str) -> ModuleType:
        """The module that the tree calls `dotted`, executed on first use.

        Whatever the file itself raises is passed on, and the module is forgotten again.
        """
        module = self._modules.get(dotted)
        if module is not None:
            return module
        parent_name, _, name = dotted.rpartition(".")
        parent = self.load(parent_name) if parent_name else None
        source = self.source(dotted)
        if source is not None and _is_pure(dotted):
            module = self._execute(dotted, source)
        else:
            module = StandInModule(dotted, lambda member: self._member(dotted, member))
            self._modules[dotted] = module
        if parent is not None:
            setattr(parent, name, module)
        return module

    def source(self, dotted: str) -> Path | None:
        """The file in the tree that holds the module, or None."""
        stem = self.root.joinpath(*dotted.split("."))
        for candidate in (stem.with_name(stem.name + ".py"), stem / "__init__.py"):
            if candidate.is_file():
                return candidate
        return None

    def forget(self) -> None:
        """Drop every module of this tree from `sys.modules`, after a load that failed."""
        for dotted in self._modules:
            sys.modules.pop(self._aliased(dotted), None)
        self._modules.clear()

    def _aliased(self, dotted: str) -> str:
        return self._alias + dotted.removeprefix("vllm")

    def _execute(self, dotted: str, source: Path) -> ModuleType:
        module = ModuleType(self._aliased(dotted))
        module.__file__ = str(source)
        module.__package__ = module.__name__.rpartition(".")[0]
        module.__dict__["__builtins__"] = self._builtins
        code = compile(source.read_bytes(), str(source), "exec", dont_inherit=True)
        self._modules[dotted] = sys.modules[module.__name__] = module
        # An import inside a function may run this long after the load; declarations must work then, too.
        closed, self.seal.closed = self.seal.closed, False
        try:
            exec(code, module.__dict__)
        except BaseException:
            del self._modules[dotted], sys.modules[module.__name__]
            raise
        finally:
            self.seal.closed = closed
        return module

    def _member(self, dotted: str, name: str) -> Any:
        """An attribute of a module that is not real: an excerpt, a submodule of the tree, or a stand-in."""
        if dotted == "vllm.logger" and name == "init_logger":
            return lambda logger_name: QuietLogger()
        if name in EXCERPTS.get(dotted, ()):
            found = self._excerpt(dotted, name)
            if found is not None:
                return found
        child = f"{dotted}.{name}"
        if dotted.startswith("vllm") and (
            self.source(child) is not None or self.root.joinpath(*child.split(".")).is_dir()
        ):
            return self.load(child)
        return stand_in(child, self.seal)

    def _excerpt(self, dotted: str, name: str) -> Any:
        """One function of a module's file, with the imports that it reads; None when the file lacks it."""
        source = self.source(dotted)
        if source is None:
            return None
        tree = ast.parse(source.read_bytes(), str(source))
        chosen = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
        if not chosen:
            return None
        read = {node.id for node in ast.walk(chosen[-1]) if isinstance(node, ast.Name)}
        imports: list[ast.stmt] = [node for node in tree.body if _binds(node) & read]
        namespace: dict[str, Any] = {"__builtins__": self._builtins, "__name__": self._aliased(dotted)}
        exec(compile(ast.Module([*imports, chosen[-1]], []), str(source), "exec", dont_inherit=True), namespace)
        return namespace[name]

    def _import(
        self,
        name: str,
        module_globals: Mapping[str, Any] | None = None,
        module_locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """What an import statement inside a file of the tree calls, at load time and later."""
        if level > 0:
            package = str((module_globals or {}).get("__package__", self._alias)).split(".")
            name = ".".join(part for part in (*package[: len(package) - level + 1], name) if part)
        top = name.partition(".")[0]
        if top == self._alias:
            name, top = "vllm" + name.removeprefix(self._alias), "vllm"
        if top != "vllm" and top not in UNWANTED_PACKAGES:
            return builtins.__import__(name, module_globals, module_locals, fromlist or (), 0)
        module = self.load(name)
        return module if fromlist else self.load(top)


def _is_pure(dotted: str) -> bool:
    return dotted in PURE_MODULES or dotted.rpartition(".")[0] == "vllm.v1.core"


def _binds(node: ast.stmt) -> set[str]:
    """The names that an import statement binds; nothing for any other statement."""
    if not isinstance(node, (ast.Import, ast.ImportFrom)):
        return set()
    return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
