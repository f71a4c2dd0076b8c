"""Turns the reports of a session into journal records: one when a test starts, one when it is over.

A failing phase is written the moment it is reported, so that a process that dies in the teardown has
not taken the failure with it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from json import dumps, loads  # as they are now: a test may have replaced them while it is reported
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from pytest_planverify.journal import JournalWriter

EVIDENCE = "planverify_evidence"
"""Attribute of a report that carries its evidence, as one string of JSON so that it survives xdist."""


def writable(value: object) -> Any:
    """Return a recorded value as JSON can hold it, or a word on one that cannot be shown."""
    try:
        return loads(dumps(value, default=str))
    except BaseException:  # a test's own object may do anything when it is shown, even end the program
        return f"a {type(value).__name__} that cannot be shown"


class NodeIds:
    """Translates node ids, which are relative to pytest's rootdir, to those relative to the plan's root."""

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
        """Return the node id as the plan's root sees it; one from elsewhere stays as it is."""
        if self._strip:
            return nodeid.removeprefix(self._strip)
        return self._prefix + nodeid if self._prefix else nodeid


@dataclass(slots=True)
class _Running:
    """The reports so far of a test that is not over."""

    duration: float = 0.0
    outcome: str = ""
    reason: str = ""
    reruns: int = 0


class ResultLedger:
    """Follows each test from its first report to its last."""

    def __init__(self, journal: JournalWriter, nodeids: NodeIds) -> None:
        self._journal = journal
        self._nodeids = nodeids
        self._running: dict[str, _Running] = {}

    def add(self, report: pytest.TestReport) -> None:
        """Take one report: a phase, a subtest, an attempt that will be rerun, or a worker's crash."""
        nodeid = report.nodeid
        running = self._running.get(nodeid)
        if running is None:
            running = self._running[nodeid] = _Running()
        if hasattr(report, "context"):
            # A subtest: its time is part of its test's, and only its failure says anything of the test.
            if report.outcome == "failed":
                self._fail(report, running)
            return
        running.duration += report.duration or 0.0
        if report.outcome not in ("passed", "failed", "skipped"):  # of a plugin that runs it again
            running.reruns += 1
            running.outcome = ""
            self._failure(report, attempt=running.reruns)
            return
        if report.outcome != "failed" and (evidence := getattr(report, EVIDENCE, None)):
            # It was a failure when it was made, and somebody has turned it round since.
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
            return  # of an attempt that is followed by another
        if report.when == "teardown" or report.when not in ("setup", "call", "teardown"):
            self._finish(report, running)

    def _fail(self, report: pytest.TestReport, running: _Running) -> None:
        if report.when not in ("setup", "call", "teardown"):
            running.outcome = "crashed"
        elif running.outcome in ("", "passed", "xpassed", "skipped", "xfailed"):
            running.outcome = "failed" if report.when == "call" else "error"
        self._failure(report)

    def _skip(self, report: pytest.TestReport, running: _Running) -> None:
        expected = getattr(report, "wasxfail", None)
        if not running.outcome or running.outcome == "passed":
            running.outcome = "xfailed" if expected is not None else "skipped"
        running.reason = running.reason or (str(expected) if expected else skip_reason(report.longrepr))

    def _failure(self, report: pytest.TestReport, attempt: int | None = None) -> None:
        evidence = getattr(report, EVIDENCE, None)
        self._journal.write_raw(
            "test_failure",
            f'"nodeid": {dumps(self._nodeids.of(report.nodeid))}, "when": {dumps(report.when)}, '
            f'"attempt": {dumps(attempt)}, "evidence": {evidence or dumps(_bare(report))}',
        )

    def _finish(self, report: pytest.TestReport, running: _Running) -> None:
        nodeid = report.nodeid
        self._running.pop(nodeid, None)
        if not running.outcome:
            # No report of a call: pytest was told to set up only, and a body that never ran proves nothing.
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
            properties = [[str(name), writable(value)] for name, value in report.user_properties]
            body += f', "properties": {dumps(properties)}'
        self._journal.write_raw("test_finished", body)


def skip_reason(longrepr: object) -> str:
    """Return why something was skipped, from the ``longrepr`` of its report."""
    text = longrepr[-1] if isinstance(longrepr, tuple) else longrepr or ""  # pyright: ignore
    return str(text).removeprefix("Skipped: ")  # pyright: ignore


def _bare(report: pytest.TestReport) -> dict[str, Any]:
    """The little that a report without evidence says, such as that of a crashed worker."""
    text = str(report.longrepr)[-20_000:] if report.longrepr else ""
    return {
        "kind": "test",
        "phase": report.when if report.when in ("setup", "call", "teardown") else None,
        "headline": text.strip().splitlines()[0] if text.strip() else "",
        "longrepr": text,
    }
