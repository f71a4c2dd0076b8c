"""Parents, branches, dependencies, templates and repeated checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from validation_samples import GOOD_TEST, ROUTING, findings, only, rules, todo

from planner.model.plan import Todo
from planner.rules.ancestry import Ancestry

FILES = {f"{name}.py": GOOD_TEST for name in "abcdefgh"}


def own(name: str, **keys: Any) -> dict[str, Any]:
    """A todo with a test file of its own."""
    return todo(name, f"pytest {name[0]}.py", **keys)


def branch(name: str, parent: str, **keys: Any) -> dict[str, Any]:
    return own(name, parent_id=parent, is_temporary=True, **keys)


def judge(folder: Path, *todos: dict[str, Any], **plan: Any) -> list[str]:
    return rules(folder, *todos, files=FILES, **plan)


def test_a_branch_of_a_todo_is_fine(tmp_path: Path) -> None:
    first = branch("a_branch_01", "a", branch_depth=1)
    second = branch("a_branch_02", "a", branch_depth=2, via="a_branch_01")
    assert judge(tmp_path, own("a"), first, second, own("b", dependencies=["a"])) == []


def test_a_branch_of_nobody_is_an_error(tmp_path: Path) -> None:
    found = only("parent-unknown", tmp_path, branch("x", "nobody"), files={"x.py": GOOD_TEST})
    assert (found.place, found.severity) == ("items[0].parent_id", "error")


def test_the_parent_of_a_branch_is_the_primary_todo(tmp_path: Path) -> None:
    plan = own("a"), branch("a_branch_01", "a"), branch("a_branch_02", "a_branch_01")
    assert (
        only("parent-is-branch", tmp_path, *plan, files=FILES).fix
        == "write parent_id: a and via: a_branch_01"
    )
    assert "parent-is-branch" in judge(tmp_path, branch("a", "a"))


def test_via_names_a_branch_of_the_same_parent(tmp_path: Path) -> None:
    assert judge(tmp_path, own("a"), branch("a1", "a", via="nobody")) == ["via-unknown"]
    assert judge(tmp_path, own("a"), branch("a1", "a", via="a")) == ["via-unknown"]
    assert judge(tmp_path, own("a"), own("b"), branch("b1", "b"), branch("a1", "a", via="b1")) == [
        "via-unknown"
    ]


def test_branches_that_came_out_of_each_other_are_an_error(tmp_path: Path) -> None:
    plan = own("a"), branch("a1", "a", via="a2"), branch("a2", "a", via="a1")
    assert judge(tmp_path, *plan) == ["via-cycle", "via-cycle"]
    assert "a1 -> a2 -> a1" in findings(tmp_path, *plan, files=FILES)[0].message
    assert judge(tmp_path, own("a"), branch("a1", "a", via="a1")) == ["via-cycle"]


def test_a_branch_deeper_than_the_plan_allows_is_an_error(tmp_path: Path) -> None:
    plan = {"metadata": {"max_branch_depth": 1}}
    assert judge(tmp_path, own("a"), branch("a1", "a", branch_depth=2), **plan) == ["branch-too-deep"]
    deep = branch("a1", "a"), branch("a2", "a", via="a1")
    assert judge(tmp_path, own("a"), *deep, **plan) == ["branch-too-deep"]
    assert judge(tmp_path, own("a"), branch("a1", "a", branch_depth=1), **plan) == []


def test_a_branch_that_waits_for_its_parent_is_an_error(tmp_path: Path) -> None:
    assert judge(tmp_path, own("a"), branch("a1", "a", dependencies=["a"])) == ["branch-waits-for-parent"]
    behind = own("b", dependencies=["a"])
    found = only(
        "branch-waits-for-parent",
        tmp_path,
        own("a"),
        behind,
        branch("a1", "a", dependencies=["b"]),
        files=FILES,
    )
    assert "by its dependencies" in found.message


def test_waiting_for_a_branch_is_found(tmp_path: Path) -> None:
    plan = own("a"), branch("a1", "a"), own("b", dependencies=["a1"])
    found = only("dependency-on-branch", tmp_path, *plan, files=FILES)
    assert (found.place, found.fix) == ("items[2].dependencies[0]", "depend on its parent 'a'")


def test_an_implied_dependency_is_told_with_the_one_that_implies_it(tmp_path: Path) -> None:
    plan = (
        own("a"),
        own("b", dependencies=["a"]),
        own("c", dependencies=["b"]),
        own("d", dependencies=["a", "c"]),
    )
    found = only("dependency-implied", tmp_path, *plan, files=FILES)
    assert (found.severity, found.fix, "'c'" in found.message) == ("advice", "remove 'a'", True)
    diamond = (
        own("a"),
        own("b", dependencies=["a"]),
        own("c", dependencies=["a"]),
        own("d", dependencies=["b", "c"]),
    )
    assert judge(tmp_path, *diamond) == []


def test_a_repeated_dependency_is_found(tmp_path: Path) -> None:
    assert judge(tmp_path, own("a"), own("b", dependencies=["a", "a"])) == ["dependency-repeated"]


@given(st.lists(st.sets(st.integers(0, 11)), min_size=1, max_size=12))
def test_ancestry_agrees_with_a_walk_over_the_graph(edges: list[set[int]]) -> None:
    todos = [
        Todo(id=f"t{at}", title="T", dependencies=tuple(f"t{other}" for other in needs if other < at))
        for at, needs in enumerate(edges)
    ]
    by_id = {each.id: each for each in todos}

    def walk(todo_id: str) -> set[str]:
        found: set[str] = set()
        for dependency in by_id[todo_id].dependencies:
            found |= {dependency} | walk(dependency)
        return found

    ancestry = Ancestry(todos)
    for each in todos:
        assert {other for other in by_id if ancestry.waits_for(each.id, other)} == walk(each.id)
        implied = {dependency for _, dependency, _ in ancestry.implied(each)}
        assert implied == {d for d in each.dependencies if any(d in walk(o) for o in each.dependencies)}


STEPS = (
    ("t1", "Data Loading Integration", "coder"),
    ("t2", "Indicator & Candle Patterns", "architect"),
    ("t3", "Entry Conditions", "coder"),
    ("t4", "Exit Conditions", "coder"),
)


def strategy(*order: int, chain: bool = True, **roles: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for at in order or (0, 1, 2, 3):
        name, title, role = STEPS[at]
        needs = [made[-1]["id"]] if made and chain else []
        made.append(
            todo(
                name,
                f"pytest {'abcd'[at]}.py",
                title=title,
                agent_role=roles.get(name, role),
                dependencies=needs,
            )
        )
        made[-1]["title"] = title
    return made


@pytest.mark.parametrize("plan", [{"x-template": "strategy"}, {"metadata": {"x-template": "strategy"}}, {}])
def test_a_plan_that_follows_its_template_is_fine(tmp_path: Path, plan: dict[str, Any]) -> None:
    assert judge(tmp_path, *strategy(), **plan) == []


def test_a_template_is_judged_only_where_it_is_named(tmp_path: Path) -> None:
    assert judge(tmp_path, own("a")) == []


@pytest.mark.parametrize("name", ["stratgy", 3, None, ["strategy"]])
def test_an_unknown_template_is_told_with_the_known_ones(tmp_path: Path, name: Any) -> None:
    found = only("template-unknown", tmp_path, own("a"), files=FILES, **{"x-template": name})
    assert "known templates: strategy" in found.fix
    assert found.place == "x-template"


def test_each_missing_step_of_a_template_is_found(tmp_path: Path) -> None:
    found = list(findings(tmp_path, *strategy(0, 2, 3), files=FILES, **{"x-template": "strategy"}))
    assert [each.rule for each in found] == ["template-step-missing"]
    assert "Indicator & Candle Patterns" in found[0].fix
    assert "after 't1'" in found[0].fix
    assert judge(tmp_path, own("a"), **{"x-template": "strategy"}) == ["template-step-missing"] * 4


def test_steps_of_a_template_stand_in_order_each_on_the_one_before(tmp_path: Path) -> None:
    plan = strategy(chain=False)
    found = judge(tmp_path, *plan, **{"x-template": "strategy"})
    assert found == ["template-order"] * 3
    swapped = strategy(0, 1, 3, 2)
    assert "template-order" in judge(tmp_path, *swapped, **{"x-template": "strategy"})


def test_other_todos_may_stand_between_the_steps(tmp_path: Path) -> None:
    plan = strategy()
    plan.insert(2, todo("docs", "pytest e.py", dependencies=["t2"]))
    plan[3]["dependencies"] = ["docs"]
    assert judge(tmp_path, *plan, **{"x-template": "strategy"}) == []


def test_a_step_may_be_two_todos_one_on_the_other(tmp_path: Path) -> None:
    plan = strategy()
    plan.insert(2, todo("t2b", "pytest e.py", dependencies=["t2"]))
    plan[2]["title"] = "Implement the indicators"
    plan[3]["dependencies"] = ["t2b"]
    assert judge(tmp_path, *plan, **{"x-template": "strategy"}) == []


def test_a_step_with_an_unusual_role_is_advised(tmp_path: Path) -> None:
    assert judge(tmp_path, *strategy(t3="tester"), **{"x-template": "strategy"}) == ["template-role"]
    assert judge(tmp_path, *strategy(t2="coder"), **{"x-template": "strategy"}) == []


def test_a_check_that_is_made_twice_in_a_todo_is_found(tmp_path: Path) -> None:
    found = only("criterion-repeated", tmp_path, todo("a", "pytest a.py -q", "pytest a.py -v"), files=FILES)
    assert found.place == "items[0].acceptance_criteria.tests[1].cmd"
    assert judge(tmp_path, todo("a", "pytest a.py -k test_answer", "pytest a.py -k answer")) == []


@pytest.mark.parametrize(
    "criteria",
    [
        {"expected_artifacts": ["a.py", "./a.py"]},
        {"metrics": [{"name": "n", "operator": ">=", "value": 1}] * 2},
    ],
)
def test_artifacts_and_metrics_that_are_named_twice_are_found(
    tmp_path: Path, criteria: dict[str, Any]
) -> None:
    assert judge(tmp_path, todo("a", "pytest a.py", criteria=criteria)) == ["criterion-repeated"]


def test_one_check_for_two_todos_is_advised_unless_one_waits_for_the_other(tmp_path: Path) -> None:
    found = only(
        "criterion-shared", tmp_path, todo("a", "pytest a.py"), todo("b", "pytest a.py"), files=FILES
    )
    assert (found.todo_id, "'a'" in found.message) == ("b", True)
    assert judge(tmp_path, todo("a", "pytest a.py"), todo("b", "pytest a.py", dependencies=["a"])) == []
    assert judge(tmp_path, todo("a", "pytest a.py"), todo("b", "PYTHONHASHSEED=0 pytest a.py")) == []


def test_a_check_for_many_todos_is_counted(tmp_path: Path) -> None:
    plan = [todo(f"t{at}x", "pytest a.py", failure_routing=ROUTING) for at in range(60)]
    found = [each for each in findings(tmp_path, *plan, files=FILES) if each.rule == "criterion-shared"]
    assert len(found) == 20
    assert "39 more todos" in found[-1].message
