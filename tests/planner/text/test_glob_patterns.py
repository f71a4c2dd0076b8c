"""Globs of a plan: which paths they name, and whether two of them can name the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.text.glob_patterns import allowed, globs_overlap, matches


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("src/a.py", "src/**", True),
        ("src/x/y/a.py", "src/**/a.py", True),
        ("src/a.py", "src/**/a.py", True),
        ("src/a.py", "src", True),
        ("src/a.py", "src/", True),
        ("srcs/a.py", "src", False),
        ("src/x/a.py", "src/*", True),
        ("src/x/a.py", "src/*.py", False),
        ("deep/in/a.py", "*.py", True),
        ("./src/a.py", "src/a.py", True),
        ("src/a.py", "src/[ab].py", True),
        ("src/a.py", "src/?.py", True),
        ("src/ab.py", "src/?.py", False),
        ("a.py", "**", True),
        ("a.py", ".", True),
        ("a+b.py", "a+b.py", True),
        ("aab.py", "a+b.py", False),
    ],
)
def test_globs_name_paths(path: str, pattern: str, expected: bool) -> None:
    assert matches(path, pattern) is expected


def test_later_patterns_take_out_and_put_in_again() -> None:
    assert allowed("src/a.py", ["src/**"])
    assert not allowed("src/a.py", ["src/**", "!src/a.py"])
    assert allowed("src/a.py", ["src/**", "!src/**", "src/a.py"])
    assert not allowed("src/a.py", [])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("src/**", "src/core/**", True),
        ("src/*.py", "src/test_*", True),
        ("src/*.py", "src/*.js", False),
        ("src/a/*.py", "lib/**", False),
        ("*.py", "src/a.py", True),
        ("**/secret", "src/**", True),
        ("a?c", "abc", True),
        ("a?c", "abd", False),
        ("a" + "/a" * 70, "b", False),
    ],
)
def test_whether_globs_can_meet(one: str, other: str, expected: bool) -> None:
    assert globs_overlap(one, other) is expected
    assert globs_overlap(other, one) is expected


_PARTS = st.sampled_from(["a", "b", "a*", "?", "**", "*", "[ab]"])


@given(st.lists(_PARTS, min_size=1, max_size=4), st.lists(st.sampled_from("ab"), min_size=1, max_size=4))
def test_a_path_that_both_globs_name_lets_them_meet(parts: list[str], names: list[str]) -> None:
    pattern, path = "/".join(parts), "/".join(names)
    if matches(path, pattern):
        assert globs_overlap(pattern, path)
