"""Loop of ``planverify run``: performs the engine's actions and reports events back.

The engine decides, the loop executes: it takes the next action, performs it (a turn of an agent, a
verification, a question) and reports the result as an event, for which the engine returns further actions.
All state that survives the process is in the event log and in files of the run's folder, so that
:meth:`Loop.resume` can continue after a kill at any point.

Agents are not trusted. Only a verification decides whether a todo is done, whatever its agent reports. A
snapshot precedes each turn, so that a turn that violates its limits or is interrupted leaves nothing
behind. Records of the run that an agent or a test changes are restored, and count as a violation. With a
pool, several turns run at once, each in a tree of its own; they are merged one by one into the user's tree.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import time
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.engine.intake import report_run
from planner.errors import PlannerError, RefusedEvent
from planner.model.actions import (
    AskHuman,
    Cancel,
    Finish,
    Halt,
    Implement,
    LoadSubPlan,
    Notify,
    PublishPlan,
    Verify,
)
from planner.model.events import (
    ClockTicked,
    RunResumed,
    RunStarted,
    SubPlanLoaded,
    Verified,
    WorkFinished,
    WorkStarted,
)
from planner.model.outcome import Check, Failure, Outcome, OutcomeDocument
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import CheckKind, PlanState, TodoLife, TodoState, Verdict
from planner.planfile.file_writer import replace_file, write_file
from planner.planfile.loader import shown_path
from planner.planfile.plan_folder import LATEST, PlanFolder
from planner.planfile.project_files import read_regular
from planner.planfile.record_files import outcomes_text
from planner.planfile.tree import load_flat, todo_digests
from planner.store.run_log import plan_logs
from planner.text.display import listed
from planner.text.glob_patterns import allowed
from planner.text.sanitizing import one_line, without_surrogates
from pytest_planverify.baseline.kept_baseline import run_baseline
from pytest_planverify.baseline.record import failure_reason, run_verifier
from pytest_planverify.baseline.repository import top_of
from pytest_planverify.guards.budget import is_expected
from pytest_planverify.harness.agents import DEFAULT_SECONDS, Turn, TurnReport, run_turn, write_briefs
from pytest_planverify.harness.snapshots import FileChanges, Records
from pytest_planverify.harness.turns import THREADS, SentTurn, make_job
from pytest_planverify.harness.undo import BASELINE, restore_command
from pytest_planverify.session.outcomes import summary_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.model.plan import Plan
    from planner.planfile.tree import FlatPlan, PlanTree
    from planner.store.session import RunSession
    from pytest_planverify.harness.agents import Agents
    from pytest_planverify.harness.progress import RunProgress
    from pytest_planverify.harness.snapshots import Snapshots
    from pytest_planverify.harness.turns import TurnPool, TurnResult

TICK_SECONDS = 5.0
"""Longest interval, in seconds, between clock events while waiting; deadlines are noticed that late."""

MOST_REFUSED = 5
"""Limit of refused events in a run, for example because the plan was edited meanwhile."""

_RECORDS = "which only planverify writes"
_TURN = "turn.json"


class Ending(StrEnum):
    """The end of a run."""

    COMPLETED = "completed"
    HALTED = "halted"
    WAITING = "waiting"
    """Only a person can continue it, by answering a question."""
    REJECTED = "rejected"
    """The engine refused the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of the command line of ``planverify run``."""

    agents: Sequence[str] = ()
    resume: bool = False
    restart: bool = False
    dirty: str = "refuse"
    jobs: int | None = None
    executor: str = THREADS
    turn_seconds: float | None = None
    brief_tokens: int = 800
    wait: float = 0.0
    """Seconds to wait for an answer that a person gives by another process."""
    only: Sequence[str] = ()
    """Ids or patterns of the todos to carry out; empty means all."""
    limits: Mapping[str, float] = field(default_factory=dict[str, float])
    """Limits by their name in the policy or budget; the lower of these and the plan's applies."""
    as_json: bool = False

    def to_continue(self, plan: str, *, resume: bool = True) -> str:
        """Return the command that resumes the run, or starts another one with the same agents and todos.

        The todos of a resumed run are in its log. Limits are not repeated.
        """
        # The work of this run is uncommitted, so that another one without --dirty would be refused.
        words = ["planverify", "run", plan, *(["--resume"] if resume else ["--dirty", "save"])]
        words += [] if resume else [word for each in self.only for word in ("--only", each)]
        words += [word for agent in self.agents for word in ("--agent", agent)]
        words += [] if self.jobs is None else ["--jobs", str(self.jobs)]
        words += [] if self.executor == THREADS else ["--executor", self.executor]
        words += [] if self.turn_seconds is None else ["--max-turn-seconds", f"{self.turn_seconds:g}"]
        return shlex.join(words)


