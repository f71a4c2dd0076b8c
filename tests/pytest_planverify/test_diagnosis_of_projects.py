"""Real projects that fail: what is captured of each, and the diagnosis that it gets."""

from __future__ import annotations

import pytest
from diagnosis_capture import Case, capture
from diagnosis_projects import CASES

from planner.model.evidence import Evidence
from planner.model.outcome import Location
from pytest_planverify.diagnosis import diagnose


def _shown(location: Location | None, like: str | None) -> str | None:
    if location is None:
        return None
    if like is not None and "::" in like:
        return f"{location.path}::{location.function}"
    return f"{location.path}:{location.line}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_failing_project_gets_the_diagnosis_of_an_honest_reader(
    pytester: pytest.Pytester, case: Case
) -> None:
    evidence = capture(pytester, case.files, *case.args).first
    diagnosis = diagnose(evidence)
    found = (diagnosis.category, diagnosis.owner, _shown(diagnosis.location, case.location))
    assert found == (case.category, case.owner, case.location), diagnosis
    if case.rule:
        assert diagnosis.rule == case.rule
    assert case.says in diagnosis.suggestion
    assert Evidence.model_validate_json(evidence.model_dump_json()) == evidence
