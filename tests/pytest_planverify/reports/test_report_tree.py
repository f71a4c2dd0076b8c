"""The tree of a plan with its sub-plans in reports."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import outcome_samples as samples
import pytest
from outcome_samples import check, document, momentum_plan, outcome, screen_text, summary
from text_bundles import unpack_bundle

from planner.model.outcome import Outcome
from planner.model.verdicts import CheckKind, TodoState, Verdict
from planner.planfile.tree import load_tree
from pytest_planverify.reports.terminal import final_line, render_tree
from pytest_planverify.reports.words import Standing, standing

if TYPE_CHECKING:
    from planner.planfile.loader import LoadedPlan


ROWS, TYPES = "tests/test_adapter.py::test_rows", "tests/test_adapter.py::test_types"
RSI = "tests/test_indicators.py::test_rsi_values"
SELECTED = {("t1_data_integration", "tests[0]"): [ROWS, TYPES], ("t2_indicators", "tests[0]"): [RSI, ROWS]}
PROBLEMS = {("t2_indicators", "tests[1]"): ["ruff is not installed: install it, or take the criterion out"]}


@pytest.fixture
def plan(tmp_path: Path) -> LoadedPlan:
    return momentum_plan(tmp_path)


def tree(plan: LoadedPlan, *, verbosity: int = 0) -> str:
    return screen_text(lambda tw: render_tree(tw, plan, SELECTED, PROBLEMS, verbosity=verbosity), width=40)


def test_the_tree_shows_todos_criteria_and_tests(plan: LoadedPlan) -> None:
    assert tree(plan) == dedent("""\
        Momentum Strategy with RSI  (2 todos, 3 tests)
          t1_data_integration  Data Integration Adapter  (2 criteria, 2 tests)
            tests[0]  pytest tests/test_adapter.py -q  (2 tests)
              tests/test_adapter.py::test_rows
              tests/test_adapter.py::test_types
            metrics[0]  rows_min >= 10
          t2_indicators  Indicator & Candle Patterns  (5 criteria, 2 tests)
            tests[0]  pytest tests/test_indicators.py -q  (2 tests)
              tests/test_indicators.py::test_rsi_values
              tests/test_adapter.py::test_rows
            tests[1]  ruff check indicators
              ! ruff is not installed: install it, or take the criterion out
            expected_artifacts[0]  indicators/rsi.py
            manual[0]  Does the chart look right?
            contract_path  contracts/indicator_contract.json
    """)


def test_quiet_tree_prints_each_node_id_once(plan: LoadedPlan) -> None:
    assert tree(plan, verbosity=-1).splitlines() == [ROWS, TYPES, RSI]


def test_tree_shows_only_the_requested_todos(plan: LoadedPlan) -> None:
    selected = {("t2_indicators", "tests[0]"): ["a.py::b"]}
    shown = screen_text(lambda tw: render_tree(tw, plan, selected, todo_ids={"t2_indicators"}))
    assert shown.splitlines()[:2] == [
        "Momentum Strategy with RSI  (1 todo, 1 test)",
        "  t2_indicators  Indicator & Candle Patterns  (5 criteria, 1 test)",
    ]


def test_todos_of_a_sub_plan_are_shown_below_their_parent(tmp_path: Path) -> None:
    phases = unpack_bundle(Path(__file__).parents[3] / "fixtures/projects/phases.txt", tmp_path)
    flat = load_tree(phases / "plan.yaml", boundary=phases).load_all().flat()

    names = "phase-1/text-impl phase-2 phase-2/buffer-impl phase-3 phase-3/cursor phase-3/cursor/up-down"

    shown = screen_text(lambda tw: render_tree(tw, flat.loaded, {}, todo_ids=names.split()))

    assert shown == dedent("""\
        A small editor in three phases  (6 todos, 0 tests)
          phase-1/text-impl  Lines of a text  (1 criterion)
            tests[0]  pytest tests/test_text.py -q  (0 tests)
          phase-2  Phase 2: Buffer Management  (1 todo, 1 criterion)
            tests[0]  pytest tests/test_integration.py -q  (0 tests)
            buffer-impl  The buffer  (2 criteria)
              tests[0]  pytest tests/test_text.py -q  (0 tests)
              metrics[0]  lines >= 3
          phase-3  Phase 3: Navigation  (1 todo)
            cursor  The cursor  (1 todo)
              up-down  Up and down  (1 criterion)
                tests[0]  pytest tests/test_cursor.py -q -k 'up or down'  (0 tests)
    """)


DONE, FAILED, TESTING = TodoState.DONE, TodoState.TEST_FAILED, TodoState.TESTING


def parent(todo_id: str, title: str, state: TodoState, verdict: Verdict, *own: Verdict) -> Outcome:
    below = check("sub_plan", CheckKind.SUB_PLAN, verdict, title="phases/two.yaml", reason="p/a failed")
    rest = [check(f"tests[{number}]", verdict=each, cmd="pytest x.py") for number, each in enumerate(own)]
    return outcome(todo_id, title, state, below, *rest, verified=False)


def child(todo_id: str, state: TodoState = DONE) -> Outcome:
    verdict = Verdict.PASSED if state is DONE else Verdict.FAILED
    return outcome(todo_id, "Some todo", state, check("tests[0]", verdict=verdict, cmd="pytest y.py"))


PHASES = (
    parent("phase-2", "Phase 2: Buffer Management", TESTING, Verdict.FAILED),
    child("phase-2/buffer-tests"),
    child("phase-2/buffer-impl", FAILED),
    parent("phase-2/deep", "Deep", DONE, Verdict.PASSED),
    child("phase-2/deep/x"),
    child("other/todo"),
)


def lines_of(*shown: Outcome, width: int = 90, **how: Any) -> list[str]:
    return [line.rstrip() for line in summary(document(*shown), width=width, **how).splitlines()]


def test_todos_are_indented_below_shown_parents() -> None:
    columns = [line for line in lines_of(*PHASES) if line[:1] in ("✓", "✗", "!")]

    assert [line[15:40].rstrip() for line in columns] == [
        "phase-2         Phase 2:",
        "  buffer-tests  Some todo",
        "  buffer-impl   Some todo",
        "  deep          Deep (1/1",
        "    x           Some todo",
        "other/todo      Some todo",
    ]


def test_parent_line_shows_its_progress() -> None:
    (line,) = (line for line in lines_of(*PHASES) if "phase-2 " in line and "Phase" in line)

    assert "Phase 2: Buffer Management (2/3)" in line
    assert "! in progress  phase-2" in line
    assert "    why    sub_plan failed: p/a failed" in lines_of(*PHASES)
    assert final_line(document(*PHASES))[0].startswith("4 done, 1 failed, 1 in progress in")


def test_parent_without_a_title_shows_its_progress() -> None:
    shown = lines_of(parent("p", "p", DONE, Verdict.PASSED), child("p/a"))

    assert any(line.startswith("✓ done  p    (1/1)") for line in shown)


def test_parent_verified_through_its_todos_is_not_unverified() -> None:
    assert not any("not verified" in line for line in lines_of(*PHASES[3:5]))


@pytest.mark.parametrize(
    ("verdict", "own", "expected"),
    [
        (Verdict.FAILED, [], Standing.IN_PROGRESS),
        (Verdict.FAILED, [Verdict.NOT_RUN], Standing.IN_PROGRESS),
        (Verdict.NOT_RUN, [Verdict.PASSED], Standing.IN_PROGRESS),
        (Verdict.NEEDS_HUMAN, [], Standing.IN_PROGRESS),
        (Verdict.PASSED, [Verdict.NEEDS_HUMAN], Standing.NEEDS_HUMAN),
        (Verdict.NOT_RUN, [Verdict.INCONCLUSIVE], Standing.INCONCLUSIVE),
    ],
)
def test_parent_is_in_progress_while_only_its_todos_are_unfinished(
    verdict: Verdict, own: list[Verdict], expected: Standing
) -> None:
    assert standing(parent("p", "P", TESTING, verdict, *own)) is expected


def test_quiet_summary_names_a_parent_by_its_full_id() -> None:
    assert "! in progress phase-2: p/a failed" in lines_of(*PHASES, verbosity=-1)


def test_equally_named_tests_of_two_sub_plans_show_both_tracebacks() -> None:
    longreprs = {(samples.PLAN, todo, "tests[0]"): [("a.py::t", todo)] for todo in ("p/a", "p/b", "q/a")}

    shown = lines_of(*PHASES, longreprs=longreprs, verbosity=1)

    assert [line for line in shown if line in ("p/a", "p/b", "q/a")] == ["p/a", "q/a"]
