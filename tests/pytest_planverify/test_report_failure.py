from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any

import outcome_samples as samples
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outcome_samples import RSI_FAILURE, momentum_plan

from planner.errors import PlannerError
from planner.model.evidence import (
    ArtifactFact,
    CommandFact,
    ContractFact,
    Evidence,
    EvidenceKind,
    ExceptionFact,
    Finding,
    Frame,
    MetricFact,
    Phase,
    Side,
)
from planner.model.failure_report import FailureReport
from planner.model.outcome import FixtureUse, TodoState, Verdict
from pytest_planverify.reports.comparisons import compared, comparison
from pytest_planverify.reports.failure_report import failure_report, write_failure_report
from pytest_planverify.reports.source_excerpts import LARGEST_FILE, SourceReader

if TYPE_CHECKING:
    from pathlib import Path

    from planner.planfile.loader import LoadedPlan

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
    return FailureReport.model_validate(failure_report(samples.indicator_todo(), facts, plan=plan))


def test_the_report_says_all_that_a_repair_needs(plan: LoadedPlan) -> None:
    found = report(plan, evidence())
    assert (found.schema_version, found.state) == (1, TodoState.TEST_FAILED)
    assert (found.plan.id, found.plan.name, found.plan.path) == (
        samples.PLAN,
        "Momentum Strategy with RSI",
        "plan.yaml",
    )
    assert found.todo.intent == "RSI by Wilder's smoothing"
    assert found.todo.allowed_files == ("indicators/**",)
    assert found.todo.hint == "look at the smoothing"
    assert [category.value for category in found.categories] == ["TEST_REGRESSION", "METRIC_UNMET"]
    assert found.rerun == RSI_FAILURE.rerun
    assert [criterion.verdict for criterion in found.criteria] == [
        Verdict.FAILED,
        Verdict.PASSED,
        Verdict.FAILED,
    ]
    failure = found.failures[0]
    assert failure.diagnosis == RSI_FAILURE
    seen = failure.observations[0]
    assert seen.comparison is not None
    assert (seen.comparison.actual, seen.comparison.expected) == ("32.1", "28.5 ± 0.1")
    assert (seen.stdout_tail, seen.uses_fixtures) == ("rsi is 32.1\n", ("ohlcv",))
    assert [(place.path, place.line) for place in failure.look_at] == [
        ("indicators/rsi.py", 31),
        ("tests/test_indicators.py", 2),
        ("contracts/indicator_contract.json", None),
        ("indicators/rsi.py", None),
    ]


def test_source_is_shown_around_the_raising_frame_and_the_last_own_one(plan: LoadedPlan) -> None:
    inside = report(plan, evidence(exceptions=(raised(TEST_FRAME, RSI_FRAME),)))
    excerpt = inside.failures[0].observations[0].exceptions[0].raised_at
    assert excerpt is not None
    assert (excerpt.first_line, excerpt.line) == (27, 31)
    assert excerpt.lines == tuple(f"line {number}" for number in range(27, 36))
    through = report(plan, evidence()).failures[0].observations[0].exceptions[0]
    assert through.raised_at is None
    assert through.reached_from == excerpt


def test_the_frames_begin_where_the_test_is_called(plan: LoadedPlan) -> None:
    pytest_frame = Frame(path="/lib/_pytest/python.py", line=1, function="runtest", side=Side.FRAMEWORK)
    both = raised(pytest_frame, TEST_FRAME, pytest_frame)
    shown = (
        report(plan, evidence(exceptions=(both, raised(pytest_frame))))
        .failures[0]
        .observations[0]
        .exceptions
    )
    assert shown[0].frames == (TEST_FRAME, pytest_frame)
    assert shown[1].frames == (pytest_frame,)


def test_a_syntax_error_shows_the_line_that_it_names(plan: LoadedPlan) -> None:
    broken = raised(path="indicators/rsi.py", line=2)
    shown = report(plan, evidence(exceptions=(broken,))).failures[0].observations[0].exceptions[0]
    assert shown.raised_at is not None
    assert shown.raised_at.lines[1] == "line 2"