@dataclass(frozen=True, slots=True)
class RunSetup:
    """Plan, options and components that all rounds of a run share."""

    tree: PlanTree
    part: Plan
    """The plan with only the todos that are carried out."""
    agents: Agents
    options: RunOptions
    progress: RunProgress
    pool: TurnPool

    @property
    def root(self) -> Path:
        """Root of the plan."""
        return self.tree.loaded.root

    @property
    def shown(self) -> str:
        """Path of the plan, as a person would write it."""
        return shown_path(self.tree.loaded.path)


@dataclass(frozen=True, slots=True)
class VerificationRun:
    """Result of one run of the verifier."""

    document: OutcomeDocument | None
    exit_status: int | None
    """``None`` if a signal ended the process."""
    problem: str
    """Reason why a todo has no outcome."""

    def outcome(self, todo_id: str, plan: str) -> Outcome:
        """Return a todo's outcome; if there is none, one that reports a failure of the harness."""
        outcomes = () if self.document is None else self.document.outcomes
        failure = Failure(
            category=Category.HARNESS_ERROR, stack_trace_head=self.problem, suggestion=self.problem
        )
        found = (each for each in outcomes if each.todo_id == todo_id)
        return next(found, None) or _failed_outcome(todo_id, failure, plan=plan)


def plan_files(tree: PlanTree) -> tuple[str, ...]:
    """Return the plan files, sub-plans included, relative to the root; no turn may change them.

    Plan files outside of the root are left out.
    """
    root = tree.loaded.root
    paths = [tree.loaded.path, *(sub.loaded.path for sub in tree.sub_plans().values())]
    return tuple(path.relative_to(root).as_posix() for path in paths if path.is_relative_to(root))


