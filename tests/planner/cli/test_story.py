"""The story of a run tells everything that happened, in clean lines, and of one todo what concerns it."""

from __future__ import annotations

from typing import Any

import pytest
from run_stories import START, Kept, Story, todo
from simulation import Simulation

from planner.cli.explain import tell
from planner.cli.figures import verdict_of
from planner.model.edits import NarrowFiles
from planner.model.events import ConflictFound, Decision, PlanRevised, QuestionAnswered, StopRequested
from planner.model.outcome import Outcome
from planner.model.taxonomy import Category
from planner.model.verdicts import Verdict


def test_of_every_run_everything_is_told_that_happened_and_in_clean_lines() -> None:
    for seed in range(15):
        kept = Kept()
        Simulation.begin(seed, kept).run()
        for step in kept.steps:
            lines = [line.text for line in tell(step)]
            assert len(lines) >= len(step.actions) + (step.event.event != "clock_ticked")
            assert all(line.isprintable() and "\n" not in line for line in lines), f"seed {seed}"
            for action in step.actions:
                assert any(f"[{action.rule}]" in line for line in lines)


def test_a_story_of_one_todo_is_about_it_and_its_branches_alone() -> None:
    story = Story(todo("t1"), todo("t2"))
    story.is_red("t1")
    story.is_done("t2")
    story.tell(StopRequested(at=START, by="Ada"))
    of_t1 = story.whole("t1")

    assert any("t1_branch_01" in line for line in of_t1)
    assert not any("t2" in line.partition(":")[0] for line in of_t1)
    assert any(line.startswith("stop requested: by Ada") for line in of_t1), "it concerns everybody"


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            PlanRevised(
                at=START,
                by="Ada",
                edits=(NarrowFiles(rule="r", because="b", todo_id="t1", allowed_files=("a.py",)),),
            ),
            "plan revised: edits narrow_files, by Ada",
        ),
        (
            ConflictFound(at=START, todo_ids=("t1", "t2"), files=("a.py",)),
            "conflict found t1, t2: files a.py",
        ),
    ],
)
def test_an_event_is_told_in_one_line(event: Any, told: str) -> None:
    story = Story(todo("t1"), todo("t2"))
    story.works("t1")
    story.works("t2")
    story.tell(event)

    assert story.told()[0] == told


def test_what_a_person_decides_stands_in_the_story_of_the_todo() -> None:
    story = Story(todo("t1"), todo("t2"), auto_fix_mode=False)
    story.is_red("t1")
    assert any(line.startswith("ask human t1: question ") for line in story.told("t1"))
    story.decides(Decision.REJECT, story.questions[0])
    assert story.told("t1")[0].startswith("approval given t1_branch_01: reject")
    assert story.told("t2") == []
    story.tell(QuestionAnswered(at=START, question_id=story.questions[-1].question_id, answer="give_up"))
    assert "answer give_up" in story.told("t1")[0]


def test_text_from_outside_cannot_colour_hide_or_break_a_line() -> None:
    story = Story(todo("t1"))
    story.is_red("t1", message="\x1b[31mred\nsecond\u202e" + "x" * 500)

    told = story.told()[0]
    assert told.isprintable()
    assert "red second" in told
    assert len(told) < 400


RED = {"id": "tests[0]", "kind": "test", "verdict": "failed"}


@pytest.mark.parametrize(
    ("keys", "verdict", "told"),
    [
        ({"success": True, "tests_passed": True}, Verdict.PASSED, "passed, 0 criteria"),
        (
            {"state": "testing", "checks": [{**RED, "verdict": "needs_human", "title": "Nice?"}]},
            Verdict.NEEDS_HUMAN,
            "needs human, Nice?",
        ),
        (
            {"state": "testing", "checks": [{**RED, "verdict": "inconclusive"}]},
            Verdict.INCONCLUSIVE,
            "inconclusive, tests[0]",
        ),
        (
            {"checks": [RED], "failure_evidence": {"category": "FLAKY_TEST", "tests": ["a::b", "a::c"]}},
            Verdict.FLAKY,
            "flaky, b and 1 other test (FLAKY_TEST)",
        ),
        (
            {"checks": [RED], "failure_evidence": {"category": Category.ENVIRONMENT_ERROR}},
            Verdict.INCONCLUSIVE,
            "inconclusive, it (ENVIRONMENT_ERROR)",
        ),
        ({"checks": [RED]}, Verdict.FAILED, "failed, tests[0]"),
    ],
)
def test_a_verification_is_told_by_what_it_found(keys: dict[str, Any], verdict: Verdict, told: str) -> None:
    outcome = Outcome.model_validate({"todo_id": "t1", "success": False, "tests_passed": False, **keys})
    story = Story(todo("t1"), run={"allow_unproved": True})
    story.works("t1")
    story.outcome(outcome)

    assert verdict_of(outcome)[0] is verdict
    assert story.told()[0] == f"verified t1: {told}"
