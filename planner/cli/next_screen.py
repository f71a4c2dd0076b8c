"""The screen of ``planner next``: at most eight lines a todo, and always a command to go on with."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from planner.brief.instructions import right_suggestion
from planner.cli.ending import program
from planner.cli.screen import Screen
from planner.engine.progress import shown_state
from planner.model.actions import AskHuman, Implement, LoadSubPlan, QuestionKind, Verify
from planner.model.life import PlanState, TodoLife
from planner.model.taxonomy import Owner
from planner.text.display import counted, listed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from planner.engine.state import TodoRecord
    from planner.model.actions import Action
    from planner.model.outcome import Failure
    from planner.store.plan_run import PlanRun

_PIPED = 240
"""Cells of a line that no person reads on a terminal."""

MOST_TODOS = 20
"""So many todos of each kind are shown; ``--json`` has all."""

_STATES = {PlanState.HALTED: "bad", PlanState.COMPLETED: "good", PlanState.AWAITING_REVIEW: "warn"}


class Advice(NamedTuple):
    """What the state of the files calls for, before any action."""

    command: str | None = None
    """What to run, where the outcomes say less than they could."""
    remarks: tuple[str, ...] = ()
    unaccepted: str | None = None
    """Why a run was not accepted in which no criterion failed."""


def advice(run: PlanRun) -> Advice:
    """Return what to run first, and why: the plan was not verified yet, or not as it is now."""
    found = run.found
    remarks: list[str] = []
    command: str | None = None
    if found.unfinished is not None:
        unfinished = found.unfinished
        said = {"running": "is still running", "killed": "was killed"}.get(
            unfinished.state, "was interrupted"
        )
        remarks.append(f"the newest run {said} after {counted(unfinished.judged, 'criterion')}")
        command = None if unfinished.state == "running" else f"{found.verify} --planverify-resume"
    elif found.document is None and not run.is_driven:
        remarks.append("the plan was not verified yet")
        command = found.verify
    elif found.plan_change is not None and run.log is not None and not run.state.reds:
        remarks.append("the plan has changed since it was verified")
        command = found.verify
    elif found.files.paths:
        old = f"; the verdicts of {listed(found.files.by_todo, 5)} are old" if found.files.by_todo else ""
        remarks.append(f"{listed(found.files.paths, 3)} changed since the run{old}")
        command = found.verify
    unaccepted = None if found.document is None else found.document.run.unexplained
    if unaccepted:
        remarks.append(f"the run was not accepted: {unaccepted}")
    return Advice(command, tuple(remarks), unaccepted)


def show_next(run: PlanRun, actions: Sequence[Action], plan: Path, written: Sequence[str]) -> None:
    """Write all of it to standard output."""
    screen = Screen()
    _head(screen, run)
    told = advice(run)
    for remark in (*told.remarks, *run.remarks):
        screen.remark(remark)
    if told.command is not None:
        screen.line(f"  {screen.style(told.command, 'command')}")
    _stopped(screen, run)
    repairs = [each for each in actions if isinstance(each, Implement) and _repaired(run, each)]
    ready = [each for each in actions if isinstance(each, Implement) and each not in repairs]
    asked = [each for each in actions if isinstance(each, AskHuman)]
    for action in repairs[:MOST_TODOS]:
        _repair(screen, run, action, plan)
    _more(screen, len(repairs))
    for question in asked[:MOST_TODOS]:
        _question(screen, run, question, plan)
    _more(screen, len(asked))
    _verifications(screen, run, [each for each in actions if isinstance(each, Verify)])
    _ready(screen, run, ready, plan)
    for action in actions:
        if isinstance(action, LoadSubPlan):
            where = action.sub_plan or action.sub_project_id
            screen.paragraph(f"{action.todo_id}: write its sub-plan, {where}", first="plan   ", indent=7)
    _waiting(screen, run)
    for line in written:
        screen.paragraph(line)
    screen.show()


def _head(screen: Screen, run: PlanRun) -> None:
    state = run.state
    todos = [record for record in state.todos.values() if not record.is_branch and not record.children]
    states = [shown_state(state, record) for record in todos]
    counts = [f"{states.count('done')} of {counted(len(todos), 'todo')} done"]
    counts += [
        f"{count} {word}"
        for name, word in (("test_failed", "failed"), ("failed", "given up"), ("blocked", "blocked"))
        if (count := states.count(name))
    ]
    word = state.plan_state.value.replace("_", " ")
    if state.plan_state is PlanState.COMPLETED and advice(run).unaccepted:
        word = "not accepted"
    styled = screen.style(word, _STATES.get(state.plan_state, "strong"))
    screen.line(f"{screen.style(screen.one_line(state.plan_id), 'strong')}  {styled}: {', '.join(counts)}")


def _stopped(screen: Screen, run: PlanRun) -> None:
    stopped = run.state.stopped
    if stopped is None or run.state.plan_state is PlanState.COMPLETED:
        return
    screen.paragraph(
        f"{stopped.because} [{stopped.rule}]", first=f"{screen.style('stop', 'bad')}   ", indent=7
    )
    for problem in getattr(stopped, "problems", ()):
        screen.paragraph(problem, indent=7)
    if run.state.plan_state is PlanState.HALTED:
        screen.paragraph("remove the cause, then verify again:", indent=7)
        screen.line(f"       {screen.style(run.found.verify, 'command')}")


def _repaired(run: PlanRun, action: Implement) -> bool:
    """Return whether an action asks for a repair, and not for a todo's first turn of work."""
    record = run.state.records[action.todo_id]
    return record.is_branch or record.outcome is not None


