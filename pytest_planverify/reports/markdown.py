"""Markdown, as for the summary of a job: what failed, where, who acts, how to rerun, the tree of todos."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.text.markdown import fence, inline
from pytest_planverify.reports.cases import safe
from pytest_planverify.reports.terminal import final_line
from pytest_planverify.reports.words import WORDS, Standing, duration, standing, suggestion_label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.outcome import Outcome
    from pytest_planverify.reports.cases import Problem, ReportInput

MOST_PROBLEMS = 25
MOST_TODOS = 200
_MARKS = {Standing.DONE: "✅", Standing.FAILED: "❌", Standing.FLAKY: "❌", Standing.BLOCKED: "⛔"}


def render(told: ReportInput) -> str:
    """Return the report: one line where all is done."""
    document = told.document
    names = ", ".join(inline(safe(ref.todo_list_id)) for ref in document.plans) or "plan"
    lines = [f"### {'✅' if told.holds else '❌'} {names}: {final_line(document)[0]}", ""]
    if all(standing(outcome) is Standing.DONE for outcome in document.outcomes) and told.holds:
        return "\n".join(lines)
    for problem in told.problems[:MOST_PROBLEMS]:
        lines += _problem(problem)
    if left := len(told.problems) - MOST_PROBLEMS:
        lines += [f"and {left} more causes\n"] if left > 0 else []
    if not told.holds and not told.problems:
        lines += [inline(told.exit_reason), ""]
    lines += _tree(document.outcomes)
    return "\n".join(lines) + "\n"


def _problem(problem: Problem) -> Iterator[str]:
    failure = problem.failure
    where = inline(f"{problem.path}:{problem.line}")
    yield f"**{problem.category}** at {where}: {inline(problem.consequences)}"
    yield ""
    if failure is None:
        yield fence(problem.headline)
    elif failure.stack_trace_head:
        yield fence(safe(failure.stack_trace_head, limit=1_500))
    if problem.hunk and problem.hunk.text:
        yield fence(safe(problem.hunk.text), "diff")
    facts = []
    if failure is not None:
        facts = [
            f"- {suggestion_label(failure.suggestion)}: {inline(safe(failure.suggestion))}"
            if failure.suggestion
            else "",
            f"- who: {failure.target_agent}" if failure.target_agent else "",
            f"- rerun: {inline(safe(failure.rerun))}" if failure.rerun else "",
        ]
    yield from filter(None, facts)
    yield ""


def _tree(outcomes: tuple[Outcome, ...]) -> Iterator[str]:
    """Yield a line a todo, below its parent; what is open goes first where not all can be shown."""
    shown = outcomes
    if len(outcomes) > MOST_TODOS:
        shown = sorted(outcomes, key=lambda outcome: standing(outcome) is Standing.DONE)[:MOST_TODOS]
    for outcome in shown:
        name = standing(outcome)
        indent = "  " * outcome.todo_id.count("/")
        title = (
            f" {inline(safe(outcome.title))}" if outcome.title and outcome.title != outcome.todo_id else ""
        )
        spent = f", {duration(outcome.metrics.duration_ms)}" if outcome.metrics.duration_ms else ""
        blocked = f" by {inline(safe(', '.join(outcome.blocked_by)))}" if outcome.blocked_by else ""
        yield (
            f"{indent}- {_MARKS.get(name, '❔')} {inline(safe(outcome.todo_id))}{title}: "
            f"{WORDS[name].text}{blocked}{spent}"
        )
    if left := len(outcomes) - len(shown):
        yield f"- and {left} more todos"
