"""All measurements: `python -m bench [explorer|drivers|pool ...] [--tree PATH] [--write FILE]`, from the repository
root.

Each part runs in a process of its own, one after the other, so that none inherits another's heap. What a user would
pick instead is measured in the same run as what is here; a row that misses its goal says so.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.machine import describe_machine

HEADINGS = {
    "pool": "Pool operations: kvpool beside vLLM's BlockPool",
    "explorer": "Explorer beside Spin",
    "drivers": "Steps per CPU second of the drivers",
}


def main() -> int:
    """Run the parts and write one page. Exit code 1 if a part could not be measured; a missed goal is a result."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(HEADINGS)} (default: all)")
    parser.add_argument("--tree", type=Path, default=Path(".vllm-trees/vllm-0.32.0"), help="vLLM tree for part pool")
    parser.add_argument(
        "--write", type=Path, default=Path("bench/RESULTS.md"), help="page to write (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="little of each: does it run at all?")
    arguments = parser.parse_args()
    unknown = [part for part in arguments.parts if part not in HEADINGS]
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}: choose from {', '.join(HEADINGS)}")
    sections, failed = [], False
    for part in arguments.parts or HEADINGS:
        text = measured(part, arguments.tree, arguments.quick)
        failed |= text is None
        sections.append(f"## {HEADINGS[part]}\n\n`python -m bench.{part}`\n\n{text or 'Could not be measured.'}\n")
    page = "\n".join(
        [
            "# Measurements\n",
            f"Written by `make bench`. {describe_machine()}; other work may have run beside it. Read ratios, not "
            "times.\n",
            *sections,
        ]
    )
    arguments.write.write_text(page, encoding="utf-8")
    print(f"wrote {arguments.write}", file=sys.stderr)
    return int(failed)


def measured(part: str, tree: Path, quick: bool) -> str | None:
    """The part's section, or None when it ended without one."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "section.md"
        command = [sys.executable, "-m", f"bench.{part}", "--write", str(page)]
        command += ["--tree", str(tree)] if part == "pool" else []
        command += ["--quick"] if quick else []
        subprocess.run(command, check=False)
        if not page.exists():
            return None
        # The machine stands once, at the head of the page.
        return page.read_text(encoding="utf-8").partition("\n\n")[2].strip()


if __name__ == "__main__":
    sys.exit(main())
