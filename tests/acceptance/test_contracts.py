"""Contracts end to end: generated from code, kept, broken and reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from example_project import Example, todo
from real_planner import planner

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


@pytest.fixture
def example(tmp_path: Path) -> Example:
    example = Example(tmp_path, {"src/indicators/rsi.py": INDICATORS})
    example.plan(todo("t", expected_artifacts=["plan.yaml"], contract_path="contracts/rsi.json"))
    return example


def write(example: Example, *more: str) -> dict[str, Any]:
    done = planner(
        "contract", "write", "indicators.rsi", "-o", "contracts/rsi.json", *more, cwd=example.root
    )
    assert done.status == 0, done.err
    assert done.err == ""
    assert done.out == "contracts/rsi.json: 2 functions and 1 class of indicators.rsi\n"
    return json.loads((example.root / "contracts/rsi.json").read_text())


def change(example: Example, old: str, new: str) -> None:
    file = example.root / "src/indicators/rsi.py"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def test_a_generated_contract_passes_verification(example: Example) -> None:
    document = write(example)

    assert [each["name"] for each in document["functions"]] == ["compute_rsi", "compute_atr"]
    verified = example.verify()
    assert verified.states == {"t": "done"}, str(verified)


def test_every_contract_mismatch_is_a_failure_with_both_signatures(example: Example) -> None:
    write(example)
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
        "compute_rsi (src/indicators/rsi.py:6): the parameter period is renamed to window. "
        f"contracts/rsi.json promises {promised}, the code has {found}."
    )
    assert "does not define compute_atr; did you mean compute_atrs?" in said["compute_atr"]
    assert "lower has no default" in said["Band.__init__"]
    reason = verified.check("t", "contract_path")["reason"]
    assert reason.startswith("compute_rsi: ")
    assert reason.endswith("(and 2 more: compute_atr, Band.__init__)")


def test_an_undeterminable_signature_is_inconclusive(example: Example) -> None:
    write(example)
    change(example, "def compute_atr", "@traced\ndef compute_atr")

    verified = example.verify()

    assert verified.states == {"t": "testing"}, str(verified)
    assert verified.check("t", "contract_path")["verdict"] == "inconclusive"


def test_functions_left_out_of_a_contract_are_reported(example: Example) -> None:
    change(example, "def compute_atr", "@traced\ndef compute_atr")

    done = planner("contract", "write", "indicators.rsi", cwd=example.root)

    assert [each["name"] for each in json.loads(done.out)["functions"]] == ["compute_rsi"]
    assert done.err == (
        "planner: left out: compute_atr has the decorator traced, which may change its signature\n"
    )


@pytest.mark.parametrize(
    ("args", "status", "said"),
    [
        (["write", "indicators.rsj"], 4, "there is no module indicators.rsj below the root; did you mean"),
        (["write", "indicators/rsi.py"], 2, "is a path; write the module's dotted name: indicators.rsi"),
        (["write", "empty"], 4, "empty defines no public function or class"),
        (["write", "broken"], 4, "broken.py:1: SyntaxError: "),
        (["write", "indicators.rsi", "--root", "gone"], 2, "--root gone is not a folder"),
        (["write", "indicators.rsi", "-o", "plan.yaml"], 2, "plan.yaml exists already; replace it"),
        (["write", "indicators.rsi", "-o", "src", "--force"], 2, "src exists already"),
        (["write", "indicators.rsi", "-o", "plan.yaml/x"], 4, "a part of its path is not a folder"),
        (["write"], 2, ""),
    ],
)
def test_wrong_use_of_contract_write_is_refused_with_its_exit_status(
    example: Example, args: list[str], status: int, said: str
) -> None:
    example.write({"empty.py": "x = 1\n", "broken.py": "def (\n"})

    done = planner("contract", *args, cwd=example.root)

    assert done.status == status, done.err
    assert said in done.err
    assert done.out == ""
    assert "Traceback" not in done.err


def test_a_contract_is_replaced_with_force(example: Example) -> None:
    write(example)
    change(example, "def compute_atr", "def compute_bands")
    document = write(example, "--force")
    assert [each["name"] for each in document["functions"]] == ["compute_rsi", "compute_bands"]


def test_griffe_is_imported_only_for_contracts(example: Example) -> None:
    write(example)

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
    written = planner("contract", "write", "rsi", "-o", "rsi.json", cwd=tmp_path)
    assert written.status == 0, written.err
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
