"""Which criteria answer for what was reached for, and what it makes of their verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.evidence import EvidenceKind
from planner.model.outcome import TestOutcome, TestResult, Verdict
from planner.model.taxonomy import Category
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.guards.sandbox import MOST_EVENTS, hold
from pytest_planverify.judgement import Judgement

NODEID = "tests/test_a.py::test_a"
FILES = {"tests/test_a.py", "tests/test_b.py"}


def record(**facts: Any) -> dict[str, Any]:
    plain = {"event": "connect", "target": "example.org:443", "nodeid": None, "path": None, "phase": None}
    return {**plain, "denied": True, "count": 1, "keys": [], **facts}


def held(
    *records: dict[str, Any],
    verdict: Verdict = Verdict.PASSED,
    nodeids: frozenset[str] = frozenset({NODEID}),
) -> Judgement:
    test = TestResult(nodeid=NODEID, outcome=TestOutcome.PASSED)
    judgement = Judgement(verdict=verdict, tests=(test,), doubt="other tests changed something")
    return hold(
        judgement,
        records,
        key="plan::t::tests[0]",
        check_id="tests[0]",
        nodeids=nodeids,
        names=lambda path: path in ("tests", "tests/test_a.py"),
        test_files=FILES,
    )


@pytest.mark.parametrize(
    ("facts", "concerns"),
    [
        ({"nodeid": NODEID}, True),
        ({"nodeid": "tests/test_a.py::test_b"}, False),
        (
            {
                "nodeid": "tests/test_b.py::test_b",
                "keys": ["plan::t::tests[0]"],
                "path": "tests/conftest.py",
            },
            True,
        ),
        ({"path": "tests/test_a.py"}, True),
        ({"path": "tests/test_b.py"}, False),
        ({"path": "conftest.py"}, True),
        ({"path": "tests/conftest.py"}, True),
        ({"path": "tests/below/conftest.py"}, False),
        ({"path": "product/start.py"}, True),
        ({}, True),
    ],
)
def test_a_criterion_answers_for_its_tests_and_for_what_they_load(facts: dict[str, Any], concerns: bool):
    assert held(record(**facts)).is_red is concerns
    assert len(held(record(**facts, denied=False)).events) == concerns
    assert not held(record(**facts, denied=False)).is_red


def test_before_any_test_is_known_the_names_of_files_decide():
    assert held(record(path="tests/conftest.py"), nodeids=frozenset()).is_red
    assert not held(record(path="other/conftest.py"), nodeids=frozenset()).is_red
    assert held(record(path="tests/test_a.py"), nodeids=frozenset()).is_red
    assert not held(record(path="tests/test_b.py"), nodeids=frozenset()).is_red


def test_what_was_denied_fails_the_criterion_and_keeps_what_its_tests_said():
    judgement = held(record(nodeid=NODEID, count=2), record(nodeid=NODEID, count=3, pid=2))

    assert judgement.verdict is Verdict.FAILED
    assert judgement.doubt is None
    assert [test.outcome for test in judgement.tests] == [TestOutcome.PASSED]
    (event,) = judgement.events
    assert (event.count, event.denied) == (5, True)
    (evidence,) = judgement.evidence
    assert (evidence.kind, evidence.tests) == (EvidenceKind.SANDBOX, (NODEID,))
    assert evidence.headline == f"{NODEID} reached for example.org:443, which the plan denies"
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
