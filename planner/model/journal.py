"""Records of a run's journal, with the keys that later runs read.

The journal has one JSON object per line; other processes write further records in between. Unknown records
and keys are ignored; the journal of a killed run may end with an incomplete line.
"""

from typing import Annotated, Any

from pydantic import Field

from planner.model.base import ReadValue
from planner.model.evidence import Evidence
from planner.model.outcome import Check, PlanRef


class JournalRecord(ReadValue):
    """Fields of every record."""

    # Later times cannot be converted to a datetime with every offset.
    at: Annotated[float, Field(strict=True, ge=0, le=253_370_764_800)]
    """Seconds since 1970, up to the year 9998."""


class JournalRunStarted(JournalRecord):
    """The first record: run, plan and version of the format."""

    version: int
    run_id: str
    pid: int | None = None
    reference: PlanRef | None = None
    verifies: bool = True
    """``False`` if tests are only collected, or a baseline is recorded."""
    conditions: dict[str, str] = Field(default_factory=dict[str, str])
    """The conditions of the verdicts besides plan and tree: interpreter, packages, options."""


class RestsOn(ReadValue):
    """The files that a verdict depends on; paths are relative to the plan's root."""

    files: dict[str, str] = Field(default_factory=dict[str, str])
    """Digests of the files that were read, computed when the verdict was reached."""
    native: bool = False
    """Code took part that may have read any data file unnoticed, or looked at its size."""


class CheckRun(ReadValue):
    """A criterion's check with its evidence."""

    check: Check
    evidence: tuple[Evidence, ...] = ()
    properties: tuple[tuple[str, Any], ...] = ()
    """Names and values that its tests recorded."""
    rests_on: RestsOn | None = None
    """``None``: it is unknown which files were read, so the verdict depends on all files of the project."""
    read_data: tuple[str, ...] = ()
    """Files other than Python's that a failed check is known to have read, if ``rests_on`` is unknown."""


class CheckJudged(JournalRecord, CheckRun):
    """A verdict, written when it was reached."""

    todo_id: str
    final: bool = False
    """No rerun is pending: a failure was confirmed, or a pass needs no confirmation."""


class RunUnexplained(JournalRecord):
    """The reason why a run without failed criteria is not accepted."""

    reason: str


class RunFinished(JournalRecord):
    """The last record of a run that ended by itself."""

    interrupted: bool = False