def test_evidence_goes_to_the_failure_that_it_belongs_to(plan: LoadedPlan) -> None:
    metric = evidence(
        None,
        kind=EvidenceKind.METRIC,
        check_id="metrics[0]",
        metric=MetricFact(name="signals", operator=">=", expected=5, recorded=("3",), problem="unmet"),
    )
    stray = evidence("tests/other.py::test_x", check_id="tests[9]")
    found = report(plan, metric, stray, evidence(), evidence())
    assert [len(failure.observations) for failure in found.failures] == [1, 1]
    assert found.failures[1].observations[0].comparison is not None
    assert found.failures[1].observations[0].comparison.expected == "5"
    assert [entry.nodeid for entry in found.further_observations] == ["tests/other.py::test_x"]


def test_the_places_name_findings_artifacts_contracts_and_data(plan: LoadedPlan) -> None:
    outcome = samples.indicator_todo()
    fixture = FixtureUse(path="fixtures/rsi.json", sha256=None)
    checks = (outcome.checks[0].model_copy(update={"fixture": fixture}), *outcome.checks[1:])
    fact = evidence(
        exceptions=(),
        command=CommandFact(
            argv=("ruff",),
            tool="ruff",
            purpose="lint",
            findings=(Finding(path="a.py", line=3, message="unused"), Finding(message="no place")),
        ),
        artifact=ArtifactFact(path="out.json", problem="missing"),
        contract=ContractFact(path="c.json", problem="signature", module_path="b.py", line=9),
    )
    found = failure_report(outcome.model_copy(update={"checks": checks}), [fact], plan=plan)
    places = [(place["path"], place["line"]) for place in found["failures"][0]["look_at"]]
    assert places[1:5] == [("a.py", 3), ("out.json", None), ("b.py", 9), ("fixtures/rsi.json", None)]
    assert found["failures"][0]["fixture"]["path"] == "fixtures/rsi.json"


def test_a_todo_that_the_plan_does_not_know_is_reported_all_the_same(plan: LoadedPlan) -> None:
    unknown = samples.indicator_todo().model_copy(update={"todo_id": "t9", "failure_evidence": None})
    found = failure_report(unknown, [], plan=plan)
    assert found["todo"]["title"] == "Indicator & Candle Patterns"
    assert len(found["failures"]) == 2


def test_text_of_the_run_is_stripped_of_control_sequences(plan: LoadedPlan) -> None:
    text = json.dumps(
        failure_report(samples.indicator_todo(), [evidence(stdout_tail="\x1b[2Jx\u202ey")], plan=plan)
    )
    assert '"stdout_tail": "xy"' in text


def test_secrets_of_the_run_are_taken_out_and_what_names_things_stays(plan: LoadedPlan) -> None:
    said = (
        "PASSWORD=hunter2\n\x1b[31mAuthorization: Bearer abcdef123456\x1b[0m\ncommit 4237bcea260702abcdef"
    )
    command = CommandFact(argv=("x", "--token", "s3cr3t99"), tool="x", purpose="test", output_tail=said)
    data = failure_report(
        samples.indicator_todo(),
        [evidence(stdout_tail=said, headline="token: s3cr3t99", command=command)],
        plan=plan,
        run_id="20260101T000000-ab12",
    )
    text = json.dumps(data)
    assert "hunter2" not in text
    assert "abcdef123456" not in text
    assert "s3cr3t99" not in data["failures"][0]["observations"][0]["headline"]
    seen = data["failures"][0]["observations"][0]["stdout_tail"]
    assert seen.split("\n") == [
        "PASSWORD=[redacted: password]",
        "Authorization: Bearer [redacted: authorization]",
        "commit 4237bcea260702abcdef",
    ]
    assert data["run_id"] == "20260101T000000-ab12"
    assert data["plan"]["digest"] == plan.digest
    assert data["failures"][0]["diagnosis"]["signature"] == RSI_FAILURE.signature


def test_an_option_and_its_secret_are_told_apart_in_an_argument_vector(plan: LoadedPlan) -> None:
    argv = ("x", "--token", "s3cr3t99", "--password=hunter2", "--verbose", "file")
    command = CommandFact(argv=argv, tool="x", purpose="test")
    data = failure_report(samples.indicator_todo(), [evidence(command=command)], plan=plan)
    shown = data["failures"][0]["observations"][0]["command"]["argv"]
    assert shown == [
        "x",
        "--token",
        "[redacted: token]",
        "--password=[redacted: password]",
        "--verbose",
        "file",
    ]


def test_the_file_is_private_complete_and_below_the_root(plan: LoadedPlan) -> None:
    data = failure_report(samples.indicator_todo(), [evidence()], plan=plan)
    path = write_failure_report(data, root=plan.root)
    assert path == plan.root.resolve() / "diagnostics" / "t2_indicators_failure_report.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text(encoding="utf-8")) == data
    assert write_failure_report(data, root=plan.root) == path
    assert {entry.name for entry in path.parent.iterdir()} == {".gitignore", path.name}


