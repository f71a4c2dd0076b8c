"""What one event changes beside the log: a pure function of the engine's states before and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.edges.store.rows import (
    FIXED,
    GONE,
    NOT_FIXED,
    PASSED,
    SIMILAR,
    WITHDRAWN,
    AnswerRow,
    ArtifactRow,
    BranchMoved,
    BranchOpened,
    DiagnosisRow,
    QuestionRow,
    RepairClosed,
    RepairOpened,
    Rows,
    RunRow,
    TodoClosed,
)
from planner.edges.store.times import moment_of
from planner.memory import task_kind, text_of
from planner.model.actions import Halt, Implement, PublishPlan
from planner.model.edits import AddBranch
from planner.model.events import ApprovalGiven, Decision, QuestionAnswered, Verified, WorkFinished
from planner.model.ids import qualified
from planner.model.life import TodoLife

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.engine.state import State, TodoRecord
    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.model.outcome import Failure, Outcome

RETRY = "retry"
"""The strategy of a turn of work without a branch."""

_CLOSED = {
    TodoLife.DONE: PASSED,
    TodoLife.FAILED: "failed",
    TodoLife.SKIPPED: "skipped",
    TodoLife.HALTED: "halted",
}


def project(event: Event, actions: Sequence[Action], before: State | None, after: State) -> Rows:
    """The rows of an event. ``before`` is ``None`` for the submission of the plan."""
    # The order of a map is not the same in every process; that of rows is.
    pairs = () if before is None else sorted(_changed(before, after), key=lambda pair: pair[1].id)
    branches = [(then, now) for then, now in pairs if now.is_branch]
    primaries = [(then, now) for then, now in pairs if not now.is_branch]
    return Rows(
        kind=event.event,
        at=moment_of(after.now),
        run=_run(after),
        branches=tuple(_opened(now, after) for then, now in branches if then is None),
        moves=(
            *(_moved(then, now, event, after) for then, now in branches),
            *_resolutions(primaries, after),
            *_left_open(before, after),
        ),
        diagnoses=tuple(_diagnoses(event, after)),
        questions=tuple(_asked(before, after)),
        answers=tuple(_answered(event, before, after)),
        artifacts=tuple(_artifacts(event, before)),
        repairs=(
            *_branch_repairs(branches, actions, after),
            *_retries(primaries, actions),
        ),
        repaired=(*_ended_branches(branches), *_judged_repairs(primaries, after)),
        todos=tuple(_todos_closed(primaries)),
    )


def _changed(before: State, after: State) -> Iterator[tuple[TodoRecord | None, TodoRecord]]:
    """Each todo that the event has changed, as it was and as it is."""
    if before.todos is after.todos:
        return
    known = before.todos.get
    for name, now in after.todos.items():
        then = known(name)
        if then is not now:
            yield then, now


def _run(after: State) -> RunRow:
    blocked = sorted(name for name, each in after.todos.items() if each.life is TodoLife.BLOCKED)
    return RunRow(
        state=after.plan_state.value,
        closed=after.plan_state.is_final,
        blocked=tuple(blocked),
        waiting=len(after.questions),
    )


def _opened(branch: TodoRecord, after: State) -> BranchOpened:
    failure = _repaired_failure(branch, after)
    return BranchOpened(
        branch_id=branch.id,
        parent_id=branch.parent_id or "",
        depth=branch.depth,
        via=None if branch.via is None else qualified(branch.within, branch.via),
        role=branch.todo.agent_role.value,
        category="UNKNOWN" if failure is None else failure.category.value,
        signature=None if failure is None else failure.signature,
    )


def _repaired_failure(branch: TodoRecord, after: State) -> Failure | None:
    """The failure that a branch was just made for."""
    parent = after.todos.get(branch.parent_id or "")
    return None if parent is None else parent.failure


def _moved(then: TodoRecord | None, now: TodoRecord, event: Event, after: State) -> BranchMoved:
    outcome = _CLOSED.get(now.life)
    closes = outcome is not None and not (then is not None and then.life.is_final)
    resolution = _why_it_failed(now, event, after) if closes and outcome != PASSED else None
    return BranchMoved(
        branch_id=now.id,
        attempts=now.turns,
        role=now.todo.agent_role.value,
        outcome=outcome if closes else None,
        resolution=resolution,
    )


def _why_it_failed(branch: TodoRecord, event: Event, after: State) -> str:
    if isinstance(after.stopped, Halt):
        return "run_halted"
    if isinstance(event, QuestionAnswered | ApprovalGiven):
        return "given_up"
    if branch.expires is not None and after.now >= branch.expires:
        return "lifetime_over"
    allowed = branch.todo.max_debug_attempts
    return "attempts_used_up" if allowed is None or branch.attempts >= allowed else "failed"


def _resolutions(
    primaries: Sequence[tuple[TodoRecord | None, TodoRecord]], after: State
) -> Iterator[BranchMoved]:
    """What came of the branches of todos that were just judged."""
    for then, now in primaries:
        if then is None or not now.branches or not _was_judged(then, now):
            continue
        gone = GONE if _is_gone(then.failure, now) else NOT_FIXED
        word = FIXED if now.life is TodoLife.DONE else gone
        for name in now.branches:
            branch = after.todos[name]
            if branch.life is TodoLife.DONE:
                yield BranchMoved(branch_id=name, resolution=word)


def _left_open(before: State | None, after: State) -> Iterator[BranchMoved]:
    """The branches that the end of the run has found open."""
    if before is None or before.plan_state.is_final or not after.plan_state.is_final:
        return
    for each in after.todos.values():
        if each.is_branch and not each.life.is_final:
            yield BranchMoved(branch_id=each.id, outcome=_CLOSED[TodoLife.HALTED], resolution="run_halted")


def _was_judged(then: TodoRecord, now: TodoRecord) -> bool:
    """Whether a verification has just said how the todo stands, and not only that it cannot tell."""
    if now.life is TodoLife.DONE:
        return then.life is not TodoLife.DONE
    return now.outcome is not None and now.outcome is not then.outcome


def _diagnoses(event: Event, after: State) -> Iterator[DiagnosisRow]:
    if not isinstance(event, Verified):
        return
    outcome = event.outcome
    record = after.todos.get(outcome.todo_id)
    red = record is not None and record.outcome is outcome
    decides = record.failure if record is not None and red else outcome.failure_evidence
    for failure in _failures(outcome):
        place = failure.location
        yield DiagnosisRow(
            todo_id=outcome.todo_id,
            decides=failure == decides,
            category=failure.category.value,
            owner=_value(failure.owner),
            repeatability=_value(failure.repeatability),
            confidence=failure.confidence,
            rule=failure.rule,
            signature=failure.signature,
            role=_value(failure.target_agent),
            check_id=failure.check_id,
            since=failure.since.value,
            head=failure.stack_trace_head,
            path=None if place is None else place.path,
            line=None if place is None else place.line,
            function=None if place is None else place.function,
            suggestion=failure.suggestion,
            features=failure.features or (),
        )


def _failures(outcome: Outcome) -> tuple[Failure, ...]:
    """Every failure once; the one that decides is among them, though it may be told beside."""
    decides = outcome.failure_evidence
    if decides is None or decides in outcome.failures:
        return outcome.failures
    return (decides, *outcome.failures)


def _asked(before: State | None, after: State) -> Iterator[QuestionRow]:
    for name, question in sorted(after.questions.items(), key=lambda item: item[0]):
        if before is None or _is_another(before, name, question.digest):
            yield QuestionRow(
                question_id=name,
                kind=question.kind.value,
                todo_id=question.todo_id,
                question=f"{question.text} ({question.because})",
                rule=question.rule,
                digest=question.digest,
            )


def _is_another(before: State, name: str, digest: str) -> bool:
    """Whether a question is new. One that is asked again after a break is not."""
    then = before.questions.get(name)
    return then is None or then.digest != digest


def _answered(event: Event, before: State | None, after: State) -> Iterator[AnswerRow]:
    if before is None:
        return
    for name in sorted(before.questions):
        now = after.questions.get(name)
        if isinstance(event, ApprovalGiven) and event.approval_id == name:
            yield AnswerRow(
                question_id=name, decision=event.decision.value, by=event.by, because=event.because
            )
        elif isinstance(event, QuestionAnswered) and event.question_id == name:
            yield AnswerRow(question_id=name, decision=event.answer, by=event.by, because=event.because)
        elif now is None or _is_another(before, name, now.digest):
            similar = isinstance(event, ApprovalGiven) and event.decision is Decision.APPROVE_SIMILAR
            yield AnswerRow(question_id=name, decision=SIMILAR if similar else WITHDRAWN)


def _artifacts(event: Event, before: State | None) -> Iterator[ArtifactRow]:
    if before is None:
        return
    if isinstance(event, WorkFinished):
        worked = before.todos[event.todo_id]
        yield ArtifactRow(
            todo_id=worked.id,
            turn=worked.turns,
            role=worked.todo.agent_role.value,
            source="work",
            success=event.success,
            files=event.touched_files,
            new_files=event.new_files,
            tokens=event.tokens,
            cycles=event.cycles,
            duration_ms=event.duration_ms,
        )
    elif isinstance(event, Verified):
        outcome = event.outcome
        verified = before.todos[outcome.todo_id]
        yield ArtifactRow(
            todo_id=verified.id,
            turn=verified.turns,
            role=verified.todo.agent_role.value,
            source="verification",
            success=outcome.success,
            files=outcome.touched_files,
            diff_hash=outcome.diff_hash,
            tokens=outcome.metrics.tokens_used,
            cycles=outcome.metrics.patch_cycles,
            duration_ms=outcome.metrics.duration_ms,
        )


def _branch_repairs(
    branches: Sequence[tuple[TodoRecord | None, TodoRecord]], actions: Sequence[Action], after: State
) -> Iterator[RepairOpened]:
    for then, now in branches:
        failure = _repaired_failure(now, after)
        if then is None and failure is not None:
            parent = after.todos[now.parent_id or ""]
            yield _repair(now, parent, failure, _strategy(now, actions))


def _strategy(branch: TodoRecord, actions: Sequence[Action]) -> str:
    """The rule of the first edit by which a branch was fitted to its failure."""
    for action in actions:
        if not isinstance(action, PublishPlan) or action.within != branch.within:
            continue
        added = {each.todo.id for each in action.edits if isinstance(each, AddBranch)}
        if branch.todo.id in added:
            return next((each.rule for each in action.edits if not isinstance(each, AddBranch)), "")
    return ""


def _retries(
    primaries: Sequence[tuple[TodoRecord | None, TodoRecord]], actions: Sequence[Action]
) -> Iterator[RepairOpened]:
    """Turns of work on todos that were red; one that is asked for again after a break is no new one."""
    asked = {each.todo_id for each in actions if isinstance(each, Implement)}
    for then, now in primaries:
        if then is not None and now.id in asked and now.turns > then.turns and now.failure is not None:
            yield _repair(now, now, now.failure, RETRY)


def _repair(worker: TodoRecord, repaired: TodoRecord, failure: Failure, strategy: str) -> RepairOpened:
    """A repair is found again by the todo that it is made for, whoever works on it."""
    return RepairOpened(
        subject=worker.id,
        todo_id=repaired.id,
        task_kind=task_kind(repaired.todo).value,
        text=text_of(repaired.todo, failure),
        signature=failure.signature,
        category=failure.category.value,
        strategy=strategy,
        role=worker.todo.agent_role.value,
    )


def _ended_branches(
    branches: Sequence[tuple[TodoRecord | None, TodoRecord]],
) -> Iterator[RepairClosed]:
    """A branch that was worked on and has not passed has repaired nothing."""
    for then, now in branches:
        if then is None or then.life.is_final or not now.life.is_final or now.life is TodoLife.DONE:
            continue
        yield RepairClosed(subject=now.id, fixed=False, attempts=max(now.turns, 1))


def _judged_repairs(
    primaries: Sequence[tuple[TodoRecord | None, TodoRecord]], after: State
) -> Iterator[RepairClosed]:
    """A repair has held where the failure that it was made for is gone."""
    for then, now in primaries:
        if then is None:
            continue
        ends = now.life.is_final and now.life is not TodoLife.DONE and not then.life.is_final
        if not ends and not _was_judged(then, now):
            continue
        fixed = not ends and _is_gone(then.failure, now)
        yield RepairClosed(subject=now.id, fixed=fixed)
        for name in now.branches:
            branch = after.todos[name]
            if branch.life is TodoLife.DONE:
                yield RepairClosed(subject=name, fixed=fixed, attempts=max(branch.turns, 1))


def _is_gone(failure: Failure | None, now: TodoRecord) -> bool:
    if now.life is TodoLife.DONE or now.failure is None:
        return True
    return failure is not None and failure.signature != now.failure.signature


def _todos_closed(
    primaries: Sequence[tuple[TodoRecord | None, TodoRecord]],
) -> Iterator[TodoClosed]:
    """Todos that somebody has worked on, or that were verified. Parents are no work of their own."""
    for then, now in primaries:
        if then is None or then.life.is_final or not now.life.is_final or now.is_parent:
            continue
        done = now.life is TodoLife.DONE
        if (done and not now.verified) or (not done and not now.turns):
            continue
        yield TodoClosed(
            todo_id=now.id,
            task_kind=task_kind(now.todo).value,
            text=text_of(now.todo),
            role=now.todo.agent_role.value,
            done=done,
            first_time=done and not now.retries and not now.branches,
        )


def _value(word: object) -> str | None:
    return None if word is None else str(word)
