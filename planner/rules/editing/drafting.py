"""A plan that is being changed: primitive changes, each with an exact inverse and a guard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from planner.errors import EditConflictError
from planner.model.plan import Plan, Policy, Todo

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class InsertTodo:
    """Puts a todo at a place; those behind it move on."""

    index: int
    todo: Todo

    @property
    def inverse(self) -> RemoveTodo:
        return RemoveTodo(self.index, self.todo)


@dataclass(frozen=True, slots=True)
class RemoveTodo:
    """Takes a todo away from a place."""

    index: int
    todo: Todo

    @property
    def inverse(self) -> InsertTodo:
        return InsertTodo(self.index, self.todo)


@dataclass(frozen=True, slots=True)
class ReplaceTodo:
    """Puts a todo in the place of another of the same id."""

    before: Todo
    after: Todo

    @property
    def inverse(self) -> ReplaceTodo:
        return ReplaceTodo(self.after, self.before)


@dataclass(frozen=True, slots=True)
class ReplacePolicy:
    """Gives the plan another policy; ``None`` where its file names none."""

    before: Policy | None
    after: Policy | None

    @property
    def inverse(self) -> ReplacePolicy:
        return ReplacePolicy(self.after, self.before)


Change: TypeAlias = InsertTodo | RemoveTodo | ReplaceTodo | ReplacePolicy
"""One primitive change of a plan."""


class Draft:
    """A plan under change. The plan that it was made of stays as it is."""

    def __init__(self, plan: Plan) -> None:
        """Raises :class:`EditConflictError` for a plan in which two todos have one id."""
        self._plan = plan
        self._order = [todo.id for todo in plan.items]
        self._todos = {todo.id: todo for todo in plan.items}
        if len(self._todos) < len(self._order):
            twice = next(todo.id for todo in plan.items if self._todos[todo.id] is not todo)
            raise EditConflictError("any edit", twice, "two todos have this id", "give one of them another")
        self._names_policy = "metadata" in plan.model_fields_set
        self._policy = plan.metadata if self._names_policy else None
        self._hints: dict[str, int] = {}
        self._inserted = self._removed = 0
        self._branches: dict[str, dict[str, None]] | None = None
        self._last_branch: dict[str, str] = {}
        self._is_changed = False

    @property
    def policy(self) -> Policy:
        return Policy() if self._policy is None else self._policy

    def get(self, todo_id: str) -> Todo | None:
        """The todo of that id as it is now."""
        return self._todos.get(todo_id)

    def position(self, todo_id: str) -> int:
        """Where a todo stands now."""
        if not self._hints:
            self._hints = {name: index for index, name in enumerate(self._order)}
            self._inserted = self._removed = 0
        hint = self._hints[todo_id]
        # Since the hint was taken it has moved by no more than what was put in or taken out.
        return self._order.index(todo_id, max(0, hint - self._removed), hint + self._inserted + 1)

    def behind_branches_of(self, parent_id: str) -> int:
        """The place behind a todo and its last branch."""
        last = self._last_branch.get(parent_id)
        if last is None:
            family = (parent_id, *self._branches_by_parent().get(parent_id, ()))
            last = self._last_branch[parent_id] = max(family, key=self.position)
        return self.position(last) + 1

    def reaches(self, starts: Iterable[str], goal: str) -> bool:
        """Whether a todo is among some others or what they depend on, directly or not."""
        pending = list(starts)
        seen = set(pending)
        while pending:
            name = pending.pop()
            if name == goal:
                return True
            todo = self._todos.get(name)
            for dependency in () if todo is None else todo.dependencies:
                if dependency not in seen:
                    seen.add(dependency)
                    pending.append(dependency)
        return False

    def replace_policy(self, policy: Policy) -> ReplacePolicy:
        """The change that gives the plan this policy."""
        return ReplacePolicy(self._policy, policy)

    def perform(self, change: Change, edit: str) -> None:
        """Make one change. Raises :class:`EditConflictError` where what it finds is not what it expects."""
        match change:
            case InsertTodo(index, todo):
                self._insert(index, todo, edit)
            case RemoveTodo(index, todo):
                self._remove(index, todo, edit)
            case ReplaceTodo(before, after):
                self._expect(before, edit)
                self._todos[after.id] = after
            case ReplacePolicy(before, after):
                if self._policy != before:
                    raise EditConflictError(
                        edit, "metadata", "the policy is another one than expected", "decide anew"
                    )
                self._policy = after
        self._is_changed = True

    def plan(self) -> Plan:
        """The plan as it is now."""
        if not self._is_changed:
            return self._plan
        todos = self._todos
        revised = self._plan.model_copy(
            update={"items": tuple([todos[name] for name in self._order]), "metadata": self.policy}
        )
        if self._policy is None:
            revised.model_fields_set.discard("metadata")
        return revised

    def _insert(self, index: int, todo: Todo, edit: str) -> None:
        if todo.id in self._todos:
            raise EditConflictError(edit, todo.id, "the id is taken", "give the new todo another id")
        if not 0 <= index <= len(self._order):
            raise EditConflictError(edit, todo.id, f"the plan has no place {index}", "decide anew")
        self._order.insert(index, todo.id)
        self._todos[todo.id] = todo
        self._inserted += 1
        if self._hints:
            self._hints[todo.id] = index
        if todo.parent_id is not None and self._branches is not None:
            self._branches.setdefault(todo.parent_id, {})[todo.id] = None
            last = self._last_branch.get(todo.parent_id)
            if last is not None and self.position(last) < index:
                self._last_branch[todo.parent_id] = todo.id

    def _remove(self, index: int, todo: Todo, edit: str) -> None:
        self._expect(todo, edit)
        if not 0 <= index < len(self._order) or self._order[index] != todo.id:
            raise EditConflictError(edit, todo.id, f"it does not stand at place {index}", "decide anew")
        del self._order[index]
        del self._todos[todo.id]
        self._hints.pop(todo.id, None)
        self._removed += 1
        if todo.parent_id is not None and self._branches is not None:
            self._branches[todo.parent_id].pop(todo.id, None)
            self._last_branch.pop(todo.parent_id, None)

    def _branches_by_parent(self) -> dict[str, dict[str, None]]:
        if self._branches is None:
            self._branches = {}
            for todo in self._todos.values():
                if todo.parent_id is not None:
                    self._branches.setdefault(todo.parent_id, {})[todo.id] = None
        return self._branches

    def _expect(self, todo: Todo, edit: str) -> None:
        found = self._todos.get(todo.id)
        if found is None:
            raise EditConflictError(edit, todo.id, "there is no such todo", "decide anew from the plan")
        if found is not todo and found != todo:
            raise EditConflictError(edit, todo.id, "the todo has been changed since", "decide anew")
