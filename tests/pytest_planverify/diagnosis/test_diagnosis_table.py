"""The table of diagnosis rules: readable, ordered and total."""

import inspect
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from planner.model import evidence as models
from planner.model.evidence import Evidence, ProcessEnd
from planner.model.outcome import Diagnosis
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis import RULES, Hit, Rule, decision, diagnose
from pytest_planverify.diagnosis.decision import FILE, calibrated, fit_of, on_curve
from pytest_planverify.diagnosis.rules import behaviour, commands, criteria, imports, machine, processes

TEXTS = st.sampled_from(
    [
        "",
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
MODELS = [
    each
    for each in vars(models).values()
    if isinstance(each, type) and issubclass(each, BaseModel) and each.__module__ == models.__name__
]


def _evidence() -> st.SearchStrategy[Evidence]:
    st.register_type_strategy(str, TEXTS)
    try:
        for model in MODELS:
            model.model_rebuild()  # models must not change while hypothesis draws
            st.register_type_strategy(model, st.builds(model))
        return st.builds(Evidence, limit_seconds=st.none() | st.floats(0.1, 100))
    finally:
        st.register_type_strategy(str, st.text())


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(evidence=_evidence())
def test_every_evidence_gets_a_serialisable_diagnosis(evidence: Evidence):
    diagnosis = diagnose(evidence)
    assert Diagnosis.model_validate_json(diagnosis.model_dump_json()) == diagnosis
    assert "could not read" not in diagnosis.because
    assert diagnosis.suggestion
    assert re.fullmatch(r"[0-9a-f]{12}", diagnosis.signature)


def test_rules_are_well_formed_and_only_the_last_one_is_unknown():
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in ids)
    assert [rule.id for rule in RULES if rule.second is rule.category or not 0 < rule.confidence < 1] == []
    assert [rule.id for rule in RULES if rule.category is Category.UNKNOWN] == ["unknown"]
    assert diagnose(Evidence(kind="session")).category is Category.UNKNOWN


def test_every_reader_has_a_row_and_every_key_of_a_row_is_read():
    tables = tomllib.loads(FILE.with_name("rules.toml").read_text(encoding="utf-8"))
    keys = {key for rows in tables.values() for row in rows.values() for key in row}
    assert keys <= {
        *("category", "owner", "confidence", "second", "types", "facts", "because"),
        *("finding", "purpose", "marks", "pattern", "suggestion"),
    }
    readers = {rule.read for rule in RULES}
    for module in (behaviour, commands, criteria, imports, machine, processes):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            is_own = function.__module__ == module.__name__ and not name.startswith("_")
            if is_own and [*inspect.signature(function).parameters] == ["case"]:
                is_reader = function.__annotations__["return"] != "bool"
                assert (function in readers) is is_reader, f"rules.toml has no row for {name}"


def test_failing_rule_is_named_and_skipped(monkeypatch: pytest.MonkeyPatch):
    def breaks(case: object) -> Hit:
        raise KeyError("x")

    broken = Rule("broken", Category.TEST_CRASH, 0.9, breaks, "It breaks.")
    monkeypatch.setattr(decision, "rules_for", lambda case: iter([((broken,), case)]))
    diagnosis = diagnose(Evidence(kind="session", headline="odd"))
    assert (diagnosis.category, diagnosis.owner) == (Category.UNKNOWN, Owner.UNKNOWN)
    assert "broken (KeyError)" in diagnosis.because


def test_uncertain_rule_names_a_runner_up():
    diagnosis = diagnose(Evidence(kind="session", process=ProcessEnd(exit_code=1, complete=True)))
    assert diagnosis.rule == "red-without-a-failure"
    assert diagnosis.runner_up is not None
    assert diagnosis.runner_up.category is Category.ENVIRONMENT_ERROR


RAW = st.floats(-0.5, 1.5)


@given(st.sampled_from([*(rule.id for rule in RULES), "a-rule-of-a-plugin"]), RAW, RAW)
def test_calibrated_confidence_is_monotonic(rule: str, left: float, right: float):
    low, high = sorted((left, right))
    assert 0 <= calibrated(rule, low) <= calibrated(rule, high) + 1e-12 <= 1 + 1e-12


def test_confidence_of_an_uncalibrated_rule_is_averaged_with_the_curve_constant_beyond_its_ends():
    curve = fit_of(json.loads(FILE.read_text())).curve
    assert calibrated("a-rule-of-a-plugin", 0.8) == pytest.approx((0.8 + on_curve(curve, 0.8)) / 2)
    ends = [on_curve(((0.2, 0.6), (0.1, 0.9)), score) for score in (0.0, 0.2, 0.4, 0.6, 1.0)]
    assert ends == pytest.approx([0.1, 0.1, 0.5, 0.9, 0.9])


RECORDINGS_FILE = Path(__file__).parents[3] / "fixtures/evidence.jsonl"
RECORDINGS: list[dict[str, Any]] = [
    json.loads(line) for line in RECORDINGS_FILE.read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording["name"])
def test_recorded_evidence_keeps_its_diagnosis(recording: dict[str, Any]):
    expected = recording["expected"]
    diagnosis = diagnose(Evidence.model_validate(recording["evidence"]))
    found = {"category": diagnosis.category, "owner": diagnosis.owner, "rule": diagnosis.rule}
    assert found == {name: expected[name] for name in found}
    if expected["path"]:
        assert diagnosis.location is not None
        assert diagnosis.location.path == expected["path"]
