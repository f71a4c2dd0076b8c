"""``planner step``: the whole engine for a driver in any language, as lines of JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.app import command_app
from planner.cli.arguments import PlanArgument, plan_or_usual
from planner.cli.ending import Status, complain, ends

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from planner.edges.plan_versions import PlanVersions
    from planner.edges.run_session import RunSession
    from planner.engine import State
    from planner.errors import PlannerError

app = command_app()

EPILOG = """\
\b
Each line of standard input is one event, a JSON object with "event" and "at". It is answered with
its actions, one a line, and a last line that holds "state", or "error" if it was refused: then
nothing has changed. Begin with run_started; where the log goes on, with run_resumed.

\b
Exit status
   0  the input has come to its end
   2  wrong usage
   4  the plan, the log or the store cannot be used, or do not fit each other
 130  interrupted
"""


@app.command(epilog=EPILOG)
@ends
def step(
    plan: PlanArgument = None,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log",
            metavar="FILE",
            help="Where the run is kept, and goes on. Default, unless there is a --store: "
            ".planverify/logs/PLAN_ID.jsonl below the root.",
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="URL",
            help="A database that keeps the run, too, and remembers it: a file of SQLite or a URL. "
            "Default, unless there is a --log: .planverify/planverify.db below the root.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="So many todos are worked on at once."),
    ] = None,
    no_validation: Annotated[
        bool,
        typer.Option("--no-validation", help="Carry out a plan though it has errors."),
    ] = False,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="ID", help="The run that is meant, or what a new one is called."),
    ] = None,
    plan_out: Annotated[
        Path | None,
        typer.Option(
            "--plan-out", metavar="FILE", help="Keep the newest version of the plan in this file."
        ),
    ] = None,
) -> int:
    """Drive a plan from outside: events in, actions out, one JSON object a line.

    The run is kept in the log: after a kill the same command goes on where it ended.
    """
    from planner.edges.plan_versions import PlanVersions
    from planner.edges.run_session import RunSession, RunSettings

    plan = plan_or_usual(plan)
    versions = PlanVersions(plan_out, plan) if plan_out is not None else None
    session = RunSession.open(
        RunSettings(
            plan=plan,
            log=log,
            store=store,
            run_id=run,
            jobs=jobs,
            validates=not no_validation,
            watch=None if versions is None else versions.take,
        )
    )
    try:
        if versions is not None:
            versions.keep_off(session.files())
        _answer_all(session, versions)
    finally:
        session.close()
    return Status.OK


def _answer_all(session: RunSession, versions: PlanVersions | None) -> None:
    """Answer each line of standard input until it ends."""
    states = StateLines()
    _tell_beside(session, versions)
    stream = getattr(sys.stdin, "buffer", None)  # there is none where the caller has closed it
    for raw in () if stream is None else _lines(stream):
        if raw.strip():
            _print(_answer(session, raw, states))
            _tell_beside(session, versions)


def _answer(session: RunSession, raw: bytes, states: StateLines) -> Iterator[str]:
    """The lines that answer one event."""
    from planner.edges.event_lines import read_event
    from planner.edges.log_lines import action_text
    from planner.errors import LogError, RefusedEvent

    try:
        actions = session.tell(read_event(raw))
    except (RefusedEvent, LogError) as error:
        yield from map(action_text, session.overheard())
        yield _error(error)
    else:
        yield from map(action_text, session.overheard())
        yield from map(action_text, actions)
        assert session.state is not None  # an event was taken in
        yield states.line(session.state)


def _tell_beside(session: RunSession, versions: PlanVersions | None) -> None:
    """What is for a person, on standard error; the newest plan, in its file."""
    remarks = session.remarks()
    if versions is not None:
        remarks += versions.write()
    for remark in remarks:
        complain(remark)


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines; of one that is too long only the beginning, which is too long still."""
    from planner.edges.event_lines import MAX_EVENT_BYTES

    while raw := stream.readline(MAX_EVENT_BYTES + 1):
        rest = raw
        while rest and not rest.endswith(b"\n"):
            rest = stream.readline(MAX_EVENT_BYTES)
        yield raw


def _print(lines: Iterable[str]) -> None:
    """Write lines, and see that the reader of a pipe has them now."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


class StateLines:
    """Writes states as lines, the todos in the order of the plan."""

    def __init__(self) -> None:
        self._order: tuple[str, ...] = ()

    def line(self, state: State) -> str:
        """The line that ends an answer."""
        held = state.todos  # worked out anew each time that it is asked for
        if len(self._order) != len(held):  # todos come, and never go
            ranked = sorted(held.values(), key=lambda record: record.rank)
            self._order = tuple(record.id for record in ranked)
        todos = {todo_id: held[todo_id].life for todo_id in self._order}
        return json.dumps({"state": {"plan": state.plan_state, "todos": todos}, "seq": state.seq})


def _error(error: PlannerError) -> str:
    from planner.errors import IllegalTransition, RefusedEvent

    if not isinstance(error, RefusedEvent):
        problem, _, remedy = _one_line(str(error)).rpartition("; ")
        told = {"rule": "log", "message": problem or remedy, "remedy": remedy}
    else:
        told = {"rule": error.rule, "message": _one_line(error.problem), "remedy": _one_line(error.remedy)}
    if isinstance(error, IllegalTransition):
        told |= {"from": error.before, "to": error.after, "trigger": error.trigger}
    return json.dumps({"error": told})


def _one_line(text: str) -> str:
    """A message without what moves a cursor or breaks a line: a driver's words may stand in it."""
    from planner.text.sanitizing import clean

    return " ".join(clean(text, limit=2_000).split())
