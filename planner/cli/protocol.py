"""``planner step`` and ``planner replay``: drive the engine over a pipe, and verify recorded logs.

``step`` reads events from standard input and answers each with actions and a state line (JSON lines); the
session and its log are in :mod:`planner.store.session`. ``replay`` folds a log again and compares every
decision with the recorded one, byte for byte.
"""

from __future__ import annotations

import json
import sys
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.app import command
from planner.cli.arguments import PlanArgument, option, plan_or_usual
from planner.cli.exits import Status, complain
from planner.cli.screen import Screen
from planner.errors import IllegalTransition, LogError, PlannerError, RefusedEvent
from planner.model.verdicts import TodoLife
from planner.store.chain import one_line
from planner.store.run_log import RunLog, action_text, logged_actions, read_event
from planner.store.run_log import replay as decide_again
from planner.store.session import RunSession, RunSettings
from planner.text.display import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

STEP_EPILOG = """\
\b
Each line of standard input is one event, a JSON object with "event" and "at". The answer
has one action per line, and a last line with "state", or with "error" if the event was refused: then
nothing has changed. Start with run_started; to continue a log, with run_resumed.

\b
Exit status
   0  the input has ended
   2  wrong usage
   4  the plan or the log cannot be used, or they do not fit each other
 130  interrupted
"""


@command(STEP_EPILOG)
def step(
    plan: PlanArgument = None,
    log: Annotated[
        Path | None,
        option(
            "--log FILE",
            "The log of the run, which is continued if it exists. Default: "
            ".planverify/logs/PLAN_ID.jsonl below the root.",
        ),
    ] = None,
    jobs: Annotated[
        int | None, option("--jobs, -j N", "The number of todos to work on at once.", min=1)
    ] = None,
    no_validation: Annotated[
        bool, option("--no-validation", "Carry out the plan even if validation finds errors.")
    ] = False,
    allow_unproved: Annotated[
        bool,
        option(
            "--allow-unproved",
            "Accept an outcome without checks as done; the todo is shown as not verified.",
        ),
    ] = False,
    plan_out: Annotated[
        Path | None, option("--plan-out FILE", "Write the current version of the plan to this file.")
    ] = None,
) -> None:
    """Drive a plan from outside: events in, actions out, one JSON object per line.

    The run is kept in the log: after a crash, the same command continues it.
    """
    plan = plan_or_usual(plan)
    session = RunSession.open(
        RunSettings(
            plan=plan,
            log=log,
            jobs=jobs,
            validates=not no_validation,
            allow_unproved=allow_unproved,
            newest=plan_out,
        )
    )

    def tell_remarks() -> None:
        for remark in session.remarks():
            complain(remark)

    try:
        tell_remarks()
        for raw in sys.stdin.buffer:
            if raw.strip():
                # Flushed per event: the driver waits for this answer before it sends the next event.
                sys.stdout.write("".join(f"{line}\n" for line in _answer(session, raw)))
                sys.stdout.flush()
                tell_remarks()
    finally:
        session.close()
        tell_remarks()


def _answer(session: RunSession, raw: bytes) -> Iterator[str]:
    """Yield the lines that answer one event: its actions, then the error, or the states in plan order.

    Actions that events of other writers of the log have caused come first, even if this event is refused.
    """
    try:
        actions, last = session.tell(read_event(raw)), ""
    except (RefusedEvent, LogError) as error:
        actions, last = (), _error(error)
    yield from map(action_text, [*session.unanswered(), *actions])
    if last:
        yield last
        return
    state = session.state
    assert state is not None  # an event was accepted
    ranked = sorted(state.todos.values(), key=lambda record: record.rank)
    states: dict[str, Any] = {
        "plan": state.plan_state,
        "todos": {record.id: record.life for record in ranked},
    }
    # Done, but proved by no verification. Parents are never listed: their state follows from their todos.
    unproved = [
        record.id
        for record in ranked
        if record.life is TodoLife.DONE and not record.verified and not record.todo.has_sub_plan
    ]
    if unproved:
        states["unproved"] = unproved
    yield json.dumps({"state": states, "seq": state.seq})


def _error(error: PlannerError) -> str:
    """Return the JSON line for a refused event or an unusable log: rule, message and remedy."""
    if isinstance(error, RefusedEvent):
        fields = {"rule": error.rule, "message": one_line(error.problem), "remedy": one_line(error.remedy)}
    else:
        # By the convention of this project's messages, the remedy comes after the last semicolon.
        problem, _, remedy = one_line(str(error)).rpartition("; ")
        fields = {"rule": "log", "message": problem or remedy, "remedy": remedy}
    if isinstance(error, IllegalTransition):
        fields |= {"from": error.before, "to": error.after, "trigger": error.trigger}
    return json.dumps({"error": fields})


REPLAY_EPILOG = """\
\b
Exit status
   0  the decisions are the same, byte for byte
   1  the decisions differ; the first difference is shown
   2  wrong usage
   4  the log cannot be read, or a line of it was changed, dropped, added or moved
"""

_MOST_SHOWN = 1_000
"""The most characters of an action that are shown; the log has all of it."""


@command(REPLAY_EPILOG)
def replay(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A log that planner step has written.")],
) -> int:
    """Replay a recorded log, and compare each decision with the recorded one, byte for byte.

    The log is only read. It has everything that is needed: plans, outcomes and times.
    """
    screen, actions, difference = Screen(), 0, None
    with RunLog.read(log) as run:
        for entry, decided in decide_again(run):
            pairs = zip_longest(logged_actions(entry.text), decided, fillvalue="no such action")
            difference = next((pair for pair in pairs if pair[0] != pair[1]), None)
            if difference is not None:
                event = screen.one_line(entry.event.event)
                screen.line(f"line {entry.n} ({event}): {screen.style('different decisions', 'bad')}")
                break
            actions += len(decided)
        for remark in run.remarks:
            complain(remark)
        if run.count == 0:
            raise LogError(f"{log}: the log is empty; name a log that planner step has written")
    if difference is None:
        counts = f"{counted(run.count, 'event')}, {counted(actions, 'action')}"
        screen.line(f"{counts}: the same, byte for byte")
    for label, text in zip(("logged", "now"), difference or (), strict=False):
        screen.labelled(label, text[:_MOST_SHOWN], room=8)
    screen.show()
    return Status.OK if difference is None else Status.FOUND
