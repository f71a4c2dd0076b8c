"""The order of work: dependencies, file claims, and the resulting waves."""

from __future__ import annotations

import itertools
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planner_command import Command, with_test

from planner.model.plan import Todo
from planner.policy.allowed_files import claimed_files, claims_overlap
from planner.policy.dependencies import blockers, dependency_order, find_cycle, waves
from planner.text.glob_patterns import allowed, globs_overlap, literal_prefix, matches, seen_from_above

NAME_PARTS = st.sampled_from(
    [
        *("a", "b", "ab", "a.py", "b.py", "*", "**", "*.py", "a*", "?", "a?", "[ab]", "a[.]py", "[", "*b*"),
        "n" * 300,
    ]
)
CLAIMS = st.lists(NAME_PARTS, min_size=1, max_size=4).map("/".join) | st.sampled_from(
    [".", "./a//b/", "a/", "**/a.py", "/".join("a" * 70)]
)
CLAIM_LISTS = st.lists(st.builds(str.__add__, st.sampled_from(["", "", "", "!"]), CLAIMS), max_size=4)


def a_todo(todo_id: str, after: str = "", files: Any = None, priority: int = 0) -> Todo:
    return Todo(
        id=todo_id,
        title=todo_id,
        dependencies=tuple(after.split()),
        allowed_files=None if files is None else tuple(files),
        priority=priority,
    )


@st.composite
def plans(draw: st.DrawFn) -> list[Todo]:
    """Draw todos in any order and without cycles; some dependencies are unknown."""
    ids = [f"t{number}" for number in range(draw(st.integers(0, 12)))]
    todos = [
        a_todo(
            todo_id,
            " ".join(draw(st.lists(st.sampled_from([*ids[:place], "elsewhere"]), max_size=3))),
            draw(st.none() | CLAIM_LISTS),
            draw(st.integers(0, 2)),
        )
        for place, todo_id in enumerate(ids)
    ]
    return draw(st.permutations(todos))


@given(todos=plans())
def test_each_todo_is_in_the_earliest_possible_wave_by_priority_and_then_by_plan_order(todos: list[Todo]):
    found = waves(todos)
    rank = {todo.id: (todo.priority, place) for place, todo in enumerate(todos)}
    assert all(list(wave) == sorted(wave, key=rank.__getitem__) for wave in found)
    assert sorted(each for wave in found for each in wave) == sorted(todo.id for todo in todos)
    wave_of = {todo_id: number for number, wave in enumerate(found) for todo_id in wave}
    files = {todo.id: claimed_files(todo) for todo in todos}
    for todo in todos:
        before = [wave_of[each] for each in todo.dependencies if each in wave_of]
        mine = wave_of[todo.id]
        assert all(number < mine for number in before)
        others = [each for each in found[mine] if each != todo.id]
        assert not any(claims_overlap(files[todo.id], files[each]) for each in others)
        for number in range(max(before, default=-1) + 1, mine):
            assert any(claims_overlap(files[todo.id], files[each]) for each in found[number])


def test_of_two_todos_with_a_common_file_the_one_with_priority_goes_first() -> None:
    todos = [a_todo("a", files=["x.py"]), a_todo("b", files=["x.py"], priority=-1)]
    assert waves(todos) == (("b",), ("a",))


SUB = {"id": "phase", "is_parent": True, "sub_plan": "phase/plan.yaml"}


def writing(todo_id: str, *files: str, **keys: Any) -> dict[str, Any]:
    return with_test(todo_id, allowed_files=list(files), **keys)


def test_a_parent_comes_after_its_children_with_paths_below_their_root(planner: Command) -> None:
    planner.plan(
        SUB,
        with_test("after", dependencies=["phase"]),
        writing("same", "phase/src/x.py", priority=1),
        writing("other", "src/x.py"),
    )
    inner = [
        writing("one", "src/*.py"),
        with_test("two", dependencies=["one"]),
        writing("three", "docs/*.md"),
        with_test("three_branch_01", parent_id="three"),
    ]
    planner.plan(*inner, path="phase/plan.yaml", todo_list_id="phase")
    assert planner("next").out.endswith("Later\n  wave 3: phase/two\n  wave 4: after\n")


@given(
    pattern=st.sampled_from(["a", "*.py", "*", "**", "a/*", "./a/", "**/a", "a?", "."]),
    folder=st.sampled_from([".", "sub", "sub/deep"]),
    path=st.sampled_from(["a", "a.py", "b/a.py", "a/b", "sub/a", "ab", "b"]),
)
def test_a_glob_rewritten_for_a_parent_folder_matches_the_same_files(pattern: str, folder: str, path: str):
    above = path if folder == "." else f"{folder}/{path}"
    assert matches(above, seen_from_above(pattern, folder)) == matches(path, pattern)
    assert seen_from_above(f"!{pattern}", folder) == f"!{seen_from_above(pattern, folder)}"


def test_independent_todos_are_ordered_by_priority_and_then_by_plan_order() -> None:
    items = [a_todo(name, priority=number) for name, number in (("a", 2), ("b", 1), ("c", 2), ("d", 1))]
    assert [item.id for item in dependency_order(items)] == ["b", "d", "a", "c"]


