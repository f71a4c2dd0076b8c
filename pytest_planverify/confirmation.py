"""Finds out what a failure is worth: is it red alone as well, every time, or only in some company?

A red of a shared session counts only when its own command, alone in a process of its own, is red too.
Where the answers differ, further runs tell the kinds apart: by chance, after certain tests, or with
certain hash seeds. A green that is in doubt is seen alone as well.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from planner.model.evidence import Confirmation
from planner.model.kinds import EvidenceKind
from planner.model.verdicts import Verdict
from pytest_planverify.polluters import find_polluters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from planner.model.evidence import Evidence
    from pytest_planverify.confirmation_time import ConfirmationBudget
    from pytest_planverify.judgement import Judgement

SEEDS = (1, 2, 3)
"""Hash seeds for the runs that look whether the order of sets matters."""

_SHOWN = 3
_Said = TypeVar("_Said")


class Repeats(Protocol):
    """Runs one check again, under whatever conditions are asked for."""

    def alone(self, only: Sequence[str] | None = None) -> Judgement:
        """Its own command in a process of its own, perhaps with some of its tests only."""
        ...

    def company(self, only: Sequence[str] | None = None) -> Judgement:
        """The session that it shared, perhaps with some of the tests only."""
        ...

    def seeded(self, seed: int) -> Judgement | None:
        """Its own command in a new interpreter with that hash seed; nothing where seeds are fixed."""
        ...

    def before(self, nodeid: str) -> Sequence[str]:
        """The tests that ran before that one in the shared session, in their order."""
        ...

    def may_depend_on_seed(self, red: Judgement) -> bool:
        """Whether the code around the failure does anything whose order a hash seed decides."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """The verdict that counts, and in whose company it was reached."""

    judgement: Judgement
    alone: bool
    """The judgement is that of a run alone."""


def confirm_shared(
    first: Judgement, repeats: Repeats, *, attempts: int, budget: ConfirmationBudget
) -> Confirmed:
    """Settle a judgement of a shared session that is red, inconclusive or in doubt."""
    if not budget.allows():
        return Confirmed(judgement=_unconfirmed(first), alone=False)
    runs = _Runs(repeats, budget)
    alone = runs.alone()
    if first.is_red and alone.is_red:
        runs.told.insert(0, _told(first, "company"))
        return Confirmed(judgement=_examined(alone, runs), alone=True)
    if not first.is_red:
        return _settle_doubt(alone, runs)
    if alone.verdict is not Verdict.PASSED:
        return Confirmed(judgement=alone, alone=True)
    return _settle_contradiction(first, alone, runs, attempts)


def confirm_alone(first: Judgement, repeats: Repeats, *, budget: ConfirmationBudget) -> Confirmed:
    """Settle a red of a command that ran alone: the same conditions once more."""
    if not budget.allows():
        return Confirmed(judgement=_unconfirmed(first), alone=True)
    runs = _Runs(repeats, budget)
    again = runs.alone()
    runs.told.insert(0, _told(first, "alone"))
    if again.is_red:
        return Confirmed(judgement=_examined(again, runs), alone=True)
    if again.verdict is not Verdict.PASSED:
        return Confirmed(judgement=_unanswered(first), alone=True)
    return Confirmed(judgement=_flaky(first, *runs.told), alone=True)


class _Runs:
    """Repeated runs, the time that they took, and what they said."""

    def __init__(self, repeats: Repeats, budget: ConfirmationBudget) -> None:
        self.repeats = repeats
        self.budget = budget
        self.told: list[Confirmation] = []

    def alone(self) -> Judgement:
        return self._note(self.timed(self.repeats.alone), "alone")

    def company(self) -> Judgement:
        return self._note(self.timed(self.repeats.company), "company")

    def seeded(self, seed: int) -> Judgement | None:
        judgement = self.timed(lambda: self.repeats.seeded(seed))
        return None if judgement is None else self._note(judgement, "hash_seed", seed=seed)

    def timed(self, run: Callable[[], _Said]) -> _Said:
        started = time.monotonic()
        try:
            return run()
        finally:
            self.budget.spent += time.monotonic() - started

    def _note(self, judgement: Judgement, where: str, seed: int | None = None) -> Judgement:
        if judgement.is_red or judgement.verdict is Verdict.PASSED:  # anything else is no answer
            self.told.append(_told(judgement, where, seed=seed))
        return judgement


# -- red in company, green alone -----------------------------------------------------------------------


def _settle_contradiction(first: Judgement, alone: Judgement, runs: _Runs, attempts: int) -> Confirmed:
    told_first = _told(first, "company")
    while len(runs.told) < attempts and runs.budget.allows():
        alone = runs.alone()
        if alone.is_red:
            return Confirmed(judgement=_flaky(alone, told_first, *runs.told), alone=True)
    times = len(runs.told)
    seeded = runs.seeded(SEEDS[0]) if runs.budget.is_left else None
    if seeded is not None and seeded.is_red:
        runs.seeded(SEEDS[0])
        return Confirmed(judgement=_flaky(seeded, told_first, *runs.told), alone=True)
    company = runs.company()
    if not company.is_red:
        return Confirmed(judgement=_flaky(first, told_first, *runs.told), alone=True)
    after = _listed(_polluters_in_company(company, runs)) or "the other tests of the run"
    alone.reason = (
        f"red after {after} in the shared session, green alone {times} of {times} times; what runs alone "
        "counts"
    )
    return Confirmed(judgement=alone, alone=True)


def _polluters_in_company(company: Judgement, runs: _Runs) -> tuple[str, ...]:
    victim = next((test.nodeid for test in company.tests if test.outcome.is_red), None)
    if victim is None:
        return ()
    return _search(runs.repeats.before(victim), victim, runs, runs.repeats.company)


def _search(
    candidates: Sequence[str],
    victim: str,
    runs: _Runs,
    run: Callable[[Sequence[str]], Judgement],
) -> tuple[str, ...]:
    def is_red(before: Sequence[str]) -> bool | None:
        if not runs.budget.is_left:
            return None
        return _red_in(runs.timed(lambda: run([*before, victim])), victim)

    return find_polluters(candidates, is_red)


# -- red alone, twice ----------------------------------------------------------------------------------


def _examined(red: Judgement, runs: _Runs) -> Judgement:
    """A red that stays red, looked at more closely: is it so by itself, with any hash seed?"""
    polluters: dict[str, tuple[str, ...]] = {}
    if _is_of_tests(red) and runs.budget.is_left:
        polluters = _polluters_within(red, runs)
        if not polluters and runs.repeats.may_depend_on_seed(red):
            return _reseeded(red, runs)
    red = _with(red, *runs.told)
    red.evidence = tuple(_polluted(each, polluters) for each in red.evidence)
    if polluters:
        victim, culprits = next(iter(polluters.items()))
        red.reason = f"{victim} is red after {_listed(culprits)}, green without"
    return red


def _reseeded(red: Judgement, runs: _Runs) -> Judgement:
    """Ask other hash seeds; where one is green, both answers are asked for once more."""
    told = tuple(runs.told)
    for seed in SEEDS:
        seeded = runs.seeded(seed) if runs.budget.is_left else None
        if seeded is None:
            break
        if seeded.verdict is not Verdict.PASSED:
            continue
        runs.told = [each for each in runs.told if each.where != "hash_seed" or each.passed]
        again, seeded = runs.alone(), runs.seeded(seed)
        judgement = _flaky(red, *runs.told)
        if again.is_red and seeded is not None and not seeded.is_red:
            judgement.reason = (
                "the answer depends on the hash seed: red with this run's, green with "
                f"PYTHONHASHSEED={seed}"
            )
        return judgement
    return _with(red, *told)


def _polluters_within(red: Judgement, runs: _Runs) -> dict[str, tuple[str, ...]]:
    """Failing tests that are green without the command's other tests, and which of those it takes."""
    order = [test.nodeid for test in red.tests]
    victims = [test.nodeid for test in red.tests if test.outcome.is_red]
    if not victims or victims == order[: len(victims)]:
        return {}
    by_themselves = runs.timed(lambda: runs.repeats.alone(victims))
    found: dict[str, tuple[str, ...]] = {}
    for victim in victims:
        if _red_in(by_themselves, victim) is False:
            before = order[: order.index(victim)]
            polluters = _search(before, victim, runs, runs.repeats.alone)
            if polluters:  # else something else than the tests before it made the difference
                found[victim] = polluters
    return found


