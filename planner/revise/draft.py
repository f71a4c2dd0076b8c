"""Applies typed edits to a plan, all or none.

Every edit checks that the plan is as it expects, so that edits decided for one plan never apply to another.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from planner.catalog import parse_command
from planner.errors import CommandSyntaxError, EditConflictError
from planner.model.edits import (
    AddBranch,
    AddCheck,
    AddContext,
    AddContract,
    AddDependency,
    AddTodoBefore,
    Edit,
    Isolate,
    NameArtifact,
    NarrowFiles,
    QuarantineTest,
    RaiseLimit,
    RetargetCheck,
)
from planner.model.plan import AcceptanceCriteria, ControllerTaskSpec, Plan, Quarantine, Todo
from planner.policy.allowed_files import widened_by
from planner.policy.branches import REPORT
from planner.policy.criteria import commands_of, pytest_command, wants_convention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class DraftChange(NamedTuple):
    """The ids of the todos that a batch of edits has made, and of those that it has changed."""

    inserted: tuple[str, ...]
    replaced: tuple[str, ...]


class PlanDraft:
    """A copy of a plan to which edits are applied in batches; one that does not fit changes nothing."""

    def __init__(self, plan: Plan) -> None:
        """Raises :class:`planner.errors.EditConflictError` for a plan in which two todos have one id."""
        self._plan = plan
        self.items = list(plan.items)
        self.policy = plan.metadata
        if len({todo.id for todo in plan.items}) < len(self.items):
            ids = [todo.id for todo in plan.items]
            twice = next(name for name in ids if ids.count(name) > 1)
            raise EditConflictError("any edit", twice, "two todos have this id", "give one of them another")

    def todo(self, todo_id: str) -> Todo | None:
        """Return the todo of that id as it is now."""
        return next((todo for todo in self.items if todo.id == todo_id), None)

    def plan(self) -> Plan:
        """Return the plan as it is now."""
        changes: dict[str, Any] = {"items": tuple(self.items)}
        if self.policy is not self._plan.metadata:
            changes["metadata"] = self.policy
        return self._plan.model_copy(update=changes)

    def apply(self, edits: Iterable[Edit]) -> DraftChange:
        """Apply edits, all or none. Raises :class:`planner.errors.EditConflictError`."""
        before, policy = list(self.items), self.policy
        try:
            for edit in edits:
                self._apply(edit)
        except EditConflictError:
            self.items, self.policy = before, policy
            raise
        old = {todo.id: todo for todo in before}
        return DraftChange(
            tuple(todo.id for todo in self.items if todo.id not in old),
            tuple(todo.id for todo in self.items if todo.id in old and old[todo.id] is not todo),
        )

    def _apply(self, edit: Edit) -> None:
        name = edit.todo.id if isinstance(edit, AddBranch) else edit.todo_id
        try:
            if isinstance(edit, AddBranch):
                _add_branch(self, edit.todo)
                return
            todo = self.todo(name)
            if todo is None:
                _refuse("there is no such todo", "name one of the plan, or add it first")
            effect = cast("Callable[[PlanDraft, Todo, Edit], Todo]", _EFFECTS[type(edit)])
            changed = effect(self, todo, edit)
            self.items[self.place_of(name)] = changed
        except _UnfitEdit as unfit:
            raise EditConflictError(edit.edit, name, unfit.problem, unfit.remedy) from None

    def insert(self, before: int, todo: Todo) -> None:
        """Put a new todo at a place. Raises where its id is taken, or a dependency of it is no todo."""
        if self.todo(todo.id) is not None:
            _refuse(f"the id '{todo.id}' is taken", "give the new todo another id")
        for name in todo.dependencies:
            if self.todo(name) is None:
                _refuse(f"'{todo.id}' depends on '{name}', which is no todo", "add that one first")
        self.items.insert(before, todo)

    def place_of(self, todo_id: str) -> int:
        """Return where a todo stands."""
        return next(at for at, each in enumerate(self.items) if each.id == todo_id)

    def check_order(self, waiting: Todo, before: Iterable[str]) -> None:
        """Refuse that a todo waits for others which wait for it."""
        pending = list(before)
        for name in pending:
            if name == waiting.id:
                _refuse("the dependencies would go in a circle", "name others that do not wait for it")
            todo = self.todo(name)
            pending += [each for each in (todo.dependencies if todo else ()) if each not in pending]

    def check_command(self, cmd: str) -> None:
        """Refuse a command that cannot be run."""
        try:
            parse_command(cmd, self.policy.tools)
        except CommandSyntaxError as error:
            _refuse(f"{cmd!r} cannot be run: {error.problem}", error.remedy)


class _UnfitEdit(Exception):
    """What does not fit, before it is known in which edit."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


