"""Outcome documents of verifications, built from single outcomes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from planner.model.outcome import Outcome, OutcomeDocument, PlanRef, RunInfo, Summary
from planner.model.verdicts import TodoState

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from planner.model.plan import Plan


def run_info(**fields: Any) -> RunInfo:
    """Return the facts of a run of one second."""
    usual = {
        "run_id": "20260101T000000-1-abcdef",
        "started_at": "2026-01-01T00:00:00Z",
        "finished_at": "2026-01-01T00:00:01Z",
        "duration_ms": 1000,
        "exit_status": 1,
        "scope": "all",
        "python": "3.12.1",
        "pytest": "9.0.0",
    }
    return RunInfo.model_validate(usual | fields)


def sample_document(plan: Plan, outcomes: Iterable[Outcome], *, at: datetime) -> OutcomeDocument:
    """Return the document of a verification with these outcomes; the other todos are not verified."""
    found = {outcome.todo_id: outcome for outcome in outcomes}
    complete = [
        found.get(todo.id)
        or Outcome(
            todo_id=todo.id,
            title=todo.title,
            state=TodoState.PENDING,
            success=False,
            tests_passed=False,
            verified=False,
        )
        for todo in plan.items
    ]
    entries = tuple(each.model_copy(update={"plan": each.plan or plan.todo_list_id}) for each in complete)
    when = at.isoformat().replace("+00:00", "Z")
    return OutcomeDocument(
        plans=(PlanRef(todo_list_id=plan.todo_list_id, path="plan.yaml", digest="sha256:0"),),
        run=run_info(
            run_id=f"run-{at:%H%M%S}",
            started_at=when,
            finished_at=when,
            exit_status=0 if all(entry.success for entry in entries) else 1,
        ),
        summary=Summary(todos=dict(Counter(each.state for each in entries if each.state is not None))),
        outcomes=entries,
    )
