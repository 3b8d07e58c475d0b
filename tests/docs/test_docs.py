"""Documentation that is run: the code in spec/README.md and docs/adapter.md, and what both say about the code.

The info string of a fenced block says what it is: `python runnable` is executed, `python file=PATH` shows a file of the
repository, `text change=PATH` is a change of one line in such a file, `text story` is what kvproof says about it.
Other blocks are for reading, except that their `kvproof` commands must exist.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import click
import pytest

from kvfuzz.adapter import in_dialect
from kvfuzz.adapters.pool_adapter import PoolAdapter
from kvfuzz.cli import kvproof
from kvfuzz.explorer import Explorer
from kvfuzz.levels import LEVELS
from kvfuzz.lockstep import Failure
from kvfuzz.minimise import Minimiser
from kvfuzz.story import table, tell
from kvfuzz.targets import load_target
from kvfuzz.walk import Walk, WalkBudget
from kvspec import Always
from kvspec.pool import PoolAction, PoolModel, PoolScope
from kvspec.pool.situations import SITUATIONS
from kvspec.pool.transitions import REFUSALS

REPOSITORY = Path(__file__).parents[2]
SPEC, ADAPTER = REPOSITORY / "spec" / "README.md", REPOSITORY / "docs" / "adapter.md"
EXAMPLE = REPOSITORY / "examples" / "own_pool"
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: its info string, its text, and the 1-based line where the text starts."""

    info: str
    text: str
    line: int


def blocks(page: Path, info: str) -> list[Block]:
    text = page.read_text()
    found = (Block(m["info"], m["text"], text.count("\n", 0, m.start("text")) + 1) for m in FENCE.finditer(text))
    return [block for block in found if block.info.startswith(info)]


def only(page: Path, info: str) -> Block:
    (block,) = blocks(page, info)
    return block


def rows(heading: str) -> dict[str, list[str]]:
    """The table below a heading of spec/README.md: first cell -> the other cells."""
    section = SPEC.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.split("\n") if line[:1] == "|"]
    return {row[0].strip("`"): row[1:] for row in cells[2:]}


