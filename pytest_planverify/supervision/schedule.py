"""Puts the commands of a plan in order: which share a session, which run by themselves, and when.

Commands that are no pytest sessions may have effects that later tests need, so tests of a todo that
comes after such a command, in its own todo or in one that it depends on, run in a later stage.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from planner.model.plan import CommandSpec
from planner.model.verdicts import CheckKind
from planner.rules.dependencies import dependency_order
from pytest_planverify.observing.spec import FOLLOWED_VARIABLES
from pytest_planverify.supervision.folding import Folding, FoldKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planner.catalog import Command
    from planner.edges.plan_file import LoadedPlan
    from planner.edges.plan_tree import FlatPlan
    from planner.model.plan import Todo
    from planner.rules.criteria import Criterion


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One command of one todo."""

    plan: LoadedPlan
    """The file that the todo stands in: the command runs below its root."""
    todo: Todo
    criterion: Criterion
    stage: int
    own_session: str | None
    """Why it shares no session; ``None`` if it may."""

    @property
    def key(self) -> str:
        """Names the criterion among all plans of the run."""
        return criterion_key(self.plan, self.todo.id, self.criterion.id)

    @property
    def spec(self) -> CommandSpec:
        """What the plan says of the command."""
        assert isinstance(self.criterion.spec, CommandSpec)
        return self.criterion.spec

    @property
    def is_pytest(self) -> bool:
        """Whether it can run in a forked session."""
        command = self.criterion.command
        if command is None or command.pytest is None:
            return False
        return not command.pytest.foreign and _start_variable(command) is None

    @property
    def launcher(self) -> tuple[str, ...]:
        """What starts pytest in a process of its own: the running interpreter, or the one named."""
        command = self.criterion.command
        assert command is not None
        assert command.pytest is not None
        if command.pytest.foreign:
            return command.pytest.launcher
        script = Path(sys.executable).with_name("pytest")
        as_module = command.pytest.as_module or not script.exists()
        return (sys.executable, "-m", "pytest") if as_module else (sys.executable, str(script))


@dataclass(slots=True)
class Fold:
    """Commands that share one session."""

    key: FoldKey
    jobs: list[Job] = field(default_factory=list[Job])


@dataclass(slots=True)
class Stage:
    """What may run before any effect of the next stage's commands is needed."""

    folds: list[Fold] = field(default_factory=list[Fold])
    singles: list[Job] = field(default_factory=list[Job])
    todos: list[Todo] = field(default_factory=list["Todo"])
    """The todos whose last command runs here, in dependency order."""


_START_VARIABLES = ("PYTHON", "LC_", "LANG", "LD_", "DYLD_", "MALLOC_")
"""Beginnings of variables that the interpreter or the C library reads when a process starts."""


def criterion_key(plan: LoadedPlan, todo_id: str, criterion_id: str) -> str:
    """Names a criterion among all plans of a run."""
    return f"{plan.path}::{todo_id}::{criterion_id}"


def run_order(todos: Iterable[Todo], children: Mapping[str, Sequence[str]]) -> tuple[Todo, ...]:
    """The todos, each after those that it depends on, and a parent after the todos of its sub-plan."""
    if not children:
        return dependency_order(todos)
    by_id = {todo.id: todo for todo in todos}
    waiting = (
        todo.model_copy(update={"dependencies": (*todo.dependencies, *children.get(todo.id, ()))})
        for todo in by_id.values()
    )
    return tuple(by_id[todo.id] for todo in dependency_order(waiting))


def schedule(flat: FlatPlan, todo_ids: Iterable[str], *, isolate: bool) -> list[Stage]:
    """The stages of a plan and its sub-plans, for the todos named. The order of the files decides."""
    wanted = set(todo_ids)
    plan = flat.loaded
    order = [todo for todo in run_order(plan.plan.items, flat.children) if todo.id in wanted]
    foldings = {part.root: Folding(part.root) for part in flat.parts}
    jobs: list[Job] = []
    ends: dict[str, int] = {}
    lasts: dict[str, int] = {}
    for todo in order:
        before = (*todo.dependencies, *flat.children.get(todo.id, ()))
        start = max((ends[name] for name in before if name in ends), default=0)
        owner = flat.owner(todo.id)
        criteria = plan.criteria[todo.id]
        found, last, end = _jobs_of(owner, todo, criteria, start, foldings[owner.root], isolate=isolate)
        jobs += found
        lasts[todo.id], ends[todo.id] = last, end
    stages = [Stage() for _ in range(max(lasts.values(), default=-1) + 1)]
    for todo in order:
        stages[lasts[todo.id]].todos.append(todo)
    _fold(foldings, jobs, stages)
    return stages


def _jobs_of(
    plan: LoadedPlan,
    todo: Todo,
    criteria: Iterable[Criterion],
    start: int,
    folding: Folding,
    *,
    isolate: bool,
) -> tuple[list[Job], int, int]:
    """The todo's jobs, the stage of its last one, and the stage in which those after it may begin."""
    stage = start
    after_effect = False
    jobs: list[Job] = []
    for criterion in criteria:
        if criterion.kind not in (CheckKind.TEST, CheckKind.COMMAND):
            continue
        job = Job(
            plan=plan,
            todo=todo,
            criterion=criterion,
            stage=stage,
            own_session=_own_session(criterion, folding, isolate=isolate),
        )
        if job.is_pytest and after_effect:
            stage, after_effect = stage + 1, False
            job = Job(plan=plan, todo=todo, criterion=criterion, stage=stage, own_session=job.own_session)
        after_effect = after_effect or not job.is_pytest
        jobs.append(job)
    return jobs, stage, stage + 1 if after_effect else stage


def _own_session(criterion: Criterion, folding: Folding, *, isolate: bool) -> str | None:
    command = criterion.command
    if command is None or command.pytest is None:
        return "it is no pytest command"
    if command.pytest.foreign:
        return f"{' '.join(command.pytest.launcher)} is another interpreter"
    variable = _start_variable(command)
    if variable is not None:
        return f"{variable} is read when an interpreter starts"
    if command.pytest.alone is not None:
        return command.pytest.alone
    if isolate:
        return "asked for by --planverify-isolate"
    selects = command.pytest.keyword or command.pytest.markexpr
    # A shared session has neither: what each command selects is decided after the conftests were asked.
    if selects and folding.reads_selection(command.pytest):
        return "its conftest reads -k or -m"
    return "its conftest looks at all tests together" if folding.reads_company(command.pytest) else None


def _start_variable(command: Command) -> str | None:
    names = (name for name, _ in command.env if name not in FOLLOWED_VARIABLES)
    return next((name for name in names if name.startswith(_START_VARIABLES)), None)


def _fold(foldings: Mapping[Path, Folding], jobs: Sequence[Job], stages: Sequence[Stage]) -> None:
    keys: dict[str, FoldKey] = {}
    for root, folding in foldings.items():
        keys |= _keys(folding, [job for job in jobs if job.own_session is None and job.plan.root == root])
    for job in jobs:
        stage = stages[job.stage]
        if job.own_session is not None:
            stage.singles.append(job)
            continue
        key = keys[job.key]
        fold = next((each for each in stage.folds if each.key == key), None)
        if fold is None:
            fold = Fold(key)
            stage.folds.append(fold)
        fold.jobs.append(job)


def _keys(folding: Folding, jobs: Sequence[Job]) -> Mapping[str, FoldKey]:
    commands = [job.criterion.command for job in jobs]
    pairs = [(command.pytest, command.env) for command in commands if command and command.pytest]
    return dict(zip((job.key for job in jobs), folding.keys(pairs), strict=True))
