"""The decision tables of the planner, row by row, with the real command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_planner import Desk, Ran, failed, passed, planner, todo

from planner.model.taxonomy import CATEGORIES, Category

SEEDS = Path(__file__).parents[2] / "fixtures" / "seeds"
SEED_PLAN = json.loads((SEEDS / "todo_list.json").read_text(encoding="utf-8"))
ASK = {"auto_fix_mode": False, "max_concurrent_branches": 1000}

# --- the fields of a branch todo -------------------------------------------------------------------------

RSI_TEST = "tests/test_indicators.py::test_rsi_values"
RSI = SEED_PLAN["items"][1]["acceptance_criteria"]["tests"][0]["cmd"]


@pytest.fixture(scope="module")
def proposed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the branch that is proposed to a person, which shows every field."""
    desk = Desk(tmp_path_factory.mktemp("momentum"))
    # Retries would come before the proposal.
    items = [each | {"max_retries": 0} for each in SEED_PLAN["items"]]
    metadata = SEED_PLAN["metadata"] | ASK
    desk.write("plan.yaml", SEED_PLAN | {"metadata": metadata, "items": items})
    said = "AssertionError: expected RSI 28.5, got 32.1"
    evidence: dict[str, Any] = {"check_id": "tests[0]", "tests": [RSI_TEST], "stack_trace_head": said}
    desk.outcomes(passed("t1_data_integration"), failed("t2_indicators", **evidence))
    return desk.next().branch("t2_indicators")


BRANCH_FIELDS: dict[str, Any] = {
    "id": "t2_indicators_branch_01",
    "parent_id": "t2_indicators",
    "title": "Repair Indicator & Candle Patterns (implementation bug)",
    "agent_role": "coder",
    "target_agent_role": "coder",
    "branch_reason": "implementation_bug",
    "branch_depth": 1,
    "dependencies": [],
    "is_temporary": True,
    "max_debug_attempts": 3,
    "max_lifetime_seconds": 600,
}


def test_a_branch_has_its_fields_and_as_criteria_the_failing_tests_and_the_report(
    proposed: dict[str, Any],
) -> None:
    assert {field: proposed.get(field, []) for field in BRANCH_FIELDS} == BRANCH_FIELDS
    criteria = proposed["acceptance_criteria"]
    assert [(test["cmd"], test["timeout_seconds"]) for test in criteria["tests"]] == [(RSI, 20)]
    assert criteria["expected_artifacts"] == ["diagnostics/t2_indicators_failure_report.json"]


# --- the limit of open branches --------------------------------------------------------------------------


