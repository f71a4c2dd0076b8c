"""Session of one worker: ordinary pytest with the recorder as a plugin.

A worker either calls ``pytest.main`` from the beginning, or is forked by a server that has prepared
pytest up to a point that does not depend on the project: configured, with plugins loaded and the
session started, but without any conftest or test file. If a conftest implements a hook that the server
has already called, the worker asks to be replaced by one that is forked earlier.

Both ways are a :class:`Session`, and both write the same records. Servers are forked in
:mod:`pytest_planverify.session.fork_server`; a cold start, with an interpreter of its own, begins in
:mod:`pytest_planverify.session.cold`.
"""

from __future__ import annotations

import atexit
import importlib
import io
import os
import sys
import tempfile
import threading
import time
import traceback
from contextlib import suppress
from gc import get_objects  # bound early: the worker's own reveals the objects of the server
from os import _exit as exit_process  # bound early: a test may replace it for good
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from _pytest import pathlib

from pytest_planverify.guards.tamper_observer import judges_at_start
from pytest_planverify.journal import JournalWriter
from pytest_planverify.observe import become_worker, relay, set_planner_apart
from pytest_planverify.observe.audit import watch, watching
from pytest_planverify.observe.fixtures import RECORDER, SuitePropertyRecorder
from pytest_planverify.observe.read_files import note_modules
from pytest_planverify.observe.recorder import WORKER_INPUT, Recorder
from pytest_planverify.observe.redaction import environment_secrets, record_without_secrets
from pytest_planverify.observe.spec import (
    HARMLESS_PLUGINS,
    HARNESS_EXIT,
    CannotServe,
    Level,
    Start,
    WorkerSpec,
)
from pytest_planverify.observe.spectrum import SpectrumRecorder
from pytest_planverify.observe.supervision import SoftLimits, board
from pytest_planverify.observe.warm_modules import ModuleShelf, Unfit

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

RESTART_EXIT = 71
"""Exit status of a worker that asks to be replaced."""


_PARSING_HOOKS = ("addoption", "load_initial_conftests", "cmdline_parse", "cmdline_main")
_LATE_HOOKS = {
    Level.PARSED: tuple(f"pytest_{name}" for name in _PARSING_HOOKS),
    Level.STARTED: ("pytest_configure", "pytest_sessionstart", "pytest_plugin_registered"),
}
"""Hooks that were already called at each level, so that a conftest loaded afterwards would miss them."""


def run_worker(spec: WorkerSpec) -> int:
    """Run a complete session in this process, without a server; return its exit status."""
    _enter_environment(spec.start)
    note_modules()
    with _whole_session(spec, ModuleShelf()) as session:
        session.status = int(pytest.main(session.args, plugins=[session]))
    return session.status


def session_of_group(start: Start, level: Level, wait: Callable[[], WorkerSpec]) -> Session:
    """Prepare the session that a group of commands shares; return it in the workers.

    ``wait`` blocks in the server and returns once in each forked worker, with that worker's spec. At the
    level ``IMPORTED`` it is called here; at the other levels the returned session calls it from within
    ``pytest.main``. Raises :class:`CannotServe`, in the server only.
    """
    _enter_environment(start)
    shelf = ModuleShelf()
    if level is Level.IMPORTED:
        _fill_shelf(shelf, start)
        return _whole_session(wait(), shelf)
    _redirect(os.devnull)  # what pytest prints at its start belongs to no single worker
    return Session([*start.options, *start.probe], shelf, level, start, wait)


def register_in_xdist_worker(config: pytest.Config) -> None:
    """Register the recorder in a worker of pytest-xdist, which receives the spec in its ``workerinput``."""
    worker_input = getattr(config, "workerinput", {})
    text = worker_input.get(WORKER_INPUT)
    if text is None:
        return
    spec = WorkerSpec.from_json(text)
    recorder = Recorder()
    recorder.config = config
    journal = _open_journal(spec)
    recorder.begin(spec, journal, str(worker_input.get("workerid", "worker")))
    recorder.audit = watching()
    _register(config.pluginmanager, recorder)


def leave_interpreter() -> None:
    """Do what the interpreter does at its exit: join threads, run ``atexit`` callbacks, write open files.

    Forked processes leave by ``os._exit``, which does none of these.
    """
    for step in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]
        with suppress(Exception):
            step()
    for each in get_objects():  # not those of the server, unless a test has unfrozen them
        if issubclass(type(each), (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)):
            with suppress(Exception):
                each.flush()


