"""A plan and its sub-plans: found, loaded on demand, and laid flat under qualified ids.

A todo with ``sub_plan`` or ``sub_project_id`` is a parent: its state comes from the todos of another plan
file, which is an ordinary plan and means the same when it is run alone. In the tree its todos are called
``phase-2/buffer-impl``, the parent's id first, to any depth that is allowed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from planner.errors import PlanFileError, PlanTreeError
from planner.model.plan import MAX_TODOS, Todo, TodoStatus
from planner.planfile.confinement import is_below
from planner.planfile.discovery import plan_boundary
from planner.planfile.loader import LoadedPlan, faults_at, load_plan
from planner.planfile.sub_plans import SubPlanFiles, Unfound

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from planner.model.plan import ToolSpec
    from planner.planfile.document import Loc
    from planner.policy.criteria import Criterion

MAX_LEVELS = 3
"""How many levels of sub-plans a plan may have below itself."""

SEPARATOR = "/"
"""Between the ids of parents and todos; no id holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeTodo:
    """One todo of a tree."""

    id: str
    """Qualified: ``phase-2/buffer-impl``."""
    todo: Todo
    """As its own file has it."""
    tree: PlanTree
    """The plan that holds it."""

    @property
    def parent_id(self) -> str | None:
        """The qualified id of the parent whose sub-plan holds it; ``None`` at the top."""
        return self.tree.prefix.removesuffix(SEPARATOR) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatPlan:
    """A plan and its sub-plans as one plan with qualified ids."""

    loaded: LoadedPlan
    """The top plan, with the todos of its sub-plans below their parents. What a parent depends on its
    todos depend on, too; and what a parent claims is claimed for them."""
    owners: Mapping[str, LoadedPlan] = field(default_factory=dict[str, LoadedPlan])
    """By qualified id, the file that a todo of a sub-plan stands in."""
    children: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By the id of a parent, those of the todos of its sub-plan."""
    files: Mapping[str, LoadedPlan] = field(default_factory=dict[str, LoadedPlan])
    """By the id of a parent, its sub-plan."""

    def owner(self, todo_id: str) -> LoadedPlan:
        """The plan file that a todo stands in: its root is where the todo's paths start."""
        return self.owners.get(todo_id, self.loaded)

    @property
    def parts(self) -> tuple[LoadedPlan, ...]:
        """Every plan file once, the top plan first, as it was loaded."""
        return tuple({part.path: part for part in (self.loaded, *self.files.values())}.values())


@dataclass(slots=True)
class _Files:
    """Limits and files that the plans of one tree share."""

    loaded: dict[tuple[Path, tuple[ToolSpec, ...]], LoadedPlan] = field(
        default_factory=dict["tuple[Path, tuple[ToolSpec, ...]]", LoadedPlan]
    )
    """By the place of the file and the tools of the plan above it."""
    finder: SubPlanFiles = field(default_factory=SubPlanFiles)
    todos: int = 0
    """How many the sub-plans hold, a file as many times as it is named."""


