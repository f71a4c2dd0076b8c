"""Tests that must turn green or stay green, for each row of the tables in docs/baseline.md."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from baseline_samples import baseline, flat_plan, sha256, write_plan

from planner.model.evidence import Evidence, Selector
from planner.model.journal import CheckRun
from planner.model.outcome import Check, TestResult
from planner.model.plan import Todo
from planner.model.verdicts import CheckKind, EvidenceKind, TestOutcome, Verdict
from planner.planfile.tree import FlatPlan
from planner.policy.criteria import STAY_GREEN, TURN_GREEN
from pytest_planverify.baseline.comparison import NO_BASELINE, Demands
from pytest_planverify.baseline.kept_baseline import KeptBaseline
from pytest_planverify.checks.result import Judgement

AT_BASE = {
    "t.py::green": {"outcome": "passed"},
    "t.py::many[1]": {"outcome": "passed"},
    "t.py::many[2]": {"outcome": "failed"},
    "t.py::red": {"outcome": "failed"},
    "t.py::expected": {"outcome": "xfailed"},
    "t.py::skipped": {"outcome": "skipped"},
    "t.py::flaky": {"outcome": "failed", "flaky": True},
    "u.py::other": {"outcome": "passed"},
    "broken.py": {"outcome": "error"},
}
FILES = {"old.py": {"sha256": "0" * 64, "kind": "test"}}
"""A test file of the baseline without recorded tests and without a stored copy."""


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> FlatPlan:
    return flat_plan(tmp_path_factory.mktemp("plan"))


def judging(flat: FlatPlan, **held: Any) -> Demands:
    """Return the demands on a baseline with these fields."""
    return Demands(flat, KeptBaseline(flat.loaded.root, baseline(**held), path=Path("x")))


def demands(flat: FlatPlan, *, check: str | None = None) -> Demands:
    checks: dict[str, Any] = {} if check is None else {TURN_GREEN: {"verdict": check}}
    return judging(flat, tests=AT_BASE, files=FILES, todos={"t": {"checks": checks}})


def todo(**keys: Any) -> Todo:
    return Todo.model_validate({"id": "t", "title": "T", **keys})


def passed(*names: str) -> dict[str, str]:
    """Return passed tests of ``t.py``."""
    return {f"t.py::{name}": "passed" for name in names}


def run(check_id: str, tests: dict[str, str], verdict: str = "passed") -> CheckRun:
    results = tuple(TestResult(nodeid=name, outcome=TestOutcome(how)) for name, how in tests.items())
    return CheckRun(
        check=Check(id=check_id, kind=CheckKind.TEST, verdict=Verdict(verdict), cmd="pytest", tests=results)
    )


OTHER = {"u.py::other": "passed"}


@pytest.mark.parametrize(
    ("named", "tests", "verdict", "reason"),
    [
        (["t.py::red"], passed("red"), "passed", None),
        (["t.py::expected"], passed("expected"), "passed", None),
        (["new.py::any"], {"new.py::any": "passed"}, "passed", None),
        (["broken.py::any"], {"broken.py::any": "passed"}, "passed", None),
        (["t.py::green"], passed("green"), "inconclusive", "passed at the baseline already"),
        (["t.py::skipped"], passed("skipped"), "inconclusive", "skipped at the baseline"),
        (["t.py::flaky"], passed("flaky"), "inconclusive", "flaky at the baseline"),
        (["old.py::any"], {"old.py::any": "passed"}, "inconclusive", "not run for the baseline"),
        (["t.py::many"], passed("many[1]", "many[2]"), "passed", None),
        (["t.py"], passed("green", "red"), "passed", None),
        (["t.py::red", "t.py::green"], passed("red", "green"), "inconclusive", "green: passed at the"),
        (["t.py::red"], {"t.py::red": "skipped"}, "failed", "t.py::red: must pass, but did not"),
        (["t.py"], {**passed("red"), "t.py::many[1]": "xfailed"}, "failed", "many[1]: must pass, but did"),
        ("all", passed("green", "red"), "passed", None),
        ("all", passed("green") | OTHER, "inconclusive", "all: passed at"),
    ],
)
def test_must_turn_green_follows_its_table(
    flat: FlatPlan, named: Any, tests: dict[str, str], verdict: str, reason: str | None
):
    found = demands(flat).decide(todo(must_turn_green=named), run(TURN_GREEN, tests))
    assert found.check.verdict == verdict
    assert (found.check.reason is None) == (reason is None)
    assert (reason or "") in (found.check.reason or "")
    assert bool(found.evidence) == (verdict == "failed")


def test_wholly_red_criterion_may_turn_green_without_known_tests(flat: FlatPlan):
    asked, tests = todo(must_turn_green=["old.py::any"]), run(TURN_GREEN, {"old.py::any": "passed"})
    assert demands(flat, check="failed").decide(asked, tests).check.verdict is Verdict.PASSED
    assert demands(flat, check="passed").decide(asked, tests).check.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("verdict", ["failed", "flaky", "inconclusive", "not_run", "blocked"])
@pytest.mark.parametrize("check_id", [TURN_GREEN, STAY_GREEN, "tests[0]"])
def test_verdict_other_than_passed_is_not_changed(flat: FlatPlan, check_id: str, verdict: str):
    asked = todo(must_turn_green=["t.py::green"], must_stay_green=["t.py"])
    first = run(check_id, {"t.py::green": "failed"}, verdict)
    assert demands(flat).decide(asked, first) is first


@pytest.mark.parametrize(
    ("keys", "check_id", "verdict", "expected"),
    [
        ({"must_turn_green": ["t.py"]}, TURN_GREEN, "passed", "inconclusive"),
        ({"must_turn_green": ["t.py"]}, TURN_GREEN, "failed", "failed"),
        ({"must_stay_green": ["t.py"]}, STAY_GREEN, "passed", "passed"),
        ({"must_stay_green": ["t.py"]}, STAY_GREEN, "failed", "failed"),
        ({"must_stay_green": "all"}, STAY_GREEN, "passed", "inconclusive"),
        ({"must_stay_green": "all"}, STAY_GREEN, "failed", "inconclusive"),
        ({"must_stay_green": "all"}, STAY_GREEN, "not_run", "not_run"),
    ],
)
def test_only_explicit_ids_are_judged_without_a_baseline(
    flat: FlatPlan, keys: dict[str, Any], check_id: str, verdict: str, expected: str
):
    found = Demands(flat, None).decide(todo(**keys), run(check_id, {"t.py::green": "passed"}, verdict))
    assert found.check.verdict == expected
    assert (found.check.reason == NO_BASELINE) == (expected == "inconclusive")


@pytest.mark.parametrize(
    ("named", "tests", "verdict", "reason"),
    [
        (["t.py::green"], passed("green"), "passed", ""),
        (["t.py"], {**passed("green", "many[1]"), "t.py::red": "failed"}, "passed", ""),
        (["t.py"], passed("green"), "failed", "t.py::many[1]: passed at the baseline, but missing now"),
        (["t.py::green"], {"t.py::green": "skipped"}, "failed", "but not now"),
        (["t.py::green"], {"t.py::green": "xfailed"}, "failed", "but not now"),
        (["t.py::green"], {"t.py::green": "xpassed"}, "passed", ""),
        (["t.py::red"], passed("red"), "inconclusive", "none of its tests passed"),
        (["t.py::flaky"], passed("flaky"), "inconclusive", "none of its tests passed"),
        ("all", passed("green", "many[1]"), "failed", "u.py::other: passed at"),
    ],
)
def test_must_stay_green_follows_its_table(
    flat: FlatPlan, named: Any, tests: dict[str, str], verdict: str, reason: str
):
    found = demands(flat).decide(todo(must_stay_green=named), run(STAY_GREEN, tests))
    assert found.check.verdict == verdict
    assert reason in (found.check.reason or "")
    assert bool(found.evidence) == (verdict == "failed")


def test_renamed_file_keeps_its_tests_and_an_accepted_removal_demands_none(tmp_path: Path):
    flat = flat_plan(tmp_path)
    (tmp_path / "new.py").write_text("same")
    accepted: list[dict[str, Any]] = []
    document: dict[str, Any] = {
        "tests": {
            "old.py::green": {"outcome": "passed"},
            "old.py::red": {"outcome": "failed"},
            "gone.py::green": {"outcome": "passed"},
        },
        "files": {"old.py": {"sha256": sha256(b"same")}, "gone.py": {"sha256": "0" * 64}},
        "accepted": accepted,
    }

    def verdict(check_id: str, tests: dict[str, str], **named: Any) -> tuple[str, str | None]:
        check = judging(flat, **document).decide(todo(**named), run(check_id, tests)).check
        return check.verdict.value, check.reason

    green = {"new.py::green": "passed"}
    assert verdict(STAY_GREEN, green, must_stay_green=["new.py"]) == ("passed", None)
    assert verdict(TURN_GREEN, {"new.py::red": "passed"}, must_turn_green=["new.py::red"])[0] == "passed"
    assert verdict(TURN_GREEN, green, must_turn_green=["new.py::green"])[0] == "inconclusive"
    lost = verdict(STAY_GREEN, green, must_stay_green="all")
    assert lost == ("failed", "gone.py::green: passed at the baseline, but missing now")
    accepted.append({"todo_id": "t", "reason": "r", "at": "", "files": {"gone.py": None}})
    assert verdict(STAY_GREEN, green, must_stay_green="all") == ("passed", None)
    assert verdict(STAY_GREEN, {}, must_stay_green="all")[0] == "failed"


def failing(*tests: str, nodeid: str | None = None, kind: EvidenceKind = EvidenceKind.TEST) -> Evidence:
    return Evidence(kind=kind, tests=tests, nodeid=nodeid, headline="x")


def missing(text: str, problem: str = "missing_id") -> Evidence:
    return Evidence(kind=EvidenceKind.SELECTION, selectors=(Selector(text=text, problem=problem),))


@pytest.mark.parametrize(
    ("evidence", "borne"),
    [
        (failing("t.py::red"), True),
        (failing("t.py::many[2]"), True),
        (failing("t.py::skipped"), True),
        (failing("t.py::flaky"), True),
        (failing("new.py::fresh"), True),
        (failing("t.py::green"), False),
        (failing("t.py::red", "t.py::green"), False),
        (failing("old.py::nobody_knows"), False),
        (failing(nodeid="broken.py", kind=EvidenceKind.COLLECTION), True),
        (failing(nodeid="new.py", kind=EvidenceKind.COLLECTION), True),
        (failing(nodeid="t.py", kind=EvidenceKind.COLLECTION), False),
        (failing(kind=EvidenceKind.SESSION), False),
        (missing("t.py::red"), True),
        (missing("t.py::green"), False),
        (missing("t.py", "empty"), False),
    ],
)
def test_only_failures_of_tests_not_green_at_the_baseline_are_forgiven(
    flat: FlatPlan, evidence: Evidence, borne: bool
):
    asked = todo(must_stay_green=["t.py"])
    view = demands(flat).view(asked, STAY_GREEN)
    assert view is not None
    results = tuple(TestResult(nodeid=name, outcome=TestOutcome.FAILED) for name in evidence.tests)
    red = Judgement(verdict=Verdict.FAILED, tests=results, evidence=(evidence,))
    seen = view(red)
    assert (seen.verdict is Verdict.PASSED, seen.forgiven, seen.evidence == ()) == (borne, borne, borne)
    both = view(replace(red, evidence=(evidence, failing("t.py::green"))))
    assert both.verdict is Verdict.FAILED
    assert not both.forgiven
    assert failing("t.py::green") in both.evidence


@pytest.mark.parametrize(
    ("tests", "verdict"),
    [
        ({"t.py::red": "passed"}, "failed"),  # it is too slow, for example
        ({"t.py::red": "failed", "t.py::green": "not_run"}, "inconclusive"),
    ],
)
def test_failure_of_a_test_is_not_forgiven_if_it_passed_or_others_did_not_run(
    flat: FlatPlan, tests: dict[str, str], verdict: str
):
    view = demands(flat).view(todo(must_stay_green=["t.py"]), STAY_GREEN)
    assert view is not None
    results = run(STAY_GREEN, tests).check.tests
    red = Judgement(verdict=Verdict.FAILED, tests=results, evidence=(failing("t.py::red"),))
    assert view(red).verdict == verdict
    assert view(Judgement(verdict=Verdict.PASSED)).verdict is Verdict.PASSED


def test_only_must_stay_green_forgives_failures(flat: FlatPlan):
    assert demands(flat).view(todo(must_turn_green=["t.py"]), TURN_GREEN) is None
    assert Demands(flat, None).view(todo(must_stay_green="all"), STAY_GREEN) is None


def test_criteria_of_a_sub_plan_apply_to_its_own_root(tmp_path: Path):
    write_plan(tmp_path / "part/plan.yaml", "{id: t, title: T, must_stay_green: all}", plan_id="q")
    whole = flat_plan(tmp_path, "{id: up, title: U, sub_plan: part/plan.yaml}")
    tests = {"part/t.py::green": {"outcome": "passed"}, "t.py::of_the_top": {"outcome": "passed"}}
    beside = judging(whole, tests=tests)
    asked = whole.loaded.plan.todo("up/t")
    assert beside.decide(asked, run(STAY_GREEN, {"t.py::green": "passed"})).check.verdict is Verdict.PASSED
    lost = beside.decide(asked, run(STAY_GREEN, {"t.py::else": "passed"}))
    assert lost.check.reason == "part/t.py::green: passed at the baseline, but missing now"
