"""`planner which`: from the run where there is one, else from what the commands select."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from planner_command import Command, done, with_test

from planner.cli.which import needed_by_commands, needed_in_run
from planner.model.outcome import Check, CheckKind, Outcome, TestOutcome, TestResult, Verdict
from planner.model.plan import CommandSpec
from planner.policy.criteria import Criterion, command_criterion


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    command = Command(tmp_path, monkeypatch, capsys)
    command.plan(
        with_test("a"),
        {"id": "wide", "acceptance_criteria": {"tests": [{"cmd": "pytest tests -k it"}]}},
    )
    return command


def test_without_a_run_the_commands_are_read_and_that_is_said(command: Command) -> None:
    ran = command("which", "tests/test_a.py::test_it")

    assert ran.status == 0
    assert "the plan was not verified yet; run first: pytest --planverify plan.yaml" in ran.out
    assert "  a tests[0]  needs it\n    pytest tests/test_a.py\n" in ran.out
    assert "  wide tests[0]  may need it" in ran.out


def test_after_a_run_it_is_known(command: Command) -> None:
    command.outcomes(done("a"))

    ran = command("which", "tests/test_a.py::test_it", "plan.yaml", "--json")

    assert [(each["todo_id"], each["certainty"]) for each in ran.json["criteria"]] == [
        ("a", "ran"),
        ("wide", "may"),
    ]
    assert ran.json["remark"] is None


def test_stale_outcomes_are_not_believed(command: Command) -> None:
    command.outcomes(done("a"))
    command.plan(with_test("b"))

    ran = command("which", "tests/test_a.py::test_it", "--json")

    assert (ran.status, ran.json["criteria"]) == (1, [])
    assert "another version" in ran.json["remark"]


def test_a_test_that_nobody_needs_is_said_to_be_so(command: Command) -> None:
    ran = command("which", "other/test_z.py::test_z")

    assert ran.status == 1
    assert "No criterion of the plan needs other/test_z.py::test_z." in ran.out


def test_a_file_may_be_named_from_where_the_user_is(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = command.folder / "tests"
    tests.mkdir()
    (tests / "test_a.py").touch()
    monkeypatch.chdir(tests)

    ran = command("which", "test_a.py::test_it", "../plan.yaml", "--json")

    assert ran.json["nodeid"] == "tests/test_a.py::test_it"
    assert [each["todo_id"] for each in ran.json["criteria"]] == ["a", "wide"]


def test_a_file_elsewhere_is_taken_as_it_is(
    command: Command, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "test_z.py"
    elsewhere.touch()

    ran = command("which", f"{os.path.relpath(elsewhere)}::test_z", "--json")

    assert ran.status == 1


def test_without_a_plan_here_one_must_be_named(
    command: Command, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))

    ran = command("which", "t.py::t")

    assert ran.status == 2
    assert ran.err == (
        "planner: there is no planverify.yaml, plan.yaml or todo.yaml here; name the plan, or make one: "
        "planner init\n"
    )


def test_outcomes_that_are_named_must_be_of_the_plan(command: Command) -> None:
    command.outcomes(plans=[], path="other.json")

    ran = command("which", "t.py::t", "--outcomes", "other.json")

    assert ran.status == 4
    assert "are of no plan" in ran.err


def test_todos_of_sub_plans_are_asked_too(command: Command) -> None:
    command.plan(with_test("x"), path="phases/one.yaml", todo_list_id="one", root="..")
    command.plan({"id": "phase", "sub_plan": "phases/one.yaml"})

    ran = command("which", "tests/test_x.py", "--json")

    assert [each["todo_id"] for each in ran.json["criteria"]] == ["phase/x"]


def criterion(cmd: str) -> Criterion:
    return command_criterion("tests[0]", CommandSpec(cmd=cmd))


def certainty(nodeid: str, cmd: str) -> str | None:
    found = list(needed_by_commands(nodeid, {"a": (criterion(cmd),)}))
    return found[0].certainty if found else None


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

    assert (need.todo_id, need.check_id, need.certainty) == ("a", "tests[0]", "ran")
    assert need.nodeids == ("t.py::x",)


def test_a_file_covers_every_test_that_ran_of_it() -> None:
    (need,) = needed_in_run("t.py", [outcome("t.py::x[1]", "t.py::x[2]", "u.py::y")])

    assert need.nodeids == ("t.py::x[1]", "t.py::x[2]")
    assert "2 of its tests" in need.because


def test_what_did_not_run_is_needed_by_nobody() -> None:
    assert list(needed_in_run("t.py::z", [outcome("t.py::x")])) == []
