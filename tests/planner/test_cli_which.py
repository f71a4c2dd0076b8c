"""`planner which`: from the run where there is one, else from what the commands select."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from planner_command import Command, done, with_test


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
    assert "there are no outcomes of the plan yet" in ran.out
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
