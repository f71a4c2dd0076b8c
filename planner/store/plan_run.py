"""Run of a plan without a driver: its log, extended by the outcomes of each verification.

Used by ``planner next``, ``status`` and the commands that answer questions. It uses the plan's newest
log; a run that a driver carries out by ``planner step`` is only displayed.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from planner.engine import fold, step
from planner.engine.intake import must_restart, report_run, time_of
from planner.engine.state import is_plan_of
from planner.engine.transaction import moment
from planner.errors import ForeignOutcomesError, LogError, PlannerError
from planner.model.events import RunPolicy, RunResumed
from planner.planfile.latest_outcomes import FoundOutcomes, find_outcomes, verify_command
from planner.planfile.loader import collector_paused, shown_path
from planner.planfile.tree import load_tree
from planner.store.run_log import (
    RecordedRun,
    RunLog,
    Step,
    make_log_folder,
    next_log,
    plan_logs,
    run_of_log,
)
from planner.store.session import EventCompleter, submission

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.planfile.tree import PlanTree


class PlanRun:
    """A plan with the outcomes of its last run, and the engine's state after them."""

    def __init__(self, tree: PlanTree, found: FoundOutcomes, remarks: list[str]) -> None:
        self.tree = tree
        self.found = found
        self.remarks = remarks
        """Remarks for people, such as on unloadable sub-plans and refused outcomes."""
        self.log: Path | None = None
        """Path of the log, existing or not."""
        self.named_log: Path | None = None
        """Log named by the user, which follow-up commands must name, too."""
        self._document = found.document if found.plan_change is None else None
        """Outcomes that apply to the current plan."""
        self._now = datetime.now(UTC)
        """Time for outcomes without one: that of their file."""
        with suppress(OSError):
            self._now = datetime.fromtimestamp(found.path.stat().st_mtime, UTC)
        self._completer = EventCompleter(tree, validates=False)
        self._before: State | None = None
        """State before the first new event."""
        self._new: list[tuple[Event, tuple[Action, ...]]] = []
        """New events with their actions; only the last of the states is kept."""
        self._state: State | None = None

    @classmethod
    def open(
        cls, plan: Path, outcomes: Path | None = None, log: Path | None = None, *, keep: bool = False
    ) -> PlanRun:
        """Load a plan and its run; ``keep`` stores the last run's outcomes in the log.

        ``outcomes`` given by a user are evaluated alone: no log is read or written unless it is named,
        too. An unwritable log becomes a remark. Raises :class:`planner.errors.PlannerError`.
        """
        tree = load_tree(plan)
        remarks: list[str] = []
        try:
            tree.load_all()
        except PlannerError as error:
            remarks.append(str(error))
        subs = {name: sub.loaded for name, sub in tree.sub_plans().items()}
        try:
            found = find_outcomes(tree.loaded, outcomes, subs)
        except ForeignOutcomesError as error:
            if outcomes is not None:
                raise
            remarks.append(str(error))
            found = FoundOutcomes(path=tree.loaded.path, verify=verify_command(tree.loaded))
        run = cls(tree, found, remarks)
        run.named_log = log
        if outcomes is None or log is not None:
            run._continue(log)
        if run._state is None:
            run._submit(allow_unproved=outcomes is not None)
        if not run.is_driven and not run.state.plan_state.is_final:

            def tell(event: Event) -> State:
                run.tell(event)
                return run.state

            with collector_paused():
                _, refused = report_run(run.state, run._document, tree.sub_plans().keys(), run._now, tell)
            if not run.state.plan_state.is_final:  # what was not believed has no say in how a run has ended
                remarks += refused
        try:
            if keep and found.document is not None:
                run.save()
        except LogError as error:
            remarks.append(f"{error}; attempts are not counted from run to run")
        return run

    @property
    def state(self) -> State:
        """The state after all events."""
        assert self._state is not None  # it was submitted
        return self._state

    @property
    def is_driven(self) -> bool:
        """Return whether a driver carries the plan out and reports events itself."""
        return self.state.policy.driven

    def outstanding(self) -> tuple[Action, ...]:
        """Return the unanswered requests, each with the rule that first made it."""
        if self.state.plan_state.is_final:
            return ()
        actions: list[Action] = []
        for action in step(self.state, RunResumed(at=moment(self.state.now)))[1]:
            names = getattr(action, "todo_ids", None) or (getattr(action, "todo_id", ""),)
            record = self.state.records.get(names[0])
            if record is not None and action.rule == "resumed" and record.asked_by[0]:
                rule, because = record.asked_by
                action = action.model_copy(update={"rule": rule, "because": because})
            actions.append(action)
        return tuple(actions)

    def recorded(self) -> RecordedRun:
        """Return all steps: those of the log, then those of the last run.

        This provides story and metrics for plans without a driver.
        """
        if self._before is None:
            return RecordedRun(shown_path(self.tree.loaded.path), self._told(), self.remarks)
        assert self.log is not None  # it begins with the submission of the plan
        run = run_of_log(self.log)
        return RecordedRun(shown_path(self.tree.loaded.path), chain(run.steps, self._told()), run.remarks)

    def _told(self) -> Iterator[Step]:
        state = self._before
        for event, _ in self._new:
            taken = Step.take(state, event)
            state = taken.after
            yield taken

    def tell(self, event: Event) -> tuple[Action, ...]:
        """Apply an event. Raises :class:`planner.errors.RefusedEvent`."""
        taken = self._completer.take(self.state, event)
        self._state = taken.after
        self._new.append(taken[:2])
        return taken.actions

    def save(self) -> None:
        """Write the new events to the log. Raises :class:`planner.errors.LogError`."""
        if self.log is None or not self._new:
            return
        make_log_folder(self.log)
        with RunLog.append_to(self.log) as log, log.hold():
            log.skip()
            if log.count != self.state.events - len(self._new):
                raise LogError(f"{self.log}: somebody else has written to the log meanwhile; try again")
            log.append(*(Step(event, actions, None, self.state) for event, actions in self._new))
        self._before = self._state
        self._new.clear()

    def _continue(self, given: Path | None) -> None:
        """Continue the run in its log; start another if that one is finished or of another plan."""
        self.log = given or plan_logs(self.tree.loaded)[-1]
        state, events = None, []
        if self.log.exists():
            with RunLog.read(self.log) as log:
                events = [entry.event for entry in log.entries()]
            state = fold(events) if events else None  # a kill may have left no line
        if state is not None:
            # Of a plan a driver may carry out a part, within lower limits: its file is the same one then.
            is_of_file = getattr(events[0], "digest", None) == self.tree.loaded.digest
            subs = self.tree.sub_plans()
            plans = {"": self.tree.loaded.plan} | {name: sub.loaded.plan for name, sub in subs.items()}
            is_same = state.plan_id == plans[""].todo_list_id and all(
                (is_of_file and not within) or is_plan_of(state, plan, within)
                for within, plan in plans.items()
            )
            if is_same and not self._begins_anew(state):
                self._before = self._state = state
                return
            if given is not None:
                why = "is over" if is_same else "is of another plan, or of another version of it"
                raise LogError(f"{given}: the run {why}; name another log with --log")
            self.log = next_log(self.tree.loaded)

    def _begins_anew(self, state: State) -> bool:
        """Return whether the last verification contradicts the run and does not belong to it."""
        document = self._document
        if document is None or not must_restart(state, document):
            return False
        if not state.policy.driven:
            return True
        # A driver tells its own verifications. What people verify counts when its run is over.
        return (
            state.plan_state.is_final
            and time_of(document.run.started_at, self._now).timestamp() > state.now
        )

    def _submit(self, *, allow_unproved: bool) -> None:
        document = self.found.document
        at = time_of("" if document is None else document.run.started_at, self._now)
        policy = RunPolicy(driven=False, allow_unproved=allow_unproved)
        taken = Step.take(None, submission(self.tree.loaded, at, policy))
        self._state = taken.after
        self._new.append(taken[:2])