@dataclass(slots=True, eq=False)
class PlanTree:
    """One plan of a tree, the top plan or a sub-plan; its children are loaded when they are asked for."""

    loaded: LoadedPlan = field(repr=False)
    boundary: Path | None = None
    prefix: str = ""
    """What stands before the ids of its todos: ``phase-2/``."""
    above: tuple[PlanTree, ...] = field(default=(), repr=False)
    """The plans that it is a sub-plan of, the top plan first."""
    _children: dict[str, PlanTree] = field(default_factory=dict[str, "PlanTree"], repr=False)
    _files: _Files = field(default_factory=_Files, repr=False)

    @property
    def widest_boundary(self) -> Path:
        """Where the root of a sub-plan of this top plan may lie: below its own root, or in the boundary."""
        return _widest(self.loaded.root, self.boundary or plan_boundary(self.loaded.path))

    def child(self, todo_id: str) -> PlanTree:
        """The sub-plan of one of this plan's parents.

        Raises ``KeyError`` for what is no parent here, and :class:`planner.errors.PlanFileError` with the
        faults of the sub-plan's file, or with that of the key that names it.
        """
        if todo_id in self._children:
            return self._children[todo_id]
        for index, todo in enumerate(self.loaded.plan.items):
            if todo.id == todo_id and todo.has_sub_plan:
                try:
                    return self._child(todo)
                except Unfound as unfound:
                    raise faults_at(self.loaded.path, [_place(index, todo, unfound)]) from None
        raise KeyError(todo_id)

    def child_of(self, parent: Todo) -> PlanTree:
        """The sub-plan of a parent as it is now, which may name another than its file does.

        Raises :class:`planner.errors.PlanFileError`, and :class:`.sub_plan_files.Unfound`.
        """
        return self._child(parent)

    def load_all(self, within: Collection[str] | None = None) -> PlanTree:
        """Load all sub-plans below, or only those that hold the todos ``within``, and return this plan.

        Raises :class:`planner.errors.PlannerError` with the faults of every file.
        """
        errors: dict[str, PlanFileError] = {}
        self._load_below(within, errors)
        if errors:
            found = tuple(errors.values())
            raise found[0] if len(found) == 1 else PlanTreeError(found)
        return self

    def find(self, todo_id: str) -> TreeTodo:
        """The todo of a qualified id; only the plans on the way are loaded.

        Raises ``KeyError`` where there is none, and :class:`planner.errors.PlanFileError`.
        """
        *parents, last = todo_id.split(SEPARATOR)
        tree = self
        for parent in parents:
            tree = tree.child(parent)
        return TreeTodo(id=tree.prefix + last, todo=tree.loaded.plan.todo(last), tree=tree)

    def walk(self, depth: int | None = None) -> Iterator[TreeTodo]:
        """Every todo, those of a sub-plan after their parent, in the order of the files.

        ``depth`` is how many levels of sub-plans are entered, all where it is ``None``.
        """
        for todo in self.loaded.plan.items:
            yield TreeTodo(id=self.prefix + todo.id, todo=todo, tree=self)
            if todo.has_sub_plan and depth != 0:
                yield from self.child(todo.id).walk(None if depth is None else depth - 1)

    def sub_plans(self) -> dict[str, PlanTree]:
        """The sub-plans loaded so far, by the qualified id of their parent, in the order of the files."""
        found: dict[str, PlanTree] = {}
        for todo in self.loaded.plan.items:
            child = self._children.get(todo.id)
            if child is not None:
                found[self.prefix + todo.id] = child
                found |= child.sub_plans()
        return found

    def flat(self) -> FlatPlan:
        """The plan and the sub-plans loaded so far as one plan; without any, the plan itself."""
        subs = self.sub_plans()
        if not subs:
            return FlatPlan(loaded=self.loaded)
        items: list[Todo] = []
        criteria: dict[str, tuple[Criterion, ...]] = {}
        owners: dict[str, LoadedPlan] = {}
        children: dict[str, list[str]] = {}
        inherited: dict[str, Todo] = {}
        for each in self._walk_loaded():
            parent = each.parent_id
            todo = _qualified(each, inherited.get(parent or ""))
            inherited[each.id] = todo
            items.append(todo)
            criteria[each.id] = each.tree.loaded.criteria[each.todo.id]
            if parent is not None:
                owners[each.id] = each.tree.loaded
                children.setdefault(parent, []).append(each.id)
        plan = self.loaded.plan.model_copy(update={"items": tuple(items)})
        return FlatPlan(
            loaded=replace(self.loaded, plan=plan, criteria=criteria),
            owners=owners,
            children={parent: tuple(below) for parent, below in children.items()},
            files={parent: tree.loaded for parent, tree in subs.items()},
        )

    @property
    def _top(self) -> PlanTree:
        return self.above[0] if self.above else self

    @property
    def _chain(self) -> str:
        return " -> ".join(tree.loaded.path.name for tree in (*self.above, self))

    def _walk_loaded(self) -> Iterator[TreeTodo]:
        for todo in self.loaded.plan.items:
            yield TreeTodo(id=self.prefix + todo.id, todo=todo, tree=self)
            if todo.id in self._children:
                yield from self._children[todo.id]._walk_loaded()

    def _load_below(self, within: Collection[str] | None, errors: dict[str, PlanFileError]) -> None:
        unfound: list[tuple[Loc, str]] = []
        for index, todo in enumerate(self.loaded.plan.items):
            if not todo.has_sub_plan or (
                within is not None and not _leads_to(self.prefix + todo.id, within)
            ):
                continue
            try:
                child = self._child(todo)
            except PlanFileError as error:
                errors.setdefault(str(error), error)
            except Unfound as error:
                unfound.append(_place(index, todo, error))
            else:
                child._load_below(within, errors)
        if unfound:
            error = faults_at(self.loaded.path, unfound)
            errors.setdefault(str(error), error)

    def _child(self, todo: Todo) -> PlanTree:
        """The sub-plan of a parent of this plan. Raises :class:`Unfound` too."""
        known = self._children.get(todo.id)
        if known is None:
            path = self._files.finder.find(todo, self.loaded)
            self._refuse_endless(path)
            loaded = self._load(path)
            _refuse_other_id(todo, loaded)
            known = self._children[todo.id] = PlanTree(
                loaded,
                self.boundary,
                f"{self.prefix}{todo.id}{SEPARATOR}",
                (*self.above, self),
                _files=self._files,
            )
        return known

    def _refuse_endless(self, path: Path) -> None:
        chain = f"{self._chain} -> {path.name}"
        if any(_is_same(path, tree.loaded.path) for tree in (*self.above, self)):
            raise Unfound(f"the plan contains itself: {chain}; name another plan, or remove the key")
        if len(self.above) >= MAX_LEVELS:
            raise Unfound(
                f"sub-plans go at most {MAX_LEVELS} levels deep, and this is one more: {chain}; move its "
                "todos into the plan above"
            )

    def _load(self, path: Path) -> LoadedPlan:
        """The sub-plan; a file that several parents name is read once."""
        top = self._top
        place = (path.parent.resolve() / path.name, self.loaded.tools)
        loaded = self._files.loaded.get(place)
        if loaded is None:
            loaded = load_plan(path, boundary=top.widest_boundary, tools_above=self.loaded.tools)
            self._files.loaded[place] = loaded
        self._files.todos += len(loaded.plan.items)
        if self._files.todos + len(top.loaded.plan.items) > MAX_TODOS:
            raise Unfound(
                f"with this sub-plan there are more than {MAX_TODOS:,} todos; make several plans of it"
            )
        return loaded


