"""What a check is worth, judged by what it said on the tree before the work, and on a broken one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.qualification import Quality
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import CheckKind, Verdict
from planner.rules.criteria import STAY_GREEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.outcome import Check, Failure, Outcome
    from planner.model.qualification import Qualification, QualifiedCheck
    from planner.rules.criteria import Criterion

_UNRUNNABLE = frozenset({Category.ENVIRONMENT_ERROR, Category.HARNESS_ERROR})
_ANSWERS = frozenset({Verdict.PASSED, Verdict.FAILED, Verdict.FLAKY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one run said of one check."""

    verdict: Verdict
    reason: str | None = None
    failure: Failure | None = None
    """The diagnosis of its failure, where it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What a check is worth, why, and what to do about it."""

    quality: Quality
    because: str
    remedy: str | None = None


def is_qualified(criterion: Criterion) -> bool:
    """Whether a criterion is one that can be good or bad before the work.

    What a person answers is no machine's check, and what must stay green is meant to be green before.
    """
    return criterion.kind is not CheckKind.MANUAL and criterion.id != STAY_GREEN


def bad_checks(document: Qualification) -> tuple[QualifiedCheck, ...]:
    """The checks for which a plan is not ready.

    A linter, type checker or build that is green already is none of them, beside a check that is good: it
    holds what is there.
    """
    proved = {check.todo_id for check in document.checks if check.quality is Quality.RED_OK}
    return tuple(
        check
        for check in document.checks
        if check.quality is not Quality.RED_OK
        and not (
            check.quality is Quality.VACUOUS
            and check.kind is CheckKind.COMMAND
            and check.control is None
            and check.todo_id in proved
        )
    )


def answer_of(outcome: Outcome, check: Check) -> Answer:
    """What the outcome of a todo says of one of its checks."""
    red = {test.nodeid for test in check.tests if test.outcome.is_red}
    own = next((each for each in outcome.failures if each.check_id == check.id), None)
    shared = next((each for each in outcome.failures if red & {*each.tests, *each.top_failing_tests}), None)
    return Answer(verdict=check.verdict, reason=check.reason, failure=own or shared)


def worth_of(
    as_is: Sequence[Answer],
    broken: Answer | None = None,
    *,
    control_fault: str | None = None,
    to_be_written: bool = False,
) -> Worth:
    """What a check is worth.

    ``as_is`` are its answers on the tree as it is, ``broken`` that on the tree with its negative control
    applied; ``control_fault`` says why that could not be applied. ``to_be_written`` are tests that a todo
    is still to write.
    """
    if not as_is:
        return _unrunnable("it was not reached", None)
    unanswered = next((each for each in as_is if each.verdict not in _ANSWERS), None)
    if unanswered is not None:
        return _unrunnable(unanswered.reason or f"it is {unanswered.verdict}", unanswered.failure)
    greens = sum(each.verdict is Verdict.PASSED for each in as_is)
    if any(each.verdict is Verdict.FLAKY for each in as_is) or 0 < greens < len(as_is):
        return Worth(
            quality=Quality.UNSTABLE,
            because=f"it gave both answers on the same tree: green {greens} of {len(as_is)} times",
            remedy="take chance, clock, network and order out of it, and qualify it again",
        )
    return _green(broken, control_fault, len(as_is)) if greens else _red(as_is[0], broken, to_be_written)


def _green(broken: Answer | None, control_fault: str | None, times: int) -> Worth:
    """Of a check that is green before the work."""
    if control_fault is not None:
        return Worth(
            quality=Quality.UNRUNNABLE,
            because=f"its negative control cannot be applied: {control_fault}",
            remedy="make the control anew, so that it breaks the feature in the tree as it is",
        )
    if broken is None:
        said = "once" if times == 1 else f"{times} of {times} times"
        return Worth(
            quality=Quality.VACUOUS,
            because=f"it is green before the work ({said})",
            remedy="add a test that is red now, or name the tests under must_stay_green; if the work is "
            "done, claim the todo, or declare a negative_control that breaks the feature",
        )
    return _on_broken(broken) or Worth(
        quality=Quality.RED_OK,
        because="it is green now, and red where its negative control breaks the feature",
    )


def _red(first: Answer, broken: Answer | None, to_be_written: bool) -> Worth:
    """Of a check that is red before the work; a control that does not apply yet is no fault of it."""
    failure = first.failure
    if failure is not None and (failure.category in _UNRUNNABLE or failure.owner is Owner.ENVIRONMENT):
        return _unrunnable(failure.stack_trace_head or str(failure.category), failure)
    if failure is not None and failure.category is Category.TEST_NOT_FOUND:
        if not to_be_written:
            return Worth(
                quality=Quality.UNRUNNABLE,
                because=failure.stack_trace_head or "its tests do not exist",
                remedy="name tests that exist; if a todo is to write them, say so in its allowed_files or "
                "expected_artifacts",
            )
        return Worth(quality=Quality.RED_OK, because="its tests are still to be written by a todo")
    bad = None if broken is None else _on_broken(broken)
    return bad or Worth(quality=Quality.RED_OK, because=_said("it is red before the work", failure))


def _on_broken(broken: Answer) -> Worth | None:
    if broken.verdict is Verdict.PASSED:
        return Worth(
            quality=Quality.VACUOUS,
            because="it is green on the tree that its negative control broke",
            remedy="let it assert what the feature gives, so that it notices when the feature is gone",
        )
    if broken.verdict not in _ANSWERS:
        said = broken.reason or f"it is {broken.verdict}"
        return _unrunnable(f"on the tree that its negative control broke {said}", broken.failure)
    return None


def _unrunnable(because: str, failure: Failure | None) -> Worth:
    advice = failure.suggestion if failure is not None and failure.suggestion else None
    return Worth(
        quality=Quality.UNRUNNABLE,
        because=because,
        remedy=advice or "make it run: mend its command, its data file or the environment",
    )


def _said(text: str, failure: Failure | None) -> str:
    head = (failure.stack_trace_head or "").strip().splitlines() if failure is not None else []
    return f"{text}: {head[0]}" if head else text
