"""JUnit XML: a suite a todo, a case a test, artifact, command, metric, contract or violation."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from pytest_planverify.reports.cases import FAILED, SKIPPED

if TYPE_CHECKING:
    from pytest_planverify.reports.cases import ReportCase, ReportInput


def render(told: ReportInput) -> str:
    """Return the report; it has a failure exactly where the exit status of the run is not 0."""
    suites: dict[str, list[ReportCase]] = {}
    for case in told.cases:
        suites.setdefault(case.todo_id, []).append(case)
    run = told.document.run
    top = Xml.Element(
        "testsuites", {"name": "planverify", **_counts(told.cases), "time": _time(run.duration_ms)}
    )
    for todo_id, cases in suites.items():
        spent = _time(sum(case.duration_ms for case in cases))
        suite = Xml.SubElement(
            top,
            "testsuite",
            {
                "name": todo_id,
                **_counts(cases),
                "time": spent,
                "timestamp": run.started_at.removesuffix("Z"),
            },
        )
        for case in cases:
            _add(suite, case)
    Xml.indent(top)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(top, encoding="unicode") + "\n"


def _add(suite: Xml.Element, case: ReportCase) -> None:
    attributes = {"classname": case.todo_id, "name": case.name, "time": _time(case.duration_ms)}
    element = Xml.SubElement(suite, "testcase", attributes)
    if case.status == FAILED:
        failure = Xml.SubElement(element, "failure", {"message": case.message, "type": "failure"})
        failure.text = case.text or case.message
    elif case.status == SKIPPED:
        Xml.SubElement(element, "skipped", {"message": case.message})


def _counts(cases: list[ReportCase]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.status == FAILED for case in cases)),
        "errors": "0",
        "skipped": str(sum(case.status == SKIPPED for case in cases)),
    }


def _time(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.3f}"
