"""Decomposition of a goal into todos, flat or in phases, by the templates that its words select."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planner.authoring.decomposition import Decomposer, read_values, reasons_for_phases, template_for
from planner.authoring.outline import Piece, read_goal
from planner.model.plan import Plan
from planner.planfile.loader import load_plan_text
from planner.planfile.tree import load_tree
from planner.planfile.validation import validate_plan_tree
from planner.planfile.writer import dump_plan

EDITOR = """\
# A small editor
## Phase 1: Buffer
- Positions in a text
- Lines of a text
## Phase 2: Navigation
1. Move by characters
2. Move by words
## Phase 3: Fix the crash at an empty file
"""


def plans_of(goal: str, folder: Path, *, depth: int = 1, **settings: Any) -> dict[Path, Plan]:
    facts = read_values("x", folder)
    return Decomposer(facts=facts, folder=folder, **settings).plans(
        read_goal(goal), folder / "plan.yaml", depth
    )


def plan_of(goal: str, folder: Path, **settings: Any) -> Plan:
    (plan,) = plans_of(goal, folder, **settings).values()
    return plan


def titles(piece: Piece) -> list[object]:
    return [[part.title, titles(part)] if part.parts else part.title for part in piece.parts]


@pytest.mark.parametrize(
    ("goal", "title", "parts"),
    [
        ("Export as CSV", "Export as CSV", []),
        ("Export as CSV; import it; document both.", None, ["Export as CSV", "import it", "document both"]),
        ("Shop:\n- cart\n- checkout\n  - pay", "Shop:", ["cart", ["checkout", ["pay"]]]),
        ("- **Split** `shop/__init__.py`\n- _x_", None, ["Split shop/__init__.py", "_x_"]),
        ("- Split shop/__init__.py\n- Call __len__", None, ["Split shop/__init__.py", "Call __len__"]),
        ("- `pytest x.py` passes\n- `pytest y.py`: pay", None, ["pytest x.py passes", "pay"]),
        ("- [ ] cart\n- [x] checkout", "cart; checkout", ["cart", "checkout"]),
        (
            EDITOR,
            "A small editor",
            [
                ["Buffer", ["Positions in a text", "Lines of a text"]],
                ["Navigation", ["Move by characters", "Move by words"]],
                "Fix the crash at an empty file",
            ],
        ),
    ],
)
def test_headings_items_and_semicolons_split_a_goal_into_pieces(
    goal: str, title: str | None, parts: list[object]
) -> None:
    piece = read_goal(goal)
    assert title is None or piece.title == title
    assert titles(piece) == parts


def test_a_command_in_a_goal_is_a_criterion_of_the_last_todo_of_its_piece(tmp_path: Path) -> None:
    goal = (
        "Shop:\n- totals: `pytest tests/test_cart.py`\n- # Pay\n  - by card\n  - later\n  `ruff check shop`"
    )
    plan = plan_of(goal, tmp_path)
    cmds = {todo.id: [spec.cmd for spec in todo.acceptance_criteria.tests] for todo in plan.items}
    assert cmds["totals"] == ["pytest tests/test_totals.py", "pytest tests/test_cart.py"]
    assert cmds["later"][-1] == "ruff check shop"
    assert [name for name, own in cmds.items() if "ruff check shop" in own] == ["later"]


@pytest.mark.parametrize(
    ("words", "template"),
    [
        ("Fix the crash at an empty file", "bugfix"),
        ("Insert and delete lines", "feature"),
        ("A REST endpoint for orders", "service"),
        ("Momentum with RSI", "strategy"),
        ("Migrate from unittest to pytest", "migration"),
        ("A library for money", "library"),
    ],
)
def test_words_of_a_goal_select_the_template(words: str, template: str) -> None:
    assert template_for(words) == template


@pytest.mark.parametrize(
    ("goal", "todos", "reason"),
    [
        ("A CRUD app for notes", 4, None),
        ("- export\n- import", 4, None),
        ("- piece\n" * 8, 16, "about 16 todos"),
        (EDITOR, 5, "the goal lists phases"),
        (
            "- a table of orders\n- an api for orders\n- a page of orders\n- docs",
            8,
            "it spans several domains: documentation, interface, service, storage",
        ),
    ],
)
def test_phases_are_suggested_for_many_todos_listed_phases_or_domains(
    goal: str, todos: int, reason: str | None
) -> None:
    found = reasons_for_phases(read_goal(goal), todos)
    assert len(found) == (reason is not None)
    assert reason is None or reason in found[0]


@pytest.mark.parametrize("goal", ["Export as CSV", EDITOR, "A; B; C", "1. cart\n2. pay\n3. fix the cart"])
def test_a_flat_plan_covers_every_piece_without_findings(tmp_path: Path, goal: str) -> None:
    piece, path = read_goal(goal), tmp_path / "plan.yaml"
    plan = plan_of(goal, tmp_path)
    path.write_text(dump_plan(plan, format="yaml"))
    assert validate_plan_tree(load_tree(path)) == ()
    assert {each.title for each in piece.leaves()} <= {todo.title for todo in plan.items}


def test_numbered_pieces_depend_on_one_another(tmp_path: Path) -> None:
    plan = plan_of("1. cart\n2. pay", tmp_path)
    before = {todo.id: todo.dependencies for todo in plan.items}
    assert before["pay-tests"] == ("cart",)
    assert before["cart-tests"] == ()


@pytest.mark.parametrize(("goal", "depth"), [("- cart\n- cart", 1), ("# G\n## a\n- cart\n## b\n- cart", 2)])
def test_pieces_with_the_same_name_have_different_files(tmp_path: Path, goal: str, depth: int) -> None:
    todos = [todo for plan in plans_of(goal, tmp_path, depth=depth).values() for todo in plan.items]
    files = [todo.allowed_files for todo in todos if todo.agent_role == "tester"]
    assert files == [("tests/test_cart.py",), ("tests/test_cart_2.py",)]


def test_each_phase_becomes_a_sub_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a root may be above its plan, up to the current directory
    path = tmp_path / "plan.yaml"
    plans = plans_of(EDITOR, tmp_path, depth=2)
    for file, plan in plans.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dump_plan(plan, format="yaml"))
    items = load_tree(path).load_all().flat().loaded.plan.items

    phases = ["buffer", "navigation", "fix-the-crash-at-an-empty-file"]
    assert [todo.id for todo in items if todo.sub_plan] == phases
    assert len(plans) == 4
    assert validate_plan_tree(load_tree(path)) == ()


@pytest.mark.parametrize(("depth", "plans"), [(1, 1), (2, 3), (3, 4)])
def test_the_depth_of_phases_is_bounded(tmp_path: Path, depth: int, plans: int) -> None:
    goal = "# G\n## a\n- b\n  - c\n    - d\n  - e\n## f"
    assert len(plans_of(goal, tmp_path, depth=depth)) == plans


@given(goal=st.lists(st.text("ab#-1. \n;", min_size=1, max_size=30), min_size=1, max_size=6).map("\n".join))
@example(goal="```\nwords\n```")
@example(goal="- `pytest tests/test_a.py`")
def test_any_goal_gives_a_plan_that_loads(goal: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "goals"
    folder.mkdir(exist_ok=True)
    if not goal.strip():
        return
    plan = plan_of(goal, folder)
    assert load_plan_text(dump_plan(plan, format="yaml"), folder / "plan.yaml").plan.items
