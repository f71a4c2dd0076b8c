"""How a run stood at a moment: its todos, what waits for a person, what was spent, what was asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from planner.cli.screen import Screen
from planner.model.life import PlanState, TodoLife
from planner.text.display import cells, counted, listed, moment, padded

if TYPE_CHECKING:
    from planner.edges.replaying import Replay
    from planner.engine import State
    from planner.engine.state import TodoRecord
    from planner.model.actions import Action
    from planner.model.events import Event

_MARKS: dict[TodoLife, tuple[str, str]] = {
    TodoLife.PENDING: ("pending", "quiet"),
    TodoLife.BLOCKED: ("blocked", "quiet"),
    TodoLife.ACTIVE: ("active", "warn"),
    TodoLife.TESTING: ("testing", "warn"),
    TodoLife.TEST_FAILED: ("failed", "bad"),
    TodoLife.DONE: ("done", "good"),
    TodoLife.FAILED: ("failed", "bad"),
    TodoLife.SKIPPED: ("blocked", "quiet"),
    TodoLife.HALTED: ("failed", "bad"),
}
"""For each state the field of the glyphs, and the style."""

_STYLES = {PlanState.COMPLETED: "good", PlanState.HALTED: "bad", PlanState.REJECTED: "bad"}
_WIDEST_NAME = 60
_SUBJECTS = ("todo_id", "approval_id", "question_id")


def event_in_words(event: Event) -> str:
    """``verified t2, 2026-01-31 09:30 UTC``."""
    subject = next((getattr(event, name) for name in _SUBJECTS if getattr(event, name, None)), "")
    outcome, several = getattr(event, "outcome", None), getattr(event, "todo_ids", ())
    subject = subject or (outcome.todo_id if outcome is not None else listed(several))
    at = moment(event.at.isoformat().replace("+00:00", "Z"))
    return f"{event.event}{' ' if subject else ''}{subject}, {at}"


def action_in_words(action: Action) -> str:
    """``implement t2: it is ready [ready-todo]``."""
    several = getattr(action, "todo_ids", ())
    subject = getattr(action, "todo_id", None) or getattr(action, "within", None) or listed(several)
    return f"{action.action}{' ' if subject else ''}{subject}: {action.because} [{action.rule}]"


def show_state(found: Replay) -> None:
    """Write how the run stood after the last line that was folded."""
    state, last = found.state, found.last
    assert state is not None  # there was a line
    assert last is not None
    screen = Screen()
    if found.difference is not None:
        screen.remark(
            f"line {found.difference.n} holds other decisions than are made now: the state is what is "
            "decided now"
        )
    plan = screen.style(state.plan_state.value, _STYLES.get(state.plan_state, "strong"))
    screen.line(f"{screen.style(screen.one_line(state.plan_id), 'strong')}: {plan}")
    screen.paragraph(f"after line {last.n}: {event_in_words(last.event)}", indent=2)
    _todos(screen, state)
    _questions(screen, state)
    screen.paragraph(f"Spent: {_spent(state)}")
    _actions(screen, found)
    screen.show()


def state_as_json(found: Replay) -> dict[str, Any]:
    """The same for programs."""
    from planner.edges.log_lines import action_text, event_text

    state, last = found.state, found.last
    assert state is not None  # there was a line
    assert last is not None
    return {
        "line": last.n,
        "event": json.loads(event_text(last.event)),
        "plan": state.plan_state.value,
        "seq": state.seq,
        "todos": {record.id: _todo(record) for record in _ranked(state)},
        "questions": [
            {
                "question_id": asked.id,
                "kind": asked.kind.value,
                "todo_id": asked.todo_id,
                "question": asked.text,
                "options": asked.options,
                "digest": asked.digest,
            }
            for asked in state.questions.values()
        ],
        "spent": {name: getattr(state.spent, name) for name in ("tokens", "cycles", "new_files")},
        "actions": [json.loads(action_text(action)) for action in found.last_actions],
        "same": found.difference is None,
    }


def _todo(record: TodoRecord) -> dict[str, Any]:
    told: dict[str, Any] = {
        "state": record.life.value,
        "verified": record.verified,
        "turns": record.turns,
        "retries": record.retries,
    }
    if record.is_branch:
        told |= {"repairs": record.parent_id, "depth": record.depth, "attempts": record.attempts}
    return told


def _todos(screen: Screen, state: State) -> None:
    rows = _ranked(state)
    names = [_name(screen, record) for record in rows]
    room = min(max(map(cells, names), default=0), _WIDEST_NAME)
    for record, name in zip(rows, names, strict=True):
        glyph, style = _MARKS[record.life]
        mark = screen.style(f"{getattr(screen.glyphs, glyph)} {record.life.value}", style)
        screen.line(f"  {padded(screen.clip(name, room), room)}  {mark}{_effort(record)}")


def _ranked(state: State) -> list[TodoRecord]:
    """The todos in the order of the plan."""
    return sorted(state.todos.values(), key=lambda record: record.rank)


def _name(screen: Screen, record: TodoRecord) -> str:
    depth = record.id.count("/") + record.depth
    return f"{'  ' * depth}{record.id}  {screen.one_line(record.todo.title)}"


def _effort(record: TodoRecord) -> str:
    parts = [counted(record.turns, "turn")] if record.turns else []
    parts += [counted(record.attempts, "failed attempt")] if record.attempts else []
    parts += ["not verified"] if record.life is TodoLife.DONE and not record.verified else []
    return f"  {', '.join(parts)}" if parts else ""


def _questions(screen: Screen, state: State) -> None:
    if not state.questions:
        return
    screen.line()
    screen.line(f"Waits for a person ({len(state.questions)})")
    for asked in state.questions.values():
        screen.paragraph(f"{asked.id}: {asked.text} ({' | '.join(asked.options)})", indent=2)


def _spent(state: State) -> str:
    spent = state.spent
    return ", ".join(
        counted(count, noun)
        for count, noun in (
            (spent.tokens, "token"),
            (spent.cycles, "cycle"),
            (spent.new_files, "new file"),
        )
    )


def _actions(screen: Screen, found: Replay) -> None:
    if not found.last_actions:
        screen.line("Called for: nothing")
        return
    screen.line("Called for:")
    for action in found.last_actions:
        screen.paragraph(action_in_words(action), first=f"  {action.seq:>3}  ", indent=7)
