"""One run of a plan as a driver sees it: tells the engine events, and keeps them in the log.

Wires the plan file, validation, the engine, the log and the store. What happens in what order when an event
is told: what other writers have written is folded first; the event is completed by what only files tell;
the engine takes it in or refuses it; it is written and on the disk; then the state is the new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from planner.edges.run_completing import EventCompleter, problems_of
from planner.edges.run_log import RunLog, Taken
from planner.edges.usual_log import log_to_go_on, make_room
from planner.engine import advance, start, step
from planner.errors import LogError, RefusedEvent, StoreError
from planner.model.events import PlanSubmitted
from planner.model.past import PastRecords
from planner.model.run_policy import RunPolicy
from planner.planfile.loader import collector_paused, shown_path
from planner.planfile.project_facts import configured_tools
from planner.planfile.tree import PlanTree, load_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from planner.edges.run_log import Entry
    from planner.edges.store_log import StoreLog
    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event


class Journal(Protocol):
    """Where the lines of a run are kept: a file, or the store."""

    count: int
    remarks: list[str]

    @property
    def name(self) -> str:
        """How messages call it."""
        ...

    def hold(self) -> AbstractContextManager[None]:
        """Keep other writers out, where that is how they are kept apart."""
        ...

    def news(self) -> Iterator[Entry]:
        """The lines that were written since."""
        ...

    def append(self, taken: Taken) -> Entry | None:
        """Write the next line; ``None`` where another writer was first."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What the operator says about a run."""

    plan: Path
    log: Path | None = None
    store: str | None = None
    run_id: str | None = None
    jobs: int | None = None
    validates: bool = True
    watch: Callable[[Event, tuple[Action, ...]], None] | None = None
    """Is told each event that was taken in, with its actions, those of earlier processes too."""


