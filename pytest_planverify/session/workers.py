"""Workers for commands: their specs, the pool of servers that fork them, and the watcher of each worker.

:class:`Workers` builds the spec of a command's worker and starts it: forked by a server of the
:class:`WarmPool`, or cold in a new interpreter (:mod:`.cold`) where forking is off or has failed too often.
A :class:`Watcher` follows the worker's journal into a :class:`~.records.WorkerRecord` and ends the worker
when its time limit has passed.

The pool learns from run to run: it caches per group which third-party modules workers import, so that
servers preload them, and how far a server can prepare pytest before it forks.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shlex
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from inspect import signature
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from _pytest.config.findpaths import determine_setup
from pydantic import BaseModel, Field, ValidationError

from planner.catalog.pytest_arguments import close_options, parse_pytest_arguments, split_options
from planner.errors import CommandSyntaxError, FileWriteError
from planner.model.evidence import ProcessEnd
from planner.model.verdicts import Isolation
from planner.planfile.discovery import INI_FILES
from planner.planfile.file_writer import replace_file
from planner.planfile.project_files import open_regular, read_regular
from pytest_planverify.checks.processes import (
    AwakeClock,
    end_descendants,
    end_process_tree,
    is_alive,
    signal_name,
)
from pytest_planverify.checks.result import file_of
from pytest_planverify.guards.sandbox_policy import Sandbox
from pytest_planverify.journal import JournalTail, is_signed
from pytest_planverify.observe.redaction import without_secrets
from pytest_planverify.observe.spec import (
    HARMLESS_PLUGINS,
    PRELOADED,
    CannotServe,
    Level,
    Start,
    WorkerSpec,
)
from pytest_planverify.observe.supervision import PHASE_NAMES, SIGNAL, SLOTS, prepare_board
from pytest_planverify.reports.reporters import (
    GivenOptions,
    confirmation_start,
    options_for,
    relay_file,
    worker_start,
)
from pytest_planverify.session.cold import start_cold
from pytest_planverify.session.fork_server import Exited, ForkServerDied
from pytest_planverify.session.records import Death, RunningTest, TestRecord, WorkerRecord
from pytest_planverify.session.run_folder import clear_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from planner.catalog.pytest_arguments import GivenOption
    from planner.planfile.loader import LoadedPlan
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.journal import Record
    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.session.fork_server import ForkServer, Server, Worker
    from pytest_planverify.session.plans import RunFacts
    from pytest_planverify.session.run_folder import RunFolder
    from pytest_planverify.session.schedule import Job


MOST_ATTEMPTS = 6
"""Attempts to run a command in a forked worker, which may fail to start or ask to be replaced.

