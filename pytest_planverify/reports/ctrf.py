"""CTRF (Common Test Report Format): the cases of the run as JSON."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from pytest_planverify.reports.cases import FAILED, PASSED, SKIPPED

if TYPE_CHECKING:
    from pytest_planverify.reports.cases import ReportCase, ReportInput


def render(data: ReportInput) -> dict[str, object]:
    """Return the report. Times are in milliseconds, ``start`` and ``stop`` since 1970 or 0 if unknown."""
    run = data.document.run
    counts = Counter(case.status for case in data.cases)
    return {
        "reportFormat": "CTRF",
        "specVersion": "0.0.0",
        "results": {
            "tool": {"name": "pytest-planverify"},
            "summary": {  # the schema requires all of these keys
                "tests": len(data.cases),
                "passed": counts[PASSED],
                "failed": counts[FAILED],
                "pending": 0,
                "skipped": counts[SKIPPED],
                "other": 0,
                "start": _milliseconds(run.started_at),
                "stop": _milliseconds(run.finished_at),
            },
            "tests": [_test(case) for case in data.cases],
        },
    }


def _test(case: ReportCase) -> dict[str, object]:
    test: dict[str, object] = {
        "name": case.name,
        "status": case.status,
        "duration": case.duration_ms,
        "suite": [case.todo_id],
        "flaky": case.flaky,
    }
    if case.message:
        test["message"] = case.message
    if case.text:
        test["trace"] = case.text
    return test


def _milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000) if moment else 0
