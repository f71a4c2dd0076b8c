"""The story of a run, derived from its log."""

from __future__ import annotations

from typing import Any

import pytest
from run_stories import START, Story, steps_of, todo
from simulation import Simulation

from planner.cli.explain import tell
from planner.model.events import Decision, QuestionAnswered
from planner.model.outcome import Outcome


def test_every_event_and_action_is_described_in_printable_lines() -> None:
    for seed in range(10):
        for step in steps_of(Simulation.begin(seed).run()):
            lines = [*tell(step)]
            assert len(lines) >= len(step.actions) + (step.event.event != "clock_ticked")
            assert all(line.isprintable() and "\n" not in line for line in lines), f"seed {seed}"
            for action in step.actions:
                assert any(f"[{action.rule}]" in line for line in lines)


def test_human_decisions_are_told() -> None:
    story = Story(todo("t1"), auto_fix_mode=False)
    story.is_red("t1")
    assert any(line.startswith("ask human t1: question ") for line in story.told())
    story.decides(Decision.REJECT, story.questions[0])
    assert story.told()[0].startswith("approval given t1_branch_01: reject")
    story.tell(QuestionAnswered(at=START, question_id=story.questions[-1].question_id, answer="give_up"))
    assert story.told()[0].endswith(": give_up")


def test_external_text_cannot_colour_hide_or_break_a_line() -> None:
    story = Story(todo("t1"))
    story.is_red("t1", message="\x1b[31mred\nsecond\u202e" + "x" * 500)
    told = story.told()[0]
    assert told.isprintable()
    assert "red second" in told
    assert len(told) < 400


FLAKY = {"category": "FLAKY_TEST", "tests": ["a::b", "a::c"]}


def ends_with(verdict: str, failure: dict[str, Any] | None = None, **check: Any) -> dict[str, Any]:
    """Return fields of an outcome with one check."""
    checks = [{"id": "tests[0]", "kind": "test", "verdict": verdict, **check}]
    state = None if verdict == "failed" else "testing"
    return {"state": state, "checks": checks, "failure_evidence": failure}


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"success": True, "tests_passed": True}, "passed, 0 criteria"),
        (ends_with("needs_human", title="Nice?"), "undecided, Nice?"),
        (ends_with("failed", FLAKY), "failed, b and 1 other test (FLAKY_TEST)"),
        (ends_with("failed"), "failed, tests[0]"),
    ],
)
def test_a_verification_is_described_by_its_result(keys: dict[str, Any], told: str) -> None:
    outcome = Outcome.model_validate({"todo_id": "t1", "success": False, "tests_passed": False, **keys})
    story = Story(todo("t1"), run={"allow_unproved": True})
    story.works("t1")
    story.outcome(outcome)
    assert story.told()[0] == f"verified t1: {told}"
