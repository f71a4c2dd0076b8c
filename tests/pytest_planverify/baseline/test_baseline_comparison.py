"""Comparison of a run with its baseline: tests, failures, checks and todos."""

from hashlib import sha256
from pathlib import Path

import pytest
from baseline_samples import TODO, baseline, flat_plan, write_plan
from outcome_samples import document, outcome, results

from planner.model.evidence import ChangedFile, CommandFact, Evidence, Finding
from planner.model.outcome import Check, Diagnosis, Outcome, TestResult
from planner.model.verdicts import CheckKind, EvidenceKind, Since, TestOutcome, TodoState, Verdict
from planner.testing import create_sample_todo, sample_failure
from pytest_planverify.baseline import record
from pytest_planverify.baseline.comparison import BaselineComparison, count_since
from pytest_planverify.baseline.kept_baseline import KeptBaseline
from pytest_planverify.baseline.record import records_of, todos_of
from pytest_planverify.diagnosis import diagnose

CHECKS = {"tests[0]": {"verdict": "failed", "signatures": ["old"]}, "tests[1]": {"verdict": "passed"}}
TESTS = {
    "t.py::red": {"outcome": "failed"},
    "t.py::green": {"outcome": "passed"},
    "t.py::flaky": {"outcome": "passed", "flaky": True},
    "t.py::skipped": {"outcome": "skipped"},
    "t.py::expected": {"outcome": "xfailed"},
    "broken.py": {"outcome": "error"},
    "part/t.py::red": {"outcome": "failed"},
}
TODOS = {
    "open": {"state": "test_failed", "checks": CHECKS},
    "claimed": {"state": "test_failed", "claimed": True},
    "done": {"state": "done"},
}


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> BaselineComparison:
    root = tmp_path_factory.mktemp("plan")
    write_plan(root / "part/plan.yaml", TODO, plan_id="q")
    flat = flat_plan(root, "{id: up, title: U, sub_plan: part/plan.yaml}")
    held = baseline(tests=TESTS, todos=TODOS, files={"t.py": {"sha256": "0"}})
    return BaselineComparison(flat, KeptBaseline(root, held, path=Path("x")))


def of_a_run(comparison: BaselineComparison) -> BaselineComparison:
    """Return the comparison with a baseline that ``planverify run`` recorded for itself."""
    kept = comparison._kept
    return BaselineComparison(
        comparison._flat, KeptBaseline(kept.root, kept.document, path=kept.path, begins_run=True)
    )


def check(*tests: tuple[str, str], check_id: str = "tests[0]", kind: CheckKind = CheckKind.TEST) -> Check:
    results = tuple(TestResult(nodeid=name, outcome=TestOutcome(said)) for name, said in tests)
    return Check(id=check_id, kind=kind, verdict=Verdict.FAILED, tests=results)


def failing(*tests: str, check_id: str = "tests[0]", nodeid: str | None = None) -> Evidence:
    return Evidence(kind=EvidenceKind.TEST, check_id=check_id, tests=tests, nodeid=nodeid)


def idle(*tests: str) -> Evidence:
    """Return the evidence of a check whose tests were skipped or expected to fail."""
    return Evidence(kind=EvidenceKind.SELECTION, check_id="tests[0]", tests=tests)


def test_todo_and_its_branches_have_the_state_that_the_todo_had_at_the_baseline(
    comparison: BaselineComparison,
):
    todos = [create_sample_todo(name) for name in ("open", "claimed", "done", "new")]
    branch = create_sample_todo("open_branch_01", parent_id="open")
    states = [comparison.todo(each) for each in (*todos, branch)]
    assert states == ["open", "claimed", "done", None, "open"]


def test_each_test_of_a_check_is_compared_with_the_baseline(comparison: BaselineComparison):
    found = comparison.check("open", check(("t.py::red", "failed"), ("t.py::green", "failed")))
    assert [test.since for test in found.tests] == [Since.PRE_EXISTING, Since.NEW]
    assert found.at_base == "mixed"
    assert comparison.check("open", check()).at_base == "red"
    assert comparison.check("open", check(check_id="tests[1]")).at_base == "green"
    assert comparison.check("new", check()).at_base is None
    guard = check(kind=CheckKind.GUARD)
    assert comparison.check("open", guard) is guard


