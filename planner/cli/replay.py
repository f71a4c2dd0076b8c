"""``planner replay``: whether a recorded log gives the same decisions, and how things stood at a moment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.app import command_app
from planner.cli.arguments import JsonOption
from planner.cli.ending import Status, UsageMistake, complain, ends

if TYPE_CHECKING:
    from planner.cli.screen import Screen
    from planner.edges.plan_versions import PlanVersions
    from planner.edges.replaying import Difference, Replay

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
    plan_out: Annotated[
        Path | None,
        typer.Option("--plan-out", metavar="FILE", help="Write the plan as it was then to this file."),
    ] = None,
) -> int:
    """Fold a recorded log anew, and compare each decision with the one in the log, byte for byte.

    The log is only read. It holds all that is needed: no plan file, no outcome, no clock.
    """
    from planner.edges.replaying import Replay
    from planner.errors import LogError

    versions = _versions(log, plan_out)
    found = Replay.of(log, until=until, watch=None if versions is None else versions.take)
    for remark in found.remarks:
        complain(remark)
    if found.events == 0 and found.difference is None:
        raise LogError(f"{log}: the log is empty; name one that planner step has written")
    if until is not None and found.difference is None and found.events <= until:
        raise UsageMistake(f"--until {until}: the log ends with line {found.events - 1}")
    if versions is not None:
        for remark in versions.write():
            complain(remark)
    if until is not None and found.events > until:
        _show_state(found, as_json)
        return Status.OK
    _show_comparison(found, as_json)
    return Status.OK if found.difference is None else Status.FOUND


def _versions(log: Path, plan_out: Path | None) -> PlanVersions | None:
    """The versions of the plan, if they are wanted; in the layout of its file, where that is as it was."""
    if plan_out is None:
        return None
    from planner.edges.plan_versions import PlanVersions, unchanged_source
    from planner.edges.run_log import RunLog

    opened = RunLog.read(log)
    try:
        first = next(opened.news(), None)
    finally:
        opened.close()
    return PlanVersions(plan_out, None if first is None else unchanged_source(first.event))


def _show_state(found: Replay, as_json: bool) -> None:
    from planner.cli.replay_screen import show_state, state_as_json

    if as_json:
        _write_json(state_as_json(found))
    else:
        show_state(found)


def _show_comparison(found: Replay, as_json: bool) -> None:
    from planner.cli.screen import Screen
    from planner.text.display import counted

    difference = found.difference
    if as_json:
        told = {"same": difference is None, "events": found.events, "actions": found.actions}
        _write_json(told if difference is None else {**told, "difference": _plainly(difference)})
        return
    screen = Screen()
    if difference is None:
        said = f"{counted(found.events, 'event')}, {counted(found.actions, 'action')}"
        screen.line(f"{said}: the same, byte for byte")
    else:
        _show_difference(screen, difference)
    screen.show()


def _show_difference(screen: Screen, difference: Difference) -> None:
    from planner.cli.replay_screen import event_in_words

    event = screen.one_line(event_in_words(difference.event))
    screen.line(f"line {difference.n} ({event}): {screen.style('other decisions', 'bad')}")
    if difference.refusal is not None:
        screen.labelled("now", f"the event is refused: {difference.refusal}", room=8)
    for label, text in (("logged", difference.logged), ("now", difference.now)):
        if text is not None or difference.refusal is None:
            screen.labelled(label, (text or "no such action")[:_MOST_SHOWN], room=8)
    if difference.keys:
        screen.labelled("differ", ", ".join(difference.keys), room=8)


def _plainly(difference: Difference) -> dict[str, object]:
    from planner.edges.log_lines import event_text

    told: dict[str, object] = {"line": difference.n, "event": json.loads(event_text(difference.event))}
    for name, text in (("logged", difference.logged), ("now", difference.now)):
        told[name] = None if text is None else json.loads(text)
    return told if difference.refusal is None else {**told, "refusal": difference.refusal}


def _write_json(value: object) -> None:
    from planner.cli.screen import write

    write(json.dumps(value, indent=2) + "\n")
