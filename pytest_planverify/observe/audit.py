"""Audit of a session's effects outside itself, by the interpreter's audit events.

An audit hook can never be removed. It returns immediately for irrelevant events, writes relevant ones
to the journal (each distinct event once), and refuses what the plan denies.

Two questions are decided for each event. What was accessed: connections, processes and writes are read
from the event's arguments by :mod:`pytest_planverify.guards.sandbox_policy`. Who caused it: the stack is
searched for the project's code (section "origin of an event"), so that accesses of pytest, of its plugins
and of this package are neither recorded nor refused.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from _thread import get_ident
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_planverify.guards.sandbox_policy import (
    Reached,
    denies_anything,
    grants_of,
    outside_of,
    readers,
    resolve_path,
    temporary_folders,
)
from pytest_planverify.guards.tamper_observer import judges_at_start
from pytest_planverify.journal import JournalWriter
from pytest_planverify.observe.read_files import ReadFiles
from pytest_planverify.observe.spec import Narrowing, WorkerSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

PLUGIN = "pytest_planverify.plugin"
WORKER_VARIABLE = "PLANVERIFY_SESSION"
"""Environment variable with the spec for an xdist worker, which reads and removes it before loading
conftests.
"""

MOST_EVENTS = 2_000
"""Limit of distinct events that one process records; denied events are recorded beyond it, too."""

_PHASES = {
    "pytest_runtest_setup": "setup",
    "pytest_runtest_call": "call",
    "pytest_runtest_teardown": "teardown",
}
_RUNS_A_TEST = ("pytest_runtest_protocol", "runtestprotocol")
_RUNS_THE_PROJECT = ("runner.py", "python.py", "fixtures.py", "unittest.py", "doctest.py")
"""pytest modules whose hooks call tests and fixtures."""

_TOOLS = ("execnet", "xdist", "coverage", "pytest_cov", "pytest_timeout", "pytest_rerunfailures")
"""Plugins that use processes, threads or files for the session itself."""

_PROJECT, _PYTEST, _PLUGGY, _TOOL, _OURS, _OTHER = range(6)
"""Owners of a file."""

_OUTERMOST = ("run_worker", "_serve_group", "leave_interpreter")
"""Our own functions around a session; frames outside of them belong to whoever started the run."""

Key = tuple[str, str, str | None, str | None, str | None, bool]
"""Members by which events are distinct: kind, target, node id, project file, phase, denied."""


class Audit:
    """State shared between the session and its audit hook."""

    def __init__(self) -> None:
        self.worker = ""
        """Id of the xdist worker that this process is; empty in the controlling process."""
        self.nodeid: str | None = None
        """Node id of the running test, or of the last one."""
        self.files: ReadFiles
        """Files of the project that were read."""


_audit: Audit | None = None


def watch(spec: WorkerSpec) -> Audit:
    """Install the audit hook in this process, for the worker of ``spec``; to be called once."""
    global _audit
    _audit = Audit()
    _install(_audit, spec)
    return _audit


def watching() -> Audit | None:
    """Return this process's audit, or ``None``."""
    return _audit


def watch_worker() -> None:
    """Install the audit hook in this xdist worker, with the spec from the environment."""
    judges_at_start()  # takes the reference state before any conftest can change it
    text = os.environ.pop(WORKER_VARIABLE)
    # Nor are pytest sessions that tests start to load this plugin.
    plugins = os.environ.pop("PYTEST_PLUGINS", "").removesuffix(PLUGIN).removesuffix(",")
    if plugins:
        os.environ["PYTEST_PLUGINS"] = plugins
    if os.environ.get("PYTEST_XDIST_WORKER") and _audit is None:
        watch(WorkerSpec.from_json(text)).worker = os.environ["PYTEST_XDIST_WORKER"]


