"""What a plan must have before it is worked on, and how it is shown while it is, by the real command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from example_project import Example
from real_planner import Desk, Ran, planner, todo
from text_bundles import unpack_bundle

PHASES = Path(__file__).parents[2] / "fixtures" / "projects" / "phases.txt"

Desks = Callable[[str], Desk]


@pytest.fixture(scope="module")
def desks(tmp_path_factory: pytest.TempPathFactory) -> Desks:
    def desk(name: str) -> Desk:
        return Desk(tmp_path_factory.mktemp(name))

    return desk


def findings(desk: Desk) -> set[tuple[str, str | None]]:
    """Rule and todo of each finding."""
    ran = planner("validate", "plan.yaml", "--json", cwd=desk.folder)
    assert ran.status == any(each["severity"] == "error" for each in ran.json["findings"]), ran.err
    return {(each["rule"], each.get("todo_id")) for each in ran.json["findings"]}


# --- the checklist ---------------------------------------------------------------------------------------


# Every rule with all its cases is in tests/planner/lint: these read what lies beside the plan.
READS_FILES: dict[str, dict[str, Any]] = {  # rule that finds it: criteria that break it
    "unseeded-random": {"tests": [{"cmd": "pytest tests/test_random.py"}]},
    "network-access": {"tests": [{"cmd": "pytest tests/test_network.py"}]},
    "fixture-missing": {"tests": [{"cmd": "pytest tests/test_pure.py", "fixture": "fixtures/none.json"}]},
}
FILES = {
    "tests/test_pure.py": "def test_it():\n    assert sorted([2, 1]) == [1, 2]\n",
    "tests/test_random.py": "import random\n\ndef test_it():\n    assert random.random() < 2\n",
    "tests/test_network.py": (
        "import urllib.request\n\ndef test_it():\n    assert urllib.request.urlopen('http://example.com')\n"
    ),
}


def test_the_files_that_a_todo_names_are_read(desks: Desks) -> None:
    desk = desks("checklist")
    for name, text in FILES.items():
        desk.write(name, text)
    sound = {"tests": [{"cmd": "pytest tests/test_pure.py"}]}
    criteria = {**READS_FILES, "sound": sound}
    desk.plan(*({"id": rule, "acceptance_criteria": each} for rule, each in criteria.items()))

    found = findings(desk)

    assert {(rule, rule) for rule in READS_FILES} <= found
    assert not {(rule, "sound") for rule in READS_FILES} & found


def test_dependencies_in_a_circle_are_no_plan_at_all(desks: Desks) -> None:
    desk = desks("circle")
    desk.plan(todo("a", "b"), todo("b", "a"))
    ran = planner("validate", "plan.yaml", cwd=desk.folder)
    assert ran.status == 4
    assert "a -> b -> a" in ran.err.replace("'", "") + ran.out.replace("'", "")


# --- parents and their children --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> tuple[Example, Ran, Ran, str]:
    example = Example(tmp_path_factory.mktemp("editor") / "phases")
    unpack_bundle(PHASES, example.root)
    text = example.root / "tests/test_words.py"
    text.write_text(text.read_text(encoding="utf-8") + "\n\ndef test_more():\n    assert 1 == 2\n")
    said = example.verify("plan.yaml").output
    shown = planner("status", "plan.yaml", cwd=example.root)
    return example, shown, planner("next", "plan.yaml", "--json", cwd=example.root), said


def line_of(shown: Ran, todo_id: str) -> str:
    return next(line for line in shown.out.splitlines() if f" {todo_id} " in line)


@pytest.mark.parametrize(
    ("todo_id", "progress", "state"),
    [("phase-1", "(2/2)", "done"), ("phase-2", "(3/3)", "done"), ("phase-3", "(2/3)", "in progress")],
)
def test_a_parent_shows_how_far_its_children_are_in_the_run_and_in_the_status(
    editor: Any, todo_id: str, progress: str, state: str
) -> None:
    shown = line_of(editor[1], todo_id)
    assert progress in shown
    assert state in shown
    assert progress in next(
        line for line in editor[3].splitlines() if f"  {todo_id} " in line and "(" in line
    )


def test_the_failure_of_a_child_keeps_its_parent_open_and_is_repaired_where_it_is(editor: Any) -> None:
    (asked,) = editor[2].actions
    assert (asked["parent_id"], asked["todo_id"]) == ("phase-3/words", "phase-3/words_branch_01")


def test_a_todo_of_a_sub_plan_is_shown_by_its_qualified_id(editor: Any) -> None:
    ran = planner("status", "plan.yaml", "phase-3/words", cwd=editor[0].root)
    assert (ran.status, "failed" in ran.out) == (0, True)


def test_no_deeper_levels_are_shown_than_asked_for(editor: Any) -> None:
    ran = planner("status", "plan.yaml", "--depth", "1", cwd=editor[0].root)
    assert "phase-3" in ran.out
    assert "Words" not in ran.out
