"""Permissions: which todos may change a file, and whose verdict depends on it.

Both are derived from the plan: what a todo may change from its ``allowed_files``, what judges it from its
criteria. Paths are relative to the plan's root.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from planner.model.plan import ArtifactSpec, CommandSpec
from planner.text.glob_patterns import allowed, is_glob, plain
from pytest_planverify.baseline.work_tree import CONFIGURATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.model.plan import Plan, Todo
    from planner.planfile.tree import FlatPlan
    from planner.policy.criteria import Criterion


class Permission(Enum):
    """Permission to change a file; the values describe when it is given."""

    FORBIDDEN = "no todo's allowed_files grants it, or the plan protects it"
    DEFAULT = "no todo names it, some todo has no allowlist, and the plan has no protected_files"
    GRANTED = "a todo's allowed_files names it, or nothing protects it"


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoReach:
    """Files that a todo may change, and files that judge it, relative to the plan's root."""

    todo_id: str
    allowed_files: tuple[str, ...] | None = None
    """Globs of its allowlist, relative to ``folder``; ``None`` if it has none."""
    selections: tuple[str, ...] = ()
    """Test files and folders that its criteria select; ``.`` means all."""
    data: tuple[str, ...] = ()
    """Fixture files and JSON schemas that its criteria use."""
    artifacts: tuple[str, ...] = ()
    """Artifacts that it has to create."""
    scripts: tuple[str, ...] = ()
    """Scripts that its commands run."""
    tools: tuple[str, ...] = ()
    """Programs other than pytest that its commands run, such as ``ruff`` and ``make``."""
    contract: str | None = None
    folder: str = ""
    """Root of its own plan; empty if that is the root of the whole plan."""

    def may_change(self, path: str) -> bool:
        """Return whether its allowlist includes the file; never without an allowlist."""
        below = _relative(path, self.folder)
        return self.allowed_files is not None and below is not None and allowed(below, self.allowed_files)

    def depends_on(self, path: str) -> bool:
        """Return whether a judging file influences its verdict.

        Files are its data and contract, the configuration of its tools, the selected tests, conftests and
        configuration in folders above them, and support files beside or below them.
        """
        if path in self.data or path in self.scripts or path == self.contract:
            return True
        if any(configures(path, tool) for tool in self.tools):
            return True
        folder, name = posixpath.split(path)
        for selection in self.selections:
            if selection in (".", "") or path == selection or path.startswith(f"{selection}/"):
                return True
            beside = posixpath.dirname(selection) if selection.endswith(".py") else selection
            if name == "conftest.py" or name in CONFIGURATIONS:
                if folder == "" or beside == folder or beside.startswith(f"{folder}/"):
                    return True
            elif (beside == folder or (beside and folder.startswith(f"{beside}/"))) and not (
                name.startswith("test_") or name.endswith("_test.py")
            ):
                # Support files and data beside the tests count; other test files in the folder do not.
                return True
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """Permissions of all todos of a plan and its sub-plans."""

    todos: tuple[TodoReach, ...] = ()
    protected: tuple[str, ...] | None = None
    """Globs of protected files; ``None`` protects all judging files of the baseline by default."""
    plans: tuple[str, ...] = ()
    """Paths of the plan files."""

    @classmethod
    def of(cls, flat: FlatPlan, before: Plan | None = None) -> Grants:
        """Return the permissions of a plan and its sub-plans.

        ``before`` is the plan as it was at the baseline. Grants that were added since do not count, so that
        no agent can permit itself to change its judges. A todo that was added since has the grants of its
        parent, or none.
        """
        root = flat.loaded.root
        reaches: list[TodoReach] = []
        for todo in flat.loaded.plan.items:
            owner = flat.owner(todo.id)
            folder = _relative(str(owner.root), str(root))
            if folder is None:
                continue  # the baseline does not cover roots outside of the plan's
            # A sub-plan knows its todos by the last part of their id.
            criteria = owner.criteria.get(todo.id.rpartition("/")[2]) or flat.loaded.criteria.get(todo.id)
            reaches.append(reach_of(_as_it_was(todo, before), criteria or (), folder))
        plans = tuple(
            path for part in flat.parts if (path := _relative(str(part.path), str(root))) is not None
        )
        now = flat.loaded.plan.metadata
        then = now if before is None else before.metadata
        protected = None
        if "protected_files" in then.model_fields_set:
            # Globs that were added since the baseline only restrict.
            protected = (*then.protected_files, *now.protected_files)
        return cls(todos=tuple(reaches), protected=protected, plans=plans)

    def permission(self, path: str) -> Permission:
        """Return whether the todos may change a file, see :class:`Permission`."""
        if self.protected and allowed(path, self.protected):
            return Permission.FORBIDDEN
        if any(each.may_change(path) for each in self.todos):
            return Permission.GRANTED
        all_are_limited = bool(self.todos) and all(each.allowed_files is not None for each in self.todos)
        if path in self.plans or all_are_limited:
            return Permission.FORBIDDEN
        return Permission.DEFAULT if self.protected is None else Permission.GRANTED

    def owners(self, path: str) -> tuple[str, ...]:
        """Return the ids of the todos whose allowlist includes a file, else of those without one."""
        named = tuple(each.todo_id for each in self.todos if each.may_change(path))
        return named or tuple(each.todo_id for each in self.todos if each.allowed_files is None)

    def dependants(self, path: str) -> tuple[str, ...]:
        """Return the ids of the todos whose verdict a file influences; a plan file influences all."""
        if path in self.plans:
            return tuple(each.todo_id for each in self.todos)
        return tuple(each.todo_id for each in self.todos if each.depends_on(path))