def _install(audit: Audit, spec: WorkerSpec) -> None:
    """Add the audit hook. All functions that it uses are bound here, unreachable for monkeypatches."""
    # Both as written, like the files of stack frames, and resolved, like the paths of accesses.
    roots = tuple(dict.fromkeys((spec.root, *(each.root for each in spec.sandbox))))
    roots = tuple(dict.fromkeys((*roots, *(resolve_path(root) or root for root in roots))))
    scratch = (str(Path(spec.journal).parent), *_basetemp(spec.args), *temporary_folders())
    origin_of, note = origin_finder(roots), _event_recorder(audit, spec, roots)
    is_granted, strict = grants_of(spec.sandbox), denies_anything(spec.sandbox)
    frame_of, ident, refusal = sys._getframe, get_ident, PermissionError
    main = threading.main_thread().ident
    subprocess = os.path.join(os.path.dirname(os.__file__), "subprocess.py")
    busy: set[int] = set()  # threads that execute the hook

    def record_event(event: str, found: Sequence[Reached]) -> str | None:
        """Record all accesses of an event; return the first denied target, if any."""
        frame = frame_of(2)  # the audited call: past this function and the hook
        if event == "os.posix_spawn" and frame.f_code.co_filename == subprocess:
            return None  # subprocess.Popen has raised an event of its own before
        origin = origin_of(frame)
        if origin is None:
            return None
        # The stack of another thread shows no test: its events belong to the test that runs, or ran last.
        nodeid = audit.nodeid if origin.in_test or ident() != main else None
        refused = None
        for reached in found:
            denied = strict and not is_granted(reached)
            note(reached, origin, nodeid, denied)
            if denied:
                refused = refused or reached.target
        return refused

    def hook(event: str, args: tuple[Any, ...]) -> None:
        # The interpreter raises events of many other kinds, as for each import; those end here.
        reader = reader_of(event)
        if reader is None:
            return
        __tracebackhide__ = True  # the refusal is shown at the line of the test that caused it
        thread = ident()
        # The hook's own file access raises events, too.
        if thread in busy:
            return
        busy.add(thread)
        try:
            if (note := file_handler_of(event)) is not None:
                try:
                    note(args)
                except Exception:  # the file is unknown, but the event is still compared with the grants
                    lose_track()
            found = reader(args)
            refused = record_event(event, found) if found else None
        except Exception:  # invalid arguments: the audited call will raise by itself
            if strict:  # an event that cannot be read must not pass as granted
                raise
            return
        finally:
            busy.discard(thread)
        if refused is not None:
            raise refusal(errno.EACCES, f"the plan denies it: {refused}")

    def no_access(args: tuple[Any, ...]) -> Sequence[Reached]:
        return ()

    table = readers(outside_of([*roots, *(resolve_path(each) or each for each in scratch)]))
    audit.files = ReadFiles(roots)
    notes, lose_track = audit.files.notes(), audit.files.lose_track
    # Events that only matter for the set of read files have a reader that finds no access.
    reader_of, file_handler_of = {**dict.fromkeys(notes, no_access), **table}.get, notes.get
    sys.addaudithook(hook)


def _event_recorder(
    audit: Audit, spec: WorkerSpec, roots: tuple[str, ...]
) -> Callable[[Reached, Origin, str | None, bool], None]:
    """Return a function that records each distinct access once.

    The file of the access is recorded outside of tests only; otherwise the node id leads to it.
    """
    # Unsigned, as forked children of tests write here, too: a forged record could only incriminate its
    # author.
    journal = JournalWriter(spec.journal, spec.worker_id)
    seen: set[Key] = set()

    def note(reached: Reached, origin: Origin, nodeid: str | None, denied: bool) -> None:
        path = origin.path if nodeid is None else None
        root = next((root for root in roots if path is not None and path.startswith(f"{root}/")), None)
        if path is not None and root is not None:
            path = path[len(root) + 1 :]
        key: Key = (reached.kind, reached.target, nodeid, path, origin.phase, denied)
        if key not in seen and (len(seen) < MOST_EVENTS or denied):
            seen.add(key)
            facts = zip(("event", "target", "nodeid", "path", "phase", "denied"), key, strict=True)
            journal.write("audit_event", worker=audit.worker, **dict(facts))

    return note


def spec_for_workers(spec: WorkerSpec) -> str:
    """Return what an xdist worker needs before it loads conftests, as text for an environment variable."""
    return replace(
        spec,
        key="",  # tests can read the environment
        # All that the audit reads of the arguments, see _install()
        args=tuple(f"--basetemp={folder}" for folder in _basetemp(spec.args)),
        selections=(),
        planned=(),
        narrowing=Narrowing(),
    ).to_json()


