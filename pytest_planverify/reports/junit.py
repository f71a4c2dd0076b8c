"""JUnit XML: a suite a todo, a case a test, artifact, command, metric, contract or violation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_planverify.reports.template import render_template

if TYPE_CHECKING:
    from pytest_planverify.reports.cases import ReportCase, ReportInput


def render(told: ReportInput) -> str:
    """Return the report; it has a failure exactly where the exit status of the run is not 0."""
    suites: dict[str, list[ReportCase]] = {}
    for case in told.cases:
        suites.setdefault(case.todo_id, []).append(case)
    return render_template("junit.xml", told, suites=suites)
