"""Records of a run's journal, as later runs read them.

Other processes write records of their own between these, one JSON object a line. Records and keys that this
version does not know are passed over; a killed run may end in the middle of a line.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planner.model.base import ReadValue
from planner.model.evidence import Evidence
from planner.model.outcome import Check, PlanRef
from planner.model.verdicts import TestOutcome


class JournalRecord(ReadValue):
    """Fields of every record."""

    session: str
    """Which session wrote it; ``parent`` for the supervisor."""
    at: float
    """Seconds since 1970."""


class JournalRunStarted(JournalRecord):
    """The first record: which run, plan and version of the format."""

    version: int
    run_id: str
    plan: str
    digest: str
    python: str | None = None
    pytest: str | None = None
    pid: int | None = None
    reference: PlanRef | None = None
    todos: tuple[str, ...] = ()
    scope: Literal["claimed", "ready", "all"] = "all"
    keep_going: bool = False
    verifies: bool = True
    """Not so where tests are only collected, or a baseline is recorded."""
    boundary: str | None = None
    conditions: dict[str, str] = Field(default_factory=dict[str, str])
    """What the verdicts hold under, besides plan and tree: interpreter, packages, options."""
    remarks: tuple[str, ...] = ()
    """What concerns the run as a whole, as far as it was known when the run began."""


class Collected(JournalRecord):
    """The tests that a session will run."""

    check: str = ""
    """The criterion: plan file, todo and check, apart by ``::``."""
    nodeids: tuple[str, ...]


class TestFinished(JournalRecord):
    """The end of a test."""

    __test__ = False

    nodeid: str
    outcome: TestOutcome


class RestsOn(ReadValue):
    """The files that a verdict rests on; paths are relative to the plan's root."""

    files: dict[str, str] = Field(default_factory=dict[str, str])
    """Of each file that was read a digest, taken when the verdict was reached."""
    native: bool = False
    """Code that is not Python took part, which may have read any file of data."""


class CheckJudged(JournalRecord):
    """A verdict, written when it was reached."""

    plan: str
    todo_id: str
    check: Check
    evidence: tuple[Evidence, ...] = ()
    properties: tuple[tuple[str, Any], ...] = ()
    final: bool = False
    """Nothing is left to be found out: a red was confirmed, a green is not in doubt."""
    rests_on: RestsOn | None = None
    """``None``: on every file of the project, for nobody knows which of them were read."""


class RunFinished(JournalRecord):
    """The last record of a run that came to its end."""

    exit_status: int
    interrupted: bool = False
