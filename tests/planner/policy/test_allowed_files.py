"""Allowlists: when a new one is wider, by the meaning of globs in the reference of the plan file."""

from __future__ import annotations

import pytest

from planner.policy.allowed_files import widened_by, without_covered


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("src", "src/a.py"),
        ("src/", "src"),
        ("src/*", "src/a/b.py"),
        ("*.md", "docs/index.md"),
        ("**/a.py", "a.py"),
        (".", "src/**"),
    ],
)
def test_an_allowlist_may_be_narrowed_to_files_that_its_globs_match(old: str, new: str) -> None:
    assert widened_by((old,), (new,)) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [("src/*.py", "src"), ("src", "src/../lib"), ("?", "."), ("src/**/a.py", "src/**"), ("ab*", "a*")],
)
def test_a_glob_that_may_match_other_files_widens_an_allowlist(old: str, new: str) -> None:
    assert widened_by((old,), (new,)) == new


def test_of_globs_that_match_the_same_files_one_is_kept() -> None:
    assert without_covered(("src/a.py", "src", "src/", "lib/b.py")) == ("src", "lib/b.py")