def _refuse(problem: str, remedy: str) -> NoReturn:
    raise _UnfitEdit(problem, remedy)


# -- what each kind of edit makes of its todo -----------------------------------------------------------


def _add_branch(draft: PlanDraft, branch: Todo) -> None:
    parent = None if branch.parent_id is None else draft.todo(branch.parent_id)
    if parent is None:
        _refuse(f"its parent '{branch.parent_id}' is no todo of the plan", "name one")
    if parent.parent_id is not None:
        remedy = f"make '{parent.parent_id}' the parent and name '{parent.id}' in via"
        _refuse(f"its parent '{parent.id}' is itself a branch of '{parent.parent_id}'", remedy)
    family = (at for at, each in enumerate(draft.items) if parent.id in (each.id, each.parent_id))
    draft.insert(1 + max(family), branch)


def _add_todo_before(draft: PlanDraft, todo: Todo, edit: AddTodoBefore) -> Todo:
    draft.check_order(todo, edit.todo.dependencies)
    draft.insert(draft.place_of(todo.id), edit.todo)
    return _changed(todo, dependencies=(*todo.dependencies, edit.todo.id))


def _add_dependency(draft: PlanDraft, todo: Todo, edit: AddDependency) -> Todo:
    if draft.todo(edit.on) is None:
        _refuse(f"there is no todo '{edit.on}'", "name one of the plan, or add it first")
    if edit.on in todo.dependencies:
        _refuse(f"it waits for '{edit.on}' already", "leave the edit out")
    draft.check_order(todo, (edit.on,))
    return _changed(todo, dependencies=(*todo.dependencies, edit.on))


def _narrow_files(_draft: PlanDraft, todo: Todo, edit: NarrowFiles) -> Todo:
    held = todo.allowed_files
    wider = None if held is None else widened_by(held, edit.allowed_files)
    if wider is not None:
        remedy = "name patterns that lie within them, and keep its exclusions at the end"
        _refuse(f"'{wider}' is not within its allowed_files ({', '.join(held or ()) or 'nothing'})", remedy)
    return _changed(todo, allowed_files=edit.allowed_files)


def _add_check(draft: PlanDraft, todo: Todo, edit: AddCheck) -> Todo:
    draft.check_command(edit.check.cmd)
    if any(spec.cmd.split() == edit.check.cmd.split() for _, spec in commands_of(todo)):
        _refuse(f"it has the command {edit.check.cmd!r} already", "leave the edit out")
    _check_keeps_convention(todo)
    return _with_tests(todo, (edit.check, *todo.acceptance_criteria.tests))


def _isolate(draft: PlanDraft, todo: Todo, edit: Isolate) -> Todo:
    if todo.parent_id is None:
        _refuse("it is no branch, and a primary todo keeps all its criteria", "name a branch")
    if not edit.tests:
        _refuse("nothing would be left to prove", "name at least one command")
    for spec in edit.tests:
        draft.check_command(spec.cmd)
    wanted, report = todo.acceptance_criteria, REPORT.format(todo_id=todo.parent_id)
    kept: dict[str, Any] = {"extensions": wanted.extensions, "tests": edit.tests}
    for name in ("expected_artifacts", "metrics", "manual"):
        kept[name] = tuple(
            spec
            for index, spec in enumerate(getattr(wanted, name))
            if f"{name}[{index}]" in edit.keeps or getattr(spec, "path", None) == report
        )
    criteria = AcceptanceCriteria.model_construct(**{name: held for name, held in kept.items() if held})
    gone = {"verify", "test_command", "test_file", "contract_path"} - set(edit.keeps)
    fields = {name: value for name, value in todo if name not in gone} | {"acceptance_criteria": criteria}
    named = (todo.model_fields_set - gone) | {"acceptance_criteria"}
    return Todo.model_construct(_fields_set=named, **fields)


def _add_context(_draft: PlanDraft, todo: Todo, edit: AddContext) -> Todo:
    return _changed(todo, debug_instructions=edit.text)


def _name_artifact(_draft: PlanDraft, todo: Todo, edit: NameArtifact) -> Todo:
    named: dict[str, Any] = {"target_file": edit.path}
    if edit.hint is not None:
        named["hint"] = edit.hint
    task = todo.controller_task_spec
    new = ControllerTaskSpec(type=edit.task or "CREATE", **named)
    return _changed(todo, controller_task_spec=new if task is None else task.model_copy(update=named))


