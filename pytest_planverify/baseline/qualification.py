"""Qualification of checks before the work: whether a check fails while the feature is missing or broken.

Each criterion of unclaimed todos runs several times on the unchanged tree, and once on a temporary copy
that its negative control has broken. A check that passes in all of them proves nothing (vacuous); one with
mixed results on the unchanged tree is unstable; one without a result is unrunnable.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

from planner.catalog import parse_command
from planner.errors import CommandSyntaxError
from planner.model.plan import CommandSpec, TodoStatus
from planner.model.qualification import Qualification, QualifiedCheck, QualifiedRun, Quality
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import CheckKind, Verdict
from planner.planfile.project_files import walk
from planner.policy.criteria import STAY_GREEN
from planner.text.glob_patterns import allowed
from pytest_planverify.baseline.record import now, verify_apart
from pytest_planverify.baseline.repository import Repository
from pytest_planverify.baseline.worktrees import copy_as_is, counterpart, environment_for
from pytest_planverify.checks.chance import test_depends_on_chance
from pytest_planverify.checks.result import file_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from planner.model.outcome import Failure, Outcome, OutcomeDocument
    from planner.model.plan import NegativeControl, Todo, ToolSpec
    from planner.planfile.tree import FlatPlan
    from planner.policy.criteria import Criterion

RUNS = 3
"""Number of runs of each check on the unchanged tree."""

RUNS_OF_CHANCE = 10
"""Maximum of runs of a check whose tests involve chance; they end when it has both passed and failed."""

_CONTROL_SECONDS = 600.0
"""Time limit of a negative control's command or patch."""
_UNRUNNABLE = frozenset({Category.ENVIRONMENT_ERROR, Category.HARNESS_ERROR})
_ANSWERS = frozenset({Verdict.PASSED, Verdict.FAILED, Verdict.FLAKY})


class CheckAnswer(NamedTuple):
    """A check's result in one run."""

    verdict: Verdict
    reason: str | None = None
    failure: Failure | None = None
    """The diagnosed failure, if the check failed."""


class Worth(NamedTuple):
    """Quality of a check, with reason and remedy."""

    quality: Quality
    because: str
    remedy: str | None = None


class _Subject(NamedTuple):
    """A criterion to qualify, with its own negative control or else that of its todo."""

    todo: Todo
    criterion: Criterion
    control: NegativeControl | None


def qualify(
    flat: FlatPlan,
    *,
    directory: Path,
    runs: int = RUNS,
    todo_ids: Sequence[str] = (),
    say: Callable[[str], None],
) -> Qualification:
    """Return the qualification of each check of the unclaimed todos; ``todo_ids`` restricts them, if given.

    The whole plan runs ``runs`` times on the tree, and once per negative control in a temporary copy. If
    ``runs`` is at least 2 and a check's tests involve chance, it runs on the tree more often. ``say`` is
    called with a line per run, for progress. Raises :class:`planner.errors.PlannerError` if the plan cannot
    be verified at all.
    """
    # A claimed todo states that its work is done, so its checks should pass by now.
    todos = [todo for todo in flat.loaded.plan.items if not todo_ids or todo.id in todo_ids]
    claimed = tuple(todo.id for todo in todos if todo.status is TodoStatus.CLAIMED)
    subjects = list(_subjects(flat, [todo for todo in todos if todo.id not in claimed]))
    as_is: list[OutcomeDocument] = []
    for number in range(1, max(runs, RUNS_OF_CHANCE) + 1) if subjects else ():
        if number > runs:
            # A few uniform results prove little for a test that involves chance.
            if runs < 2 or not _undecided_by_chance(subjects, as_is, flat):
                break
            why, most = "again, because a test uses random numbers or time", RUNS_OF_CHANCE
        else:
            why, most = "the current tree", runs
        say(f"verifying {why}, {number} of {most}")
        as_is.append(verify_apart(flat.loaded.path, directory=directory))
    broken: dict[NegativeControl | None, OutcomeDocument | str | None] = {None: None}
    # The criteria of a todo may share its control, for which one broken copy is enough.
    for control in dict.fromkeys(each.control for each in subjects if each.control is not None):
        say(f"verifying a copy broken by {_name_of(control)}")
        broken[control] = _verify_broken_copy(control, flat)
    repository = Repository.around(flat.loaded.root)
    return Qualification(
        plan=flat.loaded.plan.todo_list_id,
        plan_digest=flat.loaded.digest,
        made_at=now(),
        revision=None if repository is None else repository.commit("HEAD"),
        python=as_is[0].run.python if as_is else "",
        pytest=as_is[0].run.pytest if as_is else "",
        runs=runs,
        checks=tuple(_qualified(each, as_is, broken[each.control], flat) for each in subjects),
        skipped=claimed,
    )


# -- what is qualified ---------------------------------------------------------------------------------


