"""Who should hear of a limit that was passed, and what waits for a person."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from planner.model.decision import Approval, HumanNeed, Move, NeedKind, Notice
from planner.model.taxonomy import Role
from planner.model.verdicts import TodoState, Verdict
from planner.rules.approving import edits_with_ids
from planner.rules.branching import tried

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from planner.model.decision import Halt, Repair
    from planner.model.plan import Policy
    from planner.rules.board import Board, Entry

REVIEW = "planner.review_required"
"""The name of the event that a review is asked for."""

_HEARD_BY = {
    "branch-depth": Role.PLANNER,
    "attempts-used-up": Role.PLANNER,
    "branch-lifetime": Role.PLANNER,
    "branches-in-a-circle": Role.PLANNER,
    "branch-without-parent": Role.PLANNER,
    "demand-proves-nothing": Role.PLANNER,
}


def notices(board: Board, repairs: Sequence[Repair], policy: Policy) -> Iterator[Notice]:
    """What somebody should hear of."""
    for repair in repairs:
        if repair.move is Move.ESCALATE:
            yield Notice(
                rule=repair.rule,
                to=_HEARD_BY[repair.rule],
                todo_id=repair.todo_id,
                message=f"{REVIEW}: {repair.because}",
            )
    failed = _failed_branches(board, repairs)
    if len(failed) > policy.notify_after_n_failures:
        yield Notice(
            rule="many-failed-branches",
            to=Role.HUMAN,
            message=f"{len(failed)} branches have failed, more than notify_after_n_failures "
            f"({policy.notify_after_n_failures}): {', '.join(failed[:10])}",
        )


def needs(
    board: Board,
    repairs: Iterable[Repair],
    halt: Halt | None,
    plan_path: str,
    unexplained: str | None = None,
) -> Iterator[HumanNeed]:
    """Everything that waits for a person, in the order of the repairs; open questions come last.

    ``unexplained`` says why the run is not accepted though no criterion is red.
    """
    command = f"planner next {shlex.quote(plan_path)} --output FILE --approve"
    if halt is not None:
        yield HumanNeed(
            kind=NeedKind.HALTED,
            what="find out how it came to this, and run the plan again when it is mended",
            why=halt.because,
        )
        return
    if unexplained is not None:
        yield HumanNeed(
            kind=NeedKind.REVIEW,
            what="see to what the run asks for besides its criteria, then verify again",
            why=unexplained,
        )
    for repair in repairs:
        yield from _of_repair(repair, command)
    for entry in board.entries.values():
        for check in entry.outcome.checks if entry.outcome is not None else ():
            if check.verdict is Verdict.NEEDS_HUMAN and entry.id not in board.blocked:
                yield HumanNeed(
                    kind=NeedKind.ANSWER,
                    todo_id=entry.id,
                    what=check.title or check.id,
                    why="the plan asks a person, and there is no answer to these words yet",
                    how=f"write the answer to {check.id} of {entry.id} into .planverify/answers.json",
                )


def _of_repair(repair: Repair, command: str) -> Iterator[HumanNeed]:
    todo_id, branch_id = repair.todo_id, repair.branch_id
    if repair.approval is Approval.NEEDED:
        yield HumanNeed(
            kind=NeedKind.APPROVE_BRANCH,
            todo_id=todo_id,
            what=f"may {branch_id} be made?",
            why="the plan does not repair by itself (auto_fix_mode, require_planner_approval)",
            how=f"{command} {branch_id}",
            approval_id=branch_id,
        )
    for edit, approval_id in edits_with_ids(repair):
        if approval_id is not None:
            yield HumanNeed(
                kind=NeedKind.APPROVE_EDIT,
                todo_id=todo_id,
                what=f"may the plan be changed: {edit.edit}?",
                why=edit.because,
                how=f"{command} {approval_id}",
                approval_id=approval_id,
            )
    if repair.move is Move.RETRY_LATER:
        said = repair.failure.stack_trace_head if repair.failure is not None else None
        yield HumanNeed(
            kind=NeedKind.MEND_ENVIRONMENT,
            todo_id=todo_id,
            what="see to what was not there, then verify again",
            why=said or repair.because,
            how=repair.failure.rerun if repair.failure is not None else None,
        )
    elif repair.move is Move.ESCALATE:
        yield HumanNeed(
            kind=NeedKind.REVIEW,
            todo_id=todo_id,
            what="change the demand, or make the baseline that it needs"
            if repair.rule == "demand-proves-nothing"
            else "decide how it goes on: repairs are used up",
            why=repair.because,
        )
    elif repair.role is Role.HUMAN and repair.move in (Move.BRANCH, Move.RETRY, Move.SEPARATE):
        yield HumanNeed(
            kind=NeedKind.WORK,
            todo_id=todo_id,
            what=f"work on {branch_id or 'what failed before'}",
            why=f"failures of this kind ({repair.category}) are routed to a person",
        )


def _failed_branches(board: Board, repairs: Iterable[Repair]) -> list[str]:
    """The branches that were worked on and are red, those included whose first attempt is this run's."""
    seen_now = {repair.branch_id for repair in repairs if repair.move in (Move.RETRY, Move.ESCALATE)}
    return [
        entry.id
        for entry in board.entries.values()
        if entry.is_branch
        and entry.state is TodoState.TEST_FAILED
        and (entry.id in seen_now or _was_tried(entry))
    ]


def _was_tried(branch: Entry) -> bool:
    return tried(branch.todo).attempts > 0 or not branch.todo.extensions
