"""Both sides of a comparison are told apart, or nothing is said of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.brief.page import Comparison, compare, compare_headline
from planner.model.evidence import ArtifactFact, Evidence, ExceptionFact, Frame, MetricFact
from planner.model.verdicts import EvidenceKind, Side


@pytest.mark.parametrize(
    ("headline", "actual", "operator", "expected"),
    [
        ("AssertionError: assert 32.1 == 28.5 ± 0.1", "32.1", "==", "28.5 ± 0.1"),
        ("assert 'a == b' != 'c'", "'a == b'", "!=", "'c'"),
        (r"assert 'it\'s < x' < 3", r"'it\'s < x'", "<", "3"),
        ("assert f(a == b) is not None", "f(a == b)", "is not", "None"),
        ("assert 3 not in [1, 2]", "3", "not in", "[1, 2]"),
        ("assert {'a': 1} == {'a': 2}", "{'a': 1}", "==", "{'a': 2}"),
        ("AssertionError: too high (assert abs(3) <= 2)", "abs(3)", "<=", "2"),
        ("Expected: 201, but got 500", "500", None, "201"),
        ("AssertionError: expected a; found b", "b", None, "a"),
    ],
)
def test_both_sides_of_a_comparison_are_told_apart(
    headline: str, actual: str, operator: str | None, expected: str
) -> None:
    found = compare_headline(headline)
    assert found is not None
    assert (found.actual, found.operator, found.expected) == (actual, operator, expected)


@pytest.mark.parametrize(
    "headline",
    [
        "",
        "ValueError: a == b",
        "assert False",
        "assert 1 < 2 < 3",
        "assert  == 3",
        "assert f(1 == 2)",
        "TypeError: range expected at least 1 argument, got 0",
    ],
)
def test_where_the_sides_would_be_a_guess_there_is_no_comparison(headline: str) -> None:
    assert compare_headline(headline) is None


@given(st.text())
def test_any_headline_can_be_looked_at(headline: str) -> None:
    compare_headline(f"assert {headline}")


def test_facts_are_believed_before_the_headline() -> None:
    unmet = MetricFact(name="rows", operator=">=", expected=10, problem="not_recorded")
    headline = "assert 1 == 2"
    seen = compare(Evidence(kind=EvidenceKind.METRIC, metric=unmet, headline=headline))
    assert seen == Comparison("10", "nothing recorded", ">=")
    digest = ArtifactFact(path="a", problem="sha256", expected="00", actual=None)
    seen = compare(Evidence(kind=EvidenceKind.ARTIFACT, artifact=digest, headline=headline))
    assert seen == Comparison("00", "sha256")
    assert compare(None, headline) == Comparison("2", "1", "==")


@pytest.mark.parametrize(
    ("source", "headline", "expected"),
    [
        ("assert normalized == normalize(raw)", "assert 'a' == 'b'", Comparison("'a'", "'b'", "==")),
        ("assert 5 <= count(cart)", "assert 5 <= 3", Comparison("5", "3", ">=")),
        ("assert 'a' in out", "assert 'a' in 'b'", Comparison("'a'", "'b'", "containing")),
        ("assert normalize(raw) == normalized", "assert 'b' == 'a'", Comparison("'a'", "'b'", "==")),
    ],
)
def test_the_source_of_the_assertion_tells_which_side_is_expected(
    source: str, headline: str, expected: Comparison
) -> None:
    frame = Frame(path="test_a.py", line=3, function="test_a", side=Side.TEST, source=source)
    error = ExceptionFact(type="AssertionError", qualified="builtins.AssertionError", frames=(frame,))
    seen = Evidence(
        kind=EvidenceKind.TEST, exceptions=(error,), fixtures=("raw", "normalized"), headline=headline
    )
    assert compare(seen) == expected