def _raise_limit(_draft: PlanDraft, todo: Todo, edit: RaiseLimit) -> Todo:
    index = _test_index(todo, edit.check_id)
    if index is None:
        remedy = "name a command in acceptance_criteria.tests, as tests[0]"
        _refuse(f"{edit.check_id} has no limit of its own", remedy)
    held, said = todo.acceptance_criteria.tests[index].timeout_seconds, edit.from_seconds
    if held != said:
        _refuse(
            f"the limit of {edit.check_id} is {held:g} s, not {said:g} s", "decide from the newest plan"
        )
    if edit.to_seconds <= held:
        _refuse(f"{edit.to_seconds:g} s is no more than it has", "name more")
    return _with_test(todo, index, timeout_seconds=edit.to_seconds)


def _retarget_check(draft: PlanDraft, todo: Todo, edit: RetargetCheck) -> Todo:
    where, cmd = edit.check_id, edit.to_cmd
    held = {name: spec.cmd for name, spec in commands_of(todo)}.get(where)
    if held != edit.from_cmd:
        found = "has no command" if held is None else f"is {held!r}"
        _refuse(f"{where} {found}, not {edit.from_cmd!r}", "decide from the newest plan")
    draft.check_command(cmd)
    index = _test_index(todo, where)
    if index is not None:
        return _with_test(todo, index, cmd=cmd)
    if where in ("verify", "test_command"):
        return _changed(todo, **{where: cmd})
    if where != "test_file":
        _refuse(f"{where} comes from a recipe", "write the commands of the recipe")
    run = parse_command(cmd).pytest
    path = run.selections[0].removeprefix("./") if run and len(run.selections) == 1 else ""
    if not path or pytest_command(path).split() != cmd.replace(" ./", " ").split():
        _refuse(f"{cmd!r} is more than one file", "write 'pytest FILE' for a test_file")
    return _changed(todo, test_file=path)


def _add_contract(_draft: PlanDraft, todo: Todo, edit: AddContract) -> Todo:
    if todo.contract_path is not None:
        _refuse(f"it is held to '{todo.contract_path}' already", "settle that contract")
    _check_keeps_convention(todo)
    return _changed(todo, contract_path=edit.contract_path)


def _quarantine(draft: PlanDraft, todo: Todo, edit: QuarantineTest) -> Todo:
    try:
        date.fromisoformat(edit.expires)
    except ValueError:
        _refuse(f"'{edit.expires}' is no date of the calendar", "write YYYY-MM-DD")
    retry = draft.policy.flaky_retry
    held = {each.nodeid: each for each in retry.quarantine}
    if edit.nodeid in held and held[edit.nodeid].expires >= edit.expires:
        problem = f"{edit.nodeid} is in quarantine until {held[edit.nodeid].expires}"
        _refuse(problem, "leave the edit out")
    held.pop(edit.nodeid, None)
    fields = edit.model_dump(include={"nodeid", "owner", "ticket", "expires"})
    retry = retry.model_copy(update={"quarantine": (*held.values(), Quarantine(**fields))})
    draft.policy = draft.policy.model_copy(update={"flaky_retry": retry})
    return todo


_EFFECTS: dict[type[Any], Callable[[PlanDraft, Todo, Any], Todo]] = {
    AddTodoBefore: _add_todo_before,
    AddDependency: _add_dependency,
    NarrowFiles: _narrow_files,
    AddCheck: _add_check,
    Isolate: _isolate,
    AddContext: _add_context,
    NameArtifact: _name_artifact,
    RaiseLimit: _raise_limit,
    RetargetCheck: _retarget_check,
    AddContract: _add_contract,
    QuarantineTest: _quarantine,
}


def _check_keeps_convention(todo: Todo) -> None:
    """Refuse a first criterion of a todo that is tested by convention: it would put an end to that."""
    if wants_convention(todo):
        _refuse("its tests are found by convention", "name them as criteria first")


def _changed(todo: Todo, **fields: Any) -> Todo:
    return todo.model_copy(update=fields)


def _with_tests(todo: Todo, tests: tuple[Any, ...]) -> Todo:
    return _changed(todo, acceptance_criteria=todo.acceptance_criteria.model_copy(update={"tests": tests}))


def _with_test(todo: Todo, index: int, **fields: Any) -> Todo:
    tests = list(todo.acceptance_criteria.tests)
    tests[index] = tests[index].model_copy(update=fields)
    return _with_tests(todo, tuple(tests))


def _test_index(todo: Todo, check_id: str) -> int | None:
    count = len(todo.acceptance_criteria.tests)
    return next((index for index in range(count) if check_id == f"tests[{index}]"), None)
