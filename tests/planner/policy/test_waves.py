"""Waves of todos that can be worked on side by side: who waits for whom, who may write the same file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.plan import Todo
from planner.policy.allowed_files import claimed_files, claims_overlap
from planner.policy.dependencies import waves

PARTS = st.sampled_from(
    [
        *("a", "b", "ab", "a.py", "ab.py", "*", "**", "*.py", "a*", "a*y", "*b*", "?", "a?", "[ab]", "["),
        "n" * 300,
    ]
)
GLOBS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
LISTS = st.none() | st.lists(st.builds(str.__add__, st.sampled_from(["", "", "", "!"]), GLOBS), max_size=3)


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
    """Todos without circles, in any order, some of their dependencies unknown."""
    ids = [f"t{number}" for number in range(draw(st.integers(0, 12)))]
    todos = [
        a_todo(
            todo_id,
            " ".join(draw(st.lists(st.sampled_from([*ids[:place], "elsewhere"]), max_size=3))),
            draw(LISTS),
            draw(st.integers(0, 2)),
        )
        for place, todo_id in enumerate(ids)
    ]
    return draw(st.permutations(todos))


@given(todos=plans())
def test_each_todo_stands_in_the_first_wave_that_is_open_to_it(todos: list[Todo]) -> None:
    found = waves(todos)
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


@given(todos=plans())
def test_a_wave_is_in_the_order_of_priority_then_of_the_plan(todos: list[Todo]) -> None:
    rank = {todo.id: (todo.priority, place) for place, todo in enumerate(todos)}
    for wave in waves(todos):
        assert list(wave) == sorted(wave, key=rank.__getitem__)


@pytest.mark.parametrize(
    ("todos", "expected"),
    [
        # Who has priority goes first, also where both may go.
        ([a_todo("a", files=["x.py"]), a_todo("b", files=["x.py"], priority=-1)], (("b",), ("a",))),
        # What was kept apart keeps apart what depends on it.
        (
            [a_todo("a", files=["src/**"]), a_todo("b", files=["src/x.py"]), a_todo("c", "b"), a_todo("d")],
            (("a", "d"), ("b",), ("c",)),
        ),
        # A place that was passed over is taken by who fits there.
        (
            [
                *(a_todo("a", files=["x.py"]), a_todo("b", "a"), a_todo("c", "b", files=["x.py"])),
                *(a_todo("d", files=["x.py"]), a_todo("e", files=["x.py", "y.py"])),
            ],
            (("a",), ("b", "d"), ("e",), ("c",)),
        ),
    ],
)
def test_waves_of(todos: list[Todo], expected: tuple[tuple[str, ...], ...]) -> None:
    assert waves(todos) == expected


def test_a_circle_is_named() -> None:
    with pytest.raises(ValueError, match="in a circle: a -> b -> a"):
        waves([a_todo("a", "b"), a_todo("b", "a")])
