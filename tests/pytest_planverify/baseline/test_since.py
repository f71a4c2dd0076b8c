"""Since when a failure exists, by its result now and at the baseline."""

import pytest

from planner.model.baseline import BaselineCheck
from planner.model.evidence import CommandFact, Finding
from planner.model.verdicts import CheckAtBase, TestOutcome, Verdict
from pytest_planverify.baseline.comparison import check_at_base, since_of, since_of_check
from pytest_planverify.baseline.kept_baseline import Standing
from pytest_planverify.diagnosis.signatures import count_findings

PASSED, FAILED = ("passed", "xpassed"), ("failed", "error", "timeout", "crashed")
TABLE = [
    (FAILED, ("green", "skipped", "expected", "absent"), "new"),
    (FAILED, ("red",), "pre_existing"),
    (FAILED, ("unknown",), "unknown"),
    (PASSED, ("green", "skipped", "absent", "unknown"), "unknown"),
    (PASSED, ("red", "expected"), "fixed"),
    ((*FAILED, *PASSED), ("flaky",), "flaky_at_base"),
    (("skipped", "xfailed", "not_run"), ("green", "red", "flaky", "absent"), "unknown"),
]


@pytest.mark.parametrize(("nows", "thens", "since"), TABLE)
def test_since_follows_from_the_result_now_and_at_the_baseline(
    nows: tuple[str, ...], thens: tuple[Standing, ...], since: str
):
    assert {since_of(TestOutcome(now), then) for now in nows for then in thens} == {since}


@pytest.mark.parametrize(
    ("verdict", "signature", "since"),
    [
        ("passed", "abc", "new"),
        ("failed", "abc", "pre_existing"),
        ("failed", "other", "new"),
        ("failed", None, "new"),
        ("flaky", "abc", "flaky_at_base"),
        ("inconclusive", "abc", "pre_existing"),
        ("inconclusive", "other", "unknown"),
        ("not_run", None, "unknown"),
        (None, "abc", "unknown"),
    ],
)
def test_a_failure_without_tests_is_compared_by_check_verdict_and_signature(
    verdict: str | None, signature: str | None, since: str
):
    signatures = () if verdict in ("passed", "not_run") else ("abc",)
    then = None if verdict is None else BaselineCheck(verdict=Verdict(verdict), signatures=signatures)
    assert since_of_check(then, signature) == since


@pytest.mark.parametrize(
    ("now", "since"),
    [
        ([("a.py", "'os' imported but unused")], "pre_existing"),
        ([("a.py", "'os' imported but unused")] * 2, "pre_existing"),
        ([("a.py", "'os' imported but unused")] * 3, "new"),
        ([("b.py", "'os' imported but unused")], "new"),
        ([("a.py", "line too long (90 > 79)")], "pre_existing"),
        ([], "new"),
    ],
)
def test_findings_of_a_tool_are_new_unless_the_baseline_has_each_of_them_in_its_file(
    now: list[tuple[str, str]], since: str
):
    def command(findings: list[tuple[str, str]]) -> CommandFact:
        made = tuple(Finding(path=path, line=at, message=text) for at, (path, text) in enumerate(findings))
        return CommandFact(argv=("ruff", "check"), tool="ruff", purpose="lint", findings=made)

    old = [("a.py", "'os' imported but unused"), ("a.py", "'re' imported but unused")]
    known = count_findings(command([*old, ("a.py", "line too long (80 > 79)")]))
    then = BaselineCheck(verdict=Verdict.FAILED, signatures=("abc",), findings=dict(known))
    assert since_of_check(then, "other", command(now)) == since


@pytest.mark.parametrize(
    ("verdict", "known", "worth"),
    [
        ("failed", ["red", "red", "absent"], "red"),
        ("failed", ["red", "green"], "mixed"),
        ("failed", ["red", "skipped"], "red"),
        ("failed", ["red", "skipped", "green"], "mixed"),
        ("failed", ["skipped", "expected"], "red"),
        ("failed", ["red", "flaky"], "mixed"),
        ("failed", ["flaky"], "mixed"),
        ("passed", ["green", "skipped", "expected"], "green"),
        ("failed", ["unknown"], "red"),
        ("passed", [], "green"),
        ("flaky", [], "mixed"),
        ("inconclusive", [], None),
        (None, [], None),
        (None, ["red"], "red"),
    ],
)
def test_a_check_is_red_at_the_baseline_if_it_failed_and_none_of_its_tests_passed(
    verdict: str | None, known: list[Standing], worth: str | None
):
    then = None if verdict is None else BaselineCheck(verdict=Verdict(verdict))
    assert check_at_base(then, known) == (None if worth is None else CheckAtBase(worth))
