"""Plan tree: a plan and its sub-plans, loaded on demand, and flattened under qualified ids.

A todo with ``sub_plan`` or ``sub_project_id`` is a parent: its state comes from the todos of another
plan file, which is an ordinary plan that can also be run alone. In the tree these have qualified ids,
such as ``phase-2/buffer-impl``, to a depth of :data:`MAX_LEVELS`.

:class:`PlanTree` has the files as they were loaded, :class:`FlatPlan` is the one plan that is made of them.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from planner.errors import PlanFileError, PlanTreeError
from planner.model.base import qualified
from planner.model.plan import MAX_TODOS, Todo, TodoStatus
from planner.planfile.discovery import PLAN_ENDINGS, plan_boundary
from planner.planfile.document import plan_file_error
from planner.planfile.loader import LoadedPlan, file_error, load_plan, plan_id_of, shown_path
from planner.planfile.project_files import is_below

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from planner.policy.criteria import Criterion

MAX_LEVELS = 3
"""Maximum nesting of sub-plans."""

SEPARATOR = "/"
"""Separator of qualified ids; no id contains it."""

FOLDERS = ("", "phases", "sub_plans", "plans")
"""Folders searched for a sub-project, below the folder of the plan."""

_JUDGING_POLICY = {"flaky_retry", "network", "processes", "writes", "protected_files"}
"""Policy keys that verdicts depend on."""

_SAYS_NOTHING = {"title", "intent", "status", "priority"}
"""Keys of a todo that no verdict depends on."""

_DIGITS = 16


class SubPlanNotFound(Exception):
    """A sub-plan cannot be found; the message has the reason and, after a semicolon, the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatPlan:
    """A plan with its sub-plans as one plan with qualified ids."""

    loaded: LoadedPlan
    """The top plan with the todos of its sub-plans, which inherit their parent's dependencies and claim."""
    children: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Ids of a parent's todos, by parent."""
    files: Mapping[str, LoadedPlan] = field(default_factory=dict[str, LoadedPlan])
    """Sub-plans by parent."""

    def owner(self, todo_id: str) -> LoadedPlan:
        """Return the plan file of a todo, whose root is the base of the todo's paths."""
        return self.files.get(todo_id.rpartition(SEPARATOR)[0], self.loaded)

    @property
    def parts(self) -> tuple[LoadedPlan, ...]:
        """Return every plan file once, top plan first, as loaded."""
        return tuple({part.path: part for part in (self.loaded, *self.files.values())}.values())

    def refuse_to_replace(self, output: Path) -> None:
        """Raise :class:`planner.errors.PlannerError` if an output file is one of the plan's own files."""
        # Links are resolved, as two names of one file would overwrite it, too.
        if any(os.path.realpath(output) == os.path.realpath(part.path) for part in self.parts):
            raise file_error(output, "this is the plan itself; name another file")


