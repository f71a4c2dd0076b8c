"""Watches what a session reaches for outside itself, by the audit events of the interpreter.

A hook that was added once cannot be removed. It returns at once for the events that tell of nothing of the
kind, writes the others to the journal, each once and how often, and refuses what the plan denies.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
import weakref
from _thread import get_ident
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pytest_planverify.guards.tampering.judges import note_change, watch_functions
from pytest_planverify.journal import JournalWriter
from pytest_planverify.observe.granting import denies_anything, judge_of
from pytest_planverify.observe.origins import Origin, origin_finder
from pytest_planverify.observe.reaching import (
    Reached,
    outside_of,
    path_resolver,
    readers,
    stamp_of,
    temporary_folders,
)
from pytest_planverify.observe.read_files import ReadFiles
from pytest_planverify.observe.spec import Narrowing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_planverify.observe.spec import WorkerSpec

WORKER_VARIABLE = "PLANVERIFY_SESSION"
"""Under which an xdist worker finds its session's spec before it loads conftests; taken out at once."""

MOST_UNCERTAIN = 200
"""So many writes of which it is not known yet where they go are kept in mind."""

MOST_EVENTS = 2_000
"""How many different events one process writes down; what is denied is refused beyond that, too."""

Key = tuple[str, str, str | None, str | None, str | None, bool]


class Audit:
    """What the session tells its hook: which test runs, and which criteria use a fixture."""

    def __init__(self) -> None:
        self.worker = ""
        self.nodeid: str | None = None
        """The test that runs, or that was the last to run."""
        self.flush: Callable[[], None] = lambda: None
        """Write down how often each event was seen by now."""
        self.files: ReadFiles
        """What is read of the project."""


_audit: Audit | None = None


def watch(spec: WorkerSpec) -> Audit:
    """Begin to watch this process."""
    global _audit
    _audit = Audit()
    _install(_audit, spec)
    return _audit


def watching() -> Audit | None:
    """The one of this process, where it is watched."""
    return _audit


def watch_worker() -> None:
    """Begin to watch this xdist worker, whose session's spec is in the environment."""
    from pytest_planverify.guards.tampering.judges import judges_at_start
    from pytest_planverify.observe.spec import WorkerSpec

    judges_at_start()
    text = os.environ.pop(WORKER_VARIABLE)
    if os.environ.get("PYTEST_XDIST_WORKER") and _audit is None:
        watch(WorkerSpec.from_json(text)).worker = os.environ["PYTEST_XDIST_WORKER"]


def _install(audit: Audit, spec: WorkerSpec) -> None:
    """Everything that the hook uses is bound here, where nothing that a test replaces can reach it."""
    roots, writable = _places(spec)
    nodeid_of, remember_thread = _threads(audit)
    origin_of, note = origin_finder(roots), _noting(audit, spec, roots)
    is_granted, strict = judge_of(spec.sandbox), denies_anything(spec.sandbox)
    frame_of, ident, refusal = sys._getframe, get_ident, PermissionError
    busy: set[int] = set()

    def tell(reached: Reached, origin: Origin, nodeid: str | None) -> bool:
        """Returns whether it is denied."""
        denied = strict and not is_granted(reached)
        note(reached, origin, nodeid, denied)
        return denied

    keep_in_mind = _keeping(audit, tell)

    def look(event: str, found: Sequence[Reached]) -> str | None:
        """What is refused of it."""
        frame = frame_of(2)
        if event == "os.posix_spawn" and frame.f_code.co_filename == _SUBPROCESS:
            return None  # it has told of itself already
        origin = origin_of(frame)
        if origin is None:
            return None
        refused = None
        for reached in found:
            if reached.before is not None:
                keep_in_mind(reached, origin, nodeid_of(origin))
            elif tell(reached, origin, nodeid_of(origin)):
                refused = refused or reached.target
        return refused

    def hook(event: str, args: tuple[Any, ...]) -> None:
        reader = read(event)
        if reader is None:
            return
        __tracebackhide__ = True
        thread = ident()
        if thread in busy:
            return
        busy.add(thread)
        try:
            if (note := noting(event)) is not None:
                try:
                    note(args)
                except Exception:  # what it was cannot be told; the call itself is judged all the same
                    unread()
            found = reader(args)
            refused = look(event, found) if found else None
        except Exception:  # odd arguments: the call itself will complain of them
            if strict:
                raise
            return
        finally:
            busy.discard(thread)
        if refused is not None:
            raise refusal(errno.EACCES, f"the plan denies it: {refused}")

    table = readers(outside_of(writable))
    table["_thread.start_new_thread"] = table["_thread.start_joinable_thread"] = remember_thread
    table["object.__setattr__"] = note_change
    audit.files = ReadFiles(roots)
    notes, unread = audit.files.notes(), audit.files.lose_track
    read, noting = {**dict.fromkeys(notes, _nothing), **table}.get, notes.get
    sys.addaudithook(hook)
    watch_functions()


def _nothing(args: tuple[Any, ...]) -> tuple[Reached, ...]:
    """Tell of nothing: the event matters for the files that are read only."""
    return ()


_SUBPROCESS = os.path.join(os.path.dirname(os.__file__), "subprocess.py")


