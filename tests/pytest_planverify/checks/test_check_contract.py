"""Contracts: satisfied, broken, or inconclusive if the source alone does not decide.

How a contract is compared with the source is tested in tests/planner/contracts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from text_bundles import write_files

from planner.model.evidence import ContractFact
from planner.model.verdicts import Verdict
from pytest_planverify.checks.contract import check_contract
from pytest_planverify.checks.result import Judgement

RSI = {
    "name": "compute_rsi",
    "parameters": [
        {"name": "series", "kind": "positional_or_keyword", "annotation": "pd.Series"},
        {"name": "period", "annotation": "int", "default": "14"},
    ],
    "returns": "pd.Series",
}


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root

    def check(self, **contract: Any) -> Judgement:
        document = {"contract_version": 1, "module": "indicators.rsi", **contract}
        write_files(self.root, {"contracts/c.json": json.dumps(document)})
        result = check_contract("contracts/c.json", self.root, check_id="contract_path")
        assert (result.verdict is Verdict.PASSED) == (not result.evidence)
        assert all(evidence.contract_path == "contracts/c.json" for evidence in result.evidence)
        return result

    def source(self, text: str, *functions: dict[str, Any], **contract: Any) -> Judgement:
        write_files(self.root, {"indicators/rsi.py": text})
        return self.check(functions=functions, **contract)


def fact(result: Judgement) -> ContractFact:
    return result.evidence[0].contract


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def compute_rsi(series: list, period: int = 14) -> pd.Series: ...", "series is list"),
        ("def compute_rsi(series: pd.Series, period: int) -> pd.Series: ...", "period has no default"),
        ("class compute_rsi: ...", "is a class"),
    ],
)
def test_satisfied_contract_passes_and_a_violated_one_reports_both_signatures(
    project: Project, source: str, said: str
) -> None:
    kept = "def compute_rsi(series: pd.Series, period: int = 14) -> pd.Series: ..."
    assert project.source(f"import pandas as pd\n{kept}", RSI).verdict is Verdict.PASSED
    result = project.source(f"import pandas as pd\n{source}", RSI)
    assert result.verdict is Verdict.FAILED
    assert said in (result.reason or "")
    broken = fact(result)
    assert (broken.problem, broken.module_path, broken.line) == ("signature", "indicators/rsi.py", 2)
    assert broken.function == "compute_rsi"
    assert broken.expected == "compute_rsi(series: pd.Series, period: int = 14) -> pd.Series"
    assert broken.actual


def test_contract_that_needs_execution_is_inconclusive(project: Project) -> None:
    result = project.source("@a.b(1)\ndef compute_rsi(x): ...", RSI)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "the decorator a.b" in (result.reason or "")
    assert fact(result).problem == "unresolved"
    write_files(project.root, {"a.py": "from b import f\n", "b.py": "from a import f\n"})
    assert project.check(module="a", functions=[{"name": "f"}]).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("function", "said"), [({"name": "later"}, None), ({"name": "plain", "async": True}, "it is not async")]
)
def test_only_parts_in_the_contract_are_compared(
    project: Project, function: dict[str, Any], said: str | None
) -> None:
    result = project.source("async def later(a: int = 1) -> str: ...\ndef plain(): ...\n", function)
    assert (result.verdict is Verdict.PASSED) == (said is None)
    assert (said or "") in (result.reason or "")


def test_missing_compiled_and_broken_modules_are_distinguished(project: Project) -> None:
    result = project.check(functions=[RSI])
    assert (result.verdict, fact(result).problem) == (Verdict.FAILED, "missing_module")
    write_files(project.root, {"indicators/rsi.cpython-311.so": ""})
    result = project.check(functions=[RSI])
    assert (result.verdict, fact(result).problem) == (Verdict.INCONCLUSIVE, "unresolved")
    result = project.source("def g(:\n", RSI)
    assert (result.verdict, fact(result).problem) == (Verdict.FAILED, "unreadable")
    assert result.evidence[0].exceptions[0].type == "SyntaxError"
    assert (result.reason or "").startswith("indicators/rsi.py:1: SyntaxError")


def test_contract_that_cannot_be_read_or_checked_fails(project: Project) -> None:
    write_files(project.root, {"empty.json": "{}"})
    of_files = [(path, check_contract(path, project.root)) for path in ("gone.json", "empty.json")]
    for path, result in of_files:
        assert (result.reason or "").startswith(f"the contract cannot be used: {path}")
    too_long = project.check(module="a" * 300, functions=[RSI])
    assert "cannot be checked" in (too_long.reason or "")
    for result in (*(result for _, result in of_files), too_long):
        assert (result.verdict, fact(result).problem) == (Verdict.FAILED, "unreadable")


def test_contract_with_only_schemas_needs_its_module(project: Project) -> None:
    schemas = [{"type": "object"}]
    assert project.check(schemas=schemas).verdict is Verdict.FAILED
    assert project.source("", schemas=schemas).verdict is Verdict.PASSED


def test_each_contract_violation_is_separate_evidence_before_unresolved_ones(project: Project) -> None:
    promised = [{"name": name, "parameters": []} for name in "fghi"]
    result = project.source("def f(a): ...\ndef g(): ...\nh = 1", *promised)
    assert result.verdict is Verdict.FAILED
    facts = [evidence.contract for evidence in result.evidence]
    assert [(each.function, each.problem) for each in facts if each] == [
        ("f", "signature"),
        ("i", "missing_function"),
        ("h", "unresolved"),
    ]
    assert (result.reason or "").endswith("(and 2 more: i, h)")


def test_reason_of_a_signature_with_many_differences_is_one_line(project: Project) -> None:
    parameters = [{"name": f"parameter_number_{number}"} for number in range(60)]
    result = project.source("def f(): ...", {"name": "f", "parameters": parameters})
    assert "\n" not in (result.reason or "\n")
    assert "cut …" in (result.reason or "")
