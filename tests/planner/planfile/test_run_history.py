"""Since when todos have been blocked, and what has changed since, as the journals of kept runs tell it."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.planfile.latest_outcomes import ChangedFiles, blocked_since, changed_files

DAY = "2026-01-{:02}T00:00:00.000Z"
FIRST = 1767225600
"""The first of January 2026."""


def judged(todo_id: str, state: str, day: int, **more: Any) -> dict[str, Any]:
    at = FIRST + (day - 1) * 86400
    return {"record": "todo_judged", "session": "parent", "at": at, "todo_id": todo_id, "plan": "p"} | {
        "state": state,
        "blocked_by": [],
        **more,
    }


def finished(plan: str = "p") -> dict[str, Any]:
    return {"record": "run_finished", "session": "parent", "at": FIRST, "plan": plan, "exit_status": 1}


def journal(root: Path, day: int, name: str = "") -> Path:
    path = root / f".planverify/runs/202601{day:02}T000000-1-abc{name}/journal.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def run(root: Path, day: int, states: dict[str, str], *more: dict[str, Any]) -> Path:
    path = journal(root, day)
    records = [judged(todo_id, state, day) for todo_id, state in states.items()]
    path.write_text("".join(json.dumps(each) + "\n" for each in (started(), *records, finished(), *more)))
    return path


def started(plan: str = "p") -> dict[str, Any]:
    reference = {"todo_list_id": plan, "path": "plan.yaml", "digest": ""}
    record = {"record": "run_started", "session": "parent", "at": FIRST, "plan": "plan.yaml"}
    return {**record, "version": 1, "run_id": "r", "digest": "", "reference": reference}


def test_a_verdict_that_may_rest_on_any_file_rests_on_no_other_plan(tmp_path: Path):
    check = {"id": "verify", "kind": "command", "verdict": "passed", "duration_ms": 1}
    judged = {"record": "check_judged", "session": "parent", "at": FIRST, "plan": "p", "todo_id": "a"}
    journal(tmp_path, 1).write_text(
        "".join(json.dumps(each) + "\n" for each in (started(), {**judged, "check": check}, finished()))
    )
    (tmp_path / "iterations").mkdir()
    (tmp_path / "iterations/002.yaml").write_text("todo_list_id: next\nitems: []\n")
    assert changed_files(tmp_path, "p", "r") == ChangedFiles()

    (tmp_path / "data.yaml").write_text("rates: [1, 2]\n")
    assert changed_files(tmp_path, "p", "r") == ChangedFiles(
        paths=("data.yaml",), by_todo={"a": ("data.yaml",)}
    )


def test_runs_of_other_plans_and_of_no_end_are_passed_over(tmp_path: Path):
    run(tmp_path, 1, {"a": "blocked"})
    lines = (started(), judged("a", "done", 2))
    journal(tmp_path, 2).write_text("".join(json.dumps(each) + "\n" for each in lines))
    lines = (started("other"), judged("a", "done", 3, plan="other"), finished("other"))
    journal(tmp_path, 3).write_text("".join(json.dumps(each) + "\n" for each in lines))
    journal(tmp_path, 4).write_text("".join(json.dumps(each | {"session": "s1"}) + "\n" for each in lines))

    assert blocked_since(tmp_path, "p") == {"a": DAY.format(1)}


def test_files_that_are_no_journals_are_passed_over(tmp_path: Path):
    run(tmp_path, 1, {"a": "blocked"})
    journal(tmp_path, 2).mkdir()
    os.mkfifo(journal(tmp_path, 3))
    journal(tmp_path, 4).symlink_to("/dev/zero")
    (tmp_path / ".planverify/runs/file").write_text("x")
    journal(tmp_path, 5).write_bytes(b"\xff\0\n[[[[\n" + b"[" * 100_000 + b"\n{}\n1\n")

    assert blocked_since(tmp_path, "p") == {"a": DAY.format(1)}


@pytest.mark.parametrize(
    "odd",
    [
        {"at": "yesterday"},
        {"at": None},
        {"at": True},
        {"at": 1e300},
        {"at": float("nan")},
        {"todo_id": ["a"]},
        {"state": None},
    ],
)
def test_a_record_that_is_no_record_says_nothing(odd: dict[str, Any], tmp_path: Path):
    run(tmp_path, 1, {"a": "blocked"})
    run(tmp_path, 2, {}, judged("a", "done", 2) | odd)

    assert blocked_since(tmp_path, "p") == {"a": DAY.format(1)}


STATES = st.sampled_from(["blocked", "done", "pending", "testing", "test_failed"])


@given(st.lists(st.dictionaries(st.sampled_from("abc"), STATES), max_size=9))
def test_the_newest_unbroken_row_is_what_counts(states: list[dict[str, str]]):
    with tempfile.TemporaryDirectory() as folder:
        for day, each in enumerate(states, 1):
            run(Path(folder), day, each)
        found = blocked_since(Path(folder), "p")
    expected: dict[str, str] = {}
    for day, each in enumerate(states, 1):
        for todo_id, state in each.items():
            if state == "blocked":
                expected.setdefault(todo_id, DAY.format(day))
            elif state != "pending":
                expected.pop(todo_id, None)

    assert found == expected
