"""Confirmation of a red: its command once more, cold and alone.

The same answer makes the red deterministic, another makes it flaky: of the command, and of each test that
was red. Where chance is in the code, a few more runs decide. A hang is not confirmed by hanging again. The
evidence stays that of the first run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.evidence import Confirmation
from planner.model.verdicts import EvidenceKind, Verdict
from pytest_planverify.checks.chance import depends_on_chance
from pytest_planverify.session.records import PROVING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from planner.model.evidence import Evidence
    from pytest_planverify.checks.result import Judgement
    from pytest_planverify.session.spectrum import Executed


MOST_FURTHER_SECONDS = 10.0
"""So long may runs take together that can only tell of some of the red tests."""

_OF_TESTS = (EvidenceKind.TEST, EvidenceKind.COLLECTION)

MOST_ASKED = 50
"""Of so many pieces of evidence the code is read for chance: each costs milliseconds."""


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
    repeated: list[_Repeated] = []
    unanswered, further_seconds = False, 0.0
    for number in range(most):
        if number and not budget.allows():
            break
        started = time.monotonic()
        judgement = again()
        took = time.monotonic() - started
        budget.spent += took
        late = any(each.timed_out for each in judgement.evidence)  # on a busy machine: not the same red
        if judgement.verdict is not Verdict.PASSED and (late or not judgement.is_red):
            unanswered = True
            break
        repeated.append(_Repeated(judgement))
        if not judgement.is_red:
            break
        further_seconds += took
        recorded = next(filter(None, executed), None)
        if not _may_change(
            first, repeated, root, recorded, is_cheap=further_seconds < MOST_FURTHER_SECONDS
        ):
            break
    first.runs, first.reds = 1 + len(repeated), 1 + sum(each.judgement.is_red for each in repeated)
    where = "company" if company else "alone"
    seen = Confirmation(where=where, passed=False, duration_ms=first.duration_ms)
    first.evidence = tuple(
        each.model_copy(
            update={"confirmations": (*each.confirmations, seen, *(run.told_of(each) for run in repeated))}
        )
        for each in first.evidence
    )
    if first.reds < first.runs:
        first.verdict = Verdict.FLAKY
        first.reason = f"the same code gave both answers: red {first.reds} of {first.runs} times"
    elif unanswered:
        first.reason = f"{first.reason or 'seen once'}; run again it gave no answer"
    return first


def _may_change(
    first: Judgement,
    repeated: Sequence[_Repeated],
    root: Path,
    recorded: Executed | None,
    *,
    is_cheap: bool,
) -> bool:
    """Return whether a further run may tell something new of a command that was red each time.

    It may turn green where all that was red each time asks for chance. Where only some does, it may show
    that some to be flaky, which is worth a ``cheap`` run.
    """
    still_red = [each for each in first.evidence if not any(run.told_of(each).passed for run in repeated)]
    draws = (depends_on_chance(each, root, recorded) for each in still_red[:MOST_ASKED])
    return any(draws) if is_cheap else bool(still_red) and all(draws)


class _Repeated:
    """A further run of the command."""

    def __init__(self, judgement: Judgement) -> None:
        self.judgement = judgement
        # Of a session that is red itself, as one that has died, no test is known to have passed.
        is_of_tests = all(each.kind in _OF_TESTS for each in judgement.evidence)
        self._outcomes = {test.nodeid: test.outcome for test in judgement.tests if is_of_tests}

    def told_of(self, piece: Evidence) -> Confirmation:
        """Return what it says of a piece of evidence: of its test where that ran, else of the command."""
        outcome = self._outcomes.get(piece.nodeid or "")
        passed = not self.judgement.is_red
        if outcome is not None and (outcome.is_red or outcome.value in PROVING):
            passed = not outcome.is_red
        return Confirmation(where="alone", passed=passed, duration_ms=self.judgement.duration_ms)
