"""The defaults, the limits of branches and of turns, and who is told when one is reached."""

from __future__ import annotations

from engine_telling import Told, todo

from planner.model.actions import Cancel, Halt, Notify
from planner.model.events import (
    ApprovalGiven,
    BranchChanges,
    Decision,
)
from planner.model.taxonomy import Role


def goes_on(run: Told) -> bool:
    return not run.all_of(Halt) and not run.state.plan_state.is_final


# Limits of branches


def test_no_more_branches_are_open_at_once_than_max_concurrent_branches():
    run = Told(*(todo(f"t{at}") for at in range(3)), max_concurrent_branches=2)

    run.is_red("t0")
    run.is_red("t1")
    assert run.started == ["t1_branch_01"]
    run.is_red("t2")
    assert run.started == []
    assert not run.questions
    run.is_done("t0_branch_01")

    assert run.started == ["t2_branch_01"]


def test_a_branch_that_is_still_open_when_its_lifetime_is_over_is_cancelled_and_escalated():
    run = Told(todo(), branch_timeout_seconds=600)
    run.is_red()
    run.waits(600)
    assert goes_on(run)
    assert run.life("t1_branch_01") == "active"

    run.waits(1)

    assert [each.todo_id for each in run.last_of(Cancel)] == ["t1_branch_01"]
    assert run.life("t1_branch_01") == "failed"
    assert [(each.kind.value, each.rule) for each in run.questions] == [("review", "branch-lifetime")]


# Notifications


def test_a_person_is_alerted_when_more_branches_failed_than_notify_after_n_failures():
    run = Told(
        *(todo(f"t{at}") for at in range(3)),
        max_debug_attempts=1,
        notify_after_n_failures=1,
        halt={"consecutive_failures": None},
    )

    def alerts() -> list[Notify]:
        return [each for each in run.last_of(Notify) if each.rule == "many-failed-branches"]

    for at in range(3):
        run.is_red(f"t{at}")
    run.is_red("t0_branch_01")
    assert alerts() == []
    run.is_red("t1_branch_01")

    (alert,) = alerts()
    assert (alert.to, alert.topic) == (Role.HUMAN, "planner.alert")


def test_a_branch_that_waits_for_what_waits_for_its_parent_blocks_the_workflow_and_alerts():
    run = Told(todo("t1"), todo("t2", dependencies=("t1",)), auto_fix_mode=False)
    run.is_red()
    (question,) = run.questions

    run.tell(
        ApprovalGiven(
            at=run.now,
            approval_id=question.question_id,
            decision=Decision.MODIFY,
            digest=question.digest,
            changes=BranchChanges(dependencies=("t2",)),
        )
    )

    assert run.started == []
    assert "branches-in-a-circle" in run.rules
    assert "planner.alert" in [each.topic for each in run.last_of(Notify)]
    assert [each.kind.value for each in run.questions] == ["review"]
    assert run.state.plan_state == "awaiting_review"
