"""Writes the specs of sessions and has them run: what pytest is given, and where its output goes."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_planverify.observing.spec import Narrowing, Sandbox, SessionSpec, Wanted
from pytest_planverify.supervision.watching import Limits, SessionRunner

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    from planner.edges.plan_file import LoadedPlan
    from planner.edges.plan_tree import FlatPlan
    from pytest_planverify.guards.budget import BudgetWatch
    from pytest_planverify.options import Settings
    from pytest_planverify.supervision.folding import FoldKey
    from pytest_planverify.supervision.forkserver import ForkServer
    from pytest_planverify.supervision.records import SessionRecord
    from pytest_planverify.supervision.run_folder import RunFolder
    from pytest_planverify.supervision.schedule import Fold, Job
    from pytest_planverify.supervision.watching import Listener


LEAVING_SECONDS = 5.0
"""So long a shared session may take to leave when it is over; alone it has its limit."""


class Sessions:
    """Runs the sessions of one plan."""

    def __init__(
        self,
        settings: Settings,
        server: ForkServer,
        folder: RunFolder,
        listener: Listener,
        script_paths: tuple[str, ...],
        only: Mapping[Path, tuple[str, ...]] | None,
        planned: Mapping[Path, tuple[str, ...]],
        top: LoadedPlan,
        watch: BudgetWatch,
    ) -> None:
        """``only`` and ``planned`` are, by root, the tests to run, and the files that todos are to make."""
        self._settings = settings
        self._folder = folder
        self._script_paths = script_paths
        self._listener = listener
        self.watch = watch
        self._runner = SessionRunner(server, folder.journal, listener, _import_the_rest, watch=watch.check)
        self._count = 0
        self._narrowing = Narrowing(
            keyword=settings.keyword,
            markexpr=settings.markexpr,
            deselect=settings.deselect,
        )
        self._only = only
        self._planned = planned
        self._top = top
        self.junit_parts: list[tuple[Path, Path]] = []
        """JUnit XML files, each with the root below which its tests are named."""
        self.summaries: list[tuple[Path, int, int]] = []
        """Log file, start and end of what other plugins had to say at the end of a shared session."""

    def run_fold(
        self,
        fold: Fold,
        record: SessionRecord,
        *,
        maxfail: int = 0,
        again: bool = False,
        only: Sequence[str] | None = None,
    ) -> SessionRecord:
        """Run the commands of a fold in one session; ``again`` is a repetition that only compares.

        ``only`` are the node ids of the tests to run, where not all of them are to.
        """
        paths = _paths(fold)
        if fold.key.names_paths and not paths:
            return _nothing_there(fold, record)
        args = [*paths, *fold.key.session_options, *self._where(fold.key), *self._settings.session_args]
        interactive = self._settings.interactive and not again
        if not interactive and all(map(_is_quiet, fold.jobs)):
            args.append("-q")
        if not again:
            args += self._coverage(self._settings.shared_args)
            args += self._junit(fold.jobs[0])
        spec = self._spec(
            fold.jobs,
            args,
            log=not interactive,
            as_module=fold.key.as_module,
            env=dict(fold.key.env),
            maxfail=maxfail,
            distributed=self._settings.distributed and not again,
            only=only,
        )
        limits = {job.key: job.spec.timeout_seconds for job in fold.jobs}
        self._runner.run(
            spec,
            Limits(
                step=max(limits.values()),
                by_key=limits,
                paths={job.key: _named_paths(job) for job in fold.jobs},
                leaving=min(LEAVING_SECONDS, max(limits.values())),
            ),
            record,
            resume=True,
            interactive=interactive,
        )
        self._note_summary(spec, record)
        return record

    def run_alone(
        self,
        job: Job,
        record: SessionRecord,
        *,
        first: bool,
        only: Sequence[str] | None = None,
        seed: int | None = None,
    ) -> SessionRecord:
        """Run one command with its own arguments in a session of its own.

        ``first`` is the run that counts; the others only confirm what it said. ``only`` are the node ids
        of the tests to run, and ``seed`` the hash seed of a new interpreter to run them in.
        """
        command = job.criterion.command
        assert command is not None
        assert command.pytest is not None
        args = [*command.pytest.args, *self._settings.session_args]
        interactive = first and self._settings.interactive
        if first:
            args += self._coverage(_for_one_command(self._settings.shared_args))
            args += self._junit(job)
        spec = self._spec(
            [job],
            args,
            log=not interactive,
            as_module=command.pytest.as_module,
            env=dict(command.env),
            verbatim=True,
            only=only,
        )
        limit = job.spec.timeout_seconds
        runner = self._runner if seed is None else self._seeded(seed)
        runner.run(spec, Limits(session=limit, step=limit), record, resume=False, interactive=interactive)
        if first:
            self._note_summary(spec, record)
        return record

    def _spec(
        self,
        jobs: Sequence[Job],
        args: Sequence[str],
        *,
        log: bool,
        as_module: bool,
        env: dict[str, str],
        verbatim: bool = False,
        maxfail: int = 0,
        distributed: bool = False,
        only: Sequence[str] | None = None,
    ) -> SessionSpec:
        self._count += 1
        name = f"s{self._count}"
        root = jobs[0].plan.root
        if only is None and self._only is not None:
            only = self._only.get(root, ())
        return SessionSpec(
            session_id=name,
            root=str(root),
            args=tuple(args),
            wanted=tuple(_wanted(job) for job in jobs),
            journal=str(self._folder.journal),
            log=str(self._folder.path / f"{name}.log") if log else None,
            stacks=str(self._folder.path / f"{name}.stacks"),
            verbatim=verbatim,
            as_module=as_module,
            script_paths=self._script_paths,
            env=env,
            narrowing=replace(self._narrowing, only=None if only is None else tuple(only)),
            maxfail=maxfail,
            distributed=distributed,
            soft_limits=not self._settings.debugger and not verbatim,
            collect_only=self._settings.collect_only,
            planned=self._planned.get(root, ()),
            sandbox=sandboxes(self._top, jobs[0].plan),
        )

    def _seeded(self, seed: int) -> SessionRunner:
        """Runs sessions in interpreters of their own, with that hash seed."""
        from pytest_planverify.supervision.spawning import Spawner

        spawner = Spawner(self._folder.path, seed)
        return SessionRunner(spawner, self._folder.journal, self._listener, watch=self.watch.check)

    def _where(self, key: FoldKey) -> list[str]:
        """The ini file and rootdir that each command of the fold would have found alone."""
        given = (*key.session_options, *self._settings.session_args)
        if any(word.partition("=")[0] in ("-c", "--config-file", "--rootdir") for word in given):
            return []
        args = [f"--rootdir={key.rootdir}"]
        if key.inifile is not None and os.path.exists(key.inifile):
            args += ["-c", key.inifile]
        return args

    def _junit(self, job: Job) -> list[str]:
        if self._settings.junit is None:
            return []
        part = self._folder.path / f"junit-{len(self.junit_parts) + 1}.xml"
        self.junit_parts.append((part, job.plan.root))
        return [f"--junitxml={part}"]

    def _coverage(self, args: Sequence[str]) -> list[str]:
        """The user's options for shared sessions; coverage of a later session is added to the first's."""
        words = list(args)
        if self._count and any(word.startswith("--cov") for word in words):
            words.append("--cov-append")
        return words

    def _note_summary(self, spec: SessionSpec, record: SessionRecord) -> None:
        if spec.log is not None and record.summary_span is not None:
            start, end = record.summary_span
            if end > start:
                self.summaries.append((Path(spec.log), start, end))


def _is_quiet(job: Job) -> bool:
    """Whether the command asks pytest not to show the name of each file."""
    command = job.criterion.command
    words = frozenset[str]() if command is None or command.pytest is None else {*command.pytest.args}
    return bool(_QUIET & words) and not any(word.startswith(_LOUD) for word in words)


_QUIET = frozenset({"-q", "-qq", "--quiet"})
_LOUD = ("-v", "--verb")


def _import_the_rest() -> None:
    """Import what is needed after the sessions while the first one runs, and make it ready."""
    for name in ("supervision.settling", "supervision.concluding", "reports.terminal"):
        importlib.import_module(f"pytest_planverify.{name}")
    from planner.model import outcome
    from planner.model.base import Value

    for name in outcome.__all__:
        kind = getattr(outcome, name)
        if isinstance(kind, type) and issubclass(kind, Value):
            kind.model_rebuild()  # its validator, which is only built when it is asked for


def start_paths(config: pytest.Config) -> tuple[str, ...]:
    """Entries of ``sys.path`` that are there because of how this run was started."""
    entries = [str(path) for path in config.getini("pythonpath") if str(path) in sys.path]
    started = {os.getcwd(), "", os.path.dirname(os.path.abspath(sys.argv[0] if sys.argv else ""))}
    kept = list(sys.path)
    for entry in entries:
        kept.remove(entry)
    if kept and kept[0] in started and kept[0] not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        entries.append(kept[0])
    return tuple(entries)


def planned_paths(flat: FlatPlan) -> dict[Path, tuple[str, ...]]:
    """The files that todos are to make, by the root that their paths start from."""
    found: dict[Path, dict[str, None]] = {}
    for todo in flat.loaded.plan.items:
        paths = found.setdefault(flat.owner(todo.id).root, {})
        for artifact in todo.acceptance_criteria.expected_artifacts:
            paths[artifact.path] = None
        if todo.controller_task_spec is not None and todo.controller_task_spec.target_file:
            paths[todo.controller_task_spec.target_file] = None
    return {root: tuple(paths) for root, paths in found.items()}


def sandboxes(*plans: LoadedPlan) -> tuple[Sandbox, ...]:
    """What each of the plans lets its tests reach for, those left out that grant everything."""
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


def _wanted(job: Job) -> Wanted:
    command = job.criterion.command
    assert command is not None
    assert command.pytest is not None
    invocation = command.pytest
    fixture = job.spec.fixture
    return Wanted(
        key=job.key,
        selections=invocation.selections,
        keyword=invocation.keyword,
        markexpr=invocation.markexpr,
        deselect=invocation.deselect,
        limit_seconds=job.spec.timeout_seconds,
        fixture_path=None if fixture is None else str(job.plan.root / fixture),
    )


def _paths(fold: Fold) -> list[str]:
    """What to collect, each once, in the order of the plan; no file that lies in a folder of the list.

    A file of which a single name is wanted is given with that name, for pytest looks through the whole
    folder again for each file that is given by itself.
    """
    root = Path(fold.key.root)
    found: dict[str, set[str | None]] = {}
    for job in fold.jobs:
        command = job.criterion.command
        assert command is not None
        assert command.pytest is not None
        for selection in command.pytest.selections:
            file, *names = selection.partition("[")[0].split("::")
            path = os.path.normpath(file or ".")
            if (root / path).exists():
                found.setdefault(path, set()).add(names[0] if names else None)
    folders = [path for path in found if (root / path).is_dir()]
    return [
        _argument(path, names)
        for path, names in found.items()
        if not any(_covers(folder, path) for folder in folders)
    ]


def _argument(path: str, names: set[str | None]) -> str:
    (name,) = names if len(names) == 1 else (None,)
    return f"{path}::{name}" if name else path


def _named_paths(job: Job) -> tuple[str, ...]:
    command = job.criterion.command
    assert command is not None
    assert command.pytest is not None
    return tuple(
        os.path.normpath(text.partition("[")[0].split("::")[0] or ".") for text in command.pytest.selections
    )


def _covers(folder: str, path: str) -> bool:
    """Whether collecting the folder collects the path, too, as far as names tell."""
    if folder == path:
        return False
    inside = folder == "." or path.startswith(folder + os.sep)
    name = os.path.basename(path)
    return inside and (name.startswith("test_") or name.endswith("_test.py"))


def _nothing_there(fold: Fold, record: SessionRecord) -> SessionRecord:
    """What a session over files that do not exist would say; it need not be run to be known."""
    from pytest_planverify.observing.selection import alike_paths

    record.collected = True
    record.exit_status = 4
    for job in fold.jobs:
        wanted = _wanted(job)
        problems = [
            {
                "text": text,
                "problem": "missing_file",
                "nearest": alike_paths(job.plan.root / text.partition("[")[0].split("::")[0]),
            }
            for text in wanted.selections
        ]
        record.selections[job.key] = {"key": job.key, "nodeids": [], "narrowed": [], "problems": problems}
    return record


_FOR_COMPANY = ("-n", "--numprocesses", "--dist", "--maxprocesses", "--tx", "--cov-fail-under")
"""Options for a session of many tests; one command alone reaches no coverage of the whole."""


def _for_one_command(args: Sequence[str]) -> list[str]:
    kept: list[str] = []
    words = iter(args)
    for word in words:
        if word in _FOR_COMPANY:
            next(words, None)
        elif word != "-d" and not word.startswith(("-n", *(f"{name}=" for name in _FOR_COMPANY))):
            kept.append(word)
    return kept
