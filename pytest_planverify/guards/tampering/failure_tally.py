"""Hold the failures that a test's body raised against those that were reported of it.

A plugin or a conftest may run a failing test again and report the last answer only, turn a report round, or
keep an exception to itself. What was raised is counted where it happens.
"""

from __future__ import annotations

import unittest
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

_NO_FAILURE = (
    pytest.skip.Exception,
    pytest.xfail.Exception,
    pytest.exit.Exception,
    unittest.SkipTest,
    KeyboardInterrupt,
)


class FailureTally:
    """Counts what the running test did, and what was said of it."""

    __slots__ = ("_evidence", "_made", "_reported", "_runs", "passed", "raised")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Start to count for another test."""
        self._runs = 0
        self.passed = False
        """Its call was reported as passed."""
        self.raised = 0
        """Bodies that raised what is a failure."""
        self._made = 0
        """Failures that reports were made of."""
        self._reported = 0
        """Failures that were reported to everybody."""
        self._evidence: str | None = None

    def ran(self, error: BaseException | None) -> None:
        """Count a run of the body, to its end or not."""
        self._runs += 1
        if error is not None and not isinstance(error, _NO_FAILURE):
            self.raised += 1

    def made(
        self,
        call: pytest.CallInfo[None],
        report: pytest.TestReport,
        evidence: Callable[[], str | None],
    ) -> None:
        """Count a report made of one phase. ``evidence`` gives the facts of a failure as JSON."""
        if call.when == "call" and call.excinfo is None and self.raised and report.outcome == "passed":
            self._made += 1  # it was kept from the one who makes reports
            return
        if call.excinfo is None or call.excinfo.errisinstance(_NO_FAILURE):
            return
        if report.outcome == "skipped" and hasattr(report, "wasxfail"):
            self.raised = 0
            return
        self._made += 1
        if report.outcome in ("passed", "skipped"):
            self._evidence = evidence()

    def reported(self, report: pytest.TestReport) -> None:
        """Count a report that was given to everybody."""
        if report.outcome not in ("passed", "skipped"):
            self._reported += 1

    @property
    def unproved(self) -> bool:
        """Return whether it was reported as passed though its body was never run."""
        return self.passed and not self._runs

    def hidden(self) -> dict[str, Any] | None:
        """Return how many failures were not reported, in how many runs of the body, and one of them."""
        count = self._made - self._reported
        if count <= 0:
            return None
        return {"count": count, "runs": self._runs, "evidence": self._evidence}
