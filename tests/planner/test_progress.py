"""The status tree: standings, progress at every level, branches under their parents."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.outcome import (
    Check,
    CheckKind,
    Outcome,
    OutcomeDocument,
    PlanRef,
    RunInfo,
    Summary,
    TodoState,
    Verdict,
)
from planner.model.plan import Plan, Todo
from planner.rules.board import lay_out
from planner.rules.progress import Standing, StatusTree, status_tree

RUN = RunInfo(
    run_id="r",
    started_at="",
    finished_at="",
    duration_ms=0,
    exit_status=0,
    scope="all",
    python="",
    pytest="",
)


def todo(todo_id: str, **keys: Any) -> Todo:
    return Todo(id=todo_id, title=f"The {todo_id}", **keys)


def outcome(todo_id: str, state: TodoState, verdict: Verdict = Verdict.PASSED) -> Outcome:
    check = Check(id="tests[0]", kind=CheckKind.TEST, verdict=verdict)
    is_done = state is TodoState.DONE
    return Outcome(
        todo_id=todo_id, plan="p", state=state, success=is_done, tests_passed=is_done, checks=(check,)
    )


def tree(
    *items: Todo, states: dict[str, TodoState], subs: dict[str, Plan] | None = None, **more: Any
) -> StatusTree:
    plan = Plan(todo_list_id="p", items=items)
    document = OutcomeDocument(
        plans=(PlanRef(todo_list_id="p", path="p.yaml", digest="d"),),
        run=RUN,
        summary=Summary(),
        outcomes=tuple(outcome(name, state) for name, state in states.items()),
    )
    return status_tree(plan, lay_out(plan, document, subs or {}), **more)


def standings(found: StatusTree) -> dict[str, str]:
    return {node.id: node.standing.value for node in found.walk()}


DONE, RED, TESTING, PENDING = TodoState.DONE, TodoState.TEST_FAILED, TodoState.TESTING, TodoState.PENDING


def test_a_plan_without_outcomes_is_all_pending() -> None:
    found = tree(todo("a"), todo("b", dependencies=("a",)), states={})

    assert standings(found) == {"a": "pending", "b": "pending"}
    assert (found.done, found.total) == (0, 2)


def test_what_depends_on_a_failed_todo_is_blocked_and_says_by_what_since_when() -> None:
    found = tree(
        todo("a"), todo("b", dependencies=("a",)), states={"a": RED}, since={"b": "2026-01-01T00:00:00Z"}
    )

    blocked = found.find("b")
    assert blocked is not None
    assert (blocked.standing, blocked.blocked_by, blocked.since) == (
        Standing.BLOCKED,
        ("a",),
        "2026-01-01T00:00:00Z",
    )


def test_branches_hang_below_their_parent_and_are_not_counted() -> None:
    found = tree(
        todo("a"),
        todo("a_branch_01", parent_id="a", branch_depth=1),
        todo("b"),
        states={"a": RED, "a_branch_01": DONE, "b": DONE},
    )

    assert [node.id for node in found.nodes] == ["a", "b"]
    assert [node.id for node in found.nodes[0].branches] == ["a_branch_01"]
    assert (found.done, found.total) == (1, 2)
    assert found.counts() == {Standing.DONE: 1, Standing.FAILED: 1}


def test_a_branch_whose_parent_is_gone_stands_for_itself() -> None:
    found = tree(todo("gone_branch_01", parent_id="gone"), states={})

    assert standings(found) == {"gone_branch_01": "pending"}


SUB = Plan(todo_list_id="s", items=(todo("x"), todo("y")))


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({"p/x": DONE, "p/y": DONE}, "done"),
        ({"p/x": DONE, "p/y": RED}, "active"),
        ({"p/x": RED, "p/y": RED}, "active"),
        ({"p/x": TESTING, "p/y": DONE}, "active"),
        ({"p/x": DONE}, "active"),
        ({}, "pending"),
        ({"p/x": TESTING}, "testing"),
        ({"p": DONE, "p/x": RED}, "done"),
        ({"p": TESTING, "p/x": RED}, "active"),
        ({"p": RED, "p/x": DONE}, "test_failed"),
    ],
)
def test_a_parent_stands_as_its_children_unless_the_run_judged_it(
    states: dict[str, TodoState], expected: str
) -> None:
    found = tree(todo("p", sub_plan="s.yaml"), states=states, subs={"p": SUB})

    assert found.nodes[0].standing == expected
    assert found.nodes[0].is_parent


def test_a_parent_names_the_children_that_keep_it_open() -> None:
    names = "abcde"
    sub = Plan(todo_list_id="s", items=tuple(todo(name) for name in names))
    found = tree(todo("p", sub_plan="s.yaml"), states={f"p/{name}": RED for name in names}, subs={"p": sub})

    assert found.nodes[0].waits == "a, b, c and 2 more failed"


def test_progress_counts_the_leaves_at_every_level() -> None:
    middle = Plan(todo_list_id="m", items=(todo("q", sub_plan="s.yaml"), todo("z")))
    found = tree(
        todo("p", sub_plan="m.yaml"),
        todo("a"),
        states={"p/q/x": DONE, "p/z": DONE},
        subs={"p": middle, "p/q": SUB},
    )

    assert {node.id: (node.done, node.total) for node in found.walk() if node.children} == {
        "p": (2, 3),
        "p/q": (1, 2),
    }
    assert (found.done, found.total) == (2, 4)
    assert [node.id for node in found.walk()] == ["p", "p/q", "p/q/x", "p/q/y", "p/z", "a"]


@pytest.mark.parametrize(
    ("verdict", "word"),
    [
        (Verdict.INCONCLUSIVE, "run to its end"),
        (Verdict.NEEDS_HUMAN, "person"),
        (Verdict.STALE, "another question"),
        (Verdict.NOT_RUN, "not all"),
    ],
)
def test_a_todo_under_test_says_what_it_waits_for(verdict: Verdict, word: str) -> None:
    plan = Plan(todo_list_id="p", items=(todo("a"),))
    document = OutcomeDocument(
        plans=(), run=RUN, summary=Summary(), outcomes=(outcome("a", TESTING, verdict),)
    )

    (node,) = status_tree(plan, lay_out(plan, document, {})).nodes

    assert node.standing is Standing.TESTING
    assert word in (node.waits or "")


def test_an_unknown_id_is_not_found() -> None:
    assert tree(todo("a"), states={}).find("b") is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from([None, *TodoState]), st.lists(st.integers(0, 7), max_size=3), st.booleans()
        ),
        min_size=1,
        max_size=8,
    )
)
def test_every_todo_is_shown_exactly_once_and_progress_adds_up(
    rows: list[tuple[TodoState | None, list[int], bool]],
) -> None:
    items = tuple(
        todo(
            f"t{index}",
            dependencies=tuple(dict.fromkeys(f"t{each}" for each in before if each < index)),
            parent_id=f"t{before[0] % len(rows)}" if is_branch and before else None,
        )
        for index, (_, before, is_branch) in enumerate(rows)
    )
    states = {f"t{index}": state for index, (state, _, _) in enumerate(rows) if state is not None}

    found = tree(*items, states=states)

    assert sorted(node.id for node in found.walk()) == sorted(item.id for item in items)
    assert 0 <= found.done <= found.total <= len(items)
    assert found.total == sum(item.parent_id is None for item in items)
