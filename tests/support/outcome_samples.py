"""Sample outcome documents of runs, for the tests of the reports."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import yaml
from _pytest._io import TerminalWriter
from sample_documents import run_info

from planner.model.outcome import (
    Check,
    Outcome,
    OutcomeDocument,
    OutcomeMetrics,
    PlanRef,
    Summary,
    TestResult,
)
from planner.model.verdicts import CheckKind, TestOutcome, TodoState, Verdict
from planner.planfile.loader import load_plan
from pytest_planverify.reports.terminal import render_summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.planfile.loader import LoadedPlan

PLAN = "workflow_momentum_001"


def document(*outcomes: Outcome, exit_status: int = 0, **run: Any) -> OutcomeDocument:
    return OutcomeDocument(
        plans=(PlanRef(todo_list_id=PLAN, path="examples/momentum/plan.yaml", digest="sha256:00"),),
        run=run_info(**{"run_id": "r1", "duration_ms": 1240, "exit_status": exit_status, **run}),
        summary=Summary(),
        outcomes=outcomes,
    )


def results(path: str, *names: str, outcome: TestOutcome = TestOutcome.PASSED) -> tuple[TestResult, ...]:
    return tuple(TestResult(nodeid=f"{path}::{name}", outcome=outcome, duration_ms=12) for name in names)


def check(
    id: str, kind: CheckKind = CheckKind.TEST, verdict: Verdict = Verdict.PASSED, **rest: Any
) -> Check:
    return Check(id=id, kind=kind, verdict=verdict, **rest)


def outcome(todo_id: str, title: str, state: TodoState, *checks: Check, **rest: Any) -> Outcome:
    spent = rest.pop("duration_ms", 210)
    done = state is TodoState.DONE
    return Outcome(
        todo_id=todo_id,
        plan=rest.pop("plan", PLAN),
        title=title,
        state=state,
        verified=rest.pop("verified", done),
        success=done,
        tests_passed=done,
        checks=checks,
        metrics=OutcomeMetrics(duration_ms=spent),
        **rest,
    )


DONE_KEYS = ("verified", "success", "tests_passed")
TODOS: dict[str, Outcome] = {
    each["todo_id"]: Outcome.model_validate(
        {"plan": PLAN, **dict.fromkeys(DONE_KEYS, each["state"] == "done"), **each}
    )
    for each in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
}
RSI_FAILURE, METRIC_FAILURE = TODOS["t2_indicators"].failures


def green_document() -> OutcomeDocument:
    data = TODOS["t1_data_integration"]
    test, artifact, _ = data.checks
    return document(
        data,
        outcome("t2_indicators", "Indicator & Candle Patterns", TodoState.DONE, test),
        outcome("t3_entry", "Entry Strategy", TodoState.DONE, test, duration_ms=95),
        outcome("t4_exit", "Exit & Risk Rules", TodoState.DONE, test, artifact, duration_ms=3120),
    )


def red_document() -> OutcomeDocument:
    return document(*list(TODOS.values())[:4], exit_status=1)


def mixed_document() -> OutcomeDocument:
    note = "the session ended with exit status 1 though no test failed: coverage of 71 % is below 80 %"
    shown = (each for name, each in TODOS.items() if name != "t4_exit")
    return document(*shown, exit_status=1, notes=(note,))


def screen_text(
    write: Callable[[TerminalWriter], object],
    *,
    width: int | None = 80,
    color: bool = False,
    encoding: str = "utf-8",
) -> str:
    """Return the output of ``write`` on a terminal of that width; ``None`` for a pipe."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding, newline="\n", write_through=True)
    tw = TerminalWriter(stream)
    tw.hasmarkup = color
    with mock.patch.dict(os.environ, {"COLUMNS": "" if width is None else str(width)}):
        write(tw)
    stream.flush()
    return raw.getvalue().decode(encoding)


def summary(
    shown: OutcomeDocument,
    *,
    width: int | None = 80,
    color: bool = False,
    encoding: str = "utf-8",
    **how: Any,
) -> str:
    """Return the summary of a run as it is printed on a terminal."""
    return screen_text(
        lambda tw: render_summary(tw, shown, **how), width=width, color=color, encoding=encoding
    )


PLAN_TEXT = """\
todo_list_id: workflow_momentum_001
workflow_name: Momentum Strategy with RSI
items:
  - id: t1_data_integration
    title: Data Integration Adapter
    acceptance_criteria:
      tests: [{cmd: pytest tests/test_adapter.py -q}]
      metrics: [{name: rows_min, operator: ">=", value: 10}]
  - id: t2_indicators
    title: Indicator & Candle Patterns
    intent: RSI by Wilder's smoothing
    dependencies: [t1_data_integration]
    allowed_files: ["indicators/**"]
    controller_task_spec: {type: PATCH, target_file: indicators/rsi.py, hint: look at the smoothing}
    acceptance_criteria:
      tests: [{cmd: pytest tests/test_indicators.py -q}, {cmd: ruff check indicators}]
      expected_artifacts: [indicators/rsi.py]
      manual: [{question: Does the chart look right?}]
    contract_path: contracts/indicator_contract.json
"""


def momentum_plan(folder: Path) -> LoadedPlan:
    path = folder / "plan.yaml"
    path.write_text(PLAN_TEXT, encoding="utf-8")
    return load_plan(path, boundary=folder)
