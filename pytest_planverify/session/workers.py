"""Workers for commands: what each is told, which server forks it, and what servers learn from workers."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from _pytest.config.findpaths import determine_setup

from planner.catalog.pytest_arguments import parse_pytest_arguments
from pytest_planverify.guards.sandbox_policy import Sandbox
from pytest_planverify.observe.spec import HARMLESS_PLUGINS, Narrowing, Start, WorkerSpec
from pytest_planverify.observe.supervision import SLOTS
from pytest_planverify.reports.reporters import (
    GivenOptions,
    confirmation_start,
    relay_file,
    worker_start,
)
from pytest_planverify.session.cold import ColdWorker
from pytest_planverify.session.fork_server import CannotFork, ForkedWorker, ForkServerDied
from pytest_planverify.session.records import WorkerRecord
from pytest_planverify.session.watch import Watcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from planner.catalog import PytestInvocation
    from planner.planfile.loader import LoadedPlan
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.session.fork_server import ForkServer, Server
    from pytest_planverify.session.plans import RunFacts
    from pytest_planverify.session.run_folder import RunFolder
    from pytest_planverify.session.schedule import Job

IMPORTED, PARSED, STARTED = range(3)
"""How far a server goes before it forks; see :class:`pytest_planverify.observe.worker.Level`."""

MOST_ATTEMPTS = 6
"""So often a worker is replaced that asks to be, or that could not be started; then it is started cold."""

_WARM_FILE = "warm.json"
_WARM_VERSION = 1

_EARLY_HOOKS = re.compile(r"\bdef\s+pytest_(addoption|load_initial_conftests|cmdline_parse|cmdline_main)\b")
_START_HOOKS = re.compile(
    r"\bdef\s+pytest_(configure|sessionstart|plugin_registered)\b|^pytest_plugins\b", re.MULTILINE
)


@dataclass(slots=True)
class _Group:
    """Commands that start alike, and the servers for them."""

    start: Start
    level: int
    modules: list[str] = field(default_factory=list[str])
    server: Server | None = None
    """The newest one that is ready."""
    next_server: Server | None = None
    """One that is getting ready, with more modules."""
    next_modules: list[str] = field(default_factory=list[str])
    learns: bool = True


class WarmPool:
    """Servers by group. Used by several threads."""

    def __init__(self, base: ForkServer, home: Path) -> None:
        """Return what was learned of modules is kept below ``home``."""
        self._base = base
        self._file = home / _WARM_FILE
        self._lock = threading.RLock()
        self._groups: dict[Start, _Group] = {}
        self._known, self._refused = _read_warm_file(self._file)
        self._changed = False

    def server(self, start: Start, level: int) -> Server:
        """Return a server that forks workers for the group. Raises :class:`ForkServerDied`."""
        with self._lock:
            group = self._groups.get(start.key)
            if group is None:
                group = self._groups[start.key] = self._new_group(start, level)
            self._take_next(group)
            while True:
                if group.server is None:
                    group.server = self._make(group, group.modules)
                try:
                    group.server.is_ready()
                except CannotFork as failure:
                    group.server = None
                    if failure.module is None and group.level == IMPORTED:
                        raise ForkServerDied(str(failure)) from failure
                    self._note_failure(group, failure)
                else:
                    return group.server

    def renew(self, start: Start) -> None:
        """Let another server be made for the group: that one is gone."""
        with self._lock:
            group = self._groups.get(start.key)
            if group is not None:
                group.server = None

    def replace(self, start: Start, level: int | None) -> None:
        """Let workers of the group start at that level; with ``None``, without modules imported ahead."""
        with self._lock:
            group = self._groups[start.key]
            if level is None:
                group.modules, group.learns = [], False
            else:
                group.level = min(group.level, level)
            group.server, group.next_server, self._changed = None, None, True

    def learn(self, start: Start, modules: Iterable[str]) -> None:
        """Let the next server of the group import what a worker had to import."""
        with self._lock:
            group = self._groups[start.key]
            known = set(group.modules)
            news = [name for name in modules if name not in known and not self._is_refused(name)]
            if not news or group.next_server is not None or not group.learns:
                return
            group.next_modules = [*group.modules, *news]
            with suppress(ForkServerDied):
                group.next_server = self._make(group, group.next_modules)

    def remember(self, write: Callable[[Path, str], object]) -> None:
        """Keep what was learned for the next run."""
        if not self._changed and all(_digest(start) in self._known for start in self._groups):
            return
        groups = {
            _digest(start): {
                "level": group.level,
                "modules": group.modules,
                "learns": group.learns,
            }
            for start, group in self._groups.items()
        }
        groups = {**self._known, **groups}
        data = {"version": _WARM_VERSION, "groups": groups, "refused": sorted(self._refused)}
        with suppress(OSError):
            write(self._file, json.dumps(data))

    def close(self) -> None:
        """Let all servers end."""
        for group in self._groups.values():
            for server in filter(None, (group.server, group.next_server)):
                server.close()

    def _new_group(self, start: Start, level: int) -> _Group:
        known = self._known.get(_digest(start.key), {})
        return _Group(
            start,
            min(level, known.get("level", STARTED)),
            [name for name in known.get("modules", []) if not self._is_refused(name)],
            learns=known.get("learns", True),
        )

    def _make(self, group: _Group, modules: list[str]) -> Server:
        return self._base.server(replace(group.start, modules=tuple(modules)), group.level)

    def _take_next(self, group: _Group) -> None:
        if group.next_server is None:
            return
        try:
            if not group.next_server.is_ready(0):
                return
        except CannotFork as failure:
            self._note_failure(group, failure)
        except ForkServerDied:
            group.learns = False
        else:
            group.server, group.modules, self._changed = group.next_server, group.next_modules, True
        group.next_server = None

    def _note_failure(self, group: _Group, failure: CannotFork) -> None:
        self._changed = True
        if failure.module is None:
            group.level = max(min(group.level - 1, failure.level), IMPORTED)
        else:
            self._refused.add(failure.module.partition(".")[0])
            group.modules = [name for name in group.modules if not self._is_refused(name)]

    def _is_refused(self, name: str) -> bool:
        return name.partition(".")[0] in self._refused


class Workers:
    """Runs the commands of one plan, each in a worker of its own."""

    def __init__(
        self,
        facts: RunFacts,
        pool: WarmPool | None,
        folder: RunFolder,
        flat: FlatPlan,
        look_around: Callable[[], None],
    ) -> None:
        """``pool`` is ``None`` where every worker is started cold.

        ``look_around`` is called again and again; what it raises ends the worker and is passed on.
        """
        self._facts = facts
        self._settings = facts.settings
        self._pool = pool
        self._folder = folder
        self._planned = planned_paths(flat)
        self._top = flat.loaded
        self._count = 0
        self._lock = threading.Lock()
        self._look_around = look_around

    def run(
        self, job: Job, *, confirming: bool = False, recorded_tests: Sequence[str] = ()
    ) -> WorkerRecord:
        """Run a command's worker to its end; a confirmation is started cold and reports to nobody.

        Of ``recorded_tests`` it is written down which functions they execute.
        The record holds what was seen even where this raises: see :attr:`WorkerRecord.cut_short`.
        """
        attempts = 0
        while True:
            spec = self._spec(job, confirming=confirming)
            spec = replace(spec, recorded_tests=tuple(recorded_tests))
            record = job.record = WorkerRecord(spec.start.inifile)
            if confirming or self._pool is None or attempts == MOST_ATTEMPTS:
                break
            attempts += 1
            start = spec.start
            try:
                server = self._pool.server(start, self._level(spec))
                self._watch(ForkedWorker(server), spec, record)
            except ForkServerDied:
                self._pool.renew(start)
                continue
            if record.restart is not None:
                self._pool.replace(start, record.restart[0])
                continue
            if record.death is not None and record.used_extensions:
                self._pool.replace(start, None)  # perhaps for what a fork does to an extension module
                continue
            self._pool.learn(start, record.modules)
            return record
        self._watch(ColdWorker(self._folder.path), spec, record)
        return record

    def _watch(self, worker: ForkedWorker | ColdWorker, spec: WorkerSpec, record: WorkerRecord) -> None:
        Watcher(worker, spec, record, self._facts.progress, self._look_around).run()

    def _spec(self, job: Job, *, confirming: bool) -> WorkerSpec:
        with self._lock:
            self._count = number = self._count + 1
        name = f"w{number}"
        command = job.criterion.command
        assert command is not None
        assert command.pytest is not None
        settings, root, fixture = self._settings, job.plan.root, job.spec.fixture
        args, env, relay = self._arguments(job, command.pytest, name, confirming=confirming)
        given = parse_pytest_arguments((), args, foreign=False, as_module=command.pytest.as_module)
        folders = _folders_of(str(root), given.selections)
        rootdir, inifile, _ = _find_setup(str(root), folders, given.options)
        interactive = settings.interactive and not confirming
        return WorkerSpec(
            worker_id=name,
            check=job.key,
            start=Start(
                root=str(root),
                options=given.options,
                probe=given.selections[:1],
                rootdir=rootdir,
                inifile=inifile,
                env=command.env,
                as_module=given.as_module,
                script_paths=self._facts.script_paths,
                unwarmed=given.alone,
            ),
            args=args,
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
            narrowing=Narrowing(
                keyword=settings.keyword, markexpr=settings.markexpr, deselect=settings.deselect
            ),
            collect_only=settings.collect_only,
            planned=self._planned.get(root, ()),
            sandbox=sandboxes(self._top, job.plan),
        )

    def _arguments(
        self, job: Job, invocation: PytestInvocation, name: str, *, confirming: bool
    ) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...], Path | None]:
        """Return the worker's arguments, variables of its own, and the file for the user's reporters."""
        root = str(job.plan.root)
        ini = _find_setup(root, _folders_of(root, invocation.selections), invocation.options)[2]
        given = GivenOptions(
            command_line=self._settings.worker_args,
            ini=ini,
            environment=tuple(shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))),
            directory=self._settings.invocation_dir,
        )
        scratch = self._folder.path / "reports"
        if confirming:
            start = confirmation_start(given, invocation.args, scratch=scratch)
            return start.args, tuple(start.env.items()), None
        if not self._facts.reporting.is_needed(given, conftest_texts(root, invocation.selections)):
            return (*self._settings.worker_args, *invocation.args), (), None
        start = worker_start(given, invocation.args, scratch=scratch, name=name)
        relay = relay_file(scratch, name)
        self._facts.reporting.relays[job.plan.path, job.todo.id, job.criterion.id] = relay
        return start.args, tuple(start.env.items()), relay

    def _level(self, spec: WorkerSpec) -> int:
        """Return how far a server may go for the command, as far as its text and its conftests tell."""
        if spec.log is None or spec.start.unwarmed is not None:
            return IMPORTED
        options = spec.start.options
        plugins = [value for name, value in pairwise(options) if name == "-p"]
        if any(not each.startswith("no:") and each not in HARMLESS_PLUGINS for each in plugins):
            return IMPORTED  # perhaps a file of the project
        texts = conftest_texts(spec.root, spec.selections)
        if any(_EARLY_HOOKS.search(text) for text in texts):
            return IMPORTED
        return PARSED if any(_START_HOOKS.search(text) for text in texts) else STARTED


def planned_paths(flat: FlatPlan) -> dict[Path, tuple[str, ...]]:
    """Return the files that todos are to make, by the root that their paths start from."""
    found: dict[Path, dict[str, None]] = {}
    for todo in flat.loaded.plan.items:
        paths = found.setdefault(flat.owner(todo.id).root, {})
        for artifact in todo.acceptance_criteria.expected_artifacts:
            paths[artifact.path] = None
        if todo.controller_task_spec is not None and todo.controller_task_spec.target_file:
            paths[todo.controller_task_spec.target_file] = None
    return {root: tuple(paths) for root, paths in found.items()}


def sandboxes(*plans: LoadedPlan) -> tuple[Sandbox, ...]:
    """Return what each of the plans lets its tests reach for, those left out that grant everything."""
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


# -- what pytest would find ---------------------------------------------------------------------------


def file_part(selection: str) -> str:
    """Return the file or folder that an argument of pytest names."""
    return selection.partition("[")[0].split("::")[0] or "."


def _folders_of(root: str, selections: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({_folder_of(root, text) for text in selections}))


def _folder_of(root: str, selection: str) -> str:
    """Return the folder that a command's path lies in, which is all that pytest looks at."""
    full = os.path.join(root, file_part(selection))
    return full if os.path.isdir(full) else os.path.dirname(full)


