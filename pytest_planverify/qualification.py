"""Checks the checks: runs each criterion of the todos that are not claimed yet on the tree as it is, and
on copies of it in which a negative control has broken the feature."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from planner.catalog import parse_command
from planner.edges.plan_folder import PlanFolder, make_home
from planner.edges.project_files import walk
from planner.edges.qualification_file import write_qualification
from planner.errors import CommandSyntaxError
from planner.model.plan import CommandSpec, TodoStatus
from planner.model.qualification import Qualification, QualifiedCheck, QualifiedRun, Quality
from planner.model.verdicts import Verdict
from planner.rules.qualifying import Answer, answer_of, bad_checks, is_qualified, worth_of
from planner.text.glob_patterns import allowed
from pytest_planverify.baseline.recording import now
from pytest_planverify.baseline.verifying import verify_apart
from pytest_planverify.repository import Repository
from pytest_planverify.worktrees import copy_as_is, counterpart, environment_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from planner.model.outcome import OutcomeDocument
    from planner.model.plan import NegativeControl, Todo
    from planner.planfile.tree import FlatPlan
    from planner.rules.criteria import Criterion

RUNS = 3
"""How often each check is run on the tree as it is."""

MOST_RUNS = 100
_CONTROL_SECONDS = 600.0


@dataclass(slots=True)
class _Tried:
    """What became of a negative control."""

    fault: str | None = None
    document: OutcomeDocument | None = None


@dataclass(frozen=True, slots=True)
class _Subject:
    """A criterion that is to be qualified."""

    todo: Todo
    criterion: Criterion
    control: NegativeControl | None


@dataclass(slots=True)
class _Documents:
    as_is: list[OutcomeDocument] = field(default_factory=list["OutcomeDocument"])
    broken: dict[NegativeControl, _Tried] = field(default_factory=dict["NegativeControl", _Tried])


def qualify(
    flat: FlatPlan,
    *,
    directory: Path,
    runs: int = RUNS,
    todo_ids: Sequence[str] = (),
    say: Callable[[str], None] = lambda _: None,
) -> Qualification:
    """What each check of the todos that are not claimed is worth; ``todo_ids`` narrows them.

    The checks run in the tree as it is, ``runs`` times, and once for each negative control in a copy that
    is thrown away. Raises :class:`planner.errors.PlannerError` where the plan cannot be verified at all.
    """
    todos = [todo for todo in flat.loaded.plan.items if not todo_ids or todo.id in todo_ids]
    claimed = tuple(todo.id for todo in todos if todo.status is TodoStatus.CLAIMED)
    open_todos = [todo for todo in todos if todo.id not in claimed]
    subjects = list(_subjects(flat, open_todos))
    documents = _Documents()
    if subjects:
        for number in range(1, runs + 1):
            say(f"verifying the tree as it is, {number} of {runs}")
            documents.as_is.append(verify_apart(flat.loaded.path, directory=directory).document)
        for control in dict.fromkeys(each.control for each in subjects if each.control is not None):
            say(f"verifying a copy that is broken by {_named(control)}")
            documents.broken[control] = _try(control, flat)
    root = flat.loaded.root
    repository = Repository.around(root)
    first = documents.as_is[0].run if documents.as_is else None
    return Qualification(
        plan=flat.loaded.plan.todo_list_id,
        plan_digest=flat.loaded.digest,
        made_at=now(),
        revision=None if repository is None else repository.commit("HEAD"),
        python="" if first is None else first.python,
        pytest="" if first is None else first.pytest,
        runs=runs,
        checks=tuple(_qualified(subject, documents, flat) for subject in subjects),
        skipped=claimed,
    )


def qualify_command(plan: Path, *, runs: int, todo_ids: Sequence[str], output: Path | None) -> int:
    """Qualify a plan for the command line: print what each check is worth, and write the file."""
    from pytest_planverify.command_words import Status, UsageMistake, complain, flat_plan, say

    if not 1 <= runs <= MOST_RUNS:
        raise UsageMistake(f"--runs {runs}: it is no number from 1 to {MOST_RUNS}")
    flat = flat_plan(plan)
    known = {todo.id for todo in flat.loaded.plan.items}
    for todo_id in todo_ids:
        if todo_id not in known:
            raise UsageMistake(f"--todo {todo_id}: the plan has no such todo; it has {', '.join(known)}")
    if output is None:
        make_home(flat.loaded.root)
    place = output or PlanFolder(flat.loaded.root, flat.loaded.plan.todo_list_id).qualification
    if place.is_dir():
        raise UsageMistake(f"--output {place}: it is a folder; name a file to write to")
    document = qualify(flat, directory=Path.cwd(), runs=runs, todo_ids=todo_ids, say=complain)
    write_qualification(document, place)
    for line in report(document):
        say(line)
    say(f"qualification  {os.path.relpath(place)}")
    return Status.FOUND if bad_checks(document) else Status.OK


def report(document: Qualification) -> Iterator[str]:
    """The lines for the screen: each check with what it is worth, why, and what to do."""
    from planner.text.sanitizing import clean

    def line(text: str) -> str:
        return " ".join(clean(text, limit=500).split())

    name_width = max((len(f"{each.todo_id} {each.check_id}") for each in document.checks), default=0)
    for check in document.checks:
        name = f"{check.todo_id} {check.check_id}"
        yield (
            line(f"{check.quality:<10}").ljust(10)
            + f"  {name:<{name_width}}  {line(check.cmd or '')}".rstrip()
        )
        yield f"            why  {line(check.because)}"
        if check.remedy:
            yield f"            fix  {line(check.remedy)}"
    counts = dict.fromkeys(Quality, 0)
    for check in document.checks:
        counts[check.quality] += 1
    said = ", ".join(f"{count} {quality}" for quality, count in counts.items() if count)
    yield said or "no todo is open, so there is nothing to qualify"
    if document.skipped:
        yield f"claimed already, and not qualified: {', '.join(document.skipped)}"


# -- what is qualified ---------------------------------------------------------------------------------


def _subjects(flat: FlatPlan, todos: Sequence[Todo]) -> Iterator[_Subject]:
    for todo in todos:
        for criterion in flat.loaded.criteria[todo.id]:
            if is_qualified(criterion):
                own = criterion.spec.negative_control if isinstance(criterion.spec, CommandSpec) else None
                yield _Subject(todo, criterion, own or todo.negative_control)


def _qualified(subject: _Subject, documents: _Documents, flat: FlatPlan) -> QualifiedCheck:
    todo, criterion, control = subject.todo, subject.criterion, subject.control
    as_is = [_answer(document, subject) for document in documents.as_is]
    tried = None if control is None else documents.broken[control]
    broken = None if tried is None or tried.document is None else _answer(tried.document, subject)
    worth = worth_of(
        as_is,
        broken,
        control_fault=None if tried is None else tried.fault,
        to_be_written=_is_to_be_written(subject, flat),
    )
    answers = [("as_is", each) for each in as_is]
    answers += [("broken", broken)] if broken is not None else []
    return QualifiedCheck(
        todo_id=todo.id,
        check_id=criterion.id,
        kind=criterion.kind,
        cmd=criterion.spec.cmd if isinstance(criterion.spec, CommandSpec) else None,
        quality=worth.quality,
        because=worth.because,
        remedy=worth.remedy,
        runs=tuple(
            QualifiedRun(
                tree=tree,  # pyright: ignore[reportArgumentType]  # one of the two words above
                verdict=answer.verdict,
                signature=None if answer.failure is None else answer.failure.signature,
            )
            for tree, answer in answers
        ),
        control=None if control is None else _named(control),
    )


def _answer(document: OutcomeDocument, subject: _Subject) -> Answer:
    outcome = document.outcome(subject.todo.id)
    check = next((each for each in outcome.checks if each.id == subject.criterion.id), None)
    if check is None:
        return Answer(verdict=Verdict.NOT_RUN, reason="it was not reached")
    return answer_of(outcome, check)


def _is_to_be_written(subject: _Subject, flat: FlatPlan) -> bool:
    """Whether an open todo says that it will write a test file that the command selects."""
    command = subject.criterion.command
    if command is None or command.pytest is None:
        return False
    files = [text.partition("[")[0].partition("::")[0] for text in command.pytest.selections]
    return bool(files) and all(any(_makes(todo, file) for todo in flat.loaded.plan.items) for file in files)


def _makes(todo: Todo, file: str) -> bool:
    if todo.status is TodoStatus.CLAIMED:
        return False
    artifacts = [artifact.path for artifact in todo.acceptance_criteria.expected_artifacts]
    target = todo.controller_task_spec.target_file if todo.controller_task_spec is not None else None
    named = allowed(file, [*artifacts, *([target] if target else [])])
    return named or (todo.allowed_files is not None and allowed(file, todo.allowed_files))


# -- negative controls ---------------------------------------------------------------------------------


def _try(control: NegativeControl, flat: FlatPlan) -> _Tried:
    """Break a copy of the tree, and verify the plan in it."""
    root = flat.loaded.root
    with copy_as_is(root) as tree:
        fault = _apply(control, root, tree)
        if fault is not None:
            return _Tried(fault=fault)
        plan = counterpart(flat.loaded.path, tree, root)
        if plan is None or not plan.exists():
            return _Tried(fault="the plan file does not lie in the tree that was copied")
        verified = verify_apart(plan, directory=tree, env=environment_for(tree, root))
        return _Tried(document=verified.document)


def _apply(control: NegativeControl, root: Path, tree: Path) -> str | None:
    """Why the control cannot be applied; nothing if it was."""
    before = _stamps(tree)
    if control.patch is not None:
        fault = _apply_patch(root / control.patch, tree)
    else:
        assert control.cmd is not None
        fault = _run(control.cmd, tree, environment_for(tree, root))
    if fault is None and _stamps(tree) == before:
        return f"{_named(control)} changes no file, so it breaks nothing"
    return fault


def _stamps(tree: Path) -> dict[str, tuple[int, int, int]]:
    """What tells whether a file was written since."""
    found: dict[str, tuple[int, int, int]] = {}
    for path in walk(tree):
        with suppress(OSError):
            facts = os.lstat(tree / path)
            found[path] = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
    return found


def _apply_patch(patch: Path, tree: Path) -> str | None:
    if not patch.is_file():
        return f"there is no patch {patch.name}"
    repository = Repository.around(tree)
    top, prefix = (tree, "") if repository is None else (repository.top, repository.prefix)
    argv = [
        "git",
        "apply",
        "--whitespace=nowarn",
        *([f"--directory={prefix}"] if prefix else []),
        str(patch),
    ]
    try:
        done = subprocess.run(
            argv, cwd=top, capture_output=True, text=True, errors="replace", timeout=_CONTROL_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"git cannot apply it: {error}"
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        return f"{patch.name} does not apply: {said[0] if said else 'git says no more'}"
    return None


def _run(cmd: str, tree: Path, env: dict[str, str]) -> str | None:
    from pytest_planverify.checks.command import run_command

    try:
        command = parse_command(cmd)
    except CommandSyntaxError as error:
        return f"{error.problem}; {error.remedy}"
    result = run_command(command, tree, _CONTROL_SECONDS, env={**os.environ, **env}, check_id="control")
    if result.exit_code == 0:
        return None
    how = "did not come to its end" if result.exit_code is None else f"ended with {result.exit_code}"
    said = result.evidence[0].headline if result.evidence else result.reason
    return f"{cmd!r} {how}: {said or 'it says no more'}"


def _named(control: NegativeControl) -> str:
    return control.patch or control.cmd or "nothing"
