"""Run session: applies a driver's events to the engine and records them in the log.

Order for each event, under the lock of the log: lines of other writers are folded; the event is completed
with facts from files, so that a replay needs no files; secrets are removed; the engine applies or refuses
it; it is written and synced; only then the new state becomes visible. A kill at any point leaves a log from
which the next session continues.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from planner import engine
from planner.engine.state import revised_plans
from planner.errors import LogError, PlanFileError, PlannerError, RefusedEvent
from planner.model.events import (
    ApprovalGiven,
    PlanSubmitted,
    RunPolicy,
    SubPlanLoaded,
    Verified,
)
from planner.model.past import PastRecords
from planner.model.plan import Todo
from planner.planfile.checks import judge_todo
from planner.planfile.file_writer import replace_file, write_file
from planner.planfile.loader import file_error, shown_path
from planner.planfile.project_facts import configured_tools, repository_fingerprint
from planner.planfile.project_files import Confinement
from planner.planfile.tree import SEPARATOR, PlanTree, load_tree
from planner.planfile.versions import plans_beside, refuse_other_plan
from planner.store.chain import log_error, one_line
from planner.store.run_log import RunLog, Step, log_to_continue, make_log_folder, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.model.outcome import FailureContext, Outcome
    from planner.model.plan import Plan
    from planner.planfile.loader import LoadedPlan

MAX_PROBLEMS = 100
"""Limit of the problems of a plan that are recorded."""
MAX_REMEMBERED = 500
"""Limit of past repairs, todos and corrections, each, that a run receives as memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The operator's settings of a run."""

    plan: Path
    log: Path | None = None
    """Path of the log; ``None`` means the plan's newest log, with memory from the project's index."""
    jobs: int | None = None
    """Limit of todos under work at once; ``None`` leaves it to the plan."""
    validates: bool = True
    """Validate the plan and its sub-plans; the problems become part of the run."""
    allow_unproved: bool = False
    """Accept outcomes without checks as proof, for foreign drivers."""
    adjust: Callable[[Plan], Plan] | None = None
    """Function that restricts the submitted plan to some todos or lower limits."""
    newest: Path | None = None
    """File that receives the newest version of the plan, with its comments and layout, after each change.

    Sub-plans are written beside it."""


def submission(loaded: LoadedPlan, at: datetime, policy: RunPolicy, **facts: Any) -> PlanSubmitted:
    """Return the event that submits a plan, with the tools that its project has configured.

    ``facts`` are further fields of the event. The id of the run is derived from plan and start time, not
    random, so that equal runs have equal logs.
    """
    tools = tuple(sorted(configured_tools(loaded.root)))
    given: dict[str, Any] = {"plan": loaded.plan, "digest": loaded.digest, "path": shown_path(loaded.path)}
    given["run_id"] = f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}-{loaded.digest.rpartition(':')[2][:6]}"
    return PlanSubmitted(at=at, policy=policy.model_copy(update={"tools": tools}), **{**given, **facts})


