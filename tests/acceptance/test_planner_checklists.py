"""What a plan must have before it is worked on, and how it is shown while it is, by the real command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from example_project import Example
from real_planner import Desk, Ran, planner, todo
from text_bundles import unpack_bundle

from planner.testing import (
    Workflow,
    create_sample_todo,
    create_test_workflow,
    simulate_failure,
)

PHASES = Path(__file__).parents[2] / "fixtures" / "projects" / "phases.txt"
ROUTING = {"implementation_bug": "coder", "spec_mismatch": "architect", "timeout": "tester"}

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


def judged(todo_id: str, cmd: str, *, timeout_seconds: float = 30, **keys: Any) -> dict[str, Any]:
    test = {"cmd": cmd, "timeout_seconds": timeout_seconds}
    return {
        "id": todo_id,
        "failure_routing": ROUTING,
        "max_retries": 2,
        "acceptance_criteria": {"tests": [test]},
        **keys,
    }


PURE = "pytest tests/test_pure.py"
FAST = {"name": "speed", "operator": ">", "value": 5}
CHECKLIST = {  # rule that finds it: todo that breaks it
    "no-test": judged("no-test", PURE, acceptance_criteria={"expected_artifacts": ["a.txt"]}),
    "unseeded-random": judged("unseeded-random", "pytest tests/test_random.py"),
    "wall-clock": judged("wall-clock", "pytest tests/test_clock.py"),
    "network-access": judged("network-access", "pytest tests/test_network.py"),
    "command-hollow": judged("command-hollow", "pytest --collect-only tests/test_pure.py"),
    "timeout-unreasonable": judged("timeout-unreasonable", PURE, timeout_seconds=86_400),
    "retries-unreasonable": judged("retries-unreasonable", PURE, max_retries=0),
    "contract-missing": judged("contract-missing", PURE, contract_path="contracts/none.json"),
    "fixture-missing": judged(
        "fixture-missing",
        PURE,
        acceptance_criteria={"tests": [{"cmd": PURE, "fixture": "fixtures/none.json"}]},
    ),
    "metric-unsatisfiable": judged(
        "metric-unsatisfiable",
        PURE,
        acceptance_criteria={
            "tests": [{"cmd": PURE}],
            "metrics": [FAST, {**FAST, "operator": "<", "value": 3}],
        },
    ),
    "outside-allowed-files": judged(
        "outside-allowed-files",
        PURE,
        allowed_files=["docs/**"],
        acceptance_criteria={"tests": [{"cmd": PURE}], "expected_artifacts": ["out/a.txt"]},
    ),
}
FILES = {
    "tests/test_pure.py": "def test_it():\n    assert sorted([2, 1]) == [1, 2]\n",
    "tests/test_random.py": "import random\n\ndef test_it():\n    assert random.random() < 2\n",
    "tests/test_clock.py": "import time\n\ndef test_it():\n    assert time.time() > 1\n",
    "tests/test_network.py": (
        "import urllib.request\n\ndef test_it():\n    assert urllib.request.urlopen('http://example.com')\n"
    ),
}


@pytest.fixture(scope="module")
def checklist(desks: Desks) -> set[tuple[str, str | None]]:
    desk = desks("checklist")
    for name, text in FILES.items():
        desk.write(name, text)
    desk.plan(*CHECKLIST.values(), judged("sound", PURE))
    return findings(desk)


@pytest.mark.parametrize("rule", CHECKLIST)
def test_the_checklist(checklist: set[tuple[str, str | None]], rule: str) -> None:
    assert (rule, rule) in checklist


@pytest.mark.parametrize("rule", ["no-test", "timeout-unreasonable", "retries-unreasonable", "wall-clock"])
def test_a_sound_todo_breaks_no_rule_of_the_checklist(checklist: Any, rule: str) -> None:
    assert (rule, "sound") not in checklist


def test_todos_that_alone_lack_a_routing_are_told_once_a_plan(desks: Desks) -> None:
    desk = desks("routing")
    todos = [judged(name, "pytest") for name in "abcd"]
    desk.plan(*todos[:2], *({**each, "failure_routing": {}} for each in todos[2:]))
    ran = planner("validate", "plan.yaml", "--json", "--select", "routing-missing", cwd=desk.folder)
    (found,) = ran.json["findings"]
    assert (ran.status, found["severity"]) == (0, "advice")
    assert "'c', 'd'" in found["message"]


def test_dependencies_in_a_circle_are_no_plan_at_all(desks: Desks) -> None:
    desk = desks("circle")
    desk.plan(todo("a", "b"), todo("b", "a"))
    ran = planner("validate", "plan.yaml", cwd=desk.folder)
    assert ran.status == 4
    assert "a -> b -> a" in ran.err.replace("'", "") + ran.out.replace("'", "")


def test_the_steps_of_a_named_template_are_there(desks: Desks) -> None:
    desk = desks("template")
    desk.plan(todo("t1_data_integration"), **{"x-template": "strategy"})
    assert "template-mismatch" in {rule for rule, _ in findings(desk)}


# --- when a plan should be divided -----------------------------------------------------------------------

DIVIDED: dict[
    str, tuple[list[tuple[str, str | None]], bool]
] = {  # plan: titles and folders, is it to be divided
    "fifteen-alike": ([(f"Feature {n}", None) for n in range(15)], False),
    "sixteen-alike": ([(f"Feature {n}", None) for n in range(16)], True),
    "clear-phases": ([(f"Phase {1 + n // 4}: Part", None) for n in range(8)], True),
    "several-domains": ([(f"Piece {n}", ("shop", "billing", "mail")[n % 3]) for n in range(9)], True),
    "single-feature": ([("Create", None), ("Read", None), ("Update", None), ("Delete", None)], False),
}


@pytest.mark.parametrize("row", DIVIDED)
def test_a_plan_is_to_be_divided(desks: Desks, row: str) -> None:
    parts, expected = DIVIDED[row]
    desk = desks(row)
    ids = [f"{chr(97 + number)}{number}" for number in range(len(parts))]
    before = {
        name: ids[at - 1 : at] if at and row in ("fifteen-alike", "sixteen-alike") else []
        for at, name in enumerate(ids)
    }
    todos = [
        {
            **todo(name, *before[name]),
            "title": title,
            **({"allowed_files": [f"{folder}/**"]} if folder else {}),
        }
        for name, (title, folder) in zip(ids, parts, strict=True)
    ]
    desk.plan(*todos)
    assert ("hierarchy-suggested" in {rule for rule, _ in findings(desk)}) is expected


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


# --- the kit for tests of workflows ----------------------------------------------------------------------


def test_a_failure_makes_a_branch_for_the_role_of_its_kind() -> None:
    workflow = create_test_workflow()
    task = workflow.plan.todo("t1_data_integration")
    repair = workflow.handle_failure(task, simulate_failure(task, error_type="implementation_bug"))
    assert repair is not None
    assert (repair.parent_id, repair.agent_role, repair.is_temporary) == (task.id, "coder", True)


def failed_indicators() -> Workflow:
    workflow = create_test_workflow()
    workflow.inject_success("t1_data_integration")
    workflow.inject_failure("t2_indicators", "RSI mismatch", error_type="implementation_bug")
    return workflow


def test_a_failed_todo_blocks_what_depends_on_it() -> None:
    workflow = failed_indicators()
    assert workflow.get_status("t3_entry_conditions") == "blocked"
    assert workflow.get_status("t4_exit_conditions") == "blocked"


def test_a_branch_that_resolves_lets_the_workflow_go_on_to_its_end() -> None:
    workflow = failed_indicators()
    (made,) = workflow.get_branches()
    assert workflow.has_branch("t2_indicators")
    assert made.agent_role == "coder"
    workflow.inject_success(made.id)
    assert workflow.get_status("t2_indicators") == "done"
    assert workflow.get_status("t3_entry_conditions") == "active"
    workflow.inject_success("t3_entry_conditions")
    workflow.inject_success("t4_exit_conditions")
    assert workflow.state.plan_state == "completed"


@pytest.mark.parametrize(
    ("error_type", "role"),
    [
        ("missing_dependency", "coder"),
        ("spec_mismatch", "architect"),
        ("timeout", "tester"),
        ("flaky_test", "tester"),
        ("implementation_bug", "coder"),
        ("UNKNOWN", "debugger"),
    ],
)
def test_each_kind_of_error_is_routed(error_type: str, role: str) -> None:
    workflow = create_test_workflow()
    repair = workflow.inject_failure("t1_data_integration", "it broke", error_type=error_type)
    assert repair is not None
    assert repair.agent_role == role


def test_a_sample_todo_can_be_anything() -> None:
    assert create_sample_todo("t9", priority=7).priority == 7
