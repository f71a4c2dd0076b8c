"""The command ``planverify``: help, completion, and how it ends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli import exits
from planner.cli.app import COMMANDS as PLANNER_COMMANDS
from pytest_planverify import cli
from pytest_planverify.cli import app

PLAN = "todo_list_id: p\nitems:\n- {id: t_one, title: One, verify: pytest t.py}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path


def said(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.output


def test_help_names_each_command_and_the_exit_statuses() -> None:
    status, text = said("--help")
    assert status == 0
    assert all(name in text for name in ("baseline", "qualify", "recover", "Exit status"))
    for words in ("baseline", "baseline record", "baseline accept", "recover", "qualify"):
        status, text = said(*words.split(), "--help")
        assert status == 0
        assert "Exit status" in text


def test_the_version_is_that_of_the_package() -> None:
    status, text = said("--version")
    assert status == 0
    assert text.startswith("planverify ")


def test_an_unknown_command_is_refused() -> None:
    assert said("basline")[0] == 2
    assert said("baseline", "accept")[0] == 2


def test_one_program_has_the_commands_of_both_by_the_functions_of_the_planner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exits, "_program", list(exits._program))
    exits.call_program("planverify", PLANNER_COMMANDS)
    status, text = said("--help")

    assert status == 0
    assert all(re.search(rf"[\n ]{name}\b", text) for name in (*cli.COMMANDS, *PLANNER_COMMANDS))
    assert "corpus" not in text
    assert len(text.splitlines()) <= 54
    status, text = said("next", "--help")
    assert status == 0
    assert re.match(r"Usage: \w+ next \[OPTIONS\]", text)
    assert not re.search(r"\bplanner (next|step|explain|undo)", text)


def test_a_word_that_is_no_command_is_a_plan_or_refused_with_the_nearest() -> None:
    status, text = said("statis")

    assert status == 2
    assert "there is no command, not a plan 'statis'; did you mean 'status'?" in text


def test_a_request_to_terminate_ends_it_in_order() -> None:
    with pytest.raises(KeyboardInterrupt):
        cli._interrupt(15, None)


@pytest.mark.usefixtures("folder")
def test_without_a_baseline_there_is_nothing_to_show_or_accept() -> None:
    status, text = said("baseline", "show")
    assert status == 1
    assert "the plan has no baseline; record one: planverify baseline PLAN" in text
    status, text = said("baseline", "accept", "t_one", "--reason", "x")
    assert status == 4
    assert "the plan has no baseline" in text
    assert said("baseline", "--force")[0] == 2
