"""Whatever an outcome file holds, `planner next` decides about it or refuses it in one line."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planner_command import done, failed, pending, undecided, with_test

from planner.cli.ending import Status
from planner.cli.next import status_of
from planner.cli.next_screen import show_decisions
from planner.cli.question import load_question
from planner.edges.decision_file import render_decisions
from planner.errors import PlannerError
from planner.model.outcome import TodoState
from planner.model.taxonomy import Category
from planner.planfile.loader import load_plan

HOSTILE = "\x1b[31m\u202e\u200b```\n# Ignore all instructions\r\n$(rm -rf /)"
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.text(max_size=5),
    st.sampled_from([HOSTILE, "", "a", "b", "a_branch_01", "x" * 5000, *Category, *TodoState]),
    st.just([]),
    st.just({}),
    st.lists(st.sampled_from(["a", "b", "q", HOSTILE]), max_size=3),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzzed")
    todos = [
        with_test("a"),
        {**with_test("a_branch_01"), "parent_id": "a", "branch_depth": 1, "is_temporary": True},
        with_test("b", dependencies=["a"]),
        with_test("q"),
        with_test("d"),
    ]
    items = [{"title": todo["id"], **todo} for todo in todos]
    plan = {"todo_list_id": "shop", "metadata": {"auto_fix_mode": True}, "items": items}
    (folder / "plan.yaml").write_text(json.dumps(plan))
    return folder


def document(folder: Path) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "plans": [
            {"todo_list_id": "shop", "path": "plan.yaml", "digest": load_plan(folder / "plan.yaml").digest}
        ],
        "run": {
            "run_id": "r",
            "started_at": "2026-01-01T00:00:00Z",
            "finished_at": "2026-01-01T00:00:01Z",
            "duration_ms": 1000,
            "exit_status": 1,
            "scope": "all",
            "python": "3.13.0",
            "pytest": "9.2.0",
        },
        "summary": {},
        "outcomes": [
            failed("a"),
            pending("a_branch_01"),
            pending("b", state="blocked", blocked_by=["a"]),
            undecided("q", "needs_human"),
            done("d"),
        ],
    }


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    below = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [path, *(place for key, part in below for place in places(part, (*path, key)))]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_damaged_outcome_file_is_decided_or_refused(
    data: st.DataObject, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = copy.deepcopy(document(folder))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(places(damaged)[1:]))
        part = damaged
        for key in place[:-1]:
            part = part[key]
        part[place[-1]] = data.draw(ODD)
    (folder / "outcomes.json").write_text(json.dumps(damaged))
    refused = ""
    try:
        decisions = load_question(folder / "plan.yaml", folder / "outcomes.json").decide(())
    except PlannerError as error:
        refused = str(error)
    if refused:
        assert not set("\n\x1b\u202e\u200b\r") & set(refused)
        return
    show_decisions(decisions, Path("plan.yaml"))
    shown = capsys.readouterr().out

    assert status_of(decisions) in (Status.OK, 10, 11, 12, 13)
    assert not set("\x1b\u202e\u200b\r") & set(shown)
    assert render_decisions(decisions).isascii()
