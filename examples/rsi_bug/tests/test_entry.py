"""The strategy enters in the scenarios that say so, and in no other."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from Backtest.codes.ai_strategy_entry import should_enter

SCENARIOS = Path(__file__).resolve().parents[1] / "fixtures/entry_scenarios.json"


def test_entry_true_false():
    scenarios = json.loads(SCENARIOS.read_text(encoding="utf-8"))
    decisions = {scenario["name"]: decide(scenario) for scenario in scenarios}

    assert decisions == {scenario["name"]: scenario["enter"] for scenario in scenarios}
    assert set(decisions.values()) == {True, False}


def decide(scenario: dict) -> bool:
    volume = scenario.get("volume", 1_000_000)
    bar = pd.Series({"Open": 178.0, "High": 181.0, "Low": 177.0, "Close": 180.0, "Volume": volume})
    indicators = {name: scenario[name] for name in ("macd", "engulfing") if name in scenario}
    indicators["rsi"] = float("nan") if scenario["rsi"] is None else scenario["rsi"]
    return should_enter(bar, indicators, scenario.get("position"))