@pytest.fixture
def own_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the example in the current directory, importable, and forgotten afterwards."""
    folder = tmp_path / "own_pool"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    names = [file.stem for file in folder.glob("*.py")]
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield folder
    for name in names:
        sys.modules.pop(name, None)


# Code in the pages -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("own_pool")
@pytest.mark.parametrize("page", [SPEC, ADAPTER], ids=lambda page: page.name)
def test_runnable_blocks_of_a_page_run_from_top_to_bottom(page: Path) -> None:
    runnable = blocks(page, "python runnable")
    assert runnable
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in runnable:
        code = "\n" * (block.line - 1) + block.text  # a traceback then names the line of the page
        exec(compile(code, str(page), "exec"), namespace)


def test_example_is_shown_exactly_and_in_full() -> None:
    shown = {block.info.split("=")[1]: block.text for block in blocks(ADAPTER, "python file=")}
    kept = {file.relative_to(REPOSITORY).as_posix(): file.read_text() for file in sorted(EXAMPLE.glob("*.py"))}
    assert shown == kept


def test_adapter_of_the_example_stays_within_sixty_lines() -> None:
    assert len((EXAMPLE / "adapter.py").read_text().splitlines()) <= 60


@pytest.mark.parametrize("page", [SPEC, ADAPTER], ids=lambda page: page.name)
def test_commands_in_a_page_exist_with_their_options(page: Path) -> None:
    prose = FENCE.sub("", page.read_text())
    commands = [code.replace("\n", " ") for code in re.findall(r"`(kvproof [a-z][^`]*)`", prose)]
    commands += [line for block in blocks(page, "") for line in block.text.split("\n") if line.startswith("kvproof ")]
    assert commands
    for command in commands:
        name, *arguments = shlex.split(command, comments=True)[1:]
        context = click.Context(kvproof)
        found = kvproof.get_command(context, name)
        assert found is not None, command
        found.make_context(name, ["x" if part == "FILE" else part for part in arguments])


# What spec/README.md says about the code ---------------------------------------------------------------------


def test_every_action_has_its_row() -> None:
    assert set(rows("Actions")) == {kind.__name__ for kind in get_args(PoolAction)}


def test_every_refusal_reason_is_named_where_an_action_is_refused() -> None:
    refused = " ".join(cells[-1] for cells in rows("Actions").values())
    assert [reason for reason in REFUSALS if f"`{reason}`" not in refused] == []
    assert set(re.findall(r"`([a-z_ ]+)`", refused)) == set(REFUSALS)


def test_every_property_is_stated_in_its_own_words_with_what_it_reads() -> None:
    stated = {
        id_: (cells[0], tuple(re.findall(r"`([a-z*]+)`", cells[-1]))) for id_, cells in rows("Properties").items()
    }
    properties = [entry for entry in PoolModel(PoolScope()).properties if isinstance(entry, Always)]
    assert stated == {entry.id: (entry.sentence, entry.reads) for entry in properties}


def test_every_property_says_what_it_does_not_verify() -> None:
    text = SPEC.read_text().split("What they do not verify")[1].split("\n#")[0]
    for entry in PoolModel(PoolScope()).properties:
        assert not isinstance(entry, Always) or f"**{entry.id}**" in text, entry.id


def test_every_situation_is_stated_in_its_own_words() -> None:
    stated = {name: row[0] for name, row in rows("Situations").items()}
    assert stated == {situation.property.id: situation.property.sentence for situation in SITUATIONS}


def test_every_scope_field_is_there_with_its_default() -> None:
    defaults = {field: cells[0] for field, cells in rows("Scopes").items()}
    assert defaults == {field: str(value) for field, value in PoolScope()._asdict().items()}


def test_every_level_is_named() -> None:
    text = SPEC.read_text()
    assert [name for name in LEVELS if f"`{name}`" not in text] == []


@pytest.mark.parametrize("page", [SPEC, ADAPTER], ids=lambda page: page.name)
def test_files_and_links_of_a_page_exist(page: Path) -> None:
    text = page.read_text()
    links = [target.split("#")[0] for target in re.findall(r"\]\(([^)]*)\)", text)]
    missing = [target for target in links if target and not (page.parent / target).exists()]
    names = re.findall(r"`((?:pool|kvfuzz|tests|examples)/[\w/.]+)`", text)
    roots = (REPOSITORY, REPOSITORY / "fuzz", REPOSITORY / "spec" / "kvspec")
    missing += [name for name in names if not any((root / name).exists() for root in roots)]
    assert missing == []


# The example -------------------------------------------------------------------------------------------------


def walked(steps: int) -> Any:
    adapter = load_target("adapter:MyAdapter")
    scope = PoolScope(blocks=(5,), holders=3, depth=3, shared=1, spans=(1, 1), hold=3, watchers=1)
    return Walk(PoolModel(in_dialect(scope, adapter)), adapter, seed=0, budget=WalkBudget(steps=steps)).run()


@pytest.mark.usefixtures("own_pool")
def test_example_holds_on_a_walk_that_meets_everything() -> None:
    result = walked(12_000)
    assert result.failure is None, result.failure.headline
    assert result.coverage.missing == []


@pytest.mark.usefixtures("own_pool")
def test_example_holds_in_every_state_of_a_small_scope() -> None:
    adapter = load_target("adapter:MyAdapter")
    result = Explorer(PoolModel(in_dialect(PoolScope(blocks=(2,), depth=2), adapter)), adapter).run()
    assert result.failure is None, result.failure.headline
    assert result.exhausted


@pytest.mark.parametrize(
    ("line", "fault", "fingerprint"),
    [
        ("            self._forget(block)\n            self.ref", "            self.ref", "P11"),
        ("            del self.block_of[key]", "            pass", "P3"),
        ("                self.free.remove(block)", "                pass", "P1"),
        ("                self.free.append(block)", "                self.free.insert(0, block)", "P8"),
        ("not 0 <= count <=", "not count <=", "P10"),
        ("            self.keys[block] = key", "            self.keys[block] = (0, 1, 0)", "P3"),
    ],
)
def test_planted_fault_in_the_example_is_caught(own_pool: Path, line: str, fault: str, fingerprint: str) -> None:
    plant(own_pool / "pool.py", line, fault)
    failure = walked(4_000).failure
    assert failure is not None
    assert fingerprint in {failure.fingerprint, *(name for name, _ in failure.broken)}


def plant(file: Path, line: str, fault: str) -> None:
    text = file.read_text()
    assert text.count(line) == 1, f"{line!r} must be in {file.name} once, to be replaced"
    file.write_text(text.replace(line, fault))


def test_story_of_the_planted_fault_is_what_kvproof_tells(own_pool: Path) -> None:
    change = only(ADAPTER, "text change=")
    assert change.info.endswith("examples/own_pool/pool.py")
    removed, added = change.text.splitlines()
    plant(own_pool / "pool.py", removed.removeprefix("-"), added.removeprefix("+"))
    adapter = load_target("adapter:MyAdapter")
    found = Explorer(PoolModel(in_dialect(PoolScope(blocks=(3,)), adapter)), adapter).run()
    assert isinstance(found.failure, Failure)
    model = PoolModel(in_dialect(PoolScope(blocks=(3,)), adapter))
    small = Minimiser(LEVELS["pool"], adapter).minimise(model, found.actions)
    assert small is not None
    assert only(ADAPTER, "text story").text == table(tell(small.model, small.actions, small.failure)) + "\n"
    assert small.verdict == "2 operations, proved minimal at this scope"


@pytest.mark.usefixtures("own_pool")
def test_tests_of_the_example_pass_under_pytest() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 passed" in ran.stdout


# What docs/adapter.md says about PoolAdapter -------------------------------------------------------------------


def test_every_observation_of_a_pool_adapter_is_explained() -> None:
    text = ADAPTER.read_text().split("## What to show")[1].split("\n## ")[0]
    for method in ("free_queue", "ref_counts", "identities", "index", "num_free_blocks", "usage", "take_events"):
        assert hasattr(PoolAdapter, method)
        assert f"`{method}`" in text