def _polluted(evidence: Evidence, polluters: dict[str, tuple[str, ...]]) -> Evidence:
    tests = (evidence.nodeid, *evidence.tests)
    found = next((polluters[test] for test in tests if test in polluters), None)
    if found is None:
        return evidence
    told = (
        Confirmation(where="after", passed=True),
        Confirmation(where="after", passed=False, after=found),
    )
    return evidence.model_copy(
        update={"polluters": found, "confirmations": (*evidence.confirmations, *told)}
    )


def _is_of_tests(judgement: Judgement) -> bool:
    """Whether all that failed are tests that came to their end: no crash, no limit, no broken file."""
    return bool(judgement.evidence) and all(
        piece.kind is EvidenceKind.TEST
        and piece.process is None
        and not piece.timed_out
        and not piece.swallowed_timeout
        for piece in judgement.evidence
    )


# -- green in doubt ------------------------------------------------------------------------------------


def _settle_doubt(alone: Judgement, runs: _Runs) -> Confirmed:
    """A green in doubt: a red alone decides, once it has been seen twice."""
    if not alone.is_red:
        return Confirmed(judgement=alone, alone=True)
    again = runs.alone()
    if again.is_red:
        return Confirmed(judgement=_examined(again, runs), alone=True)
    if again.verdict is not Verdict.PASSED:
        return Confirmed(judgement=_unanswered(alone), alone=True)
    return Confirmed(judgement=_flaky(alone, *runs.told), alone=True)


# -- what is told --------------------------------------------------------------------------------------


def _red_in(judgement: Judgement, nodeid: str) -> bool | None:
    """Whether that test was red in that run; ``None`` if the run does not tell."""
    for test in judgement.tests:
        if test.nodeid == nodeid:
            if test.outcome.is_red:
                return True
            return None if test.outcome.value == "not_run" else False
    return None


def _listed(nodeids: Sequence[str]) -> str:
    more = f" and {len(nodeids) - _SHOWN} more" if len(nodeids) > _SHOWN else ""
    return ", ".join(nodeids[:_SHOWN]) + more


def _told(judgement: Judgement, where: str, *, seed: int | None = None) -> Confirmation:
    return Confirmation(
        where=where, passed=not judgement.is_red, duration_ms=judgement.duration_ms, hash_seed=seed
    )


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


def _unanswered(red: Judgement) -> Judgement:
    """A red whose repetition could not be run to an answer stays red, and was seen once."""
    red.reason = (red.reason or "seen once") + "; run again it gave no answer"
    return red


def _unconfirmed(judgement: Judgement) -> Judgement:
    judgement.reason = (
        judgement.reason or "seen once"
    ) + "; not confirmed, because the time for it is used up"
    if judgement.verdict is Verdict.PASSED:
        judgement.verdict = Verdict.INCONCLUSIVE
    return judgement
