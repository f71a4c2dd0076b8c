"""The engulfing pattern is found in the labelled cases that show it, and in no other."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from indicators.patterns import is_engulfing

CASES = Path(__file__).resolve().parents[1] / "fixtures/pattern_cases.json"


def test_engulfing_detection():
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    found = {
        case["name"]: is_engulfing(pd.DataFrame(case["candles"], columns=["Open", "High", "Low", "Close"]))
        for case in cases
    }

    assert found == {case["name"]: case["engulfing"] for case in cases}
    assert set(found.values()) == {True, False}
