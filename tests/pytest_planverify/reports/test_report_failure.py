"""Details of a failure in reports, and the causes to fix first."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from textwrap import dedent
from typing import Any

import outcome_samples as samples
import pytest
from outcome_samples import PLAN, RSI_FAILURE, momentum_plan

from planner.errors import FileWriteError
from planner.model.evidence import CommandFact, Evidence, ExceptionFact, Frame, MetricFact
from planner.model.outcome import Cause, CauseTodo, FailureReport, Location, PlanRef, TestResult
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind, Phase, Side, TestOutcome, TodoState, Verdict
from planner.planfile.loader import LoadedPlan
from pytest_planverify.reports.failure_report import MOST_EVIDENCE, failure_report, write_failure_report

RSI_SOURCE = "".join(f"line {number}\n" for number in range(1, 40))
TEST_SOURCE = "def test_rsi_values():\n    assert compute_rsi() == 28.5\n"
TEST_FRAME = Frame(path="tests/test_indicators.py", line=2, function="test_rsi_values", side=Side.TEST)
RSI_FRAME = Frame(path="indicators/rsi.py", line=31, function="compute_rsi", side=Side.PRODUCT)
LIBRARY_FRAME = Frame(path="/usr/lib/python3/json.py", line=5, function="loads", side=Side.STDLIB)


@pytest.fixture
def plan(tmp_path: Path) -> LoadedPlan:
    for path, text in (("indicators/rsi.py", RSI_SOURCE), ("tests/test_indicators.py", TEST_SOURCE)):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text)
    return momentum_plan(tmp_path)


def evidence(nodeid: str | None = "tests/test_indicators.py::test_rsi_values", **rest: Any) -> Evidence:
    fields: dict[str, Any] = {
        "kind": EvidenceKind.TEST,
        "check_id": "tests[0]",
        "phase": Phase.CALL,
        "nodeid": nodeid,
        "headline": "AssertionError: assert 32.1 == 28.5 ± 0.1",
        "exceptions": (raised(TEST_FRAME, RSI_FRAME, LIBRARY_FRAME),),
        "stdout_tail": "rsi is 32.1\n",
        "fixtures": ("ohlcv",),
    }
    return Evidence(**(fields | rest))


def raised(*frames: Frame, **rest: Any) -> ExceptionFact:
    return ExceptionFact(type="AssertionError", qualified="builtins.AssertionError", frames=frames, **rest)


def report(plan: LoadedPlan, *facts: Evidence) -> FailureReport:
    return FailureReport.model_validate(failure_report(samples.TODOS["t2_indicators"], facts, plan=plan))


def test_report_contains_failures_and_evidence_unchanged(plan: LoadedPlan) -> None:
    found = report(plan, evidence())
    assert (found.schema_version, found.state) == (1, TodoState.TEST_FAILED)
    assert found.plan == PlanRef(todo_list_id=samples.PLAN, path="plan.yaml", digest=plan.digest)
    todo = found.todo
    assert (todo.allowed_files, todo.hint) == (("indicators/**",), "look at the smoothing")
    assert todo.intent == "RSI by Wilder's smoothing"
    assert [failure.category.value for failure in found.failures] == ["TEST_REGRESSION", "METRIC_UNMET"]
    assert [check.verdict for check in found.checks] == [Verdict.FAILED, Verdict.PASSED, Verdict.FAILED]
    assert found.failures[0] == RSI_FAILURE
    assert found.evidence == (evidence(),)


def test_source_excerpts_show_the_location_and_the_test(plan: LoadedPlan) -> None:
    found = report(plan, evidence())
    assert [(each.path, each.line, each.first_line) for each in found.excerpts] == [
        ("indicators/rsi.py", 31, 23),
        ("tests/test_indicators.py", 2, 1),
    ]
    assert found.excerpts[0].lines == tuple(f"line {number}" for number in range(23, 35))


def test_equal_evidence_is_listed_once_and_unrelated_evidence_last(plan: LoadedPlan) -> None:
    metric = evidence(
        None,
        kind=EvidenceKind.METRIC,
        check_id="metrics[0]",
        metric=MetricFact(name="signals", operator=">=", expected=5, recorded=("3",), problem="unmet"),
    )
    stray = evidence("tests/other.py::test_x", check_id="tests[9]")
    found = report(plan, metric, stray, evidence(), evidence())
    assert found.evidence == (evidence(), metric, stray)
    own = [evidence(stdout_tail=str(number)) for number in range(2 * MOST_EVIDENCE)]
    assert report(plan, *own, stray).evidence == (*own[:MOST_EVIDENCE], stray)


def test_only_red_tests_of_a_criterion_are_named(plan: LoadedPlan) -> None:
    green = TestResult(nodeid="tests/a.py::b", outcome=TestOutcome.PASSED)
    outcome = samples.TODOS["t2_indicators"]
    first = outcome.checks[0]
    checks = (first.model_copy(update={"tests": (*first.tests, green)}), *outcome.checks[1:])
    found = failure_report(outcome.model_copy(update={"checks": checks}), [], plan=plan)
    assert "tests/a.py::b" not in json.dumps(found)


def test_secrets_are_redacted_but_identifiers_are_kept(plan: LoadedPlan) -> None:
    argv = ("x", "--token", "s3cr3t99", "--password=hunter2", "--verbose", "file")
    command = CommandFact(argv=argv, tool="x", purpose="test", output_tail="PASSWORD=hunter2")
    lines = (
        "PASSWORD=hunter2",
        "\x1b[31mAuthorization: Bearer abcdef123456\x1b[0m",
        "commit 4237bcea260702",
    )
    found = evidence(stdout_tail="\n".join(lines), headline="token: s3cr3t99", command=command)
    data = failure_report(samples.TODOS["t2_indicators"], [found], plan=plan, run_id="20260101T000000-ab12")

    text = json.dumps(data)
    assert not [secret for secret in ("hunter2", "abcdef123456", "s3cr3t99") if secret in text]
    seen = data["evidence"][0]
    assert seen["stdout_tail"].split("\n") == [
        "PASSWORD=[redacted: password]",
        "Authorization: Bearer [redacted: authorization]",
        "commit 4237bcea260702",
    ]
    shown = ["x", "--token", "[redacted: token]", "--password=[redacted: password]", "--verbose", "file"]
    assert seen["command"]["argv"] == shown
    assert data["run_id"] == "20260101T000000-ab12"
    assert data["plan"]["digest"] == plan.digest
    assert data["failures"][0]["signature"] == RSI_FAILURE.signature


def test_report_file_is_private_complete_below_the_root_and_in_utf8(
    plan: LoadedPlan,
) -> None:
    data = failure_report(samples.TODOS["t2_indicators"], [evidence()], plan=plan)
    path = write_failure_report(data, root=plan.root, name="t2_indicators")
    assert path == plan.root / "diagnostics" / "t2_indicators_failure_report.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text(encoding="utf-8")) == data
    assert write_failure_report(data, root=plan.root, name="t2_indicators") == path
    assert {entry.name for entry in path.parent.iterdir()} == {".gitignore", path.name}
    odd = evidence("test_\udce9.py::test_x", tests=("test_\udce9.py::test_x",))
    not_utf8 = failure_report(samples.TODOS["t2_indicators"], [odd], plan=plan)
    path = write_failure_report(not_utf8, root=plan.root, name="t2")
    assert "test_\N{REPLACEMENT CHARACTER}.py::test_x" in path.read_text("utf-8")


def test_existing_folder_for_reports_gets_no_gitignore_and_must_not_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "diagnostics").mkdir()
    path = write_failure_report({}, root=tmp_path, name="a")
    assert list(path.parent.iterdir()) == [path]
    (tmp_path / "root").mkdir()
    (tmp_path / "root/diagnostics").symlink_to(tmp_path / "diagnostics")
    with pytest.raises(FileWriteError, match="leads out of the plan's root; remove the link"):
        write_failure_report({}, root=tmp_path / "root", name="b")
    assert list(path.parent.iterdir()) == [path]


SIGNATURE = str(RSI_FAILURE.signature)


def cause(rank: int, *todos: str, **more: Any) -> Cause:
    fields: dict[str, Any] = {
        "rank": rank,
        "signatures": (f"{rank:012x}",),
        "category": Category.TEST_REGRESSION,
        "owner": Owner.PRODUCT,
        "headline": "KeyError: 'price'",
        "location": Location(path="shop/prices.py", line=12, function="price"),
        "todos": tuple(CauseTodo(todo_id=todo, plan=PLAN, tests=5) for todo in todos),
        "tests": 5 * len(todos),
        "because": "nothing else is hidden behind it",
    }
    return Cause(**(fields | more))


SYNTAX = cause(
    1,
    *(f"t{number}" for number in range(12)),
    category=Category.COMPILATION_ERROR,
    headline="SyntaxError: expected ':'",
    location=Location(path="shop/tax.py", line=3),
    tests=1_700,
    because="what rests on it could not be loaded, which hides whatever else is wrong there",
)


def shown(*causes: Cause, **how: Any) -> str:
    document = samples.red_document().model_copy(update={"causes": causes})
    text = samples.summary(document, **how)
    start = text.find("fix first")
    return text[start : text.rindex("\n=")] if start >= 0 else ""


def test_one_broken_module_is_one_cause_with_1700_consequences() -> None:
    assert shown(SYNTAX, cause(2, "t3")) == dedent("""\
        fix first 1  COMPILATION_ERROR  shop/tax.py:3  1700 tests in 12 todos
                     SyntaxError: expected ':'
                     what rests on it could not be loaded, which hides whatever else is
                     wrong there
        then      2  TEST_REGRESSION  shop/prices.py:12  5 tests in 't3'
                     KeyError: 'price'
                     nothing else is hidden behind it
    """)


def test_causes_already_shown_by_their_todos_and_repeated_reasons_for_their_order_are_omitted() -> None:
    assert shown() == shown(cause(1, "t3")) == ""
    text = shown(cause(1, "t1"), cause(2, "t2"), cause(3, "t3", because="other"), cause(4, "t4"))
    assert text.count("nothing else is hidden behind it") == 2


def test_further_causes_are_shown_only_when_verbose() -> None:
    many = [cause(rank, "t3") for rank in range(1, 13)]
    text = shown(*many)
    assert "and 8 causes more; -v shows them" in text
    assert text.count("then") == 3
    assert "\nthen      12  " in shown(*many, verbosity=1)
    bare = cause(1, "a", "b", location=None, headline="", because="", tests=0)
    assert shown(bare) == "fix first 1  TEST_REGRESSION  in 2 todos\n"


def test_report_lists_the_causes_of_its_failures(plan: LoadedPlan) -> None:
    own, other = cause(2, "t2_indicators", signatures=("0" * 12, SIGNATURE)), cause(3, "other")
    data = failure_report(samples.TODOS["t2_indicators"], [], plan=plan, causes=(own, other))
    assert FailureReport.model_validate(data).causes == (own,)