def reach_of(todo: Todo, criteria: Iterable[Criterion], folder: str = "") -> TodoReach:
    """Return the files that one todo may change and that judge it.

    ``folder`` is the root of its paths, relative to the root of the whole plan.
    """
    criteria = tuple(criteria)
    commands = [each.spec for each in criteria if isinstance(each.spec, CommandSpec)]
    artifacts = [each.spec for each in criteria if isinstance(each.spec, ArtifactSpec)]
    data = (*(each.fixture for each in commands), *(each.json_schema for each in artifacts))
    words = (
        word
        for each in criteria
        if each.command is not None and each.command.pytest is None
        for word in each.command.argv
    )
    return TodoReach(
        todo_id=todo.id,
        allowed_files=todo.allowed_files,
        selections=tuple(dict.fromkeys(each for one in criteria for each in _selected(one, folder))),
        data=tuple(_joined(folder, each) for each in data if each),
        artifacts=tuple(_joined(folder, each.path) for each in artifacts),
        scripts=tuple(_joined(folder, word) for word in words if word.endswith(".py")),
        tools=tuple(dict.fromkeys(each for one in criteria for each in _tools_of(one))),
        contract=_joined(folder, todo.contract_path) if todo.contract_path else None,
        folder=folder,
    )


_ALSO_READS = {
    "npm": "package",
    "pnpm": "package",
    "yarn": "package",
    "tsc": "tsconfig",
    "lint-imports": "importlinter",
}
"""Names of the configuration files of tools that are not called like the tool."""


def configures(path: str, tool: str) -> bool:
    """Return whether a file may configure a tool: its own file, or one for several tools.

    Files are called like their tools: ``ruff.toml``, ``.coveragerc``, ``Makefile``, ``eslint.config.js``.
    """
    name = posixpath.basename(path)
    stem = re.escape(_ALSO_READS.get(tool, tool))
    own = re.fullmatch(rf"(GNU|\.)?{stem}(file|rc|config|-config|\.config)?(\.\w+)?", name, re.IGNORECASE)
    return (
        name in CONFIGURATIONS
        or (own is not None and not re.search(r"\.(py|md|rst|txt)$", name))
        or (tool == "nox" and name == "noxfile.py")
    )


def _tools_of(criterion: Criterion) -> Iterator[str]:
    """Yield the names of the tools whose findings decide a command, except pytest."""
    command = criterion.command
    if command is None:
        return
    if command.pytest is None and command.script is None:
        yield command.tool.name
    elif any(word.startswith("--cov") for word in command.argv):
        yield "coverage"


def _selected(criterion: Criterion, folder: str) -> Iterator[str]:
    """Yield the files and folders that a pytest command selects; for a glob, the folder before it."""
    pytest = criterion.command.pytest if criterion.command is not None else None
    if pytest is None:
        return
    if not pytest.selections:
        yield folder or "."
    for selection in pytest.selections:
        path = plain(selection.partition("::")[0].partition("[")[0] or ".")
        yield _joined(folder, path if not is_glob(path) else posixpath.dirname(path) or ".")


def _as_it_was(todo: Todo, before: Plan | None) -> Todo:
    """Return a todo with its allowlist as it was at the baseline.

    Todos of sub-plans, which the baseline's plan does not contain, keep theirs.
    """
    if before is None:
        return todo
    known = {each.id: each for each in before.items}
    was = known.get(todo.id) or known.get(todo.parent_id or "")
    if was is None:
        return todo if "/" in todo.id else todo.model_copy(update={"allowed_files": ()})
    return todo.model_copy(update={"allowed_files": was.allowed_files})


def _joined(folder: str, path: str) -> str:
    """Return a path of a sub-plan relative to the plan's root, with slashes."""
    return posixpath.normpath(posixpath.join(folder, path.replace("\\", "/")))


def _relative(path: str, root: str) -> str | None:
    """Return a path relative to a folder, or ``None`` if it is not below it; empty for the folder."""
    if path == root:
        return ""
    if not root:
        return path
    return path.removeprefix(f"{root}/").replace("\\", "/") if path.startswith(f"{root}/") else None