@dataclass(slots=True)
class Loop:
    """One round of carrying out a plan with agents. Not thread-safe; turns run in the pool's workers."""

    setup: RunSetup
    folder: Path
    """Folder of this run, below ``.planverify``."""
    session: RunSession
    snapshots: Snapshots
    progress: RunProgress = field(init=False)
    pool: TurnPool = field(init=False)
    _pending: deque[Action] = field(default_factory=deque[Any])
    """Actions that the engine has requested and that are not performed yet."""
    _ending: Ending | None = None
    _refused: int = 0
    _first_look: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    """Outcomes before any work, by todo id; part of an agent's brief."""
    _todo_ids: tuple[str, ...] = field(init=False)
    """Ids of the todos to carry out; empty means all."""
    _protected: tuple[str, ...] = field(init=False)
    _records: Records = field(init=False)
    _tampered: set[str] = field(default_factory=set[str])
    """Names of records that an agent or test changed; they are already restored."""
    _last_outcomes: OutcomeDocument | None = None
    """Outcomes of the last verification; ``None`` if its tests changed records."""
    _tree: str = ""
    """Snapshot of the user's tree as it should be while all running turns have their own trees.

    Any difference is a stray change, which counts against the next turn that is judged.
    """
    _directory: Path = field(default_factory=Path.cwd)
    """Working directory of this process, which an agent may remove."""

    def __post_init__(self) -> None:
        self.progress, self.pool = self.setup.progress, self.setup.pool
        tree, state = self.setup.tree, self.session.state
        chosen = self.setup.part.items if state is None else state.parts[""].plan.items
        is_part = len(chosen) < len(tree.loaded.plan.items)
        self._todo_ids = tuple(todo.id for todo in chosen) if is_part else ()
        self._protected = plan_files(tree)  # read before any turn can change which files these are
        self._records = Records(self.setup.root, self.folder, self.session, plan_logs(tree.loaded))

    def drop_turns(self, todo_id: str | None = None) -> None:
        """Terminate the turn on a todo, or all turns of the pool.

        What they changed outside of their trees is restored.
        """
        if self.pool.is_busy:
            self.pool.drop(todo_id)
            self._check_records()  # the agents may have written to them until they ended
            if not self.pool.is_busy:
                self._undo_stray_changes()

    def close(self) -> None:
        """Terminate all turns, and remove the copy of the records that is kept outside of the project."""
        self.drop_turns()  # first, as an agent that still runs may write files
        self._records.close()

    @property
    def state(self) -> State:
        """State of the engine; only valid once the run has begun."""
        assert self.session.state is not None  # the run has begun
        return self.session.state

    def start(self, seen: OutcomeDocument | None = None) -> None:
        """Start the run: verify the todos and report passing ones, so that no agent works on them.

        ``seen`` are outcomes of a verification of exactly these files. With them nothing is verified
        again.
        """
        document, chosen = seen, self._todo_ids
        if document is None:
            self.progress.phase("verifying the current state")
            document = self._verify(self.setup.tree.loaded.path, chosen).document
        else:
            self._last_outcomes = document
        outcomes = () if document is None else document.outcomes
        chosen = chosen or tuple(each.todo_id for each in outcomes)
        self._first_look = {each.todo_id: each for each in outcomes if each.todo_id in chosen}
        self._report(RunStarted(at=_now()))
        # Forbidden edits are reported, too: a turn would be blamed for those that are older than it.
        known = tuple(each for each in self._first_look.values() if _is_decided(each))
        if early := next((each for each in known if not each.success), None):
            self.progress.verified(early)
            self.progress.line(f"it was so before the run. {early.failures[0].suggestion or ''}".strip())

        def tell(event: Event) -> State:
            self._report(event, is_shown=False)
            return self.state

        if document is not None and not self.state.plan_state.is_final:
            report_run(self.state, document.model_copy(update={"outcomes": known}), (), _now(), tell)
        self.progress.state(self.state)

    def resume(self) -> None:
        """Continue a run at the end of its log; interrupted turns are undone and requested again."""
        self._ending = None
        self.snapshots.unlock()
        self._show_remarks()
        baseline = run_baseline(self.setup.root, self.setup.tree.loaded.plan.todo_list_id)
        kept = self.snapshots.kept(BASELINE)
        # An agent may have changed it before it killed this process.
        if kept is not None and not (baseline.is_file() and baseline.read_bytes() == kept):
            replace_file(baseline, kept)
            self.progress.line("the baseline of the run was changed, and is restored")
        # Killed before the first event, or within it: the plan is submitted together with it.
        if self.session.state is None or self.state.plan_state is PlanState.READY:
            self.start()
            return
        self.put_back()
        if not self.state.plan_state.is_final:
            self._report(RunResumed(at=_now()))

    def put_back(self) -> None:
        """Undo what an interrupted turn changed in the user's tree; a snapshot keeps those changes.

        A turn that the engine no longer waits for is complete, and only its mark is removed.
        """
        mark = self.folder / _TURN
        if not mark.exists():
            return
        try:
            turn = json.loads(read_regular(mark))
            turn_id, seq, todo_id, before = (turn[name] for name in ("id", "seq", "todo_id", "before"))
        # The agent has changed it, and killed this process.
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            remedy = f"run planverify undo {shlex.quote(self.setup.shown)}, then start with --restart"
            raise PlannerError(f"{mark}: the files before the last turn are unknown; {remedy}") from None
        if self._is_outstanding(todo_id, seq):
            kept = self.snapshots.take(f"cut-off-{turn_id}", since=before)
            self._restore(before)
            mark.unlink()  # before the line, which cannot be written if the terminal was closed
            self.progress.line(
                f"{todo_id}: a turn was interrupted; the files are as before it; to restore its changes: "
                f"{restore_command(self.setup.shown, kept)}"
            )
        mark.unlink(missing_ok=True)

    def run(self) -> Ending:
        """Perform actions until nothing is left to do, or only a person can continue.

        Raises :class:`planner.errors.PlannerError` if no agent has the role that a todo needs.
        """
        while self._ending is None:
            # Finished turns are merged first, so that one verification covers all of them.
            if (ended := self.pool.take_ended()) is not None:
                self._take_back(*ended)
            elif (action := self._next()) is not None:
                self._perform(action)
            elif self.pool.is_busy:
                self.pool.wait(min(TICK_SECONDS, self._seconds_to_wait()))
                self._report(ClockTicked(at=_now()))
            elif self.state.plan_state.is_final:
                is_done = self.state.plan_state is PlanState.COMPLETED
                self._ending = Ending.COMPLETED if is_done else Ending.HALTED
            elif self.state.questions and not self._pending:
                self._ending = Ending.WAITING
            elif self._pending:
                self.progress.waiting(self._seconds_to_wait(), self._pending[0])
                time.sleep(min(TICK_SECONDS, self._seconds_to_wait()))
                self._report(ClockTicked(at=_now()))
            elif self._refused < MOST_REFUSED:
                # Nothing is pending although the plan is not finished. On this event the engine repeats its
                # outstanding requests.
                self._report(RunResumed(at=_now()))
            else:
                self.progress.line(
                    "nothing more can be done: the engine refuses the same outcome again and again"
                )
                self._ending = Ending.HALTED
        if self._ending is not Ending.COMPLETED and self._last_outcomes is not None:
            self._publish(self._last_outcomes)  # else the whole plan is verified once more
        return self._ending

    def verify_whole_plan(self) -> bool:
        """Verify the whole plan in new processes; return whether everything passes.

        Records that were tampered with make the result negative.
        """
        self.progress.phase("verifying everything once more, in new interpreters")
        found = self._verify(self.current_plan(), self._todo_ids, cold=True)
        for name in sorted(self._tampered):
            self.progress.line(f"{name} was changed during its verification, and is restored")
        if self._last_outcomes is not None:
            self._publish(self._last_outcomes)
        return found.exit_status == 0 and found.document is not None and not self._tampered

    def _publish(self, document: OutcomeDocument) -> None:
        """Make the outcomes of a verification the latest ones of the user's plan, for reports and ``next``.

        Nothing is published if the run has changed criteria that the user's plan still has, or if a plan
        cannot be loaded any more.
        """
        loaded, ref = self.setup.tree.loaded, document.plans[0]
        try:
            flat, verified = load_flat(loaded.path), load_flat(self.current_plan())
        except PlannerError as error:
            self.progress.line(f"the outcomes were not published: {error}")
            return
        judged = _judging_parts(verified)  # without the todos that the run was not to carry out
        if any(judged.get(name, part) != part for name, part in _judging_parts(flat).items()):
            return
        todos = todo_digests(flat.loaded, flat.files)
        own = ref.model_copy(
            update={"path": shown_path(loaded.path), "digest": flat.loaded.digest, "todos": todos}
        )
        # Branches are todos of the run's plan only.
        names = {todo.id for todo in flat.loaded.plan.items}
        outcomes = tuple(each for each in document.outcomes if each.todo_id in names)
        compared = (ref.todo_list_id,) if document.summary.tests_since else ()
        summary = summary_of(outcomes, compared=compared)
        text = outcomes_text(
            document.model_copy(update={"plans": (own,), "outcomes": outcomes, "summary": summary})
        )
        with self._writing_records():
            for path in (PlanFolder(loaded.root, loaded.plan.todo_list_id).outcomes, loaded.root / LATEST):
                replace_file(path, text)

    def current_plan(self) -> Path:
        """Return the path of the plan with all edits of the run; without edits, of the user's plan file."""
        plan = self.setup.tree.loaded.path
        newest = self.folder / f"plan{plan.suffix}"
        return newest if newest.exists() else plan

    # -- actions ------------------------------------------------------------------------------------------

    def _next(self) -> Action | None:
        """Remove and return the next action that is due, or ``None``."""
        due = self._due()
        # Start agents before verifying, so that they work while the verification runs.
        action = next((each for each in due if not isinstance(each, Verify)), due[0] if due else None)
        if action is not None:
            self._pending.remove(action)
        return action

    def _due(self) -> list[Action]:
        """Return the actions that are due; drop pending ones that the engine no longer wants."""
        self._pending = deque(each for each in self._pending if self._is_current(each))
        return [each for each in self._pending if _seconds_until(each) <= 0]

    def _seconds_to_wait(self) -> float:
        """Return the seconds until the next pending action is due; the tick interval if none has a time."""
        return min((each for each in map(_seconds_until, self._pending) if each > 0), default=TICK_SECONDS)

    def _perform(self, action: Action) -> None:
        match action:
            case Implement():
                self._implement(action)
            case Verify():
                self._verify_todos(action)
            case Cancel():  # other requests are dropped by _due()
                self.drop_turns(action.todo_id)
            case AskHuman():
                self.progress.question(action)
            case Notify():
                self.progress.line(action.because)
            case PublishPlan():
                self.progress.line(f"the plan has version {action.version}: {action.because}")
            case LoadSubPlan():
                self._report(SubPlanLoaded(at=_now(), todo_id=action.todo_id))
            case Halt():
                self.progress.line(f"halted by {action.rule}: {action.because}")
                self._ending = Ending.HALTED
            case Finish():
                if action.result == "rejected":
                    for problem in action.problems:
                        self.progress.line(problem)
                self._ending = Ending.COMPLETED if action.result == "completed" else Ending.REJECTED

    def _implement(self, action: Implement) -> None:
        """Have an agent perform a turn: here and now, or in the pool if there is one."""
        if self._passes_already(action):
            return
        agents, options = self.setup.agents, self.setup.options
        if agents.vector(action.role) is None:
            raise PlannerError(
                f"no agent has the role {action.role.value}, which {action.todo_id} needs; continue with "
                f"--resume --agent {action.role.value}=COMMAND"
            )
        turn_id = f"{action.seq:04d}-{action.todo_id.replace('/', '.')}"
        limits = [
            each for each in (action.bounds.timeout_seconds, options.turn_seconds) if each is not None
        ]
        turn = Turn(
            id=turn_id,
            action=action,
            role=action.role,
            folder=self.folder / "turns" / turn_id,
            root=self.setup.root,
            timeout_seconds=min(limits, default=DEFAULT_SECONDS),
        )
        turn.folder.mkdir(parents=True, exist_ok=True)
        turn.result.unlink(missing_ok=True)
        seen = self._first_look.get(action.todo_id)
        prompt = write_briefs(turn, self.session, self.current_plan(), options.brief_tokens, seen=seen)
        before = self.snapshots.take(f"before-{turn_id}")
        # The agent may delete `.planverify`, and with it all snapshots.
        self._records.keep_copy()
        if self.pool.is_apart:
            self._send(turn, before)
            return
        # First, so that the turn is undone if the process is killed from here on.
        self._mark(turn, before)
        self._report_started(turn)
        self._records.note()  # after the last write of the run itself
        # Snapshots do not contain .git, so that it cannot be restored from them.
        had_repository = top_of(self.setup.root) is not None
        self.progress.turn_started(turn)
        try:
            report = run_turn(agents, turn, prompt=prompt)
        finally:  # without its records, an interrupted turn could not be undone
            self._check_records()
            self._records.restore_store()
        after = self.snapshots.take(f"after-{turn_id}", since=before)
        changes, violation = self._judge(turn, report, before, after)
        if had_repository and top_of(self.setup.root) is None:
            remedy = "the files are restored; restore the repository from a copy"
            violation = f"removed .git, the repository itself; {remedy}"
        if violation is not None:
            self._restore(before)
        self._report_finished(turn, report, changes, violation)

    def _judge(
        self, turn: Turn, report: TurnReport, before: str, after: str, stray: tuple[str, ...] = ()
    ) -> tuple[FileChanges, str | None]:
        """Record a turn's changes, and compare them and stray ones with its limits; return both.

        The first of these violations is returned: changed records, protected files, files outside of the
        allowlist, links out of the root in place of files. ``None`` if the turn stayed within its limits.
        """
        changes = self.snapshots.compare(before, after)
        write_file(turn.folder / "changes.diff", self.snapshots.diff(before, after))
        bounds, changed = turn.action.bounds, (*changes.changed, *stray)
        protected, free = (*self._protected, *bounds.protected_files), bounds.allowed_files
        # As in a verification, caches and reports of tools are nobody's work.
        work = (each for each in changed if not is_expected(each, ()))
        outside = [each for each in work if free is not None and not allowed(each, free)]
        rules = (
            (sorted(self._tampered), _RECORDS),
            ([each for each in changed if allowed(each, protected)], "which the plan protects"),
            (outside, "outside of its allowed_files"),
            # What is behind such a link is neither compared nor restored.
            (changes.escaping, "a link that leads out of the plan's root"),
        )
        violation = next((_forbidden_change(paths, why) for paths, why in rules if paths), None)
        self._tampered.clear()
        self.progress.turn_finished(turn, report, changes, violation)
        return changes, violation

    # -- turns side by side -------------------------------------------------------------------------------

    def _send(self, turn: Turn, before: str) -> None:
        """Send a turn to the pool, where it starts from the snapshot ``before``."""
        if not self.pool.is_busy:
            # While no turn is running, the records and the tree are accepted as they are.
            self._records.note()
            self._tree = before
        job = make_job(
            self.setup.agents, turn, self.snapshots, before, self.folder, is_shared=self.pool.is_shared
        )
        self.pool.send(SentTurn(job))
        self.progress.turn_started(turn)

    def _take_back(self, sent: SentTurn, result: TurnResult | None) -> None:
        """Judge a turn that ran in the pool, and merge its changes into the user's tree.

        ``result`` is ``None`` if the worker was lost. Results that the engine no longer waits for are
        dropped. A violation or a conflict leaves the user's tree without the turn's changes.
        """
        turn = sent.job.turn
        if not self._is_outstanding(turn.action.todo_id, turn.action.seq):
            return
        # Before git is called, as an agent may have removed the store of the snapshots.
        self._check_records()
        self._report_started(turn)
        if result is None:
            report = TurnReport(ended_well=False, message="the workers for the turn are lost")
            self.progress.turn_finished(turn, report, FileChanges(), None)
            self._report_finished(turn, report, FileChanges(), None)
            return
        for name, content in result.files.items():
            (turn.folder / name).write_bytes(content)
        if result.bundle is not None:
            self.snapshots.unbundle(result.bundle)
        ours, stray = self._stray_changes()
        changes, violation = self._judge(turn, result.report, result.before, result.after, stray)
        if violation is not None:
            self._restore(self._tree)
            self._report_finished(turn, result.report, changes, violation)
            return
        # Merge inside git first, so that the user's tree never contains half of a turn.
        merged, clashing = self.snapshots.merge(result.before, ours, result.after)
        self._tree = ours if clashing else merged
        if clashing:
            # The engine retries a failed turn, or has the todo verified: with the changes of the others, it
            # may even pass.
            files = ", ".join(clashing[:5])
            self.progress.line(
                f"{turn.action.todo_id}: what was merged meanwhile changes {files} otherwise"
            )
            message = f"{files} was changed otherwise meanwhile"
            report = replace(result.report, ended_well=False, message=message)
            self._report_finished(turn, report, FileChanges(), None)
            return
        self._mark(turn, ours)
        self.snapshots.lay_out(merged)
        self._report_finished(turn, result.report, changes, None)

    def _stray_changes(self) -> tuple[str, tuple[str, ...]]:
        """Return a snapshot of the user's tree, and the files in it that should not have changed."""
        now = self.snapshots.take("now")
        return now, self.snapshots.compare(self._tree, now).changed

    def _undo_stray_changes(self) -> None:
        """Restore the user's tree if the last turns wrote to it before they were terminated.

        No turn is judged after them, which such changes could count against.
        """
        now, stray = self._stray_changes()
        if stray:
            # A person may have made them, so they must not be lost.
            self.progress.line(
                f"{', '.join(stray[:5])} changed although all turns had work trees of their own, and is as "
                f"before; to get the changes back: {restore_command(self.setup.shown, now)}"
            )
            self._restore(self._tree)

    def _restore(self, snapshot: str) -> None:
        """Restore all files of a snapshot, and enter the working directory again if it was removed."""
        self.snapshots.restore(snapshot)
        os.chdir(self._directory if self._directory.is_dir() else self.setup.root)

    def _report_started(self, turn: Turn) -> None:
        # The engine's time limit starts here. A turn in the pool is reported only when it is finished:
        # there the worker enforces the limit.
        self._report(WorkStarted(at=_now(), todo_id=turn.action.todo_id, answers=turn.action.seq))

    # -- findings -----------------------------------------------------------------------------------------

    def _passes_already(self, action: Implement) -> bool:
        """Return whether a todo is decided without work, and report its outcome to the engine if so.

        Only a todo without any work is verified, and only if its checks did not run at the start of this
        process: because it was blocked, or because the run was resumed since.
        """
        record, seen = self.state.records[action.todo_id], self._first_look.get(action.todo_id)
        was_seen = seen is not None and seen.state is not TodoState.BLOCKED
        if was_seen or record.turns > 1 or record.is_branch or not record.todo.requires_testing:
            return False
        found = self._verify(self.current_plan(), (action.todo_id,), confirms=False)
        outcome = self._first_look[action.todo_id] = found.outcome(action.todo_id, self.state.plan_id)
        if not _is_decided(outcome):
            return False
        self.progress.verified(outcome)
        self._report(Verified(at=_now(), outcome=outcome))
        return not self._is_outstanding(action.todo_id, action.seq)

    def _report_finished(
        self, turn: Turn, report: TurnReport, changes: FileChanges, violation: str | None
    ) -> None:
        """Report the end of a turn to the engine, and its violation as a failed verification.

        The changes of a violating turn have been undone by the caller.
        """
        self._report(
            WorkFinished(
                at=_now(),
                todo_id=turn.action.todo_id,
                # A failed agent may still have done the work, which a verification will show.
                success=report.ended_well or bool(changes.changed),
                tokens=report.tokens,
                duration_ms=report.duration_ms,
                touched_files=tuple(map(without_surrogates, changes.changed)),
                new_files=tuple(map(without_surrogates, changes.new)),
                message=report.message,
                answers=turn.action.seq,
            )
        )
        if violation is not None:
            outcome = _violation(turn.action.todo_id, violation, changes.changed)
            self._report(Verified(at=_now(), outcome=outcome))
        with self._writing_records():
            (self.folder / _TURN).unlink(missing_ok=True)

    def _mark(self, turn: Turn, before: str) -> None:
        """Write the snapshot to restore if the process is killed, before a turn changes the user's tree."""
        requested = {"seq": turn.action.seq, "todo_id": turn.action.todo_id}
        with self._writing_records():
            replace_file(self.folder / _TURN, json.dumps({"id": turn.id, **requested, "before": before}))

    def _check_records(self, *, by_people: bool = True) -> None:
        """Restore the records that an agent or test has changed, and remember their names.

        With ``by_people`` changes that a person may make, such as answers, are kept.
        """
        names, was_removed = self._records.put_back(by_people=by_people)
        self._tampered.update(names)
        if was_removed:
            self.progress.line("the records of the run were removed; they are restored")

    def _verify_todos(self, first: Verify) -> None:
        """Perform ``first`` and all due verifications of its kind in one run; report each outcome."""
        # One run of pytest serves all pending requests.
        alike = [each for each in self._due() if isinstance(each, Verify) and each.isolate == first.isolate]
        for each in alike:
            self._pending.remove(each)
        asked = {todo_id: each.seq for each in (first, *alike) for todo_id in each.todo_ids}
        found = self._verify(self.current_plan(), tuple(asked), cold=first.isolate)
        causes = () if found.document is None else found.document.causes
        for todo_id, seq in asked.items():
            outcome = found.outcome(todo_id, self.state.plan_id)
            # The outcome of another todo may have halted the run.
            if not self._is_outstanding(todo_id, seq):
                continue
            if tampered := sorted(self._tampered):
                headline = _forbidden_change(tampered, _RECORDS, remedy="put back")
                outcome = _violation(todo_id, headline, tampered)
            self.progress.verified(outcome)
            self._report(
                Verified(
                    at=_now(),
                    outcome=outcome,
                    answers=seq,
                    run_id=None if found.document is None else found.document.run.run_id,
                    # Groups of failure signatures that have a common root cause.
                    causes=tuple(each.signatures for each in causes if len(each.signatures) > 1),
                )
            )

    def _verify(
        self, plan: Path, todo_ids: Sequence[str] = (), *, cold: bool = False, confirms: bool = True
    ) -> VerificationRun:
        """Verify todos of ``plan``, or all, by ``pytest --planverify`` in a child process.

        ``cold`` starts a new interpreter for each command. Without ``confirms`` failures are not run again,
        for callers that only need to know whether everything passes. Changes that the tests make to records
        are reverted, and remembered as tampering.
        """
        is_busy, loaded = self.pool.is_busy, self.setup.tree.loaded
        is_clean = is_busy and not self._stray_changes()[1]
        if not is_busy:
            self._records.note()
        # Each turn is compared with the limits of its own todo. Here any todo may have been worked on, also
        # by people before the run, so that no turn is blamed for what another todo may change.
        own = {todo.id for todo in loaded.plan.items}
        worked = sorted({*own, *(() if self.session.state is None else self.session.state.records)})
        baseline = run_baseline(self.setup.root, loaded.plan.todo_list_id)
        words = [f"{plan}::{','.join(todo_ids)}" if todo_ids else str(plan), "-q"]
        words += ["--planverify-isolate"] if cold else []
        words += [f"--planverify-worked={','.join(worked)}"] if worked else []
        words += [f"--planverify-baseline-file={baseline}"] if baseline.exists() else []
        words += [] if confirms else ["--planverify-confirm=0"]
        try:
            document, ended = run_verifier(words, self.folder / "outcomes.json", directory=Path.cwd())
        finally:  # also after an interrupt
            self._check_records(by_people=is_busy)
        problem = "the verifier has no outcome of this todo"
        if document is None:
            problem = f"the verifier wrote no outcomes {failure_reason(ended)}"
        elif plan != loaded.path:
            # Commands name the user's plan instead of the copy, as does the reason of a question; but not
            # those of branches, which are in the copy only.
            copy, original = (
                json.dumps(shown_path(each), ensure_ascii=False)[1:-1] for each in (plan, loaded.path)
            )
            outcomes = (
                Outcome.model_validate_json(each.model_dump_json().replace(copy, original))
                if each.todo_id in own
                else each
                for each in document.outcomes
            )
            document = document.model_copy(update={"outcomes": tuple(outcomes)})
        self._last_outcomes = None if self._tampered else document
        if is_clean:  # files that the verification wrote are no stray changes of agents
            self._tree = self.snapshots.take("verified")
        return VerificationRun(document, ended.exit_code, problem)

    # -- the engine ---------------------------------------------------------------------------------------

    def _report(self, event: Event, *, is_shown: bool = True) -> None:
        """Report an event to the engine, and enqueue the actions that it requests.

        A refused event is printed and counted. ``is_shown`` updates the progress display.
        """
        with self._writing_records():
            try:
                actions = self.session.tell(event)
            except RefusedEvent as error:
                self._refused += 1
                self.progress.line(f"refused: {error}")
                actions = ()
            self._pending += (*self.session.unanswered(), *actions)
            self._show_remarks()
        if is_shown:
            self.progress.state(self.state)

    def _show_remarks(self) -> None:
        """Print the remarks of the session, which also writes the newest version of the plan."""
        for remark in self.session.remarks():
            self.progress.line(remark)

    @contextlib.contextmanager
    def _writing_records(self) -> Generator[None]:
        """Context for writing records while turns may be running in the pool.

        Changes that agents made are reverted first, and the new state is noted afterwards: otherwise our
        own writes would look like theirs, or theirs like ours.
        """
        is_busy = self.pool.is_busy
        if is_busy:
            self._check_records()
        yield
        if is_busy:
            self._records.note(own=True)

    def _is_outstanding(self, todo_id: str, seq: int) -> bool:
        """Return whether the engine still waits for the result of action ``seq`` on a todo."""
        record = self.state.records.get(todo_id)
        return (
            record is not None
            and record.asked == seq
            and record.life in (TodoLife.ACTIVE, TodoLife.TESTING)
        )

    def _is_current(self, action: Action) -> bool:
        """Return whether the engine still wants an action, given the events since it was requested."""
        if isinstance(action, Implement):
            return self._is_outstanding(action.todo_id, action.seq)
        if isinstance(action, Verify):
            return any(self._is_outstanding(todo_id, action.seq) for todo_id in action.todo_ids)
        return True


