"""How a result compares with the baseline: what is new, what was there before, what nobody can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.verdicts import CheckAtBase, Since, TestOutcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from planner.model.baseline import BaselineCheck, BaselineTest

GREEN = frozenset((TestOutcome.PASSED, TestOutcome.XPASSED))
"""What a test says that ran and held."""


def since_of(now: TestOutcome, then: BaselineTest | None, *, may_have_been_there: bool) -> Since:
    """How a test's result compares with what it said at the baseline.

    ``then`` is ``None`` for a test that the baseline has no result of; it is absent there, or
    ``may_have_been_there`` and was not run.
    """
    if not now.is_red and now not in GREEN:
        return Since.UNKNOWN
    if then is None:
        return Since.NEW if now.is_red and not may_have_been_there else Since.UNKNOWN
    if then.flaky:
        return Since.FLAKY_AT_BASE
    if now.is_red:
        return Since.PRE_EXISTING if then.outcome.is_red else Since.NEW
    failed_then = then.outcome.is_red or then.outcome is TestOutcome.XFAILED
    return Since.FIXED if failed_then else Since.UNKNOWN


_FIRST = (Since.NEW, Since.UNKNOWN, Since.PRE_EXISTING, Since.FLAKY_AT_BASE)
"""What a failure of several tests is: one new test makes it new."""


def since_of_tests(sinces: Collection[Since]) -> Since:
    """How a failure compares whose tests, all of them red, compare like this."""
    return next((since for since in _FIRST if since in sinces), Since.UNKNOWN)


def since_of_check(then: BaselineCheck | None, signature: str | None) -> Since:
    """How a failure of a check compares that no test shows: by the check's own verdict and failures."""
    if then is None:
        return Since.UNKNOWN
    if then.verdict is Verdict.FLAKY:
        return Since.FLAKY_AT_BASE
    if signature is not None and signature in then.signatures:
        return Since.PRE_EXISTING
    return Since.NEW if then.verdict is Verdict.PASSED or then.verdict.is_red else Since.UNKNOWN


def check_at_base(then: BaselineCheck | None, tests: Iterable[BaselineTest]) -> CheckAtBase | None:
    """What a check was worth at the baseline, by those of its tests that ran there, else by its verdict."""
    known = list(tests)
    if not known:
        return None if then is None else _BY_VERDICT.get(then.verdict)
    if any(test.flaky for test in known):
        return CheckAtBase.MIXED
    reds = sum(test.outcome.is_red for test in known)
    if reds == 0:
        return CheckAtBase.GREEN
    return CheckAtBase.RED if reds == len(known) else CheckAtBase.MIXED


_BY_VERDICT = {
    Verdict.PASSED: CheckAtBase.GREEN,
    Verdict.FAILED: CheckAtBase.RED,
    Verdict.FLAKY: CheckAtBase.MIXED,
}
