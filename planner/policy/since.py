"""Comparison of results with the baseline: new or pre-existing, and whether the todo has to repair it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from planner.model.verdicts import CheckAtBase, Since, TestOutcome, TodoAtBase, Verdict
from planner.policy.criteria import STAY_GREEN, TURN_GREEN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from planner.model.baseline import BaselineCheck, BaselineTest
    from planner.model.outcome import Failure, Outcome
    from planner.model.plan import Todo

GREEN = frozenset((TestOutcome.PASSED, TestOutcome.XPASSED))
"""Outcomes of tests that ran and passed."""


def since_of(now: TestOutcome, then: BaselineTest | None, *, may_have_been_there: bool) -> Since:
    """Return how a test's result compares with its result at the baseline.

    ``then`` is ``None`` if the baseline has no result of the test: it did not exist then, or, if
    ``may_have_been_there``, perhaps existed and was not run.
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


_PRECEDENCE = (Since.NEW, Since.UNKNOWN, Since.PRE_EXISTING, Since.FLAKY_AT_BASE)
"""Order of precedence for a failure of several tests: one new test makes it new."""


def since_of_tests(sinces: Collection[Since]) -> Since:
    """Return how a failure compares with the baseline, from the comparisons of its failing tests."""
    return next((since for since in _PRECEDENCE if since in sinces), Since.UNKNOWN)


def since_of_check(then: BaselineCheck | None, signature: str | None) -> Since:
    """Return how a failure without tests compares with the baseline, by its check's verdict and signatures.

    ``then`` is the check at the baseline, or ``None`` if it is not known.
    """
    if then is None:
        return Since.UNKNOWN
    if then.verdict is Verdict.FLAKY:
        return Since.FLAKY_AT_BASE
    if signature is not None and signature in then.signatures:
        return Since.PRE_EXISTING
    return Since.NEW if then.verdict is Verdict.PASSED or then.verdict.is_red else Since.UNKNOWN


def check_at_base(then: BaselineCheck | None, tests: Iterable[BaselineTest]) -> CheckAtBase | None:
    """Return the state of a check at the baseline: by its tests that ran there, else by its verdict.

    Returns ``None`` if the baseline decides neither.
    """
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

BEFORE_THE_WORK = frozenset((Since.PRE_EXISTING, Since.FLAKY_AT_BASE))
"""Comparisons that show that a failure was not caused by the work on the todo."""


SET_APART = "pre_existing_"
"""Prefix of the ids of todos that were created for a pre-existing failure of another todo."""


def is_preexisting(todo: Todo, outcome: Outcome | None, failure: Failure) -> bool:
    """Return whether a failure was neither caused by the work on a todo nor is the todo's to repair.

    A failure from before the work is the todo's to repair if the todo names its tests
    (``must_turn_green``), or if the todo was open at the baseline and its whole check failed there. A
    failing test among passing ones is not. With ``outcome`` ``None`` the state at the baseline is unknown.
    """
    if failure.since not in BEFORE_THE_WORK or failure.check_id == TURN_GREEN:
        return False
    # A todo that was created for such a failure would otherwise be given a todo for it again, and so on.
    if todo.id.rpartition("/")[2].startswith(SET_APART):
        return False
    tests = failure.tests or failure.top_failing_tests
    if todo.must_turn_green and tests:
        return not any(covers(todo.must_turn_green, test) for test in tests)
    if failure.since is Since.FLAKY_AT_BASE or outcome is None or outcome.at_base is not TodoAtBase.OPEN:
        return True
    return not any(
        check.at_base is CheckAtBase.RED
        and check.id != STAY_GREEN
        and (check.id == failure.check_id or any(test.nodeid in tests for test in check.tests))
        for check in outcome.checks
    )


def covers(named: Literal["all"] | Sequence[str], nodeid: str) -> bool:
    """Return whether a list names a test: by its node id, or without parameters, or by class, file, folder.

    ``all`` names every test.
    """
    if named == "all":
        return True
    return any(_names(each.removeprefix("./").rstrip("/"), nodeid) for each in named)


def _names(name: str, nodeid: str) -> bool:
    return name in (".", nodeid) or nodeid.startswith((f"{name}[", f"{name}::", f"{name}/"))
