"""Translation of a session's reports into journal records, at the start and the end of each test.

A failing phase is written as soon as it is reported, so that a process that dies in the teardown does
not take the failure with it. The outcome of a test is known after its last phase only; the ledger keeps
unfinished tests until then.
"""

from __future__ import annotations

import numbers
import os
from dataclasses import dataclass
from json import dumps, loads  # bound early: a test may have monkeypatched the module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import pytest

    from pytest_planverify.journal import JournalWriter

EVIDENCE = "planverify_evidence"
"""Attribute of a report with its evidence, as a JSON string so that xdist can transfer it."""


def writable(value: object) -> Any:
    """Return a recorded value as JSON can represent it, or a placeholder if it cannot."""
    try:
        return loads(dumps(value, default=_plain))
    except BaseException:  # repr() of a test's object may raise anything, even SystemExit
        return f"a {type(value).__name__} that cannot be shown"


def _plain(value: object) -> int | float | str:
    """Return a number of another type, such as of NumPy or ``Decimal``, as a plain one; else the text."""
    if isinstance(value, numbers.Integral):
        return int(value)
    # Decimal is registered as a number only, neither real nor complex.
    is_real = isinstance(value, numbers.Real) or not isinstance(value, numbers.Complex)
    return float(cast("Any", value)) if is_real and isinstance(value, numbers.Number) else str(value)


class NodeIds:
    """Converts node ids relative to pytest's rootdir into ones relative to the plan's root.

    The two differ if the ini file lies above the root, or in a folder below it. If neither contains the
    other, node ids are not converted.
    """

    def __init__(self, rootdir: str, root: str) -> None:
        self._strip = ""
        self._prefix = ""
        if rootdir == root:
            return
        relative = os.path.relpath(root, rootdir).replace(os.sep, "/")
        if not relative.startswith(".."):
            self._strip = relative + "/"
        else:
            below = os.path.relpath(rootdir, root).replace(os.sep, "/")
            if not below.startswith(".."):
                self._prefix = below + "/"

    def of(self, nodeid: str) -> str:
        """Return the converted node id; one outside of the root is returned unchanged."""
        if self._strip:
            return nodeid.removeprefix(self._strip)
        return self._prefix + nodeid if self._prefix else nodeid


@dataclass(slots=True)
class _Running:
    """The reports so far of an unfinished test."""

    duration: float = 0.0
    """Seconds, of all phases and attempts."""
    outcome: str = ""
    """Empty until a report decides it."""
    reason: str = ""
    reruns: int = 0


