"""All reports of a run with as many todos as a plan may have."""

from __future__ import annotations

import statistics
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from table import Row

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from outcome_samples import check, document, outcome, results

from planner.model.outcome import Failure, Location, Outcome
from planner.model.plan import MAX_TODOS
from planner.model.taxonomy import Category, Owner, Role
from planner.model.verdicts import TestOutcome, TodoState, Verdict
from pytest_planverify.reports.cases import ReportInput
from pytest_planverify.reports.formats import FORMATS, render

if TYPE_CHECKING:
    from collections.abc import Callable

RED_OF = 7
"""One todo in so many is red."""

MOST_SECONDS = 1.0


def rows(folder: Path, rounds: int) -> list[Row]:
    """One row: the time of all formats together, without loading their libraries."""
    given = ReportInput(document(*map(_todo, range(MAX_TODOS))), {}, {})
    for name in FORMATS:
        render(name, given)
    medians = {
        name: statistics.median(_seconds(partial(render, name, given)) for _ in range(rounds))
        for name in FORMATS
    }
    slowest = max(medians, key=medians.__getitem__)
    how = f"{len(medians)} formats, the slowest {slowest} with {medians[slowest]:.2f} s"
    name = f"all reports of {MAX_TODOS} todos"
    return [Row(name=name, figure=sum(medians.values()), unit="s", at_most=MOST_SECONDS, from_what=how)]


def _todo(number: int) -> Outcome:
    todo_id, path = f"todo-{number}", f"tests/test_{number}.py"
    if number % RED_OF:
        tests = results(path, "test_it", "test_other")
        return outcome(todo_id, f"Todo {number}", TodoState.DONE, check("tests[0]", tests=tests))
    failure = Failure(
        category=Category.TEST_REGRESSION,
        owner=Owner.PRODUCT,
        signature=f"s{number % 50}",
        target_agent=Role.CODER,
        check_id="tests[0]",
        tests=(f"{path}::test_it",),
        stack_trace_head=f"AssertionError: assert {number} == 1",
        location=Location(path=f"shop/part_{number}.py", line=7, function="price"),
        rerun=f"pytest --planverify plan.yaml::{todo_id}",
    )
    tests = results(path, "test_it", outcome=TestOutcome.FAILED)
    return outcome(
        todo_id,
        f"Todo {number}",
        TodoState.TEST_FAILED,
        check("tests[0]", verdict=Verdict.FAILED, tests=tests),
        failure_evidence=failure,
        failures=(failure,),
    )


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
