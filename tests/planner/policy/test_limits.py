"""Budgets, permissions, roles and the severity of failures."""

from __future__ import annotations

from typing import Any

import pytest

from planner.catalog.tools import TOOLS
from planner.model.evidence import Hunk
from planner.model.outcome import UNRELATED, Candidate, Failure, Location
from planner.model.plan import Budget, Policy, Todo
from planner.model.taxonomy import Category, Owner, Role, RoutingKey
from planner.model.verdicts import Since
from planner.policy.branches import role_for, route
from planner.policy.limits import Spent, asks_a_person, bounds_of, exceeded, left
from planner.policy.outcomes import severity_of

FULL = Budget(tokens=100, cycles=5, wall_seconds=60, new_files=3)
NAMED: dict[str, Any] = {
    "controller_task_spec": {"type": "PATCH", "target_file": "src/a.py"},
    "acceptance_criteria": {
        "expected_artifacts": ["out/a.json"],
        "tests": [{"cmd": "pytest tests/test_a.py"}, {"cmd": "ruff check src"}],
    },
    "test_command": "pytest tests/test_a.py",
}
"""A todo that names two files and three commands, two of them equal."""


def a_todo(level: str | None, **keys: Any) -> Todo:
    return Todo.model_validate({"id": "t1", "title": "A todo", "risk_level": level, **keys})


@pytest.mark.parametrize(
    ("name", "limit"), [("tokens", 100), ("cycles", 5), ("wall_seconds", 60), ("new_files", 3)]
)
def test_a_fully_spent_budget_is_allowed_but_permits_no_further_turn(name: str, limit: int) -> None:
    for amount, over, used_up in ((limit - 1, False, False), (limit, False, True), (limit + 1, True, True)):
        spent = Spent() if name == "wall_seconds" else Spent(**{name: amount})
        seconds = amount if name == "wall_seconds" else 0
        found = f"{name}: {amount} spent, {limit} allowed"
        assert exceeded(FULL, spent, seconds) == (found if over else None)
        # A turn of work may create no files, so another turn is allowed when new_files is used up.
        none_left = used_up if name != "new_files" else over
        assert exceeded(FULL, spent, seconds, or_used_up=True) == (found if none_left else None)
        assert left(FULL, spent, seconds)[name] == (max(limit - amount, 0), limit)


def test_of_several_exceeded_budgets_the_first_in_order_is_reported() -> None:
    spent, seconds = Spent(tokens=101, cycles=6, new_files=4), 61.5
    timed = FULL.model_copy(update={"tokens": None, "cycles": None})
    assert exceeded(FULL, spent, seconds) == "tokens: 101 spent, 100 allowed"
    assert exceeded(timed, spent, seconds) == "wall_seconds: 61.5 spent, 60 allowed"
    assert str(exceeded(Budget(tokens=0), Spent(tokens=10**400), 0)).startswith("tokens: more than")
    assert exceeded(Budget(), Spent(10**15, 10**15, 10**15), 1e12, or_used_up=True) is None


@pytest.mark.parametrize(
    ("level", "files", "commands"),
    [
        (None, None, ("test", "lint", "type_check", "build", "validate")),
        ("MEDIUM", ("src/a.py", "out/a.json"), ("test", "lint", "type_check", "validate")),
        ("HIGH", ("src/a.py", "out/a.json"), ("pytest tests/test_a.py", "ruff check src")),
    ],
)
def test_a_higher_risk_level_narrows_files_and_commands_of_a_turn(
    level: str | None, files: tuple[str, ...] | None, commands: tuple[str, ...]
) -> None:
    bounds = bounds_of(a_todo(level, **NAMED), Policy(protected_files=("tests/**",)))
    assert (bounds.allowed_files, bounds.commands) == (files, commands)
    assert bounds.protected_files == ("tests/**",)
    given = bounds_of(a_todo(level, **NAMED, allowed_files=["lib/**", "!lib/x"]), Policy())
    assert given.allowed_files == ("lib/**", "!lib/x")
    assert bounds_of(a_todo(level), Policy()).allowed_files is None
    assert asks_a_person(a_todo(level)) is (level == "HIGH")