def _subjects(flat: FlatPlan, todos: Sequence[Todo]) -> Iterator[_Subject]:
    """Yield the criteria of the todos that can be qualified."""
    for todo in todos:
        for criterion in flat.loaded.criteria[todo.id]:
            if is_qualified(criterion):
                own = criterion.spec.negative_control if isinstance(criterion.spec, CommandSpec) else None
                yield _Subject(todo, criterion, own or todo.negative_control)


def _qualified(
    subject: _Subject, as_is: Sequence[OutcomeDocument], tried: OutcomeDocument | str | None, flat: FlatPlan
) -> QualifiedCheck:
    """Return a check's qualification.

    ``as_is`` are the outcomes on the unchanged tree; ``tried`` are those on the broken copy, or a text why
    the control could not be applied; ``None`` without a control.
    """
    todo, criterion = subject.todo, subject.criterion
    answers = [answer_of(document.outcome(todo.id), criterion.id) for document in as_is]
    on_broken = None
    if tried is not None and not isinstance(tried, str):
        on_broken = answer_of(tried.outcome(todo.id), criterion.id)
    worth = worth_of(
        answers,
        on_broken,
        control_fault=tried if isinstance(tried, str) else None,
        to_be_written=_is_to_be_written(subject, flat),
    )
    runs: list[tuple[Literal["as_is", "broken"], CheckAnswer]] = [("as_is", each) for each in answers]
    if on_broken is not None:
        runs.append(("broken", on_broken))
    return QualifiedCheck(
        todo_id=todo.id,
        check_id=criterion.id,
        kind=criterion.kind,
        cmd=criterion.spec.cmd if isinstance(criterion.spec, CommandSpec) else None,
        **worth._asdict(),
        runs=tuple(
            QualifiedRun(tree=tree, verdict=each.verdict, signature=each.failure and each.failure.signature)
            for tree, each in runs
        ),
        control=None if subject.control is None else _name_of(subject.control),
    )


def _undecided_by_chance(
    subjects: Sequence[_Subject], documents: Sequence[OutcomeDocument], flat: FlatPlan
) -> bool:
    """Return whether some check with uniform results so far has a test that involves chance."""
    for subject in subjects:
        outcomes = [document.outcome(subject.todo.id) for document in documents]
        checks = [check for each in outcomes for check in each.checks if check.id == subject.criterion.id]
        root = flat.owner(subject.todo.id).root
        tests = {test.nodeid for check in checks for test in check.tests}
        if len({check.verdict for check in checks}) == 1 and any(
            test_depends_on_chance(nodeid, root) for nodeid in tests
        ):
            return True
    return False


def _is_to_be_written(subject: _Subject, flat: FlatPlan) -> bool:
    """Return whether each test file that the command selects is one that an unclaimed todo may write."""
    command = subject.criterion.command
    if command is None or command.pytest is None:
        return False
    files = list(map(file_of, command.pytest.selections))
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


# -- negative controls ---------------------------------------------------------------------------------


def _verify_broken_copy(control: NegativeControl, flat: FlatPlan) -> OutcomeDocument | str:
    """Break a copy of the tree and verify the plan there.

    Returns the outcomes, or a text why the control could not be applied.
    """
    root = flat.loaded.root
    with copy_as_is(root) as tree:
        before = _stamps(tree)
        if control.patch is not None:
            fault = _apply_patch(root / control.patch, tree)
        else:
            # Reversed, so that the top plan's definition of a tool replaces that of a sub-plan.
            tools = {spec.name: spec for part in reversed(flat.parts) for spec in part.tools}
            fault = _run(control.cmd or "", tuple(tools.values()), tree, environment_for(tree, root))
        if fault is not None:
            return fault
        if _stamps(tree) == before:
            return f"{_name_of(control)} changes no file and so breaks nothing"
        plan = counterpart(flat.loaded.path, tree, root)
        if plan is None or not plan.exists():
            return "the plan file is not in the copied tree"
        return verify_apart(plan, directory=tree, env=environment_for(tree, root))


def _stamps(tree: Path) -> dict[str, tuple[int, int, int]]:
    """Return modification time (in ns), size and inode of each file, to detect later changes."""
    found: dict[str, tuple[int, int, int]] = {}
    for path in walk(tree):
        with suppress(OSError):
            facts = os.lstat(tree / path)
            found[path] = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
    return found


def _apply_patch(patch: Path, tree: Path) -> str | None:
    """Apply a patch to a copy; return ``None``, or why it does not apply.

    Paths in the patch are relative to the plan's root, which may be a folder of the repository.
    """
    if not patch.is_file():
        return f"the patch {patch.name} does not exist"
    # Inside of a repository git resolves the paths of a patch from its top, wherever it is started.
    repository = Repository.around(tree)
    top, prefix = (tree, "") if repository is None else (repository.top, repository.prefix)
    argv = ["git", "apply", "--whitespace=nowarn", f"--directory={prefix}", str(patch)]
    try:
        done = subprocess.run(
            argv, cwd=top, capture_output=True, text=True, errors="replace", timeout=_CONTROL_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"git cannot apply it: {error}"
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.strip()]
        return f"{patch.name} does not apply: {errors[0] if errors else 'no reason given'}"
    return None


