"""Event handlers, and the entry points :func:`start`, :func:`step` and :func:`fold`.

Each event is applied as a whole by its handler in :data:`_HANDLERS`, or refused. Afterwards
:mod:`planner.engine.scheduler` applies the consequences for all other todos. Limits of time and budget
are checked first, at every event, so that the engine needs no clock.
"""

from __future__ import annotations

from posixpath import normpath
from typing import TYPE_CHECKING, Any

from planner.engine.repair import (
    ALERT,
    attempt_failed,
    count_exhausted,
    escalate,
    failure_class,
    instructions_of_branch,
    open_branch,
    same_environment_questions,
    verified,
    work_again,
)
from planner.engine.requests import start_clock, verify
from planner.engine.scheduler import apply_consequences, halt, repeat_requests
from planner.engine.state import PendingStep, PlanPart, State
from planner.engine.transaction import (
    BUDGET_QUESTION,
    Stop,
    Transaction,
    admit,
    problems_of,
    publish,
    refusal,
)
from planner.errors import EditConflictError, IllegalTransition, RefusedEvent
from planner.memory import Memory
from planner.model.actions import Finish, QuestionKind
from planner.model.events import Decision, PlanSubmitted
from planner.model.plan import MAX_TODOS
from planner.model.taxonomy import Category, Role
from planner.model.verdicts import PlanState, TodoLife
from planner.policy.allowed_files import widened_by
from planner.policy.branches import retries_of
from planner.policy.limits import asks_a_person
from planner.text.display import counted
from planner.text.glob_patterns import plain
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from planner.engine.state import TodoRecord
    from planner.model.actions import Action, AskHuman
    from planner.model.edits import Edit
    from planner.model.events import (
        ApprovalGiven,
        BranchChanges,
        BudgetSpent,
        ConflictFound,
        Event,
        QuestionAnswered,
        StopRequested,
        SubPlanLoaded,
        WorkFinished,
        WorkStarted,
    )

DEEPEST = 3
"""Maximum nesting of sub-plans below the top plan."""

_MAX_TEXT = 500
"""Number of characters of a driver's or person's text that a reason quotes, on one line."""


def start(event: PlanSubmitted) -> tuple[State, tuple[Action, ...]]:
    """Return the initial state of a submitted plan: ``ready``, or ``rejected`` with a ``finish`` action.

    The plan is rejected for the problems that the event reports and for those found here.
    """
    plan = event.plan
    memory = Memory(event.memory)
    state = State(
        plan_id=plan.todo_list_id,
        path=event.path,
        policy=event.policy,
        memory=None if memory.is_empty else memory,
        now=event.at.timestamp(),
        events=1,
    )
    tx = Transaction.begin(state, event.event)
    tx.plan_to(PlanState.VALIDATING)
    problems = (*event.problems, *problems_of(plan))
    # Temporary todos do not count, so that a plan at the limit can still be repaired.
    if sum(not todo.is_temporary for todo in plan.items) > MAX_TODOS:
        problems = (*problems, f"the plan has more than {MAX_TODOS} todos; split it")
    if problems:
        # Its todos get no records: some may share an id, or depend on todos that do not exist.
        tx.parts[""] = PlanPart(plan, 1, event.digest, ".")
        tx.plan_to(PlanState.REJECTED)
        because = f"the plan failed validation ({counted(len(problems), 'problem')})"
        finish = Finish(rule="unfit-plan", because=because, result="rejected", problems=problems)
        tx.stopped = tx.emit(finish)
    else:
        admit(tx, plan, event.digest, "")
        tx.plan_to(PlanState.READY)
    return tx.state(), tuple(tx.actions)


def step(state: State, event: Event) -> tuple[State, tuple[Action, ...]]:
    """Apply an event: return the new state and the actions requested of the driver.

    A pure function: ``state`` is not changed. Raises :class:`planner.errors.RefusedEvent`, including
    :class:`planner.errors.IllegalTransition`, if the event is not valid in this state.
    """
    kind = event.event
    _refuse_out_of_place(state, kind)
    tx = Transaction.begin(state, kind)
    # Events of several sources may be slightly out of order, but time never decreases.
    tx.now = max(state.now, event.at.timestamp())
    tx.events += 1
    try:
        # Before the handler: what had expired when the event arrived is over, whatever the event reports.
        expire(tx)
        tx.check_budget()
        _HANDLERS[kind](tx, event)
        apply_consequences(tx)
    except Stop as stop:
        halt(tx, stop.halt)
    return tx.state(), tuple(tx.actions)


