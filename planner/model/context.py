"""What a repair of a failed todo can be told beyond its outcome: the evidence, and lines of the source."""

from __future__ import annotations

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
    """Files that the failure calls missing and that exist now."""
    report_path: str | None = None
    """Where the failure report is, relative to the plan's root."""
