"""Command ``planverify run``: carries out a plan with agents until every todo is done.

The command prepares the run (options, log, snapshot and baseline of the user's tree) and repeats rounds of
:class:`~pytest_planverify.harness.loop.Loop`. Each round ends with a verification of the whole plan in new
processes; if that fails, the plan is carried out again with a new log. A run that was killed at any point
can be resumed from its log.
"""

from __future__ import annotations

import fnmatch
import json
import os
import shlex
import shutil
import sys
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.arguments import nearest
from planner.cli.exits import INTERRUPTED, Status, UsageMistake
from planner.errors import PlannerError
from planner.model.taxonomy import Family
from planner.model.verdicts import TodoLife
from planner.planfile.file_writer import replace_file
from planner.planfile.locks import locked_folder
from planner.planfile.plan_folder import HOME
from planner.planfile.project_files import read_regular
from planner.planfile.record_files import baseline_bytes
from planner.planfile.tree import load_flat, load_tree
from planner.policy.dependencies import with_dependencies
from planner.policy.limits import lowered
from planner.store.run_log import is_over, make_log_folder, next_log, plan_logs
from planner.store.session import RunSession, RunSettings
from planner.text.display import counted, listed
from pytest_planverify.baseline import load_baseline
from pytest_planverify.baseline.changes import Changes
from pytest_planverify.baseline.kept_baseline import keep_contents, run_baseline
from pytest_planverify.baseline.record import look, make_baseline
from pytest_planverify.baseline.repository import ask, git
from pytest_planverify.checks.processes import end_processes_of, is_alive, start_time
from pytest_planverify.harness.agents import parse_agents
from pytest_planverify.harness.loop import Ending, Loop, RunOptions, RunSetup, plan_files
from pytest_planverify.harness.progress import RunProgress
from pytest_planverify.harness.snapshots import Snapshots, delete_trees
from pytest_planverify.harness.turns import TurnPool
from pytest_planverify.harness.undo import AFTER_RUN, BASELINE, BEFORE_RUN, DRIVER, refuse_while_running

if TYPE_CHECKING:
    from planner.model.outcome import OutcomeDocument
    from planner.model.plan import Plan
    from planner.planfile.tree import PlanTree
    from pytest_planverify.harness.agents import Agents

_WAIT_SECONDS = 60
MOST_ROUNDS = 3
"""Limit of rounds; a further round follows if the final verification of the whole plan fails."""

SAVED = "refs/planverify/saved"
"""Prefix of git references to the uncommitted work that runs saved."""
POLL_SECONDS = 0.2
"""Interval, in seconds, at which the log is polled for an answer."""
_ENDED = "ended"


def run_command(plan: Path, options: RunOptions) -> int:
    """Carry out a plan; return the exit status.

    Raises :class:`planner.errors.PlannerError`, or ``UsageMistake`` for options that do not fit.
    """
    tree = load_tree(plan)
    with suppress(PlannerError):  # the engine asks for a sub-plan that cannot be loaded when it is due
        tree.load_all()
    plans = {name: sub.loaded.plan for name, sub in tree.sub_plans().items()}
    root = tree.loaded.root
    agents = parse_agents(options.agents, root)
    _check_options(options, agents)
    progress = RunProgress(sys.stdout, plans, as_json=options.as_json)
    with closing(TurnPool(options.jobs, options.executor)) as pool:
        part = _requested_part(tree.loaded.plan, options, progress)
        setup = RunSetup(tree, part, agents, options, progress, pool)
        log = _choose_log(tree, resume=options.resume, restart=options.restart)
        _register_driver(log)
        seen = None if options.resume else _record_state(setup, log)
        try:
            return _carry_out(setup, log, seen)
        except (KeyboardInterrupt, BrokenPipeError):  # a closed pipe interrupts the work, too
            with suppress(OSError):
                progress.line(f"interrupted; resume with: {options.to_continue(setup.shown)}")
            return INTERRUPTED


def _record_state(setup: RunSetup, log: Path) -> OutcomeDocument | None:
    """Store the files from before the run, and record a baseline unless the project has one.

    Comparison with it detects product code written to trick the tests. Returns the outcomes of the
    recording; ``None`` without one, or if they do not show how each todo stands.
    """
    _refuse_or_save(setup, log.stem)
    root, snapshots, progress = setup.root, Snapshots(setup.root, log.stem), setup.progress
    todos, only = [todo.id for todo in setup.part.items], setup.options.only
    before = [each for each in todos if not any(fnmatch.fnmatchcase(each, one) for one in only)]
    if only and before:
        progress.line(f"carried out first, because others depend on them: {', '.join(before)}")
    snapshots.unlock()
    snapshots.include_tracked()
    # Before the baseline is recorded, which runs the project's tests: they may write files.
    snapshots.take(BEFORE_RUN)
    progress.phase("recording the state before the run")
    flat = load_flat(setup.tree.loaded.path)
    plan = flat.loaded.plan
    path, outcomes = run_baseline(root, plan.todo_list_id), None
    if load_baseline(root, plan.todo_list_id) is None:
        try:
            seen = look(root)  # before the tests are run, which may write files
            document, recorded = make_baseline(flat, seen, directory=Path.cwd())
            # The baseline last: a kill in between must not leave one whose contents are missing.
            keep_contents(root, seen.contents)
            replace_file(path, baseline_bytes(document))
            # Such todos are judged by comparison with the baseline, which its own recording cannot do.
            is_compared = any(todo.must_turn_green or todo.must_stay_green for todo in plan.items)
            outcomes = None if is_compared else recorded
        except PlannerError as error:
            progress.line(f"without a baseline, tampering within the product is not detected: {error}")
    if path.exists():
        snapshots.keep(BASELINE, path.read_bytes())
    return outcomes