def fold(events: Iterable[Event]) -> State:
    """Return the state after a sequence of events.

    Raises :class:`planner.errors.RefusedEvent` if the first event is not ``plan_submitted``, or if any
    event is refused.
    """
    state: State | None = None
    for event in events:
        if state is not None:
            state, _ = step(state, event)
        elif isinstance(event, PlanSubmitted):
            state, _ = start(event)
        else:
            break
    if state is None:
        raise RefusedEvent("no-plan", "the first event does not submit a plan", "start with plan_submitted")
    return state


def _refuse_out_of_place(state: State, kind: str) -> None:
    """Raise :class:`planner.errors.RefusedEvent` for an event that is invalid in this state of the plan."""
    if state.plan_state.is_final:
        raise refusal("run-is-over", f"the run is over: the plan is {state.plan_state.value}")
    if kind == "plan_submitted":
        raise refusal("plan-is-submitted", "a plan is submitted once, in the first event")
    begun = state.plan_state is not PlanState.READY
    if kind == "run_started" and begun:
        remedy = "a run is started once; continue with run_resumed"
        raise IllegalTransition("the plan", state.plan_state, PlanState.EXECUTING, kind, remedy=remedy)
    if not begun and kind not in ("run_started", "run_resumed", "stop_requested", "clock_ticked"):
        raise refusal("run-not-started", f"{kind} comes before run_started")


def _run_started(tx: Transaction, _event: Event) -> None:
    """Start the plan (``run_started``), or repeat all outstanding requests (``run_resumed``)."""
    # ``run_resumed`` also starts a plan: a driver may have been killed before it stored ``run_started``.
    if tx.plan_state is not PlanState.READY:
        repeat_requests(tx)
        return
    tx.started = tx.now
    tx.plan_to(PlanState.EXECUTING)
    tx.offer([record.id for record in sorted(tx.records.values(), key=lambda record: record.rank)])


# -- turns of work, and their cost ---------------------------------------------------------------------


def work_started(tx: Transaction, event: WorkStarted) -> None:
    """Start, or restart, the time limit of a turn of work."""
    start_clock(tx, _at_work(tx, event, TodoLife.ACTIVE))


def work_finished(tx: Transaction, event: WorkFinished) -> None:
    """Count the cost of a turn of work; verify its result, or retry a turn that failed.

    A todo that requires no testing is done without a verification. Raises :class:`Stop` if the turn
    created more new files than the policy allows.
    """
    # A turn whose cycles are not reported counts as one.
    cycles, new_files = 1 if event.cycles is None else event.cycles, len(set(event.new_files))
    spent = tx.spent.plus(event.tokens or 0, cycles, new_files)
    # The turn has been ended by its time limit at this event. What it spent counts nevertheless.
    if event.todo_id in tx.expired:
        tx.spent = spent
        tx.check_budget(event.todo_id)
        return
    record = _at_work(tx, event, TodoLife.TESTING if event.success else TodoLife.ACTIVE)
    # Otherwise the figures of the outcome count, when the todo is verified.
    record = tx.update(record, cost_reported=event.tokens is not None or event.cycles is not None)
    tx.spent = spent
    limit = tx.top.halt.file_growth
    if limit is not None and new_files > limit:
        because = f"one turn of work on {record.id} has made {new_files} new files, more than {limit}"
        category = Category.BUDGET_EXCEEDED
        raise Stop("halt-on-file-growth", because, (record.id,), category)
    tx.check_budget(record.id)
    if not event.success:
        message = one_line(event.message or "", limit=_MAX_TEXT)
        because = f"the worker reported a failure{f': {message}' if message else ''}"
        _turn_failed(tx, record, "work-failed", because)
    elif record.todo.requires_testing:
        because = "the work is reported as done and must be verified"
        verify(tx, record, "done-means-verified", because)
    else:
        tx.done(record, verified=False)