After that the command is run in a cold worker.
"""

MOST_SERVERS = 16
"""Number of groups whose servers are kept; each takes about 20 MB while it is idle."""

_EARLY_HOOKS = re.compile(r"\bdef\s+pytest_(addoption|load_initial_conftests|cmdline_parse|cmdline_main)\b")
_START_HOOKS = re.compile(
    r"\bdef\s+pytest_(configure|sessionstart|plugin_registered)\b|^pytest_plugins\b", re.MULTILINE
)


class _Learned(BaseModel):
    """Knowledge about a group of commands with an equal start."""

    level: Level = Level.STARTED
    modules: list[str] = Field(default_factory=list[str])
    learns: bool = True
    """Whether modules are added; ``False`` once a preloaded module may have done harm."""


class _Knowledge(BaseModel):
    """The cache file: what this run and earlier ones have learned."""

    version: Literal[1] = 1
    groups: dict[str, _Learned] = Field(default_factory=dict[str, _Learned])
    """By a digest of the start."""
    refused: list[str] = Field(default_factory=list[str])
    """Packages that are not preloaded."""


@dataclass(slots=True)
class _Group:
    """Commands with an equal start, and the server that forks their workers, if one runs."""

    start: Start
    learned: _Learned
    server: Server | None = None
    preloaded: frozenset[str] = frozenset()
    """What that server was told to preload."""
    missed: int = 0
    """How many other modules its workers had to import, once for each worker."""


class WarmPool:
    """Servers by group of commands with an equal start. Used by several threads.

    Raised levels and preloaded modules only save time. Whatever fails because of them lowers the level or
    removes the module for this run and, through the cache file, for later runs.
    """

    def __init__(self, base: ForkServer, home: Path) -> None:
        """Create a pool whose servers are forked from ``base``; what it learns is cached in ``home``."""
        self._base = base
        self._file = home / "warm.json"
        self._lock = threading.RLock()
        self._groups: dict[Start, _Group] = {}
        self._knowledge = _Knowledge()
        with suppress(OSError, ValidationError):
            self._knowledge = _Knowledge.model_validate_json(read_regular(self._file))
        self._as_read = self._knowledge.model_dump_json()

    def server(self, start: Start, level: Level) -> Server:
        """Return a server that is ready to fork workers for the group of ``start``.

        A new group begins at ``level`` at most. Raises :class:`ForkServerDied`, also where no level works.
        """
        # Held while a server gets ready, so that no other thread starts a second one for the group.
        with self._lock:
            group = self._groups.pop(start.key, None) or self._new_group(start, level)
            self._groups[start.key] = group  # last, as the most recently used one
            for idle in list(self._groups.values())[:-MOST_SERVERS]:
                idle.server = None
            while True:
                learned = group.learned
                if group.server is None:
                    with_modules = replace(group.start, modules=tuple(learned.modules))
                    group.server = self._base.server(with_modules, learned.level)
                    group.preloaded, group.missed = frozenset(learned.modules), 0
                try:
                    group.server.wait_until_ready()
                except CannotServe as failure:
                    group.server = None
                    if failure.module is None and learned.level == Level.IMPORTED:
                        # There is no lower level; the caller will start the worker cold in the end.
                        raise ForkServerDied(str(failure)) from failure
                    self._note_failure(learned, failure)
                except ForkServerDied:
                    if group.preloaded:  # the import of a module may have ended the server
                        learned.modules, learned.learns = [], False
                    raise
                else:
                    return group.server

    def renew(self, start: Start) -> None:
        """Discard the group's server, which has died; the next request starts another."""
        with self._lock:
            self._groups[start.key].server = None

    def replace(self, start: Start, level: int | None) -> None:
        """Discard the group's server; those that follow prepare pytest up to ``level`` at most.

        With ``None`` the level stays, and the group preloads no modules any more.
        """
        with self._lock:
            group = self._groups[start.key]
            if level is None:
                group.learned.modules, group.learned.learns = [], False
            else:
                group.learned.level = min(group.learned.level, Level(level))
            group.server = None

    def learn(self, start: Start, modules: Iterable[str]) -> None:
        """Let the next servers preload ``modules``, which a worker had to import itself.

        The next worker waits for a new server, which imports everything again, only once workers have had
        to import more modules than the present one has preloaded.
        """
        with self._lock:
            group = self._groups[start.key]
            if not group.learned.learns:
                return
            own = [name for name in modules if name not in group.preloaded and not self._is_refused(name)]
            known = set(group.learned.modules)
            group.learned.modules += [name for name in own if name not in known]
            group.missed += len(own)
            if own and group.missed > len(group.preloaded):
                group.server = None

    def remember(self) -> None:
        """Write what was learned to the cache file, if that is new; a failure to write is ignored."""
        text = self._knowledge.model_dump_json()
        if text != self._as_read:
            with suppress(FileWriteError):
                replace_file(self._file, text)

    def close(self) -> None:
        """Close all servers, which makes them exit."""
        for group in self._groups.values():
            if group.server is not None:
                group.server.close()

    def _new_group(self, start: Start, level: Level) -> _Group:
        # The digest depends on the interpreter's version, too.
        words = [start.options, start.rootdir, start.inifile, start.env, start.as_module, sys.version]
        digest = sha256(json.dumps(words).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        learned = self._knowledge.groups.setdefault(digest, _Learned())
        learned.level = min(level, learned.level)
        learned.modules = [name for name in learned.modules if not self._is_refused(name)]
        return _Group(start, learned)

    def _note_failure(self, learned: _Learned, failure: CannotServe) -> None:
        """Never again preload the module that made a server fail; without one lower the group's level."""
        if failure.module is None:
            # By one at least, so that WarmPool.server() does not try the same level for ever.
            learned.level = Level(max(min(learned.level - 1, failure.level), Level.IMPORTED))
        else:
            self._knowledge.refused.append(_package_of(failure.module))
            learned.modules = [name for name in learned.modules if not self._is_refused(name)]

    def _is_refused(self, name: str) -> bool:
        package = _package_of(name)
        return package not in PRELOADED or package in self._knowledge.refused


def _package_of(module: str) -> str:
    return module.partition(".")[0]


class Workers:
    """Runs the commands of one plan, each in a worker of its own. Used by several threads."""

    def __init__(
        self,
        facts: RunFacts,
        pool: WarmPool | None,
        folder: RunFolder,
        flat: FlatPlan,
        raise_if_stopped: Callable[[], None],
    ) -> None:
        """Prepare to run the commands of ``flat``; with ``None`` as ``pool`` every worker is started cold.

        ``raise_if_stopped`` is called many times a second while a worker runs; an exception that it raises
        ends the worker and is propagated.
        """
        self._facts = facts
        self._settings = facts.settings
        self._pool = pool
        self._folder = folder
        self._planned = planned_paths(flat)
        self._top = flat.loaded
        self._numbers = count(1)
        self._look_around = raise_if_stopped

    def run(
        self, job: Job, *, confirming: bool = False, recorded_tests: Sequence[str] = ()
    ) -> WorkerRecord:
        """Run a command in a worker until it ends. Return its record, which is also ``job.record``.

        A worker for a confirmation (``confirming``) is started cold, and its reports do not reach the
        user's reporters. For each of ``recorded_tests`` the worker records which functions it executes.
        If this raises, ``job.record`` still holds what was observed: see :attr:`WorkerRecord.cut_short`.
        """
        attempts = 0
        while True:
            spec = self._spec(job, confirming=confirming, recorded_tests=recorded_tests)
            record = job.record = WorkerRecord(spec.start.inifile)
            if confirming or self._pool is None or attempts == MOST_ATTEMPTS:
                break
            attempts += 1
            start = spec.start
            try:
                server = self._pool.server(start, self._level(spec))
                self._watch(server.fork, spec, record)
            except ForkServerDied:
                self._pool.renew(start)
                continue
            # Whatever the worker has judged until then, its replacement judges again.
            if record.restart is not None:
                self._pool.replace(start, record.restart[0])
                continue
            if record.death is not None and record.used_extensions:
                # An extension module that was imported before the fork may not survive it; try without.
                self._pool.replace(start, None)
                continue
            self._pool.learn(start, record.modules)
            return record
        record.isolation = Isolation.COLD
        self._watch(start_cold, spec, record)
        return record

    def _watch(
        self, launch: Callable[[WorkerSpec], Worker], spec: WorkerSpec, record: WorkerRecord
    ) -> None:
        Watcher(launch, spec, record, self._facts.progress, self._look_around).run()

    def _spec(self, job: Job, *, confirming: bool, recorded_tests: Sequence[str]) -> WorkerSpec:
        """Return the spec of the next worker for a command, under a new number of the run."""
        number = next(self._numbers)
        name = f"w{number}"
        settings, root, fixture = self._settings, job.plan.root, job.spec.fixture
        args, env, relay = self._arguments(job, name, confirming=confirming)
        if settings.workers > 1:
            args = _with_own_basetemp(args, root, name)
        # Not of the command's arguments alone: the user's own options may name another ini file.
        given = parse_pytest_arguments((), args, foreign=False, as_module=job.invocation.as_module)
        folders = _folders_of(str(root), given.selections)
        rootdir, inifile, _ = _find_setup(str(root), folders, given.options)
        interactive = settings.interactive and not confirming
        return WorkerSpec(
            worker_id=name,
            check=job.key,
            start=Start(
                root=str(root),
                options=given.options,
                probe=given.selections,
                rootdir=rootdir,
                inifile=inifile,
                ini_stamps=_stamps(filter(None, [inifile])),
                # The server must not read options that the worker gets as arguments.
                env=(*job.command.env, *(each for each in env if each[0] == "PYTEST_ADDOPTS")),
                as_module=given.as_module,
                script_paths=self._facts.script_paths,
                unwarmed=given.alone,
            ),
            args=args,
            confirming=confirming,
            recorded_tests=tuple(recorded_tests),
            selections=given.selections,
            keyword=given.keyword,
            markexpr=given.markexpr,
            deselect=given.deselect,
            journal=str(self._folder.journal),
            log=None if interactive else str(self._folder.path / f"{name}.log"),
            stacks=str(self._folder.path / f"{name}.stacks"),
            board=str(self._folder.path / "phases"),
            slot=number % SLOTS,
            env=env,
            relay=None if relay is None else str(relay),
            limit_seconds=None if settings.debugger and not confirming else job.spec.timeout_seconds,
            fixture_path=None if fixture is None else str(root / fixture),
            narrowing=settings.narrowing,
            collect_only=settings.collect_only,
            planned=self._planned.get(root, ()),
            sandbox=sandboxes(self._top, job.plan),
        )

    def _arguments(
        self, job: Job, name: str, *, confirming: bool
    ) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...], Path | None]:
        """Return the worker's pytest arguments, its own environment variables, and its relay file.

        The relay file takes the worker's reports for the user's reporters; ``None`` if there are none.
        """
        root, invocation = str(job.plan.root), job.invocation
        ini = _find_setup(root, _folders_of(root, invocation.selections), invocation.options)[2]
        inherited = os.environ.get("PYTEST_ADDOPTS", "")
        variables = dict(job.command.env)
        own = variables.get("PYTEST_ADDOPTS", inherited)
        autoload = not variables.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
        words = self._settings.worker_args
        try:
            of_run, of_command = (shlex.split(text) for text in (inherited, own))
            places = (of_command, self._settings.worker_args, invocation.args)
            options = [option for place in places for option in split_options(place)]
            words = options_for(words, invocation.args, autoload=autoload)
        except (ValueError, CommandSyntaxError):  # in the variable: the worker's pytest will report it
            return (*close_options(words), *invocation.args), (), None
        run = GivenOptions(
            command_line=self._settings.worker_args,
            addopts=(*ini, *of_run),
            directory=self._settings.invocation_dir,
        )
        given = replace(
            run,
            command_line=words,
            addopts=(*(() if _replaces_addopts(options) else ini), *of_command),
        )
        scratch = self._folder.path / "reports"
        if confirming:
            start = confirmation_start(given, invocation.args, scratch=scratch)
            return start.args, tuple(start.env.items()), None
        if not self._facts.reporting.is_needed(run, conftest_texts(root, invocation.selections)):
            return (*close_options(words), *invocation.args), (), None
        start = worker_start(given, invocation.args, scratch=scratch, name=name)
        relay = relay_file(scratch, name)
        self._facts.reporting.relays[job.plan.path, job.todo.id, job.criterion.id] = relay
        return start.args, tuple(start.env.items()), relay

    def _level(self, spec: WorkerSpec) -> Level:
        """Return the highest level that may work for a command, judged by its options and conftests.

        An estimate: a server or worker that finds it too high reports that, and the pool lowers the level.
        """
        if spec.log is None or spec.start.unwarmed:
            return Level.IMPORTED
        options = spec.start.options
        plugins = [value for name, value in pairwise(options) if name == "-p"]
        loaded = {_package_of(each) for each in plugins if not each.startswith("no:")}
        if not loaded <= HARMLESS_PLUGINS:
            return Level.IMPORTED  # the plugin may be a file of the project
        texts = conftest_texts(spec.root, spec.selections)
        if any(_EARLY_HOOKS.search(text) for text in texts):
            return Level.IMPORTED
        return Level.PARSED if any(_START_HOOKS.search(text) for text in texts) else Level.STARTED