class RunSession:
    """A run of a driver, continued at the end of its log.

    Several sessions may share a log: each folds the others' lines before it applies an event.
    """

    def __init__(self, tree: PlanTree, settings: RunSettings, log: RunLog) -> None:
        self.state: State | None = None
        """State after all events; ``None`` before the first event, with which the plan is submitted."""
        self._tree = tree
        self._settings = settings
        self._log = log
        self._completer = EventCompleter(tree, settings.validates)
        self._unanswered: list[Action] = []
        """Actions that :meth:`tell` did not return, as other events caused them."""
        self._written: tuple[int, ...] = ()
        """Version numbers of the plan and its sub-plans that were written last."""
        self._unwritten = ""
        """Last remark on a failure to write them."""

    @classmethod
    def open(cls, settings: RunSettings) -> RunSession:
        """Load the plan and fold its log, which is created if missing.

        Raises :class:`planner.errors.PlannerError` if the plan, the log or the store cannot be used, if the
        log is of another plan or version, or if the file for the newest version is the plan or the log, or
        contains anything but a version of the plan.
        """
        tree = load_tree(settings.plan)
        path = settings.log or log_to_continue(tree.loaded)
        if settings.newest is not None:
            # Links are resolved, as two names of one file would overwrite it, too.
            for other, what in ((settings.plan, "the plan itself"), (path, "the log of the run")):
                if os.path.realpath(settings.newest) == os.path.realpath(other):
                    raise file_error(settings.newest, f"this is {what}; name another file")
            refuse_other_plan(settings.newest, {tree.loaded.plan.todo_list_id})
        session = cls(tree, settings, RunLog.append_to(path))
        try:
            with session._log.hold():
                session._catch_up()
        except BaseException:
            session._log.close()
            raise
        # Actions in the log were given to the driver when they were written; ``run_resumed`` repeats them.
        session._unanswered.clear()
        return session

    @property
    def log(self) -> Path:
        """Path of the log."""
        return self._log.path

    def restore_log(self, content: bytes) -> None:
        """Replace a log that was changed or removed by ``content``, a copy taken after the last event.

        Raises :class:`planner.errors.LogError` if the copy cannot be written or is damaged.
        """
        path, count = self.log, self._log.count
        # The handle belongs to the file that was removed or changed.
        self._log.close()
        make_log_folder(path)
        replace_file(path, content)
        self._log = RunLog.append_to(path)
        with self._log.hold():
            self._log.skip()
        assert self._log.count == count  # the copy is as long as the log that this session wrote

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def __enter__(self) -> RunSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tell(self, event: Event) -> tuple[Action, ...]:
        """Apply an event and write it to the log; return the actions that the engine requests.

        Raises :class:`planner.errors.RefusedEvent`, or :class:`planner.errors.LogError` if it cannot
        be written. In both cases the event has no effect. The first event submits the plan, too.
        """
        with self._log.hold():
            self._catch_up()
            state = self.state or self._submit(event)
            step = self._completer.take(state, event)
            # First to the disk: if that fails, the event must have had no effect.
            self._log.append(step)
            self.state = step.after
            return step.actions

    def unanswered(self) -> tuple[Action, ...]:
        """Return the actions since the last call that :meth:`tell` did not return.

        They were caused by other writers' events, or by the submission of the plan.
        """
        actions = tuple(self._unanswered)
        self._unanswered.clear()
        return actions

    def remarks(self) -> list[str]:
        """Return the remarks since the last call, after writing the newest version of a changed plan."""
        remarks = list(self._log.remarks)
        self._log.remarks.clear()
        if self._settings.newest is not None and self.state is not None:
            remarks += self._write_newest(self._settings.newest, self.state)
        return remarks

    def _write_newest(self, target: Path, state: State) -> list[str]:
        """Write the newest version of the plan; return a remark, once, while that fails."""
        # Versions only increase, so equal numbers mean equal plans.
        versions = tuple(part.version for part in state.parts.values())
        if versions == self._written:
            return []
        try:
            tree = load_tree(self._settings.plan)
            with contextlib.suppress(PlannerError):  # some may not be written yet
                tree.load_all()
            own_policies = {name: sub.loaded.plan.metadata for name, sub in tree.sub_plans().items()}
            for each in plans_beside(tree, revised_plans(state, own_policies), target):
                write_file(each.path, each.text, mode=None, durable=True)
        except PlannerError as error:
            remark = f"the newest plan could not be written: {error}"
            is_new, self._unwritten = remark != self._unwritten, remark
            return [remark] if is_new else []
        self._written = versions
        return []

    def _submit(self, first: Event) -> State:
        """Submit the plan at the time of the first event, and write that to the log.

        Raises ``RefusedEvent`` if a run cannot start with that event.
        """
        step = Step.take(None, self._submission(first.at))
        # Tried before anything is written, so that a refused event leaves no log behind.
        # A rejected plan refuses every event; its submission is written all the same, with the problems.
        if not step.after.plan_state.is_final:
            engine.step(step.after, first)
        self._log.append(step)
        self.state = step.after
        self._unanswered += step.actions
        return step.after

    def _catch_up(self) -> None:
        """Fold the lines that other writers have appended."""
        for step in self._log.steps(self.state):
            if isinstance(step.event, PlanSubmitted):  # only the first line
                self._recognise(step.event)
            self._unanswered += step.actions
            self.state = step.after

    def _submission(self, at: datetime) -> PlanSubmitted:
        """Return the event that submits the plan, with all facts that decisions depend on.

        An index that cannot be used is a remark, and the memory of past runs stays empty.
        """
        loaded, given = self._tree.loaded, self._settings
        fingerprint = repository_fingerprint(loaded.root, loaded.plan)
        memory = PastRecords(fingerprint=fingerprint)
        # With a named log, the project's index is not used: such a run depends on named files only.
        if given.log is None:
            from planner.store.index import open_index

            try:
                with open_index(loaded.root) as index:
                    self._log.remarks += index.remarks
                    memory = index.past_records(fingerprint, at, MAX_REMEMBERED)
            except LogError as error:
                self._log.remarks.append(f"{error}; earlier runs are not used")
        return submission(
            loaded,
            at,
            RunPolicy(jobs=given.jobs, allow_unproved=given.allow_unproved, fingerprint=fingerprint),
            plan=loaded.plan if given.adjust is None else given.adjust(loaded.plan),
            problems=problems_of(loaded.path, self._tree.boundary) if given.validates else (),
            memory=memory,
        )

    def _recognise(self, first: PlanSubmitted) -> None:
        """Check the first line of the log. Raises ``LogError`` if it is of another plan or version."""
        loaded, asked, begun = self._tree.loaded, self._settings, first.policy
        shown, plan_id = shown_path(loaded.path), loaded.plan.todo_list_id
        if first.plan.todo_list_id != plan_id:
            problem = f"this is the log of the plan '{first.plan.todo_list_id}', but {shown} is '{plan_id}'"
            raise log_error(self.log, problem, "name another log with --log")
        if first.digest != loaded.digest:
            raise log_error(
                self.log,
                f"{shown} has changed since the run began",
                "restore it, or start another run with another --log",
            )
        if (asked.jobs or begun.jobs) != begun.jobs or asked.allow_unproved > begun.allow_unproved:
            self._log.remarks.append(
                f"{self.log}: the run continues with the --jobs and --allow-unproved that it was "
                "started with"
            )


