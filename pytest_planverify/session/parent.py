"""The parent process: loads plans, runs them, and reports the result."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
import time
import traceback
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any, TextIO, cast

import pytest
from _pytest.config import create_terminal_writer
from _pytest.pathlib import cleanup_numbered_dir

from planner.errors import PlannerError
from planner.planfile.file_writer import (
    OptionalOutput,
    prepare_place,
    stdout_redirected,
)
from pytest_planverify.options import Settings, read_settings, require_known_options
from pytest_planverify.session.fork_server import ForkServer, ForkServerDied
from pytest_planverify.session.interrupts import stop_in_order

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from _pytest._io import TerminalWriter

    from pytest_planverify.session.plans import RunFacts
    from pytest_planverify.session.run import SessionRun


def supervise(config: pytest.Config) -> int:
    """Verify the plans of this command line; return the exit status. Expected errors are printed."""
    paths = _start_paths(config)
    settings = read_settings(config)
    # pytest captures while it starts; progress and results belong to the terminal.
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    # Forked before the parent's other imports and before sys.path is reordered: workers inherit neither.
    server = None
    if not settings.isolate and _is_own_process():
        # If no process can be forked now, workers start cold, or report why that is not possible either.
        with contextlib.suppress(OSError):
            server = ForkServer()
    _move_to_end(paths)
    try:
        # Collecting writes no outcomes, so that its tree may go to standard output in any case.
        apart = None if settings.collect_only else settings.outcomes
        with stop_in_order(), _without_collections(), stdout_redirected(apart):
            try:
                return _verify(config, settings, server, paths)
            finally:
                if server is not None:  # further requests to stop are still ignored
                    server.close()
    finally:
        if capture is not None:
            capture.resume_global_capture()


def _is_own_process() -> bool:
    """Return whether this process was started to run pytest, not by a program that calls it.

    Forks of such a program would have its modules, loggers and exit callbacks: tests would see code from
    before a change, and the first worker that exits would remove the program's temporary folders.
    """
    frame = sys._getframe()
    has_main = False
    while frame.f_back is not None:
        frame = frame.f_back
        has_main = has_main or frame.f_code.co_name in ("console_main", "_console_main")
    # The outermost code is that of `python -m`, of `python -c`, or a command's script without an ending.
    return has_main and not frame.f_code.co_filename.endswith(".py")


def _start_paths(config: pytest.Config) -> tuple[str, ...]:
    """Return the entries of ``sys.path`` that are due to how this run was started."""
    entries = [str(path) for path in config.getini("pythonpath") if str(path) in sys.path]
    started = {os.getcwd(), "", os.path.dirname(os.path.abspath(sys.argv[0] if sys.argv else ""))}
    kept = list(sys.path)
    for entry in entries:
        kept.remove(entry)
    # The interpreter puts the folder of its script first, or the current one, except with -P. An entry of
    # PYTHONPATH may stand there, too, which is not due to the start.
    if kept and kept[0] in started and kept[0] not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        entries.append(kept[0])
    return tuple(entries)


def _move_to_end(paths: tuple[str, ...]) -> None:
    """Move ``paths`` and the entries of ``PYTHONPATH`` to the end of ``sys.path``."""
    # No file of the repository may shadow a module that the parent itself imports from now on.
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    named = [os.path.abspath(entry) for entry in given if entry]
    late = [entry for entry in sys.path if entry in (*paths, *named)]
    sys.path[:] = [entry for entry in sys.path if entry not in late] + late


def _verify(
    config: pytest.Config,
    settings: Settings,
    server: ForkServer | None,
    paths: tuple[str, ...],
) -> int:
    from pytest_planverify.session.exit_status import ExitStatus

    reconfigure: Any = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # never fail on a character that the encoding lacks
    # A full disk or a closed pipe must not end the run, whose outcomes are written to files.
    output = OptionalOutput(sys.stdout)
    tw = create_terminal_writer(config, cast("TextIO", output))
    try:
        status = _run(config, settings, server, paths, tw)
        output.flush()
        if output.failure is not None:
            why = output.failure.strerror
            with contextlib.suppress(OSError):  # both streams may be the same full disk
                print(f"the output cannot be written: {why}; write it elsewhere", file=sys.stderr)
        return status
    except PlannerError as error:
        tw.line(str(error), red=True)
        return ExitStatus.USAGE_ERROR
    except ForkServerDied as error:
        tw.line(f"internal error: {error}; nothing was accepted", red=True)
        return ExitStatus.INTERNAL_ERROR
    except pytest.UsageError:  # pytest itself shows it, as for its own options
        raise
    except KeyboardInterrupt:  # before anything ran, or after repeated requests
        tw.line("interrupted; nothing was accepted", red=True)
        return ExitStatus.INTERRUPTED
    except Exception as error:  # a defect of ours must not look like a failed criterion
        tw.line("".join(traceback.format_exception(error)))
        tw.line("internal error: this is a bug of pytest-planverify; nothing was accepted", red=True)
        return ExitStatus.INTERNAL_ERROR


@contextlib.contextmanager
def _without_collections() -> Generator[None]:
    """Disable garbage collection while the parent runs: its imports and records hardly contain cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()  # all objects are in the oldest generation now: their number triggers nothing
            gc.enable()
        # The interpreter's last collection, when it exits, would take as long as many tests.
        atexit.register(gc.freeze)


