"""The results file: one section for each part, in a fixed order, each with the machine that it was measured on.

Pure functions from text to text. A part's section starts at its heading and ends at the next one of that level.
"""

from __future__ import annotations

from collections.abc import Mapping

PARTS = {
    "pool": "Block pool: kvpool beside vLLM",
    "explorer": "Explorer: kvfuzz beside Spin",
    "drivers": "Drivers: walk, explorer and Hypothesis machine",
}
"""Name of a part on the command line -> heading of its section."""

_TITLE = """# Results

Made by `python -m bench` (`make bench`), which measures both sides of every comparison in one run, taking turns.
Compare ratios; absolute figures depend on the machine and on what else it does. A goal that was not reached says
**missed**.
"""


def merge(before: str, measured: Mapping[str, str]) -> str:
    """The file with new sections for what was measured; the sections of other parts stay as they were."""
    kept = sections(before)
    parts = []
    for part, heading in PARTS.items():
        body = measured.get(part, kept.get(heading, "")).strip()
        if body:
            parts.append(f"## {heading}\n\n{body}\n")
    return "\n".join([_TITLE, *parts])


def sections(text: str) -> dict[str, str]:
    """Heading of the second level -> what stands below it."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        if line.startswith("## "):
            current = found.setdefault(line.removeprefix("## "), [])
        elif current is not None:
            current.append(line)
    return {heading: "\n".join(lines).strip() for heading, lines in found.items()}
