"""Markdown: failures with location, owner and rerun command, and the todo tree.

GitHub Actions gets it as the summary of a step, and a workflow command for each root cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_planverify.reports.cases import render_template, safe
from pytest_planverify.reports.words import Standing, standing, suggestion_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.reports.cases import ReportInput

MOST_PROBLEMS = 25
MOST_TODOS = 200
"""GitHub rejects a comment of more than 65,536 characters."""
MOST_ANNOTATIONS = 10
"""The number of error annotations that GitHub shows for one step."""

_MARKS = {Standing.DONE: "✅", Standing.FAILED: "❌", Standing.FLAKY: "❌", Standing.BLOCKED: "⛔"}


def render(data: ReportInput) -> str:
    """Return the report: one line if the run is accepted and every todo is done.

    If there are more than :data:`MOST_TODOS` todos, those that are not done are shown first.
    """
    todos = data.document.outcomes
    is_done = all(standing(each) is Standing.DONE for each in todos)
    if len(todos) > MOST_TODOS:
        todos = sorted(todos, key=lambda each: standing(each) is Standing.DONE)[:MOST_TODOS]
    return render_template(
        "report.md", data, is_done=is_done, todos=todos, marks=_MARKS, most_problems=MOST_PROBLEMS
    )


def error_commands(data: ReportInput) -> Iterator[str]:
    """Yield an ``::error`` command for each root cause, at its location; none if the run is accepted.

    The last of :data:`MOST_ANNOTATIONS` commands counts the root causes that are left out.
    """
    if data.holds:
        return
    problems = data.problems
    shown = problems if len(problems) <= MOST_ANNOTATIONS else problems[: MOST_ANNOTATIONS - 1]
    for problem in shown:
        failure = problem.failure
        fix = suggestion_of(failure) if failure is not None else ""
        path, category = _property(safe(problem.path)), _property(problem.category)
        message = _data(safe(f"{problem.headline}\n{problem.consequences}\n{fix}".rstrip()))
        yield f"::error file={path},line={problem.line},title={category}::{message}"
    if left := len(problems) - len(shown):
        yield (
            f"::error title=planverify::and {left} more root causes; planverify report markdown=- shows all"
        )
    if not problems:
        yield f"::error title=planverify::{_data(data.exit_reason)}"


def _data(text: str) -> str:
    """Escape the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape a property of a workflow command, in which ``:`` and ``,`` are separators, too."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
