"""Guarantees that no event breaks: no unproved pass, no approval of something that was not shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from engine_telling import Told, plan_of, todo

from planner.cli.explain import load_glossary
from planner.engine import REFUSALS, transaction
from planner.errors import RefusedEvent
from planner.model.actions import AskHuman
from planner.model.events import Decision, SubPlanLoaded
from planner.model.plan import Policy
from planner.model.taxonomy import Category


def asked_for_more_time() -> tuple[Told, AskHuman]:
    """Return a run with a branch, and with the proposal to change a criterion of its todo."""
    run = Told(todo())
    run.is_red("t1", Category.TEST_TIMEOUT)
    return run, run.asked()


def test_a_branch_is_proposed_again_after_its_todo_fails_for_another_cause():
    run = Told(todo(), auto_fix_mode=False)
    run.is_red()
    (before,) = run.questions
    run.fails("t1", Category.SPEC_MISMATCH)
    (now,) = run.questions
    assert (now.question_id, now.because) == (before.question_id, before.because)
    with pytest.raises(RefusedEvent):
        run.decides(Decision.APPROVE, before)
    run.decides(Decision.APPROVE, now)
    assert run.record("t1_branch_01").todo.agent_role == "architect"


@pytest.mark.parametrize(
    ("above", "own", "asked"),
    [
        ({"auto_fix_mode": False}, {"auto_fix_mode": True}, ["approve_branch"]),
        ({"auto_fix_mode": True}, {"auto_fix_mode": False}, ["approve_branch"]),
        ({"auto_fix_mode": True}, {}, []),
        ({"auto_fix_mode": True, "max_branch_depth": 0}, {}, ["review"]),
        ({"auto_fix_mode": True}, {"max_debug_attempts": 0}, ["review"]),
        ({"max_debug_attempts": 0}, {"max_debug_attempts": 3}, ["review"]),
        ({"require_planner_approval": True}, {"require_planner_approval": False}, ["approve_branch"]),
    ],
)
def test_a_sub_plan_inherits_and_may_only_tighten_the_policy_of_its_parent_plan(
    above: dict[str, Any], own: dict[str, Any], asked: list[str]
):
    run = Told(todo("p", sub_plan="phase.yaml"), **above)
    sub = plan_of(todo("a")).model_copy(update={"metadata": Policy.model_validate(own)})
    run.tell(SubPlanLoaded(at=run.now, todo_id="p", plan=sub, digest="sha256:sub"))
    run.is_red("p/a")
    assert [each.kind.value for each in run.questions] == asked


def test_control_characters_and_line_breaks_are_removed_from_human_input():
    run = Told(todo(), auto_fix_mode=False)
    run.is_red()
    run.decides(Decision.REJECT, run.questions[0], because="no\nway \x1b[31m\u202eyaw", by="Ann\n")
    assert run.last[0].because == "Ann rejected t1_branch_01: no way yaw"


def test_a_late_result_for_old_criteria_does_not_count_for_new_ones():
    run, edits = asked_for_more_time()
    run.is_done("t1_branch_01")
    run.decides(Decision.APPROVE, edits)
    seq = run.last_of(type(run.last[-1]))[-1].seq
    with pytest.raises(RefusedEvent) as refusal:
        run.passes()
    assert refusal.value.rule == "late-answer"
    run.outcome(run.good("t1"), answers=seq)
    assert run.life() == "done"


def test_failures_without_a_signature_are_distinguished_by_their_messages():
    run = Told(todo(max_retries=2), halt={"identical_failures": 2})
    run.is_red("t1", message="AssertionError: 1", diff_hash="sha256:0", signature=None)
    run.is_red("t1", message="KeyError: 'a'", diff_hash="sha256:0", signature=None)
    assert run.state.plan_state == "executing"
    run.is_red("t1", message="KeyError: 'a'", diff_hash="sha256:0", signature=None)
    assert run.rules[-1] == "halt-on-identical-failure"


def test_every_refusal_rule_is_explained_in_the_glossary_and_has_a_remedy():
    known = load_glossary()
    sources = Path(transaction.__file__).parent.glob("*.py")
    raised = {rule for each in sources for rule in re.findall(r'refusal\("([a-z-]+)"', each.read_text())}
    assert [rule for rule in REFUSALS if not known.find(rule)] == []
    assert raised <= transaction.RULES["remedies"].keys() <= REFUSALS.keys()