def test_by_default_five_branches_are_open_by_urgency_without_approval(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    names = [f"t{number}" for number in range(7)]
    desk.plan(*(todo(name, priority=-int(name[1])) for name in names))
    desk.outcomes(*(failed(name) for name in names))

    ran = desk.next()

    assert ran.status == 0
    assert set(ran.asked) == set(names[2:])
    found = {(asked["action"], asked["rule"]) for asked in ran.asked.values()}
    assert found == {("implement", "branch-is-worked-on")}
    shown = planner("next", "plan.yaml", "--outcomes", "outcomes.json", cwd=desk.folder).out
    for waits in ("t0", "t1"):
        assert f"{waits}: its branch waits for another branch to end (max_concurrent_branches)" in shown


# --- halts -----------------------------------------------------------------------------------------------

HALTS: dict[str, tuple[dict[str, Any], dict[str, float], str, int]] = {
    # name: outcome, budget, rule, exit status
    "violation": (failed("t", "SANDBOX_VIOLATION"), {}, "halt-on-violation", 13),
    "BUDGET_EXCEEDED": (failed("t", "BUDGET_EXCEEDED"), {}, "halt-on-budget", 12),
    "cycles": ({**passed("t"), "metrics": {"patch_cycles": 10**400}}, {"cycles": 2}, "halt-on-budget", 12),
    "time": (passed("t"), {"wall_seconds": 0.5}, "halt-on-budget", 12),
}


@pytest.mark.parametrize("row", HALTS)
def test_every_halt_stops_all_actions(tmp_path: Path, row: str) -> None:
    outcome, budget, rule, status = HALTS[row]
    desk = Desk(tmp_path)
    desk.plan(todo("t"), todo("other"), todo("next"), metadata={"budget": budget})
    desk.outcomes(outcome, failed("other"), {**failed("next"), "state": "pending"})
    ran = desk.next()
    assert (ran.status, ran.json["state"], ran.json["stopped"]["rule"]) == (status, "halted", rule)
    assert ran.actions == []


# --- roles -----------------------------------------------------------------------------------------------

BUG, SPEC, SLOW, FLAKY, LACKS = (
    "implementation_bug",
    "spec_mismatch",
    "timeout",
    "flaky_test",
    "missing_dependency",
)
ROUTES = {  # routing of the todo, category: role
    "category-before-key": ({"TEST_REGRESSION": "tester", BUG: "architect"}, "TEST_REGRESSION", "tester"),
    "category-before-its-own-default": ({"TEST_CRASH": "coder"}, "TEST_CRASH", "coder"),
    "own-default-before-key-of-crash": ({BUG: "architect"}, "TEST_CRASH", "debugger"),
    "own-default-before-key-of-not-found": ({SPEC: "architect"}, "TEST_NOT_FOUND", "tester"),
    "key-before-default": ({BUG: "architect"}, "TEST_REGRESSION", "architect"),
    "key-of-another-kind": ({SLOW: "architect"}, "TEST_REGRESSION", "coder"),
    "key-implementation-bug": ({BUG: "debugger"}, "TYPE_ERROR", "debugger"),
    "key-spec-mismatch": ({SPEC: "coder"}, "SPEC_MISMATCH", "coder"),
    "key-timeout": ({SLOW: "coder"}, "TEST_TIMEOUT", "coder"),
    "key-flaky-test": ({FLAKY: "coder"}, "FLAKY_TEST", "coder"),
    "key-missing-dependency": ({LACKS: "architect"}, "IMPORT_ERROR", "architect"),
    "unknown-has-no-key": ({BUG: "coder"}, "UNKNOWN", "debugger"),
}


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    desk = Desk(tmp_path_factory.mktemp("routed"))
    # A todo without a claim is ready and gets no repair, so all of these are claimed.
    todos = (
        todo(name, status="claimed", failure_routing=routing) for name, (routing, _, _) in ROUTES.items()
    )
    desk.plan(*todos, metadata=ASK)
    desk.outcomes(*(failed(name, category) for name, (_, category, _) in ROUTES.items()))
    return desk.next()


def test_routing_decides_the_role_of_a_branch_and_the_key_of_the_category_is_its_reason(
    routed: Ran,
) -> None:
    for row, (_, category, role) in ROUTES.items():
        branch, reason = routed.branch(row), CATEGORIES[Category(category)].routing_key or "test_failure"
        assert (branch["agent_role"], branch["branch_reason"]) == (role, reason), row
    assert routed.branch("unknown-has-no-key")["max_debug_attempts"] == 1


# --- one outcome by itself -------------------------------------------------------------------------------


def test_a_single_outcome_is_accepted_as_input(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    step = json.loads((SEEDS / "step_spec.json").read_text(encoding="utf-8"))
    desk.write("plan.yaml", {"todo_list_id": "shop", "items": [step]})
    desk.write("outcomes.json", (SEEDS / "controller_outcome.json").read_text(encoding="utf-8"))

    ran = desk.next("--output", "next.yaml")

    assert (ran.status, ran.json["state"]) == (0, "executing")
    items = yaml.safe_load((desk.folder / "next.yaml").read_text(encoding="utf-8"))["items"]
    (made,) = [each for each in items if each.get("parent_id") == "fix-test-001"]
    assert (made["agent_role"], made["branch_reason"]) == ("coder", "implementation_bug")
    for word in ("Expected 201, got 500", "Check the login route handler", "test_auth.py::test_login"):
        assert word in made["debug_instructions"]
    assert planner("validate", "next.yaml", cwd=desk.folder).status in (0, 1)


# --- unexpected outcomes ---------------------------------------------------------------------------------

NOBODY: list[dict[str, Any]] = [
    {"state": "test_failed", "success": True},
    {"state": "done", "success": False},
    {"state": None, "success": True, "tests_passed": False},
    {"state": None, "success": True, "tests_passed": True},
]


def test_contradictory_outcomes_are_verified_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    names = [f"both-{number}" for number in range(len(NOBODY))]
    desk.plan(*map(todo, names))
    desk.outcomes(*({**failed(each), **how} for each, how in zip(names, NOBODY, strict=True)))
    assert {name: each["action"] for name, each in desk.next().asked.items()} == dict.fromkeys(
        names, "verify"
    )


def test_the_revised_plan_of_todos_with_odd_ids_is_valid(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    names = ["-", "..", "--help", "A.b_c-9", "007", "on", "null", "x" * 200]
    desk.plan(*map(todo, names), metadata={"max_concurrent_branches": 9})
    desk.outcomes(*(failed(each, signature=f"*/ &\n{each}") for each in names))

    ran = desk.next("--output", "next.yaml")

    assert set(ran.asked) == set(names)
    assert planner("validate", "next.yaml", cwd=desk.folder).status in (0, 1)
