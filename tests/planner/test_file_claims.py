"""Which todos may write the same files: what the index finds is what comparing each with each finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.plan import Todo
from planner.rules.file_claims import FileClaims, claimed_files, grants_of, may_collide
from planner.rules.glob_patterns import allowed, fixed_start, literal_start, may_meet, parts_meet

PARTS = st.sampled_from(
    [
        "a",
        "b",
        "ab",
        "a.py",
        "b.py",
        "*",
        "**",
        "*.py",
        "a*",
        "?",
        "a?",
        "[ab]",
        "a[.]py",
        "[",
        "*b*",
        "n" * 300,
    ]
)
GLOBS = st.lists(PARTS, min_size=1, max_size=4).map("/".join) | st.sampled_from(
    [".", "./a//b/", "a/", "**/a.py", "/".join("a" * 70)]
)
LISTS = st.lists(st.builds(str.__add__, st.sampled_from(["", "", "", "!"]), GLOBS), max_size=4)


def a_todo(**keys: Any) -> Todo:
    return Todo.model_validate({"id": "t1", "title": "A todo", **keys})


@given(one=GLOBS, other=GLOBS)
def test_the_parts_before_the_first_double_star_decide_whether_two_globs_meet(one: str, other: str) -> None:
    first, second = ([part for part in fixed_start(each).split("/") if part] for each in (one, other))
    pairs = zip(first, second, strict=False)
    assert all(parts_meet(*pair) for pair in pairs) == may_meet(one, other)


@given(one=GLOBS, other=GLOBS)
def test_globs_that_meet_begin_alike(one: str, other: str) -> None:
    if may_meet(one, other):
        assert all(a == b for a, b in zip(literal_start(one), literal_start(other), strict=False))


@given(one=LISTS, other=LISTS, path=st.lists(PARTS, min_size=1, max_size=4).map("/".join))
def test_a_path_that_both_may_write_makes_a_conflict(one: list[str], other: list[str], path: str) -> None:
    if allowed(path, one) and allowed(path, other):
        assert may_collide(one, other)


@given(data=st.data())
def test_the_index_finds_what_comparing_each_with_each_finds(data: st.DataObject) -> None:
    claims, held = FileClaims(), dict[tuple[str, tuple[str, ...]], None]()
    ids = st.sampled_from(["t1", "t2", "t3", "t4"])
    for _ in range(data.draw(st.integers(0, 8))):
        if held and data.draw(st.booleans()):
            key = data.draw(st.sampled_from(list(held)))
            claims = claims.remove(*key)
            del held[key]
        else:
            key = (data.draw(ids), tuple(data.draw(LISTS)))
            claims = claims.add(*key)
            held.setdefault(key)
    asked = data.draw(LISTS)
    expected = tuple(dict.fromkeys(name for name, patterns in held if may_collide(patterns, asked)))
    assert claims.conflicts(asked) == expected
    assert claims.is_free(asked) == (not expected)
    assert len(claims) == len(held)


@given(lists=st.lists(LISTS, max_size=6))
def test_claims_that_are_taken_back_leave_nothing_behind(lists: list[list[str]]) -> None:
    before = FileClaims().add("kept", ("src/**",))
    claims = before
    for number, patterns in enumerate(lists):
        claims = claims.add(f"t{number}", patterns)
    for number, patterns in enumerate(lists):
        claims = claims.remove(f"t{number}", patterns)
    assert claims._root == before._root
    assert before.conflicts(("src/a.py",)) == ("kept",)


def test_a_value_stays_as_it_is_when_another_is_made_of_it() -> None:
    empty = FileClaims()
    one = empty.add("t1", ("a.py",))
    both = one.add("t2", ("b.py",))
    assert one.add("t1", ("a.py",)) is one
    assert one.remove("t9", ("a.py",)) is one
    assert [len(each) for each in (empty, one, both, both.remove("t1", ("a.py",)))] == [0, 1, 2, 1]
    assert both.conflicts(("a.py", "b.py")) == ("t1", "t2")
    assert one.conflicts(("b.py",)) == ()


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
    assert may_collide(one, other) is may_collide(other, one) is collide
    assert (FileClaims().add("t1", one).conflicts(other) == ("t1",)) is collide


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