def test_failures_before_an_agent_run_are_the_work_of_their_todo(comparison: BaselineComparison):
    found = of_a_run(comparison).check("open", check(("t.py::red", "failed"), ("t.py::green", "failed")))
    assert found.at_base == "red"
    todos = [create_sample_todo(name) for name in ("claimed", "done")]
    assert [of_a_run(comparison).todo(each) for each in todos] == ["open", "done"]


@pytest.mark.parametrize(
    ("test", "files", "since", "is_known"),
    [
        ("t.py::green", (), "baseline", True),
        ("t.py::green", (), "green", True),
        ("t.py::green", (), "commit", False),  # the work may be committed
        ("t.py::green", ("shop.py",), "baseline", False),
        ("t.py::red", (), "baseline", False),
    ],
)
def test_diagnosis_knows_that_a_test_passed_at_the_baseline_with_the_same_files(
    comparison: BaselineComparison, test: str, files: tuple[str, ...], since: str, is_known: bool
):
    seen: list[bool] = []

    def rules(evidence: Evidence) -> Diagnosis:
        seen.append(evidence.passed_unchanged)
        return diagnose(evidence)

    changed = tuple(ChangedFile(path=path) for path in files)
    evidence = failing(test).model_copy(update={"changed": changed, "changed_since": since})
    comparison.diagnosis(create_sample_todo("open"), evidence, rules)
    assert seen[0] is is_known


def test_tests_of_a_sub_plan_are_looked_up_below_its_root(comparison: BaselineComparison):
    found = comparison.check("up/t", check(("t.py::red", "passed"), ("t.py::green", "failed")))
    assert [test.since for test in found.tests] == [Since.FIXED, Since.NEW]


@pytest.mark.parametrize(("todo_id", "folder"), [("open", ""), ("up/t", "part/")])
def test_findings_in_a_renamed_file_are_those_of_its_former_path(tmp_path: Path, todo_id: str, folder: str):
    write_plan(tmp_path / "part/plan.yaml", TODO, plan_id="q")
    flat = flat_plan(
        tmp_path, TODO.replace("id: t", "id: open"), "{id: up, title: U, sub_plan: part/plan.yaml}"
    )
    (tmp_path / folder / "new.py").write_text("import os\n")
    known = {"verdict": "failed", "signatures": ["old"], "findings": {"old.py: F401 unused import": 1}}
    digest = sha256(b"import os\n").hexdigest()
    todos = {todo_id: {"state": "test_failed", "checks": {"tests[0]": known}}}
    held = baseline(todos=todos, files={f"{folder}old.py": {"sha256": digest}})
    comparison = BaselineComparison(flat, KeptBaseline(tmp_path, held, path=Path("x")))

    def since(*paths: str) -> str:
        found = tuple(Finding(path=path, line=1, code="F401", message="unused import") for path in paths)
        command = CommandFact(argv=("ruff",), tool="ruff", purpose="lint", findings=found)
        evidence = Evidence(kind=EvidenceKind.COMMAND, check_id="tests[0]", command=command)
        ((since, _),) = comparison.parts(todo_id, evidence, "old", ())
        return since

    assert (since("new.py"), since("other.py"), since("new.py", "new.py")) == ("pre_existing", "new", "new")


