"""The strategy leaves a position at its stop, at its target and on an overbought market."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from Backtest.codes.ai_strategy_exit import should_exit

SCENARIOS = json.loads(
    (Path(__file__).resolve().parents[1] / "fixtures/exit_scenarios.json").read_text(encoding="utf-8")
)


def test_stop_loss():
    assert decisions("stop_loss") == labels("stop_loss")


def test_take_profit():
    assert decisions("take_profit") == labels("take_profit")


def test_signal():
    assert decisions("signal") == labels("signal")


def labels(kind: str) -> dict[str, bool]:
    labelled = {scenario["name"]: scenario["exit"] for scenario in SCENARIOS[kind]}
    assert set(labelled.values()) == {True, False}
    return labelled


def decisions(kind: str) -> dict[str, bool]:
    return {scenario["name"]: decide(scenario) for scenario in SCENARIOS[kind]}


def decide(scenario: dict) -> bool:
    entry_price, low, high = scenario["entry_price"], scenario["low"], scenario["high"]
    close = (low + high) / 2
    bar = pd.Series({"Open": close, "High": high, "Low": low, "Close": close, "Volume": 1_000_000})
    rsi = float("nan") if scenario["rsi"] is None else scenario["rsi"]
    position = {"entry_price": entry_price, "size": 1, "pnl": close - entry_price}
    return should_exit(bar, {"rsi": rsi}, position)