def test_a_cycle_prevents_an_order_and_is_listed() -> None:
    circular = [a_todo("a", "b"), a_todo("b", "c"), a_todo("c", "b")]
    for order in (dependency_order, waves):
        with pytest.raises(ValueError, match="in a circle: b -> c -> b"):
            order(circular)
    assert find_cycle(circular) == ("b", "c", "b")
    assert find_cycle([a_todo("a", "a")]) == ("a", "a")


def test_blockers_lists_the_nearest_failures_first() -> None:
    needs = {"a": "", "b": "a", "c": "", "d": "b c", "e": "d"}
    items = {name: a_todo(name, after) for name, after in needs.items()}
    assert blockers("e", {"a", "c"}, items) == ("c", "a")
    assert blockers("e", {"a", "b"}, items) == ("b",)
    assert blockers("a", {"b"}, items) == ()
    assert blockers("e", {"a"}, items) == ("a",)
    assert blockers("nobody", {"a"}, items) == ()


@given(st.lists(st.lists(st.integers(0, 7), max_size=4), min_size=1, max_size=8))
def test_todos_have_either_a_dependency_order_or_a_cycle(graph: list[list[int]]) -> None:
    items = [a_todo(str(at), " ".join(map(str, needs))) for at, needs in enumerate(graph)]
    cycle = find_cycle(items)
    if cycle:
        by_id = {item.id: item for item in items}
        assert cycle[0] == cycle[-1]
        assert all(after in by_id[before].dependencies for before, after in itertools.pairwise(cycle))
        return
    order = [item.id for item in dependency_order(items)]
    assert sorted(order) == sorted(item.id for item in items)
    for item in items:
        assert all(order.index(each) < order.index(item.id) for each in item.dependencies if each in order)


@pytest.mark.parametrize("alphabet", [("a", "b", "*"), ("a", "?", "*"), ("[ab]", "[!a]", "*", "b")])
def test_wildcard_names_that_match_a_common_name_overlap(alphabet: tuple[str, ...]) -> None:
    names = ["".join(letters) for size in range(1, 5) for letters in product("abc", repeat=size)]
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
def test_a_character_class_matches_exactly_its_characters(part: str, names: str) -> None:
    glob = f"x/{part}"
    for each in "abcz0-!^]":
        assert matches(f"x/{each}", glob) is (each in names)
        assert globs_overlap(f"x/{each}", glob) is (each in names)
    assert not matches("x/a/y", f"x/a{part}y")
    assert not matches("x/ab", glob)


@given(one=CLAIMS, other=CLAIMS)
def test_the_literal_prefixes_of_overlapping_globs_are_nested(one: str, other: str) -> None:
    first, second = literal_prefix(one), literal_prefix(other)
    if globs_overlap(one, other):
        assert first.startswith(second) or second.startswith(first)


@given(one=CLAIM_LISTS, other=CLAIM_LISTS, path=st.lists(NAME_PARTS, min_size=1, max_size=4).map("/".join))
def test_a_path_that_both_todos_may_write_is_a_conflict(one: list[str], other: list[str], path: str):
    if allowed(path, one) and allowed(path, other):
        assert claims_overlap(tuple(one), tuple(other))


@pytest.mark.parametrize(
    ("one", "other", "collide"),
    [
        (["src/**"], ["src/a.py"], True),
        (["src/**", "!src/a.py"], ["src/a.py"], True),
        (["!src/a.py", "docs/**"], ["src/a.py"], False),
        ([], ["**"], False),
        (["!**"], ["**"], False),
        (["a.py"], ["a.py/b.py"], True),
    ],
)
def test_only_included_files_make_a_conflict(one: list[str], other: list[str], collide: bool) -> None:
    assert claims_overlap(tuple(one), tuple(other)) is collide
    assert claims_overlap(tuple(other), tuple(one)) is collide


def makes(*paths: str) -> dict[str, Any]:
    return {"acceptance_criteria": {"expected_artifacts": list(paths)}}


@pytest.mark.parametrize(
    ("keys", "files"),
    [
        ({}, ()),
        ({"allowed_files": []}, ()),
        ({"allowed_files": ["!src/**"]}, ()),
        ({"allowed_files": ["src/**", "!src/x"]}, ("src/**", "!src/x")),
        ({"allowed_files": ["a"], "controller_task_spec": {"type": "P", "target_file": "b"}}, ("a",)),
        ({"controller_task_spec": {"type": "P", "target_file": "b"}, **makes("a/*", "b")}, ("b", "a/*")),
        ({"allowed_files": ["src/**"], "sub_plan": "phase.yaml"}, ()),
        ({"parent_id": "t0", **makes("./diagnostics/t0_failure_report.json", "a.json")}, ("a.json",)),
    ],
)
def test_a_todo_claims_its_allowed_files_or_else_the_files_it_names(
    keys: dict[str, Any], files: tuple[str, ...]
) -> None:
    assert claimed_files(Todo.model_validate({"id": "t1", "title": "A todo", **keys})) == files
