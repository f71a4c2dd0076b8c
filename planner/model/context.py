"""What a repair of a failed todo can be told beyond its outcome: files read from under the plan's root."""

from __future__ import annotations

from planner.model.base import ReadValue
from planner.model.failure_report import FailureReport, SourceExcerpt


class FileSample(ReadValue):
    """The beginning of a file, as untrusted text."""

    path: str
    text: str
    total_bytes: int
    truncated: bool = False


class DefinedName(ReadValue):
    """A definition of the project."""

    name: str
    """``Cart.total`` or ``price``."""
    path: str
    line: int


class FailureContext(ReadValue):
    """All that could be read about one failed todo. Whatever could not be read is left out."""

    todo_id: str
    report: FailureReport | None = None
    """The failure report of the very run that the outcome is from."""
    excerpts: tuple[SourceExcerpt, ...] = ()
    """Around the places that the outcome names, the likeliest first."""
    names: tuple[DefinedName, ...] = ()
    """Where a name is missing: what is defined where it was looked for, the likest first."""
    fixture: FileSample | None = None
    """Of the data file that the failing criterion names."""
    contract: FileSample | None = None
    """Of the contract that the todo names."""
    report_path: str | None = None
    """Where the report is, relative to the plan's root."""
