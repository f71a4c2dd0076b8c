"""Confirmation: what a red is worth, with runs that answer what the test tells them to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from planner.model.evidence import Evidence, EvidenceKind
from planner.model.outcome import Verdict
from pytest_planverify.confirmation import ConfirmationBudget, Confirmed, confirm_alone, confirm_shared
from pytest_planverify.judgement import Judgement

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


def settle(
    first: Judgement, alone: str, company: str = "", *, attempts: int = 3, seconds: float = 100
) -> tuple[Confirmed, Runs, Runs]:
    runs, others = Runs("alone", alone), Runs("company", company)
    budget = ConfirmationBudget(seconds=seconds)
    confirmed = confirm_shared(first, runs, others, attempts=attempts, budget=budget)
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
        "red beside the other tests of the run, green alone 3 of 3 times; what runs alone counts"
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

    confirmed = confirm_alone(first, Runs("alone", ""), budget=ConfirmationBudget(seconds=0))

    assert confirmed.judgement.reason == "took 9 s; not confirmed, because the time for it is used up"


def test_time_that_runs_out_on_the_way_ends_the_repetitions(monkeypatch: pytest.MonkeyPatch):
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    runs, others = Runs("alone", "green green green"), Runs("company", "red")
    budget = ConfirmationBudget(seconds=15)

    confirmed = confirm_shared(judgement("red"), runs, others, attempts=9, budget=budget)

    assert runs.count == 2
    assert budget.spent == 20
    assert budget.refused == 1
    assert confirmed.judgement.verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("again", "verdict"), [("red", Verdict.FAILED), ("green", Verdict.FLAKY), ("unclear", Verdict.FLAKY)]
)
def test_a_red_alone_is_looked_at_once_more(again: str, verdict: Verdict):
    runs = Runs("alone", again)

    confirmed = confirm_alone(judgement("red", where="first"), runs, budget=ConfirmationBudget())

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

    confirmed = confirm_alone(judgement("red"), runs, budget=ConfirmationBudget())

    assert told(confirmed) == "alone:- alone:+"
    assert confirmed.judgement.reason == "the same code gave both answers: green 1 of 2 times"
