"""Recorded evidence of commands and sessions in processes of their own: each keeps its diagnosis."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.model.evidence import Evidence
from pytest_planverify.diagnosis import diagnose

RECORDINGS = sorted((Path(__file__).parents[2] / "fixtures" / "evidence").glob("*.json"))


def test_there_are_recordings() -> None:
    assert len(RECORDINGS) >= 15


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_recorded_evidence_keeps_its_diagnosis(path: Path) -> None:
    recording = json.loads(path.read_text(encoding="utf-8"))
    expected = recording["expected"]
    diagnosis = diagnose(Evidence.model_validate(recording["evidence"]))
    assert (diagnosis.category, diagnosis.owner, diagnosis.rule) == (
        expected["category"],
        expected["owner"],
        expected["rule"],
    )
    if expected["path"]:
        assert diagnosis.location is not None
        assert diagnosis.location.path == expected["path"]
