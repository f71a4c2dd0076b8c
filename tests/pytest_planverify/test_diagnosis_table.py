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
from pytest_planverify.diagnosis import RULES, Hit, Rule, diagnose
from pytest_planverify.diagnosis.deciding import diagnose_by, judge, rules_of

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


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(evidence=_evidence())
def test_sections_leave_out_no_rule_that_would_have_spoken(evidence: Evidence) -> None:
    assert judge(evidence).rule.id == diagnose_by(RULES, evidence).rule


def test_a_rule_that_is_not_sure_names_the_next_reading() -> None:
    def rule(name: str, category: Category, confidence: float) -> Rule:
        return Rule(
            id=name,
            because="So.",
            category=category,
            confidence=confidence,
            read=lambda case: Hit(suggestion="x"),
        )

    unsure, same = rule("unsure", Category.TYPE_ERROR, 0.6), rule("same", Category.TYPE_ERROR, 0.9)
    other, sure = rule("other", Category.SPEC_MISMATCH, 0.3), rule("sure", Category.TYPE_ERROR, 0.99)
    evidence = Evidence(kind="session")

    second = diagnose_by((unsure, same, other), evidence).runner_up
    assert second is not None
    assert (second.category, second.confidence) == (Category.SPEC_MISMATCH, 0.3)
    assert diagnose_by((unsure, same, RULES[-1]), evidence).runner_up is None, (
        "that nothing is known is no reading"
    )
    assert diagnose_by((sure, other), evidence).runner_up is None


def test_ids_are_unique_and_kebab_case() -> None:
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in ids)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_gives_one_sentence_of_reason_and_a_fair_confidence(rule: Rule) -> None:
    assert rule.because.endswith(".")
    assert rule.because[0].isupper() or rule.because.startswith("pytest")
    assert 0 < rule.confidence < 1
    if rule.runner_up:
        category, weight = rule.runner_up
        assert category is not rule.category
        assert 0 < weight < rule.confidence


def test_only_the_last_rule_says_that_nothing_is_known() -> None:
    assert rules_of(Category.UNKNOWN) == (RULES[-1],)
    assert diagnose(Evidence(kind="session")).category is Category.UNKNOWN


def test_a_rule_that_breaks_is_named_and_passed_over() -> None:
    def breaks(case: object) -> Hit:
        raise KeyError("x")

    broken = Rule(
        id="broken", because="It breaks.", category=Category.TEST_CRASH, confidence=0.9, read=breaks
    )
    diagnosis = diagnose_by((broken, *RULES), Evidence(kind="session", headline="odd"))
    assert diagnosis.category is Category.UNKNOWN
    assert "broken (KeyError)" in diagnosis.because
    assert diagnose_by((), Evidence(kind="session")).owner is Owner.UNKNOWN


def test_the_diagnosis_imports_no_pytest() -> None:
    code = "import sys, pytest_planverify.diagnosis; sys.exit('pytest' in sys.modules or '_pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