def forget_files() -> None:
    """Forget what was seen of the tree: a process may verify plans more than once."""
    for cached in (_find_setup, conftest_texts, _text_of):
        cached.cache_clear()


@cache
def _find_setup(
    root: str, folders: tuple[str, ...], options: tuple[str, ...]
) -> tuple[str, str | None, tuple[str, ...]]:
    """Return the rootdir and the ini file that pytest itself would choose, and the file's ``addopts``."""
    given: dict[str, Any] = {"inifile": None, "override_ini": None, "rootdir_cmd_arg": None}
    words = iter(options)
    for option in words:
        name, equals, value = option.partition("=")
        if name in ("-c", "--config-file"):
            given["inifile"] = os.path.join(root, value if equals else next(words, ""))
        elif name == "--rootdir":
            given["rootdir_cmd_arg"] = os.path.join(root, value if equals else next(words, ""))
    try:
        found: Any = determine_setup(args=folders, invocation_dir=Path(root), **given)
    except BaseException as error:  # whatever pytest says of a broken ini file, it will say in the worker
        return root, f"unusable: {type(error).__name__}", ()
    addopts: Any = found[2].get("addopts", ())
    addopts = getattr(addopts, "value", addopts)  # newer versions of pytest tell more of it
    with suppress(ValueError):
        words = shlex.split(addopts) if isinstance(addopts, str) else map(str, addopts)
        return str(found[0]), None if found[1] is None else str(found[1]), tuple(words)
    return str(found[0]), None if found[1] is None else str(found[1]), ()


@cache
def conftest_texts(root: str, selections: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts of the conftests that pytest would load before it collects these selections."""
    found: dict[Path, None] = {}
    for selection in (".", *selections):
        folder = Path(_folder_of(root, selection))
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
    """Return the line of a plan file that a command stands in."""
    lines = _text_of(str(plan)).splitlines()
    return next((number for number, line in enumerate(lines, 1) if text in line), None)


# -- what was learned ---------------------------------------------------------------------------------


def _digest(start: Start) -> str:
    words = [start.options, start.rootdir, start.inifile, start.env, start.as_module, sys.version]
    return sha256(json.dumps(words).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _read_warm_file(file: Path) -> tuple[dict[str, Any], set[str]]:
    """Return what is known of groups, and modules not to be imported ahead; nothing of a broken file."""
    try:
        data = cast("Mapping[str, Any]", json.loads(file.read_bytes()))
        if data["version"] != _WARM_VERSION:
            return {}, set()
        groups = {
            str(name): {
                "level": int(each["level"]),
                "modules": [str(module) for module in each["modules"]],
                "learns": bool(each["learns"]),
            }
            for name, each in data["groups"].items()
        }
        return groups, set(map(str, data["refused"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}, set()
