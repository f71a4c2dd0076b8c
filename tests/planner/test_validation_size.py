"""Todos that are too large come with their split, flat plans that should be phases with their phases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from validation_samples import GOOD_TEST, only, rules, todo

from planner.model.plan import AcceptanceCriteria, ArtifactSpec, Plan, Todo
from planner.rules.criteria import criteria_of
from planner.rules.hierarchy import PHASE_TODOS, suggest
from planner.rules.todo_parts import domain, propose_split


def make(*names: str, **keys: Any) -> list[Todo]:
    return [Todo(id=name, title=keys.get("title", name), requires_testing=False) for name in names]


def plan(todos: list[Todo]) -> Plan:
    return Plan(todo_list_id="p", items=tuple(todos))


def with_files(name: str, *paths: str, needs: tuple[str, ...] = ()) -> Todo:
    artifacts = tuple(ArtifactSpec(path=path) for path in paths)
    return Todo(
        id=name,
        title=name,
        dependencies=needs,
        acceptance_criteria=AcceptanceCriteria(expected_artifacts=artifacts),
    )


def phases(todos: list[Todo]) -> dict[str, tuple[str, ...]]:
    found = suggest(plan(todos))
    return {} if found is None else {phase.title: phase.todo_ids for phase in found.phases}


def test_a_todo_with_many_criteria_is_split_by_what_they_are_about(tmp_path: Path) -> None:
    names = ("rsi", "macd", "atr")
    criteria = {"expected_artifacts": [f"indicators/{name}.py" for name in names]}
    commands = [f"pytest tests/test_{name}.py::test_{kind}" for name in names for kind in ("a", "b")]
    files = {
        f"tests/test_{name}.py": GOOD_TEST
        + "def test_a():\n    assert p()\ndef test_b():\n    assert p()\n"
        for name in names
    }
    found = only("todo-too-large", tmp_path, todo("big", *commands, criteria=criteria), files=files)
    assert "has 9 criteria, more than 8" in found.message
    assert found.fix == (
        "split it: big_1_rsi (tests[0], tests[1], expected_artifacts[0]), "
        "then big_2_macd (tests[2], tests[3], expected_artifacts[1]), "
        "then big (tests[4], tests[5], expected_artifacts[2]), each depending on the one before"
    )


def test_a_todo_of_several_domains_is_split(tmp_path: Path) -> None:
    paths = ["billing/a.py", "shipping/b.py", "catalogue/c.py"]
    found = only(
        "todo-too-large",
        tmp_path,
        todo("big", "pytest t.py", criteria={"expected_artifacts": paths}),
        files={"t.py": GOOD_TEST},
    )
    assert "3 parts of the product: billing, shipping, catalogue" in found.message
    small = todo(
        "a",
        "pytest t.py",
        criteria={"expected_artifacts": ["billing/a.py", "docs/b.md", "contracts/c.json"]},
    )
    assert rules(tmp_path, small) == []


def test_a_todo_whose_checks_take_very_long_together_is_split(tmp_path: Path) -> None:
    own = todo("a", "pytest t.py", "pytest u.py", spec={"timeout_seconds": 3000})
    own["acceptance_criteria"]["tests"][1]["timeout_seconds"] = 3000
    assert rules(tmp_path, own, files={"t.py": GOOD_TEST, "u.py": GOOD_TEST}) == ["todo-too-large"]
    own["acceptance_criteria"]["tests"][1]["timeout_seconds"] = 7200
    assert rules(tmp_path, own) == ["timeout-long"], (
        "one long check is not split by giving it to another todo"
    )


def test_a_usual_todo_is_not_too_large(tmp_path: Path) -> None:
    own = todo("a", "pytest t.py", criteria={"expected_artifacts": [f"src/{at}.py" for at in range(7)]})
    assert rules(tmp_path, own, files={"t.py": GOOD_TEST}) == []


def test_a_todo_about_one_thing_is_halved() -> None:
    tests = [{"cmd": f"pytest tests/test_rsi.py::test_{at}"} for at in range(10)]
    whole = Todo.model_validate({"id": "a", "title": "A", "acceptance_criteria": {"tests": tests}})
    parts = propose_split(whole, criteria_of(whole))
    assert [part.todo_id for part in parts] == ["a_1_first", "a"]


@given(
    st.lists(st.sampled_from(["rsi", "macd", "atr", "adx", "obv", "ema", "sma"]), min_size=1, max_size=30),
    st.lists(st.sampled_from(["x/rsi.py", "x/macd.py", "y/z.json"]), max_size=10),
    st.none() | st.integers(1, 3000),
)
def test_a_split_loses_no_criterion_and_the_last_part_keeps_the_id(
    names: list[str], paths: list[str], most: int | None
) -> None:
    whole = Todo.model_validate(
        {
            "id": "a",
            "title": "A",
            "contract_path": "c.json",
            "acceptance_criteria": {
                "tests": [{"cmd": f"pytest tests/test_{name}.py"} for name in names],
                "expected_artifacts": paths,
                "metrics": [{"name": "n", "operator": ">=", "value": 1}],
            },
        }
    )
    criteria = criteria_of(whole)
    parts = propose_split(whole, criteria, most_seconds=most)
    if parts:
        assert sorted(each for part in parts for each in part.criteria) == sorted(
            each.id for each in criteria
        )
        assert parts[-1].todo_id == "a"
        assert len({part.todo_id for part in parts}) == len(parts) >= 2


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("billing/a.py", "billing"),
        ("src/billing/a.py", "billing"),
        ("tests/x.py", None),
        ("a.py", None),
        ("src/*/a.py", None),
    ],
)
def test_the_domain_of_a_file_is_its_folder_in_the_product(path: str, expected: str | None) -> None:
    assert domain(path) == expected


def test_a_small_flat_plan_stays_flat() -> None:
    assert suggest(plan(make("data", "indicators", "entry", "exit"))) is None
    assert suggest(plan(make(*(f"step{at}" for at in range(15))))) is None


def test_the_vi_editor_is_divided_as_its_ids_say(tmp_path: Path) -> None:
    parts = ("buffer", "navigation", "editing", "search", "display", "files", "undo", "command")
    names = ["design-architecture", "create-test-framework"]
    names += [f"{part}-{kind}" for part in parts for kind in ("tests", "impl", "integration")]
    names += ["write-docs", "final-review", "release"]
    found = suggest(plan(make(*names)))
    assert found is not None
    assert "29 todos stand on one level, more than 15" in found.reason
    titles = {phase.title: phase.todo_ids for phase in found.phases}
    assert titles["Buffer"] == ("buffer-tests", "buffer-impl", "buffer-integration")
    assert titles["Preparation"][:2] == ("design-architecture", "create-test-framework")
    written = only("hierarchy-suggested", tmp_path, *(todo(n, requires_testing=False) for n in names))
    assert "Buffer (buffer-tests, buffer-impl, buffer-integration)" in written.fix
    assert written.place == "items"


def test_phases_in_titles_are_taken_even_in_a_plan_of_few_todos() -> None:
    titles = ["Phase 1: Foundation"] * 2 + ["Phase 2: Buffer"] * 3 + ["Phase 3: Navigation"] * 2
    todos = [Todo(id=f"t{at}", title=title) for at, title in enumerate(titles)]
    assert phases(todos) == {
        "Phase 1: Foundation": ("t0", "t1"),
        "Phase 2: Buffer": ("t2", "t3", "t4"),
        "Phase 3: Navigation": ("t5", "t6"),
    }


def test_what_stands_between_the_todos_of_a_phase_belongs_to_it() -> None:
    titles = ["Set up", "Stage I - Load", "Tests", "Stage I - Clean", "Stage II - Model", "Stage II - Fit"]
    todos = [Todo(id=f"t{at}", title=title) for at, title in enumerate(titles)]
    assert phases(todos) == {
        "Preparation": ("t0",),
        "Stage I": ("t1", "t2", "t3"),
        "Stage II": ("t4", "t5"),
    }


def test_domains_that_have_little_to_do_with_each_other_are_phases() -> None:
    todos = [
        with_files(f"w{at}", f"{folder}/m{at}.py", needs=(f"w{at - 1}",) if at % 2 else ())
        for at, folder in enumerate(["billing", "billing", "shipping", "shipping", "search", "search"])
    ]
    found = phases(todos)
    assert found == {"Billing": ("w0", "w1"), "Shipping": ("w2", "w3"), "Search": ("w4", "w5")}


def test_one_feature_in_several_folders_stays_flat() -> None:
    folders = ["data", "model", "views", "model", "views", "forms", "forms"]
    todos = [
        with_files(f"w{at}", f"{folder}/m{at}.py", needs=(f"w{at - 1}",) if at else ())
        for at, folder in enumerate(folders)
    ]
    assert phases(todos) == {}


def test_islands_of_dependencies_are_phases() -> None:
    todos = [with_files(f"x{at}", needs=(f"x{at - 1}",) if at % 3 else ()) for at in range(6)]
    assert phases(todos) == {
        "Group 1 (from x0)": ("x0", "x1", "x2"),
        "Group 2 (from x3)": ("x3", "x4", "x5"),
    }


def test_many_todos_that_nothing_divides_are_cut_in_the_order_of_work() -> None:
    todos = [with_files(f"s{at}", needs=(f"s{at - 1}",) if at else ()) for at in reversed(range(20))]
    found = phases(todos)
    assert list(found) == ["Phase 1", "Phase 2", "Phase 3"]
    assert found["Phase 1"] == tuple(f"s{at}" for at in range(7))


def test_branches_and_parents_are_not_counted() -> None:
    todos = make(*(f"step{at}" for at in range(14)))
    todos += [Todo(id=f"b{at}", title="B", parent_id="step0") for at in range(5)]
    todos += [Todo(id=f"p{at}", title="P", sub_plan="x.yaml") for at in range(5)]
    assert suggest(plan(todos)) is None


_NAMES = st.text("abct-_.12", min_size=1, max_size=6).filter(lambda name: name.strip("-_.") != "")


@given(
    st.lists(
        st.tuples(_NAMES, st.sampled_from(["x", "Phase 1: A", "Phase 2", "m/x"])),
        unique_by=lambda n: n[0],
        max_size=40,
    )
)
def test_every_todo_is_in_one_phase_and_no_phase_is_large(named: list[tuple[str, str]]) -> None:
    ids = [name for name, _ in named]
    todos = [
        Todo(id=name, title=title, dependencies=tuple(ids[max(0, at - 1) : at]) if at % 3 else ())
        for at, (name, title) in enumerate(named)
    ]
    found = suggest(plan(todos))
    if len(todos) > 15:
        assert found is not None
    if found is not None:
        assert sorted(each for phase in found.phases for each in phase.todo_ids) == sorted(ids)
        assert all(0 < len(phase.todo_ids) <= PHASE_TODOS for phase in found.phases)
        assert len({phase.title for phase in found.phases}) == len(found.phases)