def load_tree(path: Path, *, boundary: Path | None = None) -> PlanTree:
    """Load the top plan; its sub-plans are loaded when they are asked for.

    Raises :class:`planner.errors.PlanFileError` with every fault of the file. The root of a sub-plan must
    lie in the folder of its file, below the top plan's root, or in ``boundary``, where none is given in
    :func:`.discovery.plan_boundary`.
    """
    return PlanTree(load_plan(path, boundary=boundary), boundary)


def load_flat(path: Path, *, boundary: Path | None = None) -> FlatPlan:
    """Load a plan with all its sub-plans as one plan. Raises :class:`planner.errors.PlannerError`."""
    return load_tree(path, boundary=boundary).load_all().flat()


def _qualified(each: TreeTodo, parent: Todo | None) -> Todo:
    """The todo under its qualified id, with what it has from the parent above it."""
    if parent is None:
        return each.todo
    todo, prefix = each.todo, each.tree.prefix
    own = (prefix + name for name in todo.dependencies)
    claimed = TodoStatus.CLAIMED in (todo.status, parent.status)
    return todo.model_copy(
        update={
            "id": each.id,
            "dependencies": tuple(dict.fromkeys((*own, *parent.dependencies))),
            "status": TodoStatus.CLAIMED if claimed else TodoStatus.OPEN,
            "parent_id": None if todo.parent_id is None else prefix + todo.parent_id,
            "via": None if todo.via is None else prefix + todo.via,
        }
    )


def _place(index: int, todo: Todo, unfound: Unfound) -> tuple[Loc, str]:
    key = "sub_plan" if todo.sub_plan is not None else "sub_project_id"
    return ("items", index, key), str(unfound)


def _leads_to(parent_id: str, within: Collection[str]) -> bool:
    """Return whether one of the todos is the parent, below it, or above it."""
    below = parent_id + SEPARATOR
    return any(
        each == parent_id or each.startswith(below) or parent_id.startswith(each + SEPARATOR)
        for each in within
    )


def _refuse_other_id(todo: Todo, loaded: LoadedPlan) -> None:
    """Where a todo names both a file and an id, they must be one plan's."""
    wanted = todo.sub_project_id
    if todo.sub_plan is None or wanted is None:
        return
    if wanted not in (loaded.plan.todo_list_id, loaded.path.stem):
        raise Unfound(
            f"'{todo.sub_plan}' is the plan '{loaded.plan.todo_list_id}', but the sub_project_id beside it "
            f"is '{wanted}'; remove one of the two keys"
        )


def _is_same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _widest(root: Path, boundary: Path) -> Path:
    """The top plan's root or the boundary, whichever holds the other; the root where neither does."""
    real = os.path.realpath(boundary)
    return boundary if is_below(str(root), real) else root
