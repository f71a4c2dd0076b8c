"""Criteria that are no tests become reports that say what the outcome says."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from planner.model.outcome import OutcomeDocument
from pytest_planverify.reports.reporter_session import CriterionResult, criterion_results

RUN = {
    "run_id": "r1",
    "started_at": "2026-01-01T00:00:00Z",
    "finished_at": "2026-01-01T00:00:01Z",
    "duration_ms": 1000,
    "exit_status": 1,
    "scope": "all",
    "python": "3.13",
    "pytest": "9",
}


def results(*checks: dict[str, Any], failures: tuple[dict[str, Any], ...] = ()) -> list[CriterionResult]:
    document = OutcomeDocument.model_validate(
        {
            "plans": [{"todo_list_id": "p", "path": "plans/plan.yaml", "digest": "sha256:0"}],
            "run": RUN,
            "summary": {},
            "outcomes": [
                {
                    "todo_id": "t1",
                    "plan": "p",
                    "success": False,
                    "tests_passed": False,
                    "checks": checks,
                    "failures": failures,
                }
            ],
        }
    )

    owner: Any = SimpleNamespace(root=Path("/project"), path=Path("plan.yaml"))
    relays = {
        (owner.path, "t1", each.id): Path(f"/relay/t1-{each.id}")
        for each in document.outcomes[0].checks
        if each.kind == "test"
    }
    return list(criterion_results(document, {("p", "t1"): owner}, relays))


def check(kind: str, verdict: str, **keys: Any) -> dict[str, Any]:
    return {"id": f"{kind}[0]", "kind": kind, "verdict": verdict, **keys}


def test_a_criterion_is_named_after_plan_todo_and_what_it_checks() -> None:
    found = results(
        check("artifact", "passed", title="out/x.json"),
        check("artifact", "failed", title="out/x.json", id="artifact[1]"),
        check("test", "failed", cmd="pytest a.py::test_x[1]"),
        check("sub_plan", "failed"),
    )

    assert [each.nodeid for each in found] == [
        "plans/plan.yaml::t1::artifact out/x.json",
        "plans/plan.yaml::t1::artifact out/x.json (artifact 1)",
        "plans/plan.yaml::t1::test pytest a.py:test_x(1)",
        "plans/plan.yaml::t1::sub plan sub_plan(0)",
    ]
    assert found[2].relay == "/relay/t1-test[0]"


@pytest.mark.parametrize(
    ("verdict", "keys", "outcomes"),
    [
        ("passed", {"taken_from": "r0"}, ["passed", "passed", "passed"]),
        ("failed", {}, ["passed", "failed", "passed"]),
        ("flaky", {}, ["passed", "failed", "passed"]),
        ("flaky", {"quarantined": "TICKET-1"}, ["skipped", "passed"]),
        *(
            (each, {}, ["skipped", "passed"])
            for each in ("inconclusive", "needs_human", "stale", "blocked", "not_run")
        ),
    ],
)
def test_only_a_passed_criterion_is_reported_as_passed(
    verdict: str, keys: dict[str, Any], outcomes: list[str]
) -> None:
    (found,) = results(check("artifact", verdict, reason="because", **keys))
    assert (("from_run", "r0") in found.own_reports()[0].user_properties) == bool(keys.get("taken_from"))

    assert [report.outcome for report in found.own_reports()] == outcomes


def test_a_failure_has_the_reason_and_what_the_diagnosis_adds() -> None:
    failure = {
        "category": "ARTIFACT_MISSING",
        "check_id": "artifact[0]",
        "stack_trace_head": "out/x.json does not exist",
        "suggestion": "Write out/x.json.",
    }
    (found,) = results(check("artifact", "failed", reason="out/x.json does not exist"), failures=(failure,))

    _, call, _ = found.own_reports()
    assert call.longrepr.reprcrash.message == "out/x.json does not exist"
    assert call.longreprtext == "out/x.json does not exist\n\nARTIFACT_MISSING: Write out/x.json."
    assert call.location == ("plans/plan.yaml", None, "t1.artifact artifact(0)")
    assert call.user_properties == [("todo", "t1"), ("verdict", "failed")]


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        *((each, "passed") for each in ("passed", "xpassed")),
        *((each, "failed") for each in ("failed", "timeout", "crashed", "error")),
        *((each, "skipped") for each in ("skipped", "xfailed", "not_run")),
    ],
)
def test_a_test_that_no_worker_reported_has_the_outcome_of_the_document(outcome: str, told: str) -> None:
    (found,) = results(check("test", "failed", tests=[{"nodeid": "a.py::test_x", "outcome": outcome}]))
    ((nodeid, *rest),) = found.tests

    decisive = found.reports_of_test(nodeid, *rest)[-2]

    assert (decisive.nodeid, decisive.outcome) == ("a.py::test_x", told)
    assert hasattr(decisive, "wasxfail") == outcome.startswith("x")
