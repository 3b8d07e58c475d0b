"""Each import contract of pyproject.toml fires on the import that it exists to stop, and on nothing else.

Runs the real configuration on a miniature of the three packages with one planted import. Contracts see
`import` statements, inside functions too; they do not see `importlib.import_module("...")`.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

CLEAN_TREE = {
    "kvspec/__init__.py": "from kvspec.model import step\n",
    "kvspec/model.py": "import dataclasses\n\ndef step(): ...\n",
    "kvspec/pool/__init__.py": "",
    "kvspec/pool/state.py": "import kvspec.model\n",
    "kvpool/__init__.py": "import kvpool.block_pool\n",
    "kvpool/block_pool.py": "import collections\n",
    "kvpool/managers/__init__.py": "",
    "kvpool/storage.py": "import numpy\nimport torch\nimport kvpool.block_pool\n",
    "kvpool/copy_cuda.py": "import torch\nimport triton.language\n",
    "kvfuzz/__init__.py": "",
    "kvfuzz/lockstep.py": "import click\nimport kvspec.model\n",
    "kvfuzz/trace.py": "import json\n",
    "kvfuzz/adapters/__init__.py": "",
    "kvfuzz/adapters/pool.py": "import kvpool.block_pool\nimport kvfuzz.lockstep\n",
    "kvfuzz/adapters/upstream.py": "import vllm.v1.core\n",
    "kvfuzz/cli.py": "import kvfuzz.adapters.pool\nimport kvfuzz.adapters.upstream\n",
}

VERDICT = re.compile(r"^(.+) (KEPT|BROKEN)(?: \(\d+ ignored imports?\))?$", re.MULTILINE)

INDEPENDENT = "spec-and-pool-are-independent"
ON_TOP = "harness-is-on-top"
SPEC_ALONE = "spec-is-standard-library-only"
POOL_ALONE = "pool-bookkeeping-is-standard-library-only"
ADAPTERS = "targets-are-reached-through-adapters"

VIOLATIONS = [
    (INDEPENDENT, "kvspec/pool/state.py", "from kvpool.block_pool import x"),
    (INDEPENDENT, "kvpool/managers/window.py", "def late():\n    from kvspec import step"),
    (ON_TOP, "kvspec/model.py", "import kvfuzz.trace"),
    (ON_TOP, "kvpool/storage.py", "from kvfuzz import trace"),
    (SPEC_ALONE, "kvspec/pool/guard.py", "import hypothesis.strategies"),
    (SPEC_ALONE, "kvspec/model.py", "def late():\n    import z3"),
    (POOL_ALONE, "kvpool/block_pool.py", "import torch"),
    (POOL_ALONE, "kvpool/managers/window.py", "import numpy.typing"),
    (POOL_ALONE, "kvpool/storage.py", "import msgspec"),
    (ADAPTERS, "kvfuzz/lockstep.py", "import kvpool"),
    (ADAPTERS, "kvfuzz/reports/html.py", "from kvpool.block_pool import x"),
    (ADAPTERS, "kvfuzz/trace.py", "def late():\n    import vllm"),
]


def contracts() -> dict[str, dict[str, object]]:
    config = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    return {contract["id"]: contract for contract in config["tool"]["importlinter"]["contracts"]}


def broken_contracts(root: Path) -> set[str]:
    """Ids of the contracts that import-linter reports as broken for the packages in `root`."""
    shutil.copy(REPOSITORY / "pyproject.toml", root)
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=60)
    by_name = {str(contract["name"]): identifier for identifier, contract in contracts().items()}
    verdicts = dict(VERDICT.findall(run.stdout))
    assert set(verdicts) == set(by_name), f"no verdict on some contracts:\n{run.stdout}{run.stderr}"
    broken = {by_name[name] for name, verdict in verdicts.items() if verdict == "BROKEN"}
    assert (run.returncode != 0) == bool(broken)
    return broken


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in CLEAN_TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_clean_tree_keeps_every_contract(tree: Path) -> None:
    assert broken_contracts(tree) == set()


@pytest.mark.parametrize(("contract", "name", "statement"), VIOLATIONS)
def test_planted_import_breaks_its_contract_only(tree: Path, contract: str, name: str, statement: str) -> None:
    path = tree / name
    path.parent.mkdir(exist_ok=True)
    (path.parent / "__init__.py").touch()
    with path.open("a", encoding="utf-8") as module:
        module.write(f"{statement}\n")
    assert broken_contracts(tree) == {contract}


def test_every_contract_has_a_planted_violation() -> None:
    assert {contract for contract, _, _ in VIOLATIONS} == set(contracts())


def test_spec_and_bookkeeping_forbid_the_same_packages() -> None:
    by_id = contracts()
    assert by_id[SPEC_ALONE]["forbidden_modules"] == by_id[POOL_ALONE]["forbidden_modules"]
