"""Runs one ordinary pytest session in the process that was forked for it.

The process is told everything by its :class:`~pytest_planverify.observing.spec.SessionSpec` and
answers by journal records and its exit status.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from typing import TYPE_CHECKING

import pytest

from pytest_planverify.journal import JournalWriter
from pytest_planverify.observing import phases
from pytest_planverify.observing.audit import Audit, watch, watching
from pytest_planverify.observing.fixtures import RECORDER, SuitePropertyRecorder
from pytest_planverify.observing.placing import Placing
from pytest_planverify.observing.recorder import WORKER_INPUT, Recorder
from pytest_planverify.observing.role import become_session
from pytest_planverify.observing.spec import SessionSpec

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

HARNESS_EXIT = 70
"""Exit status of a session whose own set-up failed before pytest was reached."""


def run_session(spec: SessionSpec) -> int:
    """Become the session: change folder, environment and output, run pytest, return its exit status."""
    become_session()
    journal = JournalWriter(spec.journal, spec.session_id, spec.key)
    audit: Audit | None = None
    try:
        _enter(spec)
        audit = watch(spec)
        recorder = Recorder(spec, journal)
        recorder.watch_for_crashes()
        phases.board.leave_to_this_process()
        plugin = _SessionPlugin(recorder)
        status = int(pytest.main(list(spec.args), plugins=[plugin]))
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(bool(error.code))
        journal.write("stopped", worker="", reason=f"SystemExit: {error.code}")
    except BaseException:
        journal.write("internal_error", worker="", text=traceback.format_exc()[-20_000:])
        status = HARNESS_EXIT
    _flush()
    if audit is not None:
        audit.flush()
    journal.write("session_ended", exit_status=status)
    return status


def register_in_worker(config: pytest.Config) -> None:
    """Observe in an xdist worker, whose spec came through its channel."""
    worker_input = getattr(config, "workerinput", {})
    text = worker_input.get(WORKER_INPUT)
    if text is None:
        return
    spec = SessionSpec.from_json(text)
    recorder = Recorder(spec, JournalWriter(spec.journal, spec.session_id, spec.key))
    recorder.attach_to_worker(config, str(worker_input.get("workerid", "worker")))
    _register(config.pluginmanager, recorder)


class _SessionPlugin:
    """Registers the recorder under its name; pytest registers objects that it is given by their id."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    @pytest.hookimpl(tryfirst=True)
    def pytest_addhooks(self, pluginmanager: pytest.PytestPluginManager) -> None:
        _register(pluginmanager, self._recorder)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_cmdline_parse(self) -> Generator[None, pytest.Config, pytest.Config]:
        """Write down what keeps a session from starting, which pytest only prints."""
        from pytest_planverify.observing.evidence import startup_evidence

        recorder = self._recorder
        try:
            config = yield
            recorder.adopt(config)
            return config
        except pytest.UsageError as error:
            recorder.journal.write("usage_error", worker="", message=str(error))
            raise
        except BaseException as error:
            evidence = startup_evidence(error, recorder.project)
            recorder.journal.write("startup_failure", worker="", evidence=evidence)
            raise


def _register(pluginmanager: pytest.PytestPluginManager, recorder: Recorder) -> None:
    pluginmanager.register(recorder, RECORDER)
    pluginmanager.register(recorder.witness)
    pluginmanager.register(recorder.live_fixtures)
    pluginmanager.register(recorder.soft_limits)
    pluginmanager.register(SuitePropertyRecorder(recorder))
    audit = watching()
    if audit is not None:
        recorder.audit = audit
        pluginmanager.register(Placing(audit, recorder.spec, recorder.wanted_by))


def _enter(spec: SessionSpec) -> None:
    if spec.log is not None:
        _redirect(spec.log)
    os.chdir(spec.root)
    sys.path[:] = _search_path(sys.path, spec)
    os.environ.update(spec.env)
    if spec.env.keys() & {"TMPDIR", "TEMP", "TMP"}:
        tempfile.tempdir = None
    if "TZ" in spec.env:
        time.tzset()
    program = (
        pytest.__path__[0] + "/__main__.py"
        if spec.as_module
        else f"{os.path.dirname(sys.executable)}/pytest"
    )
    sys.argv[:] = [program, *spec.args]
    from _pytest.assertion.rewrite import AssertionRewritingHook

    sys.meta_path[:] = [
        finder for finder in sys.meta_path if not isinstance(finder, AssertionRewritingHook)
    ]
    for name in [name for name in sys.modules if name.partition(".")[0] == "planner"]:
        del sys.modules[name]  # the project may have a package of that name; everything needed is loaded


def _search_path(entries: Sequence[str], spec: SessionSpec) -> list[str]:
    """``sys.path`` as the command itself would have it: how this run was started does not count."""
    kept = list(entries)
    for entry in spec.script_paths:
        if entry in kept:
            kept.remove(entry)
    if "PYTHONPATH" in spec.env:
        before = _named_paths(os.environ.get("PYTHONPATH", ""))
        kept = [*_named_paths(spec.env["PYTHONPATH"]), *(entry for entry in kept if entry not in before)]
    return [spec.root, *kept] if spec.as_module else [os.path.dirname(sys.executable), *kept]


def _named_paths(text: str) -> list[str]:
    return [os.path.abspath(entry) for entry in text.split(os.pathsep)] if text else []


def _redirect(log: str) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    os.close(null)
    # The process keeps these streams until it ends.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