def _repair(screen: Screen, run: PlanRun, action: Implement, plan: Path) -> None:
    record = run.state.records[action.todo_id]
    primary = run.state.records[record.parent_id] if record.parent_id else record
    failure = record.failure or primary.failure
    screen.line()
    _title(screen, primary, failure, f"{action.role}")
    _told(screen, failure, primary)
    if record.is_branch:
        allowed = record.todo.max_debug_attempts
        of = f" of {allowed}" if allowed else ""
        what = f"{record.todo.id}, attempt {action.attempt}{of}, by the {action.role}"
    else:
        what = f"retry {record.retries} of {record.todo.max_retries}, by the {action.role}"
    _clipped(screen, f"  repair {screen.one_line(what)} [{action.rule}]")
    followers = [each.id for each in run.state.records.values() if each.behind == primary.id]
    if followers:
        _clipped(screen, f"  also   {screen.one_line(listed(followers, 5))}: the same cause")
    _command(
        screen, "brief", f"{program()} next {words_of(run, plan)} --brief {shlex.quote(action.todo_id)}"
    )
    _command(screen, "then", f"pytest --planverify {shlex.quote(f'{plan}::{primary.id}')}")


def _title(screen: Screen, record: TodoRecord, failure: Failure | None, who: str) -> None:
    mark = screen.style(screen.glyphs.failed, "bad")
    about = ""
    if failure is not None:
        sure = f" {failure.confidence:.0%}" if failure.confidence is not None else ""
        known = failure.owner not in (None, Owner.UNKNOWN)
        owner = f", fault of the {failure.owner}" if known else ", owner unknown"
        about = f"  {failure.category}{sure}{owner}; for the {who}"
    screen.line(f"{mark} {screen.style(screen.one_line(record.id), 'strong')}{screen.style(about, 'bad')}")


def _told(screen: Screen, failure: Failure | None, record: TodoRecord) -> None:
    """What failed, where, and the edit: a line each."""
    if failure is None:
        return
    tests = failure.tests or failure.top_failing_tests
    what = tests[0] if tests else failure.check_id or ""
    more = f" (+{len(tests) - 1})" if len(tests) > 1 else ""
    head = screen.one_line(failure.stack_trace_head or "")
    said = ": ".join(each for each in (f"{screen.one_line(what)}{more}", head) if each)
    if said:
        _clipped(screen, f"  failed {said}")
    place = failure.location
    if place is not None:
        line = f":{place.line}" if place.line else ""
        function = f" in {place.function}" if place.function else ""
        _clipped(screen, "  where  " + screen.one_line(f"{place.path}{line}{function}"))
    suggestion = right_suggestion(failure, record.todo, record.context)
    if suggestion:
        _clipped(screen, f"  edit   {screen.one_line(suggestion)}")


def in_short(failure: Failure, record: TodoRecord) -> dict[str, str]:
    """Return what a program needs to know of a failure to decide who looks at it."""
    place = failure.location
    told = {
        "category": failure.category.value,
        "owner": failure.owner,
        "says": failure.stack_trace_head,
        "place": None if place is None else f"{place.path}:{place.line}" if place.line else place.path,
        "function": None if place is None else place.function,
        "edit": right_suggestion(failure, record.todo, record.context),
    }
    return {key: str(value) for key, value in told.items() if value}


def _question(screen: Screen, run: PlanRun, question: AskHuman, plan: Path) -> None:
    record = run.state.records.get(question.todo_id)
    screen.line()
    mark = screen.style(screen.glyphs.testing, "warn")
    name = screen.style(screen.one_line(question.todo_id or "the plan"), "strong")
    screen.line(f"{mark} {name}  {screen.style('waits for a person', 'warn')}")
    screen.paragraph(f"{question.question}", first="  ask    ", indent=9)
    _clipped(screen, f"  why    {screen.one_line(question.because)} [{question.rule}]")
    if record is not None and question.kind is not QuestionKind.ANSWER:
        _told(screen, record.failure, record)
    for command in answers(question, words_of(run, plan)):
        _command(screen, "answer", command)