def _turn_failed(tx: Transaction, record: TodoRecord, rule: str, because: str) -> None:
    """Retry a failed turn of work of an active todo, or verify the todo to find out what is wrong."""
    if record.is_branch:
        # If no attempt is left, a person is asked, who has to know why the last turn failed.
        attempt_failed(tx, tx.update(record, asked_by=(rule, because)), because)
    # A turn that a person granted is not retried, nor one of a todo that already has a branch.
    elif record.retries < (limit := retries_of(record.todo, record.failure)) and not (
        record.by_person or record.branches
    ):
        record = tx.update(record, retries=record.retries + 1)
        because += f"; retry {record.retries} of {limit}"
        work_again(tx, record, rule, because)
    elif record.todo.requires_testing:
        because += "; no retry is left, so a verification shows what is wrong"
        verify(tx, record, "failed-turn-is-diagnosed", because)
    else:  # without tests there is no failure that a repair could be derived from
        tx.fail(record)
        count_exhausted(tx, record, because)


def budget_spent(tx: Transaction, event: BudgetSpent) -> None:
    """Count costs that arose outside turns of work."""
    record = None if event.todo_id is None else tx.known(event.todo_id)
    tx.spent = tx.spent.plus(event.tokens, event.cycles, event.new_files)
    tx.check_budget(record.id if record is not None and record.life.is_live else None)


def conflict_found(tx: Transaction, event: ConflictFound) -> None:
    """Redo all live todos but the first of those whose changes conflict with each other.

    Raises :class:`planner.errors.RefusedEvent` if fewer than two todos are named, or if none behind the
    first is being worked on or verified.
    """
    first, *others = (tx.known(name) for name in dict.fromkeys(event.todo_ids))
    if not others:
        raise refusal("no-conflict", "a todo cannot conflict with itself")
    redone = [record for record in others if record.life.is_live and not record.is_parent]
    if not redone:
        remedy = "name a later todo that is being worked on or verified"
        raise tx.illegal(others[0], TodoLife.ACTIVE, remedy)
    because = f"its work conflicts with that of {first.id}"
    because += f" ({', '.join(event.files[:5])})" if event.files else ""
    # The first todo claims the files that it really writes, so that others wait for them.
    tx.update(first, files=tuple(dict.fromkeys((*first.files, *event.files))))
    # By id: a redo may replace the records of other todos, too.
    for name in (record.id for record in redone):
        _redo(tx, tx.records[name], because, event.files)


def _redo(tx: Transaction, record: TodoRecord, because: str, files: tuple[str, ...]) -> None:
    """Queue another turn of work on a todo that now claims ``files``, too, or ask a person."""
    rule = "conflict-is-done-anew"
    tx.withdraw(record.question)
    tx.cancel(record, rule, because)
    # The life cycle has no direct move from active to test_failed.
    lives = (TodoLife.TESTING,) if record.life is TodoLife.ACTIVE else ()
    claimed = tuple(dict.fromkeys((*record.files, *files)))
    # Nothing is outstanding until the next turn: a late result is one of the work that is redone.
    record = tx.red(tx.records[record.id], *lives, deadline=None, files=claimed, asked=0)
    if record.is_branch:
        attempt_failed(tx, record, because)
    elif record.retries < record.todo.max_retries and not record.by_person:
        record = tx.update(record, retries=record.retries + 1)
        tx.enqueue(record, "implement", rule, because)
    else:
        escalate(tx, record, rule, because)


