"""Captured evidence and diagnosis of real projects that fail."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from diagnosis_capture import capture

from planner.model.evidence import Evidence
from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis import diagnose


@dataclass(frozen=True)
class Case:
    """A project that fails in one way, with the expected place and rule."""

    files: dict[str, str]
    location: str | None = None
    """``path:line`` or ``path::function``; ``None`` where no location is expected."""
    rule: str | None = None
    args: tuple[str, ...] = ()
    says: str = ""
    """A substring of the expected suggestion."""


CASES: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parents[2] / "support/diagnosis_projects.yaml").read_text(encoding="utf-8")
)
"""Keys of :class:`Case` by the expected category and owner, and by name."""


def _shown(location: Location | None, like: str | None) -> str | None:
    if location is None:
        return None
    if like is not None and "::" in like:
        return f"{location.path}::{location.function}"
    return f"{location.path}:{location.line}"


@pytest.mark.parametrize(
    ("expected", "case"),
    [
        pytest.param(expected, Case(**case), id=name)
        for expected, cases in CASES.items()
        for name, case in cases.items()
    ],
)
def test_failing_project_gets_the_expected_diagnosis(
    pytester: pytest.Pytester, expected: str, case: Case
) -> None:
    package = {"shop/__init__.py": ""} if any(path.startswith("shop/") for path in case.files) else {}
    evidence = capture(pytester, package | case.files, *case.args).first
    diagnosis = diagnose(evidence)
    category, owner = expected.split()
    assert (diagnosis.category, diagnosis.owner) == (Category(category), Owner(owner)), diagnosis
    assert _shown(diagnosis.location, case.location) == case.location
    if case.rule:
        assert diagnosis.rule == case.rule
    assert case.says in diagnosis.suggestion
    assert Evidence.model_validate_json(evidence.model_dump_json()) == evidence
