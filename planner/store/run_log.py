"""Log of one run, ``.planverify/logs/{plan}.jsonl``: its lines, its files, and its replay.

::

    {"n":1,"event":{"event":"run_started",…},"actions":[{"action":"implement",…}],"digest":"sha256:…"}

Each line has one event and the actions that the engine decided on it; the first has the number 0 and
contains a ``plan_submitted``. The state is not stored: it is folded from the events. Lines are JSON in
ASCII, and serialization is deterministic: a replay compares actions with those of the log byte for byte.
Several processes may append, and any may be killed meanwhile: see :mod:`planner.store.chain`.
"""

from __future__ import annotations

import json
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError

from planner.engine import start, step
from planner.errors import LogError, RefusedEvent
from planner.model.base import ReadValue, Value
from planner.model.events import Event, PlanSubmitted, SubPlanLoaded
from planner.model.outcome import Outcome
from planner.planfile.loader import shown_path
from planner.planfile.locks import is_running
from planner.planfile.plan_folder import HOME, file_name, make_home
from planner.planfile.project_files import open_regular, read_regular
from planner.planfile.writer import plain
from planner.store.chain import ChainedFile, log_error
from planner.text.redaction import redact
from planner.text.sanitizing import one_line, without_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from planner.engine import State
    from planner.model.actions import Action
    from planner.planfile.loader import LoadedPlan
    from planner.store.chain import LogEntry

FOLDER = f"{HOME}/logs"
"""Folder of a plan's logs, below the plan's root."""

INTERRUPTED = "interrupted"
"""State that is shown of a run without an end, in whose place another one has begun."""

_TAIL_BYTES = 4 * 1024 * 1024
"""Size of the end of a log that :func:`is_over` reads."""
_ENDS = ("finish", "halt")
"""Actions that end a run."""

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Limit in bytes of one line that a driver sends."""

_LONGEST = 600
"""Limit in characters of a message to a driver."""


class LogLine(ReadValue):
    """The parsed part of a line. Its actions are not parsed, as a fold computes them again."""

    event: Event


# Built on first use: the schemas of all events would make every import slower.
_EVENTS: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))

# -- the lines of a log --------------------------------------------------------------------------------


def body(n: int, event: Event, actions: Iterable[Action]) -> str:
    """Return line ``n`` without its digest, as :meth:`planner.store.chain.ChainedFile.write` takes it."""
    serialized = ",".join(map(action_text, actions))
    return f'{{"n":{n},"event":{event_text(event)},"actions":[{serialized}]'


def parse_line(text: str, n: int) -> Event:
    """Return the event of line ``n``. Raises :class:`planner.errors.LogError` if it is invalid."""
    try:
        return LogLine.model_validate_json(text).event
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the line"
        raise LogError(f"line {n} cannot be read: {where}: {first['msg']}") from None


def action_text(action: Action) -> str:
    """Serialize an action, without values that are ``None``; equal actions give equal texts."""
    return _compact({"action": action.action, **plainly(action)})


def event_text(event: Event) -> str:
    """Serialize an event; :func:`parse_event` returns an equal event."""
    return _compact({"event": event.event, **plainly(event)})


def logged_actions(text: str) -> list[str]:
    """Return the actions of a line, each as JSON text like that of :func:`action_text`.

    Raises :class:`planner.errors.LogError` for a line without a list of actions, which no program wrote.
    """
    try:
        return [_compact(each) for each in json.loads(text)["actions"]]
    except (ValueError, LookupError, TypeError):
        raise LogError(f"a line has no actions: {one_line(text, limit=_LONGEST)}; use a copy") from None


def parse_event(text: str) -> Event:
    """Parse an event. Raises pydantic's ``ValidationError``, a ``ValueError``, if it is invalid."""
    return _EVENTS.validate_json(text)


def without_secrets(event: Event) -> Event:
    """Return the event with secrets and lone surrogates removed from its texts: none is written to the log.

    Events with plans are returned unchanged: plans are in their files anyway, and their digest covers every
    byte.
    """
    if isinstance(event, PlanSubmitted | SubPlanLoaded):
        return event
    # As JSON, where every text is found the same way, in whatever field of whatever event.
    content = json.loads(event_text(event))
    redacted = _redacted(content)
    return event if redacted == content else parse_event(json.dumps(redacted))