def sub_plan_loaded(tx: Transaction, event: SubPlanLoaded) -> None:
    """Add the todos of a loaded sub-plan to the run; ask a person about a plan that is unfit.

    Raises :class:`planner.errors.IllegalTransition` if no such sub-plan was requested.
    """
    record = tx.known(event.todo_id)
    if not record.is_parent or record.life is not TodoLife.ACTIVE or record.id in tx.parts:
        raise tx.illegal(record, TodoLife.ACTIVE, "report only what load_sub_plan requested")
    tx.withdraw(record.question)  # an earlier failure to load it is resolved
    problems = list(event.problems)
    if event.plan is None:
        problems = problems or ["it could not be loaded"]
    else:
        problems += problems_of(event.plan)
        if record.id.count("/") + 1 > DEEPEST:
            problems.append(f"sub-plans go at most {DEEPEST} levels deep")
        if len(tx.records) + len(event.plan.items) > MAX_TODOS:
            problems.append(f"with this sub-plan there are more than {MAX_TODOS} todos")
    if problems or event.plan is None:
        because = f"the sub-plan of {record.id} cannot be carried out: {problems[0]}"
        # A parent that stayed live would keep the plan from waiting for the person.
        tx.rest(record)
        escalate(tx, record, "sub-plan-unfit", because, exhausted=False)
        return
    # After a failure it is no longer live, and a driver may report it again without a request.
    tx.live.setdefault(record.id)
    base = event.base
    if base is None:  # the sub-plan's own root below the folder of its file
        folder = (event.path or record.todo.sub_plan or "").rpartition("/")[0]
        base = normpath("/".join((tx.parts[record.within].base, folder, event.plan.root)))
    names = admit(tx, event.plan, event.digest, record.id, plain(base))
    record = tx.update(record, children=names)
    tx.offer(names)
    tx.advance_parent(record)


def _at_work(tx: Transaction, event: WorkStarted | WorkFinished, after: TodoLife) -> TodoRecord:
    """Return the record of a todo with a turn of work in progress.

    Raises :class:`planner.errors.RefusedEvent` for other todos, and for the answer to another action;
    ``after`` is the state that the refusal names.
    """
    record = tx.known(event.todo_id)
    if record.life is not TodoLife.ACTIVE or record.is_parent:
        raise tx.illegal(record, after, "report only what implement requested")
    tx.check_answer(record, "work on", event.answers)
    return record


def expire(tx: Transaction) -> None:
    """End turns of work and branches whose limits passed before the current event."""
    # Without a driver no event reports that work is in progress, so nothing ends while it waits for an
    # event; there the lifetime of a branch is checked when an attempt has failed.
    if not tx.policy.driven:
        return
    limits = [
        (time, name)
        for name in tx.timed
        for time in (tx.records[name].expires, tx.records[name].deadline)
        if time is not None and time < tx.now
    ]
    for time, name in sorted(limits):
        record = tx.records[name]
        if record.life.is_final:  # perhaps by a limit before this one
            continue
        if record.expires == time:
            lifetime = record.todo.max_lifetime_seconds
            because = f"{name} is not done within its lifetime"
            because += f" of {lifetime:g} s" if lifetime is not None else ""
            tx.cancel(record, "branch-lifetime", because)
            tx.expired.add(name)
            tx.fail(record)
        # After a restart of the driver, interrupted turns of work are requested again instead.
        elif record.deadline == time and record.life is TodoLife.ACTIVE and tx.trigger != "run_resumed":
            limit = record.todo.timeout_seconds
            because = f"the turn of work on {name} took longer than {limit:g} s" if limit else ""
            tx.cancel(record, "turn-timed-out", because)
            tx.expired.add(name)
            _turn_failed(tx, record, "turn-timed-out", because)


# -- decisions and answers of people ------------------------------------------------------------------


def approval_given(tx: Transaction, event: ApprovalGiven) -> None:
    """Apply a person's decision about a proposal.

    The decision must carry the digest of the proposal, so that nobody approves what they have not seen.
    Raises :class:`planner.errors.RefusedEvent` for a decision that does not fit an open proposal.
    """
    question = _take_answer(tx, event.approval_id, event.decision.value, event.digest)
    record = tx.records[question.todo_id]
    if question.kind is QuestionKind.APPROVE_START and event.decision is Decision.REJECT:
        tx.fail(record)
    elif question.kind is QuestionKind.APPROVE_START:
        tx.update(record, allowed_start=True)
        tx.offer((record.id,))
    elif question.kind is QuestionKind.APPROVE_EDITS:
        _decide_edits(tx, record, question, event)
    else:
        _decide_branch(tx, record, question, event)


