"""Log of one run, ``.planverify/logs/{plan}.jsonl``, and its replay.

Each line has one event and the actions that the engine decided on it. The state is not stored: it is
folded from the events. Several processes may append, and any may be killed meanwhile: see
:mod:`planner.store.chain`. The format of lines is in :mod:`planner.store.lines`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.engine import start, step
from planner.errors import LogError, RefusedEvent
from planner.model.events import PlanSubmitted
from planner.planfile.loader import shown_path
from planner.planfile.plan_folder import HOME, file_name, make_home
from planner.store.chain import ChainedFile, log_error
from planner.store.lines import action_text, body, parse_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event
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

    The actions of the line are those of :func:`planner.store.lines.logged_actions`. For an event that the
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
        raise log_error(
            folder, problem, "make its parent folder writable, or name a file with --log"
        ) from None


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


def is_over(log: Path) -> bool:
    """Return whether a log's last action ends its run; ``False`` if that cannot be read.

    Reads only the last 4 MiB, and verifies no digest.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - _TAIL_BYTES, 0))
            last: Any = json.loads(file.read().splitlines()[-1])
        return last["actions"][-1]["action"] in _ENDS
    except (OSError, ValueError, LookupError, TypeError):
        return False
