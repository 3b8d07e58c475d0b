"""House rules that a machine can hold, in place of a page that people forget.

Covers the form of files: size, names, docstrings, leftovers. It does not judge style (ruff), types (mypy)
or the direction of imports (import-linter). There is no list of exceptions: a file that breaks a rule is
split or renamed.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).parents[2]

PRODUCT_ROOTS = ("spec", "impl", "fuzz")
SOURCE_ROOTS = (*PRODUCT_ROOTS, "tests", "bench")
TEXT_ROOTS = (*SOURCE_ROOTS, "docs", ".ci", ".github")

SOURCE_SUFFIXES = (".py", ".js", ".css", ".html")
TEXT_SUFFIXES = (*SOURCE_SUFFIXES, ".md", ".toml", ".yml", ".yaml", ".txt", ".sh")

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
NAMES_WITHOUT_A_SUBJECT = frozenset({"util", "utils", "helper", "helpers", "common", "misc", "base"})

# Written so that this file does not match itself.
OPEN_TASK = re.compile(r"\b(?:T[O]DO|F[I]XME|X[X]X)\b(?!\(#\d+\))")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home)/|/tmp/(?:brief|vllm)\b")


class Finding(NamedTuple):
    """One broken rule at one place. The line is 1-based; 1 also stands for the file as a whole."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: error: {self.text}"


def findings(root: Path) -> list[Finding]:
    """Every broken rule below `root`, sorted by path and line."""
    found: list[Finding] = []
    for path in text_files(root):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        top = name.split("/")[0]
        found += line_findings(name, text)
        if top in PRODUCT_ROOTS:
            found += size_findings(name, text)
        if top in SOURCE_ROOTS:
            found += name_findings(name)
        if top in (*PRODUCT_ROOTS, "bench") and path.suffix == ".py":
            found += module_findings(name, text)
    return sorted(found)


def text_files(root: Path) -> Iterator[Path]:
    """Files at the top of `root`, and at any depth in its text roots. A Makefile needs its tabs: not read."""
    yield from (path for path in root.iterdir() if path.suffix in TEXT_SUFFIXES)
    for top in TEXT_ROOTS:
        yield from (
            path
            for path in (root / top).rglob("*")
            if path.is_file() and (path.suffix in TEXT_SUFFIXES or top == ".ci")
        )


def line_findings(name: str, text: str) -> Iterator[Finding]:
    is_source = name.endswith(SOURCE_SUFFIXES)
    for number, line in enumerate(text.split("\n"), start=1):
        if line != line.rstrip():
            yield Finding(name, number, "space at the end of the line; remove it")
        if "\t" in line:
            yield Finding(name, number, "a tab; indent with spaces")
        if place := MACHINE_PATH.search(line):
            yield Finding(name, number, f"{place[0]!r} exists on one machine only; use a relative path")
        if is_source and OPEN_TASK.search(line):
            yield Finding(name, number, "an open task without an issue; write it as T" + "ODO(#123) or do it")


def size_findings(name: str, text: str) -> Iterator[Finding]:
    lines = len(text.splitlines())
    if lines > FILE_LINES_MAX:
        yield Finding(name, lines, f"{lines} lines, at most {FILE_LINES_MAX} expected; split it by noun")


def name_findings(name: str) -> Iterator[Finding]:
    for part in Path(name).with_suffix("").parts:
        if part.split("_")[-1] in NAMES_WITHOUT_A_SUBJECT:
            yield Finding(name, 1, f"the name {part!r} says nothing; use a noun of the domain")


def module_findings(name: str, text: str) -> Iterator[Finding]:
    if not text.strip() and name.endswith("/__init__.py"):
        return
    module = ast.parse(text, name)
    if not ast.get_docstring(module):
        yield Finding(name, 1, "no module docstring; say what the module is, and what it is not")
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                problem = f"{node.name} has {lines} lines, at most {FUNCTION_LINES_MAX} expected; split it"
                yield Finding(name, node.lineno, problem)


def test_repository_is_tidy() -> None:
    found = findings(REPOSITORY)
    if found:
        pytest.fail("\n".join(map(str, found)), pytrace=False)


def test_rules_look_at_the_real_sources() -> None:
    seen = {path.relative_to(REPOSITORY).as_posix() for path in text_files(REPOSITORY)}
    assert {"pyproject.toml", ".ci/run", "spec/kvspec/__init__.py", "tests/tooling/test_tidy.py"} <= seen


WORK, HOME = "/" + "work/", "/" + "root/"
DOCUMENTED = '"""A module."""\n'
LONGEST_FUNCTION = "def f() -> None:\n" + "    pass\n" * (FUNCTION_LINES_MAX - 1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("spec/kvspec/__init__.py", ""),
        ("spec/kvspec/block.py", DOCUMENTED * FILE_LINES_MAX),
        ("impl/kvpool/block.py", DOCUMENTED + LONGEST_FUNCTION),
        ("impl/kvpool/database.py", DOCUMENTED + "# T" + "ODO(#12): measure it\n"),
        ("tests/test_block.py", "x = 'homework/roots/'\n"),
        ("Makefile", "all:\n\ttrue\n"),
        ("docs/long.md", "a line\n" * (FILE_LINES_MAX + 1)),
    ],
)
def test_tidy_file_is_accepted(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path / name, text)
    assert findings(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("spec/kvspec/long.py", DOCUMENTED * (FILE_LINES_MAX + 1), "401: error: 401 lines, at most 400"),
        ("fuzz/kvfuzz/viewer/page.js", "f()\n" * (FILE_LINES_MAX + 1), "401: error: 401 lines, at most 400"),
        ("impl/kvpool/long.py", DOCUMENTED + LONGEST_FUNCTION + "    pass\n", "2: error: f has 61 lines"),
        ("impl/kvpool/utils.py", DOCUMENTED, "1: error: the name 'utils' says nothing"),
        ("impl/kvpool/kv_cache_utils.py", DOCUMENTED, "1: error: the name 'kv_cache_utils' says nothing"),
        ("tests/common/test_block.py", DOCUMENTED, "1: error: the name 'common' says nothing"),
        ("fuzz/kvfuzz/bare.py", "x = 1\n", "1: error: no module docstring"),
        ("fuzz/kvfuzz/sub/__init__.py", "x = 1\n", "1: error: no module docstring"),
        ("bench/pool.py", "x = 1\n", "1: error: no module docstring"),
        (
            "fuzz/kvfuzz/open.py",
            DOCUMENTED + "# T" + "ODO: later\n",
            "2: error: an open task without an issue",
        ),
        ("tests/test_block.py", "x = 1\nF" + "IXME = 2\n", "2: error: an open task without an issue"),
        ("spec/kvspec/tab.py", DOCUMENTED + "if x:\n\ty = 1\n", "3: error: a tab"),
        ("docs/page.md", "one\ntwo \n", "2: error: space at the end"),
        ("README.md", f"see {WORK}shared\n", f"1: error: {WORK!r} exists on one machine only"),
        (".ci/run", f"cd {HOME}x\n", f"1: error: {HOME!r} exists on one machine only"),
    ],
)
def test_untidy_file_is_named_with_its_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    write(tmp_path / name, text)
    (found,) = findings(tmp_path)
    assert str(found).startswith(f"{name}:{message}")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
