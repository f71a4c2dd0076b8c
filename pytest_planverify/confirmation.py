"""Finds out what a failure is worth: is it red alone as well, every time, or only in company?

A red of a shared session counts only when its own command, alone in a process of its own, is red too.
Where the answers differ, further runs tell a flaky test from one that other tests disturbed. A green
that is in doubt is seen alone as well.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.evidence import Confirmation
from planner.model.outcome import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.model.evidence import Evidence
    from pytest_planverify.judgement import Judgement

CONFIRMATION_SECONDS = 900.0
"""How long all confirmations of one run may take together."""


@dataclass(slots=True)
class ConfirmationBudget:
    """Time that is left for confirmations; what could not be confirmed is said."""

    seconds: float = CONFIRMATION_SECONDS
    spent: float = 0.0
    refused: int = 0

    def allows(self) -> bool:
        """Whether another confirmation may start; a refusal is counted."""
        if self.spent < self.seconds:
            return True
        self.refused += 1
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """The verdict that counts, and in whose company it was reached."""

    judgement: Judgement
    alone: bool
    """The judgement is that of a run alone."""


def confirm_shared(
    first: Judgement,
    run_alone: Callable[[], Judgement],
    run_company: Callable[[], Judgement],
    *,
    attempts: int,
    budget: ConfirmationBudget,
) -> Confirmed:
    """Settle a judgement of a shared session that is red, inconclusive or in doubt."""
    if not budget.allows():
        return Confirmed(judgement=_unconfirmed(first), alone=False)
    runs = _Runs(run_alone, budget)
    alone = runs.alone()
    if first.is_red and alone.is_red:
        return Confirmed(judgement=_with(alone, _told(first, "company"), *runs.told), alone=True)
    if not first.is_red:
        return _settle_doubt(alone, runs)
    if alone.verdict is not Verdict.PASSED:
        return Confirmed(judgement=alone, alone=True)
    while runs.count < attempts and budget.allows():
        alone = runs.alone()
        if alone.is_red:
            return Confirmed(judgement=_flaky(alone, _told(first, "company"), *runs.told), alone=True)
    company = run_company()
    if company.is_red:
        alone.reason = (
            f"red beside the other tests of the run, green alone {runs.count} of {runs.count} times; "
            "what runs alone counts"
        )
        return Confirmed(judgement=alone, alone=True)
    told = (_told(first, "company"), *runs.told, _told(company, "company"))
    return Confirmed(judgement=_flaky(first, *told), alone=True)


def confirm_alone(
    first: Judgement, run_alone: Callable[[], Judgement], *, budget: ConfirmationBudget
) -> Confirmed:
    """Settle a red of a command that ran alone: the same conditions once more."""
    if not budget.allows():
        return Confirmed(judgement=_unconfirmed(first), alone=True)
    runs = _Runs(run_alone, budget)
    again = runs.alone()
    if again.is_red:
        return Confirmed(judgement=_with(again, _told(first, "alone"), *runs.told), alone=True)
    return Confirmed(judgement=_flaky(first, _told(first, "alone"), *runs.told), alone=True)


class _Runs:
    """Runs alone, and what they said."""

    def __init__(self, run: Callable[[], Judgement], budget: ConfirmationBudget) -> None:
        self._run = run
        self._budget = budget
        self.told: list[Confirmation] = []

    @property
    def count(self) -> int:
        return len(self.told)

    def alone(self) -> Judgement:
        started = time.monotonic()
        judgement = self._run()
        self._budget.spent += time.monotonic() - started
        self.told.append(_told(judgement, "alone"))
        return judgement


def _settle_doubt(alone: Judgement, runs: _Runs) -> Confirmed:
    """A green in doubt: a red alone decides, once it has been seen twice."""
    if not alone.is_red:
        return Confirmed(judgement=alone, alone=True)
    again = runs.alone()
    if again.is_red:
        return Confirmed(judgement=_with(again, *runs.told), alone=True)
    return Confirmed(judgement=_flaky(alone, *runs.told), alone=True)


def _told(judgement: Judgement, where: str) -> Confirmation:
    return Confirmation(where=where, passed=not judgement.is_red, duration_ms=judgement.duration_ms)


def _with(judgement: Judgement, *confirmations: Confirmation) -> Judgement:
    judgement.evidence = tuple(_confirmed(each, confirmations) for each in judgement.evidence)
    return judgement


def _confirmed(evidence: Evidence, confirmations: tuple[Confirmation, ...]) -> Evidence:
    return evidence.model_copy(update={"confirmations": (*evidence.confirmations, *confirmations)})


def _flaky(red: Judgement, *told: Confirmation) -> Judgement:
    """The judgement of a check that gave both answers; its evidence is that of a red run."""
    green = sum(each.passed for each in told)
    red = _with(red, *told)
    red.verdict = Verdict.FLAKY
    red.reason = f"the same code gave both answers: green {green} of {len(told)} times"
    return red


def _unconfirmed(judgement: Judgement) -> Judgement:
    judgement.reason = (
        judgement.reason or "seen once"
    ) + "; not confirmed, because the time for it is used up"
    if judgement.verdict is Verdict.PASSED:
        judgement.verdict = Verdict.INCONCLUSIVE
    return judgement
