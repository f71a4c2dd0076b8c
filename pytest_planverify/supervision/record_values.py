"""What the records of a session tell of: tests, leaks, files that could not be imported, and deaths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_planverify.supervision.forkserver import Exited

RawEvidence = dict[str, Any]

PROVING = ("passed", "xpassed")
"""Outcomes of tests that ran and held."""
GREEN = (*PROVING, "skipped", "xfailed")
"""Outcomes that nobody has to answer for."""


@dataclass(slots=True)
class TestRecord:
    """One test that is over, or that ended its session."""

    __test__ = False

    nodeid: str
    outcome: str
    duration_ms: float = 0.0
    reason: str | None = None
    reruns: int = 0
    properties: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    evidence: list[RawEvidence] = field(default_factory=list[RawEvidence])
    position: int = 0
    """How many tests were over before it."""
    process: int = 0
    """Which of the processes that the session took ran it."""
    worker: str = ""
    """The xdist worker that ran it, where one did."""

    @property
    def is_red(self) -> bool:
        """Whether it failed, or something failed while it ran."""
        return self.outcome not in GREEN or bool(self.evidence)


@dataclass(slots=True)
class Running:
    """A test that has started and is not over."""

    nodeid: str
    at: float
    pid: int | None
    worker: str = ""


@dataclass(slots=True)
class Leak:
    """Tests of one group of criteria changed the process for those after them."""

    keys: frozenset[str]
    changed: tuple[str, ...]
    position: int
    """How many tests were over when it was noticed."""


@dataclass(slots=True)
class CollectionFailure:
    nodeid: str
    path: str
    evidence: RawEvidence


@dataclass(slots=True)
class Death:
    """A session's process that ended before its session did."""

    session_id: str
    exited: Exited
    timed_out: bool
    nodeid: str | None
    """The test that ran, if one did."""
    file: str | None
    """The test file that was being imported, if one was."""
    stack: str
    output: str
    phase: str | None = None
    """The phase of the test that ran, where the process could tell."""
    raised: RawEvidence | None = None
    """The exception that ended the session, where it was one."""
    suspects: tuple[str, ...] = ()
    """The tests that ran at the time, where there were several: any of them may be the cause."""

    @property
    def cost_something(self) -> bool:
        """Whether another session that leaves this out gets further."""
        return self.nodeid is not None or self.file is not None or bool(self.suspects)
