"""Routing, limits, retries and policy of a plan are reasonable and do not contradict each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from validation_samples import GOOD_TEST, findings, only, rules, todo

FILES = {"t.py": GOOD_TEST, "u.py": GOOD_TEST}


def judge(folder: Path, plan: dict[str, Any] | None = None, **keys: Any) -> list[str]:
    return rules(folder, todo("a", "pytest t.py", **keys), files=FILES, metadata=plan or {})


def test_a_missing_route_is_told_with_the_default_that_will_apply(tmp_path: Path) -> None:
    found = only("routing-missing", tmp_path, todo("a", "pytest t.py", failure_routing={}), files=FILES)
    assert found.severity == "advice"
    assert "the default is coder" in found.message
    assert found.fix == "add to failure_routing: implementation_bug: coder"


@pytest.mark.parametrize("routing", [{"TEST_REGRESSION": "coder"}, {"implementation_bug": "debugger"}])
def test_a_route_for_the_key_or_a_category_of_it_is_enough(tmp_path: Path, routing: dict[str, str]) -> None:
    assert judge(tmp_path, failure_routing=routing) == []


def test_a_contract_wants_a_route_for_its_mismatches(tmp_path: Path) -> None:
    files = {**FILES, "c.json": '{"contract_version": 1, "module": "m", "functions": [{"name": "f"}]}'}
    own = todo("a", "pytest t.py", contract_path="c.json", failure_routing={"implementation_bug": "coder"})
    assert "spec_mismatch: architect" in only("routing-missing", tmp_path, own, files=files).fix
    assert rules(tmp_path, todo("a", "pytest t.py", contract_path="c.json"), files=files) == []


def test_a_todo_without_tests_and_contract_needs_no_route(tmp_path: Path) -> None:
    own = todo("a", criteria={"expected_artifacts": ["t.py"]}, failure_routing={}, requires_testing=False)
    assert rules(tmp_path, own, files=FILES) == []


@pytest.mark.parametrize(
    ("routing", "automatic", "expected"),
    [
        ({"implementation_bug": "human"}, True, 1),
        ({"implementation_bug": "human"}, False, 0),
        ({"implementation_bug": "architect"}, False, 1),
        ({"TEST_CRASH": "debugger"}, True, 0),
        ({"TEST_CRASH": "coder"}, True, 0),
        ({"SANDBOX_VIOLATION": "coder"}, False, 1),
        ({"BUDGET_EXCEEDED": "human"}, True, 0),
        ({"UNKNOWN": "planner"}, True, 0),
        ({"timeout": "tester", "flaky_test": "tester", "missing_dependency": "coder"}, True, 0),
    ],
)
def test_routes_to_roles_that_cannot_mend_it_are_odd(
    tmp_path: Path, routing: dict[str, str], automatic: bool, expected: int
) -> None:
    routing = {"implementation_bug": "coder", **routing}
    found = judge(tmp_path, {"auto_fix_mode": automatic}, failure_routing=routing)
    assert found == ["routing-odd"] * expected


def test_an_odd_route_is_told_at_its_place(tmp_path: Path) -> None:
    own = todo("a", "pytest t.py", failure_routing={"implementation_bug": "human"})
    found = only("routing-odd", tmp_path, own, files=FILES, metadata={"auto_fix_mode": True})
    assert found.place == "items[0].failure_routing.implementation_bug"
    assert "implementation_bug: coder" in found.fix


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(3601, ["timeout-long"]), (3600, []), (0.5, ["timeout-short"]), (1, []), (20, [])],
)
def test_time_limits_are_reasonable(tmp_path: Path, seconds: float, expected: list[str]) -> None:
    assert judge(tmp_path, spec={"timeout_seconds": seconds}) == expected


def test_a_linter_may_be_faster_than_pytest(tmp_path: Path) -> None:
    assert rules(tmp_path, todo("a", "ruff check .", spec={"timeout_seconds": 0.5})) == []


def test_a_check_longer_than_its_todo_is_found(tmp_path: Path) -> None:
    own = todo("a", "pytest t.py", spec={"timeout_seconds": 90}, timeout_seconds=60)
    found = only("timeout-above-todo", tmp_path, own, files=FILES)
    assert found.place.endswith("tests[0].timeout_seconds")
    assert "90" in found.fix
    assert judge(tmp_path, spec={"timeout_seconds": 60}, timeout_seconds=60) == []
    assert judge(tmp_path, timeout_seconds=60) == [], "a limit that the plan does not state is not judged"


def test_a_todo_that_asks_for_more_than_the_plan_allows_is_found(tmp_path: Path) -> None:
    plan = {"max_todo_seconds": 100}
    assert judge(tmp_path, plan, timeout_seconds=101, spec={"timeout_seconds": 50}) == [
        "todo-seconds-exceeded"
    ]
    assert judge(tmp_path, plan, timeout_seconds=100, spec={"timeout_seconds": 50}) == []
    own = todo("a", "pytest t.py", "pytest u.py", spec={"timeout_seconds": 60})
    own["acceptance_criteria"]["tests"][1]["timeout_seconds"] = 70
    found = only("todo-seconds-exceeded", tmp_path, own, files=FILES, metadata=plan)
    assert "130 s" in found.message
    assert found.fix == "split it: a_1_t (tests[0]), then a (tests[1]), each depending on the one before"
    single = todo("a", "pytest t.py", spec={"timeout_seconds": 200})
    assert (
        "first that of tests[0]"
        in only("todo-seconds-exceeded", tmp_path, single, files=FILES, metadata=plan).fix
    )


@pytest.mark.parametrize(
    ("retries", "expected"), [(0, ["retries-none"]), (1, []), (2, []), (10, []), (11, ["retries-many"])]
)
def test_retries_are_set_and_few(tmp_path: Path, retries: int, expected: list[str]) -> None:
    assert judge(tmp_path, max_retries=retries) == expected


@pytest.mark.parametrize(
    "plan",
    [
        {"require_planner_approval": True, "auto_approve_branches": True},
        {"require_planner_approval": True, "auto_fix_mode": True},
        {"require_planner_approval": False, "auto_fix_mode": False},
        {"auto_fix_mode": True, "max_branch_depth": 0},
        {"auto_fix_mode": True, "max_debug_attempts": 0},
        {"auto_fix_mode": True, "max_concurrent_branches": 0},
        {"budget": {"wall_seconds": 60}, "max_todo_seconds": 900},
    ],
)
def test_settings_that_say_the_opposite_are_found(tmp_path: Path, plan: dict[str, Any]) -> None:
    assert judge(tmp_path, plan) == ["policy-contradiction"]


@pytest.mark.parametrize(
    "plan",
    [
        {"require_planner_approval": True},
        {"require_planner_approval": True, "auto_fix_mode": False, "auto_approve_branches": False},
        {"auto_fix_mode": True, "auto_approve_branches": True},
        {"require_planner_approval": False},
        {"budget": {"wall_seconds": 900}, "max_todo_seconds": 900},
        {"max_branch_depth": 0},
    ],
)
def test_settings_that_go_together_are_fine(tmp_path: Path, plan: dict[str, Any]) -> None:
    assert judge(tmp_path, plan) == []


COUNTED = ("consecutive_failures", "identical_failures", "flaky_streak", "file_growth")


@pytest.mark.parametrize(
    ("halt", "places"),
    [
        ({}, []),
        ({"security": "halt", "budget": "ask"}, []),
        ({"security": "ask"}, ["metadata.halt.security"]),
        (dict.fromkeys(COUNTED), ["metadata.halt"]),
        ({**dict.fromkeys(COUNTED), "file_growth": 0}, []),
        ({**dict.fromkeys(COUNTED), "security": "ask"}, ["metadata.halt", "metadata.halt.security"]),
    ],
)
def test_a_plan_that_gives_up_what_stops_it_is_warned(
    tmp_path: Path, halt: dict[str, Any], places: list[str]
) -> None:
    found = findings(tmp_path, todo("a", "pytest t.py"), files={**FILES}, metadata={"halt": halt})
    assert [(each.rule, each.severity, each.place) for each in found] == [
        ("safety-off", "warning", place) for place in places
    ]


def test_a_quarantine_is_judged_against_the_given_day_only(tmp_path: Path) -> None:
    entry = {"nodeid": "t.py::test_x", "owner": "ann", "ticket": "T-1", "expires": "2026-01-31"}
    plan = {"flaky_retry": {"quarantine": [entry]}}
    own = todo("a", "pytest t.py")
    for today, expected in ((None, []), ("2026-01-31", []), ("2026-02-01", ["quarantine-expired"])):
        assert rules(tmp_path, own, files=FILES, metadata=plan, today=today) == expected
    found = only("quarantine-expired", tmp_path, own, files=FILES, metadata=plan, today="2027-01-01")
    assert found.place == "metadata.flaky_retry.quarantine[0].expires"
    assert "T-1" in found.fix