def _carry_out(setup: RunSetup, log: Path, seen: OutcomeDocument | None) -> int:
    """Carry out the plan in up to ``MOST_ROUNDS`` rounds; return the exit status.

    ``seen`` are outcomes for the current files, if known.
    """
    progress, resume, left = setup.progress, setup.options.resume, MOST_ROUNDS
    while True:
        ending, is_green, loop = _one_round(setup, log, resume=resume, seen=seen)
        left -= 1
        if ending is not Ending.COMPLETED or is_green:
            status = _conclude(loop, ending, setup)
        elif left:
            progress.line("the last verification failed: the plan is carried out again")
            resume, seen, log = False, None, next_log(setup.tree.loaded)
            _register_driver(log)
            continue
        else:
            status, words = Status.FOUND, shlex.quote(setup.shown)
            progress.line(f"the last verification failed {MOST_ROUNDS} times; see planverify next {words}")
        # Only after the report: a run that is killed before this point can be resumed, and then reports
        # its end again.
        (loop.folder / _ENDED).touch()
        return status


def _check_options(options: RunOptions, agents: Agents) -> None:
    if not agents.vectors:
        raise UsageMistake(
            "no agent is configured; name --agent 'COMMAND {brief}', a preset such as --agent claude, "
            "or write [tool.planverify.agents] in pyproject.toml"
        )
    if options.resume and (options.only or options.limits):
        raise UsageMistake("--resume keeps the todos and limits of the run; remove --only and --max-…")
    if shutil.which("git") is None:
        raise PlannerError("git, which keeps the files of each turn, was not found; install it")


def _requested_part(plan: Plan, options: RunOptions, progress: RunProgress) -> Plan:
    """Return the plan with only the requested todos and their dependencies, and with lowered limits.

    Raises ``UsageMistake`` for an unknown todo.
    """
    names = [todo.id for todo in plan.items]
    for pattern in options.only:
        if not fnmatch.filter(names, pattern):
            raise UsageMistake(f"--only {pattern}: {nearest(pattern, names, 'the todos are')}")
    if options.only:
        chosen = [each for each in names if any(fnmatch.fnmatchcase(each, one) for one in options.only)]
        plan = with_dependencies(plan, chosen)
    plan, higher = lowered(plan, options.limits)
    for each in higher:
        progress.line(each)
    return plan


def _one_round(
    setup: RunSetup, log: Path, *, resume: bool, seen: OutcomeDocument | None
) -> tuple[Ending, bool, Loop]:
    """Carry out the plan once; return how that ended, whether the whole plan passes now, and the loop.

    ``seen`` are outcomes for the current files, if known.
    """
    plan, root = setup.tree.loaded.path, setup.root
    folder = root / HOME / "harness" / log.stem
    folder.mkdir(parents=True, exist_ok=True)
    snapshots = Snapshots(root, log.stem)
    # That of the part before a resumption: if this part is killed, undo would take it for the run's end.
    snapshots.forget(AFTER_RUN)
    newest, jobs = folder / f"plan{plan.suffix}", setup.pool.jobs
    newest.unlink(missing_ok=True)  # written again from the log: an agent may have edited it before a kill
    settings = RunSettings(plan=plan, log=log, jobs=jobs, adjust=lambda _: setup.part, newest=newest)
    with RunSession.open(settings) as session:
        loop = Loop(setup, folder, session, snapshots)
        try:
            if resume:
                loop.resume()
            else:
                loop.start(seen)
            ending = loop.run()
            while ending is Ending.WAITING and _is_answered(setup, log):
                loop.resume()
                ending = loop.run()
            green = ending is Ending.COMPLETED and loop.verify_whole_plan()
            return ending, green, loop
        except BaseException:
            # Also after an interrupt: the user's tree must not keep half of a turn.
            loop.put_back()
            raise
        finally:
            loop.close()
            # Last, as it may fail, on a full disk for example.
            snapshots.take(AFTER_RUN, since=snapshots.find(BEFORE_RUN))


def _is_answered(setup: RunSetup, log: Path) -> bool:
    """Wait for an answer by another process; return whether there was one within the configured time."""
    seconds, plan = setup.options.wait, shlex.quote(setup.shown)
    if seconds > 0:
        setup.progress.line(
            f"waiting {seconds:g} s for an answer; see planverify next {plan}, planverify serve {plan}"
        )
    # While the run waits, only answers make the log grow. A log that is gone counts as changed, too: the
    # session then refuses to go on.
    deadline, before = time.monotonic() + seconds, log.stat().st_size
    while time.monotonic() < deadline:
        if not log.exists() or log.stat().st_size != before:
            return True
        time.sleep(POLL_SECONDS)
    return False


