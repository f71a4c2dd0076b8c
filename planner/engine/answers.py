"""Take in what people say: approvals, answers, revisions of their own, and the wish to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.engine.consequences import fail, offer
from planner.engine.plans import publish
from planner.engine.repair import ALERT, ask_review, escalate, failure_class, open_branch, waits_for
from planner.engine.state import PendingStep
from planner.engine.transaction import BUDGET_QUESTION, Stop
from planner.errors import EditConflictError, RefusedEvent
from planner.model.actions import QuestionKind
from planner.model.base import qualified
from planner.model.edits import NarrowFiles
from planner.model.events import Decision
from planner.model.taxonomy import Role
from planner.model.verdicts import TodoLife
from planner.policy.allowed_files import widened_by
from planner.policy.limits import asks_a_person
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from planner.engine.state import TodoRecord
    from planner.engine.transaction import Transaction
    from planner.model.actions import AskHuman
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
_GONE = (TodoLife.FAILED, TodoLife.SKIPPED, TodoLife.HALTED)


def approval_given(tx: Transaction, event: ApprovalGiven) -> None:
    """Go on as a person has decided about a proposal."""
    question = _open_question(tx, event.approval_id)
    if not question.kind.is_approval:
        said = f"'{event.approval_id}' is a question, and nothing to approve"
        remedy = f"answer it by question_answered with {', '.join(question.options)}"
        raise RefusedEvent("no-such-approval", said, remedy)
    if event.digest != question.digest:
        said = f"what was decided about '{event.approval_id}' has the digest {event.digest or '(none)'}"
        said += f", and what is proposed now has {question.digest}"
        raise RefusedEvent("stale-approval", said, "look at what is proposed now, and decide anew")
    _check_option("no-such-decision", event.decision.value, question)
    tx.withdraw(question.question_id)
    record = tx.records[question.todo_id]
    if question.kind is QuestionKind.APPROVE_START:
        _about_start(tx, record, event)
    elif question.kind is QuestionKind.APPROVE_EDITS:
        _about_edits(tx, record, question, event)
    else:
        _about_branch(tx, record, question, event)


def question_answered(tx: Transaction, event: QuestionAnswered) -> None:
    """Go on as a person has answered."""
    question = _open_question(tx, event.question_id)
    if question.kind.is_approval:
        said = f"'{event.question_id}' is to be approved or rejected"
        remedy = f"decide it by approval_given with the digest {question.digest}"
        raise RefusedEvent("no-such-question", said, remedy)
    _check_option("no-such-answer", event.answer, question)
    said, who = _reason(event.because), _name(event.by)
    tx.withdraw(question.question_id)
    if event.answer == "stop":
        found = (question.todo_id,) if question.todo_id else ()
        raise Stop("stopped-by-person", f"{who} wants everything to stop{said}", found)
    if question.question_id == BUDGET_QUESTION:
        tx.overspent = True
        return
    record = tx.records[question.todo_id]
    if event.answer == "give_up":
        fail(tx, record)
    elif event.answer == "retry":
        because = f"{who} wants it tried once more{said}"
        if not record.is_parent:
            told = event.because or record.instructions
            record = tx.update(record, by_person=True, instructions=told)
        tx.enqueue(record, "load" if record.is_parent else "implement", "person-grants-a-turn", because)
    else:
        record = tx.update(record, waited=0)
        tx.enqueue(record, "verify", "answered-is-verified-again", f"{who} has answered{said}")


def _open_question(tx: Transaction, question_id: str) -> AskHuman:
    if question_id not in tx.questions:
        open_ = ", ".join(sorted(tx.questions)[:10]) or "none"
        said = f"'{question_id}' is not asked (open are: {open_})"
        raise RefusedEvent("no-such-question", said, "answer one that is asked")
    return tx.questions[question_id]


def _check_option(rule: str, answer: str, question: AskHuman) -> None:
    if answer not in question.options:
        said = f"'{answer[:100]}' is no answer to '{question.question_id}'"
        raise RefusedEvent(rule, said, f"say {', '.join(question.options)}")


def plan_revised(tx: Transaction, event: PlanRevised) -> None:
    """Change the plan as a person wants; what is done, or under work, stays judged as it is."""
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
    before = tx.records.copy()
    because = f"{_name(event.by)} has changed the plan"
    try:
        publish(tx, event.within, event.edits, "revised-by-person", because, whole=True)
    except EditConflictError as error:
        raise RefusedEvent(
            "revision-conflict", error.args[0], "decide anew from the plan as it is"
        ) from None
    for name, was in sorted(before.items()):
        record = tx.records[name]
        if not (was.life.is_final or was.life.is_live) or record.todo == was.todo:
            continue
        if record.life.is_final or set(record.todo.dependencies) - set(was.todo.dependencies):
            raise tx.illegal(record, TodoLife.PENDING, "add a todo of its own for what is missing")


def stop_requested(tx: Transaction, event: StopRequested) -> None:
    """Stop everything, as a person wants."""
    because = f"{_name(event.by)} wants everything to stop{_reason(event.because)}"
    raise Stop("stopped-by-person", because)


def _about_start(tx: Transaction, record: TodoRecord, event: ApprovalGiven) -> None:
    if event.decision is Decision.REJECT:
        fail(tx, record)
        return
    if event.decision is Decision.MODIFY:
        _narrow(tx, record, event.changes)
        record = tx.update(record, instructions=event.changes.instructions)
    tx.update(record, allowed_start=True)
    offer(tx, (record.id,))


def _narrow(tx: Transaction, record: TodoRecord, changes: BranchChanges) -> None:
    """Give a todo that is begun fewer files; what else it is told stands in its record."""
    named = changes.model_dump(exclude_none=True)
    other = [name for name in named if name not in ("instructions", "allowed_files")]
    if other:
        raise RefusedEvent(
            "no-such-change",
            f"{other[0]} cannot be changed at the start of '{record.id}'",
            "change its instructions and allowed_files, or revise the plan",
        )
    if changes.allowed_files is None:
        return
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


def _about_edits(tx: Transaction, record: TodoRecord, question: AskHuman, event: ApprovalGiven) -> None:
    if event.decision is Decision.REJECT or record.life.is_final:  # it has come to its end meanwhile
        return
    because = f"{_name(event.by)} has agreed to it"
    try:
        publish(tx, record.within, question.edits, "approved-edits", because)
    except EditConflictError as error:
        because = f"the approved change of {record.id} no longer fits the plan: {error}"
        tx.notify("revision-conflict", because, topic=ALERT, to=Role.PLANNER, todo_id=record.id)
        return
    record = tx.records[record.id]
    if record.life is TodoLife.TEST_FAILED and record.question is not None and not tx.waits(record):
        tx.withdraw(record.question)
        tx.enqueue(record, "verify", "criteria-have-changed", "its criteria have changed")


def _about_branch(tx: Transaction, record: TodoRecord, question: AskHuman, event: ApprovalGiven) -> None:
    if event.decision is Decision.REJECT:
        because = f"{_name(event.by)} has rejected {question.question_id}{_reason(event.because)}"
        escalate(tx, record, "branch-rejected", because, exhausted=False)
        return
    if event.decision is Decision.MODIFY:
        modified = _modified(tx, record, question, event.changes)
        if modified is None:
            because = f"{question.question_id} would wait for {record.id}, which it is there to repair"
            tx.notify("branches-in-a-circle", because, topic=ALERT, to=Role.HUMAN, todo_id=record.id)
            ask_review(tx, record, "branches-in-a-circle", because)
            return
        question = modified
    _open_approved(tx, question)
    if event.decision is Decision.APPROVE_SIMILAR and question.failure is not None:
        alike = failure_class(question.failure)
        tx.approved = tx.approved | {alike}
        for other in sorted(tx.questions.values(), key=lambda each: each.seq):
            if other.kind is not QuestionKind.APPROVE_BRANCH or other.failure is None:
                continue
            own = asks_a_person(tx.records[other.todo_id].todo)
            if failure_class(other.failure) == alike and not own:
                tx.withdraw(other.question_id)
                _open_approved(tx, other)


def _open_approved(tx: Transaction, question: AskHuman) -> None:
    step = PendingStep("branch", question.rule, question.because, question)
    open_branch(tx, tx.records[question.todo_id], step)


def _modified(
    tx: Transaction, record: TodoRecord, question: AskHuman, changes: BranchChanges
) -> AskHuman | None:
    """Return a proposal with what a person has changed; ``None`` where it would wait for its own todo."""
    assert question.branch is not None
    if changes.max_debug_attempts == 0:
        raise RefusedEvent("no-attempts", "a branch without attempts mends nothing", "reject it instead")
    for name in changes.dependencies or ():
        other = tx.records.get(qualified(record.within, name))
        if other is None:
            said = f"the branch cannot wait for '{name}', which is no todo"
            raise RefusedEvent("unknown-todo", said, "name one of its plan")
        if other.life in _GONE:
            said = f"the branch cannot wait for '{name}', which is {other.life}"
            raise RefusedEvent("todo-is-gone", said, "name one that can still be done")
        if waits_for(tx, other, record):
            return None
    branch = _changed(question.branch, changes)
    told = None
    if changes.instructions is not None:
        told = f"{changes.instructions}\n\n{branch.debug_instructions or ''}".strip() + "\n"
        branch = branch.model_copy(update={"debug_instructions": told})
    edits: list[Edit] = []
    for edit in question.edits:
        if edit.edit == "add_branch":
            edit = edit.model_copy(update={"todo": _changed(edit.todo, changes)})
        elif edit.edit == "narrow_files" and changes.allowed_files is not None:
            continue
        elif edit.edit == "add_context" and edit.todo_id == branch.id and told is not None:
            edit = edit.model_copy(update={"text": told})
        edits.append(edit)
    return question.model_copy(update={"branch": branch, "edits": tuple(edits)})


def _changed(todo: Todo, changes: BranchChanges) -> Todo:
    """Return a branch with what a person has changed. Raises :class:`planner.errors.RefusedEvent`."""
    files, allowed = changes.allowed_files, todo.allowed_files
    wider = None if files is None or allowed is None else widened_by(allowed, files)
    if wider is not None:
        raise RefusedEvent(
            "no-wider-files",
            f"'{wider}' is not within the files that were proposed ({', '.join(allowed or ()) or 'none'})",
            "name patterns that lie within them",
        )
    fields = {
        "agent_role": changes.role,
        "target_agent_role": changes.role,
        "allowed_files": files,
        "dependencies": changes.dependencies,
        "max_debug_attempts": changes.max_debug_attempts,
        "max_lifetime_seconds": changes.max_lifetime_seconds,
    }
    return todo.model_copy(update={name: held for name, held in fields.items() if held is not None})


def _reason(because: str | None) -> str:
    """Return what a person gives as a reason, on one line, behind a colon."""
    said = " ".join(clean(because or "", limit=_LONGEST_REASON).split())
    return f": {said}" if said else ""


def _name(person: str | None) -> str:
    return " ".join(clean(person or "", limit=_LONGEST_NAME).split()) or "a person"
