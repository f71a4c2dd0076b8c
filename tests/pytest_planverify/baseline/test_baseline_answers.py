"""What several runs of a plan say together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.model.outcome import OutcomeDocument
from planner.planfile.tree import load_tree
from pytest_planverify.baseline import record
from pytest_planverify.baseline.record import BaselineRun, all_records, run_of, todos_of

PLAN = "todo_list_id: p\nitems:\n- {id: t, title: T, verify: pytest t.py}\n"


def run(
    verdict: str, *tests: str, signature: str | None = None, records: tuple[Any, ...] = ()
) -> BaselineRun:
    """One run in which each test of the one check said so, and the check did."""
    failures = [{"category": "TEST_REGRESSION", "check_id": "tests[0]", "signature": signature}]
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
                "failures": failures if signature else [],
            }
        ],
    }
    return BaselineRun(OutcomeDocument.model_validate(document), records)


@pytest.mark.parametrize(
    ("runs", "verdict", "state", "flaky"),
    [
        ([run("passed", "passed")], "passed", "done", False),
        ([run("passed", "passed"), run("passed", "passed")], "passed", "done", False),
        ([run("passed", "passed"), run("failed", "failed")], "flaky", "test_failed", True),
        ([run("failed", "error"), run("passed", "passed")], "flaky", "test_failed", True),
        ([run("failed", "failed"), run("failed", "failed")], "failed", "test_failed", False),
        ([run("failed", "failed"), run("inconclusive", "not_run")], "failed", "test_failed", False),
        ([run("passed", "passed"), run("inconclusive", "not_run")], "inconclusive", "test_failed", False),
        ([run("passed", "passed"), run("flaky", "passed")], "flaky", "test_failed", False),
    ],
)
def test_both_answers_are_flaky_and_a_pass_is_what_passed_each_time(
    tmp_path: Path, runs: list[BaselineRun], verdict: str, state: str, flaky: bool
) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    flat = load_tree(tmp_path / "plan.yaml").load_all().flat()
    ((todo_id, held),) = todos_of(flat, runs)
    assert (todo_id, held.state, held.checks["tests[0]"].verdict) == ("t", state, verdict)
    ((nodeid, test),) = record.tests_of(flat, runs)
    assert (nodeid, test.flaky) == ("t.py::test_0", flaky)


def test_the_failures_of_all_runs_are_known(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    flat = load_tree(tmp_path / "plan.yaml").load_all().flat()
    runs = [run("failed", "failed", signature=name) for name in ("a", "b", "a")]
    ((_, held),) = todos_of(flat, runs)
    assert held.checks["tests[0]"].signatures == ("a", "b")
    assert held.checks["tests[0]"].tests == ("t.py::test_0",)


def test_the_sessions_of_several_runs_are_not_taken_for_one(tmp_path: Path) -> None:
    failed = {"record": "collection_failure", "session": "s1", "pen": "7.0", "nodeid": "t.py::test"}
    runs = [run("passed", records=(failed,)), run("passed", records=(failed, {"record": "x"}))]
    told = all_records(runs)
    assert [each.get("session") for each in told] == ["1/s1", None, "s1"]
    assert [each.get("pen") for each in told] == ["1/7.0", None, "7.0"]
    assert not run_of(runs[0].document, tmp_path).records  # a journal that is gone
    journal = tmp_path / ".planverify" / "runs" / "r" / "journal.jsonl"
    journal.parent.mkdir(parents=True)
    journal.symlink_to(journal)
    assert not run_of(runs[0].document, tmp_path).records
