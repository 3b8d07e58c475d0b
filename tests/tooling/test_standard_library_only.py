"""The specification and the bookkeeping half of the pool need the standard library and nothing else.

Two views: no import statement names another package (also those inside functions), and importing the modules
loads none (also through other modules). Neither view sees an import that happens later, by name.
"""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGES = {"kvspec": REPOSITORY / "spec", "kvpool": REPOSITORY / "impl"}
BOOKKEEPING_CONTRACT = "pool-bookkeeping-is-standard-library-only"


def data_plane() -> set[str]:
    """Modules of kvpool that may import torch: the importers that the import contract lets through."""
    config = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        contract for contract in config["tool"]["importlinter"]["contracts"] if contract["id"] == BOOKKEEPING_CONTRACT
    )
    return {expression.split(" -> ")[0] for expression in contract["ignore_imports"]}


def modules(package: str, source_root: Path) -> dict[str, Path]:
    """Dotted name to file of every module of `package`, without the data plane."""
    found = {}
    for path in sorted((source_root / package).rglob("*.py")):
        parts = path.relative_to(source_root).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    exempt = data_plane()
    return {name: path for name, path in found.items() if name not in exempt}


def foreign_imports(text: str, package: str) -> Iterator[tuple[int, str]]:
    """(line, package) of each import statement that leaves both the standard library and `package`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        else:
            continue
        for name in names:
            top = name.split(".")[0]
            if top != package and top not in sys.stdlib_module_names:
                yield node.lineno, top


def loaded_by(*names: str, search: Path | None = None) -> set[str]:
    """Top-level packages that a fresh interpreter has loaded after importing `names`."""
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "sys.path[:0] = sys.argv[1].split()\n"
        "for name in sys.argv[2:]: __import__(name)\n"
        "print(*{name.split('.')[0] for name in set(sys.modules) - before})\n"
    )
    command = [sys.executable, "-c", program, str(search or ""), *names]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return set(run.stdout.split())


@pytest.mark.parametrize("package", PACKAGES)
def test_package_imports_the_standard_library_only(package: str) -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}:{line}: error: {foreign} is not in the standard library"
        for path in modules(package, PACKAGES[package]).values()
        for line, foreign in foreign_imports(path.read_text(encoding="utf-8"), package)
    ]
    if found:
        pytest.fail("\n".join(found), pytrace=False)


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_the_package_loads_the_standard_library_only(package: str) -> None:
    names = modules(package, PACKAGES[package])
    assert loaded_by(*names) - sys.stdlib_module_names == {package}


def test_foreign_import_is_found_wherever_it_stands() -> None:
    text = "import os.path, click.core\nfrom kvspec import x\nfrom . import y\ndef f():\n  from z3 import Int\n"
    assert list(foreign_imports(text, "kvspec")) == [(1, "click"), (5, "z3")]


def test_package_loaded_through_another_module_is_seen(tmp_path: Path) -> None:
    (tmp_path / "outer.py").write_text("import inner\n", encoding="utf-8")
    (tmp_path / "inner.py").write_text("import msgspec\n", encoding="utf-8")
    assert {"outer", "inner", "msgspec"} <= loaded_by("outer", search=tmp_path)


def test_command_line_starts_without_torch() -> None:
    assert "torch" not in loaded_by("kvfuzz.cli")
