"""Stories and figures derived from run logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from run_stories import START, Kept, Story, todo, write_log
from simulation import Simulation

from planner.cli.explain import tell
from planner.cli.figures import LIMITS, Figures, review, verdict_of
from planner.engine.progress import status_tree
from planner.model.edits import NarrowFiles
from planner.model.events import (
    ConflictFound,
    Decision,
    PlanRevised,
    QuestionAnswered,
    StopRequested,
    WorkStarted,
)
from planner.model.outcome import Outcome
from planner.model.plan import AcceptanceCriteria
from planner.model.taxonomy import Category
from planner.model.verdicts import Verdict
from planner.store import questions
from planner.store.index import open_index
from planner.store.run_log import FOLDER

NARROWED = NarrowFiles(rule="r", because="b", todo_id="t1", allowed_files=("a.py",))


@pytest.mark.parametrize(
    ("name", "counts", "met"),
    [
        ("recovery-rate", {"fixed_repairs": 1, "repairs": 2}, True),
        ("recovery-rate", {"fixed_repairs": 49, "repairs": 100}, False),
        ("verification-time", {"verification_seconds": 30.0, "work_seconds": 100.0}, True),
        ("verification-time", {"verification_seconds": 31.0, "work_seconds": 100.0}, False),
        ("human-overrides", {"overrides": 1, "decisions": 5}, True),
        ("human-overrides", {"overrides": 2, "decisions": 9}, False),
        ("convention-misses", {"missed_todos": 1, "conventional_todos": 5}, True),
        ("convention-misses", {"missed_todos": 1, "conventional_todos": 4}, False),
        ("convention-misses", {}, None),
        ("hierarchy-depth", {"levels": 3}, True),
        ("hierarchy-depth", {"levels": 4}, False),
    ],
)
def test_each_figure_is_met_up_to_its_limit(name: str, counts: dict[str, Any], met: bool | None) -> None:
    assert {each.id: each.met for each in review(Figures(**counts))}[name] is met


def test_figures_are_described_with_counts_and_limit() -> None:
    tally = Figures(fixed_repairs=3, repairs=4, levels=2, work_seconds=0.5, verification_seconds=0.0894)
    told = {each.id: each.sentence for each in review(tally)}

    assert list(told) == list(LIMITS)
    assert told["recovery-rate"] == "repairs that fixed the failure: 3 of 4 (75%; goal: at least 50%)"
    assert told["hierarchy-depth"] == "levels of nested plans: 2 (goal: at most 3)"
    assert told["human-overrides"].endswith(": none yet (goal: at most 20%)")
    assert "0.0894 of 0.5 (18%" in told["verification-time"]


def test_a_turn_granted_by_a_person_counts_as_a_repair_in_every_report(tmp_path: Path) -> None:
    story = Story(todo("t1"), max_branch_depth=0, run={"driven": False})
    story.is_red("t1")
    story.answers("retry", story.questions[0])
    assert status_tree(story.state).nodes[0].waits == "another turn, granted by a person, by the coder"
    story.is_done("t1")

    assert (story.figures.repairs, story.figures.fixed_repairs) == (1, 1)
    log = tmp_path / FOLDER / "p1.jsonl"
    log.parent.mkdir(parents=True)
    write_log(story.steps, log)
    with open_index(tmp_path) as index, index.reading() as rows:
        (found,) = questions.repair_rates(rows)
    assert (found["tried"], found["fixed"]) == (1, 1)


def test_human_decisions_and_overrides_are_counted() -> None:
    story = Story(todo("t1"), todo("t2", risk_level="HIGH"), auto_fix_mode=False, max_branch_depth=1)
    start_of_t2 = next(action for action in story.all if getattr(action, "question_id", ""))
    story.is_red("t1")
    story.decides(Decision.APPROVE_SIMILAR, story.questions[0])
    assert (story.figures.decisions, story.figures.overrides) == (1, 0)
    story.decides(Decision.REJECT, start_of_t2)  # type: ignore[arg-type]
    assert (story.figures.decisions, story.figures.overrides) == (2, 1)
    story.tell(PlanRevised(at=START, edits=(NARROWED,)))
    assert (story.figures.decisions, story.figures.overrides) == (3, 2)
    story.tell(StopRequested(at=START))
    assert (story.figures.decisions, story.figures.overrides) == (4, 3)


def test_verification_time_is_measured_by_run_and_not_by_test() -> None:
    # Ten seconds pass before each event.
    story = Story(todo("t1"), todo("t2"), run={"allow_unproved": True})
    story.works("t1", duration_ms=4_000)
    story.passes("t1")
    assert (story.figures.work_seconds, story.figures.verification_seconds) == (4.0, 10.0)

    story.tell(WorkStarted(at=START, todo_id="t2"))
    story.works("t2")  # 10 s after the start of the work, not 30 s after the request
    measured = {"success": True, "tests_passed": True, "metrics": {"duration_ms": 2_500}}
    story.outcome(Outcome.model_validate({"todo_id": "t2", **measured}))
    assert (story.figures.work_seconds, story.figures.verification_seconds) == (14.0, 20.0)


def conventional(todo_id: str, *, found: bool) -> Outcome:
    check = {"id": "convention", "kind": "test", "verdict": "passed" if found else "failed"}
    evidence = None if found else {"category": "TEST_NOT_FOUND", "check_id": "convention"}
    ended = {"verified": True, "success": found, "tests_passed": found, "failure_evidence": evidence}
    return Outcome.model_validate({"todo_id": todo_id, "checks": [check], **ended})


def test_todos_without_conventional_tests_are_counted_once() -> None:
    untested = {"acceptance_criteria": AcceptanceCriteria()}
    story = Story(todo("t1", max_retries=2, **untested), todo("t2", **untested), todo("t3"))
    story.works("t1")
    story.outcome(conventional("t1", found=False))
    story.works("t1")
    story.outcome(conventional("t1", found=True))
    story.works("t2")
    story.outcome(conventional("t2", found=True))
    story.works("t3")
    story.fails("t3", Category.TEST_NOT_FOUND)

    assert (story.figures.conventional_todos, story.figures.missed_todos) == (2, 1)


def test_hierarchy_depth_counts_the_loaded_sub_plans() -> None:
    story = Story(todo("p", sub_plan="p.yaml"))
    assert story.figures.levels == 1
    story.loads("p", todo("q", sub_plan="q.yaml"))
    assert story.figures.levels == 2
    story.loads("p/q", problems=("not there",))
    assert story.figures.levels == 2


def test_no_rate_of_a_run_exceeds_one() -> None:
    for seed in range(20):
        kept = Kept()
        Simulation.begin(seed, kept).run()
        tally = kept.figures
        assert tally.fixed_repairs <= tally.repairs, f"seed {seed}"
        assert tally.overrides <= tally.decisions, f"seed {seed}"


def test_every_event_and_action_is_described_in_printable_lines() -> None:
    for seed in range(15):
        kept = Kept()
        Simulation.begin(seed, kept).run()
        for step in kept.steps:
            lines = [line.text for line in tell(step)]
            assert len(lines) >= len(step.actions) + (step.event.event != "clock_ticked")
            assert all(line.isprintable() and "\n" not in line for line in lines), f"seed {seed}"
            for action in step.actions:
                assert any(f"[{action.rule}]" in line for line in lines)


def test_the_history_of_one_todo_covers_only_it_and_its_branches() -> None:
    story = Story(todo("t1"), todo("t2"))
    story.is_red("t1")
    story.is_done("t2")
    story.tell(StopRequested(at=START, by="Ada"))
    of_t1 = story.whole("t1")

    assert any("t1_branch_01" in line for line in of_t1)
    assert not any("t2" in line.partition(":")[0] for line in of_t1)
    assert any(line.startswith("stop requested: by Ada") for line in of_t1), "it concerns everybody"


CONFLICT = ConflictFound(at=START, todo_ids=("t1", "t2"), files=("a.py",))


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (PlanRevised(at=START, by="Ada", edits=(NARROWED,)), "plan revised: edits narrow_files, by Ada"),
        (CONFLICT, "conflict found t1, t2: files a.py"),
    ],
)
def test_an_event_is_described_in_one_line(event: Any, told: str) -> None:
    story = Story(todo("t1"), todo("t2"))
    story.works("t1")
    story.works("t2")
    story.tell(event)

    assert story.told()[0] == told


def test_human_decisions_appear_in_the_history_of_their_todo() -> None:
    story = Story(todo("t1"), todo("t2"), auto_fix_mode=False)
    story.is_red("t1")
    assert any(line.startswith("ask human t1: question ") for line in story.told("t1"))
    story.decides(Decision.REJECT, story.questions[0])
    assert story.told("t1")[0].startswith("approval given t1_branch_01: reject")
    assert story.told("t2") == []
    story.tell(QuestionAnswered(at=START, question_id=story.questions[-1].question_id, answer="give_up"))
    assert "answer give_up" in story.told("t1")[0]


def test_external_text_cannot_colour_hide_or_break_a_line() -> None:
    story = Story(todo("t1"))
    story.is_red("t1", message="\x1b[31mred\nsecond\u202e" + "x" * 500)

    told = story.told()[0]
    assert told.isprintable()
    assert "red second" in told
    assert len(told) < 400


FLAKY = {"category": "FLAKY_TEST", "tests": ["a::b", "a::c"]}
BROKEN = {"category": "ENVIRONMENT_ERROR"}


def ends_with(verdict: str, failure: dict[str, Any] | None = None, **check: Any) -> dict[str, Any]:
    """Return fields of an outcome with one check."""
    checks = [{"id": "tests[0]", "kind": "test", "verdict": verdict, **check}]
    state = None if verdict == "failed" else "testing"
    return {"state": state, "checks": checks, "failure_evidence": failure}


@pytest.mark.parametrize(
    ("keys", "verdict", "told"),
    [
        ({"success": True, "tests_passed": True}, Verdict.PASSED, "passed, 0 criteria"),
        (ends_with("needs_human", title="Nice?"), Verdict.NEEDS_HUMAN, "needs human, Nice?"),
        (ends_with("inconclusive"), Verdict.INCONCLUSIVE, "inconclusive, tests[0]"),
        (ends_with("failed", FLAKY), Verdict.FLAKY, "flaky, b and 1 other test (FLAKY_TEST)"),
        (ends_with("failed", BROKEN), Verdict.INCONCLUSIVE, "inconclusive, it (ENVIRONMENT_ERROR)"),
        (ends_with("failed"), Verdict.FAILED, "failed, tests[0]"),
    ],
)
def test_a_verification_is_described_by_its_result(
    keys: dict[str, Any], verdict: Verdict, told: str
) -> None:
    outcome = Outcome.model_validate({"todo_id": "t1", "success": False, "tests_passed": False, **keys})
    story = Story(todo("t1"), run={"allow_unproved": True})
    story.works("t1")
    story.outcome(outcome)

    assert verdict_of(outcome)[0] is verdict
    assert story.told()[0] == f"verified t1: {told}"