@pytest.mark.parametrize(
    ("evidence", "signature", "parts"),
    [
        (failing("t.py::green"), "s", [("new", ("t.py::green",))]),
        (failing("t.py::red"), "s", [("pre_existing", ("t.py::red",))]),
        (failing("t.py::flaky"), "s", [("flaky_at_base", ("t.py::flaky",))]),
        (failing("t.py::red", "t.py::flaky"), "s", [("pre_existing", ("t.py::red", "t.py::flaky"))]),
        (failing("t.py::red", "t.py::green"), "s",
         [("new", ("t.py::green",)), ("pre_existing", ("t.py::red",))]),
        (failing("t.py::unknown"), "s", [("unknown", ("t.py::unknown",))]),
        (failing("t.py::unknown"), "old", [("pre_existing", ("t.py::unknown",))]),
        (failing("fresh.py::test"), "old", [("new", ("fresh.py::test",))]),
        (failing("t.py::skipped"), "old", [("new", ("t.py::skipped",))]),
        (idle("t.py::skipped"), "s", [("unknown", ("t.py::skipped",))]),
        (idle("t.py::skipped"), "old", [("pre_existing", ("t.py::skipped",))]),
        (idle("t.py::expected"), "old", [("pre_existing", ("t.py::expected",))]),
        (idle("t.py::green"), "s", [("new", ("t.py::green",))]),
        (failing(nodeid="broken.py"), "s", [("pre_existing", ())]),
        (failing(nodeid="fresh.py"), "old", [("new", ())]),
        (failing(nodeid="t.py"), "old", [("pre_existing", ())]),
        (failing(), "old", [("pre_existing", ())]),
        (failing(), "s", [("new", ())]),
        (failing(check_id="tests[1]"), "s", [("new", ())]),
        (failing(check_id="tests[9]"), "s", [("unknown", ())]),
        (failing("t.py::red", check_id="hygiene"), "s", [("new", ("t.py::red",))]),
        (failing(check_id="allowlist"), "old", [("new", ())]),
    ],
)  # fmt: skip
def test_failure_is_split_by_the_baseline_of_its_tests_or_check(
    comparison: BaselineComparison,
    evidence: Evidence,
    signature: str,
    parts: list[tuple[str, tuple[str, ...]]],
):
    assert comparison.parts("open", evidence, signature, evidence.tests) == parts


def test_each_test_counts_once_and_a_failure_before_a_pass():
    def outcome_of(todo_id: str, *tests: tuple[str, str, Since]) -> Outcome:
        found = check(*(test[:2] for test in tests))
        marked = tuple(
            test.model_copy(update={"since": since})
            for test, (_, _, since) in zip(found.tests, tests, strict=True)
        )
        return outcome(todo_id, "T", TodoState.TEST_FAILED, found.model_copy(update={"tests": marked}))

    counted = count_since(
        [
            outcome_of("a", ("x", "passed", Since.FIXED), ("y", "failed", Since.NEW)),
            outcome_of("b", ("x", "failed", Since.PRE_EXISTING), ("y", "passed", Since.UNKNOWN)),
        ]
    )
    assert counted == {Since.NEW: 1, Since.PRE_EXISTING: 1}


@pytest.mark.parametrize(
    ("verdict", "test", "state", "category", "is_flaky"),
    [
        (Verdict.PASSED, TestOutcome.PASSED, TodoState.DONE, None, False),
        (Verdict.FAILED, TestOutcome.ERROR, TodoState.TEST_FAILED, None, False),
        (Verdict.FLAKY, TestOutcome.PASSED, TodoState.TEST_FAILED, None, False),
        (Verdict.FAILED, TestOutcome.FAILED, TodoState.TEST_FAILED, "FLAKY_TEST", True),
        (Verdict.FAILED, TestOutcome.FAILED, TodoState.TEST_FAILED, "TEST_REGRESSION", False),
    ],
)
def test_todos_and_tests_are_recorded_as_the_run_or_its_confirmation_found_them(
    tmp_path: Path,
    verdict: Verdict,
    test: TestOutcome,
    state: TodoState,
    category: str | None,
    is_flaky: bool,
):
    flat = flat_plan(tmp_path)
    tests = results("t.py", "test", outcome=test)
    found = Check(id="tests[0]", kind=CheckKind.TEST, verdict=verdict, tests=tests)
    of_todo = create_sample_todo("t")
    failures = [sample_failure(of_todo, category, tests=["t.py::test"])] if category else []
    run = document(outcome("t", "T", state, found, plan="p", failures=tuple(failures)))

    ((todo_id, held),) = todos_of(flat, run, {})
    ((nodeid, recorded),) = record.tests_of(flat, run)

    assert (todo_id, held.state, held.checks["tests[0]"].verdict) == ("t", state, verdict)
    assert held.checks["tests[0]"].tests == ("t.py::test",)
    assert (nodeid, recorded.outcome, recorded.flaky) == ("t.py::test", test, is_flaky)


def test_unreadable_journal_has_no_records(tmp_path: Path):
    run = document()
    assert not records_of(run, tmp_path)  # a journal that is gone
    journal = tmp_path / ".planverify" / "runs" / run.run.run_id / "journal.jsonl"
    journal.parent.mkdir(parents=True)
    journal.symlink_to(journal)
    assert not records_of(run, tmp_path)
