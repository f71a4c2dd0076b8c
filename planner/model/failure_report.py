"""The failure report of one todo: what was diagnosed and observed, for a repair that sees nothing else.

It is written to ``diagnostics/{todo}_failure_report.json`` below the plan's root. Keys with their default
value are left out of the file. Readers ignore keys that they do not know; the version only grows.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.model.base import ReadValue
from planner.model.evidence import Evidence
from planner.model.outcome import Cause, Check, Failure, PlanRef
from planner.model.taxonomy import Role
from planner.model.verdicts import TodoState

FAILURE_REPORT_VERSION: Literal[1] = 1


def report_path(todo_id: str | None) -> str:
    """Return where the report of a todo is written, relative to the plan's root."""
    return f"diagnostics/{todo_id}_failure_report.json"


class ReportedTodo(ReadValue):
    """The todo as the plan has it."""

    id: str
    title: str | None = None
    intent: str | None = None
    agent_role: Role | None = None
    target_file: str | None = None
    hint: str | None = None
    allowed_files: tuple[str, ...] | None = None
    """Which files may be changed; ``null`` where the plan does not limit them."""
    contract_path: str | None = None
    dependencies: tuple[str, ...] = ()


class SourceExcerpt(ReadValue):
    """A few lines of a file of the project."""

    path: str
    line: int
    """The line that matters, counted from 1; the excerpt may begin below it, behind a docstring."""
    first_line: int
    """The number of the first of ``lines``."""
    lines: tuple[str, ...]


class FailureReport(ReadValue):
    """All that one run saw of a failed todo."""

    schema_version: int = FAILURE_REPORT_VERSION
    run_id: str | None = None
    """The run that saw it: the ``run_id`` of the outcome file."""
    plan: PlanRef
    todo: ReportedTodo
    state: TodoState | None = None
    checks: tuple[Check, ...] = ()
    """Every criterion of the todo; of their tests only those that are red."""
    failures: tuple[Failure, ...] = ()
    """As the outcome has them, the failure that decides the route first."""
    evidence: tuple[Evidence, ...] = ()
    """What was observed; at most 20 of one failure. See :func:`evidence_of`."""
    excerpts: tuple[SourceExcerpt, ...] = ()
    """The source at the locations of the failures, where something was raised, and of the failing tests."""
    causes: tuple[Cause, ...] = ()
    """The root causes of the run that these failures belong to, and those that probably explain them."""


class FailureContext(ReadValue):
    """All that could be read about one failed todo. What could not be read is left out."""

    todo_id: str
    evidence: tuple[Evidence, ...] = ()
    """Of the failure report of the very run that the outcome is from."""
    excerpts: tuple[SourceExcerpt, ...] = ()
    present: tuple[str, ...] = ()
    """Of the files that the failure speaks of, those that exist now."""
    absent: tuple[str, ...] = ()
    """Those that do not."""
    near: dict[str, str] = Field(default_factory=dict[str, str])
    """By missing file the existing one beside it whose name looks like it."""
    report_path: str | None = None
    """Where the failure report is, relative to the plan's root."""


def evidence_of(failure: Failure, evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """Return what was observed of a failure, what was seen in its own phase first.

    A fact about a test belongs to the failure that names the test, any other to that of its criterion.
    """
    named = {*failure.tests, *failure.top_failing_tests}

    def belongs(fact: Evidence) -> bool:
        shown = {*fact.tests, fact.nodeid} - {None}
        if named and shown:
            return not named.isdisjoint(shown)
        return failure.check_id in (None, fact.check_id)

    return tuple(sorted(filter(belongs, evidence), key=lambda fact: fact.phase != failure.phase))