def _register_driver(log: Path) -> None:
    """Register this process as the driver of the run with this log, and clean up after a killed one.

    Raises ``UsageMistake`` if another run of any plan of the project is still going on: each would take the
    changes of the other for those of its own turns.
    """
    harness = log.parent.parent / "harness"
    harness.mkdir(mode=0o700, exist_ok=True)
    with ExitStack() as stack:
        # Two runs that start at the same time must not both find that there is no other.
        with suppress(OSError):  # a file system without locks
            stack.enter_context(locked_folder(harness, _WAIT_SECONDS))
        refuse_while_running(harness)
        with suppress(OSError, ValueError, TypeError, RecursionError):
            pid, _, run = json.loads(read_regular(harness / DRIVER))
            if not is_alive(pid):
                end_processes_of(pid)
                delete_trees(harness / run)
        replace_file(harness / DRIVER, json.dumps([os.getpid(), start_time(os.getpid()), log.stem]))


def _choose_log(tree: PlanTree, *, resume: bool, restart: bool) -> Path:
    """Return the log to resume, or a new one; create its folder.

    Raises ``UsageMistake`` if there is no run to resume, or if an open run would be abandoned without
    ``restart``.
    """
    logs = plan_logs(tree.loaded)
    last = logs[-1]
    folder = last.parent.parent / "harness" / last.stem
    is_open = last.exists() and not is_over(last) and folder.is_dir()
    if resume:
        # A run that was killed before its first event, or before the final verification, can be resumed,
        # too.
        if not folder.is_dir() or (is_over(last) and (folder / _ENDED).exists()):
            raise UsageMistake("no run of this plan is unfinished; remove --resume")
        make_log_folder(last)
        return last
    if is_open and not restart:
        raise UsageMistake(
            f"the run in {last.name} is not finished; continue it with --resume, or start again with "
            "--restart"
        )
    log = last if not last.exists() else next_log(tree.loaded)
    make_log_folder(log)
    return log


def _refuse_or_save(setup: RunSetup, name: str) -> None:
    """Refuse uncommitted work, or keep it in a git reference, as the options demand.

    The plan, our own files and caches of Python do not count. Raises ``UsageMistake`` if it refuses.
    """
    root = setup.root
    changes = Changes(root)
    if (refusal := changes.refusal()) is not None:
        raise PlannerError(f"{root}: {refusal}; fix the repository")
    own = plan_files(setup.tree)
    changed = changes.of(None)[0] if changes.under_git else ()
    files = [each for each in changed if each not in own]
    if not files:
        return
    if setup.options.dirty == "refuse":
        raise UsageMistake(
            f"{listed(files, 3)} not committed; commit the changes, or keep them in git with --dirty save"
        )
    # A stash has tracked files only, and git makes none before the first commit or during a merge. The
    # snapshot before the run has everything.
    stash = (ask(root, "stash", "create", f"before planverify run {name}") or b"").decode().strip()
    if stash:
        git(root, "update-ref", f"{SAVED}/{name}", stash)
    where = f", and is {SAVED}/{name} in git" if stash else ""
    setup.progress.line(f"your uncommitted work is kept: planverify undo restores it{where}")


def _conclude(loop: Loop, ending: Ending, setup: RunSetup) -> int:
    """Print the result of the run and how to continue; return the exit status."""
    progress, words = setup.progress, shlex.quote(setup.shown)
    tree = progress.tree(loop.state)
    progress.line(
        f"{ending.value}: {tree.done} of {counted(tree.total, 'todo')} done, "
        f"{counted(progress.turns, 'turn')}"
    )
    own = (each for each in loop.state.records.values() if not (each.is_branch or each.todo.is_temporary))
    # A todo has failed if it has branches, retries or an outcome; a parent has its todos instead.
    failed = [each for each in own if not each.children and (each.branches or each.retries or each.outcome)]
    if failed:
        recovered = sum(record.life is TodoLife.DONE for record in failed)
        progress.line(f"recovered {recovered} of {counted(len(failed), 'failed todo')}")
    if ending is Ending.COMPLETED:
        return Status.OK
    if ending is Ending.WAITING:
        progress.line(
            f"answer with planverify answer, approve or reject: planverify next {words} shows how"
        )
        progress.line(f"then: {setup.options.to_continue(setup.shown)}")
        return Status.HUMAN_NEEDED
    progress.line(f"to see the failures: planverify next {words}")
    category = getattr(loop.state.stopped, "category", None)
    family = None if category is None else category.facts.family
    way = "with a larger budget" if family is Family.BUDGET else "once the cause is removed"
    progress.line(f"to continue {way}: {setup.options.to_continue(setup.shown, resume=False)}")
    if family is Family.SANDBOX:
        return Status.SECURITY_HALT
    return Status.BUDGET_HALT if family is Family.BUDGET else Status.FOUND
