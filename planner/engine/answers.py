"""Takes in what people say: approvals, answers, revisions of their own, and the step to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.engine.budget import BUDGET_QUESTION
from planner.engine.consequences import fail, offer
from planner.engine.proposals import Proposal
from planner.engine.repair import (
    ALERT,
    ask_review,
    escalate,
    failure_class,
    publish_anew,
    waits_for,
)
from planner.engine.revision import publish
from planner.engine.state import PendingStep
from planner.engine.transaction import Stop
from planner.errors import EditConflictError, IllegalTransition, RefusedEvent
from planner.model.actions import QuestionKind
from planner.model.edits import NarrowFiles
from planner.model.events import Decision
from planner.model.ids import qualified
from planner.model.life import TodoLife
from planner.model.taxonomy import Role
from planner.policy.allowed_files import widened_by
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from planner.engine.state import Question, TodoRecord
    from planner.engine.transaction import Transaction
    from planner.model.edits import Edit
    from planner.model.events import (
        ApprovalGiven,
        BranchChanges,
        PlanRevised,
        QuestionAnswered,
        StopRequested,
    )
    from planner.model.plan import Todo


_LONGEST_REASON = 500
_LONGEST_NAME = 100


def approval_given(tx: Transaction, event: ApprovalGiven) -> None:
    """A person has decided about a proposal."""
    question = _asked(tx, event.approval_id)
    if not question.kind.is_approval:
        raise RefusedEvent(
            "no-such-approval",
            f"'{question.id}' is a question, and nothing to approve",
            f"answer it by question_answered with {', '.join(question.options)}",
        )
    if event.digest != question.digest:
        raise RefusedEvent(
            "stale-approval",
            f"what was decided about '{question.id}' has the digest {event.digest or '(none)'}, and what "
            f"is proposed now has {question.digest}",
            "look at what is proposed now, and decide anew",
        )
    if event.decision.value not in question.options:
        raise RefusedEvent(
            "no-such-decision",
            f"'{event.decision}' is no answer to '{question.id}'",
            f"say {', '.join(question.options)}",
        )
    answer = _ANSWERS[question.kind]
    answer(tx, question, event)


def question_answered(tx: Transaction, event: QuestionAnswered) -> None:
    """A person has answered a question."""
    question = _asked(tx, event.question_id)
    if question.kind.is_approval:
        raise RefusedEvent(
            "no-such-question",
            f"'{question.id}' is to be approved or rejected",
            f"decide it by approval_given with the digest {question.digest}",
        )
    if event.answer not in question.options:
        raise RefusedEvent(
            "no-such-answer",
            f"'{event.answer[:100]}' is no answer to '{question.id}'",
            f"say {', '.join(question.options)}",
        )
    said, who = _in_words(event.because), _named(event.by)
    tx.withdraw(question.id)
    if event.answer == "stop":
        found = (question.todo_id,) if question.todo_id else ()
        raise Stop("stopped-by-person", f"{who} wants everything to stop{said}", found)
    if question.id == BUDGET_QUESTION:
        tx.overspent = True
        return
    record = tx.records[question.todo_id]
    if event.answer == "give_up":
        fail(tx, record)
    elif event.answer == "retry":
        because = f"{who} wants it tried once more{said}"
        if record.is_parent:
            tx.enqueue(record, PendingStep("load", "person-grants-a-turn", because))
        else:
            told = event.because or record.instructions
            record = tx.put(record._replace(by_person=True, instructions=told))
            tx.enqueue(record, PendingStep("implement", "person-grants-a-turn", because))
    else:
        record = tx.put(record._replace(waited=0))
        tx.enqueue(record, PendingStep("verify", "answered-is-verified-again", f"{who} has answered{said}"))


def plan_revised(tx: Transaction, event: PlanRevised) -> None:
    """A person has changed the plan. What is done, or under work, cannot be judged by something else."""
    if event.within not in tx.parts:
        raise RefusedEvent(
            "unknown-plan",
            f"there is no loaded sub-plan '{event.within}'",
            "name the parent whose sub-plan is meant, or nothing for the plan at the top",
        )
    if any(edit.edit == "add_branch" for edit in event.edits):
        raise RefusedEvent(
            "no-branch-by-hand",
            "a branch is made by the engine, which counts it and ends it",
            "answer the question about its todo, or add a todo",
        )
    who = _named(event.by)
    before = {
        name: record.todo
        for name, record in tx.records.items()
        if record.within == event.within and (record.life.is_final or record.life.is_live)
    }
    try:
        publish(
            tx, event.within, event.edits, "revised-by-person", f"{who} has changed the plan", whole=True
        )
    except EditConflictError as error:
        raise RefusedEvent(
            "revision-conflict", error.args[0], "decide anew from the plan as it is"
        ) from None
    for name in sorted(before):
        record = tx.records[name]
        if record.todo is before[name] or record.todo == before[name]:
            continue
        old = before[name]
        added = set(record.todo.dependencies) - set(old.dependencies)
        if record.life.is_final or added:
            raise IllegalTransition(
                f"todo '{name}'",
                record.life,
                TodoLife.PENDING,
                "plan_revised",
                remedy="add a todo of its own for what is missing",
            )


def stop_requested(tx: Transaction, event: StopRequested) -> None:
    """A person wants everything to stop."""
    said = _in_words(event.because)
    raise Stop("stopped-by-person", f"{_named(event.by)} wants everything to stop{said}")


def _asked(tx: Transaction, question_id: str) -> Question:
    question = tx.questions.get(question_id)
    if question is None:
        open_ = ", ".join(sorted(tx.questions)[:10]) or "none"
        raise RefusedEvent(
            "no-such-question",
            f"'{question_id}' is not asked (open are: {open_})",
            "answer one that is asked",
        )
    return question


def _about_start(tx: Transaction, question: Question, event: ApprovalGiven) -> None:
    tx.withdraw(question.id)
    record = tx.records[question.todo_id]
    if event.decision is Decision.REJECT:
        fail(tx, record)
        return
    if event.decision is Decision.MODIFY:
        record = _begun_otherwise(tx, record, event.changes)
    tx.put(record._replace(allowed_start=True))
    offer(tx, (record.id,))


def _begun_otherwise(tx: Transaction, record: TodoRecord, changes: BranchChanges) -> TodoRecord:
    """A todo that is begun with what a person has changed: what it is told, and fewer files."""
    named = changes.model_dump(exclude_none=True)
    other = [name for name in named if name not in ("instructions", "allowed_files")]
    if other:
        raise RefusedEvent(
            "no-such-change",
            f"{other[0]} cannot be changed at the start of '{record.id}'",
            "change its instructions and allowed_files, or revise the plan",
        )
    if changes.allowed_files is not None:
        edit = NarrowFiles(
            rule="high-risk-asks-first",
            because="a person lets it begin with these files only",
            todo_id=record.todo.id,
            allowed_files=changes.allowed_files,
        )
        try:
            publish(tx, record.within, (edit,), edit.rule, edit.because)
        except EditConflictError as error:
            raise RefusedEvent("no-wider-files", error.problem, error.remedy) from None
    return tx.records[record.id]._replace(instructions=changes.instructions)


def _about_edits(tx: Transaction, question: Question, event: ApprovalGiven) -> None:
    tx.withdraw(question.id)
    if event.decision is Decision.REJECT:
        return
    record = tx.records[question.todo_id]
    if record.life.is_final:  # what it was proposed for has come to its end meanwhile
        return
    who = _named(event.by)
    try:
        publish(tx, record.within, question.edits, "approved-edits", f"{who} has agreed to it")
    except EditConflictError as error:
        because = f"the approved change of {record.id} no longer fits the plan: {error}"
        tx.notify("revision-conflict", because, topic=ALERT, to=Role.PLANNER, todo_id=record.id)
        return
    record = tx.records[record.id]
    if record.life is TodoLife.TEST_FAILED and record.question is not None and not record.waits:
        tx.withdraw(record.question)
        record = tx.records[record.id]
        tx.enqueue(record, PendingStep("verify", "criteria-have-changed", "its criteria have changed"))


def _about_branch(tx: Transaction, question: Question, event: ApprovalGiven) -> None:
    tx.withdraw(question.id)
    record = tx.records[question.todo_id]
    who = _named(event.by)
    if event.decision is Decision.REJECT:
        because = f"{who} has rejected {question.id}{_in_words(event.because)}"
        escalate(tx, record, "branch-rejected", because, exhausted=False)
        return
    if event.decision is Decision.APPROVE_SIMILAR and question.failure is not None:
        tx.approved = tx.approved | {failure_class(question.failure)}
    if event.decision is Decision.MODIFY:
        modified = _modified(tx, record, question, event.changes)
        if modified is None:
            because = f"{question.id} would wait for {record.id}, which it is there to repair"
            tx.notify("branches-in-a-circle", because, topic=ALERT, to=Role.HUMAN, todo_id=record.id)
            ask_review(tx, record, "branches-in-a-circle", because)
            return
        question = question._replace(proposal=modified)
    publish_anew(tx, record, question)
    if event.decision is Decision.APPROVE_SIMILAR:
        _open_similar(tx)


def _open_similar(tx: Transaction) -> None:
    """Branches that are asked about, and for whose class somebody has just agreed, are made."""
    for question in sorted(tx.questions.values(), key=lambda each: each.asked):
        asked = question.kind is QuestionKind.APPROVE_BRANCH and question.failure is not None
        if not asked or question.failure is None or failure_class(question.failure) not in tx.approved:
            continue
        record = tx.records[question.todo_id]
        if record.todo.risk_level == "HIGH":
            continue
        tx.withdraw(question.id)
        publish_anew(tx, tx.records[record.id], question)


def _modified(
    tx: Transaction, record: TodoRecord, question: Question, changes: BranchChanges
) -> Proposal | None:
    """The proposal with what a person has changed; ``None`` where it would wait for its own todo."""
    proposal = question.proposal
    assert proposal is not None
    if changes.max_debug_attempts == 0:
        raise RefusedEvent("no-attempts", "a branch without attempts mends nothing", "reject it instead")
    for name in changes.dependencies or ():
        qualified_name = qualified(record.within, name)
        if qualified_name not in tx.records:
            raise RefusedEvent(
                "unknown-todo",
                f"the branch cannot wait for '{name}', which is no todo",
                "name one of its plan",
            )
        if tx.records[qualified_name].life in _GONE:
            raise RefusedEvent(
                "todo-is-gone",
                f"the branch cannot wait for '{name}', which is {tx.records[qualified_name].life}",
                "name one that can still be done",
            )
        if waits_for(tx, qualified_name, record.id):
            return None
    added = proposal.edits[0]
    first = getattr(added, "todo", proposal.branch)
    allowed = proposal.branch.allowed_files
    branch = _changed(proposal.branch, changes, allowed)
    edits: list[Edit] = [
        added.model_copy(update={"todo": _changed(first, changes, first.allowed_files)}),
        *proposal.edits[1:],
    ]
    if changes.allowed_files is not None:
        edits = [edit for edit in edits if edit.edit != "narrow_files"]
    if changes.instructions is not None:
        told = f"{changes.instructions}\n\n{branch.debug_instructions or ''}".strip() + "\n"
        edits = [
            edit.model_copy(update={"text": told})
            if edit.edit == "add_context" and edit.todo_id == branch.id
            else edit
            for edit in edits
        ]
        branch = branch.model_copy(update={"debug_instructions": told})
    return Proposal(branch=branch, edits=tuple(edits))


def _changed(todo: Todo, changes: BranchChanges, allowed: tuple[str, ...] | None) -> Todo:
    """A todo with what a person has changed. Raises :class:`planner.errors.RefusedEvent`."""
    fields = {
        "agent_role": changes.role,
        "target_agent_role": changes.role if todo.parent_id is not None else None,
        "allowed_files": changes.allowed_files,
        "dependencies": changes.dependencies,
        "max_debug_attempts": changes.max_debug_attempts,
        "max_lifetime_seconds": changes.max_lifetime_seconds,
    }
    if changes.allowed_files is not None and allowed is not None:
        wider = widened_by(allowed, changes.allowed_files)
        if wider is not None:
            raise RefusedEvent(
                "no-wider-files",
                f"'{wider}' is not within the files that were proposed ({', '.join(allowed) or 'none'})",
                "name patterns that lie within them",
            )
    return todo.model_copy(update={name: held for name, held in fields.items() if held is not None})


def _in_words(because: str | None) -> str:
    """What a person gives as a reason, on one line, behind a colon."""
    said = " ".join(clean(because or "", limit=_LONGEST_REASON).split())
    return f": {said}" if said else ""


def _named(person: str | None) -> str:
    return " ".join(clean(person or "", limit=_LONGEST_NAME).split()) or "a person"


_GONE = frozenset((TodoLife.FAILED, TodoLife.SKIPPED, TodoLife.HALTED))

_ANSWERS = {
    QuestionKind.APPROVE_START: _about_start,
    QuestionKind.APPROVE_EDITS: _about_edits,
    QuestionKind.APPROVE_BRANCH: _about_branch,
}
