"""Sample outcome documents of runs, for the tests of the reports."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any
from unittest import mock

from _pytest._io import TerminalWriter
from sample_documents import run_info

from planner.model.outcome import (
    Check,
    Failure,
    Location,
    Outcome,
    OutcomeDocument,
    OutcomeMetrics,
    PlanRef,
    RunnerUp,
    Summary,
    TestResult,
)
from planner.model.taxonomy import Category, Owner, Repeatability, Role
from planner.model.verdicts import CheckKind, Isolation, TestOutcome, TodoState, Verdict
from planner.planfile.loader import load_plan
from pytest_planverify.reports.terminal import render_summary

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


def data_todo() -> Outcome:
    return outcome(
        "t1_data_integration",
        "Data Integration Adapter",
        TodoState.DONE,
        check(
            "tests[0]",
            cmd="pytest tests/test_adapter.py -q",
            duration_ms=190,
            isolation=Isolation.WORKER,
            tests=results("tests/test_adapter.py", "test_rows", "test_types", "test_order"),
        ),
        check("expected_artifacts[0]", CheckKind.ARTIFACT, title="data/ohlcv.csv", duration_ms=1),
        check("metrics[0]", CheckKind.METRIC, title="rows_min >= 10"),
        recorded={"rows_min": (250,)},
    )


RSI_FILE = "tests/test_indicators.py"
RSI_TESTS = ("test_rsi_values", "test_rsi_bounds", "test_rsi_of_constant_series[14]")
RSI_FAILURE = Failure(
    category=Category.TEST_REGRESSION,
    owner=Owner.PRODUCT,
    repeatability=Repeatability.DETERMINISTIC,
    confidence=0.97,
    rule="assertion-in-test",
    because="an assertion of the test compared a value that the product computed",
    signature="a1b2c3d4e5f6",
    runner_up=RunnerUp(category=Category.SPEC_MISMATCH, confidence=0.02),
    target_agent=Role.CODER,
    check_id="tests[0]",
    top_failing_tests=tuple(f"{RSI_FILE}::{name}" for name in RSI_TESTS),
    tests=tuple(f"{RSI_FILE}::{name}" for name in RSI_TESTS),
    stack_trace_head="AssertionError: assert 32.1 == 28.5 ± 0.1",
    location=Location(path="indicators/rsi.py", line=31, function="compute_rsi"),
    suggestion="compute_rsi returned 32.1 where 28.5 ± 0.1 is expected: look at the smoothing in "
    "indicators/rsi.py:31, and leave the test as it is.",
    rerun="pytest --planverify examples/momentum/plan.yaml::t2_indicators",
)

METRIC_FAILURE = Failure(
    category=Category.METRIC_UNMET,
    owner=Owner.PRODUCT,
    confidence=0.9,
    signature="b1b2c3d4e5f6",
    target_agent=Role.CODER,
    check_id="metrics[0]",
    stack_trace_head="signals recorded 3, must be >= 5",
)


def indicator_todo() -> Outcome:
    return outcome(
        "t2_indicators",
        "Indicator & Candle Patterns",
        TodoState.TEST_FAILED,
        check(
            "tests[0]",
            verdict=Verdict.FAILED,
            cmd="pytest tests/test_indicators.py -q --json-report",
            duration_ms=41,
            isolation=Isolation.WORKER,
            tests=results(RSI_FILE, "test_engulfing", "test_hammer")
            + results(RSI_FILE, *RSI_TESTS, outcome=TestOutcome.FAILED),
        ),
        check(
            "tests[1]",
            CheckKind.COMMAND,
            cmd="ruff check indicators",
            isolation=Isolation.SPAWNED,
            duration_ms=18,
        ),
        check("metrics[0]", CheckKind.METRIC, Verdict.FAILED, title="signals >= 5", reason="3 is not >= 5"),
        verified=True,
        duration_ms=97,
        recorded={"signals": (3,)},
        failure_evidence=RSI_FAILURE,
        failures=(RSI_FAILURE, METRIC_FAILURE),
    )


def blocked_todo(todo_id: str, title: str, *by: str) -> Outcome:
    blocked = check("tests[0]", verdict=Verdict.BLOCKED, cmd="pytest tests/test_entry.py")
    return outcome(todo_id, title, TodoState.BLOCKED, blocked, blocked_by=by, duration_ms=0)


def human_todo() -> Outcome:
    question = "Does the equity curve look right to someone who trades?"
    return outcome(
        "t5_review",
        "Chart review",
        TodoState.TESTING,
        check(
            "tests[0]", cmd="pytest tests/test_chart.py", tests=results("tests/test_chart.py", "test_axes")
        ),
        check("manual[0]", CheckKind.MANUAL, Verdict.NEEDS_HUMAN, title=question),
    )


def inconclusive_todo() -> Outcome:
    reason = "the virtual environment .venv has no python: create it, then run again"
    return outcome(
        "t6_types",
        "Types",
        TodoState.TESTING,
        check("tests[0]", CheckKind.COMMAND, Verdict.INCONCLUSIVE, cmd="mypy indicators", reason=reason),
    )


def narrowed_todo() -> Outcome:
    skipped = check(
        "tests[0]", verdict=Verdict.NOT_RUN, cmd="pytest tests/test_x.py", reason="narrowed by -k rsi"
    )
    return outcome("t7_exit", "Exit rules", TodoState.PENDING, skipped, duration_ms=0)


def vacuous_todo() -> Outcome:
    return outcome(
        "t8_slippage",
        "Slippage model",
        TodoState.TESTING,
        check(
            "tests[0]",
            verdict=Verdict.INCONCLUSIVE,
            cmd="pytest tests/test_slippage.py",
            reason="all 2 tests were skipped (needs a broker): skipped tests prove nothing",
            tests=results("tests/test_slippage.py", "test_a", "test_b", outcome=TestOutcome.SKIPPED),
        ),
    )


def green_document() -> OutcomeDocument:
    test, artifact, _ = data_todo().checks
    return document(
        data_todo(),
        outcome("t2_indicators", "Indicator & Candle Patterns", TodoState.DONE, test),
        outcome("t3_entry", "Entry Strategy", TodoState.DONE, test, duration_ms=95),
        outcome("t4_exit", "Exit & Risk Rules", TodoState.DONE, test, artifact, duration_ms=3120),
    )


def red_document() -> OutcomeDocument:
    return document(
        data_todo(),
        indicator_todo(),
        blocked_todo("t3_entry", "Entry Strategy", "t2_indicators"),
        blocked_todo("t4_exit", "Exit & Risk Rules", "t3_entry", "t2_indicators"),
        exit_status=1,
    )


def mixed_document() -> OutcomeDocument:
    return document(
        data_todo(),
        indicator_todo(),
        blocked_todo("t3_entry", "Entry Strategy", "t2_indicators"),
        human_todo(),
        inconclusive_todo(),
        narrowed_todo(),
        vacuous_todo(),
        exit_status=1,
        notes=(
            "the session ended with exit status 1 though no test failed: coverage of 71 % is below 80 %",
        ),
    )


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
