"""Answers to manual questions, and metrics that tests record."""

from __future__ import annotations

import json
import math
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from module_project import write_files

from planner.model.plan import ManualSpec, MetricSpec, Operator
from planner.model.verdicts import Verdict
from planner.planfile.loader import load_plan_text
from pytest_planverify.checks.manual import check_manual, read_answers
from pytest_planverify.checks.metric import check_metric
from pytest_planverify.checks.result import Judgement

ANSWERS_FILE = ".planverify/answers.json"
QUESTION = "Does the chart look right?"
LOADED = load_plan_text("todo_list_id: p\nitems: [{id: t, title: T}]\n", Path("plan.yaml"))


def entry(**changes: Any) -> dict[str, Any]:
    usual = {"plan": "p", "todo_id": "t", "check_id": "manual[0]", "question": QUESTION}
    return {**usual, "answer": "yes", "by": "Ada", **changes}


def judge(root: Path) -> Judgement:
    """Judge the question by the answers file of the root, if there is one."""
    spec = ManualSpec(question=QUESTION)
    return check_manual(spec, LOADED, "t", "manual[0]", read_answers(root), alone=True)


def answered(root: Path, *entries: dict[str, Any]) -> Judgement:
    """Judge the question after these answers."""
    document = {"schema_version": 1, "answers": list(entries), "later": 1}
    write_files(root, {ANSWERS_FILE: json.dumps(document)})
    return judge(root)


@pytest.mark.parametrize(
    ("entries", "verdict"),
    [
        ([entry(), entry(answer="no")], Verdict.FAILED),
        ([entry(answer="no"), entry()], Verdict.PASSED),
        ([entry(), entry(question="Other?", answer="no")], Verdict.PASSED),
        ([entry(plan="q")], Verdict.NEEDS_HUMAN),
        ([entry(todo_id="u")], Verdict.NEEDS_HUMAN),
        ([entry(check_id="manual[1]")], Verdict.NEEDS_HUMAN),
    ],
    ids=["yes, no", "no, yes", "other question", "other plan", "other todo", "other check"],
)
def test_last_answer_to_the_question_of_the_check_counts(
    entries: list[dict[str, Any]], verdict: Verdict, tmp_path: Path
) -> None:
    assert answered(tmp_path, *entries).verdict is verdict


def test_answer_no_has_a_reason_and_evidence_and_one_to_a_reworded_question_is_stale(
    tmp_path: Path,
) -> None:
    result = answered(tmp_path, entry(answer="no", note="axis \x1b[31mwrong"))
    assert (result.verdict, result.reason) == (Verdict.FAILED, "Ada answered no: axis wrong")
    assert len(result.evidence) == 1
    reworded = answered(tmp_path, entry(question="Does it look right?"))
    assert reworded.verdict is Verdict.STALE
    assert "'Does it look right?'" in reworded.reason


def test_open_question_shows_the_command_to_answer_it(tmp_path: Path) -> None:
    for result in (judge(tmp_path), answered(tmp_path)):
        assert result.verdict is Verdict.NEEDS_HUMAN
        assert (result.reason or "").endswith(
            "answer: planverify answer plan.yaml t yes # or no, or a reason"
        )


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"schema_version": 2}',
        '{"answers": [{"plan": "p"}]}',
        json.dumps({"answers": [entry(answer="maybe")]}),
    ],
)
def test_invalid_answers_file_never_passes(tmp_path: Path, content: str) -> None:
    write_files(tmp_path, {ANSWERS_FILE: content})
    assert read_answers(tmp_path).problem is not None
    result = judge(tmp_path)
    assert result.verdict is Verdict.NEEDS_HUMAN
    assert (result.reason or "").startswith(f"{tmp_path / ANSWERS_FILE}: the answers file cannot be used")


def test_answers_file_that_is_a_folder_or_outside_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "root" / ANSWERS_FILE).mkdir(parents=True)
    assert "cannot be read" in (read_answers(tmp_path / "root").problem or "")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / ".planverify").symlink_to(tmp_path / "root" / ".planverify")
    assert "is outside of" in (read_answers(tmp_path / "link").problem or "")


REFERENCE = dict(zip((">=", ">", "<=", "<", "==", "!="), (ge, gt, le, lt, eq, ne), strict=True))


def spec(sign: str, value: float) -> MetricSpec:
    return MetricSpec(name="rows_min", operator=Operator(sign), value=value)


@given(
    st.sampled_from(sorted(REFERENCE)),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.lists(st.integers(-5, 5) | st.floats(-5, 5, width=16), min_size=1),
)
def test_every_recorded_value_must_satisfy_the_metric(
    sign: str, value: float, recorded: list[float]
) -> None:
    result = check_metric(spec(sign, value), recorded)
    assert (result.verdict is Verdict.PASSED) == all(REFERENCE[sign](each, value) for each in recorded)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True, False, "250", None, [1], 1j])
def test_only_finite_numbers_are_metric_values(value: object) -> None:
    result = check_metric(spec("!=", 7), [250, value], check_id="metrics[0]")
    assert result.verdict is Verdict.FAILED
    assert result.evidence[0].metric.problem == "not_a_number"
    assert result.evidence[0].metric.recorded == ("250", repr(value))


@pytest.mark.parametrize(
    ("sign", "value", "recorded", "problem", "reason"),
    [
        ("<=", 7, [], "not_recorded", "no test recorded rows_min"),
        (">=", 300, [400, 250], "unmet", "rows_min is 250, not >= 300 (1 of 2 recorded values)"),
        (">=", 300, [250], "unmet", "rows_min is 250, not >= 300"),
        ("==", 0.3, [0.1 + 0.2], "unmet", "rows_min is 0.30000000000000004, not == 0.3"),
        ("<", 1, [10**5_000], "unmet", "rows_min is a int that cannot be shown (ValueError), not < 1"),
    ],
    ids=["none", "one of two", "one", "floats", "huge"],
)
def test_unsatisfied_metric_is_reported_in_one_line(
    sign: str, value: float, recorded: list[float], problem: str, reason: str
) -> None:
    result = check_metric(spec(sign, value), recorded)
    assert (result.verdict, result.reason) == (Verdict.FAILED, reason)
    assert result.evidence[0].metric.problem == problem