class Session:
    """Context manager around a call of pytest, and the plugin that follows its start and its end.

    The caller makes the call itself, with the session as a plugin, which keeps our frames off the stack: a
    test that recurses up to the limit must get nearly as deep as when its command runs alone. The plugin
    forks at the server's level; without ``wait`` it runs in a worker from the beginning. It is registered
    without a name, so that no project can look it up.

    On exit it records how pytest ended and suppresses the error. In a server that has not forked it raises
    :class:`CannotServe` instead.
    """

    def __init__(
        self,
        args: Sequence[str],
        shelf: ModuleShelf,
        level: Level = Level.IMPORTED,
        start: Start | None = None,
        wait: Callable[[], WorkerSpec] | None = None,
    ) -> None:
        self.args = list(args)
        self.status = HARNESS_EXIT
        """Exit status of pytest, set by the caller."""
        self._recorder = Recorder()
        self._journal: JournalWriter | None = None
        """Journal of the worker; ``None`` in a server."""
        self._failure: CannotServe | None = None
        """Reason for giving up, kept because pytest reports exceptions of some hooks by itself."""
        self._shelf = shelf
        self._level = level
        self._start = start
        self._wait = wait

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        journal = self._journal
        if journal is None:  # still the server: only a worker has a journal
            reason = "pytest did not come to the point to be forked at"
            raise self._failure or CannotServe(Level.IMPORTED, reason)
        if isinstance(error, SystemExit):
            journal.write("stopped", worker="", reason=f"SystemExit: {error.code}")
            self.status = error.code if isinstance(error.code, int) else int(bool(error.code))
        elif error is not None and not isinstance(error, CannotServe):
            text = "".join(traceback.format_exception(error))
            journal.write("internal_error", worker="", text=text[-20_000:])
        # Tests may have closed the streams, or replaced them by objects without flush().
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        audit = self._recorder.audit
        if audit is not None:
            journal.write("files_read", **audit.files.facts())
        journal.write("session_ended", exit_status=self.status)
        return True

    def begin(self, spec: WorkerSpec) -> None:
        """Turn this process into the worker of ``spec``: streams, environment, journal and observers."""
        if spec.log is not None:
            _redirect(spec.log)
        os.environ.update(spec.env)
        sys.argv[1:] = spec.args
        sys.orig_argv += spec.args
        importlib.invalidate_caches()  # earlier commands may have changed folders and archives on sys.path
        journal = self._journal = _open_journal(spec)
        board.open(spec.board, spec.slot)
        self._shelf.hand_out(
            lambda reason: self._restart(None, reason),
            lambda name: journal.write("module_handed_out", name=name),
        )
        # From here on the project's doings are recorded; nothing of it has been imported yet.
        recorder = self._recorder
        recorder.begin(spec, journal)
        recorder.audit = watch(spec)
        recorder.watch_for_crashes()
        _leave_removals_to_parent(journal, recorder.soft_limits)
        soft = bool(spec.limit_seconds) and recorder.soft_limits.listen(spec.limit_seconds or 0.0)
        journal.write("session_started", worker="", pid=os.getpid(), soft_limit=soft)

    # -- hooks -----------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_addhooks(self, pluginmanager: pytest.PytestPluginManager) -> None:
        """Register the recorder and its companions, before pytest parses options."""
        _register(pluginmanager, self._recorder)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_cmdline_parse(self) -> Generator[None, pytest.Config, pytest.Config]:
        """Record errors of pytest's start, which pytest itself only prints."""
        try:
            config = yield
            self._recorder.config = config
            return config
        except pytest.UsageError as error:
            if self._journal is not None:
                self._journal.write("usage_error", worker="", message=str(error))
            raise
        except BaseException as error:
            if self._journal is not None:
                from pytest_planverify.observe.evidence import startup_evidence

                evidence = startup_evidence(error, self._recorder.project)
                self._journal.write("startup_failure", worker="", evidence=evidence)
            raise

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> Generator[None, object, object]:
        """Suppress the loading of conftests in a server."""
        known = early_config.known_args_namespace
        noconftest = known.noconftest
        if self._wait is None:
            self._shelf.precede_rewriting()
        else:
            self._require_harmless(early_config, "pytest_load_initial_conftests", Level.IMPORTED)
            known.noconftest = True
        try:
            return (yield)
        finally:
            known.noconftest = noconftest

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        """Refuse sessions that cannot be forked; fork here at the level ``PARSED``."""
        if self._wait is None:
            return
        # Processes, threads and data files that plugins open at their start must belong to the worker,
        # not to a server that outlives it.
        if getattr(config.option, "numprocesses", None) or getattr(config.option, "tx", None):
            self._give_up(CannotServe(Level.IMPORTED, "the session starts processes of its own"))
        if getattr(config.option, "cov_source", None):
            self._give_up(CannotServe(Level.IMPORTED, "the session measures coverage"))
        reruns: Any = sys.modules.get("pytest_rerunfailures")
        if reruns is not None and getattr(config.option, "max_suite_reruns", None) is None:
            # With pytest-xdist installed it would start a thread to count reruns across processes, and
            # a process with threads must not be forked.
            reruns.HAS_PYTEST_HANDLECRASHITEM = False
        if self._level is Level.PARSED:
            self._become_worker(config)
        else:
            for hook in ("pytest_configure", "pytest_sessionstart"):
                self._require_harmless(config, hook, Level.PARSED)

    def pytest_configure(self, config: pytest.Config) -> None:
        """Register the relay of reports, if user reporters are active, and cheapen confirmations."""
        spec = getattr(self._recorder, "spec", None)
        if spec is not None and spec.relay is not None:
            relay.register(config, Path(spec.relay))
        if spec is not None and spec.confirming and config.option.tbstyle in ("auto", "long"):
            # Nobody reads tracebacks of a confirmation, and the default style parses every source file
            # in them, which may take as long as the tests.
            config.option.tbstyle = "native"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> Generator[None]:
        """Fork after all other plugins have started the session.

        By then the header is printed, for which the metadata of all plugins is read, once for all workers.
        """
        yield
        if self._wait is not None and self._level is Level.STARTED:
            if threading.active_count() > 1:  # only the forking thread survives in the child
                self._give_up(CannotServe(Level.PARSED, "a plugin has started a thread"))
            self._become_worker(session.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Tell the shelf that tests begin: a replacement would run them again."""
        self._shelf.begin_tests()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Skip Hypothesis's summary in sessions that did not use Hypothesis.

        Its pytest plugin would import all of Hypothesis, half a second in each worker, to report
        nothing.
        """
        plugins = session.config.pluginmanager
        plugin = sys.modules.get("_hypothesis_pytestplugin")
        if plugin is not None and "hypothesis" not in sys.modules and plugins.is_registered(plugin):
            plugins.unregister(plugin)

    # -- in a worker that was forked on the way ---------------------------------------------------

    def _become_worker(self, config: pytest.Config) -> None:
        """Wait for the fork, then apply the options, streams and conftests of the worker's own command."""
        assert self._wait is not None
        assert self._start is not None
        capture: Any = config.pluginmanager.getplugin("capturemanager")
        if capture is None:  # -p no:capture
            self._give_up(CannotServe(Level.IMPORTED, "the session does not capture output"))
        try:
            _fill_shelf(self._shelf, self._start)
        except CannotServe as failure:
            self._give_up(failure)
        spec = self._wait()
        os.environ["PYTEST_VERSION"] = pytest.__version__
        # Capturing is stopped around the redirection: it has saved the server's streams and would restore
        # them later.
        capture.stop_global_capturing()
        self.begin(spec)
        _apply_arguments(config, spec, self._start.probe)
        capture.start_global_capturing()  # the server's capture files would be shared by all workers
        self._load_conftests(config)
        capture.suspend_global_capture()
        reporter: Any = config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            reporter._tw._file = sys.stdout  # it was made for the stream of the server
        if self._level is Level.STARTED:
            # In the server both hooks were called without a spec, hence without effect.
            self._recorder.pytest_configure(config)
            self.pytest_configure(config)
            _clear_collected_exceptions(config)

    def _load_conftests(self, config: pytest.Config) -> None:
        """Load conftests as pytest does: captured, and under pytest's warning filters.

        If one of them implements a hook that the server has already called, the worker asks for a
        replacement and exits.
        """
        manager = config.pluginmanager
        plugins = manager.get_plugins()
        before = set(map(id, plugins))
        called_here = {id(config), id(manager.getplugin("warnings"))}
        called_before = [each for each in plugins if id(each) not in called_here]
        # Only pytest's own implementation and the warnings plugin run now; all other implementations of
        # the hook have been called in the server.
        load = manager.subset_hook_caller("pytest_load_initial_conftests", called_before)
        try:
            load(early_config=config, args=list(config.invocation_params.args), parser=config._parser)
        except BaseException as error:  # only an earlier level reports it as pytest does
            self._restart(Level.IMPORTED, f"a conftest raised {type(error).__name__}")
        for plugin in config.pluginmanager.get_plugins():
            for level, hooks in _LATE_HOOKS.items() if id(plugin) not in before else ():
                for hook in hooks if level <= self._level else ():
                    if getattr(plugin, hook, None) is not None:
                        self._restart(Level(level - 1), f"a conftest has {hook}")

    def _require_harmless(self, config: pytest.Config, hook: str, level: Level) -> None:
        """Give up if an unknown plugin implements a hook, which the server would call once for all workers.

        ``level`` is the highest one that is then still possible.
        """
        for implementation in getattr(config.hook, hook).get_hookimpls():
            plugin = implementation.plugin
            module = str(getattr(plugin, "__name__", type(plugin).__module__)).partition(".")[0]
            if module not in HARMLESS_PLUGINS:
                self._give_up(CannotServe(level, f"the plugin {module} implements {hook}"))

    def _give_up(self, failure: CannotServe) -> NoReturn:
        """Abort the start of pytest; the failure is raised again at the end if pytest swallows it."""
        self._failure = failure
        raise failure

    def _restart(self, level: Level | None, reason: str) -> NoReturn:
        """Ask the parent for a replacement that starts at an earlier level, and exit.

        A ``level`` of ``None`` asks for one without preloaded modules.
        """
        assert self._journal is not None
        self._journal.write("restart", level=None if level is None else int(level), reason=reason)
        exit_process(RESTART_EXIT)


def _fill_shelf(shelf: ModuleShelf, start: Start) -> None:
    """Preload modules and take the reference state of tampering checks, right before the first fork.

    Raises :class:`CannotServe` with the module that must not be preloaded.
    """
    try:
        shelf.fill(start.modules)
    except Unfit as unfit:
        raise CannotServe(Level.STARTED, str(unfit), unfit.module) from unfit
    note_modules()
    for _ in range(2):  # patches that plugins applied while they were configured are not the project's
        judges_at_start().compare()


def _whole_session(spec: WorkerSpec, shelf: ModuleShelf) -> Session:
    """Return the session of a worker that runs ``pytest.main`` from the beginning."""
    session = Session(spec.args, shelf)
    session.begin(spec)
    return session


def _open_journal(spec: WorkerSpec) -> JournalWriter:
    environment_secrets()  # before a test changes the environment
    return JournalWriter(spec.journal, spec.worker_id, spec.key, record_without_secrets)


def _leave_removals_to_parent(journal: JournalWriter, limits: SoftLimits) -> None:
    """Report the temporary folders that pytest would remove at its end, instead of removing them.

    They may be those of another project's large suite: the parent removes them, once, after its verdicts.
    """
    remove = pathlib.cleanup_numbered_dir

    def cleanup_numbered_dir(
        root: Path, prefix: str, keep: int, consider_lock_dead_if_created_before: float
    ) -> None:
        if limits.is_testing:  # a session inside the test, or the test of a plugin
            remove(root, prefix, keep, consider_lock_dead_if_created_before)
        else:
            dead = consider_lock_dead_if_created_before
            journal.write("old_folders", worker="", root=str(root), prefix=prefix, keep=keep, dead=dead)

    pathlib.cleanup_numbered_dir = cleanup_numbered_dir


def _apply_arguments(config: pytest.Config, spec: WorkerSpec, probe: Sequence[str]) -> None:
    """Patch the configuration to what the worker's own arguments would have produced.

    The server has parsed the arguments of another command of its group: their options are equal, but not
    the positional arguments (those were ``probe``), ``-k``, ``-m`` and ``--deselect``.
    """
    option, known = config.option, config.known_args_namespace
    parsed = option.file_or_dir
    # Those of addopts come before those of the command.
    selections = [*parsed[: len(parsed) - len(probe)], *spec.selections]
    for namespace in (option, known):
        namespace.file_or_dir = list(selections)
        if spec.keyword is not None:
            namespace.keyword = spec.keyword
        if spec.markexpr is not None:
            namespace.markexpr = spec.markexpr
        if spec.deselect:
            namespace.deselect = [*(namespace.deselect or ()), *spec.deselect]
    config.args, config.args_source = config._decide_args(
        args=selections,
        pyargs=option.pyargs,
        testpaths=config.getini("testpaths"),
        invocation_dir=config.invocation_params.dir,
        rootpath=config.rootpath,
        warn=False,
    )
    config.invocation_params = pytest.Config.InvocationParams(
        args=spec.args, plugins=config.invocation_params.plugins, dir=config.invocation_params.dir
    )
    cache: Any = getattr(config, "cache", None)
    last_failed: Any = config.pluginmanager.getplugin("lfplugin")
    newest: Any = config.pluginmanager.getplugin("nfplugin")
    if cache is not None and last_failed is not None:  # may have been rewritten since the server read it
        last_failed.lastfailed = cache.get("cache/lastfailed", {})
    if cache is not None and newest is not None:
        newest.cached_nodeids = set(cache.get("cache/nodeids", []))


def _clear_collected_exceptions(config: pytest.Config) -> None:
    """Clear the unraisable and thread exceptions that pytest collected in the server."""
    for module, name in (
        ("_pytest.unraisableexception", "unraisable_exceptions"),
        ("_pytest.threadexception", "thread_exceptions"),
    ):
        key: Any = getattr(sys.modules.get(module), name, None)
        noted: Any = None if key is None else config.stash.get(key, None)
        if noted is not None:
            noted.clear()


def _register(pluginmanager: pytest.PytestPluginManager, recorder: Recorder) -> None:
    """Register the recorder by its name, and the plugins that belong to it without a name."""
    pluginmanager.register(recorder, RECORDER)
    pluginmanager.register(recorder.tampering)
    pluginmanager.register(recorder.soft_limits)
    pluginmanager.register(SuitePropertyRecorder())
    if hasattr(recorder, "spec") and recorder.spec.recorded_tests:
        pluginmanager.register(SpectrumRecorder(recorder))


def _enter_environment(start: Start) -> None:
    """Change working directory, environment and ``sys.path`` to those of the group."""
    set_planner_apart()
    become_worker()
    os.chdir(start.root)
    env = dict(start.env)
    sys.path[:] = _search_path(sys.path, start, env)
    # pytest-xdist gives its workers a copy of the path that it took when the server imported it.
    getattr(sys.modules.get("xdist.plugin"), "_sys_path", [])[:] = sys.path
    os.environ.update(env)
    if env.keys() & {"TMPDIR", "TEMP", "TMP"}:  # forget the folder that was determined from the old ones
        tempfile.tempdir = None
    if "TZ" in env and hasattr(time, "tzset"):
        time.tzset()  # the C library reads the variable at its first use only
    # As the interpreter sets it for ``python -m pytest`` and for the script ``pytest``.
    script = f"{os.path.dirname(sys.executable)}/pytest"
    sys.argv[:] = [pytest.__path__[0] + "/__main__.py" if start.as_module else script]
    sys.orig_argv[:] = [sys.executable, *(("-m", "pytest") if start.as_module else (script,))]
    from _pytest.assertion.rewrite import AssertionRewritingHook

    # pytest installed this hook with our start-up options; the worker's own pytest installs a new one.
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if not isinstance(finder, AssertionRewritingHook)
    ]


