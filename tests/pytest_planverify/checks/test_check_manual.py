"""Answers to manual questions, and metrics that tests record."""

from __future__ import annotations

import json
import math
import operator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    usual = {
        "plan": "p",
        "todo_id": "t",
        "check_id": "manual[0]",
        "question": QUESTION,
        "answer": "yes",
        "by": "Ada",
    }
    return {**usual, **changes}


def ask(root: Path, *entries: dict[str, Any], question: str = QUESTION) -> Judgement:
    file = root / ANSWERS_FILE
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"schema_version": 1, "answers": list(entries), "later": 1}))
    answers = read_answers(root)
    return check_manual(ManualSpec(question=question), LOADED, "t", "manual[0]", answers, alone=True)


def test_manual_answer_yes_passes_and_no_fails(tmp_path: Path) -> None:
    assert ask(tmp_path, entry()).verdict is Verdict.PASSED
    result = ask(tmp_path, entry(answer="no", note="axis \x1b[31mwrong"))
    assert (result.verdict, result.reason) == (Verdict.FAILED, "Ada answered no: axis wrong")
    assert len(result.evidence) == 1


def test_last_manual_answer_counts(tmp_path: Path) -> None:
    assert ask(tmp_path, entry(), entry(answer="no")).verdict is Verdict.FAILED
    assert ask(tmp_path, entry(answer="no"), entry()).verdict is Verdict.PASSED
    assert ask(tmp_path, entry(), entry(question="Other?", answer="no")).verdict is Verdict.PASSED


def test_answer_to_a_reworded_question_is_stale(tmp_path: Path) -> None:
    result = ask(tmp_path, entry(question="Does it look right?"))
    assert result.verdict is Verdict.STALE
    assert "'Does it look right?'" in (result.reason or "")


@pytest.mark.parametrize("changes", [{"plan": "q"}, {"todo_id": "u"}, {"check_id": "manual[1]"}])
def test_answer_to_another_check_is_ignored(tmp_path: Path, changes: dict[str, str]) -> None:
    assert ask(tmp_path, entry(**changes)).verdict is Verdict.NEEDS_HUMAN


def test_open_question_shows_the_command_to_answer_it(tmp_path: Path) -> None:
    spec = ManualSpec(question=QUESTION)
    without = check_manual(spec, LOADED, "t", "manual[0]", read_answers(tmp_path), alone=True)
    for result in (without, ask(tmp_path)):
        assert result.verdict is Verdict.NEEDS_HUMAN
        assert (result.reason or "").endswith("answer: planner answer plan.yaml t yes # or no, or a reason")


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"schema_version": 2}',
        '{"answers": [{"plan": "p"}]}',
        json.dumps({"answers": [entry(answer="maybe")]}),
        json.dumps({"answers": [entry(by="")]}),
        json.dumps({"answers": [entry(answer=True)]}),
    ],
)
def test_invalid_answers_file_never_passes(tmp_path: Path, content: str) -> None:
    (tmp_path / ".planverify").mkdir()
    (tmp_path / ANSWERS_FILE).write_text(content)
    answers = read_answers(tmp_path)
    assert answers.problem is not None
    result = check_manual(ManualSpec(question=QUESTION), LOADED, "t", "manual[0]", answers, alone=True)
    assert result.verdict is Verdict.NEEDS_HUMAN
    assert (result.reason or "").startswith(f"{tmp_path / ANSWERS_FILE}: the answers file cannot be used")


def test_answers_file_that_is_a_folder_or_outside_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "root" / ANSWERS_FILE).mkdir(parents=True)
    assert "cannot be read" in (read_answers(tmp_path / "root").problem or "")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / ".planverify").symlink_to(tmp_path / "root" / ".planverify")
    assert "is outside of" in (read_answers(tmp_path / "link").problem or "")


REFERENCE = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}


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
    assert result.evidence[0].metric is not None
    assert result.evidence[0].metric.problem == "not_a_number"
    assert result.evidence[0].metric.recorded == ("250", repr(value))


def test_unrecorded_metric_fails() -> None:
    result = check_metric(spec("<=", 7), [])
    assert (result.verdict, result.reason) == (Verdict.FAILED, "no test recorded rows_min")
    assert result.evidence[0].metric is not None
    assert result.evidence[0].metric.problem == "not_recorded"


def test_unmet_metric_is_reported_in_one_line() -> None:
    result = check_metric(spec(">=", 300), [400, 250])
    assert result.reason == "rows_min is 250, not >= 300 (1 of 2 recorded values)"
    assert check_metric(spec(">=", 300), [250]).reason == "rows_min is 250, not >= 300"


def test_floats_are_compared_exactly() -> None:
    assert check_metric(spec("==", 0.3), [0.1 + 0.2]).verdict is Verdict.FAILED
    assert check_metric(spec("==", 0.3), [0.3]).verdict is Verdict.PASSED


def test_huge_integers_are_compared_and_displayed() -> None:
    assert check_metric(spec(">=", 1), [10**400]).verdict is Verdict.PASSED
    result = check_metric(spec("<", 1), [10**5_000])
    assert result.verdict is Verdict.FAILED
    assert "cannot be shown" in (result.reason or "")
