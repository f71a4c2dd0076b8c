"""Rows of the index about a run, derived from its log alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from store_samples import START, Carried, Project, shop, todo

from planner.model.past import PastRepair, PastTodo
from planner.model.taxonomy import Category, Role
from planner.model.verdicts import TodoLife
from planner.store.index import Found, mean_resolution


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def branches(project: Project) -> list[Found]:
    (run,) = project.runs()
    return run["branches"]


def answers(project: Project) -> list[tuple[str, str | None, str | None]]:
    (run,) = project.runs()
    return [(each["kind"], each["decision"], each["decided_by"]) for each in run["questions"]]


def to_first_branch(project: Project, **metadata: Any) -> Carried:
    """Return a run in which `tax` has used up its retries."""
    run = Carried(project, shop(**metadata))
    run.tell("run_started")
    for _ in range(3):
        run.worked("tax")
        run.failed("tax")
    return run


def repair(run: Carried, branch_id: str) -> None:
    """Let a branch pass in its next turn."""
    run.worked(branch_id)
    run.passed(branch_id)


def test_a_branch_is_recorded_from_its_creation_to_its_result(project: Project) -> None:
    run = to_first_branch(project)
    (branch,) = branches(project)
    place = {"branch_id": "tax_branch_01", "parent_id": "tax", "depth": 1, "via": None}
    why = {"role": "coder", "category": "TEST_REGRESSION", "signature": "a1b2c3d4e5f6"}
    result = {"outcome": None, "resolution": None, "duration_seconds": None}
    assert branch == branch | place | why | result
    assert branch["attempts"] == 1, "its first turn of work is asked for already"

    run.worked("tax_branch_01")
    run.failed("tax_branch_01")
    repair(run, "tax_branch_01")
    (branch,) = branches(project)
    assert (branch["attempts"], branch["outcome"], branch["resolution"]) == (2, "passed", None)
    assert branch["duration_seconds"] == 4 * 60

    run.failed("tax")
    repair(run, "tax_branch_02")
    run.failed("tax", signature="another")
    first, second = branches(project)
    assert (first["resolution"], second["resolution"]) == ("parent_still_red", "failure_gone")
    assert (second["via"], second["depth"]) == ("tax_branch_01", 2)
    assert mean_resolution([first, second]) == (240 + 120) / 2


def test_a_run_records_its_blocked_todos_and_since_when(project: Project) -> None:
    run = Carried(project, shop())
    run.tell("run_started")
    run.worked("tax")
    assert project.runs()[0]["blocked_since"] is None
    run.failed("tax")
    run.worked("tax")
    (stands,) = project.runs("shop")
    assert stands["blocked"] == ["bill", "mail"]
    assert stands["blocked_since"] == "2026-11-21T10:03:00.000000Z"
    run.passed("tax")
    (stands,) = project.runs("shop")
    assert (stands["blocked"], stands["blocked_since"], stands["events"]) == ([], None, 6)
    assert project.runs("another plan") == []


def give_up(run: Carried) -> None:
    for _ in range(4):
        run.failed("tax_branch_01", "ENVIRONMENT_ERROR")
    (name,) = run.state.questions
    run.tell("question_answered", question_id=name, answer="give_up")


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (give_up, "failed"),
        (lambda run: run.tell("clock_ticked", after=700), "failed"),
        (lambda run: run.tell("stop_requested"), "halted"),
    ],
    ids=["give_up", "clock", "stop"],
)
def test_a_failed_branch_has_resolved_nothing(
    project: Project, end: Callable[[Carried], object], outcome: str
) -> None:
    run = to_first_branch(project)
    run.worked("tax_branch_01")
    end(run)
    (branch,) = branches(project)
    assert (branch["outcome"], branch["resolution"]) == (outcome, "parent_still_red")
    assert branch["closed"] is not None
    assert mean_resolution([branch]) is None


def test_each_repair_is_remembered_once_with_its_result(project: Project) -> None:
    run = to_first_branch(project)
    run.tell("run_resumed")
    repair(run, "tax_branch_01")
    for limit in (2, 10):
        known = project.past("here", run.now, limit).repairs
        assert [each.fixed for each in known] == [False, False], "what came of the branch is not known yet"
    run.passed("tax")
    repair(run, "bill")

    past = project.past("here", run.now, 10)

    assert past.fingerprint == "here"
    branch, *retries = past.repairs
    assert [(each.strategy, each.role, each.fixed) for each in retries] == [
        ("retry", Role.CODER, False)
    ] * 2
    assert branch == PastRepair(
        at=run.now - timedelta(minutes=2),
        fingerprint="here",
        task_kind="other",
        text="Todo tax AssertionError: assert 110 == 119",
        signature="a1b2c3d4e5f6",
        category=Category.TEST_REGRESSION,
        strategy=branch.strategy,
        role=Role.CODER,
        fixed=True,
    )
    assert [(each.text, each.done, each.first_time, each.categories) for each in past.todos] == [
        ("Todo bill", True, True, ()),
        ("Todo tax", True, False, (Category.TEST_REGRESSION,)),
    ]
    assert past == type(past).model_validate_json(past.model_dump_json())


def test_unverified_and_unworked_todos_are_not_remembered(project: Project) -> None:
    risky = todo("risky", risk_level="HIGH")
    run = Carried(
        project, shop(items=[todo("notes", requires_testing=False), risky, todo("last", "risky")])
    )
    run.tell("run_started")
    run.worked("notes")
    (question,) = run.state.questions.values()
    run.tell("approval_given", approval_id=question.question_id, decision="reject", digest=question.digest)

    assert [each.life for each in run.state.todos.values()].count(TodoLife.DONE) == 1
    assert not [each for each in run.state.todos.values() if not each.life.is_final]
    assert project.past("here", run.now, 10).todos == ()


def test_memory_prefers_records_of_this_repository_and_excludes_the_future(project: Project) -> None:
    for place, name in enumerate(("elsewhere", "here", "elsewhere")):
        event = shop(items=[todo("tax")])
        event = event.model_copy(update={"policy": event.policy.model_copy(update={"fingerprint": name})})
        run = Carried(project, event, f"run-{place}")
        run.tell("run_started", after=place)
        run.worked("tax")
        run.passed("tax")

    def places(past: tuple[PastTodo, ...]) -> list[str]:
        return [each.fingerprint for each in past]

    assert places(project.past("here", run.now, 10).todos) == ["here", "elsewhere", "elsewhere"]
    assert places(project.past("here", run.now, 1).todos) == ["here"]
    assert places(project.past("here", run.now - timedelta(seconds=1), 10).todos) == ["here", "elsewhere"]
    assert project.past("here", START - timedelta(days=1), 10).todos == ()


def test_questions_are_recorded_with_their_answers(project: Project) -> None:
    run = to_first_branch(project, auto_fix_mode=False)
    assert answers(project) == [("approve_branch", None, None)]
    run.tell("run_resumed")
    assert len(answers(project)) == 1, "asked again after a break, it is the same question"
    digest = run.state.questions["tax_branch_01"].digest
    run.tell("approval_given", approval_id="tax_branch_01", decision="approve", digest=digest, by="ann")
    assert answers(project) == [("approve_branch", "approve", "ann")]

    repair(run, "tax_branch_01")
    run.passed("tax")
    run.worked("bill")
    for _ in range(4):
        run.failed("bill", "ENVIRONMENT_ERROR")
    assert answers(project)[1:] == [("mend_environment", None, None)]
    (name,) = run.state.questions
    run.tell("question_answered", question_id=name, answer="give_up", by="bob")
    assert answers(project)[1:] == [("mend_environment", "give_up", "bob")]


def test_every_failure_of_a_verification_is_recorded_and_one_is_deciding(project: Project) -> None:
    run = Carried(project, shop())
    run.tell("run_started")
    run.worked("tax")
    worse = {"category": "IMPORT_ERROR", "signature": "c1", "stack_trace_head": "No module\0 named x"}
    less = {"category": "LINT_ERROR", "signature": "c2"}
    run.failed("tax", failure_evidence=worse, failures=[less])

    with project.index() as index:
        seen = {each["signature"]: each for each in index.failures()}

    assert seen.keys() == {"c1", "c2"}
    assert (seen["c1"]["category"], seen["c1"]["todo_id"]) == ("IMPORT_ERROR", "tax")
    assert seen["c1"]["head"] == "No module\ufffd named x", "text that every database can hold"
    repair(run, "tax")
    assert project.past("here", run.now, 5).todos[0].categories == (Category.IMPORT_ERROR,)