def _with_own_basetemp(args: tuple[str, ...], root: Path, name: str) -> tuple[str, ...]:
    """Return the arguments with a folder of its own below each ``--basetemp``, as pytest-xdist does it.

    pytest empties the folder at its start, and with it the files of workers that run at the same time.
    """
    own: list[str] = []
    for option in split_options(args):
        if option.name == "--basetemp" and option.value:
            with suppress(OSError):  # pytest reports a folder that cannot be made
                (root / option.value).mkdir(parents=True, exist_ok=True)
            own.append(f"--basetemp={option.value}/{name}")
        else:
            own += option.words
    return tuple(own)


def planned_paths(flat: FlatPlan) -> dict[Path, tuple[str, ...]]:
    """Return the files that todos are expected to create, grouped by the root that the paths start from."""
    found: dict[Path, dict[str, None]] = {}
    for todo in flat.loaded.plan.items:
        paths = found.setdefault(flat.owner(todo.id).root, {})
        for artifact in todo.acceptance_criteria.expected_artifacts:
            paths[artifact.path] = None
        if todo.controller_task_spec is not None and todo.controller_task_spec.target_file:
            paths[todo.controller_task_spec.target_file] = None
    return {root: tuple(paths) for root, paths in found.items()}


def sandboxes(*plans: LoadedPlan) -> tuple[Sandbox, ...]:
    """Return the access that each plan permits its tests; plans without any restriction are left out."""
    # A plan without restrictions equals a sandbox with the defaults.
    found = (
        Sandbox(
            root=str(each.root),
            network=each.plan.metadata.network,
            processes=each.plan.metadata.processes,
            writes=each.plan.metadata.writes,
        )
        for each in plans
    )
    return tuple(dict.fromkeys(each for each in found if each != Sandbox(root=each.root)))


