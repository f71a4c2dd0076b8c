"""Markdown, as for a job summary: failures with location, owner and rerun command, and the todo tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_planverify.reports.template import render_template
from pytest_planverify.reports.words import Standing, standing

if TYPE_CHECKING:
    from pytest_planverify.reports.cases import ReportInput

MOST_PROBLEMS = 25
MOST_TODOS = 200
_MARKS = {Standing.DONE: "✅", Standing.FAILED: "❌", Standing.FLAKY: "❌", Standing.BLOCKED: "⛔"}


def render(data: ReportInput) -> str:
    """Return the report: one line if the run is accepted and every todo is done.

    If there are more than :data:`MOST_TODOS` todos, those that are not done are shown first.
    """
    todos = list(data.document.outcomes)
    still_open = [each for each in todos if standing(each) is not Standing.DONE]
    if len(todos) > MOST_TODOS:
        todos = sorted(todos, key=lambda each: standing(each) is Standing.DONE)[:MOST_TODOS]
    return render_template(
        "report.md", data, open_todos=still_open, todos=todos, marks=_MARKS, most_problems=MOST_PROBLEMS
    )
