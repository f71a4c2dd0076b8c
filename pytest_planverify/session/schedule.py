"""Schedule: the order of a plan's commands, and which of them may run concurrently."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from planner.model.plan import CommandSpec
from planner.model.verdicts import CheckKind
from planner.policy.dependencies import dependency_order

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from planner.catalog import Command, PytestInvocation
    from planner.model.plan import Todo
    from planner.planfile.loader import LoadedPlan
    from planner.planfile.tree import FlatPlan
    from planner.policy.criteria import Criterion
    from pytest_planverify.session.records import WorkerRecord


@dataclass(slots=True, kw_only=True)
class Job:
    """One command of one todo."""

    plan: LoadedPlan
    """The plan file of the todo; the command runs in its root."""
    todo: Todo
    criterion: Criterion
    record: WorkerRecord | None = field(default=None, repr=False)
    """Record of its worker, even if that was ended early."""

    @property
    def key(self) -> str:
        """Key of the criterion among all plans of the run."""
        return f"{self.plan.path}::{self.todo.id}::{self.criterion.id}"

    @property
    def spec(self) -> CommandSpec:
        """The command's specification in the plan."""
        assert isinstance(self.criterion.spec, CommandSpec)
        return self.criterion.spec

    @property
    def command(self) -> Command:
        """The parsed command."""
        assert self.criterion.command is not None
        return self.criterion.command

    @property
    def invocation(self) -> PytestInvocation:
        """The arguments of a pytest command."""
        assert self.command.pytest is not None
        return self.command.pytest

    @property
    def is_pytest(self) -> bool:
        """Return whether the command runs in a worker, with this plugin loaded.

        Other interpreters cannot load it, and some variables take effect at process start only.
        """
        command = self.criterion.command
        if command is None or command.pytest is None or command.pytest.foreign:
            return False
        path = ["."] if command.pytest.as_module else []
        for name, value in command.env:
            if name == "PYTHONPATH":  # the exception that a worker can follow, by its sys.path
                path += filter(None, value.split(os.pathsep))
            elif name.startswith(_START_VARIABLES):
                return False
        return not any(_shadows_python(self.plan.root / folder) for folder in path)

    @property
    def launcher(self) -> tuple[str, ...]:
        """Words that start pytest in a new process, with this interpreter or the one that it names."""
        if self.invocation.foreign:
            return self.invocation.launcher
        script = Path(sys.executable).with_name("pytest")
        as_module = self.invocation.as_module or not script.exists()
        return (sys.executable, "-m", "pytest") if as_module else (sys.executable, str(script))


_START_VARIABLES = ("PYTHON", "LC_", "LANG", "LD_", "DYLD_", "MALLOC_")
"""Prefixes of variables that take effect at process start only."""


def _shadows_python(folder: Path) -> bool:
    """Return whether a module of the folder has the name of one that Python or pytest loads as it starts.

    If the folder is on the search path from the start, pytest gets the module, and often fails by it.
    """
    loaded = sys.stdlib_module_names & sys.modules.keys()
    with suppress(OSError):
        return any(
            name.removesuffix(".py") in loaded
            and (name.endswith(".py") or (folder / name / "__init__.py").is_file())
            for name in os.listdir(folder)
        )
    return False


class Schedule:
    """Hands out the commands of a plan.

    Workers of different todos run concurrently, after their dependencies. Other commands may have
    effects that later tests need, so each runs alone, in plan order.
    """

    def __init__(
        self, flat: FlatPlan, todos: Iterable[Todo], taken: Collection[tuple[str, str]] = ()
    ) -> None:
        """``taken`` are todo and criterion ids of commands whose verdicts are known."""
        plan = flat.loaded
        by_id = {todo.id: todo for todo in todos}
        # Parents come after the todos of their sub-plans.
        waiting = [
            todo.model_copy(update={"dependencies": (*todo.dependencies, *flat.children.get(todo.id, ()))})
            for todo in by_id.values()
        ]
        self._before = {todo.id: todo.dependencies for todo in waiting}
        self.order = tuple(by_id[todo.id] for todo in dependency_order(waiting))
        """All todos, each after those that it depends on."""
        self._waiting: list[Job] = []
        self._running: list[Job] = []
        self._unfinished = [todo.id for todo in self.order]
        for todo in self.order:
            for criterion in plan.criteria[todo.id]:
                is_command = criterion.kind in (CheckKind.TEST, CheckKind.COMMAND)
                if is_command and (todo.id, criterion.id) not in taken:
                    self._waiting.append(Job(plan=flat.owner(todo.id), todo=todo, criterion=criterion))

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Commands that were not handed out yet."""
        return tuple(self._waiting)

    def finished_todos(self) -> list[Todo]:
        """Return todos whose commands have all ended, in order, each once."""
        open_todos = {job.todo.id for job in (*self._waiting, *self._running)}
        found: list[Todo] = []
        for todo in self.order:
            if todo.id in self._unfinished and todo.id not in open_todos and not self._must_wait(todo.id):
                # At once, as a later todo of the order may have waited for this one only.
                self._unfinished.remove(todo.id)
                found.append(todo)
        return found

    def next(self) -> Job | None:
        """Take a command that may start now; ``None`` if all must wait or none is left."""
        if any(not job.is_pytest for job in self._running):  # it runs alone
            return None
        for job in self._waiting:
            if not job.is_pytest:
                # It waits for all commands before it; returning here makes all commands behind it wait.
                if job is not self._waiting[0] or self._running or self._must_wait(job.todo.id):
                    return None
            elif self._must_wait(job.todo.id):
                continue
            self._waiting.remove(job)
            self._running.append(job)
            return job
        return None

    def done(self, job: Job) -> None:
        """Mark a command as ended."""
        self._running.remove(job)

    def _must_wait(self, todo_id: str) -> bool:
        """Return whether a dependency, or a todo of the sub-plan, has not finished."""
        return any(name in self._unfinished for name in self._before[todo_id])