def question_answered(tx: Transaction, event: QuestionAnswered) -> None:
    """Apply a person's answer to a question that is no proposal.

    Raises :class:`Stop` for the answer ``stop``, and :class:`planner.errors.RefusedEvent` for one that does
    not fit an open question.
    """
    question = _take_answer(tx, event.question_id, event.answer)
    reason, who = _reason(event.because), _name(event.by)
    if event.answer == "stop":
        found = (question.todo_id,) if question.todo_id else ()
        raise Stop("stopped-by-person", f"{who} stopped the run{reason}", found)
    # The only other answer to this question is to go on.
    if question.question_id == BUDGET_QUESTION:
        tx.overspent = True
        return
    record = tx.records[question.todo_id]
    if event.answer == "give_up":
        tx.fail(record)
    elif event.answer == "retry":
        because = f"{who} asked for another try{reason}"
        # The person's reason becomes part of the instructions for the turn that they grant.
        if not record.is_parent:
            instructions = event.because or record.instructions
            record = tx.update(record, by_person=True, instructions=instructions)
        tx.enqueue(record, "load" if record.is_parent else "implement", "person-grants-a-turn", because)
    else:
        # One repair of the environment serves all todos that wait for it. Another question may carry an
        # earlier failure of the environment, but its answer says nothing of a repair.
        repaired = question.failure if question.kind is QuestionKind.MEND_ENVIRONMENT else None
        for each in (question, *same_environment_questions(tx, repaired)):
            tx.withdraw(each.question_id)
            # The environment was repaired, so it may be waited for as often as the first time.
            record = tx.update(tx.records[each.todo_id], waited=0)
            tx.enqueue(record, "verify", "answered-is-verified-again", f"{who} answered{reason}")


def _take_answer(tx: Transaction, question_id: str, answer: str, digest: str | None = None) -> AskHuman:
    """Withdraw an open question that is answered, and return it.

    ``digest`` is that of the proposal that a person saw, ``None`` for an answer to another question. Raises
    :class:`planner.errors.RefusedEvent` for a question that is not open, of the other kind, or about
    another proposal, and for an option that it does not offer.
    """
    question = tx.questions.get(question_id)
    if question is None:
        open_ = ", ".join(sorted(tx.questions)[:10]) or "none"
        raise refusal("no-such-question", f"'{question_id}' is not an open question (open: {open_})")
    options = ", ".join(question.options)
    if digest is None and question.kind.is_approval:
        problem = f"'{question_id}' has to be approved or rejected (digest {question.digest})"
        raise refusal("no-such-question", problem)
    if digest is not None and not question.kind.is_approval:
        problem = f"'{question_id}' is a question, not a request for approval (options: {options})"
        raise refusal("no-such-approval", problem)
    if digest not in (None, question.digest):
        problem = f"the decision on '{question_id}' has the digest {digest or '(none)'}"
        raise refusal("stale-approval", f"{problem}, but the current proposal has {question.digest}")
    if answer not in question.options:
        problem = f"'{answer[:100]}' is not an answer to '{question_id}' (options: {options})"
        raise refusal("no-such-answer" if digest is None else "no-such-decision", problem)
    tx.withdraw(question_id)
    return question


def stop_requested(tx: Transaction, event: StopRequested) -> None:
    """Halt the run at a person's request, by raising :class:`Stop`."""
    because = f"{_name(event.by)} stopped the run{_reason(event.because)}"
    raise Stop("stopped-by-person", because)


def _decide_edits(tx: Transaction, record: TodoRecord, question: AskHuman, event: ApprovalGiven) -> None:
    """Publish approved edits; if they no longer fit the plan, notify the planner."""
    if event.decision is Decision.REJECT:
        return
    because = f"{_name(event.by)} approved it"
    try:
        publish(tx, record.within, question.edits, "approved-edits", because)
    except EditConflictError as error:
        because = f"the approved change of {record.id} no longer fits the plan: {error}"
        tx.notify("revision-conflict", because, topic=ALERT, to=Role.PLANNER, todo_id=record.id)
        return
    # New criteria may pass, so the answer to another question about the todo is perhaps not needed.
    record = tx.records[record.id]
    if record.life is TodoLife.TEST_FAILED and record.question is not None and not tx.waits(record):
        tx.withdraw(record.question)
        tx.enqueue(record, "verify", "criteria-have-changed", "its criteria have changed")


