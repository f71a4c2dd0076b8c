"""Confirmation of a red: its command once more, cold and alone.

The same answer makes the red deterministic, another makes it flaky. Where chance is in the code, a few more
runs decide. A hang is not confirmed by hanging again. The evidence stays that of the first run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.evidence import Confirmation
from planner.model.verdicts import EvidenceKind, Verdict
from pytest_planverify.checks.chance import depends_on_chance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pytest_planverify.checks.result import Judgement
    from pytest_planverify.session.spectrum import Executed


@dataclass(slots=True)
class ConfirmationBudget:
    """Seconds that all confirmations of a run have together; what could not be confirmed is told."""

    seconds: float = 900.0
    spent: float = 0.0
    refused: int = 0

    def allows(self) -> bool:
        """Return whether another confirmation may start; count a refusal."""
        if self.spent < self.seconds:
            return True
        self.refused += 1
        return False


def is_worth_confirming(judgement: Judgement) -> bool:
    """Return whether a second look may change a red.

    It cannot where a file does not exist, where something was reached for already, or where records of the
    run were touched; and a hang would only cost its limit again.
    """
    if not judgement.is_red or not judgement.evidence:
        return False
    settled = (EvidenceKind.SANDBOX, EvidenceKind.HYGIENE)
    if any(each.kind in settled or each.timed_out or each.swallowed_timeout for each in judgement.evidence):
        return False
    return not all(
        each.selectors and all(selector.problem == "missing_file" for selector in each.selectors)
        for each in judgement.evidence
    )


def confirm(
    first: Judgement,
    again: Callable[[], Judgement],
    *,
    most: int,
    budget: ConfirmationBudget,
    root: Path,
    company: bool = False,
    executed: Sequence[Executed] = (),
) -> Judgement:
    """Settle a red. ``again`` runs the command once more; it is asked once, or up to ``most`` times.

    ``company`` says that other criteria ran at the same time as the first run. ``executed`` grows by what
    each further run has recorded.
    """
    if not budget.allows():
        first.reason = f"{first.reason or 'seen once'}; not confirmed, because the time for it is used up"
        return first
    told = [_told(first, "company" if company else "alone")]
    unanswered = False
    for number in range(most):
        if number and not budget.allows():
            break
        started = time.monotonic()
        judgement = again()
        budget.spent += time.monotonic() - started
        late = any(each.timed_out for each in judgement.evidence)  # on a busy machine: not the same red
        if judgement.verdict is not Verdict.PASSED and (late or not judgement.is_red):
            unanswered = True
            break
        told.append(_told(judgement, "alone"))
        recorded = next(filter(None, executed), None)
        if not judgement.is_red or not depends_on_chance(first.evidence, root, recorded):
            break
    first.runs, first.reds = len(told), sum(not each.passed for each in told)
    first.evidence = tuple(
        each.model_copy(update={"confirmations": (*each.confirmations, *told)}) for each in first.evidence
    )
    if first.reds < first.runs:
        first.verdict = Verdict.FLAKY
        first.reason = f"the same code gave both answers: red {first.reds} of {first.runs} times"
    elif unanswered:
        first.reason = f"{first.reason or 'seen once'}; run again it gave no answer"
    return first


def _told(judgement: Judgement, where: str) -> Confirmation:
    return Confirmation(where=where, passed=not judgement.is_red, duration_ms=judgement.duration_ms)
