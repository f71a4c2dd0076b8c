"""How the summary shows parents and the todos of their sub-plans."""

from __future__ import annotations

from typing import Any

import outcome_samples as samples
import pytest
from outcome_samples import check, document, outcome, screen_text

from planner.model.outcome import Outcome
from planner.model.verdicts import CheckKind, TodoState, Verdict
from pytest_planverify.reports.terminal import final_line, render_summary
from pytest_planverify.reports.words import Standing, standing

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


def summary(*shown: Outcome, width: int = 90, **how: Any) -> list[str]:
    text = screen_text(lambda tw: render_summary(tw, document(*shown), **how), width=width)
    return [line.rstrip() for line in text.splitlines()]


def test_todos_stand_indented_below_the_parents_that_are_shown() -> None:
    columns = [line for line in summary(*PHASES) if line[:1] in ("✓", "✗", "!")]

    assert [line[15:40].rstrip() for line in columns] == [
        "phase-2         Phase 2:",
        "  buffer-tests  Some todo",
        "  buffer-impl   Some todo",
        "  deep          Deep (1/1",
        "    x           Some todo",
        "other/todo      Some todo",
    ]


def test_the_line_of_a_parent_is_its_progress() -> None:
    (line,) = (line for line in summary(*PHASES) if "phase-2 " in line and "Phase" in line)

    assert "Phase 2: Buffer Management (2/3)" in line
    assert "! in progress  phase-2" in line
    assert "    why    sub_plan failed: p/a failed" in summary(*PHASES)
    assert final_line(document(*PHASES))[0].startswith("4 done, 1 failed, 1 in progress in")


@pytest.mark.parametrize("width", [50, 60, 70])
def test_a_narrow_terminal_keeps_the_progress_of_a_parent(width: int) -> None:
    lines = summary(*PHASES, width=width)
    first = next(number for number, line in enumerate(lines) if "in progress" in line)

    assert "(2/3)" in " ".join(lines[first : first + 2])
    assert all(len(line) <= width for line in lines)


def test_a_parent_without_a_title_has_its_progress_all_the_same() -> None:
    shown = summary(parent("p", "p", DONE, Verdict.PASSED), child("p/a"))

    assert any(line.startswith("✓ done  p    (1/1)") for line in shown)


def test_a_parent_that_is_done_through_its_todos_is_not_called_unverified() -> None:
    assert not any("not verified" in line for line in summary(*PHASES[3:5]))


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
def test_a_parent_is_in_progress_while_only_its_todos_keep_it(
    verdict: Verdict, own: list[Verdict], expected: Standing
) -> None:
    assert standing(parent("p", "P", TESTING, verdict, *own)) is expected


def test_quiet_names_a_parent_by_its_whole_id() -> None:
    assert "! in progress phase-2: p/a failed" in summary(*PHASES, verbosity=-1)


def test_tests_of_one_name_in_two_sub_plans_each_show_their_traceback() -> None:
    longreprs = {(samples.PLAN, todo, "tests[0]"): [("a.py::t", todo)] for todo in ("p/a", "p/b", "q/a")}

    shown = summary(*PHASES, longreprs=longreprs, verbosity=1)

    assert [line for line in shown if line in ("p/a", "p/b", "q/a")] == ["p/a", "q/a"]
