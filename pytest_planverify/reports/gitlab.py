"""GitLab Code Quality: a list of root causes, each at its location."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_planverify.reports.cases import ReportInput


def render(data: ReportInput) -> list[dict[str, object]]:
    """Return the report; failures that do not count in an accepted run have the severity ``info``."""
    severity = "info" if data.holds else "major"
    return [
        {
            "description": f"{problem.headline} ({problem.consequences})",
            "check_name": problem.category,
            "fingerprint": problem.fingerprint,
            "severity": severity,
            "location": {"path": problem.path, "lines": {"begin": problem.line}},
        }
        for problem in data.problems
    ]