def _search_path(entries: Sequence[str], start: Start, env: dict[str, str]) -> list[str]:
    """Return ``sys.path`` as it would be if the command ran alone.

    Entries that stem from how this run was started are replaced by those of the command: its folder and
    its ``PYTHONPATH``.
    """
    kept = list(entries)
    for entry in start.script_paths:
        if entry in kept:
            kept.remove(entry)
    if "PYTHONPATH" in env:
        before = _split_search_path(os.environ.get("PYTHONPATH", ""))
        kept = [*_split_search_path(env["PYTHONPATH"]), *(entry for entry in kept if entry not in before)]
    return [start.root, *kept] if start.as_module else [os.path.dirname(sys.executable), *kept]


def _split_search_path(text: str) -> list[str]:
    return [os.path.abspath(entry) for entry in text.split(os.pathsep)] if text else []


def _redirect(log: str) -> None:
    """Point the three standard descriptors, and new stream objects for them, to the log (stdin to null)."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    os.close(null)
    # They live as long as the process, hence no context manager. Names and encodings must equal those
    # of a process started from a shell, as tests may look at them.
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        before = getattr(sys, name)  # None if the descriptor was closed when the run started
        mode, buffering = ("w", 1) if number else ("r", -1)
        stream: Any = open(  # noqa: SIM115
            number,
            mode,
            buffering,
            encoding=getattr(before, "encoding", None),
            errors=getattr(before, "errors", None),
            closefd=False,
        )
        stream.buffer.raw.name = f"<{name}>"
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
