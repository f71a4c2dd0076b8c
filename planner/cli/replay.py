"""``planner replay``: whether a recorded log gives the same decisions, and how things stood at a moment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.app import command_app
from planner.cli.arguments import JsonOption
from planner.cli.ending import Status, UsageMistake, complain, ends
from planner.cli.screen import Screen, print_json
from planner.text.display import counted

if TYPE_CHECKING:
    from planner.model.events import Event
    from planner.store.recorded_run import Replay

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
) -> int:
    """Fold a recorded log anew, and compare each decision with the one in the log, byte for byte.

    The log is only read. It holds all that is needed: no plan file, no outcome, no clock.
    """
    from planner.errors import LogError
    from planner.store.recorded_run import Replay

    found = Replay.of(log, until=until)
    for remark in found.remarks:
        complain(remark)
    if found.events == 0 and found.difference is None:
        raise LogError(f"{log}: the log is empty; name one that planner step has written")
    if until is not None and found.events > until:
        _show_state(log, found, as_json=as_json)
        return Status.OK
    if until is not None and found.difference is None:
        raise UsageMistake(f"--until {until}: the log ends with line {found.events - 1}")
    _show_comparison(found, as_json=as_json)
    return Status.OK if found.difference is None else Status.FOUND


def _show_comparison(found: Replay, *, as_json: bool) -> None:
    difference = found.difference
    if as_json:
        told: dict[str, Any] = {
            "same": difference is None,
            "events": found.events,
            "actions": found.actions,
        }
        if difference is not None:
            logged, now = (text and json.loads(text) for text in (difference.logged, difference.now))
            told["difference"] = {
                "line": difference.n,
                "event": _event(difference.event),
                "logged": logged,
                "now": now,
                **({"refusal": difference.refusal} if difference.refusal else {}),
            }
        print_json(told)
        return
    screen = Screen()
    if difference is None:
        said = f"{counted(found.events, 'event')}, {counted(found.actions, 'action')}"
        screen.line(f"{said}: the same, byte for byte")
    else:
        event = screen.one_line(difference.event.event)
        screen.line(f"line {difference.n} ({event}): {screen.style('other decisions', 'bad')}")
        now = difference.now
        if difference.refusal is not None:
            now = f"the event is refused: {difference.refusal}"
        for label, text in (("logged", difference.logged), ("now", now)):
            screen.labelled(label, (text or "no such action")[:_MOST_SHOWN], room=8)
        if difference.keys:
            screen.labelled("differ", ", ".join(difference.keys), room=8)
    screen.show()


def _show_state(log: Path, found: Replay, *, as_json: bool) -> None:
    """Show the state that a fold has come to, as ``planner status`` shows it, and what it called for."""
    from planner.cli.status import plain, show_tree
    from planner.engine.progress import status_tree
    from planner.store.lines import action_text

    last, state = found.last, found.state
    assert last is not None  # there was a line
    assert state is not None
    tree = status_tree(state)
    if as_json:
        print_json(
            {
                "line": last.n,
                "event": _event(last.event),
                "plan": state.plan_state.value,
                "seq": state.seq,
                "todos": [plain(each) for each in tree.nodes],
                "questions": sorted(state.questions),
                "spent": {name: getattr(state.spent, name) for name in ("tokens", "cycles", "new_files")},
                "actions": [json.loads(action_text(action)) for action in found.last_actions],
                "same": found.difference is None,
            }
        )
        return
    screen = Screen()
    if found.difference is not None:
        screen.remark(
            f"line {found.difference.n} holds other decisions than are made now: the state is what is "
            "decided now"
        )
    show_tree(screen, tree, f"{log}, after line {last.n} ({last.event.event})")
    for asked in state.questions.values():
        screen.paragraph(
            f"waits for a person: {asked.question_id}: {asked.question} ({' | '.join(asked.options)})"
        )
    for action in found.last_actions:
        said = f"{action.action}: {action.because} [{action.rule}]"
        screen.paragraph(said, first=f"  {action.seq:>3}  ", indent=7)
    screen.show()


def _event(event: Event) -> Any:
    from planner.store.lines import event_text

    return json.loads(event_text(event))
