"""What is outstanding in a run of the engine: what it would ask of a driver that begins anew."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from planner.cli.ending import Status, UsageMistake
from planner.cli.replay import action_in_words
from planner.cli.screen import Screen, counted, write
from planner.engine import step
from planner.engine.transaction import LATEST
from planner.model.actions import AskHuman, Implement, QuestionKind
from planner.model.events import RunResumed
from planner.model.life import PlanState, TodoLife
from planner.model.taxonomy import Family, Role
from planner.store.lines import action_text
from planner.store.recorded_run import Replay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from planner.engine import State
    from planner.model.actions import Action

MOST_WAITING = 20
"""So many of what waits are shown."""

_HEADINGS = {
    "implement": "To work on",
    "verify": "To verify",
    "load_sub_plan": "To load or to plan",
    "ask_human": "Waits for a person",
}


def show_outstanding(log: Path, todo_id: str | None, *, as_json: bool) -> int:
    """Show what is outstanding, of one todo or of all, and give the exit status. The log is only read."""
    state = _state_of(log)
    if todo_id is not None and todo_id not in state.records:
        from planner.cli.arguments import nearest

        listing = nearest(todo_id, sorted(state.records), "the todos are")
        raise UsageMistake(f"--todo {todo_id}: there is no such todo; {listing}")
    actions = [action for action in _outstanding(state) if todo_id in (None, _concerns(action))]
    if as_json:
        told = {
            "plan": state.plan_id,
            "state": state.plan_state,
            "outstanding": [json.loads(action_text(action)) for action in actions],
            "stopped": None if state.stopped is None else json.loads(action_text(state.stopped)),
        }
        write(json.dumps(told, indent=2, sort_keys=True) + "\n")
    else:
        _show(state, actions)
    return _status(state, actions)


def _state_of(log: Path) -> State:
    replay = Replay.of(log)
    if replay.difference is not None or replay.state is None:
        raise UsageMistake(
            f"{log}: what it holds is not what is decided now, so nothing can be said of it; planner "
            f"replay {log} tells where"
        )
    return replay.state


def _outstanding(state: State) -> tuple[Action, ...]:
    """What the engine would ask a driver that begins anew at this very time."""
    if state.plan_state in (PlanState.COMPLETED, PlanState.HALTED, PlanState.REJECTED):
        return ()
    if state.plan_state is PlanState.READY:
        return ()
    at = LATEST if state.now >= LATEST.timestamp() else datetime.fromtimestamp(state.now, UTC)
    _, actions = step(state, RunResumed(at=at))
    return actions


def _concerns(action: Action) -> str | None:
    several = getattr(action, "todo_ids", ())
    return several[0] if several else getattr(action, "todo_id", None)


def _show(state: State, actions: list[Action]) -> None:
    screen = Screen()
    todos = [record for record in state.todos.values() if not record.is_branch]
    done = sum(record.life is TodoLife.DONE for record in todos)
    name = screen.style(screen.one_line(state.plan_id), "strong")
    screen.line(f"{name}  {state.plan_state}: {done} of {counted(len(todos), 'todo')} done")
    if state.stopped is not None:
        screen.paragraph(f"{state.stopped.because} [{state.stopped.rule}]", indent=2)
    elif state.plan_state is PlanState.READY:
        screen.paragraph("the run has not begun: tell it run_started", indent=2)
    for kind, heading in _HEADINGS.items():
        those = [action for action in actions if action.action == kind]
        if not those:
            continue
        screen.line()
        screen.line(f"{heading} ({len(those)})")
        for action in those:
            screen.paragraph(_in_words(state, action), first="  ", indent=4)
    waiting = list(_waiting(state))
    if waiting and actions:
        screen.line()
        screen.line(f"Waits ({len(waiting)})")
        for text in waiting[:MOST_WAITING]:
            screen.paragraph(text, first="  ", indent=4)
        if len(waiting) > MOST_WAITING:
            screen.line(f"  and {len(waiting) - MOST_WAITING} more")
    screen.show()


def _waiting(state: State) -> Iterator[str]:
    """The todos whose turn has not come though they could go on, or that are blocked, each with why."""
    for name, those in sorted(state.held.items()):
        yield from (f"{each}: {name} is under work, and has files that it needs" for each in sorted(those))
    blocked = state.blocked()
    yield from (f"{name}: blocked by {red}" for name, red in sorted(blocked.items()))
    for name, record in sorted(state.records.items(), key=lambda item: item[1].rank):
        wish = record.wish
        if wish is None or any(name in those for those in state.held.values()):
            continue
        if wish.kind == "branch":
            yield f"{name}: its branch waits until another is closed (max_concurrent_branches)"
        elif not record.life.is_final and name not in state.live:
            yield f"{name}: no place is free (--jobs), or a person is asked about the budget"


def _in_words(state: State, action: Action) -> str:
    if isinstance(action, AskHuman):
        answer = f"{action.question} ({', '.join(action.options)}) {action.because} [{action.rule}]"
        return f"{action.question_id}: {answer}"
    if isinstance(action, Implement):
        record = state.records[action.todo_id]
        return f"{action.todo_id}, by the {action.role}, turn {action.attempt}: {record.todo.title}"
    return action_in_words(action).rpartition(":")[0]


def _status(state: State, actions: list[Action]) -> Status:
    """The exit status: whether somebody can go on, and what stands in the way if not."""
    if state.plan_state is PlanState.COMPLETED:
        return Status.OK
    if state.plan_state is PlanState.HALTED:
        category = getattr(state.stopped, "category", None)
        family = None if category is None else category.facts.family
        if family is Family.SANDBOX:
            return Status.SECURITY_HALT
        return Status.BUDGET_HALT if family is Family.BUDGET else Status.HUMAN_NEEDED
    workable = [action for action in actions if not isinstance(action, AskHuman)]
    if any(not isinstance(action, Implement) or action.role is not Role.HUMAN for action in workable):
        return Status.OK
    kinds = {action.kind for action in actions if isinstance(action, AskHuman)}
    if kinds == {QuestionKind.MEND_ENVIRONMENT}:
        return Status.ENVIRONMENT
    return Status.HUMAN_NEEDED if actions else Status.OK
