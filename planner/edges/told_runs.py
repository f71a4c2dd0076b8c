"""Runs to be told of or counted: their logs folded step by step, from files or from a store."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from planner.edges.log_lines import GENESIS, calls_for, decode
from planner.edges.run_log import RunLog, Taken
from planner.engine import start, step
from planner.errors import LogError, RefusedEvent, StoreError
from planner.model.events import PlanSubmitted
from planner.planfile.loader import shown_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from planner.edges.store import Store
    from planner.engine import State
    from planner.model.events import Event

_FIRST_BYTES = b'{"n":0,"event":'


class ToldRun:
    """One run that can be gone through once. ``remarks`` is complete when that is over."""

    def __init__(self, name: str, steps: Iterator[Taken], remarks: list[str]) -> None:
        self.name = name
        """How messages call it."""
        self.steps = steps
        """Each event, what it called for, and the states around it. Raises ``LogError`` where that ends."""
        self.remarks = remarks


def run_of_log(path: Path) -> ToldRun:
    """The run whose log that file is. Raises :class:`planner.errors.LogError` when it is gone through."""
    name, remarks = shown_path(path), list[str]()
    return ToldRun(name, _folded(name, _lines_of_log(path, remarks), remarks), remarks)


def run_of_store(store: Store, run_id: str) -> ToldRun:
    """A run of a store. Raises :class:`planner.errors.StoreError` where the store has none of that id."""
    name, remarks = f"run {run_id} of {store.name}", list[str]()
    return ToldRun(name, _folded(name, _lines_of_store(store, run_id, name), remarks), remarks)


def is_log(path: Path) -> bool:
    """Whether a file begins as the log of a run does."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return False
        with path.open("rb") as file:
            return file.read(len(_FIRST_BYTES)) == _FIRST_BYTES
    except OSError:
        return False


class _Read(NamedTuple):
    n: int
    event: Event
    text: str


def _lines_of_log(path: Path, remarks: list[str]) -> Iterator[_Read]:
    with closing(RunLog.read(path)) as log:
        for entry in log.news():
            yield _Read(entry.n, entry.event, entry.text)
        remarks += log.remarks


def _lines_of_store(store: Store, run_id: str, name: str) -> Iterator[_Read]:
    digest = GENESIS
    for n, text in enumerate(store.lines(run_id)):
        try:
            line = decode(text, n, digest)
        except LogError as error:
            raise StoreError(
                f"{name}: {error}; go on from the log file of the run, in a new store"
            ) from None
        digest = line.digest
        yield _Read(n, line.event, text)


def _folded(name: str, lines: Iterable[_Read], remarks: list[str]) -> Iterator[Taken]:
    state: State | None = None
    for read in lines:
        before, event = state, read.event
        try:
            if isinstance(event, PlanSubmitted) or before is None:
                if not isinstance(event, PlanSubmitted):
                    raise LogError(f"{name}: the first line holds no plan_submitted; name the log of a run")
                state, actions = start(event)
            else:
                state, actions = step(before, event)
        except RefusedEvent as error:
            raise LogError(
                f"{name}: line {read.n} holds an event that this version refuses: {error.problem}; read it "
                "with the version that wrote the log"
            ) from None
        if not remarks and not calls_for(read.text, actions):
            remarks.append(
                f"{name}: line {read.n} holds other actions than this version decides; what is told from "
                "there on is what it decides, and planner replay shows the difference"
            )
        yield Taken(event, actions, before, state)
    if state is None:
        raise LogError(f"{name}: there is nothing in it; name the log of a run")
