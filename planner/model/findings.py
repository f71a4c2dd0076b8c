"""Findings of ``planner validate`` about a plan."""

from enum import StrEnum

from planner.model.base import ReadValue


class Severity(StrEnum):
    """Severity of a finding."""

    ERROR = "error"
    """The plan cannot be verified as it is."""
    WARNING = "warning"
    """It can be verified, but the result is not reliable, or will not stay so."""
    ADVICE = "advice"
    """It could be better."""


class PathKind(StrEnum):
    """The kind of file at a path of the project, for lint rules."""

    FILE = "file"
    FOLDER = "folder"
    MISSING = "missing"
    OUTSIDE = "outside"
    """A symbolic link that leads out of the root, or a pipe, socket or device."""


class PlanFinding(ReadValue):
    """One finding, with its position, its reason and the remedy."""

    rule: str
    severity: Severity
    path: str
    """The plan file, as the user named it."""
    line: int | None = None
    column: int | None = None
    place: str
    """Position in the plan: ``items[2].acceptance_criteria.tests[0].cmd``."""
    todo_id: str | None = None
    message: str
    """What is wrong."""
    why: str
    """Why it matters."""
    fix: str
    """What to do."""