def test_a_low_risk_todo_may_run_tools_of_every_purpose() -> None:
    assert set(bounds_of(a_todo(None), Policy()).commands) == {tool.purpose.value for tool in TOOLS}


@pytest.mark.parametrize(
    ("keys", "policy", "seconds"),
    [
        ({}, {}, None),
        ({"timeout_seconds": 60}, {"max_todo_seconds": 50}, 60),
        ({}, {"max_todo_seconds": 50}, 50),
        ({"parent_id": "t0"}, {}, 600),
        ({"parent_id": "t0", "max_lifetime_seconds": 30, "timeout_seconds": 60}, {}, 30),
    ],
)
def test_the_timeout_of_a_turn_is_bounded_by_its_todo_and_branch_lifetime(
    keys: dict[str, Any], policy: dict[str, Any], seconds: float | None
) -> None:
    assert bounds_of(a_todo(None, **keys), Policy(**policy)).timeout_seconds == seconds


def test_the_role_from_the_diagnosis_overrides_only_default_routing() -> None:
    for category in (Category.TEST_REGRESSION, Category.TEST_CRASH, Category.BUDGET_EXCEEDED):
        assert route(category, {}, Role.TESTER) is Role.TESTER
        assert route(category, {category: Role.PLANNER}, Role.TESTER) is Role.PLANNER
    keyed: dict[RoutingKey | Category, Role] = {RoutingKey.IMPLEMENTATION_BUG: Role.DEBUGGER}
    assert route(Category.TEST_REGRESSION, keyed, Role.TESTER) is Role.DEBUGGER
    failure = Failure(category=Category.TEST_REGRESSION, target_agent=Role.TESTER)
    assert role_for(failure, Todo(id="a", title="a")) is Role.TESTER
    assert role_for(failure, Todo(id="a", title="a", failure_routing=keyed)) is Role.DEBUGGER


@pytest.mark.parametrize("category", [each for each in Category if each.facts.default_role is Role.CODER])
def test_what_a_coder_would_repair_is_the_testers_if_the_tests_are_at_fault(category: Category) -> None:
    wrong = Failure(category=category, owner=Owner.TEST)
    assert role_for(wrong, Todo(id="a", title="a")) is Role.TESTER


@pytest.mark.parametrize(
    ("path", "role"), [("shop/cart.py", Role.CODER), ("tests/test_cart.py", Role.TESTER)]
)
def test_a_timeout_is_routed_to_the_role_that_may_edit_its_location(path: str, role: Role) -> None:
    ended = Failure(category=Category.TEST_TIMEOUT, location=Location(path=path, line=3))
    assert role_for(ended, Todo(id="t1", title="T")) is role
    assert role_for(ended, a_todo(None, failure_routing={"timeout": "human"})) is Role.HUMAN


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("COMPILATION_ERROR", Since.PRE_EXISTING, None), ("TEST_REGRESSION", Since.UNKNOWN, 1.0)),
        (("FLAKY_TEST", Since.NEW, None), ("TEST_REGRESSION", Since.PRE_EXISTING, 1.0)),
        (("TEST_REGRESSION", Since.UNKNOWN, 0.1), ("FLAKY_TEST", Since.UNKNOWN, 1.0)),
        (("TEST_REGRESSION", Since.UNKNOWN, 0.9), ("TEST_TIMEOUT", Since.UNKNOWN, 0.8)),
    ],
    ids=["a more severe family", "what the work broke", "what is red every time", "what is surer"],
)
def test_failures_are_ordered_by_severity(first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    one, other = (
        Failure(category=Category(category), since=since, confidence=confidence)
        for category, since, confidence in (first, second)
    )
    assert severity_of(one) < severity_of(other)


def test_of_equally_sure_failures_one_that_a_change_explains_decides() -> None:
    hunk = Hunk(path="shop.py", line=3, added=1)
    apart, near = (
        Failure(
            category=Category.TEST_REGRESSION,
            confidence=0.9,
            candidates=(Candidate(path="shop.py", line=3, score=score, hunk=hunk),),
        )
        for score in (UNRELATED, 0.5)
    )
    assert sorted((apart, near), key=severity_of) == [near, apart]