class ResultLedger:
    """Tracks each test from its first report to its last, and writes the records."""

    def __init__(self, journal: JournalWriter, nodeids: NodeIds) -> None:
        self._journal = journal
        self._nodeids = nodeids
        self._running: dict[str, _Running] = {}

    def add(self, report: pytest.TestReport) -> None:
        """Process one report: a phase, a subtest, an attempt to be rerun, or an xdist worker's crash."""
        nodeid = report.nodeid
        running = self._running.get(nodeid)
        if running is None:
            running = self._running[nodeid] = _Running()
        if hasattr(report, "context"):
            # A subtest: its duration is part of its test's, and only its failure matters.
            if report.outcome == "failed":
                self._fail(report, running)
            return
        running.duration += max(report.duration or 0.0, 0.0)  # negative if a test has set the clock back
        if report.outcome not in ("passed", "failed", "skipped"):  # "rerun", of a rerun plugin
            running.reruns += 1
            running.outcome = ""
            self._failure(report, attempt=running.reruns)
            return
        if report.outcome != "failed" and (evidence := getattr(report, EVIDENCE, None)):
            # The report was a failure when created; a plugin has changed it since.
            nodeid = self._nodeids.of(nodeid)
            self._journal.write(
                "hidden_failure", worker="", nodeid=nodeid, count=1, runs=1, evidence=evidence
            )
        if report.outcome == "failed":
            self._fail(report, running)
        elif report.outcome == "skipped":
            self._skip(report, running)
        elif report.when == "call" and not running.outcome:
            running.outcome = "xpassed" if hasattr(report, "wasxfail") else "passed"
            if running.outcome == "xpassed":
                running.reason = str(report.wasxfail)  # pyright: ignore
        if report.when == "teardown" and running.reruns and not running.outcome:
            return  # the attempt is followed by another
        if report.when == "teardown" or report.when not in ("setup", "call", "teardown"):
            self._finish(report, running)

    def _fail(self, report: pytest.TestReport, running: _Running) -> None:
        """Apply a failed report and write the failure.

        A report without a phase is made by pytest-xdist for the test in which a worker crashed.
        """
        if report.when not in ("setup", "call", "teardown"):
            running.outcome = "crashed"
        elif running.outcome in ("", "passed", "xpassed", "skipped", "xfailed"):
            # The first failure decides: an error in teardown does not replace a failed call.
            running.outcome = "failed" if report.when == "call" else "error"
        self._failure(report)

    def _skip(self, report: pytest.TestReport, running: _Running) -> None:
        """Apply a skipped report, which is also what an expected failure (xfail) is reported as."""
        expected = getattr(report, "wasxfail", None)
        if not running.outcome or running.outcome == "passed":
            running.outcome = "xfailed" if expected is not None else "skipped"
        reason = skip_reason(report.longrepr) if expected is None else str(expected)
        running.reason = running.reason or reason

    def _failure(self, report: pytest.TestReport, attempt: int | None = None) -> None:
        """Write a failure; ``attempt`` is its number if the test is rerun."""
        evidence = getattr(report, EVIDENCE, None)
        self._journal.write_raw(
            "test_failure",
            f'"nodeid": {dumps(self._nodeids.of(report.nodeid))}, "when": {dumps(report.when)}, '
            f'"attempt": {dumps(attempt)}, "evidence": {evidence or dumps(_minimal_facts(report))}',
        )

    def _finish(self, report: pytest.TestReport, running: _Running) -> None:
        """Write the end of a test and forget it."""
        nodeid = report.nodeid
        self._running.pop(nodeid, None)
        if not running.outcome:
            # No call report, as with --setup-only: a body that never ran proves nothing.
            running.outcome, running.reason = "skipped", "its body was not run, only its fixtures"
        body = (
            f'"nodeid": {dumps(self._nodeids.of(nodeid))}, '
            f'"outcome": "{running.outcome}", "duration_ms": {running.duration * 1000:.1f}'
        )
        if running.reason:
            body += f', "reason": {dumps(running.reason[:500])}'
        if running.reruns:
            body += f', "reruns": {running.reruns}'
        if report.user_properties:
            # A test may append anything, which pytest itself does not look at.
            given = cast("list[object]", report.user_properties)
            pairs = (cast("Any", each) for each in given if isinstance(each, tuple | list))
            properties = [[str(each[0]), writable(each[1])] for each in pairs if len(each) == 2]
            body += f', "properties": {dumps(properties)}'
        self._journal.write_raw("test_finished", body)


def skip_reason(longrepr: object) -> str:
    """Return the skip reason from a report's ``longrepr``: a tuple of file, line and reason, or a text."""
    text = longrepr[-1] if isinstance(longrepr, tuple) else longrepr or ""  # pyright: ignore
    return str(text).removeprefix("Skipped: ")  # pyright: ignore


def _minimal_facts(report: pytest.TestReport) -> dict[str, Any]:
    """Return the minimal facts of a report without evidence, for example of a crashed xdist worker."""
    text = str(report.longrepr)[-20_000:] if report.longrepr else ""
    return {
        "kind": "test",
        "phase": report.when if report.when in ("setup", "call", "teardown") else None,
        "headline": text.strip().splitlines()[0] if text.strip() else "",
        "longrepr": text,
    }
