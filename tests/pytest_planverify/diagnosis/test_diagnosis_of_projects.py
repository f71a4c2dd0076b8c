"""Captured evidence and diagnosis of real projects that fail."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from diagnosis_capture import capture

from planner.model.evidence import Evidence
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis import diagnose

CASES: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parents[2] / "support/diagnosis_projects.yaml").read_text(encoding="utf-8")
)
"""Projects by the expected category and owner, and by name; each fails in one way.

A project has ``files``, and may have ``args`` of pytest, the expected ``location`` (``path:line`` or
``path::function``) and ``rule``, and a part of the suggestion that it ``says``.
"""


@pytest.mark.parametrize(
    ("expected", "case"),
    [pytest.param(expected, case, id=name) for expected in CASES for name, case in CASES[expected].items()],
)
def test_failing_project_gets_the_expected_diagnosis(
    pytester: pytest.Pytester, expected: str, case: dict[str, Any]
):
    files = case["files"]
    package = {"shop/__init__.py": ""} if any(path.startswith("shop/") for path in files) else {}

    evidence = capture(pytester, package | files, *case.get("args", ())).first
    diagnosis = diagnose(evidence)

    category, owner = expected.split()
    assert (diagnosis.category, diagnosis.owner) == (Category(category), Owner(owner)), diagnosis
    place = diagnosis.location
    places = [f"{place.path}:{place.line}", f"{place.path}::{place.function}"] if place else [None]
    assert case.get("location") in places
    assert case.get("rule", diagnosis.rule) == diagnosis.rule
    assert case.get("says", "") in diagnosis.suggestion
    assert Evidence.model_validate_json(evidence.model_dump_json()) == evidence
