"""Qualification of checks before the work: whether a check fails while the feature is missing.

Each criterion of unclaimed todos runs several times on the unchanged tree. A check that passes each time
proves nothing (vacuous); one with mixed results is unstable; one without a result is unrunnable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from planner.model.plan import CommandSpec, TodoStatus
from planner.model.qualification import Qualification, QualifiedCheck, QualifiedRun, Quality
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import CheckKind, TestOutcome, Verdict
from planner.policy.criteria import STAY_GREEN, TURN_GREEN
from planner.text.glob_patterns import allowed
from pytest_planverify.baseline.kept_baseline import now
from pytest_planverify.baseline.record import verify_apart
from pytest_planverify.baseline.repository import Repository
from pytest_planverify.checks.result import file_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from planner.model.outcome import Failure, Outcome, OutcomeDocument
    from planner.model.plan import Todo
    from planner.planfile.tree import FlatPlan
    from planner.policy.criteria import Criterion

RUNS = 3
"""Number of runs of each check."""

_UNRUNNABLE = frozenset({Category.ENVIRONMENT_ERROR, Category.HARNESS_ERROR})
_ANSWERS = frozenset({Verdict.PASSED, Verdict.FAILED, Verdict.FLAKY})


class CheckAnswer(NamedTuple):
    """A check's result in one run."""

    verdict: Verdict
    reason: str | None = None
    failure: Failure | None = None
    """The diagnosed failure, if the check failed."""
    has_xfailed: bool = False
    """Whether a test failed as expected."""


class Worth(NamedTuple):
    """Quality of a check, with reason and remedy."""

    quality: Quality
    because: str
    remedy: str | None = None


def qualify(
    flat: FlatPlan,
    *,
    directory: Path,
    runs: int = RUNS,
    say: Callable[[str], None],
) -> Qualification:
    """Return the qualification of each check of the unclaimed todos.

    The whole plan runs ``runs`` times. ``say`` is called with a line per run, for progress. Raises
    :class:`planner.errors.PlannerError` if the plan cannot be verified at all.
    """
    # A claimed todo states that its work is done, so its checks should pass by now.
    todos = flat.loaded.plan.items
    claimed = tuple(todo.id for todo in todos if todo.status is TodoStatus.CLAIMED)
    subjects = [
        (todo, criterion)
        for todo in todos
        if todo.id not in claimed
        for criterion in flat.loaded.criteria[todo.id]
        if is_qualified(criterion)
    ]
    documents: list[OutcomeDocument] = []
    for number in range(1, runs + 1) if subjects else ():
        say(f"verifying the current tree, {number} of {runs}")
        documents.append(verify_apart(flat, directory=directory))
    repository = Repository.around(flat.loaded.root)
    return Qualification(
        plan=flat.loaded.plan.todo_list_id,
        plan_digest=flat.loaded.digest,
        made_at=now("seconds"),
        revision=None if repository is None else repository.commit("HEAD"),
        python=documents[0].run.python if documents else "",
        pytest=documents[0].run.pytest if documents else "",
        runs=runs,
        checks=tuple(_qualified(*each, documents, flat) for each in subjects),
        skipped=claimed,
    )


def is_qualified(criterion: Criterion) -> bool:
    """Return whether a criterion can be qualified before the work.

    Manual criteria cannot, as people answer them, nor ``must_stay_green``, which passes by definition.
    """
    return criterion.kind is not CheckKind.MANUAL and criterion.id != STAY_GREEN


def _qualified(
    todo: Todo, criterion: Criterion, documents: Sequence[OutcomeDocument], flat: FlatPlan
) -> QualifiedCheck:
    """Return a check's qualification by the outcomes of all runs."""
    answers = [answer_of(document.outcome(todo.id), criterion.id) for document in documents]
    # An expected failure is proof enough for must_turn_green, but for no other check.
    is_expected = criterion.id == TURN_GREEN and any(each.has_xfailed for each in answers)
    to_be_written = _is_to_be_written(criterion, flat)
    worth = worth_of(answers, criterion.kind, to_be_written=to_be_written, is_expected=is_expected)
    return QualifiedCheck(
        todo_id=todo.id,
        check_id=criterion.id,
        kind=criterion.kind,
        cmd=criterion.spec.cmd if isinstance(criterion.spec, CommandSpec) else None,
        **worth._asdict(),
        runs=tuple(
            QualifiedRun(verdict=each.verdict, signature=each.failure and each.failure.signature)
            for each in answers
        ),
    )


