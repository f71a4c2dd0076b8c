"""Order, cycles and blockers."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.plan import Todo
from planner.policy.dependencies import blockers, dependency_order, find_cycle


def todos(**dependencies: str) -> list[Todo]:
    return [Todo(id=key, title=key, dependencies=tuple(value)) for key, value in dependencies.items()]


def ids(items: tuple[Todo, ...]) -> str:
    return "".join(item.id for item in items)


def test_among_equals_the_lower_priority_goes_first_then_the_order_of_the_plan() -> None:
    items = [Todo(id=key, title=key, priority=p) for key, p in (("a", 2), ("b", 1), ("c", 2), ("d", 1))]
    assert ids(dependency_order(items)) == "bdac"


def test_a_cycle_has_no_order_and_is_spelled_out() -> None:
    with pytest.raises(ValueError, match="b -> c -> b"):
        dependency_order(todos(a="b", b="c", c="b"))
    assert find_cycle(todos(a="b", b="c", c="b")) == ("b", "c", "b")
    assert find_cycle(todos(a="a")) == ("a", "a")
    assert find_cycle(todos(a="", b="a", c="ab", d="cz")) == ()


def test_blockers_are_the_nearest_failures_first() -> None:
    items = {todo.id: todo for todo in todos(a="", b="a", c="", d="bc", e="d")}
    assert blockers("e", {"a", "c"}, items) == ("c", "a")
    assert blockers("e", {"a", "b"}, items) == ("b",)
    assert blockers("a", {"b"}, items) == ()
    assert blockers("e", {"a"}, items) == ("a",)
    assert blockers("nobody", {"a"}, items) == ()


@given(st.lists(st.lists(st.integers(0, 7), max_size=4), min_size=1, max_size=8))
def test_either_there_is_an_order_or_a_cycle(graph: list[list[int]]) -> None:
    items = [
        Todo(id=str(i), title="T", dependencies=tuple(map(str, needs))) for i, needs in enumerate(graph)
    ]
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
