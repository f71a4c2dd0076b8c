"""Findings of a plan as SARIF 2.1.0, for programs that show them beside the lines of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from planner.lint import LINT_RULES
from planner.model.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.findings import PlanFinding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "note"}


def sarif_of(findings: Sequence[PlanFinding]) -> dict[str, Any]:
    """Return the document, with a result for each finding."""
    rules = sorted({each.rule for each in findings})
    described = [
        {
            "id": rule,
            "shortDescription": {"text": LINT_RULES[rule].why},
            "help": {"text": LINT_RULES[rule].fix},
        }
        for rule in rules
    ]
    driver = {"name": "planner validate", "rules": described}
    results = [_result(each, rules.index(each.rule)) for each in findings]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(found: PlanFinding, rule: int) -> dict[str, Any]:
    region = {"startLine": found.line or 1, "startColumn": found.column or 1}
    place = {"artifactLocation": {"uri": quote(found.path)}, "region": region}
    return {
        "ruleId": found.rule,
        "ruleIndex": rule,
        "level": _LEVELS[found.severity],
        "message": {"text": f"{found.message}; {found.fix}"},
        "locations": [{"physicalLocation": place}],
    }
