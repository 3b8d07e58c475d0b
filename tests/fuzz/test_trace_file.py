"""Trace files: what is written can be read, and what cannot be read is refused with the reason and a way out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvfuzz.errors import TraceError
from kvfuzz.levels import level_named
from kvfuzz.replay import run
from kvfuzz.trace import SCHEMA, Trace, read_trace, write_trace
from kvspec.pool import Allocate, CacheFull, Free, PoolModel, PoolScope, held, null, queued, stranger
from seeded_bugs.catalogue import bug_named

SCOPE = PoolScope(blocks=(3,), holders=2, prefixes=2, depth=2, hold=2, watchers=1)
ACTIONS = (
    Allocate(0, 2),
    CacheFull((held(0, 0), null()), 1, 0, 0, 2),
    Free(0, (held(0, 1), queued(0), stranger())),
    Free(0, (held(0, 1), held(0, 0))),
)
TRACE = Trace(
    level_named("pool"), "kvpool", SCOPE, ACTIONS, "P8", "P8 broken: it went wrong", "walk, seed 1, run 2", True, ("l",)
)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_everything_that_a_replay_needs_survives_the_file(tmp_path: Path) -> None:
    assert read_trace(write_trace(TRACE, path=tmp_path / "deep" / "trace.itf.json")) == TRACE


def test_trace_without_a_name_is_named_by_what_failed_where_traces_are_kept() -> None:
    path = write_trace(TRACE._replace(target="somewhere/vllm@tree"))
    assert path.parent == Path(".kvproof/traces")
    assert path.name.startswith("vllm-tree-P8-")
    assert path.name.endswith(".itf.json")
    assert read_trace(path).actions == ACTIONS


def test_same_trace_has_the_same_name_and_another_one_another() -> None:
    assert write_trace(TRACE) == write_trace(TRACE)
    assert write_trace(TRACE._replace(actions=ACTIONS[:2])) != write_trace(TRACE)


def test_nothing_but_the_trace_is_left_behind(tmp_path: Path) -> None:
    write_trace(TRACE, path=tmp_path / "out" / "trace.itf.json")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["trace.itf.json"]


def test_states_of_a_failing_run_are_in_the_file_with_what_broke() -> None:
    bug = bug_named("identified-released-to-head")
    actions = (Allocate(0, 1), CacheFull((held(0, 0),), 0), Free(0, (held(0, 0),)))
    model = PoolModel(bug.scope)
    failure, _ = run(model, bug.adapter(), actions)
    assert failure is not None
    path = write_trace(Trace(level_named("pool"), "kvpool", bug.scope, actions, "P8"), failure)
    data = json.loads(path.read_text())
    assert data["vars"] == ["action", "outcome", "queues", "refs", "entries", "watchers", "tables"]
    assert len(data["states"]) == 4
    assert data["states"][1]["tables"] == [[1], []]
    assert data["states"][2]["entries"][1] == ["p0[1]"]
    assert data["states"][3]["queues"] == [[1, 2, 3, 4]]  # the implementation's own
    assert "P8 broken" in data["states"][3]["#meta"]["broken"][0]


def altered(**changes: Any) -> Path:
    """A written trace with entries of #meta.kvproof replaced."""
    path = write_trace(TRACE)
    data = json.loads(path.read_text())
    data["#meta"]["kvproof"].update(changes)
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_file_that_was_cut_is_said_to_be_cut_and_where(share: float) -> None:
    path = write_trace(TRACE)
    text = path.read_text()
    path.write_text(text[: int(len(text) * share)])
    with pytest.raises(TraceError, match=r"is not whole JSON: .* byte \d+ of \d+\. It looks cut off"):
        read_trace(path)


@pytest.mark.parametrize(
    "text",
    ["[]", "3", "null", "{}", '{"#meta": 1}', '{"#meta": {}, "states": []}', '{"#meta": {"kvproof": {}}}'],
)
def test_foreign_json_is_said_to_be_no_trace(text: str, tmp_path: Path) -> None:
    path = tmp_path / "foreign.json"
    path.write_text(text)
    with pytest.raises(TraceError, match="is no kvproof trace: expected an ITF object"):
        read_trace(path)


@pytest.mark.parametrize("schema", [SCHEMA + 1, "2", None])
def test_newer_schema_says_which_version_wrote_it(schema: Any) -> None:
    path = altered(schema=schema, version="9.9")
    with pytest.raises(TraceError, match=r"trace schema .* reads up to 1.* kvproof 9\.9; update"):
        read_trace(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": "galaxy"}, "unknown level 'galaxy'"),
        ({"scope": {"blocks": [0]}}, "scope field blocks"),
        ({"scope": {"colour": 1}}, "unknown fields"),
        ({"scope": []}, "is damaged"),
    ],
    ids=str,
)
def test_damaged_header_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read_trace(altered(**change))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"action": "Steal"}, "unknown pool action 'Steal'"),
        ({"action": "Allocate", "holder": 0}, "missing fields"),
        (None, "is damaged"),
    ],
    ids=str,
)
def test_unknown_action_is_named(action: Any, message: str) -> None:
    path = write_trace(TRACE)
    data = json.loads(path.read_text())
    data["states"][2]["action"] = action
    path.write_text(json.dumps(data))
    with pytest.raises(TraceError, match=message):
        read_trace(path)


def test_missing_file_is_answered_with_the_traces_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="there are no traces"):
        read_trace(tmp_path / "gone.itf.json")
    name = write_trace(TRACE).name
    with pytest.raises(TraceError, match=f"traces here: {name}"):
        read_trace(tmp_path / "gone.itf.json")


def test_file_that_is_no_text_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "picture.itf.json"
    path.write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(TraceError, match="cannot read the trace"):
        read_trace(path)
    with pytest.raises(TraceError, match="cannot read the trace"):
        read_trace(tmp_path)


def test_place_that_cannot_be_written_is_named_with_the_option_that_helps(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(TraceError, match=r"cannot write the trace to .*Give a writable place with --output"):
        write_trace(TRACE, path=blocked / "trace.itf.json")
    assert blocked.read_text() == "in the way"