def words_of(run: PlanRun, plan: Path) -> str:
    """Return the words that name this run on a command line: its plan, and its log where one was named."""
    words = [str(plan)] if run.named_log is None else ["--log", str(run.named_log), str(plan)]
    return shlex.join(words)


def answers(question: AskHuman, shown: str) -> list[str]:
    """Return the commands that answer a question of the run that is named so; the first says yes."""
    if question.kind.is_approval:
        return [f"{program()} approve {shown} {shlex.quote(question.question_id)}   (or reject, modify)"]
    if question.kind is QuestionKind.ANSWER:
        return [f"{program()} answer {shown} {shlex.quote(question.todo_id)} yes|no --by NAME"]
    options = "|".join(question.options)
    target = shlex.quote(question.todo_id or question.question_id)
    return [f"{program()} answer {shown} {target} {options}"]


def _verifications(screen: Screen, run: PlanRun, actions: Sequence[Verify]) -> None:
    if not actions:
        return
    screen.line()
    for action in actions[:MOST_TODOS]:
        record = run.state.records[action.todo_ids[0]]
        why = record.failure.stack_trace_head if record.failure is not None and record.waited else None
        said = screen.one_line(why or action.because)
        _clipped(screen, f"verify {screen.one_line(record.id)}: {said}")
    _more(screen, len(actions))
    names = ",".join(action.todo_ids[0] for action in actions[:MOST_TODOS])
    if run.found.document is not None or run.is_driven:
        verify = run.found.verify
        _command(screen, "run", f"{verify}::{names}" if len(actions) <= MOST_TODOS else verify)


def _ready(screen: Screen, run: PlanRun, ready: Sequence[Implement], plan: Path) -> None:
    if not ready:
        return
    screen.line()
    screen.line(screen.style(f"Ready ({len(ready)}), side by side", "strong"))
    document = run.found.document
    outcomes = {} if document is None else {each.todo_id: each for each in document.outcomes}
    for action in ready[:MOST_TODOS]:
        record = run.state.records[action.todo_id]
        title = record.todo.title
        said = f" {screen.one_line(title)}" if title and title != record.todo.id else ""
        _clipped(screen, f"  {screen.one_line(action.todo_id)}{said}: for the {action.role}")
        files = action.bounds.allowed_files
        if files is not None:
            _clipped(screen, f"    may write {listed(map(screen.one_line, files), 4)}")
        found = outcomes.get(action.todo_id)
        if found is not None and found.failure_evidence is not None:
            head = found.failure_evidence.stack_trace_head or found.failure_evidence.category
            _clipped(screen, f"    not begun: {screen.one_line(head)}")
    _more(screen, len(ready))
    shown = words_of(run, plan)
    _command(screen, "brief", f"{program()} next {shown} --brief {shlex.quote(ready[0].todo_id)}")


def _waiting(screen: Screen, run: PlanRun) -> None:
    state = run.state
    lines = [f"{name}: blocked by {red}" for name, red in sorted(state.blocked().items())]
    lines += [
        f"{each}: after {name}, which may write the same files"
        for name, those in sorted(state.held.items())
        for each in sorted(those)
    ]
    for record in state.records.values():
        step = record.next_step
        if step is not None and step.kind == "branch" and record.question is None:
            lines.append(f"{record.id}: its branch waits for a place (max_concurrent_branches)")
        if (
            record.parent_id
            and state.waits(record)
            and state.records[record.parent_id].life is TodoLife.TEST_FAILED
        ):
            after = listed(record.todo.dependencies, 3)
            lines.append(f"{record.parent_id}: its branch {record.todo.id} comes after {after}")
    if lines:
        screen.line()
        screen.line(screen.style(f"Waiting ({len(lines)})", "strong"))
        for line in lines[:MOST_TODOS]:
            _clipped(screen, f"  {screen.one_line(line)}")
        _more(screen, len(lines))
    later = sum(
        each.life is TodoLife.PENDING and each.next_step is None and not each.is_branch
        for each in state.todos.values()
    )
    if later:
        screen.line(f"{counted(later, 'todo')} later: {program()} waves shows the order")


def _clipped(screen: Screen, text: str) -> None:
    """Write one line, cut at the width of the terminal; for a program, at what it can bear."""
    screen.line(screen.clip(text, max(screen.width, 0 if screen.is_terminal else _PIPED)))


def _command(screen: Screen, label: str, command: str) -> None:
    screen.line(f"  {label:<6} {screen.style(screen.one_line(command), 'command')}")


def _more(screen: Screen, count: int) -> None:
    if count > MOST_TODOS:
        screen.line(f"and {count - MOST_TODOS} more; --json has all of them")
