"""A step that prepares a repair ends with the todo that is repaired, and its brief can be followed."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_project import Example
from real_planner import Ran, planner

UNFORMATTED = "X = 1\ndef f(): return X\n"
FORMATTED = "X = 1\n\n\ndef f():\n    return X\n"


@pytest.fixture
def unformatted(tmp_path: Path) -> Example:
    """A project whose formatter complains, verified, with the step that `next` asks for."""
    example = Example(tmp_path, {"a.py": UNFORMATTED})
    example.plan({"id": "style", "title": "Style", "verify": "ruff format --check a.py"})
    assert example.verify().verdicts == {"style": "failed"}
    assert "style_step_01" in told(example).out
    return example


def told(example: Example, *words: str) -> Ran:
    return planner("next", *words, cwd=example.root)


def test_a_step_falls_away_when_its_todo_passes(unformatted: Example):
    unformatted.write({"a.py": FORMATTED})
    assert unformatted.verify().verdicts == {"style": "passed"}

    after = told(unformatted)

    assert after.status == 0, after.err
    assert "completed: 2 of 2 todos done" in after.out
    assert "style_step_01" not in after.out
    branch = planner("status", "style_branch_01", cwd=unformatted.root).out
    assert "skipped" in branch, branch


def test_the_check_of_a_step_is_that_of_the_todo_that_it_prepares(unformatted: Example):
    brief = told(unformatted, "--brief", "style_step_01").out

    assert "Check: pytest --planverify plan.yaml::style\n" in brief
    assert "It is done when" not in brief


def test_a_step_is_done_when_its_todo_was_verified_after_a_change_and_still_fails(unformatted: Example):
    unformatted.write({"a.py": f"{UNFORMATTED}Y = 2\n"})
    assert unformatted.verify().verdicts == {"style": "failed"}

    after = told(unformatted)

    assert "style_branch_01" in after.out
    assert "style_step_01" not in after.out


def test_the_brief_of_a_todo_without_criteria_says_how_it_becomes_done(tmp_path: Path):
    example = Example(tmp_path, {"a.py": FORMATTED})
    example.plan({"id": "notes", "title": "Notes", "requires_testing": False})

    brief = told(example, "--brief", "notes").out

    assert "It has no criteria: when it is done, set its status to claimed in the plan." in brief
    assert "Check:" not in brief