# -- rootdir, ini file and conftests as pytest would find them ----------------------------------------

_INI_OPTIONS = ("-c", "--config-file")


def _replaces_addopts(options: Iterable[GivenOption]) -> bool:
    """Return whether one of the options gives ``addopts`` in place of the ini file."""
    return any(
        option.name in ("-o", "--override-ini") and (option.value or "").startswith("addopts=")
        for option in options
    )


def _folders_of(root: str, selections: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_folder_of(root, text) for text in selections))


def _folder_of(root: str, selection: str) -> str:
    """Return the folder of a selection, the only part of it that pytest's search for the rootdir uses."""
    full = os.path.join(root, file_of(selection))
    return full if os.path.isdir(full) else os.path.dirname(full)


def forget_files() -> None:
    """Clear the caches of file contents: one process may verify plans more than once."""
    for cached in (_read_setup, conftest_texts, _text_of):
        cached.cache_clear()


def _find_setup(
    root: str, folders: tuple[str, ...], options: tuple[str, ...]
) -> tuple[str, str | None, tuple[str, ...]]:
    """Return the rootdir and the ini file that pytest itself would choose, and the file's ``addopts``.

    A broken ini file gives ``unusable: ...`` in place of its path, so that its commands form a group.
    """
    around = {str(each): None for folder in (root, *folders) for each in (folder, *Path(folder).parents)}
    files = [f"{folder}/{name}" for folder in around for name in (*INI_FILES, "setup.py")]
    named = [each.value or "" for each in split_options(options) if each.name in _INI_OPTIONS]
    # An earlier command may have written one of the files.
    stamps = _stamps([*files, *(os.path.join(root, name) for name in named)])
    return _read_setup(root, folders, options, stamps)