class RunSession:
    """A run that goes on where its log ends."""

    def __init__(
        self, tree: PlanTree, settings: RunSettings, log: RunLog | None, store: StoreLog | None
    ) -> None:
        self.state: State | None = None
        """Nothing before the first event: the plan is submitted at its time."""
        self.run_id = settings.run_id
        self._tree = tree
        self._settings = settings
        journal: Journal | None = store if log is None else log
        assert journal is not None  # one of them is always there
        self._journal = journal
        self._store = store
        self._copies = log is not None and store is not None
        self._completer = EventCompleter(tree, settings.validates)
        self._overheard: list[Action] = []

    @classmethod
    def open(cls, settings: RunSettings) -> RunSession:
        """Load the plan, and fold what the log holds. Raises :class:`planner.errors.PlannerError`."""
        tree = load_tree(settings.plan)
        session = cls(tree, settings, *_journals(settings, tree))
        try:
            with session._journal.hold(), collector_paused():
                session._catch_up(quietly=session._store is None and settings.watch is None)
        except BaseException:
            session.close()
            raise
        session._overheard.clear()  # they were answered then
        return session

    def close(self) -> None:
        """Let go of the log and of the store."""
        self._journal.close()
        if self._store is not None and self._copies:
            self._store.close()

    def tell(self, event: Event) -> tuple[Action, ...]:
        """Take an event in, and return what it calls for.

        Raises :class:`planner.errors.RefusedEvent`, and :class:`planner.errors.LogError` where it cannot be
        written; then nothing has changed.
        """
        while True:
            with self._journal.hold():
                self._catch_up()
                actions = self._submitted(event) and self._taken(event)
            if actions is not None:
                return actions

    def files(self) -> tuple[Path, ...]:
        """Where the run is kept, as far as that are files that were named or chosen here."""
        found = [self._journal.path] if isinstance(self._journal, RunLog) else []
        if self._store is not None:
            place = self._settings.store or str(self._tree.loaded.root / ".planverify" / "planverify.db")
            found += [Path(place.removeprefix("sqlite:///"))]
        return tuple(found)

    def overheard(self) -> tuple[Action, ...]:
        """What was called for since this was last asked, but not by the events that were told here."""
        actions = tuple(self._overheard)
        self._overheard.clear()
        return actions

    def remarks(self) -> list[str]:
        """What a person should know about the log, each once."""
        told = list(self._journal.remarks)
        self._journal.remarks.clear()
        if self._store is not None:
            told += self._store.remarks
            self._store.remarks.clear()
        return told

    def _submitted(self, first: Event) -> State | None:
        """The state, of a plan that is submitted now where it was not; ``None`` if another was first.

        Raises :class:`planner.errors.RefusedEvent` where a fit plan cannot begin with that event.
        """
        if self.state is None:
            event = self._submission(first.at)
            state, actions = start(event)
            if not state.plan_state.is_final:  # else what is wrong with the plan is to be told
                advance(state, first)
            if not self._append(Taken(event, actions, None, state)):
                return None
            self._overheard += actions
        return self.state

    def _taken(self, event: Event) -> tuple[Action, ...] | None:
        assert self.state is not None  # it was submitted
        full = self._completer.completed(event, self.state)
        after, actions = step(self.state, full)
        return actions if self._append(Taken(full, actions, self.state, after)) else None

    def _append(self, taken: Taken) -> bool:
        entry = self._journal.append(taken)
        if entry is None:
            return False
        self._keep(entry, taken)
        return True

    def _catch_up(self, *, quietly: bool = False) -> None:
        """Fold what others have written; ``quietly`` leaves out what it called for."""
        for entry in self._journal.news():
            if entry.n == 0:
                self._recognise(entry.event)
            before = self.state
            actions: tuple[Action, ...] = ()
            try:
                if isinstance(entry.event, PlanSubmitted) or before is None:
                    after, actions = start(_first(entry.event))
                elif quietly:
                    after = advance(before, entry.event)
                else:
                    after, actions = step(before, entry.event)
            except RefusedEvent as error:
                raise self._error(
                    f"line {entry.n} holds an event that this version refuses: {error.problem}",
                    "go on with the version that wrote the log",
                ) from None
            self._overheard += actions
            self._keep(entry, Taken(entry.event, actions, before, after))

    def _keep(self, entry: Entry, taken: Taken) -> None:
        self.state = taken.after
        if self._store is not None:
            self._store.notice(taken)
            if self._copies:
                self._store.copy(entry, taken)
        if self._settings.watch is not None:
            self._settings.watch(taken.event, taken.actions)

    def _submission(self, at: datetime) -> PlanSubmitted:
        """The plan as it is submitted at that time, with all that decisions rest on."""
        from planner.edges.fingerprint import repository_fingerprint

        loaded, settings = self._tree.loaded, self._settings
        mark = repository_fingerprint(loaded.root, loaded.plan)
        problems: tuple[str, ...] = ()
        if settings.validates:
            problems = tuple(problems_of(loaded.path, self._tree.boundary, at.date().isoformat()))
        tools = tuple(sorted(configured_tools(loaded.root)))
        past = PastRecords(fingerprint=mark) if self._store is None else self._store.past(mark, at)
        self.run_id = self._new_run_id(at)
        return PlanSubmitted(
            at=at,
            plan=loaded.plan,
            digest=loaded.digest,
            path=shown_path(loaded.path),
            problems=problems,
            policy=RunPolicy(jobs=settings.jobs, tools=tools, fingerprint=mark),
            memory=past,
            run_id=self.run_id,
        )

    def _new_run_id(self, at: datetime) -> str:
        """The same for the same plan and the same beginning, so that equal runs have equal logs."""
        wanted = self._settings.run_id
        if wanted is None:
            digits = self._tree.loaded.digest.rpartition(":")[2][:6]
            wanted = f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}-{digits}"
            return wanted if self._store is None else self._store.free_id(wanted)
        if self._store is not None and self._store.free_id(wanted) != wanted:
            raise self._error(
                f"the store holds a run '{wanted}', and the log is empty",
                "restore the log, leave --log out to go on from the store, or name another --run",
            )
        return wanted

    def _recognise(self, event: Event) -> None:
        """Refuse the log of another plan, of another version of this one, or of another run."""
        first, loaded = _first(event), self._tree.loaded
        shown = shown_path(loaded.path)
        if first.plan.todo_list_id != loaded.plan.todo_list_id:
            raise self._error(
                f"this is the log of the plan '{first.plan.todo_list_id}', and {shown} is "
                f"'{loaded.plan.todo_list_id}'",
                "name another log with --log",
            )
        if first.digest != loaded.digest:
            raise self._error(
                f"{shown} has changed since the run began ({_short(first.digest)} then, "
                f"{_short(loaded.digest)} now)",
                "put it back as it was and tell changes as plan_revised, or begin another run with --run "
                "NAME or another --log",
            )
        if self.run_id is not None and first.run_id != self.run_id:
            raise self._error(
                f"this is the log of the run '{first.run_id}', not of '{self.run_id}'",
                "leave --run out, or name another log with --log",
            )
        self.run_id = first.run_id
        jobs, begun = self._settings.jobs, first.policy.jobs
        if jobs is not None and jobs != begun:
            with_what = "without --jobs" if begun is None else f"with --jobs {begun}"
            self._journal.remarks.append(
                f"{self._journal.name}: the run was begun {with_what}, and goes on so"
            )

    def _error(self, problem: str, remedy: str) -> LogError:
        return LogError(f"{self._journal.name}: {problem}; {remedy}")


def _journals(settings: RunSettings, tree: PlanTree) -> tuple[RunLog | None, StoreLog | None]:
    """The log file and the store that are wanted: at least one."""
    store = None
    if settings.store is not None:
        from planner.edges.store_log import StoreLog

        store = StoreLog(settings.store, tree.loaded, settings.run_id)
    if settings.log is not None:
        return RunLog.append_to(settings.log), store
    if store is not None:
        return None, store
    log = log_to_go_on(tree.loaded, settings.run_id)
    make_room(log)
    run = RunLog.append_to(log)
    return run, _usual_store(run, settings, tree)


def _usual_store(run: RunLog, settings: RunSettings, tree: PlanTree) -> StoreLog | None:
    """The store below the plan's root, for a run that nobody has said where to keep.

    One that cannot be used is told of, and the run is kept in its log alone.
    """
    from planner.edges.store import USUAL
    from planner.edges.store_log import StoreLog

    try:
        return StoreLog(str(tree.loaded.root / USUAL), tree.loaded, settings.run_id)
    except StoreError as error:
        run.remarks.append(f"{error}; the run is kept in {run.path} alone, and nothing is remembered of it")
        return None


def _first(event: Event) -> PlanSubmitted:
    assert isinstance(event, PlanSubmitted)  # the log refuses any other first line
    return event


def _short(digest: str) -> str:
    return digest[: len("sha256:") + 12]
