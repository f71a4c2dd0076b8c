"""Prometheus text format: figures of a run for the textfile collector of the node exporter."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from planner.model.verdicts import TodoState, Verdict
from planner.policy.outcomes import state_of

if TYPE_CHECKING:
    from pytest_planverify.reports.cases import ReportInput


def render(data: ReportInput) -> str:
    """Return the report."""
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    document = data.document
    registry = CollectorRegistry()  # not the default one, which has metrics of this process

    def gauge(name: str, help: str, *labels: str) -> Gauge:
        return Gauge(f"planverify_run_{name}", help, labels, registry=registry)

    gauge("exit_status", "Exit status of the run; 0 means accepted.").set(document.run.exit_status)
    gauge("duration_seconds", "Duration of the run.").set(document.run.duration_ms / 1000)
    if document.run.finished_at:
        finished = datetime.fromisoformat(document.run.finished_at).timestamp()
        gauge("finished_timestamp_seconds", "Time at which the run finished.").set(finished)
    todos = gauge("todos", "Todos, by state.", "plan", "state")
    counted = Counter((outcome.plan or "", state_of(outcome)) for outcome in document.outcomes)
    for plan in dict.fromkeys(
        [*(ref.todo_list_id for ref in document.plans), *(key[0] for key in counted)]
    ):
        for state in TodoState:  # zeros, too, here and below: no series vanishes between two runs
            todos.labels(plan, state.value).set(counted[plan, state])
    criteria = gauge("criteria", "Criteria, by verdict.", "verdict")
    checks = Counter(check.verdict for outcome in document.outcomes for check in outcome.checks)
    for verdict in Verdict:
        criteria.labels(verdict.value).set(checks[verdict])
    causes = gauge("causes", "Root causes of failures, by category.", "category")
    for category, count in Counter(problem.category for problem in data.problems).items():
        causes.labels(category).set(count)
    return generate_latest(registry).decode()
