"""Contracts end to end: kept, broken and reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from example_project import Example, todo

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


PERIOD = {"name": "period", "annotation": "int", "default": "14"}
UPPER = {"name": "upper", "annotation": "float"}
LOWER = {"name": "lower", "annotation": "float", "default": "0.0"}
SERIES = {"name": "series", "annotation": "pd.Series"}
ITEMS = {"name": "items", "kind": "var_positional"}
CONTRACT = {
    "contract_version": 1,
    "module": "indicators.rsi",
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


@pytest.fixture
def example(tmp_path: Path) -> Example:
    files = {"src/indicators/rsi.py": INDICATORS, "contracts/rsi.json": json.dumps(CONTRACT)}
    example = Example(tmp_path, files)
    example.plan(todo("t", expected_artifacts=["plan.yaml"], contract_path="contracts/rsi.json"))
    return example


def change(example: Example, old: str, new: str) -> None:
    file = example.root / "src/indicators/rsi.py"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def test_a_contract_that_the_code_fulfils_passes(example: Example) -> None:
    verified = example.verify()
    assert verified.states == {"t": "done"}, str(verified)


def test_every_contract_mismatch_is_a_failure_with_both_signatures(example: Example) -> None:
    change(example, "period: int = 14) ->", "window: int = 14) ->")
    change(example, "compute_atr(", "compute_atrs(")
    change(example, "lower: float = 0.0", "lower: float")

    verified = example.verify()

    assert verified.category("t") == "SPEC_MISMATCH", str(verified)
    failures = verified.outcomes["t"]["failures"]
    assert len(failures) == 3
    assert [each["rule"] for each in failures] == ["contract-broken"] * 3
    said = {each["location"]["function"]: each["suggestion"] for each in failures}
    promised = "compute_rsi(series: pd.Series, period: int = 14) -> pd.Series"
    found = "compute_rsi(series: pd.Series, window: int = 14) -> pd.Series"
    assert said["compute_rsi"] == (
        "compute_rsi (src/indicators/rsi.py:6): it lacks the parameter period; "
        "it has the additional parameter window. "
        f"contracts/rsi.json promises {promised}, the code has {found}."
    )
    assert "does not define compute_atr; did you mean compute_atrs?" in said["compute_atr"]
    assert "lower has no default" in said["Band.__init__"]
    reason = verified.check("t", "contract_path")["reason"]
    assert reason.startswith("compute_rsi: ")
    assert reason.endswith("(and 2 more: compute_atr, Band.__init__)")


def test_an_undeterminable_signature_is_inconclusive(example: Example) -> None:
    change(example, "def compute_atr", "@traced\ndef compute_atr")

    verified = example.verify()

    assert verified.states == {"t": "testing"}, str(verified)
    assert verified.check("t", "contract_path")["verdict"] == "inconclusive"


def test_griffe_is_imported_only_for_contracts(example: Example) -> None:

    def imported() -> set[str]:
        verified = example.verify(env={"PYTHONPROFILEIMPORTTIME": "1"})
        assert verified.exit_code == 0, str(verified)
        lines = (line.rpartition("|")[2].strip() for line in verified.output.splitlines())
        return {line.partition(".")[0] for line in lines}

    assert "griffe" in imported()
    example.plan(todo("t", expected_artifacts=["plan.yaml"]))
    assert "griffe" not in imported()


def test_a_wrong_call_is_diagnosed_with_the_signature_of_the_contract(tmp_path: Path) -> None:
    example = Example(
        tmp_path,
        {
            "rsi.py": "def compute_rsi(series, period=14): return 0\n"
            "class Band:\n    def grow(self, by): ...\n",
            "test_rsi.py": "import rsi\n\ndef test_function(): rsi.compute_rsi([], window=3)\n\n"
            "def test_method(): rsi.Band().grow()\n",
        },
    )
    rsi = {"name": "compute_rsi", "parameters": [{"name": "series"}, {"name": "period", "default": "14"}]}
    band = {"name": "Band", "methods": [{"name": "grow", "parameters": [{"name": "by"}]}]}
    contract = {"contract_version": 1, "module": "rsi", "functions": [rsi], "classes": [band]}
    (tmp_path / "rsi.json").write_text(json.dumps(contract))
    example.plan(todo("t", "pytest test_rsi.py", contract_path="rsi.json"))

    verified = example.verify()

    assert verified.category("t") == "SPEC_MISMATCH", str(verified)
    said = " ".join(each["suggestion"] for each in verified.outcomes["t"]["failures"])
    assert "rsi.json promises compute_rsi(series, period=14)." in said
    assert "rsi.json promises Band.grow(by)." in said
    (tmp_path / "rsi.json").write_text("{")
    verified = example.verify()
    said = " ".join(each["suggestion"] for each in verified.outcomes["t"]["failures"])
    assert "unexpected keyword argument 'window'." in said
    assert "promises" not in said
