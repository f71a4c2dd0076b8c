"""The risk of a todo narrows files and commands, and decides what a person is asked before."""

from __future__ import annotations

from typing import Any

import pytest

from planner.catalog import TOOLS
from planner.model.plan import Policy, RiskLevel, Todo
from planner.policy.risk import CARE, asks_before_branch, asks_before_start, bounds_of

NAMED: dict[str, Any] = {
    "controller_task_spec": {"type": "PATCH", "target_file": "src/a.py"},
    "acceptance_criteria": {
        "expected_artifacts": ["out/a.json"],
        "tests": [{"cmd": "pytest tests/test_a.py"}, {"cmd": "ruff check src"}],
    },
    "test_command": "pytest tests/test_a.py",
}
"""A todo that names two files and three commands, two of them the same."""


def a_todo(level: str | None, **keys: Any) -> Todo:
    return Todo.model_validate({"id": "t1", "title": "A todo", "risk_level": level, **keys})


ALL = ("test", "lint", "type_check", "build", "validate")
NO_BUILD = ("test", "lint", "type_check", "validate")
OWN = ("pytest tests/test_a.py", "ruff check src")


@pytest.mark.parametrize(
    ("level", "files", "commands"),
    [
        (None, None, ALL),
        ("LOW", None, ALL),
        ("MEDIUM", ("src/a.py", "out/a.json"), NO_BUILD),
        ("HIGH", ("src/a.py", "out/a.json"), OWN),
    ],
)
def test_each_level_narrows_what_a_turn_may_do(
    level: str | None, files: tuple[str, ...] | None, commands: tuple[str, ...]
) -> None:
    policy = Policy(protected_files=("tests/**",))
    bounds = bounds_of(a_todo(level, **NAMED), policy)
    assert bounds.allowed_files == files
    assert bounds.commands == commands
    assert bounds.protected_files == ("tests/**",)
    assert bounds.risk_level == RiskLevel(level or "LOW")
    given = bounds_of(a_todo(level, **NAMED, allowed_files=["lib/**", "!lib/x"]), policy)
    assert given.allowed_files == ("lib/**", "!lib/x")


@pytest.mark.parametrize("level", RiskLevel)
def test_who_names_no_file_cannot_be_narrowed_and_who_may_write_none_stays_so(level: str) -> None:
    assert bounds_of(a_todo(level), Policy()).allowed_files is None
    assert bounds_of(a_todo(level, allowed_files=[]), Policy()).allowed_files == ()


def test_every_level_has_its_row_and_every_purpose_is_one_of_the_catalog() -> None:
    assert set(CARE) == set(RiskLevel)
    purposes = {tool.purpose for tool in TOOLS}
    assert {purpose for care in CARE.values() for purpose in care.purposes or ()} == purposes


@pytest.mark.parametrize(
    ("level", "asked"), [(None, False), ("LOW", False), ("MEDIUM", False), ("HIGH", True)]
)
def test_a_person_agrees_to_a_todo_of_high_risk_before_it_is_begun_and_before_each_branch(
    level: str | None, asked: bool
) -> None:
    assert asks_before_start(a_todo(level)) is asked
    assert asks_before_branch(a_todo(level)) is asked


def test_a_branch_that_was_agreed_to_is_not_asked_for_again() -> None:
    branch = a_todo("HIGH", parent_id="t0")
    assert not asks_before_start(branch)
    assert asks_before_branch(branch)


@pytest.mark.parametrize(
    ("keys", "policy", "seconds"),
    [
        ({}, {}, None),
        ({"timeout_seconds": 60}, {"max_todo_seconds": 50}, 60),
        ({}, {"max_todo_seconds": 50}, 50),
        ({"parent_id": "t0"}, {}, 600),
        ({"parent_id": "t0", "timeout_seconds": 60}, {"branch_timeout_seconds": 90}, 60),
        ({"parent_id": "t0", "max_lifetime_seconds": 30, "timeout_seconds": 60}, {}, 30),
        ({"max_lifetime_seconds": 30}, {}, None),
    ],
)
def test_a_turn_has_the_time_of_its_todo_and_of_a_branch_no_longer_than_it_lives(
    keys: dict[str, Any], policy: dict[str, Any], seconds: float | None
) -> None:
    assert bounds_of(a_todo(None, **keys), Policy(**policy)).timeout_seconds == seconds