def _stamps(files: Iterable[str]) -> tuple[tuple[str, int, int], ...]:
    """Return path, size and time of the last change of those files that exist."""
    found: list[tuple[str, int, int]] = []
    for file in files:
        with suppress(OSError, ValueError):
            stat = os.stat(file)
            found.append((file, stat.st_size, stat.st_mtime_ns))
    return tuple(found)


_NO_OVERRIDES = {"override_ini": None} if "override_ini" in signature(determine_setup).parameters else {}
"""Parameter that pytest requires from version 9."""


@cache
def _read_setup(
    root: str, folders: tuple[str, ...], options: tuple[str, ...], stamps: tuple[tuple[str, int, int], ...]
) -> tuple[str, str | None, tuple[str, ...]]:
    """Find rootdir and ini file; the result is valid as long as the files have these ``stamps``."""
    given: dict[str, Any] = {"inifile": None, "rootdir_cmd_arg": None} | _NO_OVERRIDES
    for option in split_options(options):
        if option.name in _INI_OPTIONS:
            given["inifile"] = os.path.join(root, option.value or "")
        elif option.name == "--rootdir":
            given["rootdir_cmd_arg"] = os.path.join(root, option.value or "")
    try:
        found: Any = determine_setup(args=folders, invocation_dir=Path(root), **given)
    except BaseException as error:  # the worker's pytest will report what is wrong with the ini file
        return root, f"unusable: {type(error).__name__}", ()
    addopts: Any = found[2].get("addopts", ())
    addopts = getattr(addopts, "value", addopts)  # newer versions of pytest wrap the value in an object
    words: Iterable[str] = ()
    with suppress(ValueError):  # unbalanced quotes, which the worker's pytest will report
        words = shlex.split(addopts) if isinstance(addopts, str) else map(str, addopts)
    return str(found[0]), None if found[1] is None else str(found[1]), tuple(words)


