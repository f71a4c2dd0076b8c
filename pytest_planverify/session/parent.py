"""The process that was started: loads the plans, has them verified, says what was found."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.config import create_terminal_writer

from planner.edges.file_writer import prepare_place, screen_apart
from pytest_planverify.options import REWRITING, Settings, read_settings, require_known_options
from pytest_planverify.session.fork_server import ForkServer, ForkServerDied, lanes_of_last_run
from pytest_planverify.session.interrupts import stop_in_order

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from _pytest._io import TerminalWriter

    from pytest_planverify.observe.spec import Start
    from pytest_planverify.session.fork_server import Lane
    from pytest_planverify.session.prepare import Prepared, RunFacts


def supervise(config: pytest.Config) -> int:
    """Verify the plans of this command line. Returns the exit status; expected errors are printed."""
    paths = _start_paths(config)
    settings = read_settings(config)
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    server = None if settings.isolate else ForkServer(config.stash.get(REWRITING, None))
    ahead: dict[Start, list[Lane]] = {}
    if server is not None:
        folder = settings.plans[0].path.parent
        ahead = lanes_of_last_run(
            server, folder / ".planverify" / "warm.json", str(folder), settings.workers
        )
    _put_last(paths)
    try:
        apart = None if settings.collect_only else settings.outcomes
        with stop_in_order(), _rare_collections(), screen_apart(apart):
            return _verify(config, settings, server, paths, ahead)
    finally:
        if server is not None:
            server.close()
        if capture is not None:
            capture.resume_global_capture()


def _start_paths(config: pytest.Config) -> tuple[str, ...]:
    """Return the entries of ``sys.path`` that are there because of how this run was started."""
    entries = [str(path) for path in config.getini("pythonpath") if str(path) in sys.path]
    started = {os.getcwd(), "", os.path.dirname(os.path.abspath(sys.argv[0] if sys.argv else ""))}
    kept = list(sys.path)
    for entry in entries:
        kept.remove(entry)
    if kept and kept[0] in started and kept[0] not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        entries.append(kept[0])
    return tuple(entries)


def _put_last(paths: tuple[str, ...]) -> None:
    """Let nothing of the repository stand in for what the parent itself imports from now on."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    named = [os.path.abspath(entry) for entry in given if entry]
    late = [entry for entry in sys.path if entry in (*paths, *named)]
    sys.path[:] = [entry for entry in sys.path if entry not in late] + late


def _verify(
    config: pytest.Config,
    settings: Settings,
    server: ForkServer | None,
    paths: tuple[str, ...],
    ahead: dict[Start, list[Lane]],
) -> int:
    from planner.errors import PlannerError
    from pytest_planverify.session.exit_status import ExitStatus

    reconfigure: Any = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # what its encoding lacks is shown escaped
    tw = create_terminal_writer(config, sys.stdout)
    try:
        return _Run(_facts(config, settings, server, paths, tw), ahead).run()
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
    server: ForkServer | None,
    paths: tuple[str, ...],
    tw: TerminalWriter,
) -> RunFacts:
    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.reports.reporters import Reporting
    from pytest_planverify.session.confirm import ConfirmationBudget
    from pytest_planverify.session.prepare import RunFacts, now
    from pytest_planverify.session.run_folder import new_run_id

    return RunFacts(
        run_id=new_run_id(),
        config=config,
        settings=settings,
        server=server,
        script_paths=paths,
        tw=tw,
        progress=Progress(tw, verbosity=settings.verbosity, live=False if settings.interactive else None),
        budget=ConfirmationBudget(settings.confirmation_seconds),
        reporting=Reporting(config, wanted=not (settings.recording or settings.collect_only)),
        started_epoch=time.time(),
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


class _Run:
    """One run over one or several plans."""

    def __init__(self, facts: RunFacts, ahead: dict[Start, list[Lane]]) -> None:
        self._facts = facts
        self._ahead = ahead
        self._settings = facts.settings
        self._interrupted = False

    def run(self) -> int:
        from pytest_planverify.session.prepare import Preparing, load_plans

        settings = self._settings
        plans = load_plans(settings.plans)
        require_known_options(self._facts.config, settings, plans[0].plan.root)
        preparing = Preparing(self._facts)
        for file in (settings.outcomes,):
            if file is not None:
                prepare_place(file)
        prepared = [preparing.prepare(each) for each in plans]
        self._run_plans(prepared)
        from pytest_planverify.session.end import conclude, show_tree

        tell = show_tree if settings.collect_only else conclude
        return tell(self._facts, prepared, interrupted=self._interrupted)

    def _run_plans(self, prepared: Sequence[Prepared]) -> None:
        from planner.edges.file_writer import replace_file
        from pytest_planverify.session.workers import WarmPool, Workers, forget_files

        forget_files()
        collect_only, progress = self._settings.collect_only, self._facts.progress
        if not collect_only:
            progress.run_started(
                len(prepared),
                sum(len(each.plan.criteria[todo.id]) for each in prepared for todo in each.todos),
                self._settings.workers,
            )
        pool = None
        if self._facts.server is not None:
            pool = WarmPool(
                self._facts.server, self._settings.workers, prepared[0].folder.home, self._ahead
            )
        try:
            reds = 0
            if not collect_only and not self._settings.recording:
                for each in prepared:
                    each.guards.look()
            for each in prepared:
                each.run.reds = reds
                workers = Workers(
                    self._settings,
                    pool,
                    each.folder,
                    progress,
                    self._facts.script_paths,
                    each.flat,
                    each.run.look_around,
                    self._facts.reporting,
                )
                try:
                    each.run.run(workers, each.guards.added)
                finally:
                    workers.forget_ahead()
                reds = each.run.reds
        except KeyboardInterrupt:
            self._interrupted = True
        finally:
            progress.finished()
            if pool is not None:
                pool.remember(replace_file)
                pool.close()
