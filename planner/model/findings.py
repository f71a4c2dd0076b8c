"""Findings: what ``planner validate`` has to say of a plan."""

from enum import StrEnum

from planner.model.base import ReadValue


class Severity(StrEnum):
    """Severity of a finding."""

    ERROR = "error"
    """The plan cannot be proved as it is."""
    WARNING = "warning"
    """It can, but not to be trusted or not for long."""
    ADVICE = "advice"
    """It would be better otherwise."""


class PathKind(StrEnum):
    """The kind of file at a path of the project, as the rules ask for it."""

    FILE = "file"
    FOLDER = "folder"
    MISSING = "missing"
    OUTSIDE = "outside"
    """A symbolic link leads out of the root; or it is a pipe, a socket, a device."""


class PlanFinding(ReadValue):
    """One finding, with its place, its reason and what to do."""

    rule: str
    severity: Severity
    path: str
    """The plan file, as the user named it."""
    line: int | None = None
    column: int | None = None
    place: str
    """Where in the plan: ``items[2].acceptance_criteria.tests[0].cmd``."""
    todo_id: str | None = None
    message: str
    """What is wrong."""
    why: str
    """Why it matters."""
    fix: str
    """What to do."""
