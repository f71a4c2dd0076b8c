"""The diagnosis hook: what a user's plugin says of a failure goes before the built-in rules."""

from __future__ import annotations

import json

import pytest

PLUGIN = """
from planner.model.outcome import Diagnosis

def pytest_planverify_diagnose(evidence):
    if "test_known" not in (evidence.nodeid or ""):
        return None
    return Diagnosis(category="ENVIRONMENT_ERROR", owner="environment", confidence=1, rule="ours",
                     because="the licence server is away", signature="licence", suggestion="start it")
"""


def test_a_plugin_may_diagnose_and_never_changes_a_verdict(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(ours=PLUGIN, test_x="def test_known(): assert 0\ndef test_other(): assert 1 == 2\n")
    tests = [{"cmd": "pytest test_x.py"}]
    item = {"id": "a", "title": "a", "acceptance_criteria": {"tests": tests}}
    pytester.path.joinpath("plan.yaml").write_text(json.dumps({"todo_list_id": "p", "items": [item]}))
    pytester.syspathinsert()

    result = pytester.runpytest_subprocess("-p", "pytest_planverify.plugin", "-p", "ours", "--planverify")

    assert result.ret == 1, result.stdout.str()
    (outcome,) = json.loads(pytester.path.joinpath(".planverify/outcomes.json").read_text())["outcomes"]
    rules = {failure["rule"]: failure for failure in outcome["failures"]}
    assert rules["ours"]["signature"] == "licence"
    assert rules["ours"]["tests"] == ["test_x.py::test_known"]
    assert len(rules) == 2
    assert outcome["failure_evidence"]["rule"] == "ours"
    assert outcome["state"] == "test_failed"