@dataclass(slots=True, eq=False)
class PlanTree:
    """One plan of the tree; its sub-plans are loaded on demand."""

    loaded: LoadedPlan = field(repr=False)
    boundary: Path | None = None
    prefix: str = ""
    """Prefix of its todos' qualified ids: ``phase-2/``."""
    above: tuple[PlanTree, ...] = field(default=(), repr=False)
    """The plans above it, top plan first."""
    _children: dict[str, PlanTree] = field(default_factory=dict[str, "PlanTree"], repr=False)
    _todos: int = 0
    """For the top plan: number of todos in sub-plans, counting a file each time that it is used."""

    @property
    def widest_boundary(self) -> Path:
        """Folder that must contain the roots of sub-plans: the boundary if it contains this root, else
        this.
        """
        boundary = self.boundary or plan_boundary(self.loaded.path)
        return boundary if is_below(str(self.loaded.root), os.path.realpath(boundary)) else self.loaded.root

    def child(self, todo_id: str) -> PlanTree:
        """Return the sub-plan of a parent of this plan.

        Raises ``KeyError`` if the todo is no parent, and :class:`planner.errors.PlanFileError` with the
        faults of the sub-plan's file or of the key that names it.
        """
        # The file may not name a sub-plan that is known already.
        if todo_id in self._children:
            return self._children[todo_id]
        for todo in self.loaded.plan.items:
            if todo.id == todo_id and todo.has_sub_plan:
                return self.child_of(todo)
        raise KeyError(todo_id)

    def child_of(self, parent: Todo) -> PlanTree:
        """Return the sub-plan of a parent as currently defined, which may differ from the file.

        Raises :class:`planner.errors.PlanFileError` with faults of its file, or of the key that names it.
        """
        known = self._children.get(parent.id)
        if known is None:
            prefix, above = f"{self.prefix}{parent.id}{SEPARATOR}", (*self.above, self)
            try:
                loaded = self._load(parent)
            except SubPlanNotFound as unfound:
                key = "sub_plan" if parent.sub_plan is not None else "sub_project_id"
                ids = [todo.id for todo in self.loaded.plan.items]
                document = self.loaded.document
                place = document.find(("items", ids.index(parent.id), key) if parent.id in ids else ())
                fault = document.fault(place.start, place.path, str(unfound))
                raise plan_file_error(shown_path(self.loaded.path), [fault]) from None
            known = self._children[parent.id] = PlanTree(loaded, self.boundary, prefix, above)
        return known

    def load_all(self, within: Collection[str] | None = None) -> PlanTree:
        """Load all sub-plans, or those with the todos ``within``; return this plan.

        Raises :class:`planner.errors.PlannerError` with the faults of all files.
        """
        # By their text, so that a file that several parents share is reported once.
        errors = tuple({str(error): error for error in self._load_below(within)}.values())
        if errors:
            raise errors[0] if len(errors) == 1 else PlanTreeError(errors)
        return self

    def sub_plans(self) -> dict[str, PlanTree]:
        """Return the loaded sub-plans in order, by qualified id of their parent."""
        found: dict[str, PlanTree] = {}
        for todo in self.loaded.plan.items:
            child = self._children.get(todo.id)
            if child is not None:
                found[self.prefix + todo.id] = child
                found |= child.sub_plans()
        return found

    def flat(self) -> FlatPlan:
        """Return the plan with its loaded sub-plans as one plan; without any, the plan as it is.

        The todos of a sub-plan follow their parent, which stays among the todos.
        """
        subs = self.sub_plans()
        if not subs:
            return FlatPlan(loaded=self.loaded)
        items: list[Todo] = []
        criteria: dict[str, tuple[Criterion, ...]] = {}
        children: dict[str, tuple[str, ...]] = {}

        def add(tree: PlanTree, parent: Todo | None) -> None:
            if parent is not None:
                children[parent.id] = tuple(tree.prefix + todo.id for todo in tree.loaded.plan.items)
            for todo in tree.loaded.plan.items:
                placed = todo if parent is None else _qualified(todo, tree.prefix, parent)
                items.append(placed)
                criteria[placed.id] = tree.loaded.criteria[todo.id]
                if placed.id in subs:
                    add(subs[placed.id], placed)

        add(self, None)
        plan = self.loaded.plan.model_copy(update={"items": tuple(items)})
        return FlatPlan(
            loaded=replace(self.loaded, plan=plan, criteria=criteria),
            children=children,
            files={parent: tree.loaded for parent, tree in subs.items()},
        )

    def _load_below(self, within: Collection[str] | None) -> Iterator[PlanFileError]:
        """Load sub-plans recursively, and yield their errors."""
        for todo in self.loaded.plan.items:
            if todo.has_sub_plan and _leads_to(self.prefix + todo.id, within):
                try:
                    child = self.child_of(todo)
                except PlanFileError as error:
                    yield error
                else:
                    yield from child._load_below(within)

    def _load(self, parent: Todo) -> LoadedPlan:
        """Load the sub-plan of a parent. Raises :class:`SubPlanNotFound`, for cycles and limits, too."""
        if parent.sub_plan is not None:
            path = self.loaded.root / parent.sub_plan
            if not os.path.exists(path):  # also for a name that is too long
                where = f"'{parent.sub_plan}' below {self.loaded.root}"
                raise SubPlanNotFound(f"the file {where} does not exist; write it, or correct the path")
        else:
            assert parent.sub_project_id is not None  # a parent without either key is refused with its plan
            path = self._find_by_id(parent.sub_project_id)
        plans = (*self.above, self)
        top = plans[0]
        chain = " -> ".join([*(each.loaded.path.name for each in plans), path.name])
        # Before the plan is loaded, and by the resolved path: a link may lead back to a plan above.
        if os.path.realpath(path) in {os.path.realpath(each.loaded.path) for each in plans}:
            raise SubPlanNotFound(
                f"the plan contains itself: {chain}; name another plan, or remove the key"
            )
        if len(self.above) >= MAX_LEVELS:
            raise SubPlanNotFound(
                f"sub-plans go at most {MAX_LEVELS} levels deep, and this is one more: {chain}; move its "
                "todos to the parent plan"
            )
        loaded = load_plan(path, boundary=top.widest_boundary, tools_above=self.loaded.tools)
        # For each parent of a shared file again: each has todos of its own in the flat plan.
        top._todos += len(loaded.plan.items)
        if top._todos + len(top.loaded.plan.items) > MAX_TODOS:
            raise SubPlanNotFound(
                f"with this sub-plan there are more than {MAX_TODOS:,} todos; split it into several plans"
            )
        return loaded

    def _find_by_id(self, plan_id: str) -> Path:
        """Return the plan file with that name, else with that id. Raises :class:`SubPlanNotFound`."""
        folder = self.loaded.path.parent
        files: list[Path] = []
        for below in FOLDERS:
            with suppress(OSError):
                entries = sorted((folder / below).iterdir())
                files += (path for path in entries if path.suffix in PLAN_ENDINGS and path.is_file())
        found = [path for path in files if path.stem == plan_id]
        if not found:  # to look for an id, files have to be parsed
            found = [path for path in files if plan_id_of(path) == plan_id]
        if not found:
            places = ", ".join(["its folder", *(f"{name}/" for name in FOLDERS if name)])
            raise SubPlanNotFound(
                f"there is no plan '{plan_id}' in {folder}: neither {plan_id}.yaml, .yml or .json nor a "
                f"plan of that todo_list_id in {places}; write it, or name its file with sub_plan"
            )
        shown = [path.relative_to(folder).as_posix() for path in found]
        # One file may be found under two names, by a link.
        if len({os.path.realpath(path) for path in found}) > 1:
            raise SubPlanNotFound(
                f"'{plan_id}' may be {' or '.join(shown[:3])} in {folder}; name the file with sub_plan"
            )
        if not is_below(os.path.realpath(found[0]), os.path.realpath(folder)):
            raise SubPlanNotFound(
                f"{shown[0]} leaves {folder} through a symbolic link; name a file inside it"
            )
        return found[0]


