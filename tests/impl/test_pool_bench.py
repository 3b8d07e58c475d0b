"""The pool benchmark starts, and its table says what was kept and what was missed. No figure is checked here."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

TABLE = """
from bench.pool.measure import Comparison
from bench.pool.table import Cell, Figure, render
cells = [
    Cell("get", 16, size, Comparison(10.0, 40.0, ratio), 0.5) for size, ratio in (("1k", 0.254), ("1M", 0.504))
] + [Cell("free", None, size, Comparison(30.0, 40.0, 0.75), 0.7) for size in ("1k", "1M")]
print(render("vLLM 0.0", ["1k", "1M"], cells, [Figure("memory", 96.0, 100.0, 0.96, None)]))
"""


def run(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, *arguments], cwd=REPOSITORY, capture_output=True, check=True, text=True
    ).stdout


def test_command_line_describes_itself() -> None:
    text = run("-m", "bench.pool", "--help")
    assert "--tree" in text
    assert "--write" in text


def test_table_has_one_ratio_per_pool_size_and_marks_missed_promises() -> None:
    lines = run("-c", TABLE).splitlines()
    assert "| get | 16 | 0.25 | 0.50 | 10 / 10 | 40 / 40 | 0.50 | kept |" in lines
    assert "| free |  | 0.75 | 0.75 | 30 / 30 | 40 / 40 | 0.70 | **missed** |" in lines
    assert "| memory | 96.0 | 100.0 | 0.96 |  |  |" in lines
