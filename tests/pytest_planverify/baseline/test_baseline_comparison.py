"""Comparison of a run with its baseline: tests, failures, checks and todos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.model.baseline import Baseline
from planner.model.evidence import Evidence
from planner.model.outcome import Check, Outcome, OutcomeDocument, TestResult
from planner.model.verdicts import CheckKind, EvidenceKind, Since, TestOutcome, Verdict
from planner.planfile.tree import load_tree
from pytest_planverify.baseline import record
from pytest_planverify.baseline.comparison import BaselineComparison, count_since
from pytest_planverify.baseline.kept_baseline import KeptBaseline
from pytest_planverify.baseline.record import BaselineRun, run_of, todos_of

CHECKS = {
    "tests[0]": {"verdict": "failed", "signatures": ["old"]},
    "tests[1]": {"verdict": "passed"},
}
TESTS = {
    "t.py::red": {"outcome": "failed"},
    "t.py::green": {"outcome": "passed"},
    "t.py::flaky": {"outcome": "passed", "flaky": True},
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
    (root / "part").mkdir()
    (root / "plan.yaml").write_text(
        "todo_list_id: p\nitems:\n- {id: up, title: U, sub_plan: part/plan.yaml}\n"
    )
    (root / "part" / "plan.yaml").write_text(
        "todo_list_id: q\nitems:\n- {id: t, title: T, verify: pytest t.py}\n"
    )
    files = {"t.py": {"sha256": "0", "size": 1}}
    fields: dict[str, Any] = {"plan": "p", "plan_digest": "", "made_at": "", "python": "", "pytest": ""}
    held = Baseline.model_validate({**fields, "tests": TESTS, "todos": TODOS, "files": files})
    flat = load_tree(root / "plan.yaml").load_all().flat()
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


@pytest.mark.parametrize("todo_id", ["open", "claimed", "done", "new"])
def test_state_of_a_todo_at_the_baseline_is_reported(comparison: BaselineComparison, todo_id: str) -> None:
    assert comparison.todo(todo_id) == (None if todo_id == "new" else todo_id)


def test_each_test_of_a_check_is_compared_with_the_baseline(comparison: BaselineComparison) -> None:
    found = comparison.check("open", check(("t.py::red", "failed"), ("t.py::green", "failed")))
    assert [test.since for test in found.tests] == [Since.PRE_EXISTING, Since.NEW]
    assert found.at_base == "mixed"
    assert comparison.check("open", check()).at_base == "red"
    assert comparison.check("open", check(check_id="tests[1]")).at_base == "green"
    assert comparison.check("new", check()).at_base is None
    guard = check(kind=CheckKind.GUARD)
    assert comparison.check("open", guard) is guard


def test_failures_before_an_agent_run_are_the_work_of_their_todo(comparison: BaselineComparison) -> None:
    found = of_a_run(comparison).check("open", check(("t.py::red", "failed"), ("t.py::green", "failed")))
    assert found.at_base == "red"
    assert [of_a_run(comparison).todo(name) for name in ("claimed", "done")] == ["open", "done"]


def test_tests_of_a_sub_plan_are_looked_up_below_its_root(comparison: BaselineComparison) -> None:
    found = comparison.check("up/t", check(("t.py::red", "passed"), ("t.py::green", "failed")))
    assert [test.since for test in found.tests] == [Since.FIXED, Since.NEW]


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
) -> None:
    assert comparison.parts("open", evidence, signature, evidence.tests) == parts


def test_each_test_counts_once_and_a_failure_before_a_pass() -> None:
    def outcome(todo_id: str, *tests: tuple[str, str, str]) -> Outcome:
        results = tuple(
            TestResult(nodeid=name, outcome=TestOutcome(said), since=Since(since))
            for name, said, since in tests
        )
        held = Check(id="tests[0]", kind=CheckKind.TEST, verdict=Verdict.FAILED, tests=results)
        return Outcome(todo_id=todo_id, plan="p", success=False, tests_passed=False, checks=(held,))

    counted = count_since(
        [
            outcome("a", ("x", "passed", "fixed"), ("y", "failed", "new")),
            outcome("b", ("x", "failed", "pre_existing"), ("y", "passed", "unknown")),
        ]
    )
    assert counted == {Since.NEW: 1, Since.PRE_EXISTING: 1}


PLAN = "todo_list_id: p\nitems:\n- {id: t, title: T, verify: pytest t.py}\n"


def run(verdict: str, *tests: str) -> BaselineRun:
    """Return a run of one check with this verdict, and one test per outcome."""
    document: dict[str, Any] = {
        "plans": [],
        "summary": {"todos": {}, "criteria": {}},
        "run": {
            "run_id": "r",
            "started_at": "",
            "finished_at": "",
            "duration_ms": 0,
            "exit_status": 0,
            "scope": "all",
            "python": "",
            "pytest": "",
        },
        "outcomes": [
            {
                "todo_id": "t",
                "success": verdict == "passed",
                "tests_passed": False,
                "state": "done" if verdict == "passed" else "test_failed",
                "checks": [
                    {
                        "id": "tests[0]",
                        "kind": "test",
                        "verdict": verdict,
                        "tests": [
                            {"nodeid": f"t.py::test_{number}", "outcome": said}
                            for number, said in enumerate(tests)
                        ],
                    }
                ],
            }
        ],
    }
    return BaselineRun(OutcomeDocument.model_validate(document), ())


@pytest.mark.parametrize(
    ("recorded", "verdict", "state", "flaky"),
    [
        (run("passed", "passed"), "passed", "done", False),
        (run("failed", "error"), "failed", "test_failed", False),
        (run("flaky", "passed"), "flaky", "test_failed", False),
    ],
)
def test_todos_and_tests_are_recorded_as_the_run_found_them(
    tmp_path: Path, recorded: BaselineRun, verdict: str, state: str, flaky: bool
) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    flat = load_tree(tmp_path / "plan.yaml").load_all().flat()
    ((todo_id, held),) = todos_of(flat, recorded.document)
    assert (todo_id, held.state, held.checks["tests[0]"].verdict) == ("t", state, verdict)
    assert held.checks["tests[0]"].tests == ("t.py::test_0",)
    ((nodeid, test),) = record.tests_of(flat, recorded.document)
    assert (nodeid, test.flaky) == ("t.py::test_0", flaky)


def test_unreadable_journal_has_no_records(tmp_path: Path) -> None:
    document = run("passed").document
    assert not run_of(document, tmp_path).records  # a journal that is gone
    journal = tmp_path / ".planverify" / "runs" / "r" / "journal.jsonl"
    journal.parent.mkdir(parents=True)
    journal.symlink_to(journal)
    assert not run_of(document, tmp_path).records
