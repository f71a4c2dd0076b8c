"""Contracts end to end: kept, broken and reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from example_project import Example, Verified, todo

INDICATORS = """
import pandas as pd
from dataclasses import dataclass


def compute_rsi(series: "pd.Series", period: int = 14) -> "pd.Series":
    raise SystemExit("a contract never runs the code")


def compute_atr(bars, *, period: int = 14): ...


@dataclass
class Band:
    upper: float
    lower: float = 0.0

    @property
    def width(self) -> float: ...

    async def stream(self, *items: float): ...


raise SystemExit("a contract never imports the module")
"""

LISTING_IMPORTS = {"PYTHONPROFILEIMPORTTIME": "1"}

PERIOD = {"name": "period", "annotation": "int", "default": "14"}
UPPER = {"name": "upper", "annotation": "float"}
LOWER = {"name": "lower", "annotation": "float", "default": "0.0"}
SERIES = {"name": "series", "annotation": "pd.Series"}
ITEMS = {"name": "items", "kind": "var_positional"}
CONTRACT = {
    "contract_version": 1,
    "functions": [
        {"name": "compute_rsi", "parameters": [SERIES, PERIOD], "returns": "pd.Series", "async": False},
        {"name": "compute_atr", "parameters": [{"name": "bars"}, PERIOD | {"kind": "keyword_only"}]},
    ],
    "classes": [
        {
            "name": "Band",
            "methods": [
                {"name": "__init__", "parameters": [UPPER, LOWER]},
                {"name": "stream", "parameters": [ITEMS], "async": True},
            ],
        }
    ],
}


CHANGES = {
    "kept": {},
    "broken": {
        "period: int = 14) ->": "window: int = 14) ->",
        "compute_atr(": "compute_atrs(",
        "lower: float = 0.0": "lower: float",
    },
    "traced": {"def compute_atr": "@traced\ndef compute_atr"},
}
"""Changes of a module whose contract has its name, by the name."""


RSI = {"name": "compute_rsi", "parameters": [{"name": "series"}, {"name": "period", "default": "14"}]}
GROWING = {"name": "Band", "methods": [{"name": "grow", "parameters": [{"name": "by"}]}]}
CALLED = {
    "rsi.py": "def compute_rsi(series, period=14): return 0\nclass Band:\n    def grow(self, by): ...\n",
    "test_rsi.py": """
        import rsi

        def test_function(): rsi.compute_rsi([], window=3)

        def test_method(): rsi.Band().grow()
        """,
    "rsi.json": json.dumps(
        {"contract_version": 1, "module": "rsi", "functions": [RSI], "classes": [GROWING]}
    ),
    "broken.json": "{",
}
"""A module that satisfies its contract, and tests that call it wrongly."""


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    """Return a run that lists the imported modules."""
    example = Example(tmp_path_factory.mktemp("contracts"))
    for name, changes in CHANGES.items():
        text = INDICATORS
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        contract = json.dumps(CONTRACT | {"module": f"indicators.{name}"})
        example.write({f"src/indicators/{name}.py": text, f"contracts/{name}.json": contract})
    example.write(CALLED)
    example.plan(
        *(
            todo(name, expected_artifacts=["plan.yaml"], contract_path=f"contracts/{name}.json")
            for name in CHANGES
        ),
        todo("called", "pytest test_rsi.py", contract_path="rsi.json"),
        todo("unreadable", "pytest test_rsi.py", contract_path="broken.json"),
    )
    return example.verify("--planverify-confirm=0", env=LISTING_IMPORTS)


def imported(run: Verified) -> set[str]:
    lines = (line.rpartition("|")[2].strip() for line in run.output.splitlines())
    return {line.partition(".")[0] for line in lines}


def test_a_contract_that_the_code_fulfils_passes(verified: Verified) -> None:
    assert verified.states["kept"] == "done", str(verified)


def test_every_contract_mismatch_is_a_failure_with_both_signatures(verified: Verified) -> None:
    assert verified.category("broken") == "SPEC_MISMATCH", str(verified)
    failures = verified.outcomes["broken"]["failures"]
    assert len(failures) == 3
    assert [each["rule"] for each in failures] == ["contract-broken"] * 3
    said = {each["location"]["function"]: each["suggestion"] for each in failures}
    promised = "compute_rsi(series: pd.Series, period: int = 14) -> pd.Series"
    found = "compute_rsi(series: pd.Series, window: int = 14) -> pd.Series"
    assert said["compute_rsi"] == (
        "compute_rsi (src/indicators/broken.py:6): it lacks the parameter period; "
        "it has the additional parameter window. "
        f"contracts/broken.json promises {promised}, the code has {found}."
    )
    assert "does not define compute_atr, it defines compute_rsi, compute_atrs" in said["compute_atr"]
    assert "lower has no default" in said["Band.__init__"]
    reason = verified.check("broken", "contract_path")["reason"]
    assert reason.startswith("compute_rsi: ")
    assert reason.endswith("(and 2 more: compute_atr, Band.__init__)")


def test_an_undeterminable_signature_is_inconclusive(verified: Verified) -> None:
    assert verified.states["traced"] == "testing", str(verified)
    assert verified.check("traced", "contract_path")["verdict"] == "inconclusive"


def test_griffe_is_imported_only_for_contracts(verified: Verified, tmp_path: Path) -> None:
    assert "griffe" in imported(verified)
    example = Example(tmp_path)
    example.plan(todo("t", expected_artifacts=["plan.yaml"]))

    run = example.verify(env=LISTING_IMPORTS)

    assert run.exit_code == 0, str(run)
    assert "griffe" not in imported(run)


def test_a_wrong_call_is_diagnosed_with_the_signature_of_the_contract(verified: Verified) -> None:
    assert verified.category("called") == "SPEC_MISMATCH", str(verified)
    said = " ".join(each["suggestion"] for each in verified.outcomes["called"]["failures"])
    assert "rsi.json promises compute_rsi(series, period=14)." in said
    assert "rsi.json promises Band.grow(by)." in said
    said = " ".join(each["suggestion"] for each in verified.outcomes["unreadable"]["failures"])
    assert "unexpected keyword argument 'window'." in said
    assert "promises" not in said