@dataclass(slots=True)
class EventCompleter:
    """Completes events with facts from files, removes secrets, and applies them."""

    tree: PlanTree
    """The plan; loaded again when a sub-plan is needed."""
    validates: bool = True
    """Validate sub-plans before they are added to the run."""

    def take(self, state: State, event: Event) -> Step:
        """Complete and apply an event. Raises :class:`planner.errors.RefusedEvent`.

        Files that a person allows a branch to change must be valid in a plan file.
        """
        if isinstance(event, ApprovalGiven) and event.changes.allowed_files is not None:
            changed = Todo(id="changes", title="approved", allowed_files=event.changes.allowed_files)
            for fault in self._faults(changed):
                problem = f"the plan in the event is invalid: {fault}"
                raise RefusedEvent("unfit-edit", problem, "correct the plan in the event")
        return Step.take(state, without_secrets(self.completed(event, state)))

    def completed(self, event: Event, state: State) -> Event:
        """Return the event with facts from files: a sub-plan, or the context of a failure.

        Files that cannot be used do not raise: their problems become part of the event.
        """
        if isinstance(event, SubPlanLoaded) and not event.problems:
            record = state.records.get(event.todo_id)
            return event if record is None else self._with_sub_plan(event, record.todo)
        if isinstance(event, Verified) and event.context is None and not event.outcome.success:
            return event.model_copy(update={"context": self.context(event.outcome, state)})
        return event

    def _faults(self, todo: Todo) -> Iterator[str]:
        """Yield the violations of the rules of plan files by a todo, one line each."""
        for place, fault in judge_todo(todo, Confinement(self.tree.loaded.root))[0]:
            yield one_line(f"{todo.id}.{'.'.join(map(str, place))}: {fault}")

    def _with_sub_plan(self, event: SubPlanLoaded, todo: Todo) -> SubPlanLoaded:
        """Return the event with the sub-plan of ``todo``, or with the problems that prevent it.

        The sub-plan is loaded from the file that the event or else the todo names.
        """
        # Files may have been written since the tree was loaded.
        self.tree = PlanTree(self.tree.loaded, self.tree.boundary)
        tree, changes = self._tree_of(event.todo_id), {"id": event.todo_id.rpartition(SEPARATOR)[2]}
        problems: tuple[str, ...] = ()
        if tree is None:
            problem = f"the plan above '{event.todo_id}' cannot be loaded from the file that the plan names"
            problems = (f"{problem}; write it there",)
            return event.model_copy(update={"plan": None, "problems": problems})
        facts: dict[str, Any] = {}
        if event.path is not None:
            changes |= {"sub_plan": event.path, "sub_project_id": None}
            # An event must not make the engine read a file outside of the project.
            if fault := Confinement(tree.loaded.root).fault(event.path):
                problems = (fault,)
        elif todo.sub_plan is None and todo.sub_project_id is None:
            problems = (f"'{event.todo_id}' names no sub-plan; put its path into the event",)
        if not problems:
            try:
                sub = tree.child_of(todo.model_copy(update=changes)).loaded
                problems = problems_of(sub.path, self.tree.widest_boundary) if self.validates else ()
                base = os.path.relpath(os.path.realpath(sub.root), os.path.realpath(self.tree.loaded.root))
                facts = {"plan": sub.plan, "digest": sub.digest, "base": base.replace(os.sep, "/")}
            except PlanFileError as error:
                problems = error.faults[:MAX_PROBLEMS]
        return event.model_copy(update={"plan": None, "problems": problems} if problems else facts)

    def _tree_of(self, todo_id: str) -> PlanTree | None:
        """Return the plan that contains a todo; ``None`` if one above it cannot be loaded from its file."""
        tree = self.tree
        try:
            for parent in todo_id.split(SEPARATOR)[:-1]:
                tree = tree.child(parent)
        except (KeyError, PlanFileError):
            return None
        return tree

    def context(self, outcome: Outcome, state: State) -> FailureContext | None:
        """Return evidence and source excerpts for a failed outcome; ``None`` if its todo is unknown."""
        if outcome.todo_id not in state.records:
            return None
        from planner.planfile.source_excerpts import load_failure_context

        top, tree = self.tree.loaded, self._tree_of(outcome.todo_id) or self.tree
        plan_id = top.plan.todo_list_id
        return load_failure_context(outcome, plan_id, root=tree.loaded.root, reports=top.root)


def problems_of(path: Path, boundary: Path | None) -> tuple[str, ...]:
    """Return the validation errors of a plan file, one line each, at most :data:`MAX_PROBLEMS`.

    ``boundary`` is the folder that sub-plans must not leave, if any.
    """
    from planner.model.findings import Severity
    from planner.planfile.validation import validate_plan

    return tuple(
        f"{':'.join(str(part) for part in (each.path, each.line, each.column) if part)}: {each.message}; "
        f"{each.fix} [{each.rule}]"
        for each in validate_plan(path, boundary=boundary)
        if each.severity is Severity.ERROR
    )[:MAX_PROBLEMS]
