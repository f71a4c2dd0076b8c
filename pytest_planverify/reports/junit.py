"""JUnit XML: one suite for each todo, one case for each test and each criterion without tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_planverify.reports.cases import render_template

if TYPE_CHECKING:
    from pytest_planverify.reports.cases import ReportCase, ReportInput


def render(data: ReportInput) -> str:
    """Return the report; it contains a failure if and only if the exit status of the run is not 0."""
    suites: dict[str, list[ReportCase]] = {}
    for case in data.cases:
        suites.setdefault(case.todo_id, []).append(case)
    return render_template("junit.xml", data, suites=suites)