_IDENTIFIER_KEYS = frozenset(
    ("event", "at", "todo_id", "plan", "id", "question_id", "approval_id", "signature")
)
"""Keys whose values are identifiers: they cannot contain secrets, and redacting them would break links."""


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        # A lone surrogate, of an argument that is not UTF-8, could not be read again.
        return redact(without_surrogates(value))
    if isinstance(value, list):
        return [_redacted(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {
            name: item if name in _IDENTIFIER_KEYS else _redacted(item) for name, item in members.items()
        }
    return value


def _compact(value: Any) -> str:
    """Return JSON in ASCII, on one line without blanks."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def plainly(value: Any) -> Any:
    """Return a value as JSON data without ``None`` members; plans and todos are as in plan files.

    Of outcomes, the values that were set are kept, even if they are ``None`` or a default.
    """
    if isinstance(value, Outcome):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, ReadValue):
        members = ((name, getattr(value, name)) for name in type(value).model_fields)
        return {name: plainly(item) for name, item in members if item is not None}
    if isinstance(value, Value):
        return plain(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [plainly(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, dict):
        return {str(name): plainly(item) for name, item in cast("dict[Any, Any]", value).items()}
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value


# -- the lines of a driver -----------------------------------------------------------------------------

_START = '{"event": "run_started", "at": "2026-01-31T09:30:00Z"}'


def read_event(raw: bytes) -> Event:
    """Parse a line that a driver sent. Raises :class:`planner.errors.RefusedEvent` if it is no event."""
    if len(raw) > MAX_EVENT_BYTES:
        problem = f"the line is longer than {MAX_EVENT_BYTES >> 20} MiB"
        raise RefusedEvent("unfit-event", problem, "split the event")
    try:
        # Some programs begin their output with a byte order mark.
        return _EVENTS.validate_json(raw.removeprefix(b"\xef\xbb\xbf"))
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)[:3]
        quoted = "; ".join(": ".join([*map(str, each["loc"]), each["msg"]]) for each in errors)
        remedy = f"planner schema event shows the fields of events; write one on a line, like {_START}"
        raise RefusedEvent("unfit-event", one_line(quoted, limit=_LONGEST), remedy) from None


# -- the file --------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """An applied event, with its actions and the states before and after."""

    event: Event
    actions: tuple[Action, ...]
    before: State | None
    after: State

    @classmethod
    def take(cls, before: State | None, event: Event) -> Step:
        """Apply an event; ``before`` is ``None`` for the event that submits the plan.

        Raises :class:`planner.errors.RefusedEvent`.
        """
        if before is None:
            assert isinstance(event, PlanSubmitted)  # the log refuses any other first line
            after, actions = start(event)
        else:
            after, actions = step(before, event)
        return cls(event, actions, before, after)


class RunLog(ChainedFile):
    """The log of one run. Open it by :meth:`append_to` or :meth:`read`."""

    first_key = '"event":{"event":"'

    def append(self, *steps: Step | tuple[Event, tuple[Action, ...]]) -> None:
        """Append events with their actions, and sync them to disk.

        The caller is in :meth:`hold` and has read all lines. Raises :class:`planner.errors.LogError` if
        that fails; the log is unchanged then.
        """
        self.write([body(self.count + at, step[0], step[1]) for at, step in enumerate(steps)])

    def parse(self, text: str) -> Event:
        """Return the event of the next line. Raises ``LogError``; only the first line may submit a plan."""
        event = parse_line(text, self.count)
        if (event.event == "plan_submitted") != (self.count == 0):
            raise LogError(
                f"line {self.count} has {event.event}: only the first line of a run has plan_submitted"
            )
        return event

    def steps(self, state: State | None) -> Iterator[Step]:
        """Apply the events written since the last read to ``state``; yield each step.

        ``state`` is ``None`` if nothing was read before. Raises :class:`planner.errors.LogError` if a line
        is damaged, or if this version of the engine refuses its event.
        """
        for entry in self.entries():
            try:
                taken = Step.take(state, entry.event)
            except RefusedEvent as error:
                problem = f"line {entry.n} has an event that this version refuses: {error.problem}"
                raise log_error(self.path, problem, "use the version that wrote the log") from None
            state = taken.after
            yield taken


class RecordedRun(NamedTuple):
    """A run whose steps can be iterated once; ``remarks`` is complete afterwards."""

    steps: Iterator[Step]
    """Raises :class:`planner.errors.LogError` if the log cannot be read or folded further."""
    remarks: list[str]
    is_superseded: bool = False
    """Whether a later log of the same plan exists, so that nobody continues the run."""

    def state_name(self, last: State) -> str:
        """Return the state after the run, :data:`INTERRUPTED` if it has no end and gets none any more."""
        is_left = self.is_superseded and not last.plan_state.is_final
        return INTERRUPTED if is_left else last.plan_state.value


def run_of_log(path: Path) -> RecordedRun:
    """Return the run of a log file.

    The file is opened on iteration: :class:`planner.errors.LogError` is raised by the steps, also for an
    empty log.
    """
    remarks: list[str] = []

    # Opened on iteration, so that a caller meets all errors of a log in one place.
    def steps() -> Iterator[Step]:
        with RunLog.read(path) as log:
            yield from log.steps(None)
            remarks.extend(log.remarks)
            if log.count == 0:
                raise LogError(f"{shown_path(path)}: the file is empty; name the log of a run")

    return RecordedRun(steps(), remarks, is_superseded(path))


def replay(log: RunLog) -> Iterator[tuple[LogEntry, list[str]]]:
    """Yield each line of a log with the actions that this version of the engine decides, as JSON.

    The actions of the line are those of :func:`logged_actions`. For an event that the
    engine refuses now, the reason stands in the place of the actions, and the iteration ends. Raises
    :class:`planner.errors.LogError` at a damaged line.
    """
    # Line by line, so that the memory used does not grow with the log.
    state = None
    for entry in log.entries():
        try:
            taken = Step.take(state, entry.event)
        except RefusedEvent as error:
            yield entry, [f"the event is refused: {error}"]
            return
        yield entry, [*map(action_text, taken.actions)]
        state = taken.after


# -- where logs are -------------------------------------------------------------------------------------


def log_to_continue(loaded: LoadedPlan) -> Path:
    """Return the log for a run to append to: the plan's newest, or a new one if that run is finished.

    Creates the folder. Raises :class:`planner.errors.LogError`.
    """
    log = plan_logs(loaded)[-1]
    if is_over(log):
        log = next_log(loaded)
    make_log_folder(log)
    return log


def make_log_folder(log: Path) -> None:
    """Create the folder of a log, below a ``.planverify`` that version control ignores.

    Raises :class:`planner.errors.LogError`.
    """
    folder = log.parent
    try:
        make_home(folder.parent.parent)
        # For the owner alone, as logs quote the output of commands.
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        problem = f"the folder for the log cannot be made ({error.strerror})"
        raise log_error(folder, problem, "make its parent folder writable") from None


def plan_logs(loaded: LoadedPlan) -> list[Path]:
    """Return the paths of a plan's logs, oldest first.

    The first, ``shop.jsonl``, need not exist; the further ones, ``shop.2.jsonl`` and so on, do.
    """
    logs = [loaded.root / FOLDER / f"{file_name(loaded.plan.todo_list_id)}.jsonl"]
    while (later := logs[0].with_name(f"{logs[0].stem}.{len(logs) + 1}.jsonl")).is_file():
        logs.append(later)
    return logs


def next_log(loaded: LoadedPlan) -> Path:
    """Return the path for the log of a new run, which does not exist yet."""
    logs = plan_logs(loaded)
    return logs[0].with_name(f"{logs[0].stem}.{len(logs) + 1}.jsonl")


def is_superseded(log: Path) -> bool:
    """Return whether a later log of the same plan exists: only the newest one is continued."""
    stem, _, number = log.stem.rpartition(".")
    # The log of a plan ``release-1.2`` ends in a number, too, and is the first one.
    if not (number.isdecimal() and log.with_name(f"{stem}.jsonl").exists()):
        stem, number = log.stem, "1"
    return log.with_name(f"{stem}.{int(number) + 1}.jsonl").exists()


def turn_is_alive(log: Path) -> bool | None:
    """Return whether the ``planverify run`` that writes a log is in a turn; ``None`` if no turn has begun.

    ``False`` means that the process ended before the turn did, so that the files are half changed.
    """
    harness = log.parent.parent / "harness"
    if not (harness / log.stem / "turn.json").exists():
        return None
    try:
        pid, started, run = json.loads(read_regular(harness / "driver.json"))
        return run == log.stem and is_running(pid, started)
    except (OSError, ValueError, TypeError, RecursionError):
        return False


def is_over(log: Path) -> bool:
    """Return whether a log's last action ends its run; ``False`` if that cannot be read.

    Reads only the last 4 MiB, and verifies no digest.
    """
    try:
        with open_regular(log) as file:
            file.seek(max(log.stat().st_size - _TAIL_BYTES, 0))
            last: Any = json.loads(file.read().splitlines()[-1])
        return last["actions"][-1]["action"] in _ENDS
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False
