"""How results compare with the baseline, row by row of the table in docs/baseline.md."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.baseline import BaselineCheck, BaselineTest
from planner.model.verdicts import CheckAtBase, Since, TestOutcome, Verdict
from planner.policy.since import check_at_base, since_of, since_of_check, since_of_tests

ABSENT, MAYBE, FLAKY = "absent", "maybe", "flaky"

TABLE = {
    "failed": {
        "passed": "new",
        "xpassed": "new",
        "skipped": "new",
        "xfailed": "new",
        "failed": "pre_existing",
        "error": "pre_existing",
        "timeout": "pre_existing",
        "crashed": "pre_existing",
        FLAKY: "flaky_at_base",
        ABSENT: "new",
        MAYBE: "unknown",
    },
    "passed": {
        "passed": "unknown",
        "skipped": "unknown",
        "failed": "fixed",
        "crashed": "fixed",
        "xfailed": "fixed",
        FLAKY: "flaky_at_base",
        ABSENT: "unknown",
        MAYBE: "unknown",
    },
    "skipped": {"passed": "unknown", "failed": "unknown", FLAKY: "unknown", ABSENT: "unknown"},
    "xfailed": {"passed": "unknown", "failed": "unknown"},
    "not_run": {"passed": "unknown", "failed": "unknown", ABSENT: "unknown"},
}
ROWS = [(now, then, since) for now, row in TABLE.items() for then, since in row.items()]

outcomes = st.sampled_from(TestOutcome)
tests = st.builds(BaselineTest, outcome=outcomes, flaky=st.booleans())


def at_base(then: str) -> BaselineTest | None:
    if then in (ABSENT, MAYBE):
        return None
    return BaselineTest(outcome=TestOutcome("failed" if then == FLAKY else then), flaky=then == FLAKY)


@pytest.mark.parametrize(("now", "then", "since"), ROWS)
def test_a_result_compares_with_the_baseline_by_the_table(now: str, then: str, since: str) -> None:
    found = since_of(TestOutcome(now), at_base(then), may_have_been_there=then == MAYBE)
    assert found == since


@given(outcomes, st.none() | tests, st.booleans())
def test_only_a_red_is_new_and_only_a_green_is_fixed(
    now: TestOutcome, then: BaselineTest | None, maybe: bool
) -> None:
    since = since_of(now, then, may_have_been_there=maybe)
    if since in (Since.NEW, Since.PRE_EXISTING):
        assert now.is_red
    if since is Since.FIXED:
        assert now in (TestOutcome.PASSED, TestOutcome.XPASSED)
    if since is Since.PRE_EXISTING:
        assert then is not None
        assert then.outcome.is_red
    if now.is_red and then is not None and then.outcome in (TestOutcome.PASSED, TestOutcome.XPASSED):
        assert since is (Since.FLAKY_AT_BASE if then.flaky else Since.NEW)


@pytest.mark.parametrize(
    ("sinces", "since"),
    [
        ({Since.NEW, Since.PRE_EXISTING}, Since.NEW),
        ({Since.UNKNOWN, Since.PRE_EXISTING}, Since.UNKNOWN),
        ({Since.PRE_EXISTING, Since.FLAKY_AT_BASE}, Since.PRE_EXISTING),
        ({Since.FLAKY_AT_BASE}, Since.FLAKY_AT_BASE),
        (set(), Since.UNKNOWN),
    ],
)
def test_one_new_test_makes_a_failure_new(sinces: set[Since], since: Since) -> None:
    assert since_of_tests(sinces) is since


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
def test_a_failure_without_tests_compares_by_the_verdict_and_signature_of_its_check(
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
def test_a_check_was_red_only_where_nothing_of_it_held(
    verdict: str | None, known: list[str], worth: str | None
) -> None:
    then = None if verdict is None else BaselineCheck(verdict=Verdict(verdict))
    ran = [test for name in known if (test := at_base(name)) is not None]
    assert check_at_base(then, ran) == (None if worth is None else CheckAtBase(worth))
