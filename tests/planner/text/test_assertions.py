"""The expected value of an assertion is told by its source, where that can be told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.text.assertions import is_expected_first

GIVEN = ("raw", "normalized")


@pytest.mark.parametrize(
    ("source", "operator"),
    [
        ("assert 3 == total(cart)", "=="),
        ("assert normalized == normalize(raw)", "=="),
        ("assert normalized == normalize(  # and so on in the next line", "=="),
        ("assert expected_total == result", "=="),
        ('assert {"a": [1, -2]} == result.data', "=="),
        ("assert Point(1, y=2) == move(p)", "=="),
        ("assert pytest.approx(2.5) == mean(values)", "=="),
        ("assert 5 <= count(cart)", "<="),
        ("self.assertEqual(3, total(cart))", "=="),
        ('self.assertEqual("a", result, "not equal")', "=="),
        ('assert "usage" in out', "in"),
        ("assert name not in text.splitlines()", "not in"),
        ('assert f"{raw}!" == shout(raw)', "=="),
    ],
)
def test_the_expected_value_stands_in_front(source: str, operator: str) -> None:
    assert is_expected_first(source, GIVEN, operator)


@pytest.mark.parametrize(
    ("source", "operator"),
    [
        ("assert total(cart) == 3", "=="),
        ("assert result == normalized", "=="),
        ("assert result == other", "=="),
        ("assert normalize(raw) == normalized", "=="),
        ("assert normalized == raw", "=="),
        ("assert result == Point(1, 2)", "=="),
        ("assert f(3 == x) == 3", "=="),
        ("self.assertEqual(total(cart), 3)", "=="),
        ("self.assertTrue(total(cart))", "=="),
        ("assert status(page) in (200, 204)", "in"),
        ("assert word in ('a', 'b')", "in"),
        ("assert find(text) in text", "in"),
        ("raise ValueError(text)", "=="),
        ("assert total(cart)", "=="),
    ],
)
def test_by_custom_the_expected_value_stands_behind(source: str, operator: str) -> None:
    assert not is_expected_first(source, GIVEN, operator)


@given(st.text(), st.sampled_from(["==", "in"]))
def test_any_source_can_be_looked_at(text: str, operator: str) -> None:
    is_expected_first(f"assert {text} == {text}", (), operator)
    is_expected_first(f"self.assertEqual({text}, 3)", (), operator)
