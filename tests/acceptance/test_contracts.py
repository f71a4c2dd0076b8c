"""Contracts end to end: how a broken one, and a call that one forbids, are reported.

What breaks a contract is tested in tests/pytest_planverify/checks and tests/planner/contracts.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from example_project import Example, Verified, todo

LISTING_IMPORTS = {"PYTHONPROFILEIMPORTTIME": "1"}

RSI = {"name": "compute_rsi", "parameters": [{"name": "series"}, {"name": "period", "default": "14"}]}
ATR = {"name": "compute_atr"}
GROWING = {"name": "Band", "methods": [{"name": "grow", "parameters": [{"name": "by"}]}]}
FILES = {
    "rsi.py": "def compute_rsi(series, period=14): return 0\nclass Band:\n    def grow(self, by): ...\n",
    "test_rsi.py": """
        import rsi

        def test_function(): rsi.compute_rsi([], window=3)

        def test_method(): rsi.Band().grow()
        """,
    "rsi.json": {"module": "rsi", "functions": [RSI], "classes": [GROWING]},
    "src/indicators/broken.py": """
        def compute_rsi(series, window=14): ...
        def compute_atrs(bars): ...
        raise SystemExit("a contract never imports the module")
        """,
    "broken.json": {"module": "indicators.broken", "functions": [RSI, ATR]},
}


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    """Return a run that lists the imported modules."""
    example = Example(tmp_path_factory.mktemp("contracts"))
    for name, content in FILES.items():
        is_text = isinstance(content, str)
        example.write({name: content if is_text else json.dumps({"contract_version": 1, **content})})
    example.plan(
        todo("broken", expected_artifacts=["plan.yaml"], contract_path="broken.json"),
        todo("called", "pytest test_rsi.py", contract_path="rsi.json"),
    )
    return example.verify("--planverify-confirm=0", env=LISTING_IMPORTS)


def imported(run: Verified) -> set[str]:
    lines = (line.rpartition("|")[2].strip() for line in run.output.splitlines())
    return {line.partition(".")[0] for line in lines}


def test_every_contract_mismatch_is_a_failure_with_both_signatures(verified: Verified) -> None:
    assert verified.category("broken") == "SPEC_MISMATCH", str(verified)
    failures = verified.outcomes["broken"]["failures"]
    assert [each["rule"] for each in failures] == ["contract-broken"] * 2
    rsi, atr = (each["suggestion"] for each in failures)
    assert rsi == (
        "compute_rsi (src/indicators/broken.py:2): it lacks the parameter period; "
        "it has the additional parameter window. "
        "broken.json promises compute_rsi(series, period=14), the code has compute_rsi(series, window=14)."
    )
    assert "does not define compute_atr, it defines compute_rsi, compute_atrs" in atr
    reason = verified.check("broken", "contract_path")["reason"]
    assert reason.startswith("compute_rsi: ")
    assert reason.endswith("(and 1 more: compute_atr)")


def test_griffe_is_imported_only_for_contracts(verified: Verified, tmp_path: Path) -> None:
    assert "griffe" in imported(verified)
    example = Example(tmp_path)
    example.plan(todo("t", expected_artifacts=["plan.yaml"]))

    run = example.verify(env=LISTING_IMPORTS)

    assert run.exit_code == 0, str(run)
    assert "griffe" not in imported(run)


def test_a_wrong_call_is_diagnosed_with_the_signature_of_the_contract(verified: Verified) -> None:
    assert verified.category("called") == "SPEC_MISMATCH", str(verified)
    assert verified.check("called", "contract_path")["verdict"] == "passed"
    said = " ".join(each["suggestion"] for each in verified.outcomes["called"]["failures"])
    assert "rsi.json promises compute_rsi(series, period=14)." in said
    assert "rsi.json promises Band.grow(by)." in said