def _basetemp(args: tuple[str, ...]) -> list[str]:
    """Return the absolute folders of ``--basetemp`` on the command line."""
    found = [args[at + 1] for at, word in enumerate(args[:-1]) if word == "--basetemp"]
    found += [word.partition("=")[2] for word in args if word.startswith("--basetemp=")]
    return [os.path.abspath(folder) for folder in found]


# -- origin of an event --------------------------------------------------------------------------------


class Origin(NamedTuple):
    """The project's code that caused an audit event."""

    in_test: bool
    """Caused during a test's setup, call or teardown."""
    phase: str | None = None
    """``setup``, ``call`` or ``teardown``; ``None`` outside of a test."""
    path: str | None = None
    """Outermost project file on the stack: the test file or conftest that is imported or was called."""


def origin_finder(roots: tuple[str, ...]) -> Callable[[FrameType | None], Origin | None]:
    """Return a function that maps the innermost frame of an event to its :class:`Origin`.

    It returns ``None`` for events that pytest, a plugin or this package caused. The innermost frame of a
    known owner decides. Files below ``roots`` belong to the project, unless they are installed packages.
    Frames outside of the session are ignored.
    """
    # Cached, as the whole stack is walked for each event.
    owners, known = _owners(roots), dict[str, int]()

    def owner_of(file: str) -> int:
        owner = known.get(file)
        if owner is None:
            # A virtual environment may lie below the root; its packages are not the project's.
            installed = "/site-packages/" in file or "/dist-packages/" in file
            candidates = (each for start, each in owners if file.startswith(start))
            owner = next((each for each in candidates if not (each == _PROJECT and installed)), _OTHER)
            known[file] = owner
        return owner

    return partial(_origin, owner_of)


def _origin(owner_of: Callable[[str], int], frame: FrameType | None) -> Origin | None:
    """Walk the stack outwards once and collect everything that :class:`Origin` needs."""
    by_project: bool | None = None
    phase: str | None = None
    path: str | None = None
    in_test = tool = framework = False
    inner: FrameType | None = None
    while frame is not None:
        code = frame.f_code
        owner = owner_of(code.co_filename)
        # Whoever started the run (a shell, or a test of this very package) causes nothing in the session.
        if owner == _OURS and code.co_name in _OUTERMOST:
            break
        if owner == _PROJECT:
            path = code.co_filename
            by_project = True if by_project is None else by_project
        elif owner == _PLUGGY:
            # What pytest calls for the project is the project's even without a frame of it, as a fixture
            # that is a function of a library: the hook is then in one of the modules that run tests.
            if by_project is None and inner is not None:
                file = inner.f_code.co_filename
                runs_project = owner_of(file) == _PYTEST and file.endswith(_RUNS_THE_PROJECT)
                by_project = runs_project and not tool
        elif owner == _TOOL:
            tool = True
        elif owner == _PYTEST:
            framework = True
            name = code.co_name
            if name in _PHASES:
                phase = _PHASES[name]
            in_test = in_test or name in _RUNS_A_TEST
        frame, inner = frame.f_back, frame
    if by_project is None:  # no owner on the stack, as in a thread of the standard library
        by_project = not (tool or framework)
    if not by_project:
        return None
    return Origin(in_test, phase if in_test else None, path)


def _owners(roots: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Return owners by the beginning of a file's path; the first match decides.

    This package comes first, so that it is recognized even below a root of the plan.
    """
    ours = ((f"{_folder('pytest_planverify')}{part}/", _OURS) for part in ("observe", "session"))
    project = ((f"{root.rstrip('/')}/", _PROJECT) for root in roots)
    tools = ((_folder(name), _TOOL) for name in _TOOLS)
    return (*ours, *project, (_folder("_pytest"), _PYTEST), (_folder("pluggy"), _PLUGGY), *tools)


def _folder(name: str) -> str:
    """Return the folder (or file) of a package, imported or installed beside pytest."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if file is None:
        # Not imported yet, as tools are loaded after the hook is installed; looked for where pytest is.
        beside = os.path.dirname(os.path.dirname(str(sys.modules["_pytest"].__file__)))
        return f"{beside}/{name}/" if os.path.isdir(f"{beside}/{name}") else f"{beside}/{name}.py"
    return os.path.dirname(file) + "/" if os.path.basename(file) == "__init__.py" else file
