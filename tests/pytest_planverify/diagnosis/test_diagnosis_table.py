"""The table of rules as a table: readable, ordered, total, and free of pytest."""

# ruff: noqa: E501 (sources and outputs are quoted on one line)
from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.model.evidence import (
    ArtifactFact,
    AuditEvent,
    BudgetFact,
    CommandFact,
    Confirmation,
    ContractFact,
    Evidence,
    ExceptionFact,
    Finding,
    Frame,
    HygieneSignal,
    MetricFact,
    ProcessEnd,
    Selector,
)
from planner.model.outcome import Diagnosis
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis import RULES, Hit, Rule, decision, diagnose

TEXTS = st.sampled_from(
    [
        "",
        "x",
        "NoneType",
        "<string>",
        "shop/cart.py",
        "tests/test_a.py",
        "No module named 'x'",
        "cannot import name 'a' from 'b'",
        "f() missing 1 required positional argument: 'a'",
        "builtins.TypeError",
        "builtins.ImportError",
        "builtins.SyntaxError",
        "_pytest.fixtures.FixtureLookupError",
        "builtins.AssertionError",
        "builtins.AttributeError",
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: x',
        "assert 1 == 2",
        "error: unrecognized arguments: --x",
    ]
) | st.text(max_size=20)
_BUILDERS = {str: TEXTS, float: st.floats(0.1, 100)}


def _evidence() -> st.SearchStrategy[Evidence]:
    st.register_type_strategy(str, TEXTS)
    try:
        for model in (
            Frame, ExceptionFact, Selector, ProcessEnd, Finding, CommandFact, ArtifactFact, MetricFact, ContractFact,
            Confirmation, HygieneSignal, AuditEvent, BudgetFact,
        ):  # fmt: skip
            model.model_rebuild()  # what hypothesis reads off a model must not change while it draws
            st.register_type_strategy(model, st.builds(model))
        Evidence.model_rebuild()
        return st.builds(Evidence, limit_seconds=st.none() | st.floats(0.1, 100))
    finally:
        st.register_type_strategy(str, st.text())


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(evidence=_evidence())
def test_every_evidence_gets_a_diagnosis_that_can_be_written(evidence: Evidence) -> None:
    diagnosis = diagnose(evidence)
    assert Diagnosis.model_validate_json(diagnosis.model_dump_json()) == diagnosis
    assert "could not read" not in diagnosis.because
    assert diagnosis.suggestion
    assert re.fullmatch(r"[0-9a-f]{12}", diagnosis.signature)


def test_ids_are_unique_and_kebab_case() -> None:
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in ids)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_gives_one_sentence_of_reason_and_a_fair_confidence(rule: Rule) -> None:
    assert rule.because.endswith(".")
    assert rule.because[0].isupper() or rule.because.startswith("pytest")
    assert 0 < rule.confidence < 1
    if rule.second:
        category, weight = rule.second
        assert category is not rule.category
        assert 0 < weight < rule.confidence


def test_only_the_last_rule_says_that_nothing_is_known() -> None:
    assert [rule.id for rule in RULES if rule.category is Category.UNKNOWN] == ["unknown"]
    assert diagnose(Evidence(kind="session")).category is Category.UNKNOWN


def test_a_rule_that_breaks_is_named_and_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(case: object) -> Hit:
        raise KeyError("x")

    broken = Rule("broken", Category.TEST_CRASH, 0.9, breaks, "It breaks.")
    monkeypatch.setattr(decision, "rules_for", lambda case: iter([(broken, case)]))
    diagnosis = diagnose(Evidence(kind="session", headline="odd"))
    assert (diagnosis.category, diagnosis.owner) == (Category.UNKNOWN, Owner.UNKNOWN)
    assert "broken (KeyError)" in diagnosis.because


def test_a_rule_that_is_not_sure_names_the_next_reading() -> None:
    unsure = next(rule for rule in RULES if rule.id == "red-without-a-failure")
    evidence = Evidence(kind="session", process=ProcessEnd(exit_code=1, complete=True))
    diagnosis = diagnose(evidence)
    assert diagnosis.rule == unsure.id
    assert diagnosis.runner_up is not None
    assert diagnosis.runner_up.category is Category.ENVIRONMENT_ERROR


def test_the_diagnosis_imports_no_pytest() -> None:
    code = "import sys, pytest_planverify.diagnosis; sys.exit('pytest' in sys.modules or '_pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
