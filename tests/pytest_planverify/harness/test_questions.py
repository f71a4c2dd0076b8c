"""Questions at the terminal are recorded as by `planverify answer`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from planner_command import Command, undecided, with_test

from planner.store.plan_run import PlanRun
from pytest_planverify.harness.questions import ask_at_terminal


def test_several_questions_of_a_todo_are_asked_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    command = Command(tmp_path, monkeypatch, capsys)
    item = with_test("chart")
    item["acceptance_criteria"]["manual"] = [{"question": "Is it short?"}, {"question": "Is it right?"}]
    command.plan(item)
    checks = [{"id": f"manual[{at}]", "kind": "manual", "verdict": "needs_human"} for at in range(2)]
    open_ = undecided("chart", "passed")
    command.outcomes({**open_, "checks": [*open_["checks"], *checks]})
    plan = tmp_path / "plan.yaml"
    run = PlanRun.open(plan, keep=True)
    assert run.log is not None
    replies = iter(["yes", "the axis is cut"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(replies))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)

    assert ask_at_terminal(plan, run.log, run.state.questions, set())

    kept = json.loads((tmp_path / ".planverify/answers.json").read_text())["answers"]
    assert [(each["answer"], each.get("note")) for each in kept] == [
        ("yes", None),
        ("no", "the axis is cut"),
    ]
    assert not PlanRun.open(plan, None, run.log).state.questions