def _places(spec: WorkerSpec) -> tuple[tuple[str, ...], list[str]]:
    """Where the project's files are, and the folders in which everybody may write."""
    resolve = path_resolver()
    roots = tuple(dict.fromkeys((spec.root, *(each.root for each in spec.sandbox))))
    every_root = tuple(dict.fromkeys((*roots, *(resolve(root, -1, True) or root for root in roots))))
    others = (str(Path(spec.journal).parent), *_basetemp(spec.args), *temporary_folders())
    return every_root, [*every_root, *(resolve(each, -1, True) or each for each in others)]


def _threads(
    audit: Audit,
) -> tuple[Callable[[Origin], str | None], Callable[[tuple[Any, ...]], tuple[Reached, ...]]]:
    """What tells the test that is at work in the thread of now, and what is told of threads that start.

    A thread works for the test that started it, also when another one runs by then.
    """
    ident, first, started = (
        get_ident,
        threading.main_thread(),
        weakref.WeakKeyDictionary[Any, "str | None"](),
    )
    # Asking for the current thread by the usual way may make one.
    alive = cast("dict[int, threading.Thread]", threading._active)  # type: ignore[attr-defined]

    def nodeid_of(origin: Origin) -> str | None:
        thread = alive.get(ident())
        if thread is None or thread is first:
            return audit.nodeid if origin.in_test else None
        return started.get(thread, audit.nodeid)

    def remember(args: tuple[Any, ...]) -> tuple[Reached, ...]:
        thread = getattr(args[0], "__self__", None)
        starter = alive.get(ident())
        if isinstance(thread, threading.Thread):
            started[thread] = audit.nodeid if starter is None else started.get(starter, audit.nodeid)
        return ()

    return nodeid_of, remember


def _keeping(
    audit: Audit, tell: Callable[[Reached, Origin, str | None], bool]
) -> Callable[[Reached, Origin, str | None], None]:
    """What keeps in mind what may be a write, until the time after tells whether it was one."""
    uncertain: deque[tuple[Reached, Origin, str | None]] = deque()
    flush = audit.flush

    def settle_oldest() -> None:
        reached, origin, nodeid = uncertain.popleft()
        if stamp_of(reached.target) != reached.before:  # a file that was not there is one now
            tell(reached, origin, nodeid)

    def flush_all() -> None:
        while uncertain:
            settle_oldest()
        flush()

    def keep(reached: Reached, origin: Origin, nodeid: str | None) -> None:
        if len(uncertain) >= MOST_UNCERTAIN:
            settle_oldest()
        uncertain.append((reached, origin, nodeid))

    audit.flush = flush_all
    return keep


def _noting(
    audit: Audit, spec: WorkerSpec, roots: tuple[str, ...]
) -> Callable[[Reached, Origin, str | None, bool], None]:
    """What writes events down: the first of equal ones at once, how many there were in the end."""
    journal, pid = _Journal(spec), os.getpid
    counts: dict[Key, int] = {}
    repeated: set[Key] = set()

    def relative(path: str | None) -> str | None:
        root = next((root for root in roots if path is not None and path.startswith(f"{root}/")), None)
        return path if root is None or path is None else path[len(root) + 1 :]

    def note(reached: Reached, origin: Origin, nodeid: str | None, denied: bool) -> None:
        path = None if nodeid is not None and origin.fixture is None else relative(origin.path)
        key: Key = (reached.kind, reached.target, nodeid, path, origin.phase, denied)
        if key in counts:
            counts[key] += 1
            repeated.add(key)
            return
        if len(counts) >= MOST_EVENTS and not denied:
            return
        counts[key] = 1
        write(key)

    def write(key: Key) -> None:
        kind, target, nodeid, path, phase, denied = key
        journal.write(
            worker=audit.worker,
            pid=pid(),
            event=kind,
            target=target,
            nodeid=nodeid,
            path=path,
            phase=phase,
            denied=denied,
            count=counts[key],
        )

    def flush() -> None:
        while repeated:
            write(repeated.pop())

    audit.flush = flush
    return note


class _Journal:
    """The run's journal, opened again where what ran has closed it.

    Not signed: children that a test forks write there, too, and nothing is gained by what is made up.
    """

    def __init__(self, spec: WorkerSpec) -> None:
        self._open = lambda: JournalWriter(spec.journal, spec.worker_id)
        self._writer = self._open()
        self._same = os.fstat(self._writer.descriptor)[1:3]
        self._dumps, self._fstat = json.dumps, os.fstat

    def write(self, **facts: object) -> None:
        try:
            lost = self._fstat(self._writer.descriptor)[1:3] != self._same
        except OSError:
            lost = True
        if lost:
            self._writer = self._open()
            self._same = self._fstat(self._writer.descriptor)[1:3]
        self._writer.write_raw("audit_event", self._dumps(facts, default=str)[1:-1])


def spec_for_workers(spec: WorkerSpec) -> str:
    """Return what a worker of pytest-xdist must know before it loads a conftest, fit for a variable."""
    return replace(
        spec,
        key="",  # a variable is there for everybody to read
        args=tuple(f"--basetemp={folder}" for folder in _basetemp(spec.args)),
        selections=(),
        planned=(),
        narrowing=Narrowing(),
    ).to_json()


def _basetemp(args: tuple[str, ...]) -> list[str]:
    """The folder that the command line names for the tests' temporary folders."""
    found = [args[at + 1] for at, word in enumerate(args[:-1]) if word == "--basetemp"]
    found += [word.partition("=")[2] for word in args if word.startswith("--basetemp=")]
    return [os.path.abspath(folder) for folder in found]
