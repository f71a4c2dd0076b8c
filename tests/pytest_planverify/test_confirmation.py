"""Confirmation: what a red is worth, with runs that answer what the test tells them to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.evidence import Evidence, EvidenceKind
from planner.model.outcome import TestOutcome, TestResult, Verdict
from planner.model.taxonomy import Repeatability
from pytest_planverify.confirmation import Confirmed, confirm_alone, confirm_shared
from pytest_planverify.confirmation_time import ConfirmationBudget
from pytest_planverify.diagnosis.repeating import repeatability
from pytest_planverify.judgement import Judgement
from pytest_planverify.polluters import MOST_NAMED, MOST_RUNS, find_polluters

ANSWERS = {"red": Verdict.FAILED, "green": Verdict.PASSED, "unclear": Verdict.INCONCLUSIVE}


def judgement(answer: str, *, where: str = "", doubt: str | None = None) -> Judgement:
    verdict = ANSWERS[answer]
    evidence = Evidence(kind=EvidenceKind.TEST, headline=where)
    return Judgement(verdict=verdict, evidence=(evidence,) if verdict.is_red else (), doubt=doubt)


class Runs:
    """Answers one run after the other, and remembers how many there were."""

    def __init__(self, where: str, answers: str) -> None:
        self.where = where
        self.count = 0
        self._answers: Iterator[str] = iter(answers.split())

    def __call__(self) -> Judgement:
        self.count += 1
        return judgement(next(self._answers), where=f"{self.where} {self.count}")


class Repeats:
    """A check of which no part can be run by itself."""

    def __init__(self, alone: Runs, company: Runs | None = None, seeded: Runs | None = None) -> None:
        self.of_alone = alone
        self.of_company = company or Runs("company", "")
        self.of_seeded = seeded

    def alone(self, only: Sequence[str] | None = None) -> Judgement:
        return self.of_alone() if only is None else Judgement(verdict=Verdict.NOT_RUN)

    def company(self, only: Sequence[str] | None = None) -> Judgement:
        return self.of_company() if only is None else Judgement(verdict=Verdict.NOT_RUN)

    def seeded(self, seed: int) -> Judgement | None:
        return None if self.of_seeded is None else self.of_seeded()

    def before(self, nodeid: str) -> Sequence[str]:
        return ()

    def may_depend_on_seed(self, red: Judgement) -> bool:
        return self.of_seeded is not None


def settle(
    first: Judgement,
    alone: str,
    company: str = "",
    seeded: str | None = None,
    *,
    attempts: int = 3,
    seconds: float = 100,
) -> tuple[Confirmed, Runs, Runs]:
    runs, others = Runs("alone", alone), Runs("company", company)
    seeds = None if seeded is None else Runs("seeded", seeded)
    budget = ConfirmationBudget(seconds=seconds)
    repeats = Repeats(runs, others, seeds)
    confirmed = confirm_shared(first, repeats, attempts=attempts, budget=budget)
    return confirmed, runs, others


def told(confirmed: Confirmed) -> str:
    (evidence,) = confirmed.judgement.evidence
    return " ".join(f"{each.where}:{'+' if each.passed else '-'}" for each in evidence.confirmations)


def test_red_twice_is_red_with_the_evidence_of_the_run_alone():
    confirmed, runs, _ = settle(judgement("red", where="first"), "red")

    assert confirmed.alone
    assert confirmed.judgement.verdict is Verdict.FAILED
    assert confirmed.judgement.evidence[0].headline == "alone 1"
    assert told(confirmed) == "company:- alone:-"
    assert runs.count == 1


def test_red_in_company_and_green_alone_every_time_is_green_with_the_reason():
    confirmed, runs, others = settle(judgement("red"), "green green green", "red")

    assert confirmed.judgement.verdict is Verdict.PASSED
    assert confirmed.judgement.reason == (
        "red after the other tests of the run in the shared session, green alone 3 of 3 times; what runs "
        "alone counts"
    )
    assert (runs.count, others.count) == (3, 1)


def test_red_once_in_company_and_never_again_is_flaky():
    confirmed, _, _ = settle(judgement("red", where="first"), "green green green", "green")

    assert confirmed.judgement.verdict is Verdict.FLAKY
    assert confirmed.judgement.evidence[0].headline == "first"
    assert confirmed.judgement.reason == "the same code gave both answers: green 4 of 5 times"
    assert told(confirmed) == "company:- alone:+ alone:+ alone:+ company:+", "the company is not to blame"


@pytest.mark.parametrize(("alone", "runs_needed"), [("green red", 2), ("green green red", 3)])
def test_both_answers_alone_is_flaky(alone: str, runs_needed: int):
    confirmed, runs, others = settle(judgement("red"), alone)

    assert confirmed.judgement.verdict is Verdict.FLAKY
    assert confirmed.judgement.evidence[0].headline == f"alone {runs_needed}"
    assert told(confirmed) == " ".join(["company:-", *["alone:+"] * (runs_needed - 1), "alone:-"])
    assert (runs.count, others.count) == (runs_needed, 0)


def test_red_in_company_and_unclear_alone_is_unclear():
    confirmed, runs, _ = settle(judgement("red"), "unclear")

    assert confirmed.judgement.verdict is Verdict.INCONCLUSIVE
    assert runs.count == 1


def test_one_attempt_is_one_run_alone_before_the_company_is_asked():
    confirmed, runs, others = settle(judgement("red"), "green", "red", attempts=1)

    assert confirmed.judgement.verdict is Verdict.PASSED
    assert (runs.count, others.count) == (1, 1)


@pytest.mark.parametrize("first", ["green", "unclear"])
@pytest.mark.parametrize(
    ("alone", "verdict"),
    [
        ("green", Verdict.PASSED),
        ("unclear", Verdict.INCONCLUSIVE),
        ("red red", Verdict.FAILED),
        ("red green", Verdict.FLAKY),
    ],
)
def test_a_doubt_is_settled_by_what_runs_alone(first: str, alone: str, verdict: Verdict):
    confirmed, runs, others = settle(judgement(first, doubt="a leak"), alone)

    assert confirmed.alone
    assert confirmed.judgement.verdict is verdict
    assert runs.count == len(alone.split())
    assert others.count == 0
    if verdict.is_red:
        assert told(confirmed) == " ".join(
            f"alone:{'-' if each == 'red' else '+'}" for each in alone.split()
        )


@pytest.mark.parametrize(
    ("first", "verdict"),
    [
        ("red", Verdict.FAILED),
        ("green", Verdict.INCONCLUSIVE),
        ("unclear", Verdict.INCONCLUSIVE),
    ],
)
def test_without_time_a_red_stays_red_and_a_doubted_green_is_no_pass(first: str, verdict: Verdict):
    confirmed, runs, _ = settle(judgement(first, doubt="a leak"), "", seconds=0)

    assert confirmed.judgement.verdict is verdict
    assert confirmed.judgement.reason == "seen once; not confirmed, because the time for it is used up"
    assert not confirmed.alone
    assert runs.count == 0


def test_a_reason_that_is_there_is_kept_when_time_is_up():
    first = judgement("red")
    first.reason = "took 9 s"

    confirmed = confirm_alone(first, Repeats(Runs("alone", "")), budget=ConfirmationBudget(seconds=0))

    assert confirmed.judgement.reason == "took 9 s; not confirmed, because the time for it is used up"


def test_time_that_runs_out_on_the_way_ends_the_repetitions(monkeypatch: pytest.MonkeyPatch):
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    runs, others = Runs("alone", "green green green"), Runs("company", "red")
    budget = ConfirmationBudget(seconds=15)

    confirmed = confirm_shared(judgement("red"), Repeats(runs, others), attempts=9, budget=budget)

    assert runs.count == 2
    assert budget.spent == 30
    assert budget.refused == 1
    assert confirmed.judgement.verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("again", "verdict"), [("red", Verdict.FAILED), ("green", Verdict.FLAKY), ("unclear", Verdict.FAILED)]
)
def test_a_red_alone_is_looked_at_once_more(again: str, verdict: Verdict):
    runs = Runs("alone", again)

    confirmed = confirm_alone(judgement("red", where="first"), Repeats(runs), budget=ConfirmationBudget())

    assert confirmed.judgement.verdict is verdict
    assert confirmed.judgement.evidence[0].headline == ("alone 1" if again == "red" else "first")
    assert runs.count == 1


def test_every_refusal_of_the_budget_is_counted():
    budget = ConfirmationBudget(seconds=1, spent=1)
    ask: Callable[[], bool] = budget.allows

    assert [ask(), ask()] == [False, False]
    assert budget.refused == 2


def test_a_red_alone_that_then_passes_was_never_in_company():
    runs = Runs("alone", "green")

    confirmed = confirm_alone(judgement("red"), Repeats(runs), budget=ConfirmationBudget())

    assert told(confirmed) == "alone:- alone:+"
    assert confirmed.judgement.reason == "the same code gave both answers: green 1 of 2 times"


def test_a_red_whose_repetition_gives_no_answer_stays_red_and_is_no_flaky_test():
    confirmed = confirm_alone(
        judgement("red"), Repeats(Runs("alone", "unclear")), budget=ConfirmationBudget()
    )

    assert confirmed.judgement.verdict is Verdict.FAILED
    assert confirmed.judgement.reason == "seen once; run again it gave no answer"
    assert told(confirmed) == ""


def test_a_doubt_that_turns_red_and_then_gives_no_answer_stays_red():
    confirmed, _, _ = settle(judgement("green", doubt="a leak"), "red unclear")

    assert confirmed.judgement.verdict is Verdict.FAILED


def test_red_with_the_runs_own_hash_seed_and_green_with_another_is_flaky_with_the_reason():
    confirmed, runs, _ = settle(judgement("red"), "red red", seeded="green green")

    assert confirmed.judgement.verdict is Verdict.FLAKY
    assert confirmed.judgement.reason is not None
    assert "depends on the hash seed" in confirmed.judgement.reason
    assert told(confirmed) == "company:- alone:- hash_seed:+ alone:- hash_seed:+"
    assert runs.count == 2


@pytest.mark.parametrize("seeded", ["red red red", "unclear red unclear"])
def test_red_with_any_hash_seed_is_red(seeded: str):
    confirmed, _, _ = settle(judgement("red"), "red", seeded=seeded)

    assert confirmed.judgement.verdict is Verdict.FAILED


def test_a_green_of_a_later_hash_seed_counts_as_well():
    confirmed, _, _ = settle(judgement("red"), "red red", seeded="red green green")

    assert confirmed.judgement.verdict is Verdict.FLAKY
    (evidence,) = confirmed.judgement.evidence
    assert repeatability(evidence.confirmations) is Repeatability.HASH_ORDER


def test_both_answers_with_one_hash_seed_are_no_proof_of_the_seed():
    confirmed, _, _ = settle(judgement("red"), "red green", seeded="green green")

    assert confirmed.judgement.verdict is Verdict.FLAKY
    assert confirmed.judgement.reason == "the same code gave both answers: green 3 of 5 times"


def test_green_alone_and_red_with_another_hash_seed_is_flaky():
    confirmed, _, others = settle(judgement("red"), "green green green", seeded="red red")

    assert confirmed.judgement.verdict is Verdict.FLAKY
    assert others.count == 0


class Suite:
    """A suite whose tests disturb each other as it is told, run without running anything."""

    def __init__(self, order: Sequence[str], red: Callable[[Sequence[str], str], bool]) -> None:
        self.order = list(order)
        self._red = red
        self.runs: list[tuple[str, ...]] = []

    def run(self, only: Sequence[str] | None = None) -> Judgement:
        tests = [each for each in self.order if only is None or each in only]
        self.runs.append(tuple(tests))
        results: list[TestResult] = []
        for number, each in enumerate(tests):
            outcome = TestOutcome.FAILED if self._red(tests[:number], each) else TestOutcome.PASSED
            results.append(TestResult(nodeid=each, outcome=outcome))
        red = tuple(test.nodeid for test in results if test.outcome.is_red)
        verdict = Verdict.FAILED if red else Verdict.PASSED if only is None else Verdict.NOT_RUN
        evidence = tuple(Evidence(kind=EvidenceKind.TEST, nodeid=each, tests=(each,)) for each in red)
        return Judgement(verdict=verdict, tests=tuple(results), evidence=evidence)

    alone = company = run

    def seeded(self, seed: int) -> Judgement | None:
        return None

    def before(self, nodeid: str) -> Sequence[str]:
        return self.order[: self.order.index(nodeid)]

    def may_depend_on_seed(self, red: Judgement) -> bool:
        return False


NAMES = [f"test_{number}" for number in range(40)]


def test_of_a_red_that_other_tests_of_its_command_cause_the_culprit_is_named():
    suite = Suite(NAMES, lambda before, each: each == "test_30" and "test_7" in before)

    confirmed = confirm_alone(suite.run(), suite, budget=ConfirmationBudget())

    (evidence,) = confirmed.judgement.evidence
    assert confirmed.judgement.verdict is Verdict.FAILED
    assert evidence.polluters == ("test_7",)
    assert repeatability(evidence.confirmations) is Repeatability.ORDER_DEPENDENT


def test_a_red_that_is_red_by_itself_is_searched_no_further():
    suite = Suite(NAMES, lambda before, each: each == "test_30")

    confirmed = confirm_alone(suite.run(), suite, budget=ConfirmationBudget())

    (evidence,) = confirmed.judgement.evidence
    assert evidence.polluters == ()
    assert repeatability(evidence.confirmations) is Repeatability.DETERMINISTIC
    assert suite.runs[2:] == [("test_30",)]


class Company(Suite):
    """A suite in which the check is one test only, which is green alone."""

    def alone(self, only: Sequence[str] | None = None) -> Judgement:
        return Judgement(verdict=Verdict.PASSED)


def test_of_a_red_that_other_commands_cause_the_culprit_is_named_and_what_runs_alone_counts():
    suite = Company(NAMES, lambda before, each: each == "test_30" and {"test_3", "test_9"} <= {*before})

    confirmed = confirm_shared(suite.run(), suite, attempts=2, budget=ConfirmationBudget())

    assert confirmed.judgement.verdict is Verdict.PASSED
    assert confirmed.judgement.reason == (
        "red after test_3, test_9 in the shared session, green alone 2 of 2 times; what runs alone counts"
    )


@given(data=st.data(), count=st.integers(1, 60))
def test_the_fewest_culprits_are_found(data: st.DataObject, count: int):
    names = [f"test_{number}" for number in range(count)]
    culprits = set(data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)))
    runs: list[Sequence[str]] = []

    def is_red(before: Sequence[str]) -> bool:
        runs.append(before)
        return culprits <= set(before)

    found = find_polluters(names, is_red)

    assert len(runs) <= MOST_RUNS
    assert found == () or set(found) == culprits
    if len(culprits) == 1:
        assert set(found) == culprits
    assert list(found) == [name for name in names if name in found]


def test_a_search_that_cannot_tell_names_nobody():
    assert find_polluters(NAMES, lambda before: True if len(before) == len(NAMES) else None) == ()
    assert find_polluters(NAMES, lambda before: False) == ()
    assert find_polluters([], lambda before: True) == ()


def test_more_culprits_than_help_anybody_are_not_named():
    assert find_polluters(NAMES, lambda before: len(before) >= MOST_NAMED + 1) == ()