def _run(
    config: pytest.Config,
    settings: Settings,
    server: ForkServer | None,
    paths: tuple[str, ...],
    tw: TerminalWriter,
) -> int:
    """Run one or several plans and report the result; return the exit status."""
    # Imported after the fork of the base, whose workers would inherit these modules.
    from pytest_planverify.baseline.kept_baseline import now
    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.reports.reporters import Reporting
    from pytest_planverify.session.plans import RunFacts, load_plans
    from pytest_planverify.session.run import SessionRun
    from pytest_planverify.session.run_folder import RunFolder, new_run_id

    facts = RunFacts(
        run_id=new_run_id(),
        config=config,
        settings=settings,
        server=server,
        script_paths=paths,
        tw=tw,
        progress=Progress(tw, verbosity=settings.verbosity, live=False if settings.interactive else None),
        reporting=Reporting(config, wanted=not (settings.recording or settings.collect_only)),
        started=time.monotonic(),
        started_at=now(),
    )
    plans = load_plans(settings.plans)
    require_known_options(facts.config, settings, plans[0].plan.root)
    outputs = [settings.outcomes, *(report.path for report in settings.reports)]
    for chosen, output in product(plans, filter(None, outputs)):
        chosen.flat.refuse_to_replace(output)
    if settings.outcomes is not None:  # before the run, whose results would be lost
        prepare_place(settings.outcomes)
    counts: Counter[Path] = Counter()
    runs: list[SessionRun] = []
    for chosen in plans:
        root = chosen.plan.root
        counts[root] += 1
        # Further plans of the same root get their own folders and journals.
        folder = RunFolder(root, facts.run_id if counts[root] == 1 else f"{facts.run_id}.{counts[root]}")
        runs.append(SessionRun(facts, chosen, folder))
    interrupted = _run_plans(facts, runs)
    # Imported after the run, so that its first worker starts sooner.
    from pytest_planverify.session.end import conclude, show_tree

    tell = show_tree if settings.collect_only else conclude
    status = tell(facts, runs, interrupted=interrupted)
    records = (record for run in runs for record in run.result.records)
    old = {place: how for record in records for place, how in record.old_folders.items()}
    for place, how in old.items():
        atexit.register(_remove_old_folders, *place, *how)  # when all is said, as it may take minutes
    return status


def _remove_old_folders(root: Path, prefix: str, keep: int, dead: float) -> None:
    """Remove temporary folders of earlier sessions, as pytest does at its end, until it is interrupted."""
    with contextlib.suppress(KeyboardInterrupt, OSError):
        cleanup_numbered_dir(root, prefix, keep, dead)


def _run_plans(facts: RunFacts, runs: Sequence[SessionRun]) -> bool:
    """Run the plans one after another; return whether the run was interrupted."""
    from pytest_planverify.session.workers import WarmPool, Workers, forget_files

    forget_files()
    settings, progress, pool = facts.settings, facts.progress, None
    if not settings.collect_only:
        criteria = sum(
            len(each.loaded.criteria[todo.id])
            for each in runs
            for todo in each.todos
            if todo.id in each.asked
        )
        progress.run_started(len(runs), criteria, settings.workers)
    if facts.server is not None:
        pool = WarmPool(facts.server, runs[0].folder.home)
    try:
        if not settings.collect_only and not settings.recording:
            # Of all plans first: tests of one plan may change what belongs to another.
            for each in runs:
                each.guards.look()
        reds = 0  # --maxfail counts the failures of all plans
        for each in runs:
            each.reds = reds
            workers = Workers(facts, pool, each.folder, each.flat, each.raise_if_stopped)
            each.run(workers)
            reds = each.reds
    except KeyboardInterrupt:
        return True
    finally:
        progress.finished()
        if pool is not None:
            pool.remember()
            pool.close()
    return False