def _is_to_be_written(criterion: Criterion, flat: FlatPlan) -> bool:
    """Return whether each test file that the command selects is one that an unclaimed todo may write."""
    if criterion.command is None or criterion.command.pytest is None:
        return False
    files = list(map(file_of, criterion.command.pytest.selections))
    return bool(files) and all(any(_makes(todo, file) for todo in flat.loaded.plan.items) for file in files)


def _makes(todo: Todo, file: str) -> bool:
    """Return whether an unclaimed todo may write a file: by artifact, target file or ``allowed_files``."""
    if todo.status is TodoStatus.CLAIMED:
        return False
    # Only what some open todo writes may be missing now: other missing tests are a fault of the plan.
    artifacts = [artifact.path for artifact in todo.acceptance_criteria.expected_artifacts]
    target = todo.controller_task_spec.target_file if todo.controller_task_spec is not None else None
    named = allowed(file, [*artifacts, *([target] if target else [])])
    return named or (todo.allowed_files is not None and allowed(file, todo.allowed_files))


# -- what a check is worth -----------------------------------------------------------------------------


def answer_of(outcome: Outcome, check_id: str) -> CheckAnswer:
    """Return a check's result from its todo's outcome; ``NOT_RUN`` if the run did not reach it.

    Its failure is its own, or else that of another check which one of its failing tests shows.
    """
    check = next((each for each in outcome.checks if each.id == check_id), None)
    if check is None:
        return CheckAnswer(Verdict.NOT_RUN, "it was not reached")
    # A failure is attributed to one check, even if several ran the failing test.
    red = {test.nodeid for test in check.tests if test.outcome.is_red}
    own = next((each for each in outcome.failures if each.check_id == check.id), None)
    shared = next((each for each in outcome.failures if red & {*each.tests, *each.top_failing_tests}), None)
    has_xfailed = any(test.outcome is TestOutcome.XFAILED for test in check.tests)
    return CheckAnswer(check.verdict, check.reason, own or shared, has_xfailed)


def worth_of(
    answers: Sequence[CheckAnswer],
    kind: CheckKind = CheckKind.TEST,
    *,
    to_be_written: bool = False,
    is_expected: bool = False,
) -> Worth:
    """Return the qualification of a check of that kind by its results on the unchanged tree.

    ``to_be_written`` states that the tests are still to be written by a todo, ``is_expected`` that tests
    which are expected to fail must turn green.
    """
    unanswered = next((each for each in answers if each.verdict not in _ANSWERS), None)
    if unanswered is not None:
        return _unrunnable(unanswered.reason or f"it is {unanswered.verdict}", unanswered.failure)
    greens = sum(each.verdict is Verdict.PASSED for each in answers)
    flaky = sum(each.verdict is Verdict.FLAKY for each in answers)
    if flaky or 0 < greens < len(answers):
        often = f"failed and passed in {flaky}" if flaky else f"passed in {greens}"
        return Worth(
            Quality.UNSTABLE,
            f"it {often} of {len(answers)} runs on the same tree",
            "remove the dependence on chance, clock, network or order, and qualify it again",
        )
    if greens:
        often = "once" if greens == 1 else f"{greens} of {greens} times"
        remedy = "let it require what the work adds, or remove it"
        if kind in (CheckKind.TEST, CheckKind.COMMAND):
            remedy = "add a test that fails now, or name the tests under must_stay_green"
        remedy += "; if the work is done, claim the todo"
        return Worth(Quality.VACUOUS, f"it passes before the work ({often})", remedy)
    # A check must fail for lack of the feature, not for lack of tests or because of the environment.
    failure = answers[0].failure
    head = (failure.stack_trace_head or "").strip() if failure is not None else ""
    if failure is not None and (failure.category in _UNRUNNABLE or failure.owner is Owner.ENVIRONMENT):
        return _unrunnable(head or str(failure.category), failure)
    if failure is not None and failure.category is Category.TEST_NOT_FOUND:
        if to_be_written:
            return Worth(Quality.RED_OK, "a todo has to write its tests first")
        if is_expected:
            return Worth(Quality.RED_OK, "its tests are expected to fail before the work")
        return Worth(
            Quality.UNRUNNABLE,
            head or "its tests do not exist",
            "remove what skips its tests or expects them to fail"
            if failure.tests
            else "name existing tests; if a todo is to write them, list them in its allowed_files or "
            "expected_artifacts",
        )
    return Worth(Quality.RED_OK, ": ".join(["it fails before the work", *head.splitlines()[:1]]))


def _unrunnable(because: str, failure: Failure | None) -> Worth:
    """Return the qualification of a check without a result; the diagnosis' suggestion is the remedy."""
    advice = failure.suggestion if failure is not None and failure.suggestion else None
    return Worth(
        Quality.UNRUNNABLE,
        because,
        advice or "make it run: fix its command, its data file or the environment",
    )
