"""Recorded evidence of commands and sessions in processes of their own: each keeps its diagnosis."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.model.evidence import Evidence
from pytest_planverify.diagnosis import diagnose

FILE = Path(__file__).parents[3] / "fixtures/evidence.jsonl"
RECORDINGS: list[dict[str, Any]] = [
    json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording["name"])
def test_recorded_evidence_keeps_its_diagnosis(recording: dict[str, Any]) -> None:
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