def load_tree(path: Path, *, boundary: Path | None = None) -> PlanTree:
    """Load the top plan; sub-plans follow on demand.

    Raises :class:`planner.errors.PlanFileError` with every fault of the file. The root of a sub-plan
    must lie in its file's folder, below the top plan's root, or in ``boundary`` (default:
    :func:`.discovery.plan_boundary`).
    """
    return PlanTree(load_plan(path, boundary=boundary), boundary)


def load_flat(path: Path) -> FlatPlan:
    """Load a plan with all sub-plans as one plan. Raises :class:`planner.errors.PlannerError`."""
    return load_tree(path).load_all().flat()


def todo_digests(loaded: LoadedPlan, subs: Mapping[str, LoadedPlan]) -> dict[str, str]:
    """Return a digest for each todo, by qualified id, of all that its verdict depends on in the plan files.

    So new todos, comments and titles do not invalidate the verdicts of other todos. ``subs`` are loaded
    sub-plans by qualified id of their parent; their todos in ``loaded`` are skipped.
    """
    found: dict[str, str] = {}
    for within, part in {"": loaded, **subs}.items():
        policy = part.plan.metadata.model_dump_json(include=_JUDGING_POLICY)
        for todo in part.plan.items:
            if SEPARATOR not in todo.id:
                todo_text = todo.model_dump_json(exclude_defaults=True, exclude=_SAYS_NOTHING)
                # Commands by convention, and words of the plan's tools, are not part of the todo.
                commands = [
                    each.command.argv for each in part.criteria.get(todo.id, ()) if each.command is not None
                ]
                text = f"{part.plan.root}\n{policy}\n{todo_text}\n{commands}"
                digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
                found[qualified(within, todo.id)] = digest[:_DIGITS]
    return found


def _qualified(todo: Todo, prefix: str, parent: Todo) -> Todo:
    """Return the todo under its qualified id, with what it inherits from its parent."""
    own = (prefix + name for name in todo.dependencies)
    claimed = TodoStatus.CLAIMED in (todo.status, parent.status)
    return todo.model_copy(
        update={
            "id": prefix + todo.id,
            "dependencies": tuple(dict.fromkeys((*own, *parent.dependencies))),
            "status": TodoStatus.CLAIMED if claimed else TodoStatus.OPEN,
            "parent_id": None if todo.parent_id is None else prefix + todo.parent_id,
            "via": None if todo.via is None else prefix + todo.via,
        }
    )


def _leads_to(parent_id: str, within: Collection[str] | None) -> bool:
    """Return whether a parent is, contains, or lies below one of the todos; true if none are given."""
    # With the separator, as `phase-1` does not lead to the todos of `phase-10`.
    own = parent_id + SEPARATOR
    return within is None or any(
        own.startswith(each + SEPARATOR) or each.startswith(own) for each in within
    )
