from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from outcome_samples import momentum_plan, screen_text
from text_bundles import unpack_bundle

from planner.planfile.tree import load_tree
from pytest_planverify.reports.tree import render_tree

if TYPE_CHECKING:
    from planner.planfile.loader import LoadedPlan

SELECTED = {
    ("t1_data_integration", "tests[0]"): [
        "tests/test_adapter.py::test_rows",
        "tests/test_adapter.py::test_types",
    ],
    ("t2_indicators", "tests[0]"): [
        "tests/test_indicators.py::test_rsi_values",
        "tests/test_adapter.py::test_rows",
    ],
}
PROBLEMS = {("t2_indicators", "tests[1]"): ["ruff is not installed: install it, or take the criterion out"]}


@pytest.fixture
def plan(tmp_path: Path) -> LoadedPlan:
    return momentum_plan(tmp_path)


def tree(plan: LoadedPlan, *, width: int = 80, encoding: str = "utf-8", verbosity: int = 0) -> str:
    return screen_text(
        lambda tw: render_tree(tw, plan, SELECTED, PROBLEMS, verbosity=verbosity),
        width=width,
        encoding=encoding,
    )


def test_the_tree_shows_todos_criteria_and_tests(plan: LoadedPlan) -> None:
    assert tree(plan) == (
        "Momentum Strategy with RSI  (2 todos, 3 tests)\n"
        "├─ t1_data_integration  Data Integration Adapter  (2 criteria, 2 tests)\n"
        "│  ├─ tests[0]  pytest tests/test_adapter.py -q  (2 tests)\n"
        "│  │    tests/test_adapter.py::test_rows\n"
        "│  │    tests/test_adapter.py::test_types\n"
        "│  └─ metrics[0]  rows_min >= 10\n"
        "└─ t2_indicators  Indicator & Candle Patterns  (5 criteria, 2 tests)\n"
        "   ├─ tests[0]  pytest tests/test_indicators.py -q  (2 tests)\n"
        "   │    tests/test_indicators.py::test_rsi_values\n"
        "   │    tests/test_adapter.py::test_rows\n"
        "   ├─ tests[1]  ruff check indicators\n"
        "   │    ! ruff is not installed: install it, or take the criterion out\n"
        "   ├─ expected_artifacts[0]  indicators/rsi.py\n"
        "   ├─ manual[0]  Does the chart look right?\n"
        "   └─ contract_path  contracts/indicator_contract.json\n"
    )


def test_a_narrow_ascii_tree_cuts_no_command(plan: LoadedPlan) -> None:
    lines = tree(plan, width=40, encoding="ascii").splitlines()
    assert lines[0] == "Momentum Strategy with RSI  (2 todos, 3 tests)"
    assert lines[2] == "|  |- tests[0]  pytest tests/test_adapter.py -q  (2 tests)"


def test_quiet_prints_bare_node_ids_each_once(plan: LoadedPlan) -> None:
    assert tree(plan, verbosity=-1, width=24) == (
        "tests/test_adapter.py::test_rows\n"
        "tests/test_adapter.py::test_types\n"
        "tests/test_indicators.py::test_rsi_values\n"
    )


def test_only_the_todos_that_were_asked_for_are_shown(plan: LoadedPlan) -> None:
    selected = {("t2_indicators", "tests[0]"): ["a.py::b"]}
    shown = screen_text(lambda tw: render_tree(tw, plan, selected, todo_ids={"t2_indicators"}))
    assert shown.splitlines()[:2] == [
        "Momentum Strategy with RSI  (1 todo, 1 test)",
        "└─ t2_indicators  Indicator & Candle Patterns  (5 criteria, 1 test)",
    ]


def test_todos_of_a_sub_plan_stand_below_their_parent(tmp_path: Path) -> None:
    phases = unpack_bundle(Path(__file__).parents[3] / "fixtures/projects/phases.txt", tmp_path)
    flat = load_tree(phases / "plan.yaml", boundary=phases).load_all().flat()

    shown = screen_text(
        lambda tw: render_tree(tw, flat.loaded, {}, todo_ids=list(flat.loaded.criteria)[2:])
    )

    assert shown == (
        "A small editor in three phases  (10 todos, 0 tests)\n"
        "├─ phase-1/text-impl  Lines of a text  (1 criterion)\n"
        "│  └─ tests[0]  pytest tests/test_text.py -q  (0 tests)\n"
        "├─ phase-2  Phase 2: Buffer Management  (3 todos, 1 criterion)\n"
        "│  ├─ tests[0]  pytest tests/test_integration.py -q  (0 tests)\n"
        "│  ├─ buffer-tests  Tests of the buffer  (1 criterion)\n"
        "│  │  └─ expected_artifacts[0]  tests/test_text.py\n"
        "│  ├─ buffer-impl  The buffer  (2 criteria)\n"
        "│  │  ├─ tests[0]  pytest tests/test_text.py -q  (0 tests)\n"
        "│  │  └─ metrics[0]  lines >= 3\n"
        "│  └─ buffer-integration  Undo  (1 criterion)\n"
        "│     └─ tests[0]  pytest tests/test_text.py::test_undo -q  (0 tests)\n"
        "└─ phase-3  Phase 3: Navigation  (2 todos)\n"
        "   ├─ cursor  The cursor  (2 todos)\n"
        "   │  ├─ left-right  Left and right  (1 criterion)\n"
        "   │  │  └─ tests[0]  pytest tests/test_cursor.py -q -k 'left or right'  (0 tests)\n"
        "   │  └─ up-down  Up and down  (1 criterion)\n"
        "   │     └─ tests[0]  pytest tests/test_cursor.py -q -k 'up or down'  (0 tests)\n"
        "   └─ words  Words  (1 criterion)\n"
        "      └─ tests[0]  pytest tests/test_words.py -q  (0 tests)\n"
    )
