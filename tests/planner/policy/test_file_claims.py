"""Which files a todo may write, and which two todos may write the same."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.plan import Todo
from planner.policy.allowed_files import claimed_files, claims_overlap, grants_of
from planner.text.glob_patterns import allowed, globs_overlap, literal_prefix, matches

PARTS = st.sampled_from(
    [
        *("a", "b", "ab", "a.py", "b.py", "*", "**", "*.py", "a*", "?", "a?", "[ab]", "a[.]py", "[", "*b*"),
        "n" * 300,
    ]
)
GLOBS = st.lists(PARTS, min_size=1, max_size=4).map("/".join) | st.sampled_from(
    [".", "./a//b/", "a/", "**/a.py", "/".join("a" * 70)]
)
LISTS = st.lists(st.builds(str.__add__, st.sampled_from(["", "", "", "!"]), GLOBS), max_size=4)


def a_todo(**keys: Any) -> Todo:
    return Todo.model_validate({"id": "t1", "title": "A todo", **keys})


NAMES = ("a", "b", "c", "ab", "ba", "aa", "!", "[", "[]")
SHORT_PATHS = ["/".join(names) for size in (1, 2, 3, 4) for names in product(NAMES, repeat=size)]
PIECES = ["**", "a", "b", "*", "?", "a*", "*b", "??", "[ab]", "[!a]", "[b-z]", "[!!]", "a[b]", "[]", "["]
SHORT_GLOBS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=2).map("/".join)


@settings(max_examples=60, deadline=None)
@given(one=SHORT_GLOBS, other=SHORT_GLOBS)
def test_globs_overlap_wherever_a_short_path_is_named_by_both(one: str, other: str) -> None:
    both = (path for path in SHORT_PATHS if matches(path, one) and matches(path, other))
    assert globs_overlap(one, other) or next(both, None) is None


@pytest.mark.parametrize("alphabet", [("a", "b", "*"), ("a", "?", "*"), ("[ab]", "[!a]", "*", "b")])
def test_two_names_with_wildcards_overlap_wherever_a_name_fits_both(alphabet: tuple[str, ...]) -> None:
    names = ["".join(letters) for size in range(1, 7) for letters in product("abc", repeat=size)]
    parts = ["".join(tokens) for size in (1, 2, 3) for tokens in product(alphabet, repeat=size)]
    fits = {part: {name for name in names if matches(f"x/{name}", f"x/{part}")} for part in parts}
    for one, other in product(parts, repeat=2):
        assert globs_overlap(f"x/{one}", f"x/{other}") or not fits[one] & fits[other], (one, other)


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("[ab]", "ab"),
        ("[!ab]", "cz0-!^]"),
        ("[a-c]", "abc"),
        ("[c-a]", ""),
        ("[!c-a]", "abcz0-!^]"),
        ("[]a]", "a]"),
        ("[!]]", "abcz0-!^"),
        ("[a-]", "a-"),
        ("[.-0]", "0"),
        ("[^a]", "a^"),
    ],
)
def test_a_class_names_the_characters_that_it_holds(part: str, names: str) -> None:
    glob = f"x/{part}"
    for each in "abcz0-!^]":
        assert matches(f"x/{each}", glob) is (each in names)
        assert globs_overlap(f"x/{each}", glob) is (each in names)
    assert not matches("x/a/y", f"x/a{part}y")
    assert not matches("x/ab", glob)


@given(one=GLOBS, other=GLOBS)
def test_of_two_globs_that_overlap_one_prefix_begins_with_the_other(one: str, other: str) -> None:
    first, second = literal_prefix(one), literal_prefix(other)
    if globs_overlap(one, other):
        assert first.startswith(second) or second.startswith(first)


@given(one=LISTS, other=LISTS, path=st.lists(PARTS, min_size=1, max_size=4).map("/".join))
def test_a_path_that_both_may_write_makes_a_conflict(one: list[str], other: list[str], path: str) -> None:
    if allowed(path, one) and allowed(path, other):
        assert claims_overlap(tuple(one), tuple(other))


@pytest.mark.parametrize(
    ("one", "other", "collide"),
    [
        (["src/**"], ["src/a.py"], True),
        (["src/**", "!src/a.py"], ["src/a.py"], False),
        (["src/**", "!src/tests/**"], ["src/tests/*.py"], False),
        (["src/**", "!src/tests"], ["src/tests/a/b.py"], False),
        (["**", "!src/"], ["src/**/a.py"], False),
        (["!src/a.py", "src/**"], ["src/a.py"], True),
        (["src/**", "!src/a.py", "src/*.py"], ["src/a.py"], True),
        (["src/**", "!src/*.md"], ["src/*"], True),
        (["src/*.py"], ["src/a.py", "!src/a.py"], False),
        (["src/**", "!docs/**"], ["src/**", "!src/a.py"], True),
        ([], ["**"], False),
        (["!**"], ["**"], False),
        (["a.py"], ["a.py/b.py"], True),
    ],
)
def test_what_a_list_takes_out_again_is_nobodys_conflict(
    one: list[str], other: list[str], collide: bool
) -> None:
    assert claims_overlap(tuple(one), tuple(other)) is collide
    assert claims_overlap(tuple(other), tuple(one)) is collide


def test_only_exclusions_that_can_take_something_out_are_kept() -> None:
    grants = grants_of(("src/**", "CHANGELOG.md", "!src/a.py", "!CHANGELOG.md", "CHANGELOG.md", "!src/b"))
    assert [(each.pattern, each.without) for each in grants] == [
        ("src/**", ("src/a.py", "src/b")),
        ("CHANGELOG.md", ()),
    ]


@pytest.mark.parametrize(
    ("keys", "files"),
    [
        ({}, ()),
        ({"allowed_files": []}, ()),
        ({"allowed_files": ["!src/**"]}, ()),
        ({"allowed_files": ["src/**", "!src/x"]}, ("src/**", "!src/x")),
        (
            {"allowed_files": ["src/**"], "controller_task_spec": {"type": "P", "target_file": "b"}},
            ("src/**",),
        ),
        (
            {
                "controller_task_spec": {"type": "PATCH", "target_file": "b.py"},
                "acceptance_criteria": {"expected_artifacts": ["out/*.json", "b.py"]},
            },
            ("b.py", "out/*.json"),
        ),
        ({"allowed_files": ["src/**"], "sub_plan": "phase.yaml"}, ()),
        (
            {
                "parent_id": "t0",
                "acceptance_criteria": {
                    "expected_artifacts": ["./diagnostics/t0_failure_report.json", "out/a.json"]
                },
            },
            ("out/a.json",),
        ),
    ],
)
def test_a_todo_may_write_what_it_is_allowed_else_what_it_names(
    keys: dict[str, Any], files: tuple[str, ...]
) -> None:
    assert claimed_files(a_todo(**keys)) == files
