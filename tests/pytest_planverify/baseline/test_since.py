"""Since when a failure exists, by its result now and at the baseline."""

from __future__ import annotations

import pytest

from planner.model.baseline import BaselineCheck, BaselineTest
from planner.model.verdicts import CheckAtBase, TestOutcome, Verdict
from pytest_planverify.baseline.comparison import check_at_base, since_of, since_of_check

ABSENT, MAYBE, FLAKY = "absent", "maybe", "flaky"

PASSED, FAILED = ("passed", "xpassed"), ("failed", "error", "timeout", "crashed")
LEFT_OUT = ("skipped", "xfailed")
TABLE = [
    (FAILED, (*PASSED, *LEFT_OUT, ABSENT), "new"),
    (FAILED, FAILED, "pre_existing"),
    (FAILED, (MAYBE,), "unknown"),
    (PASSED, (*PASSED, "skipped", ABSENT, MAYBE), "unknown"),
    (PASSED, (*FAILED, "xfailed"), "fixed"),
    ((*FAILED, *PASSED), (FLAKY,), "flaky_at_base"),
    ((*LEFT_OUT, "not_run"), (*PASSED, *FAILED, FLAKY, ABSENT), "unknown"),
]
ROWS = [(now, then, since) for nows, thens, since in TABLE for now in nows for then in thens]


def at_base(then: str) -> BaselineTest | None:
    if then in (ABSENT, MAYBE):
        return None
    return BaselineTest(outcome=TestOutcome("failed" if then == FLAKY else then), flaky=then == FLAKY)


@pytest.mark.parametrize(("now", "then", "since"), ROWS)
def test_since_follows_from_the_result_now_and_at_the_baseline(now: str, then: str, since: str) -> None:
    found = since_of(TestOutcome(now), at_base(then), may_have_been_there=then == MAYBE)
    assert found == since


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
) -> None:
    signatures = () if verdict in ("passed", "not_run") else ("abc",)
    then = None if verdict is None else BaselineCheck(verdict=Verdict(verdict), signatures=signatures)
    assert since_of_check(then, signature) == since


@pytest.mark.parametrize(
    ("verdict", "known", "worth"),
    [
        ("failed", ["failed", "error"], "red"),
        ("failed", ["failed", "passed"], "mixed"),
        ("failed", ["failed", "skipped"], "mixed"),
        ("failed", ["failed", FLAKY], "mixed"),
        ("passed", ["passed", "skipped"], "green"),
        ("failed", [], "red"),
        ("passed", [], "green"),
        ("flaky", [], "mixed"),
        ("inconclusive", [], None),
        (None, [], None),
        (None, ["failed"], "red"),
    ],
)
def test_a_check_is_red_at_the_baseline_only_if_all_its_tests_were_red(
    verdict: str | None, known: list[str], worth: str | None
) -> None:
    then = None if verdict is None else BaselineCheck(verdict=Verdict(verdict))
    ran = [test for name in known if (test := at_base(name)) is not None]
    assert check_at_base(then, ran) == (None if worth is None else CheckAtBase(worth))
