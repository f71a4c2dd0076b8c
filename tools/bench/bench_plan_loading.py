"""Loading a plan of as many todos as a plan may have, beside PyYAML's C loader alone for the same text."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import yaml
from table import Row

sys.path.insert(0, str(Path(__file__).parents[2]))

from planner.model.plan import MAX_TODOS
from planner.planfile.loader import load_plan

MOST_TIMES = 4.0


def rows(folder: Path, rounds: int) -> list[Row]:
    """One row: how many times PyYAML's own time the loader takes."""
    path = folder / "plan.yaml"
    text = plan_text()
    path.write_text(text, encoding="utf-8")
    load_plan(path)

    def load() -> None:
        assert len(load_plan(path).plan.items) == MAX_TODOS

    def parse() -> None:
        # Without the collector, which takes longer than the parser: the bound is not met by that alone.
        gc.disable()
        try:
            assert len(yaml.load(text, Loader=yaml.CSafeLoader)["items"]) == MAX_TODOS
        finally:
            gc.enable()

    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(_seconds(load))
        theirs.append(_seconds(parse))
    ratio = statistics.median(ours) / statistics.median(theirs)
    how = f"{statistics.median(ours):.2f} s, yaml.CSafeLoader {statistics.median(theirs):.2f} s"
    name = f"loading a plan of {MAX_TODOS} todos / PyYAML's C loader"
    return [Row(name=name, figure=ratio, unit="x", at_most=MOST_TIMES, from_what=how)]


def plan_text() -> str:
    """The text of the plan."""
    return "todo_list_id: large\nmetadata: {max_branch_depth: 2}\nitems:\n" + "".join(
        map(_todo, range(MAX_TODOS))
    )


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _todo(number: int) -> str:
    needs = f"t{number - 1:05d}" if number % 5 else ""
    package = f"package_{number % 40}"
    return f"""\
- id: t{number:05d}
  title: Module {number} does its part
  intent: >-
    Read the rows of table {number}, check them and hand them on to the next module
    without losing any.
  agent_role: coder
  acceptance_criteria:
    tests:
    - cmd: pytest tests/{package}/test_module_{number}.py::test_values -q --json-report
      timeout_seconds: 20
      fixture: fixtures/module_{number}.json
    - cmd: pytest tests/{package}/test_module_{number}.py::test_columns -q --json-report
      timeout_seconds: 30
    expected_artifacts:
    - src/{package}/module_{number}.py
    - path: out/{package}/module_{number}.json
      min_bytes: 10
    metrics:
    - {{name: rows_min, operator: ">=", value: {number}}}
  allowed_files: ["src/{package}/**", "tests/{package}/**"]
  failure_routing:
    implementation_bug: coder
    spec_mismatch: architect
  dependencies: [{needs}]
  max_retries: 2
  priority: {number}
"""
