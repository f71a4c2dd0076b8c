"""The command ``planverify``: help, completion, and how it ends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.errors import BaselineError
from pytest_planverify import cli, command_words
from pytest_planverify.cli import app
from pytest_planverify.command_words import (
    UsageMistake,
    complete_plan,
    complete_todo,
    flat_plan,
    guarded,
    plan_or_usual,
)

PLAN = "todo_list_id: p\nitems:\n- {id: t_one, title: One, verify: pytest t.py}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text(PLAN)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "other.json").write_text("{}")
    (tmp_path / ".hidden.yaml").write_text(PLAN)
    (tmp_path / "notes.txt").write_text("")
    return tmp_path


def said(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.output


def test_help_names_each_command_and_the_exit_statuses() -> None:
    status, text = said("--help")
    assert status == 0
    assert all(name in text for name in ("baseline", "qualify", "recover", "Exit status"))
    for words in (
        ("baseline",),
        ("baseline", "record"),
        ("baseline", "accept"),
        ("recover",),
        ("qualify",),
    ):
        status, text = said(*words, "--help")
        assert status == 0
        assert "Exit status" in text


def test_the_version_is_that_of_the_package() -> None:
    status, text = said("--version")
    assert status == 0
    assert text.startswith("planverify ")


def test_an_unknown_command_is_refused() -> None:
    assert said("basline")[0] == 2
    assert said("baseline", "accept")[0] == 2


@pytest.mark.parametrize(
    ("start", "offered"),
    [
        ("", ["plan.yaml", "sub/"]),
        ("pl", ["plan.yaml"]),
        ("sub/", ["sub/other.json"]),
        (".h", [".hidden.yaml"]),
        ("nowhere/", []),
    ],
)
@pytest.mark.usefixtures("folder")
def test_plans_are_offered(start: str, offered: list[str]) -> None:
    assert complete_plan(None, start) == offered


def test_the_todos_of_the_plan_are_offered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["planverify"])
    assert complete_todo(None, "t") == [("t_one", "One")]
    assert complete_todo(None, "x") == []
    (folder / "plan.yaml").write_text("broken")
    assert complete_todo(None, "t") == []
    (folder / "plan.yaml").unlink()
    assert complete_todo(None, "t") == []


def test_the_usual_plan_is_meant_where_none_is_named(folder: Path) -> None:
    assert plan_or_usual(None) == Path("plan.yaml")
    assert plan_or_usual(Path("x.yaml")) == Path("x.yaml")
    assert flat_plan(Path("plan.yaml")).loaded.root == folder
    (folder / "plan.yaml").unlink()
    with pytest.raises(UsageMistake, match=r"or todo\.yaml here; name the plan"):
        plan_or_usual(None)


def failing(error: BaseException) -> Callable[[], object]:
    def run() -> object:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (UsageMistake("no such thing"), 2, "planverify: no such thing"),
        (BaselineError("it is of another plan"), 4, "planverify: it is of another plan"),
        (FileNotFoundError(2, "No such file", "x.yaml"), 4, "x.yaml: No such file; name a file"),
        (ZeroDivisionError("oops"), 3, "a fault of planverify itself"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_every_error_is_one_line_and_a_status(
    capsys: pytest.CaptureFixture[str], error: BaseException, status: int, text: str
) -> None:
    with pytest.raises(SystemExit) as leaving:
        guarded(failing(error))
    assert leaving.value.code == status
    (line,) = capsys.readouterr().err.splitlines()
    assert text in line


def test_a_request_to_terminate_ends_it_in_order() -> None:
    with pytest.raises(KeyboardInterrupt):
        command_words._interrupt(15, None)


def test_a_command_is_there_only_where_its_module_is(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = cli.Entry("pytest_planverify.no_such_module", "Nothing.")
    monkeypatch.setitem(cli.COMMANDS, "recover", gone)
    assert "Render the outcomes" not in said("--help")[1]
    assert said("recover")[0] == 2


@pytest.mark.usefixtures("folder")
def test_without_a_baseline_there_is_nothing_to_show_or_accept() -> None:
    status, text = said("baseline", "show")
    assert status == 1
    assert "there is no baseline of this plan; make one: planverify baseline PLAN" in text
    status, text = said("baseline", "accept", "t_one", "--reason", "x")
    assert status == 4
    assert "there is no baseline of this plan" in text
    assert said("baseline", "--force")[0] == 2
