"""What has happened: one row an event, from the event to its sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from planner.model.events import (
    ApprovalGiven,
    BudgetSpent,
    ClockTicked,
    ConflictFound,
    Decision,
    PlanRevised,
    PlanSubmitted,
    QuestionAnswered,
    RunResumed,
    RunStarted,
    StopRequested,
    SubPlanLoaded,
    Verified,
    WorkFinished,
    WorkStarted,
)
from planner.model.verdicts import TodoState, Verdict
from planner.rules.edit_phrases import edit_phrase
from planner.rules.run_view import said
from planner.rules.telling.sentences import (
    EVERYBODY,
    Sentence,
    amounts,
    counted,
    listed,
    quoted,
    reason_given,
    sentence,
    somebody,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planner.model.events import Event
    from planner.model.outcome import Failure, Outcome
    from planner.rules.run_view import RunView

_Row: TypeAlias = "Callable[[Any, RunView | None, RunView], Sentence | None]"


_UNDECIDED = (TodoState.TESTING, TodoState.PENDING, TodoState.BLOCKED)


def tell_event(event: Event, before: RunView | None, after: RunView) -> Sentence | None:
    """What an event was. ``None`` where only its consequences are worth telling."""
    return EVENT_ROWS[type(event)](event, before, after)


def _submitted(event: PlanSubmitted, before: RunView | None, after: RunView) -> Sentence:
    name = f"{quoted(event.plan.todo_list_id)} ({quoted(event.path)})"
    what = f"The plan {name} was submitted, with {counted(len(event.plan.items), 'todo')}"
    if not event.problems:
        return sentence(what)
    found = f"{counted(len(event.problems), 'problem')}, the first: {quoted(event.problems[0])}"
    return sentence(f"{what}; it is not fit to be carried out ({found})", *EVERYBODY)


def _started(event: RunStarted, before: RunView | None, after: RunView) -> Sentence:
    return sentence("The run was started")


def _work_started(event: WorkStarted, before: RunView | None, after: RunView) -> Sentence:
    return sentence(f"Work on {event.todo_id} has begun", event.todo_id)


def _work_finished(event: WorkFinished, before: RunView | None, after: RunView) -> Sentence:
    record = after.records.get(event.todo_id)
    turn = f" (turn {record.turns})" if record is not None and record.turns else ""
    claim = "it is said to be done" if event.success else "it is not done"
    used = amounts(
        (event.tokens, "token"),
        (event.cycles, "cycle"),
        (len(event.touched_files), "touched file"),
        (len(event.new_files), "new file"),
    )
    cost = f", after {used}" if used else ""
    text = f"The work on {event.todo_id} is over{turn}: {claim}{cost}{reason_given(event.message)}"
    return sentence(text, event.todo_id)


def _verified(event: Verified, before: RunView | None, after: RunView) -> Sentence:
    outcome = event.outcome
    return sentence(f"{outcome.todo_id} was verified: {_finding(outcome)}", outcome.todo_id)


def _finding(outcome: Outcome) -> str:
    verdict, failure = said(outcome)
    if verdict is Verdict.PASSED:
        held = len(outcome.checks)
        return f"{counted(held, 'criterion')} {'holds' if held == 1 else 'hold'}" if held else "it holds"
    if verdict is Verdict.NEEDS_HUMAN:
        asked = [
            check.title or check.id for check in outcome.checks if check.verdict is Verdict.NEEDS_HUMAN
        ]
        return f"a person has to answer: {listed(asked)}"
    if failure is None:
        return _without_failure(outcome, verdict)
    subject = _what_failed(outcome, failure)
    verb = "could not be judged" if verdict is Verdict.INCONCLUSIVE else "failed"
    return f"{subject} {verb} ({_diagnosis(failure)}){_head(failure)}"


def _without_failure(outcome: Outcome, verdict: Verdict) -> str:
    if verdict is Verdict.INCONCLUSIVE and outcome.state not in _UNDECIDED:
        return "what was said contradicts itself"
    if verdict is Verdict.INCONCLUSIVE:
        open_check = next(
            (check for check in outcome.checks if check.counts_as is not Verdict.PASSED), None
        )
        where = "" if open_check is None else f", {open_check.id} is {open_check.counts_as}"
        why = "" if open_check is None or not open_check.reason else f" ({quoted(open_check.reason)})"
        return f"the run could not tell{where}{why}"
    red = listed(check.id for check in outcome.checks if check.counts_as.is_red)
    return f"{red} failed, and nothing tells more" if red else "it does not hold, and nothing tells more"


def _what_failed(outcome: Outcome, failure: Failure) -> str:
    first, *others = failure.tests or failure.top_failing_tests or ("",)
    if first:
        more = f" and {counted(len(others), 'other test')}" if others else ""
        return f"{quoted(first.rpartition('::')[2])}{more}"
    check = next((each for each in outcome.checks if each.id == failure.check_id), None)
    if check is not None:
        return quoted(check.title or check.cmd or check.id)
    return quoted(failure.check_id) if failure.check_id else "it"


def _diagnosis(failure: Failure) -> str:
    sure = "" if failure.confidence is None else f"{failure.confidence:g} "
    rule = f"by {quoted(failure.rule)}" if failure.rule else ""
    opinion = f"{sure}{rule}".strip()
    return f"{failure.category}, {opinion}" if opinion else str(failure.category)


def _head(failure: Failure) -> str:
    return f": '{quoted(failure.stack_trace_head)}'" if failure.stack_trace_head else ""


_DECISIONS: Mapping[Decision, str] = {
    Decision.APPROVE: "approved",
    Decision.REJECT: "rejected",
    Decision.MODIFY: "approved, with changes,",
    Decision.APPROVE_SIMILAR: "approved, for every later failure of its class too,",
}


def _approval(event: ApprovalGiven, before: RunView | None, after: RunView) -> Sentence:
    about = _asked_about(event.approval_id, before)
    changed = ", ".join(name.replace("_", " ") for name in sorted(event.changes.model_fields_set))
    changes = f" ({changed})" if changed and event.decision is Decision.MODIFY else ""
    text = f"{somebody(event.by)} {_DECISIONS[event.decision]} {event.approval_id}{changes}"
    return sentence(f"{text}{reason_given(event.because)}", *about)


def _answer(event: QuestionAnswered, before: RunView | None, after: RunView) -> Sentence:
    about = _asked_about(event.question_id, before)
    text = f"{somebody(event.by)} answered the question {event.question_id} with '{quoted(event.answer)}'"
    return sentence(f"{text}{reason_given(event.because)}", *about)


def _asked_about(question_id: str, before: RunView | None) -> tuple[str, ...]:
    """The todo of a question that was open, and what the question names."""
    question = None if before is None else before.questions.get(question_id)
    return (question_id,) if question is None else (question.todo_id, question_id)


def _spent(event: BudgetSpent, before: RunView | None, after: RunView) -> Sentence | None:
    used = amounts((event.tokens, "token"), (event.cycles, "cycle"), (event.new_files, "new file"))
    if not used:
        return None
    where = f" on {event.todo_id}" if event.todo_id else ""
    return sentence(f"Beside the turns of work, {used} went{where}", *filter(None, [event.todo_id]))


def _ticked(event: ClockTicked, before: RunView | None, after: RunView) -> None:
    return None


def _conflict(event: ConflictFound, before: RunView | None, after: RunView) -> Sentence:
    where = f" ({listed(event.files)})" if event.files else ""
    return sentence(f"The work on {listed(event.todo_ids)} does not fit together{where}", *event.todo_ids)


def _loaded(event: SubPlanLoaded, before: RunView | None, after: RunView) -> Sentence:
    if event.plan is None or event.problems:
        why = f": {quoted(event.problems[0])}" if event.problems else ""
        return sentence(f"The sub-plan of {event.todo_id} cannot be had{why}", event.todo_id)
    held = counted(len(event.plan.items), "todo")
    return sentence(f"The sub-plan of {event.todo_id} was loaded, with {held}", event.todo_id)


def _revised(event: PlanRevised, before: RunView | None, after: RunView) -> Sentence:
    inside = f" of {event.within}" if event.within else ""
    what = "; ".join(quoted(edit_phrase(edit)) for edit in event.edits)
    about = (todo_id for edit in event.edits if (todo_id := getattr(edit, "todo_id", None)))
    prefix = f"{event.within}/" if event.within else ""
    text = f"{somebody(event.by)} changed the plan{inside}: {what}"
    return sentence(text, *(f"{prefix}{name}" for name in about))


def _resumed(event: RunResumed, before: RunView | None, after: RunView) -> Sentence:
    return sentence("The driver has begun anew, and is asked again for what is outstanding")


def _stop(event: StopRequested, before: RunView | None, after: RunView) -> Sentence:
    return sentence(
        f"{somebody(event.by)} wants everything to stop{reason_given(event.because)}", *EVERYBODY
    )


EVENT_ROWS: Mapping[type[Event], _Row] = {
    PlanSubmitted: _submitted,
    RunStarted: _started,
    WorkStarted: _work_started,
    WorkFinished: _work_finished,
    Verified: _verified,
    ApprovalGiven: _approval,
    QuestionAnswered: _answer,
    BudgetSpent: _spent,
    ClockTicked: _ticked,
    ConflictFound: _conflict,
    SubPlanLoaded: _loaded,
    PlanRevised: _revised,
    RunResumed: _resumed,
    StopRequested: _stop,
}
"""What tells of each event: ``(event, before, after)`` to a sentence."""