@pytest.mark.parametrize("todo_id", ["../../etc/passwd", "a/b", "", "a\n"])
def test_an_id_that_leads_elsewhere_is_refused(tmp_path: Path, todo_id: str) -> None:
    with pytest.raises(PlannerError, match="the report is not written"):
        write_failure_report({"todo": {"id": todo_id}}, root=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_name_may_stand_for_the_id_and_is_checked_like_one(tmp_path: Path) -> None:
    report = {"todo": {"id": "phase/a"}}

    path = write_failure_report(report, root=tmp_path, name="phase__a")

    assert path == tmp_path / "diagnostics/phase__a_failure_report.json"
    assert json.loads(path.read_text()) == report
    with pytest.raises(PlannerError, match="failure report of 'phase/a'"):
        write_failure_report({"todo": {"id": "a"}}, root=tmp_path, name="phase/a")


def test_a_folder_that_is_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (root / "diagnostics").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PlannerError, match="not written through a symbolic link"):
        write_failure_report({"todo": {"id": "t1"}}, root=root)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("path", ["../secret", "link", "folder", "missing", "pipe", "large", "nul\0"])
def test_only_ordinary_files_below_the_root_are_read(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret\n")
    (root / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(root / "pipe")
    with (root / "large").open("wb") as stream:
        stream.truncate(LARGEST_FILE + 1)
    assert SourceReader(root).excerpt(path, 1) is None


def test_an_excerpt_is_cut_at_the_ends_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"one\r\ntwo\x0c\n\tthree \xff" + b"x" * 1000)
    reader = SourceReader(tmp_path)
    excerpt = reader.excerpt("a.py", 1)
    assert excerpt is not None
    assert excerpt.lines[:2] == ("one", "two")
    assert excerpt.lines[2].startswith("    three \ufffdx")
    assert len(excerpt.lines[2]) < 500
    assert "\n" not in excerpt.lines[2]
    assert reader.excerpt("a.py", 4) is None
    assert reader.excerpt("a.py", 0) is None


@pytest.mark.parametrize(
    ("headline", "actual", "operator", "expected"),
    [
        ("AssertionError: assert 32.1 == 28.5 ± 0.1", "32.1", "==", "28.5 ± 0.1"),
        ("assert 'a == b' != 'c'", "'a == b'", "!=", "'c'"),
        (r"assert 'it\'s < x' < 3", r"'it\'s < x'", "<", "3"),
        ("assert f(a == b) is not None", "f(a == b)", "is not", "None"),
        ("assert 3 not in [1, 2]", "3", "not in", "[1, 2]"),
        ("assert {'a': 1} == {'a': 2}", "{'a': 1}", "==", "{'a': 2}"),
        ("AssertionError: too high (assert abs(3) <= 2)", "abs(3)", "<=", "2"),
        ("Failed: DID NOT RAISE ValueError", "nothing was raised", None, "raises ValueError"),
    ],
)
def test_both_sides_of_a_comparison_are_told_apart(
    headline: str, actual: str, operator: str | None, expected: str
) -> None:
    found = compared(headline)
    assert found is not None
    assert (found.actual, found.operator, found.expected) == (actual, operator, expected)


@pytest.mark.parametrize(
    "headline",
    [
        "",
        "ValueError: a == b",
        "assert False",
        "assert 1 < 2 < 3",
        "assert  == 3",
        "assert f(1 == 2)",
        "DID NOT RAISE ",
    ],
)
def test_where_the_sides_would_be_a_guess_there_is_no_comparison(headline: str) -> None:
    assert compared(headline) is None


@given(st.text())
def test_any_headline_can_be_looked_at(headline: str) -> None:
    compared(f"assert {headline}")


def test_facts_are_believed_before_the_headline() -> None:
    unmet = MetricFact(name="rows", operator=">=", expected=10, problem="not_recorded")
    seen = comparison(evidence(metric=unmet))
    assert seen is not None
    assert (seen.actual, seen.operator, seen.expected) == ("nothing recorded", ">=", "10")
    digest = ArtifactFact(path="a", problem="sha256", expected="00", actual=None)
    seen = comparison(evidence(artifact=digest))
    assert seen is not None
    assert (seen.actual, seen.expected) == ("sha256", "00")
