"""What kind of work a todo asks for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_samples import todo

from planner.memory import TaskKind, own_title, task_kind, words_of

PATCH = {"type": "PATCH", "target_file": "tests/test_auth.py", "hint": "Update expected value"}


@pytest.mark.parametrize(
    ("title", "fields", "kind"),
    [
        (
            "Fix failing assertion",
            {"intent": "Update the value", "controller_task_spec": PATCH},
            "fix_test",
        ),
        ("Fix the login", {"controller_task_spec": PATCH}, "fix_test"),
        ("Fix the login", {"allowed_files": ["app/login.py"]}, "fix_bug"),
        ("Fix the login", {"allowed_files": ["app/login.py", "tests/test_login.py"]}, "fix_bug"),
        ("RSI crashes on short series", {}, "fix_bug"),
        ("Make the test of login pass again: it is broken", {}, "add_test"),
        ("Repair the flaky tests", {}, "fix_test"),
        ("Add tests for the parser", {}, "add_test"),
        ("Tests of the parser", {}, "add_test"),
        ("Add a login", {}, "add_feature"),
        ("Data Loading Integration", {}, "add_feature"),
        (
            "Indicator & Candle Patterns",
            {"acceptance_criteria": {"expected_artifacts": ["a.py"]}},
            "add_feature",
        ),
        ("Extract the session into a module", {}, "refactor"),
        ("Clean up the tests", {}, "refactor"),
        ("renameTheSession", {}, "refactor"),
        ("Speed up the import", {}, "performance"),
        ("Write the README", {}, "docs"),
        ("Fix a typo", {"allowed_files": ["docs/tour.md"]}, "docs"),
        ("Bump the dependencies", {}, "dependencies"),
        ("Update to the next version", {"allowed_files": ["requirements-dev.txt"]}, "dependencies"),
        ("Configure the linter", {}, "configuration"),
        ("Fix it", {"allowed_files": [".pre-commit-config.yaml"]}, "configuration"),
        ("Define the contract of the adapter", {}, "design"),
        ("Entry conditions", {"agent_role": "architect"}, "design"),
        ("Entry conditions", {"agent_role": "tester"}, "add_test"),
        ("Entry conditions", {"intent": "Implement the rules of buying"}, "add_feature"),
        ("Entry conditions", {"controller_task_spec": {"type": "REFACTOR"}}, "refactor"),
        ("Entry conditions", {"controller_task_spec": {"type": "ADD_TEST"}}, "add_test"),
        ("Entry conditions", {}, "other"),
    ],
)
def test_the_kind_of_a_todo(title: str, fields: dict[str, Any], kind: str) -> None:
    assert task_kind(todo(title, **fields)) == kind


def test_a_branch_is_of_the_kind_of_its_todo() -> None:
    branch = todo("Repair Add a login (implementation bug)", parent_id="t1")

    assert own_title(branch) == "Add a login"
    assert task_kind(branch) is TaskKind.ADD_FEATURE
    assert task_kind(todo("Repair the login (again)")) is TaskKind.FIX_BUG
    assert own_title(todo("Look at the login", parent_id="t1")) == "Look at the login"


def test_words_are_taken_apart_and_numbers_are_alike() -> None:
    assert words_of("computeRSI_of 3.14 v2 Größe") == ["compute", "rsi", "of", "0", "v", "0", "grösse"]


@given(st.text(min_size=1, max_size=80), st.none() | st.text(max_size=80))
def test_every_todo_is_of_some_kind(title: str, intent: str | None) -> None:
    assert task_kind(todo(title, intent=intent)) in TaskKind
