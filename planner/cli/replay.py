"""``planner replay``: whether a recorded log gives the same decisions, and how things stood at a moment."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.app import command_app
from planner.cli.arguments import JsonOption
from planner.cli.ending import Status, UsageMistake, complain, ends
from planner.cli.screen import Screen, write
from planner.model.life import PlanState, TodoLife
from planner.text.display import cells, counted, listed, moment, padded

if TYPE_CHECKING:
    from planner.engine import State, TodoRecord
    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.store.plan_versions import PlanVersions
    from planner.store.recorded_run import Difference, Replay

app = command_app()

EPILOG = """\
\b
Exit status
   0  the same decisions, byte for byte; with --until, the state is shown
   1  other decisions: the first difference is shown
   2  wrong usage
   4  the log cannot be read, or a line of it was changed, dropped, added or moved
"""

_MOST_SHOWN = 1_000
"""Characters of an action; --json prints all of it."""

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


@app.command(epilog=EPILOG)
@ends
def replay(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log that planner step has written.")],
    until: Annotated[
        int | None,
        typer.Option(
            "--until", min=0, metavar="N", help="Show how things stood after line N; the first line is 0."
        ),
    ] = None,
    as_json: JsonOption = False,
    plan_out: Annotated[
        Path | None,
        typer.Option("--plan-out", metavar="FILE", help="Write the plan as it was then to this file."),
    ] = None,
) -> int:
    """Fold a recorded log anew, and compare each decision with the one in the log, byte for byte.

    The log is only read. It holds all that is needed: no plan file, no outcome, no clock.
    """
    from planner.errors import LogError
    from planner.store.recorded_run import Replay

    versions = None if plan_out is None else _versions(log, plan_out)
    found = Replay.of(log, until=until, watch=None if versions is None else versions.take)
    for remark in found.remarks:
        complain(remark)
    if found.events == 0 and found.difference is None:
        raise LogError(f"{log}: the log is empty; name one that planner step has written")
    if until is not None and found.difference is None and found.events <= until:
        raise UsageMistake(f"--until {until}: the log ends with line {found.events - 1}")
    for remark in () if versions is None else versions.write():
        complain(remark)
    if until is not None and found.events > until:
        assert found.state is not None  # there was a line
        if as_json:
            _write_json(_state_as_json(found, found.state))
        else:
            _show_state(found, found.state)
        return Status.OK
    if as_json:
        told = {"same": found.difference is None, "events": found.events, "actions": found.actions}
        _write_json(told if found.difference is None else {**told, "difference": _plain(found.difference)})
    else:
        _show_comparison(found)
    return Status.OK if found.difference is None else Status.FOUND


def _versions(log: Path, plan_out: Path) -> PlanVersions:
    """Return the versions of the plan, in the layout of its file, where that is as it was."""
    from planner.store.plan_versions import PlanVersions, unchanged_source
    from planner.store.run_log import RunLog

    with closing(RunLog.read(log)) as opened:
        first = next(opened.news(), None)
    return PlanVersions(plan_out, None if first is None else unchanged_source(first.event))


# -- what differs --------------------------------------------------------------------------------------


def _show_comparison(found: Replay) -> None:
    screen, difference = Screen(), found.difference
    if difference is None:
        said = f"{counted(found.events, 'event')}, {counted(found.actions, 'action')}"
        screen.line(f"{said}: the same, byte for byte")
        screen.show()
        return
    event = screen.one_line(event_in_words(difference.event))
    screen.line(f"line {difference.n} ({event}): {screen.style('other decisions', 'bad')}")
    if difference.refusal is not None:
        screen.labelled("now", f"the event is refused: {difference.refusal}", room=8)
    for label, text in (("logged", difference.logged), ("now", difference.now)):
        if text is not None or difference.refusal is None:
            screen.labelled(label, (text or "no such action")[:_MOST_SHOWN], room=8)
    if difference.keys:
        screen.labelled("differ", ", ".join(difference.keys), room=8)
    screen.show()


def _plain(difference: Difference) -> dict[str, object]:
    from planner.store.lines import event_text

    told: dict[str, object] = {"line": difference.n, "event": json.loads(event_text(difference.event))}
    for name, text in (("logged", difference.logged), ("now", difference.now)):
        told[name] = None if text is None else json.loads(text)
    return told if difference.refusal is None else {**told, "refusal": difference.refusal}


# -- how a run stood -----------------------------------------------------------------------------------


def event_in_words(event: Event) -> str:
    """Return an event as ``verified t2, 2026-01-31 09:30 UTC``."""
    subject = next((getattr(event, name) for name in _SUBJECTS if getattr(event, name, None)), "")
    outcome, several = getattr(event, "outcome", None), getattr(event, "todo_ids", ())
    subject = subject or (outcome.todo_id if outcome is not None else listed(several))
    at = moment(event.at.isoformat().replace("+00:00", "Z"))
    return f"{event.event}{' ' if subject else ''}{subject}, {at}"


def action_in_words(action: Action) -> str:
    """Return an action as ``implement t2: it is ready [ready-todo]``."""
    several = getattr(action, "todo_ids", ())
    subject = getattr(action, "todo_id", None) or getattr(action, "within", None) or listed(several)
    return f"{action.action}{' ' if subject else ''}{subject}: {action.because} [{action.rule}]"


def _show_state(found: Replay, state: State) -> None:
    last = found.last
    assert last is not None  # there was a line
    screen = Screen()
    if found.difference is not None:
        screen.remark(
            f"line {found.difference.n} holds other decisions than are made now: the state is what is "
            "decided now"
        )
    plan = screen.style(state.plan_state.value, _STYLES.get(state.plan_state, "strong"))
    screen.line(f"{screen.style(screen.one_line(state.plan_id), 'strong')}: {plan}")
    screen.paragraph(f"after line {last.n}: {event_in_words(last.event)}", indent=2)
    rows = _ranked(state)
    names = [
        f"{'  ' * (each.id.count('/') + each.depth)}{each.id}  {screen.one_line(each.todo.title)}"
        for each in rows
    ]
    room = min(max(map(cells, names), default=0), _WIDEST_NAME)
    for record, name in zip(rows, names, strict=True):
        glyph, style = _MARKS[record.life]
        mark = screen.style(f"{getattr(screen.glyphs, glyph)} {record.life.value}", style)
        screen.line(f"  {padded(screen.clip(name, room), room)}  {mark}{_effort(record)}")
    if state.questions:
        screen.line()
        screen.line(f"Waits for a person ({len(state.questions)})")
        for asked in state.questions.values():
            screen.paragraph(f"{asked.id}: {asked.text} ({' | '.join(asked.options)})", indent=2)
    spent = (("tokens", "token"), ("cycles", "cycle"), ("new_files", "new file"))
    said = ", ".join(counted(getattr(state.spent, name), noun) for name, noun in spent)
    screen.paragraph(f"Spent: {said}")
    screen.line("Called for:" if found.last_actions else "Called for: nothing")
    for action in found.last_actions:
        screen.paragraph(action_in_words(action), first=f"  {action.seq:>3}  ", indent=7)
    screen.show()


def _effort(record: TodoRecord) -> str:
    parts = [counted(record.turns, "turn")] if record.turns else []
    parts += [counted(record.attempts, "failed attempt")] if record.attempts else []
    parts += ["not verified"] if record.life is TodoLife.DONE and not record.verified else []
    return f"  {', '.join(parts)}" if parts else ""


def _state_as_json(found: Replay, state: State) -> dict[str, Any]:
    from planner.store.lines import action_text, event_text

    last = found.last
    assert last is not None  # there was a line
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


def _ranked(state: State) -> list[TodoRecord]:
    """Return the todos in the order of the plan."""
    return sorted(state.todos.values(), key=lambda record: record.rank)


def _write_json(value: object) -> None:
    write(json.dumps(value, indent=2) + "\n")