def _forbidden_change(paths: Sequence[str], why: str, remedy: str = "the turn is undone") -> str:
    """Return the sentence on files that were changed without permission."""
    return f"changed {listed([one_line(each, limit=120) for each in paths], 3)}, {why}; {remedy}"


def _violation(todo_id: str, headline: str, paths: Iterable[str]) -> Outcome:
    """Return the outcome for the violating todo. As any allowlist violation, it halts the run."""
    failure = Failure(
        category=Category.ALLOWLIST_VIOLATION,
        owner=Owner.PRODUCT,
        confidence=1.0,
        rule="turn-outside-allowlist",
        because=headline,
        check_id="allowlist",
        stack_trace_head=headline,
    )
    check = Check(id="allowlist", kind=CheckKind.GUARD, verdict=Verdict.FAILED, reason=headline)
    touched = tuple(map(without_surrogates, paths))
    return _failed_outcome(todo_id, failure, verified=True, checks=(check,), touched_files=touched)


def _failed_outcome(todo_id: str, failure: Failure, **facts: Any) -> Outcome:
    """Return the outcome of a todo for a failure that no verifier found; ``facts`` are further fields."""
    return Outcome(
        todo_id=todo_id,
        state=TodoState.TEST_FAILED,
        success=False,
        tests_passed=False,
        failure_evidence=failure,
        failures=(failure,),
        **facts,
    )


