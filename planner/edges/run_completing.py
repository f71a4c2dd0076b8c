"""Adds to an event what only files tell: the sub-plan of a parent, and what can be read about a failure.

It is done before the event is written to the log, so that a replay needs no file.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.edges.event_checks import faults_of_plan, refuse_unfit_edits, refuse_unfit_files
from planner.errors import CommandSyntaxError, PlanFileError
from planner.model.events import ApprovalGiven, PlanRevised, SubPlanLoaded, Verified
from planner.planfile.confinement import Confinement
from planner.planfile.sub_plans import Unfound
from planner.planfile.tree import SEPARATOR, PlanTree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from planner.engine import State
    from planner.model.context import FailureContext
    from planner.model.events import Event
    from planner.model.outcome import Outcome
    from planner.model.plan import Todo
    from planner.planfile.loader import LoadedPlan
    from planner.rules.criteria import Criterion

MAX_CONTEXT_BYTES = 1024 * 1024
"""Of what is told of one failure."""

MAX_PROBLEMS = 100


@dataclass(slots=True)
class EventCompleter:
    """Completes the events of one run."""

    tree: PlanTree
    validates: bool = True
    """Whether sub-plans are validated before they are taken in."""

    def completed(self, event: Event, state: State) -> Event:
        """The event with all that can be read; what is wrong with a file is told in it.

        Raises :class:`planner.errors.RefusedEvent` where it says what no plan file may.
        """
        root = self.tree.loaded.root
        if isinstance(event, SubPlanLoaded) and not event.problems:
            if event.plan is None:
                return self._loaded(event, state)
            return event.model_copy(update={"problems": faults_of_plan(event.plan, root)})
        if isinstance(event, PlanRevised):
            refuse_unfit_edits(event.edits, root)
        if isinstance(event, ApprovalGiven) and event.changes.allowed_files is not None:
            refuse_unfit_files(event.changes.allowed_files, root)
        if isinstance(event, Verified) and event.context is None and not event.outcome.success:
            return event.model_copy(update={"context": self._context(event.outcome, state)})
        return event

    def _loaded(self, event: SubPlanLoaded, state: State) -> SubPlanLoaded:
        record = state.records.get(event.todo_id)
        if record is None:
            return event
        # Files may have been written since the tree was loaded.
        self.tree = PlanTree(self.tree.loaded, self.tree.boundary)
        try:
            sub = self._sub_plan(event, record.todo)
        except (PlanFileError, Unfound) as error:
            return event.model_copy(update={"problems": _faults(error)})
        problems = (
            tuple(problems_of(sub.loaded.path, self._boundary, _day(event))) if self.validates else ()
        )
        if problems:
            return event.model_copy(update={"problems": problems})
        above = os.path.realpath(self.tree.loaded.root)
        base = os.path.relpath(os.path.realpath(sub.loaded.root), above).replace(os.sep, "/")
        found = {"plan": sub.loaded.plan, "digest": sub.loaded.digest, "base": base}
        return event.model_copy(update=found)

    @property
    def _boundary(self) -> Path:
        return self.tree.widest_boundary

    def _sub_plan(self, event: SubPlanLoaded, todo: Todo) -> PlanTree:
        *above, last = event.todo_id.split(SEPARATOR)
        tree = self.tree
        for parent in above:
            try:
                tree = tree.child(parent)
            except KeyError:
                raise Unfound(
                    f"the plan above '{event.todo_id}' is in no file; tell the sub-plan itself in the event"
                ) from None
        named = todo.model_copy(update={"id": last})
        if event.path is not None:
            fault = Confinement(tree.loaded.root).fault(event.path)
            if fault is not None:
                raise Unfound(fault)
            named = named.model_copy(update={"sub_plan": event.path, "sub_project_id": None})
        if not named.has_sub_plan or (named.sub_plan is None and named.sub_project_id is None):
            raise Unfound(f"'{event.todo_id}' names no sub-plan; tell its path in the event")
        return tree.child_of(named)

    def _context(self, outcome: Outcome, state: State) -> FailureContext | None:
        record = state.records.get(outcome.todo_id)
        if record is None:
            return None
        from planner.planfile.source_excerpts import load_failure_context

        top, owner = self.tree.loaded, self._owner(outcome.todo_id)
        todo = record.todo.model_copy(update={"id": outcome.todo_id})
        part = replace(
            top,
            root=owner.root,
            plan=top.plan.model_copy(update={"items": (todo,)}),
            criteria={todo.id: _criteria(todo, owner)},
        )
        return _bounded(load_failure_context(part, outcome, reports=top.root))

    def _owner(self, todo_id: str) -> LoadedPlan:
        """The plan file that a todo stands in, or the nearest above it that is in a file."""
        tree = self.tree
        for parent in todo_id.split(SEPARATOR)[:-1]:
            try:
                tree = tree.child(parent)
            except (KeyError, PlanFileError):
                break
        return tree.loaded


def problems_of(path: Path, boundary: Path | None, today: str) -> Iterator[str]:
    """What validation finds that makes a plan unfit to be carried out, each in one sentence."""
    from planner.model.findings import Severity
    from planner.planfile.validation import validate_plan

    for finding in validate_plan(path, boundary=boundary, today=today)[: MAX_PROBLEMS * 10]:
        if finding.severity is Severity.ERROR:
            place = ":".join(str(part) for part in (finding.path, finding.line, finding.column) if part)
            yield f"{place}: {finding.message}; {finding.fix} [{finding.rule}]"


def _faults(error: PlanFileError | Unfound) -> tuple[str, ...]:
    return error.faults[:MAX_PROBLEMS] if isinstance(error, PlanFileError) else (str(error),)


def _day(event: Event) -> str:
    return event.at.date().isoformat()


def _criteria(todo: Todo, owner: LoadedPlan) -> tuple[Criterion, ...]:
    """The criteria of a todo as it is now; those found by convention stand with the file."""
    from planner.rules.criteria import criteria_of

    with contextlib.suppress(CommandSyntaxError):
        found = criteria_of(todo, None, owner.tools)
        if found:
            return found
    return owner.criteria.get(todo.id.rpartition(SEPARATOR)[2], ())


def _bounded(context: FailureContext | None) -> FailureContext | None:
    """As much of it as a line of the log should bear: the evidence goes first, then the source."""
    for dropped in ("evidence", "excerpts"):
        if context is None or len(context.model_dump_json(exclude_none=True)) <= MAX_CONTEXT_BYTES:
            return context
        context = context.model_copy(update={dropped: ()})
    return context
