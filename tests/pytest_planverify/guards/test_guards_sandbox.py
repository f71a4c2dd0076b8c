"""What was accessed and denied fails the criterion whose worker did it."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.outcome import TestResult
from planner.model.taxonomy import Category
from planner.model.verdicts import EvidenceKind, TestOutcome, Verdict
from pytest_planverify.checks.result import Judgement
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.guards.sandbox import MOST_EVENTS, hold

NODEID = "tests/test_a.py::test_a"


def record(**facts: Any) -> dict[str, Any]:
    plain = {"event": "connect", "target": "example.org:443", "nodeid": None, "path": None, "phase": None}
    return {**plain, "denied": True, "count": 1, **facts}


def held(
    *records: dict[str, Any],
    verdict: Verdict = Verdict.PASSED,
) -> Judgement:
    test = TestResult(nodeid=NODEID, outcome=TestOutcome.PASSED)
    judgement = Judgement(verdict=verdict, tests=(test,))
    return hold(judgement, records, check_id="tests[0]", nodeids={NODEID})


@pytest.mark.parametrize(
    ("facts", "nodeid", "path"),
    [
        ({"nodeid": NODEID, "path": "tests/test_a.py"}, NODEID, None),
        ({"nodeid": "tests/test_a.py::test_b", "path": "tests/conftest.py"}, None, "tests/conftest.py"),
        ({"path": "product/start.py"}, None, "product/start.py"),
        ({}, None, None),
    ],
    ids=["its test", "left out", "an import", "nobody's"],
)
def test_a_criterion_answers_for_all_that_its_worker_reached_for(
    facts: dict[str, Any], nodeid: str | None, path: str | None
):
    denied, recorded = held(record(**facts)), held(record(**facts, denied=False))

    assert (denied.verdict, recorded.verdict) == (Verdict.FAILED, Verdict.PASSED)
    for judgement in (denied, recorded):
        assert [(event.nodeid, event.path) for event in judgement.events] == [(nodeid, path)]


def test_what_was_denied_fails_the_criterion_and_keeps_what_its_tests_said():
    judgement = held(record(nodeid=NODEID, count=2), record(nodeid=NODEID, count=3, pid=2))

    assert judgement.verdict is Verdict.FAILED
    assert [test.outcome for test in judgement.tests] == [TestOutcome.PASSED]
    (event,) = judgement.events
    assert (event.count, event.denied) == (5, True)
    (evidence,) = judgement.evidence
    assert (evidence.kind, evidence.tests) == (EvidenceKind.SANDBOX, (NODEID,))
    assert evidence.headline == f"{NODEID} accessed example.org:443, which the plan denies"
    diagnosis = diagnose(evidence)
    assert diagnosis.category is Category.SANDBOX_VIOLATION


def test_what_was_left_out_of_the_run_stays_not_run():
    judgement = held(record(nodeid=NODEID), verdict=Verdict.NOT_RUN)

    assert judgement.verdict is Verdict.NOT_RUN
    assert judgement.events[0].denied


def test_only_so_many_events_are_told_the_denied_ones_first():
    many = [record(nodeid=NODEID, target=str(number), denied=number == 99) for number in range(100)]
    judgement = held(*many)

    assert len(judgement.events) == MOST_EVENTS
    assert judgement.events[0].target == "99"
    assert "and 1 more" in str(
        held(record(nodeid=NODEID), record(nodeid=NODEID, event="write", target="/x")).reason
    )
