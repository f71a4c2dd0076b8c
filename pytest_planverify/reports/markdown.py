"""Markdown, as for the summary of a job: what failed, where, who acts, how to rerun, the tree of todos."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_planverify.reports.template import render_template
from pytest_planverify.reports.words import Standing, standing

if TYPE_CHECKING:
    from pytest_planverify.reports.cases import ReportInput

MOST_PROBLEMS = 25
MOST_TODOS = 200
_MARKS = {Standing.DONE: "✅", Standing.FAILED: "❌", Standing.FLAKY: "❌", Standing.BLOCKED: "⛔"}


def render(told: ReportInput) -> str:
    """Return the report: one line where all is done. What is open goes first where not all can be shown."""
    todos = list(told.document.outcomes)
    still_open = [each for each in todos if standing(each) is not Standing.DONE]
    if len(todos) > MOST_TODOS:
        todos = sorted(todos, key=lambda each: standing(each) is Standing.DONE)[:MOST_TODOS]
    return render_template(
        "report.md", told, open_todos=still_open, todos=todos, marks=_MARKS, most_problems=MOST_PROBLEMS
    )
