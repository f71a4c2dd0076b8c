"""What the shell is offered: plan files, ids of todos, words to explain."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from planner_command import Command, with_test

from planner.cli.arguments import complete_plan, complete_todo, complete_word


@pytest.fixture
def command(command: Command) -> Command:
    command.plan(
        with_test("buffer"), {**with_test("build"), "title": "Build\u202e it"}, with_test("cursor")
    )
    command.plan(with_test("x"), path="phases/one.yml")
    Path("notes.txt").touch()
    Path(".hidden").mkdir()
    return command


def test_folders_and_files_that_may_be_plans_are_offered(command: Command) -> None:
    assert complete_plan(None, "") == ["phases/", "plan.yaml"]
    assert complete_plan(None, "pl") == ["plan.yaml"]
    assert complete_plan(None, "phases/") == ["phases/one.yml"]
    assert complete_plan(None, ".h") == [".hidden/"]
    assert complete_plan(None, "gone/") == []
    assert complete_plan(None, f"{command.folder}/pl") == [f"{command.folder}/plan.yaml"]


def test_the_todos_of_the_named_plan_are_offered_with_their_titles(command: Command) -> None:
    context = SimpleNamespace(params={"plan": Path("plan.yaml")})

    assert complete_todo(context, "bu") == [("buffer", "buffer"), ("build", "Build it")]


@pytest.mark.parametrize("named", ["gone.yaml", "notes.txt"])
def test_without_a_plan_that_loads_no_todos_are_offered(command: Command, named: str) -> None:
    assert complete_todo(SimpleNamespace(params={"plan": named}), "") == []


def test_words_to_explain_are_offered_whatever_their_case(command: Command) -> None:
    offered = complete_word(SimpleNamespace(params={"plan": "plan.yaml"}), "test_cr")
    assert offered == ["TEST_CRASH"]
    assert "plan.yaml" in complete_word(None, "plan.")
