"""What a repair of a failed todo can be told beyond its outcome: the evidence, and lines of the source."""

from __future__ import annotations

from pydantic import Field

from planner.model.base import ReadValue
from planner.model.evidence import Evidence
from planner.model.failure_report import SourceExcerpt


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
    near: dict[str, str] = Field(default_factory=dict)
    """By missing file the existing one beside it whose name looks like it."""
    report_path: str | None = None
    """Where the failure report is, relative to the plan's root."""
