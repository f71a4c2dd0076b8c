"""Run of a plan without a driver: people verify, and each verification's outcomes extend the log.

Used by ``planner next``, ``planner status`` and the commands that answer questions. :class:`PlanRun` folds
the plan's newest log and reports the newest outcomes to the engine. A run that a driver carries out by
``planner step`` is only displayed: its driver reports its own outcomes.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from planner.engine import fold, step
from planner.engine.intake import failed_again, must_restart, report_run, time_of
from planner.engine.progress import status_tree
from planner.engine.state import is_plan_of
from planner.engine.transaction import moment
from planner.errors import FileWriteError, LogError, PlannerError, RefusedEvent
from planner.model.events import RunPolicy, RunResumed, Verified
from planner.model.verdicts import PlanState, TodoState
from planner.planfile.latest_outcomes import find_outcomes
from planner.planfile.record_files import load_answers
from planner.planfile.tree import SEPARATOR, load_tree
from planner.policy.outcomes import state_of
from planner.store.run_log import RecordedRun, RunLog, Step, make_log_folder, next_log, plan_logs
from planner.store.session import EventCompleter, submission
from planner.text.display import listed

if TYPE_CHECKING:
    from pathlib import Path

    from planner.engine import State
    from planner.engine.progress import StatusNode
    from planner.model.actions import Action
    from planner.model.answers import Answer
    from planner.model.events import Event
    from planner.model.outcome import FailureContext, Outcome
    from planner.model.plan import Plan
    from planner.planfile.latest_outcomes import FoundOutcomes
    from planner.planfile.tree import PlanTree


class PlanRun:
    """A plan with the outcomes of its last verification, and the engine's state after these outcomes."""

    def __init__(self, tree: PlanTree, found: FoundOutcomes, remarks: list[str]) -> None:
        self.tree = tree
        self.found = found
        self.remarks = remarks
        """Remarks for people, such as on unloadable sub-plans and refused outcomes."""
        self.is_verifiable = True
        """Whether all sub-plans could be loaded; a verification of the whole plan refuses it otherwise."""
        self.log: Path | None = None
        """Path of the log, existing or not."""
        self.named_log: Path | None = None
        """Log that the user named; suggested follow-up commands must name it, too."""
        self._document = found.document if found.plan_change is None else None
        """The outcomes; ``None`` if there are none, the plan has changed since, or the work was undone."""
        self._now = datetime.now(UTC)
        """Time assumed for outcomes that name none: that of their file, else the current time."""
        with suppress(OSError):
            self._now = datetime.fromtimestamp(found.path.stat().st_mtime, UTC)
        self._completer = EventCompleter(tree, validates=False)
        self._new: list[tuple[Event, tuple[Action, ...]]] = []
        """Events that are not in the log yet, with their actions.

        Their states are not kept: each has a record of every todo.
        """
        self._reported: set[tuple[str, str | None]] = set()
        """Todo and run of each outcome that is in the log."""
        self._state: State | None = None

    @classmethod
    def open(
        cls, plan: Path, outcomes: Path | None = None, log: Path | None = None, *, keep: bool = False
    ) -> PlanRun:
        """Load a plan and its run, and apply the outcomes of the last verification.

        ``keep`` writes the new events to the log; a log that cannot be written becomes a remark.
        ``outcomes`` that a user names are evaluated alone: no log is read or written unless ``log`` is
        named, too. Raises :class:`planner.errors.PlannerError`.
        """
        tree = load_tree(plan)
        remarks: list[str] = []
        try:
            tree.load_all()
        except PlannerError as error:
            remarks.append(str(error))
        is_verifiable = not remarks
        subs = {name: sub.loaded for name, sub in tree.sub_plans().items()}
        run = cls(tree, find_outcomes(tree.loaded, outcomes, subs), remarks)
        run.named_log, run.is_verifiable = log, is_verifiable
        if outcomes is None or log is not None:
            run._continue(log)
        if run._state is None:
            run._submit(allow_unproved=outcomes is not None)
        if not run.is_driven and not run.state.plan_state.is_final:

            def tell(event: Event) -> State:
                run.tell(event)
                return run.state

            _, refused = report_run(run.state, run._document, tree.sub_plans().keys(), run._now, tell)
            # If the run has ended all the same, refused outcomes no longer matter.
            if not run.state.plan_state.is_final:
                remarks += refused
        # A read-only checkout still shows what comes next.
        try:
            if keep and run._document is not None:
                run.save()
        except LogError as error:
            remarks.append(f"{error}; attempts are not counted across runs")
        return run

    @property
    def state(self) -> State:
        """The state after all events."""
        assert self._state is not None  # it was submitted
        return self._state

    @property
    def later_plans(self) -> dict[str, Plan]:
        """Return the sub-plans that the engine loads when their parents begin, by id of the parent."""
        subs, state = self.tree.sub_plans(), self.state
        return {
            name: sub.loaded.plan
            for name, sub in subs.items()
            # A driver may carry out a part of the plan.
            if name not in state.parts and name.partition(SEPARATOR)[0] in state.records
        }

    def status(self) -> StatusNode:
        """Return the status tree; todos of a later sub-plan are done if the last verification says so."""
        document = None if self.is_driven else self._document
        outcomes = () if document is None else document.outcomes
        passed = {each.todo_id for each in outcomes if state_of(each) is TodoState.DONE}
        return status_tree(self.state, self.later_plans, passed)

    @property
    def is_driven(self) -> bool:
        """Return whether a driver carries the plan out and reports events itself."""
        return self.state.policy.driven

    @property
    def left_out(self) -> list[str]:
        """Return the todos of the plan file that the part of it lacks which a driver carries out."""
        return [each.id for each in self.tree.loaded.plan.items if each.id not in self.state.records]

    def outstanding(self) -> tuple[Action, ...]:
        """Return the actions that nobody has answered yet, each with the rule that first requested it.

        Empty for a finished run. The state is unchanged.
        """
        if self.state.plan_state.is_final:
            return ()
        actions: list[Action] = []
        # On resuming, the engine repeats its unanswered actions; the state that follows is discarded.
        # At the time of the last event, so that no limit expires by asking.
        for action in step(self.state, RunResumed(at=moment(self.state.now)))[1]:
            names = getattr(action, "todo_ids", None) or (getattr(action, "todo_id", ""),)
            record = self.state.records.get(names[0])
            if record is not None and action.rule == "resumed" and record.asked_by[0]:
                rule, because = record.asked_by
                action = action.model_copy(update={"rule": rule, "because": because})
            actions.append(action)
        return tuple(actions)

    def answers(self) -> tuple[Answer, ...]:
        """Return the answers on file; none if the file cannot be read, which a verification reports."""
        try:
            return load_answers(self.tree.loaded.root)
        except FileWriteError:
            return ()

    def manual_questions(self, todo_id: str) -> dict[str, str]:
        """Return the questions of a todo's manual criteria, by the ids of their checks."""
        specs = self.state.records[todo_id].todo.acceptance_criteria.manual
        return {f"manual[{at}]": spec.question for at, spec in enumerate(specs)}

    def open_questions(self, todo_id: str) -> dict[str, str]:
        """Return the questions of a todo that nobody has answered."""
        given = {
            (each.check_id, each.question)
            for each in self.answers()
            if (each.plan, each.todo_id) == (self.state.plan_id, todo_id)
        }
        return dict(each for each in self.manual_questions(todo_id).items() if each not in given)

    def asked_questions(self, todo_id: str) -> dict[str, str]:
        """Return the open questions of a todo; all of them if each has an answer, as a new one counts."""
        return self.open_questions(todo_id) or self.manual_questions(todo_id)

    def context(self, outcome: Outcome) -> FailureContext | None:
        """Return evidence and source excerpts for an outcome that the engine has not applied."""
        return self._completer.context(outcome, self.state)

    def recorded(self) -> RecordedRun:
        """Return the run so far, which has no log yet, also where none can be written."""
        steps: list[Step] = []
        for event, _ in self._new:  # their states were not kept
            steps.append(Step.take(steps[-1].after if steps else None, event))
        return RecordedRun(iter(steps), self.remarks)

    def tell(self, event: Event) -> tuple[Action, ...]:
        """Apply an event, without writing it; return the actions that the engine requests.

        Raises :class:`planner.errors.RefusedEvent`.
        """
        applied = self._completer.take(self.state, event)
        if isinstance(event, Verified):
            # The engine ignores, for example, a failure before any work. Each command reports it again, as
            # it counts once a person has approved the start, and must not lengthen the log each time.
            key = (event.outcome.todo_id, event.run_id)
            unchanged = replace(applied.after, events=self.state.events, now=self.state.now) == self.state
            if unchanged and not applied.actions and key in self._reported:
                return ()
            self._reported.add(key)
        self._state = applied.after
        self._new.append(applied[:2])
        return applied.actions

    def save(self) -> None:
        """Write the new events to the log.

        Raises :class:`planner.errors.LogError` if the log cannot be written, or if another process has
        appended to it since it was read: the new events were applied to an older state.
        """
        if self.log is None or not self._new:
            return
        make_log_folder(self.log)
        with RunLog.append_to(self.log) as log, log.hold():
            log.skip()
            # Lines of another process were not folded: the new events may be wrong, or refused, after them.
            if log.count != self.state.events - len(self._new):
                raise LogError(f"{self.log}: another process has written to the log; try again")
            log.append(*self._new)
        self._new.clear()

    def _continue(self, given: Path | None) -> None:
        """Load the run of a log: the log that the user named, or the plan's newest.

        The state stays ``None`` if a new run has to be started: there is no log, or the newest log is of
        another version of the plan, or the last verification restarts the run. Raises ``LogError`` if the
        named log cannot be continued, or if a log follows other rules.
        """
        logs = plan_logs(self.tree.loaded)
        self.log = given or logs[-1]
        state, events = None, []
        if self.log.exists():
            with RunLog.read(self.log) as log:
                events = [entry.event for entry in log.entries()]
            try:
                state = fold(events) if events else None  # a kill may have left no line
            except RefusedEvent as error:
                raise LogError(
                    f"{self.log}: it was written by another version, as an event is refused: "
                    f"{error.problem}; move the log away to begin a new run"
                ) from None
            # An undo leaves an empty log behind that of its run: older outcomes are of files that are gone.
            undone_at = 0.0 if events or given or not logs[1:] else self.log.stat().st_mtime
            if self._now.timestamp() < undone_at:
                self._document = None
            outcomes = (each for each in events if isinstance(each, Verified))
            self._reported = {(each.outcome.todo_id, each.run_id) for each in outcomes}
        if state is not None:
            # A driver may submit a part of the plan, with lower limits. Then the submitted plan differs
            # from the file, but its digest is that of the file.
            is_of_file = getattr(events[0], "digest", None) == self.tree.loaded.digest
            subs = self.tree.sub_plans()
            plans = {"": self.tree.loaded.plan} | {name: sub.loaded.plan for name, sub in subs.items()}
            is_same = state.plan_id == plans[""].todo_list_id and all(
                (is_of_file and not within) or is_plan_of(state, plan, within)
                for within, plan in plans.items()
            )
            # A completed part says nothing of the todos that the run was not to carry out.
            is_over = state.plan_state is PlanState.COMPLETED and any(
                {each.id for each in plan.items} - {each.id for each in state.parts[within].plan.items}
                for within, plan in plans.items()
                if within in state.parts
            )
            if is_same and not self._restarts(state) and (given is not None or not is_over):
                self._state = state
                return
            if given is not None:
                why = "is over" if is_same else "belongs to another plan, or to another version of it"
                raise LogError(f"{given}: the run {why}; name another log with --log")
            self.log = next_log(self.tree.loaded)

    def _restarts(self, state: State) -> bool:
        """Return whether the last verification is no part of the run and contradicts its final results."""
        document = self._document
        if document is None or not must_restart(state, document):
            return False
        if not state.policy.driven:
            return True
        # A driver reports its own verifications. One made by people restarts its run only after the end.
        is_newer = time_of(document.run.started_at, self._now).timestamp() > state.now
        if is_newer and not state.plan_state.is_final:
            failed = listed(failed_again(state, document), 5)
            self.remarks.append(
                f"{failed} failed in a verification after the last turn of planverify run, which verifies "
                f"all todos again before it completes"
            )
        return is_newer and state.plan_state.is_final

    def _submit(self, *, allow_unproved: bool) -> None:
        """Start a new run of the plan, dated at the start of its last verification."""
        document = self.found.document
        at = time_of("" if document is None else document.run.started_at, self._now)
        policy = RunPolicy(driven=False, allow_unproved=allow_unproved)
        applied = Step.take(None, submission(self.tree.loaded, at, policy))
        self._state = applied.after
        self._new.append(applied[:2])
