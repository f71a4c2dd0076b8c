"""Which criteria need a test: what ran, what commands name, and what only pytest can tell."""

from __future__ import annotations

import pytest

from planner.model.outcome import Check, CheckKind, Outcome, TestOutcome, TestResult, Verdict
from planner.model.plan import CommandSpec
from planner.rules.criteria import Criterion, command_criterion
from planner.rules.needing import Certainty, needed_by_commands, needed_in_run


def criterion(cmd: str) -> Criterion:
    return command_criterion("tests[0]", CommandSpec(cmd=cmd))


def certainty(nodeid: str, cmd: str) -> str | None:
    found = needed_by_commands(nodeid, {"a": (criterion(cmd),)})
    return found[0].certainty.value if found else None


@pytest.mark.parametrize(
    ("nodeid", "cmd", "expected"),
    [
        ("tests/test_a.py::test_x", "pytest tests/test_a.py::test_x -q", "selects"),
        ("tests/test_a.py::test_x", "pytest tests/test_a.py", "selects"),
        ("tests/test_a.py::test_x", "pytest ./tests/", "selects"),
        ("./tests/test_a.py::test_x", "pytest tests", "selects"),
        ("tests/test_a.py::test_x", "pytest .", "selects"),
        ("tests/test_a.py::test_x[1-2]", "pytest tests/test_a.py::test_x", "selects"),
        ("tests/test_a.py::test_x[1-2]", "pytest 'tests/test_a.py::test_x[1-2]'", "selects"),
        ("tests/test_a.py::test_x[3]", "pytest 'tests/test_a.py::test_x[1-2]'", None),
        ("tests/test_a.py::test_x", "pytest 'tests/test_a.py::test_x[a::b]'", "selects"),
        ("tests/test_a.py::TestA::test_x", "pytest tests/test_a.py::TestA", "selects"),
        ("tests/test_a.py::TestA", "pytest tests/test_a.py::TestA::test_x", "selects"),
        ("tests", "pytest tests/test_a.py::TestA::test_x", "selects"),
        ("tests/test_a.py::test_x", "pytest tests/test_b.py tests/test_a.py", "selects"),
        ("tests/test_a.py::test_x", "pytest tests -k 'x and y'", "may"),
        ("tests/test_a.py::test_x", "pytest tests/test_a.py -m slow", "may"),
        ("tests/test_a.py::test_x", "pytest -q", "may"),
        ("tests/helper.py", "pytest tests", "may"),
        ("tests/helper.py", "pytest -q", None),
        ("tests/test_a.py::test_x", "pytest tests --deselect tests/test_a.py::test_x", None),
        ("tests/test_a.py::test_xy", "pytest tests --deselect tests/test_a.py::test_x", None),
        ("tests/test_a.py::test_y", "pytest tests --deselect tests/test_a.py::test_x", "selects"),
        ("tests/test_a.py", "pytest tests --deselect tests/test_a.py::test_x", "selects"),
        ("tests/test_a.py::test_x", "pytest tests/test_ab.py", None),
        ("tests/test_a.py::test_x", "pytest tests/test_a.py::test_y", None),
        ("tests/test_a.py::test_x", "pytest other", None),
        ("tests/test_a.py::test_x", "ruff check tests", None),
    ],
)
def test_what_a_command_selects_is_needed(nodeid: str, cmd: str, expected: str | None) -> None:
    assert certainty(nodeid, cmd) == expected


def test_a_narrowed_selection_says_what_narrows_it() -> None:
    (need,) = needed_by_commands(
        "tests/test_a.py::t", {"a": (criterion("pytest tests -k fast -m 'not slow'"),)}
    )

    assert need.because == "its command selects tests, narrowed by -k 'fast' and -m 'not slow'"
    assert need.cmd == "pytest tests -k fast -m 'not slow'"


def outcome(*nodeids: str) -> Outcome:
    tests = tuple(TestResult(nodeid=nodeid, outcome=TestOutcome.PASSED) for nodeid in nodeids)
    check = Check(id="tests[0]", kind=CheckKind.TEST, verdict=Verdict.PASSED, tests=tests, cmd="pytest")
    empty = Check(id="metrics[0]", kind=CheckKind.METRIC, verdict=Verdict.PASSED)
    return Outcome(todo_id="a", success=True, tests_passed=True, checks=(check, empty))


def test_what_ran_for_a_criterion_is_needed_by_it() -> None:
    (need,) = needed_in_run("t.py::x", [outcome("t.py::x", "t.py::y")])

    assert (need.todo_id, need.check_id, need.certainty) == ("a", "tests[0]", Certainty.RAN)
    assert need.nodeids == ("t.py::x",)


def test_a_file_covers_every_test_that_ran_of_it() -> None:
    (need,) = needed_in_run("t.py", [outcome("t.py::x[1]", "t.py::x[2]", "u.py::y")])

    assert need.nodeids == ("t.py::x[1]", "t.py::x[2]")
    assert "2 of its tests" in need.because


def test_what_did_not_run_is_needed_by_nobody() -> None:
    assert needed_in_run("t.py::z", [outcome("t.py::x")]) == ()
