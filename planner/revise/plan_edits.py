"""Application of typed edits to the todos of a plan, all or none.

Each edit carries the values on which it was decided, and is refused if the plan has others. So edits that
were decided for another version of the plan are never applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from planner.catalog import parse_command
from planner.errors import CommandSyntaxError, EditConflictError
from planner.model.base import report_path
from planner.model.edits import (
    AddBranch,
    AddCheck,
    AddContext,
    AddDependency,
    AddTodoBefore,
    AssignRole,
    Edit,
    Isolate,
    NameArtifact,
    NarrowFiles,
    RaiseLimit,
    RetargetCheck,
)
from planner.model.plan import AcceptanceCriteria, ControllerTaskSpec, Todo
from planner.policy.allowed_files import widened_by
from planner.policy.criteria import commands_of, wants_convention
from planner.policy.dependencies import reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from planner.model.plan import CommandSpec


def apply_edits(find: Callable[[str], Todo | None], edits: Iterable[Edit]) -> dict[str, Todo]:
    """Apply edits in order to the plan whose todos ``find`` returns by id.

    Returns the new and changed todos by id; the plan itself is not copied. Raises
    :class:`planner.errors.EditConflictError` for the first edit that does not fit.
    """
    editor = _PlanEditor(find)
    for edit in edits:
        editor.apply(edit)
    return editor.edited


class _PlanEditor:
    """A plan under edit: new and changed todos on top of the unchanged ones."""

    def __init__(self, find: Callable[[str], Todo | None]) -> None:
        self._find = find
        self.edited: dict[str, Todo] = {}
        self._current = ("", "")
        """Kind and todo of the edit that is applied, which a refusal names."""

    def _todo(self, name: str) -> Todo | None:
        """Return a todo as edited so far."""
        return self.edited.get(name) or self._find(name)

    def apply(self, edit: Edit) -> None:
        """Apply one edit. Raises :class:`planner.errors.EditConflictError` if it does not fit."""
        is_branch = isinstance(edit, AddBranch)
        self._current = (edit.edit, edit.todo.id if is_branch else edit.todo_id)
        name = edit.todo.parent_id or "" if is_branch else edit.todo_id
        todo = self._todo(name)
        if todo is None:
            missing = f"its parent '{name}' is not a todo of the plan"
            self._refuse(missing if is_branch else "there is no such todo")
        changed = self._changed(todo, edit)
        if changed is not todo:
            self.edited[todo.id] = changed

    def _changed(self, todo: Todo, edit: Edit) -> Todo:
        """Return the edited todo; the same object if the edit does not concern its own fields."""
        match edit:
            case AddTodoBefore():
                # What the new todo waits for must not wait for this one.
                self._check_order(todo, edit.todo.dependencies)
                self._add(edit.todo)
                return _with(todo, dependencies=(*todo.dependencies, edit.todo.id))
            case AddDependency():
                if self._todo(edit.on) is None:
                    self._refuse(f"there is no todo '{edit.on}'")
                if edit.on in todo.dependencies:
                    self._refuse(f"it depends on '{edit.on}' already")
                self._check_order(todo, (edit.on,))
                return _with(todo, dependencies=(*todo.dependencies, edit.on))
            case AssignRole():
                return _with(todo, agent_role=edit.role, target_agent_role=edit.role)
            case NarrowFiles():
                # The files of a branch follow the cause of its failure.
                held = (self._todo(todo.parent_id or "") or todo).allowed_files
                # No limit at all is the widest list.
                files = ("**",) if edit.allowed_files is None else edit.allowed_files
                wider = None if held is None else widened_by(held, files)
                if wider is not None:
                    allowed = ", ".join(held or ()) or "nothing"
                    self._refuse(
                        f"'{wider}' is not within its allowed_files ({allowed}), whose exclusions come last"
                    )
                return _with(todo, allowed_files=edit.allowed_files)
            case AddCheck():
                self._check_command(edit.check.cmd)
                # Compared by words, as commands that differ in blanks run the same.
                if any(spec.cmd.split() == edit.check.cmd.split() for _, spec in commands_of(todo)):
                    self._refuse(f"it has the command {edit.check.cmd!r} already")
                wanted = todo.acceptance_criteria
                if wants_convention(todo):  # a first criterion would disable the convention
                    self._refuse("its tests are found by convention, and not named as criteria")
                return _with_tests(todo, [edit.check, *wanted.tests])
            case Isolate():
                return self._isolated(todo, edit)
            case AddContext():
                return _with(todo, debug_instructions=edit.text)
            case NameArtifact():
                named: dict[str, Any] = {"target_file": edit.path}
                if edit.hint is not None:
                    named["hint"] = edit.hint
                task = todo.controller_task_spec
                new = ControllerTaskSpec(type=edit.task or "CREATE", **named)
                return _with(
                    todo, controller_task_spec=new if task is None else task.model_copy(update=named)
                )
            case RaiseLimit():
                return self._with_limit(todo, edit)
            case RetargetCheck():
                return self._retargeted(todo, edit)
            case AddBranch():
                if todo.parent_id is not None:
                    self._refuse(f"its parent '{todo.id}' is itself a branch of '{todo.parent_id}'")
                self._add(edit.todo)
                return todo

    def _isolated(self, todo: Todo, edit: Isolate) -> Todo:
        """Return a branch with the given commands as its only criteria.

        The failure report of its parent stays, and so do baseline criteria.
        """
        if todo.parent_id is None:
            self._refuse("it is not a branch, and a primary todo keeps all its criteria")
        if not edit.tests:
            self._refuse("no criterion would be left")
        for spec in edit.tests:
            self._check_command(spec.cmd)
        wanted, report = todo.acceptance_criteria, report_path(todo.parent_id)
        # The report is no proof, but tells the worker what failed.
        artifacts = tuple(each for each in wanted.expected_artifacts if each.path == report)
        kept = {"extensions": wanted.extensions, "tests": edit.tests, "expected_artifacts": artifacts}
        criteria = AcceptanceCriteria.model_validate({name: held for name, held in kept.items() if held})
        # Built anew, as a copy cannot unset a field, and the file must no longer have these keys.
        named = todo.model_fields_set - {"verify", "test_command", "test_file", "contract_path"}
        fields = {name: getattr(todo, name) for name in named}
        return Todo.model_validate(fields | {"acceptance_criteria": criteria})

    def _with_limit(self, todo: Todo, edit: RaiseLimit) -> Todo:
        """Return a todo with a higher time limit of one of its commands."""
        tests = _tests_by_id(todo)
        spec = tests.get(edit.check_id)
        if spec is None:
            self._refuse(f"{edit.check_id} has no time limit, as only acceptance_criteria.tests have one")
        # A person may have changed the limit since the edit was proposed.
        current, expected = spec.timeout_seconds, edit.from_seconds
        if current != expected:
            self._refuse(f"the limit of {edit.check_id} is {current:g} s, not {expected:g} s")
        if edit.to_seconds <= current:
            self._refuse(f"{edit.to_seconds:g} s is not more than the current limit")
        tests[edit.check_id] = spec.model_copy(update={"timeout_seconds": edit.to_seconds})
        return _with_tests(todo, tests.values())

    def _retargeted(self, todo: Todo, edit: RetargetCheck) -> Todo:
        """Return a todo with another command of one of its criteria."""
        where, cmd = edit.check_id, edit.to_cmd
        current = {name: spec.cmd for name, spec in commands_of(todo)}.get(where)
        if current != edit.from_cmd:
            problem = "has no command" if current is None else f"is {current!r}"
            self._refuse(f"{where} {problem}, not {edit.from_cmd!r}")
        self._check_command(cmd)
        tests = _tests_by_id(todo)
        if where in tests:
            tests[where] = tests[where].model_copy(update={"cmd": cmd})
            return _with_tests(todo, tests.values())
        if where not in ("verify", "test_command"):
            self._refuse(f"{where} states no command")
        return _with(todo, **{where: cmd})

    # -- preconditions --------------------------------------------------------------------------------

    def _refuse(self, problem: str) -> NoReturn:
        """Raise :class:`planner.errors.EditConflictError` for the current edit and todo."""
        raise EditConflictError(*self._current, problem)

    def _add(self, todo: Todo) -> None:
        """Add a todo; its id must be new, and its dependencies must exist."""
        if self._todo(todo.id) is not None:
            self._refuse(f"the id '{todo.id}' is taken")
        for name in todo.dependencies:
            if self._todo(name) is None:
                self._refuse(f"'{todo.id}' depends on '{name}', which is not a todo")
        self.edited[todo.id] = todo

    def _check_order(self, waiting: Todo, before: Iterable[str]) -> None:
        """Refuse new dependencies of a todo that would form a cycle."""

        def next_of(name: str) -> tuple[str, ...]:
            todo = self._todo(name)
            return todo.dependencies if todo else ()

        if waiting.id in reachable(before, next_of):
            self._refuse("the dependencies would be circular")

    def _check_command(self, cmd: str) -> None:
        """Refuse a command that cannot be parsed."""
        try:
            parse_command(cmd)
        except CommandSyntaxError as error:
            self._refuse(f"{cmd!r} cannot be run: {error.problem}; {error.remedy}")


def _with(todo: Todo, **fields: Any) -> Todo:
    return todo.model_copy(update=fields)


def _with_tests(todo: Todo, tests: Iterable[CommandSpec]) -> Todo:
    criteria = todo.acceptance_criteria.model_copy(update={"tests": tuple(tests)})
    return _with(todo, acceptance_criteria=criteria)


def _tests_by_id(todo: Todo) -> dict[str, CommandSpec]:
    return {f"tests[{index}]": spec for index, spec in enumerate(todo.acceptance_criteria.tests)}
