"""Confirmation of failures: which commands are rerun, how often, and the resulting verdict."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from planner.model.evidence import Evidence, ExceptionFact, Frame, Selector
from planner.model.outcome import Check, TestResult
from planner.model.plan import Quarantine
from planner.model.verdicts import CheckKind, EvidenceKind, Side, TestOutcome, Verdict
from pytest_planverify.checks.chance import depends_on_chance
from pytest_planverify.checks.result import Judgement
from pytest_planverify.session import confirm as module
from pytest_planverify.session.check_runs import quarantine_of
from pytest_planverify.session.confirm import confirm, is_worth_confirming

PLAIN = "def test_it():\n    assert total() == 3\n"


IN_THE_TEST = Frame(path="test_a.py", line=2, function="test_it", side=Side.TEST)


def error(*frames: Frame, name: str = "AssertionError") -> ExceptionFact:
    return ExceptionFact(type=name, qualified=f"builtins.{name}", frames=frames)


def failure(headline: str = "assert 1 == 3", **more: Any) -> Evidence:
    usual = {"kind": EvidenceKind.TEST, "check_id": "tests[0]", "exceptions": (error(IN_THE_TEST),)}
    return Evidence(headline=headline, **(usual | more))


def red(headline: str = "assert 1 == 3", **more: Any) -> Judgement:
    return Judgement(verdict=Verdict.FAILED, evidence=(failure(headline, **more),))


def green() -> Judgement:
    return Judgement(verdict=Verdict.PASSED)


def again(*judgements: Judgement) -> Mock:
    """Return a rerun that returns the given judgements in order and counts its calls."""
    return Mock(side_effect=judgements)


@pytest.fixture
def settle(tmp_path: Path) -> Callable[..., Judgement]:
    def run(first: Judgement, rerun: Mock, *, text: str = PLAIN, **more: Any) -> Judgement:
        (tmp_path / "test_a.py").write_text(text)
        return confirm(first, rerun, most=4, root=tmp_path, **more)

    return run


def test_different_result_on_rerun_is_flaky_and_keeps_the_first_evidence(settle: Callable[..., Judgement]):
    settled = settle(red("the first"), again(green()), company=True)
    assert (settled.verdict, settled.runs, settled.reds) == (Verdict.FLAKY, 2, 1)
    assert settled.reason == "passed and failed on the same code: failed 1 of 2 times"
    (evidence,) = settled.evidence
    assert evidence.headline == "the first"
    runs = [(each.where, each.passed) for each in evidence.confirmations]
    assert runs == [("company", False), ("alone", True)]


@pytest.mark.parametrize(
    "line",
    ["random.random()", "time.time()", "list({1, 2})", "hash('a')", "uuid.uuid4()", "Thread(target=f)"],
)
def test_failure_in_random_code_is_rerun_more_often(line: str, settle: Callable[..., Judgement]):
    rerun = again(red(), red(), green(), red())
    settled = settle(red(), rerun, text=f"def test_it():\n    assert f({line})\n")
    assert (settled.verdict, settled.runs, settled.reds) == (Verdict.FLAKY, 4, 3)
    assert rerun.call_count == 3


@pytest.mark.parametrize(
    "second",
    [red(timed_out=True), Judgement(verdict=Verdict.INCONCLUSIVE), Judgement(verdict=Verdict.NOT_RUN)],
    ids=["ran into its limit", "inconclusive", "not run"],
)
def test_rerun_without_a_result_keeps_the_verdict(second: Judgement, settle: Callable[..., Judgement]):
    settled = settle(red(), again(second))
    assert (settled.verdict, settled.runs, settled.reds) == (Verdict.FAILED, 1, 1)
    assert settled.reason == "seen once; the confirmation gave no result"


LUCK_AND_PLAIN = "def test_luck(): assert random.random() > 2\ndef test_plain(): assert 1 == 2\n"
BOTH_FAILED = {"test_luck": "failed", "test_plain": "failed"}


def ran(**outcomes: str) -> Judgement:
    """Return the judgement of a run with these test outcomes, and evidence of the failed tests."""
    tests = tuple(
        TestResult(nodeid=f"test_a.py::{name}", outcome=TestOutcome(outcome))
        for name, outcome in outcomes.items()
    )
    red = [each.nodeid for each in tests if each.outcome.is_red]
    evidence = tuple(failure(nodeid=each, tests=(each,), exceptions=()) for each in red)
    verdict = Verdict.FAILED if evidence else Verdict.PASSED
    return Judgement(verdict=verdict, tests=tests, evidence=evidence)


def test_flaky_test_is_marked_beside_a_test_that_always_fails(settle: Callable[..., Judgement]):
    rerun = again(ran(test_luck="passed", test_plain="failed"))
    settled = settle(ran(**BOTH_FAILED), rerun, text=LUCK_AND_PLAIN)
    assert (settled.verdict, settled.runs, settled.reds) == (Verdict.FAILED, 2, 2)
    passed = {each.nodeid: [run.passed for run in each.confirmations] for each in settled.evidence}
    assert passed == {"test_a.py::test_luck": [False, True], "test_a.py::test_plain": [False, False]}


def test_no_test_of_a_crashed_rerun_counts_as_passed(settle: Callable[..., Judgement]):
    died = ran(test_luck="passed", test_plain="failed")
    died.evidence += (Evidence(kind=EvidenceKind.SESSION, headline="it was killed"),)
    settled = settle(ran(**BOTH_FAILED), again(*[died] * 4), text=LUCK_AND_PLAIN)
    assert settled.runs == settled.reds > 1
    assert not any(run.passed for each in settled.evidence for run in each.confirmations)


@pytest.mark.parametrize(("seconds", "runs"), [(60.0, 4), (0.0, 2)], ids=["cheap", "dear"])
def test_mixed_failures_are_rerun_further_only_when_cheap(
    seconds: float, runs: int, settle: Callable[..., Judgement], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "MOST_FURTHER_SECONDS", seconds)
    rerun = again(ran(**BOTH_FAILED), ran(**BOTH_FAILED), ran(test_luck="passed", test_plain="failed"))
    assert settle(ran(**BOTH_FAILED), rerun, text=LUCK_AND_PLAIN).runs == runs


# -- whether chance may decide -----------------------------------------------------------------------

MODULE = """import random, time
STARTED = time.time()
def total(): return len({1, 2})
def other(): return random.random()
"""


def in_shop(line: int) -> Frame:
    return Frame(path="shop.py", line=line, function="f", side=Side.PRODUCT)


def run_of(name: str, line: int) -> dict[str, dict[tuple[str, int, str], tuple[int, int]]]:
    return {"test_a.py::test_it": {("shop.py", line, name): (0, 1)}}


def test_product_randomness_counts_in_executed_functions_and_set_order_at_calls(tmp_path: Path):
    (tmp_path / "shop.py").write_text(MODULE)
    (tmp_path / "test_a.py").write_text(PLAIN)
    far = failure(nodeid="test_a.py::test_it")
    near = far.model_copy(update={"subjects": (in_shop(3),)})
    assert depends_on_chance(far, tmp_path, run_of("other", 4))
    assert not depends_on_chance(far, tmp_path, run_of("total", 3))
    assert depends_on_chance(near, tmp_path, run_of("total", 3))
    assert not depends_on_chance(far, tmp_path), "nobody knows of the product, and the test draws nothing"


@pytest.mark.parametrize(
    ("name", "source", "draws"),
    [
        ("ImportError", "random.random()", False),
        ("ValueError", "random.random()", True),
        ("ValueError", "{1, 2}", False),
    ],
)
def test_failed_import_is_random_only_if_its_code_is(name: str, source: str, draws: bool, tmp_path: Path):
    (tmp_path / "shop.py").write_text(f"import random\nSEED = {source}\nimport gone\n")
    (tmp_path / "test_a.py").write_text("import shop, time\nTIMES = {1}\ndef now(): return time.time()\n")
    failed = error(in_shop(3), name=name)
    red = failure(kind=EvidenceKind.COLLECTION, nodeid="test_a.py", exceptions=(failed,))
    assert depends_on_chance(red, tmp_path) is draws


FIXTURE = "@pytest.fixture\ndef cart(): return draw()\n\ndef draw(): return random.random()\n"


HELPERS = {
    "behind a fixture": (f"def test_it(cart): assert cart\n\n{FIXTURE}", True),
    "named like a test": (
        "def test_it(test_c): pass\n\n@pytest.fixture\ndef test_c(): return random.random()\n",
        True,
    ),
    "another test": ("def test_it(): assert 1 == 3\n\ndef test_b(): assert random.random()\n", False),
    "the module": ("SEED = random.random()\n\ndef test_it(): assert 1 == 3\n", False),
    "recursive": ("def test_it(): assert count(3) == 3\n\ndef count(n): return count(n - 1)\n", False),
    "deep": (f"@with_sum({'+'.join('1' * 2_000)})\ndef test_it(): assert 0\n", False),
}


@pytest.mark.parametrize(("text", "draws"), HELPERS.values(), ids=HELPERS)
def test_helpers_in_the_test_file_count_as_code_of_the_test(text: str, draws: bool, tmp_path: Path):
    (tmp_path / "test_a.py").write_text(text)
    red = failure(nodeid="test_a.py::test_it", exceptions=())
    assert depends_on_chance(red, tmp_path) is draws


def test_randomness_is_attributed_to_the_function_at_the_line(tmp_path: Path):
    total, other = "@cached\ndef total():\n    return 2\n", "def other():\n    return random.random()\n"
    (tmp_path / "shop.py").write_text(f"import random\n\n{total}\n{other}")
    for line, draws in {1: False, 3: False, 5: False, 8: True}.items():
        called = failure(exceptions=(), subjects=(in_shop(line),))
        in_traceback = failure(exceptions=(error(in_shop(line)),))
        assert depends_on_chance(called, tmp_path) is depends_on_chance(in_traceback, tmp_path) is draws


def test_file_that_cannot_be_parsed_is_not_random(tmp_path: Path):
    (tmp_path / "broken.py").write_text("def test_it(:\n")
    os.mkfifo(tmp_path / "pipe.py")
    # Code may be compiled under a name that no file can have.
    for name in ("broken", "pipe", "missing", "x" * 300, "a\0b"):
        frame = Frame(path=f"{name}.py", line=1, function="f", side=Side.PRODUCT)
        assert not depends_on_chance(failure(exceptions=(error(frame),)), tmp_path)


def test_deterministic_failures_are_not_rerun():
    missing_file = Selector(text="gone.py", problem="missing_file")

    assert is_worth_confirming(red())
    for same in (
        green(),
        Judgement(verdict=Verdict.FAILED),
        red(timed_out=True),
        red(swallowed_timeout=True),
        red(kind=EvidenceKind.SANDBOX),
        red(kind=EvidenceKind.HYGIENE),
        red(selectors=(missing_file,)),
    ):
        assert not is_worth_confirming(same), same


def entry(nodeid: str, expires: str = "2026-12-31") -> Quarantine:
    return Quarantine(nodeid=nodeid, owner="ann", ticket="T-1", expires=expires)


@pytest.mark.parametrize(
    ("tests", "entries", "expires"),
    [
        (["t.py::a"], [entry("t.py::a")], "2026-12-31"),
        (["t.py::a[x]"], [entry("t.py::a")], "2026-12-31"),
        (["t.py::a"], [entry("t.py::a[x]")], None),
        (["t.py::a"], [entry("t.py")], None),
        (["t.py::a", "t.py::b"], [entry("t.py::a")], None),
        (["t.py::a", "t.py::b"], [entry("t.py::a"), entry("t.py::b", "2026-01-01")], "2026-01-01"),
        (["t.py::a"], [entry("t.py::a", "2026-01-01"), entry("t.py::a")], "2026-12-31"),
        (["t.py::a"], [], None),
        ([], [entry("t.py::a")], None),
    ],
)
def test_check_is_quarantined_until_its_first_entry_expires(
    tests: list[str], entries: list[Quarantine], expires: str | None
):
    found = quarantine_of(tests, entries)
    assert (found.expires if found else None) == expires


def test_quarantine_tolerates_only_flaky_verdicts():
    for verdict in Verdict:
        check = Check(id="tests[0]", kind=CheckKind.TEST, verdict=verdict, quarantined="T-1")
        assert check.counts_as is (Verdict.PASSED if verdict is Verdict.FLAKY else verdict)
        assert check.model_copy(update={"quarantined": None}).counts_as is verdict
