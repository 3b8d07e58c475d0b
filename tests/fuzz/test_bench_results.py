"""The text side of the benchmarks of explorer and drivers: sections, verdicts, and what happens without Spin."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.__main__ import newest_tree
from bench.drivers import section as drivers
from bench.drivers.comparison import Turns, take_turns
from bench.drivers.contenders import Contender, Work
from bench.explorer import comparison, section, spin
from bench.explorer.comparison import Agreement, Planted, Race
from bench.explorer.small_model import SmallScope
from bench.explorer.spin import SpinRun
from bench.machine import describe_machine
from bench.results import merge, sections

from kvspec.pool import PoolScope

TINY = SmallScope(blocks=2, requests=1, hashes=1, longest=2)
SHARING = SmallScope(blocks=2, requests=2, hashes=1, longest=2)  # here a block can be shared and released
STATES_OF_TINY, TRANSITIONS_OF_TINY = 24, 80  # counted by Spin 6.5.2


def spin_run(states: int, transitions: int, cpu_seconds: float, errors: int = 0) -> SpinRun:
    return SpinRun(states, transitions, errors, "", 1.0, cpu_seconds)


def planted_alone() -> Planted:
    full, plain = (comparison.explore(SHARING, symmetry, planted=True) for symmetry in ("full", "none"))
    return Planted(SHARING, None, full, plain)


def test_new_section_replaces_its_own_and_leaves_the_others() -> None:
    before = merge("", {"pool": "old pool", "drivers": "old drivers"})
    after = sections(merge(before, {"drivers": "new drivers", "explorer": "| a table |"}))
    assert list(after.values()) == ["old pool", "| a table |", "new drivers"]


def test_merging_twice_changes_nothing() -> None:
    once = merge("", {"explorer": "one\n\ntwo"})
    assert merge(once, {}) == once


def test_machine_description_has_processor_cores_python_and_kernel_only(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n", encoding="utf-8")
    described = describe_machine(cpuinfo).split(", ")
    assert described[0] == "Some CPU @ 2 GHz"
    assert described[1].endswith(" cores")
    assert len(described) == 4


def test_newest_tree_is_chosen_by_number_and_must_hold_vllm(tmp_path: Path) -> None:
    assert newest_tree(tmp_path) is None
    for name in ("vllm-0.9.0", "vllm-0.32.0", "vllm-0.4.0"):
        (tmp_path / name / "vllm").mkdir(parents=True)
    (tmp_path / "vllm-0.40.0").mkdir()
    assert newest_tree(tmp_path) == tmp_path / "vllm-0.32.0"


def test_without_spin_the_explorer_is_measured_and_the_reader_told_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    assert not spin.is_installed()
    agreed, planted = comparison.count(TINY), comparison.plant(SHARING)
    text = section.render("", [agreed], [], planted)
    assert agreed.holds
    assert "apt-get install spin gcc" in text
    assert "explorer, full symmetry" in text
    assert "missed" not in text


@pytest.mark.skipif(not spin.is_installed(), reason=spin.MISSING)
def test_spin_counts_what_is_recorded_and_finds_the_planted_bug() -> None:
    agreed = comparison.count(TINY)
    assert agreed.spin is not None
    assert (agreed.spin.states, agreed.spin.transitions) == (STATES_OF_TINY, TRANSITIONS_OF_TINY)
    assert agreed.holds
    planted = comparison.plant(SHARING)
    assert planted.is_found
    assert planted.spin is not None
    assert "assertion violated" in planted.spin.complaint


@pytest.mark.parametrize("states", [STATES_OF_TINY, STATES_OF_TINY + 1])
def test_a_different_count_is_a_missed_goal(states: int) -> None:
    plain, full = comparison.explore(TINY, "none"), comparison.explore(TINY, "full")
    agreed = Agreement(TINY, spin_run(states, TRANSITIONS_OF_TINY, 0.1), plain, full)
    assert agreed.holds == (states == STATES_OF_TINY)
    text = section.render("Spin", [agreed], [], planted_alone())
    assert ("missed" in text) != agreed.holds


@pytest.mark.parametrize(("spin_seconds", "verdict"), [(1.0, "kept"), (0.1, "**missed**")])
def test_ratio_is_taken_between_neighbours_and_judged_by_the_goal(spin_seconds: float, verdict: str) -> None:
    full = comparison.explore(TINY, "full")._replace(cpu_seconds=0.1)
    raced = Race(TINY, 2.0, [spin_run(24, 80, spin_seconds)] * 3, [full] * 3)
    assert raced.ratio == pytest.approx(0.1 / spin_seconds)
    assert verdict in section.render("Spin", [], [raced], planted_alone())


def test_drivers_take_turns_and_warm_up_for_nothing() -> None:
    heard: list[tuple[str, int]] = []

    def contender(name: str) -> Contender:
        def turn(seed: int, cpu_seconds: float) -> Work:
            heard.append((name, seed))
            return Work(100, cpu_seconds)

        return turn

    turns = take_turns({"a": contender("a"), "b": contender("b")}, rounds=2, cpu_seconds=2.0)
    assert heard == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("b", 2), ("a", 2)]
    assert turns.rate("a") == 50.0
    assert turns.steps("b") == 200


@pytest.mark.parametrize(("walked", "missed"), [(30_000, 0), (12_000, 1), (9_000, 2)])
def test_walk_is_judged_by_its_ratio_and_by_its_best_turn(walked: int, missed: int) -> None:
    names = (drivers.WALK, drivers.MACHINE, drivers.WALK_ALL, drivers.MACHINE_ALL)
    steps = dict(zip(names, (walked, 500, walked, 500), strict=True))
    turns = Turns({name: [Work(count, 1.0)] for name, count in steps.items()})
    assert drivers.render([(PoolScope(), turns)]).count("missed") == missed