def _decide_branch(tx: Transaction, record: TodoRecord, question: AskHuman, event: ApprovalGiven) -> None:
    """Apply the decision about a proposed branch.

    ``approve_similar`` also approves the open and all later proposals for failures of the same class,
    except those about todos of high risk.
    """
    if event.decision is Decision.REJECT:
        because = f"{_name(event.by)} rejected {question.question_id}{_reason(event.because)}"
        escalate(tx, record, "branch-rejected", because, exhausted=False)
        return
    if event.decision is Decision.MODIFY:
        question = _modified_proposal(tx, record, question, event.changes)
    if event.decision is Decision.APPROVE_SIMILAR and question.failure is not None:
        tx.approved = tx.approved | {failure_class(question.failure)}
    others = sorted(tx.questions.values(), key=lambda each: each.seq)
    for each in (question, *others):
        # Todos of high risk are left out: their branches are approved one by one.
        is_alike = each.failure is not None and failure_class(each.failure) in tx.approved
        is_agreed = is_alike and not asks_a_person(tx.records[each.todo_id].todo)
        if each is question or (each.kind is QuestionKind.APPROVE_BRANCH and is_agreed):
            tx.withdraw(each.question_id)
            open_branch(tx, tx.records[each.todo_id], PendingStep("branch", each.rule, each.because, each))


def _modified_proposal(
    tx: Transaction, record: TodoRecord, question: AskHuman, changes: BranchChanges
) -> AskHuman:
    """Return a proposal with a person's changes of its edits, and with instructions that agree with them.

    Raises :class:`planner.errors.RefusedEvent` for changes that would leave the branch without attempts
    or widen its files.
    """
    branch, files = question.branch, changes.allowed_files
    assert branch is not None
    if changes.max_debug_attempts == 0:
        raise refusal("no-attempts", "a branch without attempts repairs nothing")
    allowed = branch.allowed_files
    wider = None if files is None or allowed is None else widened_by(allowed, files)
    if wider is not None:
        problem = f"'{wider}' is not within the proposed files ({', '.join(allowed or ()) or 'none'})"
        raise refusal("no-wider-files", problem)
    fields = changes.model_dump(include={"allowed_files", "max_debug_attempts"}, exclude_none=True)
    if changes.role is not None:
        fields |= {"agent_role": changes.role, "target_agent_role": changes.role}
    branch = branch.model_copy(update=fields)
    edits: list[Edit] = []
    for edit in question.edits:
        if edit.edit == "add_branch":
            edit = edit.model_copy(update={"todo": edit.todo.model_copy(update=fields)})
        # The person's files replace those that the proposal would restrict.
        elif edit.edit == "narrow_files" and files is not None:
            continue
        elif edit.edit == "add_context" and edit.todo_id == branch.id:
            text = f"{changes.instructions or ''}\n\n{instructions_of_branch(tx, record, branch)}".strip()
            edit = edit.model_copy(update={"text": f"{text}\n"})
        edits.append(edit)
    return question.model_copy(update={"edits": tuple(edits)})


def _reason(because: str | None) -> str:
    """Return a person's reason as one line, preceded by a colon; empty without a reason."""
    reason = one_line(because or "", limit=_MAX_TEXT)
    return f": {reason}" if reason else ""


def _name(person: str | None) -> str:
    """Return a person's name as one line, or ``a person``."""
    return one_line(person or "", limit=_MAX_TEXT) or "a person"


_HANDLERS: dict[str, Callable[[Transaction, Any], None]] = {
    "run_started": _run_started,
    "work_started": work_started,
    "work_finished": work_finished,
    "verified": verified,
    "approval_given": approval_given,
    "question_answered": question_answered,
    "budget_spent": budget_spent,
    "clock_ticked": lambda _tx, _event: None,  # every event checks the limits
    "conflict_found": conflict_found,
    "sub_plan_loaded": sub_plan_loaded,
    "run_resumed": _run_started,
    "stop_requested": stop_requested,
}
