"""SARIF 2.1.0: one result for each root cause, at its location."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from pytest_planverify.reports.cases import Problem, ReportInput

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(data: ReportInput) -> dict[str, object]:
    """Return the report; failures that do not count in an accepted run have the level ``note``."""
    level = "note" if data.holds else "error"
    rules = sorted({problem.category for problem in data.problems})
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "pytest-planverify", "rules": [{"id": rule} for rule in rules]}
                },
                "invocations": [
                    {
                        "executionSuccessful": not data.document.run.interrupted,
                        "exitCode": data.document.run.exit_status,
                    }
                ],
                "results": [
                    _result(problem, level, rules.index(problem.category)) for problem in data.problems
                ],
            }
        ],
    }


def _result(problem: Problem, level: str, rule: int) -> dict[str, object]:
    place = {
        "artifactLocation": {"uri": quote(problem.path, errors="replace")},
        "region": {"startLine": problem.line},
    }
    return {
        "ruleId": problem.category,
        "ruleIndex": rule,
        "level": level,
        "message": {"text": f"{problem.headline} ({problem.consequences})"},
        "locations": [{"physicalLocation": place}],
        # Services recognize a result by it after lines have moved.
        "partialFingerprints": {"planverify/v1": problem.fingerprint},
    }
