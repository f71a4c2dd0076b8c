"""The process that was started: loads the plans, has them verified, says what was found."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
import time
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.config import create_terminal_writer

from pytest_planverify.options import REWRITING, Settings, read_settings
from pytest_planverify.supervision.forkserver import ForkServer, ForkServerDied
from pytest_planverify.supervision.sessions import start_paths

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from _pytest._io import TerminalWriter

    from pytest_planverify.supervision.prepared import Prepared
    from pytest_planverify.supervision.run_facts import RunFacts


PATIENCE = 3
"""So many requests to stop are one; who asks more often is not listened to, and the run ends at once."""


def supervise(config: pytest.Config) -> int:
    """Verify the plans of this command line. Returns the exit status; expected errors are printed."""
    if not hasattr(os, "fork"):
        raise pytest.UsageError("--planverify forks its sessions, and this platform cannot fork")
    paths = start_paths(config)
    settings = read_settings(config)
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    server = ForkServer(config.stash.get(REWRITING, None))
    _put_last(paths)
    try:
        with _own_interrupts(), _rare_collections():
            return _verify(config, settings, server, paths)
    finally:
        server.close()
        if capture is not None:
            capture.resume_global_capture()


def _put_last(paths: tuple[str, ...]) -> None:
    """Let nothing of the repository stand in for what the parent itself imports from now on."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    named = [os.path.abspath(entry) for entry in given if entry]
    late = [entry for entry in sys.path if entry in (*paths, *named)]
    sys.path[:] = [entry for entry in sys.path if entry not in late] + late


def _verify(config: pytest.Config, settings: Settings, server: ForkServer, paths: tuple[str, ...]) -> int:
    from planner.errors import PlannerError
    from pytest_planverify.supervision.exit_status import ExitStatus

    tw = create_terminal_writer(config, sys.stdout)
    try:
        return _Run(_facts(config, settings, server, paths, tw)).run()
    except PlannerError as error:
        tw.line(str(error), red=True)
        return ExitStatus.USAGE_ERROR
    except ForkServerDied as error:
        tw.line(f"internal error: {error}; nothing was accepted", red=True)
        return ExitStatus.INTERNAL_ERROR
    except pytest.UsageError:
        raise
    except KeyboardInterrupt:  # while nothing ran yet, or asked for again and again
        tw.line("interrupted; nothing was accepted", red=True)
        return ExitStatus.INTERRUPTED
    except Exception as error:  # a fault of the verifier must not look like a failed criterion
        tw.line("".join(traceback.format_exception(error)))
        tw.line("internal error: this is a fault of pytest-planverify; nothing was accepted", red=True)
        return ExitStatus.INTERNAL_ERROR


def _facts(
    config: pytest.Config,
    settings: Settings,
    server: ForkServer,
    paths: tuple[str, ...],
    tw: TerminalWriter,
) -> RunFacts:
    from pytest_planverify.confirmation_time import ConfirmationBudget
    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.supervision.run_facts import RunFacts, now
    from pytest_planverify.supervision.run_folder import new_run_id

    return RunFacts(
        run_id=new_run_id(),
        config=config,
        settings=settings,
        server=server,
        script_paths=paths,
        tw=tw,
        progress=Progress(tw, verbosity=settings.verbosity),
        budget=ConfirmationBudget(settings.confirmation_seconds),
        started=time.monotonic(),
        started_at=now(),
    )


@contextlib.contextmanager
def _rare_collections() -> Generator[None]:
    """Let the parent's imports and records, which hardly hold a cycle, not be searched for any.

    Nor afterwards, nor by the interpreter when it leaves: that takes as long as many of the tests.
    """
    before = gc.get_threshold()
    gc.set_threshold(200_000, *before[1:])
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # now they count as old, and are not searched for being many
        gc.set_threshold(*before)
        atexit.register(gc.freeze)


@contextlib.contextmanager
def _own_interrupts() -> Generator[None]:
    """Let Ctrl-C and a request to terminate stop the run in order, whatever it was started under.

    Asked again while it stops, it goes on stopping: it would leave processes behind and write nothing.
    """
    asked = 0

    def interrupt(number: int, frame: object) -> None:
        nonlocal asked
        asked += 1
        if asked == 1 or asked > PATIENCE:
            raise KeyboardInterrupt

    wanted = {signal.SIGINT: interrupt, signal.SIGTERM: interrupt}
    previous: dict[signal.Signals, Any] = {}
    try:
        for number, handler in wanted.items():
            previous[number] = signal.signal(number, handler)
    except ValueError:  # not the main thread of a program that called pytest.main()
        pass
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Run:
    """One run over one or several plans."""

    def __init__(self, facts: RunFacts) -> None:
        self._facts = facts
        self._settings = facts.settings
        self._interrupted = False

    def run(self) -> int:
        from pytest_planverify.supervision.chosen import load_plans
        from pytest_planverify.supervision.preparing import Preparing

        settings = self._settings
        plans = load_plans(settings.plans)
        preparing = Preparing(self._facts)
        if settings.last_failed and not any(
            tests for each in plans for tests in preparing.last_failed(each.flat).values()
        ):
            settings = self._settings = replace(settings, last_failed=False)
            self._facts = replace(self._facts, settings=settings)
            preparing = Preparing(self._facts)
        for file in (settings.outcomes, settings.junit):
            _require_place(file)
        prepared = [preparing.prepare(each) for each in plans]
        self._run_plans(prepared)
        from pytest_planverify.supervision.concluding import conclude, show_tree

        tell = show_tree if settings.collect_only else conclude
        return tell(self._facts, prepared, interrupted=self._interrupted)

    def _run_plans(self, prepared: Sequence[Prepared]) -> None:
        collect_only, progress = self._settings.collect_only, self._facts.progress
        if not collect_only:
            progress.run_started(
                len(prepared),
                sum(len(each.plan.criteria[todo.id]) for each in prepared for todo in each.todos),
                sum(len(stage.folds) for each in prepared for stage in each.run.stages),
            )
        try:
            reds = 0
            if not collect_only and not self._settings.recording:
                for each in prepared:
                    each.guards.look()
            for each in prepared:
                each.run.reds = reds
                each.run.run(each.guards.added)
                reds = each.run.reds
        except KeyboardInterrupt:
            self._interrupted = True
        progress.finished()


def _require_place(file: Path | None) -> None:
    """See to it, before anything runs, that what the run finds can be written there."""
    if file is None:
        return
    if file.is_dir():
        raise pytest.UsageError(f"{file} is a folder: name a file to write to")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise pytest.UsageError(f"{file}: its folder cannot be made: {error.strerror}") from None