def _judging_parts(flat: FlatPlan) -> dict[str, str]:
    """Return the parts of a plan that its verdicts depend on: policies by parent, and todos by id.

    The todos of sub-plans are among them, whatever file has them.
    """
    parts = {"": flat.loaded, **flat.files}
    # Without the budget, which options of the run may lower.
    policies = {
        f"policy of {name}": part.plan.metadata.model_dump_json(exclude={"budget"})
        for name, part in parts.items()
    }
    return policies | {
        todo.id: todo.model_dump_json(
            exclude={"title", "intent", "status", "priority", "sub_plan", "sub_project_id"}
        )
        for todo in flat.loaded.plan.items
    }


def _seconds_until(action: Action) -> float:
    """Return the seconds until an action may be performed; 0 or negative if it is due."""
    not_before: str | None = getattr(action, "not_before", None)
    return 0.0 if not_before is None else (datetime.fromisoformat(not_before) - _now()).total_seconds()


def _is_decided(outcome: Outcome) -> bool:
    """Return whether a todo needs no work: it passes, or judging files or foreign files were changed."""
    kinds = (Category.HYGIENE_VIOLATION, Category.ALLOWLIST_VIOLATION)
    return outcome.success or any(each.category in kinds for each in outcome.failures)


def _now() -> datetime:
    return datetime.now(UTC)