def _run(cmd: str, tools: tuple[ToolSpec, ...], tree: Path, env: dict[str, str]) -> str | None:
    """Run a negative control's command in a copy; return ``None``, or why it failed."""
    from pytest_planverify.checks.command import run_command

    try:
        command = parse_command(cmd, tools)
    except CommandSyntaxError as error:
        return f"{error.problem}; {error.remedy}"
    result = run_command(command, tree, _CONTROL_SECONDS, env={**os.environ, **env}, check_id="control")
    if result.exit_code == 0:
        return None
    how = "did not come to its end" if result.exit_code is None else f"ended with {result.exit_code}"
    detail = result.evidence[0].headline if result.evidence else result.reason
    return f"{cmd!r} {how}: {detail or 'no output'}"


def _name_of(control: NegativeControl) -> str:
    """Return what the control applies: its patch or its command."""
    return control.patch or control.cmd or "nothing"


# -- what a check is worth -----------------------------------------------------------------------------


def is_qualified(criterion: Criterion) -> bool:
    """Return whether a criterion can be qualified before the work.

    Manual criteria cannot, as people answer them, nor ``must_stay_green``, which passes by definition.
    """
    return criterion.kind is not CheckKind.MANUAL and criterion.id != STAY_GREEN


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
    return CheckAnswer(check.verdict, check.reason, own or shared)


def worth_of(
    as_is: Sequence[CheckAnswer],
    broken: CheckAnswer | None = None,
    *,
    control_fault: str | None = None,
    to_be_written: bool = False,
) -> Worth:
    """Return the qualification of a check.

    ``as_is`` are its results on the unchanged tree; ``broken`` is its result with the negative control
    applied, ``None`` without a control; ``control_fault`` is why the control could not be applied.
    ``to_be_written`` states that the tests are still to be written by a todo.
    """
    unanswered = next((each for each in as_is if each.verdict not in _ANSWERS), None)
    if unanswered is not None:
        return _unrunnable(unanswered.reason or f"it is {unanswered.verdict}", unanswered.failure)
    greens = sum(each.verdict is Verdict.PASSED for each in as_is)
    if any(each.verdict is Verdict.FLAKY for each in as_is) or 0 < greens < len(as_is):
        return Worth(
            Quality.UNSTABLE,
            f"it passed {greens} of {len(as_is)} times on the same tree",
            "remove the dependence on chance, clock, network or order, and qualify it again",
        )
    bad = None if broken is None else _fault_on_broken(broken)
    if greens and control_fault is not None:
        return Worth(
            Quality.UNRUNNABLE,
            f"its negative control cannot be applied: {control_fault}",
            "write the control again, so that it breaks the feature in the current tree",
        )
    if greens and broken is None:
        often = "once" if greens == 1 else f"{greens} of {greens} times"
        return Worth(
            Quality.VACUOUS,
            f"it passes before the work ({often})",
            "add a test that fails now, or name the tests under must_stay_green; if the work is done, "
            "claim the todo, or declare a negative_control that breaks the feature",
        )
    if greens:
        return bad or Worth(Quality.RED_OK, "it passes now, and fails with its negative control")
    # A check that fails needs no control; one that does not apply before the work is acceptable. But it
    # must fail for lack of the feature, not for lack of tests or because of the environment.
    failure = as_is[0].failure
    head = (failure.stack_trace_head or "").strip() if failure is not None else ""
    if failure is not None and (failure.category in _UNRUNNABLE or failure.owner is Owner.ENVIRONMENT):
        return _unrunnable(head or str(failure.category), failure)
    if failure is not None and failure.category is Category.TEST_NOT_FOUND:
        if to_be_written:
            return Worth(Quality.RED_OK, "a todo has to write its tests first")
        return Worth(
            Quality.UNRUNNABLE,
            head or "its tests do not exist",
            "name existing tests; if a todo is to write them, list them in its allowed_files or "
            "expected_artifacts",
        )
    because = ": ".join(["it fails before the work", *head.splitlines()[:1]])
    return bad or Worth(Quality.RED_OK, because)


def _fault_on_broken(broken: CheckAnswer) -> Worth | None:
    """Return the qualification of a check that does not fail on the broken copy; ``None`` if it fails."""
    if broken.verdict is Verdict.PASSED:
        return Worth(
            Quality.VACUOUS,
            "it passes on the tree that its negative control broke",
            "let it assert the result of the feature, so that it fails without the feature",
        )
    if broken.verdict not in _ANSWERS:
        detail = broken.reason or f"it is {broken.verdict}"
        return _unrunnable(f"on the tree that its negative control broke {detail}", broken.failure)
    return None


def _unrunnable(because: str, failure: Failure | None) -> Worth:
    """Return the qualification of a check without a result; the diagnosis' suggestion is the remedy."""
    advice = failure.suggestion if failure is not None and failure.suggestion else None
    return Worth(
        Quality.UNRUNNABLE,
        because,
        advice or "make it run: fix its command, its data file or the environment",
    )
