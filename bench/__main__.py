"""Command line: `python -m bench [pool|explorer|drivers|all] [--tree PATH] [--write FILE] [--quick]`.

Every part runs in a process of its own, so that none measures in the heap that another one left behind. The results
go into one file, a section for each part; a part that is not measured now keeps the section that it has.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.results import PARTS, merge

REPOSITORY = Path(__file__).parents[1]
RESULTS = REPOSITORY / "bench" / "RESULTS.md"
TREES = REPOSITORY / ".vllm-trees"


def main() -> int:
    """0, or 2 if a part could not be measured. A missed goal is a result, which the file shows, not an error."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("part", nargs="?", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--tree", type=Path, help="vLLM source tree for the pool part (default: newest in .vllm-trees)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="results file (default: bench/RESULTS.md)")
    parser.add_argument(
        "--quick", action="store_true", help="smallest sizes; nothing is written unless --write is given"
    )
    arguments = parser.parse_args()
    measured, complete = {}, True
    for part in PARTS if arguments.part == "all" else (arguments.part,):
        text = measure(part, arguments.tree, arguments.quick)
        if text:
            measured[part] = text
        else:
            complete = False
    target = arguments.write or (None if arguments.quick else RESULTS)
    if target is not None and measured:
        before = target.read_text(encoding="utf-8") if target.exists() else ""
        target.write_text(merge(before, measured), encoding="utf-8")
        print(f"written to {target}", file=sys.stderr)
    return 0 if complete else 2


def measure(part: str, tree: Path | None, quick: bool) -> str:
    """The part's section; empty if the part could not be measured. A goal that was missed says so in the text."""
    command = [sys.executable, "-m", f"bench.{part}"]
    if part == "pool":
        tree = tree or newest_tree(TREES)
        if tree is None:
            print(
                f"pool: not measured: no vLLM tree in {TREES.name}. `make vllm-tree` fetches one, --tree names another",
                file=sys.stderr,
            )
            return ""
        command += ["--tree", str(tree.absolute())]
    if quick:
        command.append("--quick")
    with tempfile.TemporaryDirectory(prefix="kvproof-bench-") as folder:
        section = Path(folder, "section.md")
        code = subprocess.run([*command, "--write", str(section)], cwd=REPOSITORY, check=False).returncode
        if not section.exists():
            print(f"{part}: not measured: {' '.join(command)} ended with code {code}", file=sys.stderr)
            return ""
        return section.read_text(encoding="utf-8")


def newest_tree(folder: Path) -> Path | None:
    """The tree with the highest version below `folder`, by its name, such as vllm-0.32.0."""
    trees = [tree for tree in folder.glob("vllm-*") if (tree / "vllm").is_dir()]
    return max(trees, key=_version, default=None)


def _version(tree: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in tree.name.removeprefix("vllm-").split(".") if part.isdigit())


if __name__ == "__main__":
    sys.exit(main())