@cache
def conftest_texts(root: str, selections: tuple[str, ...]) -> tuple[str, ...]:
    """Return the contents of the conftests that pytest would load before it collects these selections."""
    found: dict[Path, None] = {}
    for selection in (".", *selections):
        folder = Path(_folder_of(root, selection))
        # pytest loads the conftests of each initial folder, of its parents, and of its test* subfolders.
        above = [parent for parent in folder.parents if parent.is_relative_to(root)]
        for each in (*above, folder, *sorted(folder.glob("test*"))):
            found[each / "conftest.py"] = None
    return tuple(_text_of(str(file)) for file in found if file.is_file())


@cache
def _text_of(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def line_of(plan: Path, text: str) -> int | None:
    """Return the number of the first line of a plan file that contains ``text``; ``None`` if none does."""
    lines = _text_of(str(plan)).splitlines()
    return next((number for number, line in enumerate(lines, 1) if text in line), None)


# -- the watcher of one worker --------------------------------------------------------------------------

GRACE_SECONDS = 1.0
"""How long the soft limit, which fails a test inside the worker, may take before the process is killed."""

OVERTIME = 0.5
"""Once the soft limit has failed a test, the remaining tests get this share of the limit.

They get at least two seconds.
"""

OVERTIME_OF_TEST = 0.1
"""Each of the remaining tests may take this share of the limit, and at least a second."""

DUMP_SECONDS = 1.0
"""How long a process that was sent SIGABRT may take to write its stacks."""

START_SECONDS = 60.0
"""How long a process may take to start its session; the time limit counts from there."""

_TICK = 0.05
_LOG_BYTES = 1_000_000
"""Bytes that are kept of the end of a worker's log."""
_STOPPED_ITSELF = re.compile(r"(?:\A|\n)\++ Timeout \++\Z")
"""The last line of a process that pytest-timeout ends by its method ``thread``."""
_TAIL_BYTES = 20_000
"""Bytes that are kept of the end of a dead worker's log and of each file of stacks."""


@dataclass
class Watcher:
    """Starts one worker, follows its journal, enforces its time limit, and ends its processes."""

    launch: Callable[[WorkerSpec], Worker]
    spec: WorkerSpec
    record: WorkerRecord
    progress: Progress
    watch: Callable[[], None]
    """Called many times a second; an exception that it raises ends the worker and is propagated."""

    def __post_init__(self) -> None:
        # A new key for each worker: records that are not signed with it were forged.
        self.spec = replace(self.spec, key=secrets.token_hex(16))
        self._tail = JournalTail(self.spec.journal)
        self._clock = AwakeClock()

    def run(self) -> None:
        """Run the worker until it ends and fill the record, which is kept even if this raises.

        Raises :class:`ForkServerDied` if the worker could not be started, and whatever ``watch`` raises.
        """
        spec = self.spec
        # As JournalWriter writes it; a line that looks like it only by chance is dropped in _drain().
        self._tail.only = f'"session": "{spec.worker_id}"'.encode()
        for file in filter(None, (spec.journal, spec.board, spec.stacks, spec.log)):
            clear_path(Path(file))  # an earlier worker may have removed it, or put a pipe in its place
        self._tail.follow()
        prepare_board(spec.board)
        self.record.launched_at = time.time()
        try:
            with contextlib.closing(self._tail), contextlib.closing(self.launch(spec)) as self._worker:
                self._watch_worker()
        finally:
            self._redact_log()

    def _watch_worker(self) -> None:
        """Follow the worker to its end, end what it left, and record its death if it died."""
        record = self.record
        try:
            exited, running, timed_out = self._follow()
        except ForkServerDied:  # a test may have killed the keeper that forked its worker
            self._end_tree()  # nobody has inherited a cold worker's processes
            self._drain()
            record.death = self._death(Exited(None, None), None, timed_out=False)
            return
        except BaseException:  # an interrupt, too: a worker that nobody watches would never be ended
            record.cut_short = True
            self._end_tree()
            # Its last records may hold a failure, which counts although the worker was ended.
            with contextlib.suppress(ForkServerDied):
                self._worker.poll(5)
            self._drain()
            raise
        self._drain()
        if record.restart is not None:
            return
        # The session ended properly only if its process exits with the status that the session recorded,
        # of which the system keeps eight bits.
        in_order = record.exit_status is not None and exited == Exited(record.exit_status & 0xFF, None)
        if not in_order or timed_out or exited.left_running:
            self._end_tree()
        if not in_order or timed_out or record.running:
            record.death = self._death(exited, running, timed_out=timed_out)

    def _follow(self) -> tuple[Exited, RunningTest | None, bool]:
        """Watch the worker until it ends or has to be ended.

        Return how it ended, and whether that was for its time limit, with the one test that was running
        then, if exactly one was.
        """
        begun, record, limit = self._clock.seconds(), self.record, self.spec.limit_seconds
        while (exited := self._worker.poll(_TICK)) is None:
            self._drain()
            # The limit does not count the time that a server or an interpreter needs to get ready.
            started = begun + START_SECONDS if record.started_at is None else record.started_at
            self.watch()
            # pytest-xdist would replace the lost process again and again, and each would die.
            if self._lost_process():
                self._end_tree()
                self._wait_for_end()
                return Exited(None, None), None, False
            if limit is None:
                continue
            self._end_test(started, limit)
            # After a test that failed by the soft limit, the remaining tests get some more time.
            overtime = max(limit * OVERTIME, 2.0) if record.timed_out else 0.0
            if self._clock.seconds() > started + limit + overtime + GRACE_SECONDS:
                # With pytest-xdist several tests may run, and nothing tells which one is to blame.
                running = next(iter(record.running.values()), None) if len(record.running) == 1 else None
                dying = (
                    running.pid if running is not None and running.pid else record.pid or self._worker.pid
                )
                self._dump_stacks(dying)
                self._end_tree()
                return self._wait_for_end(), running, True
        return exited, None, False

    def _end_test(self, started: float, limit: float) -> None:
        """Send the signal of the soft limit to the running test if its time is over, once per test.

        The first such test is the one that runs when the criterion's limit has passed, later ones are tests
        that take longer than their share of the overtime.
        """
        record = self.record
        if not record.soft_limit or record.pid is None or SIGNAL is None or len(record.running) != 1:
            return
        (running,) = record.running.values()
        overtime = max(limit * OVERTIME_OF_TEST, 1.0)
        over = self._clock.seconds() > (running.at + overtime if record.timed_out else started + limit)
        # Only in the call phase: the signal cannot fail a set-up or teardown, but it would interrupt a
        # blocking C call there, such as a sleep.
        is_first = running.nodeid not in record.interrupted
        if over and is_first and not running.worker and self._phase() == "call":
            record.interrupted.add(running.nodeid)
            with contextlib.suppress(OSError):
                os.kill(record.pid, SIGNAL)

    def _drain(self) -> None:
        """Feed the journal's new records to the worker's record, and report progress."""
        check, record = self.spec.check, self.record
        for entry in self._tail.read():
            if entry.get("session") != self.spec.worker_id or not self._is_genuine(entry):
                continue
            was_collected = record.collected
            entry["at"] = self._clock.seconds()  # the worker's own clock may be frozen or set by a test
            finished = record.feed(entry)
            if finished is not None:
                self.progress.test_finished(check, finished.nodeid, finished.outcome)
            elif entry["record"] == "test_started":
                self.progress.test_started(check, entry["nodeid"])
            elif record.collected and not was_collected:
                self.progress.collected(check, len(record.nodeids))
        record.journal_cut |= self._tail.lost
        self._tail.lost = False

    def _is_genuine(self, entry: Record) -> bool:
        """Return whether the worker wrote the last line read, and wrote it for the first time."""
        # Not signed, as child processes of the worker, which do not know the key, report them as well.
        if entry["record"] == "audit_event":
            return True
        if not is_signed(self._tail.line, self.spec.key):
            self.record.forged += 1
            return False
        # A repeated line, as from a forked copy of the process, is ignored but not counted as forged.
        return self.record.follows(entry)

    def _dump_stacks(self, pid: int) -> None:
        """Abort the process, so that faulthandler writes its stacks, and wait for that."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGABRT)
        # A test may have blocked the signal, or be stopped, so do not wait for ever.
        deadline = time.monotonic() + DUMP_SECONDS
        while time.monotonic() < deadline and is_alive(pid):
            time.sleep(0.02)

    def _wait_for_end(self) -> Exited:
        """Wait for a worker that was killed. Raises :class:`ForkServerDied` if it survives."""
        for _ in range(3):
            exited = self._worker.poll(5)
            if exited is not None:
                return exited
            self._end_tree()
        raise ForkServerDied(f"process {self._worker.pid} cannot be killed")

    def _end_tree(self) -> None:
        """End the worker's processes and their descendants, orphans included."""
        with contextlib.suppress(OSError, AttributeError):  # Windows has no such signal
            os.kill(self._worker.keeper, signal.SIGCONT)  # a test may have stopped the keeper
        end_process_tree(self._worker.pid, token=self._worker.token)
        end_descendants(self._worker.keeper)

    def _lost_process(self) -> bool:
        """Return whether a process of pytest-xdist died before it had its tests."""
        if not self.record.has_lost_process(is_alive):
            return False
        self._drain()  # records that it wrote before it died may not have been read yet
        return self.record.has_lost_process(is_alive)

    def _death(self, exited: Exited, running: RunningTest | None, *, timed_out: bool) -> Death:
        """Return the worker's death, attributed to the running test or the file that was being imported.

        A test to which it is attributed gets a result, ``timeout`` or ``crashed``. The record's exit status
        is reset, as a session that died has none.
        """
        record, spec = self.record, self.spec
        if running is None and len(record.running) == 1:
            (running,) = record.running.values()
        file = None
        if running is None and not record.collected:
            file = next(iter(record.collecting.values()), None)
        # One file for each process of pytest-xdist.
        stacks_folder = Path(spec.stacks).parent
        stacks = [self._tail_of(path) for path in sorted(stacks_folder.glob(Path(spec.stacks).name + "*"))]
        output = self._tail_of(Path(spec.log)) if spec.log else ""
        timed_out = timed_out or _STOPPED_ITSELF.search(output) is not None
        death = Death(
            ProcessEnd(
                exit_code=exited.code,
                signal=None if exited.signal is None else signal_name(exited.signal),
                stack="\n".join(filter(None, stacks)) or None,
                timed_out=timed_out,
            ),
            None if running is None else running.nodeid,
            file,
            output,
            phase=None if running is None else self._phase(),
            raised=record.stopped_by,
        )
        if running is not None:
            outcome = "timeout" if timed_out else "crashed"
            milliseconds = (self._clock.seconds() - running.at) * 1000
            evidence = record.failures.pop(running.nodeid, [])
            record.results[running.nodeid] = TestRecord(
                running.nodeid, outcome, milliseconds, evidence=evidence
            )
            self.progress.test_finished(spec.check, running.nodeid, outcome)
        record.exit_status = None
        return death

    def _redact_log(self) -> None:
        """Remove secrets from the worker's log; of a very long one, only the end is kept."""
        with suppress(OSError, FileWriteError):
            if self.spec.log is not None and os.path.getsize(self.spec.log):
                with open_regular(self.spec.log) as stream:
                    stream.seek(max(os.fstat(stream.fileno()).st_size - _LOG_BYTES, 0))
                    whole, text = not stream.tell(), stream.read().decode("utf-8", "replace")
                redacted = without_secrets(text)
                if redacted != text or not whole:
                    replace_file(Path(self.spec.log), redacted)

    def _tail_of(self, path: Path) -> str:
        """Return the end of a text file of the worker; empty if it cannot be read."""
        try:
            with open_regular(path) as stream:
                stream.seek(0, os.SEEK_END)
                stream.seek(max(stream.tell() - _TAIL_BYTES, 0))
                text = stream.read().decode("utf-8", "replace").strip()
        except OSError:
            return ""
        # Paths below the root become relative, as in all evidence.
        return str(without_secrets(text)).replace(f'"{self.spec.root}/', '"')

    def _phase(self) -> str | None:
        """Return the phase of the running test from the worker's byte on the board; ``None`` if unknown."""
        try:
            with open_regular(self.spec.board) as file:
                return PHASE_NAMES.get(file.read()[self.spec.slot])
        except (OSError, IndexError):
            return None
