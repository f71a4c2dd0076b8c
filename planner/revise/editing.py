"""Applies typed edits to a plan, all or none, and takes them back.

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
    SplitTodo,
)
from planner.model.plan import AcceptanceCriteria, ControllerTaskSpec, Plan, Policy, Quarantine, Todo
from planner.policy.allowed_files import widened_by
from planner.policy.branches import REPORT
from planner.policy.criteria import commands_of, pytest_command, wants_convention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from planner.model.plan import CommandSpec


class Changes(NamedTuple):
    """What a batch of edits has changed."""

    inserted: tuple[str, ...]
    """Ids of the todos that are new."""
    replaced: tuple[str, ...]
    """Ids of the todos that were there and are others now."""
    policy: Policy | None
    """The policy, where it is another one."""


def apply_edits(plan: Plan, edits: Iterable[Edit]) -> Plan:
    """Return the plan after the edits, in their order.

    Raises :class:`planner.errors.EditConflictError` where one of them does not fit; then none is applied.
    """
    editing = Editing(plan)
    editing.apply(edits)
    return editing.plan()


class Editing:
    """One plan to which edits are applied one batch after the other. The plan it was made of stays.

    A batch that does not fit leaves everything as it was.
    """

    def __init__(self, plan: Plan) -> None:
        """Raises :class:`planner.errors.EditConflictError` for a plan in which two todos have one id."""
        self._plan = plan
        self._items = list(plan.items)
        self._todos = {todo.id: todo for todo in plan.items}
        if len(self._todos) < len(self._items):
            twice = next(todo.id for todo in plan.items if self._todos[todo.id] is not todo)
            raise EditConflictError("any edit", twice, "two todos have this id", "give one of them another")
        self._named_policy = plan.metadata if "metadata" in plan.model_fields_set else None
        self._earlier: list[tuple[list[Todo], Policy | None]] = []

    def todo(self, todo_id: str) -> Todo | None:
        """Return the todo of that id as it is now."""
        return self._todos.get(todo_id)

    @property
    def policy(self) -> Policy:
        """The policy as it is now."""
        return self._named_policy or Policy()

    def plan(self) -> Plan:
        """Return the plan as it is now."""
        if not self._earlier:
            return self._plan
        revised = self._plan.model_copy(update={"items": tuple(self._items), "metadata": self.policy})
        if self._named_policy is None:
            revised.model_fields_set.discard("metadata")
        return revised

    def apply(self, edits: Iterable[Edit]) -> Changes:
        """Apply edits, all or none. Raises :class:`planner.errors.EditConflictError`."""
        before, policy = dict(self._todos), self._named_policy
        self._earlier.append((list(self._items), policy))
        try:
            for edit in edits:
                effect = cast("Callable[[Editing, Edit], None]", _EFFECTS[type(edit)])
                effect(self, edit)
        except EditConflictError:
            self.undo()
            raise
        return Changes(
            inserted=tuple(name for name in self._todos if name not in before),
            replaced=tuple(
                todo.id for todo in self._items if todo.id in before and before[todo.id] is not todo
            ),
            policy=self._named_policy if self._named_policy is not policy else None,
        )

    def undo(self) -> None:
        """Take the last batch back."""
        self._items, self._named_policy = self._earlier.pop()
        self._todos = {todo.id: todo for todo in self._items}

    # -- what edits do ------------------------------------------------------------------------------------

    def insert(self, before: int, todo: Todo) -> None:
        """Put a todo at a place; those behind it move on."""
        self._items.insert(before, todo)
        self._todos[todo.id] = todo

    def replace(self, old: Todo, new: Todo) -> None:
        """Put a todo in the place of another of the same id."""
        self._items[self.position(old.id)] = new
        self._todos[new.id] = new

    def change(self, todo: Todo, **fields: Any) -> None:
        """Give a todo other values."""
        self.replace(todo, todo.model_copy(update=fields))

    def set_policy(self, policy: Policy) -> None:
        """Give the plan another policy."""
        self._named_policy = policy

    def position(self, todo_id: str) -> int:
        """Return where a todo stands now."""
        return next(at for at, todo in enumerate(self._items) if todo.id == todo_id)

    def behind_branches_of(self, parent_id: str) -> int:
        """Return the place behind a todo and its last branch."""
        return max(at + 1 for at, todo in enumerate(self._items) if parent_id in (todo.id, todo.parent_id))

    def is_before(self, todo_id: str, others: Iterable[str]) -> bool:
        """Return whether a todo is among others or what they depend on, directly or not."""
        pending = list(others)
        seen = set(pending)
        while pending:
            name = pending.pop()
            if name == todo_id:
                return True
            todo = self._todos.get(name)
            new = [each for each in (() if todo is None else todo.dependencies) if each not in seen]
            seen.update(new)
            pending += new
        return False


# -- what each kind of edit changes ---------------------------------------------------------------------


def _refuse(edit: Edit, todo_id: str, problem: str, remedy: str) -> NoReturn:
    raise EditConflictError(edit.edit, todo_id, problem, remedy)


def _add_branch(draft: Editing, edit: AddBranch) -> None:
    branch = edit.todo
    parent = None if branch.parent_id is None else draft.todo(branch.parent_id)
    if parent is None:
        _refuse(edit, branch.id, f"its parent '{branch.parent_id}' is no todo of the plan", "name one")
    if parent.parent_id is not None:
        _refuse(
            edit,
            branch.id,
            f"its parent '{parent.id}' is itself a branch of '{parent.parent_id}'",
            f"make '{parent.parent_id}' the parent and name '{parent.id}' in via",
        )
    _check_new(draft, edit, branch)
    draft.insert(draft.behind_branches_of(parent.id), branch)


def _add_todo_before(draft: Editing, edit: AddTodoBefore) -> None:
    waiting = _found(draft, edit, edit.todo_id)
    _check_new(draft, edit, edit.todo)
    _check_order(draft, edit, waiting, edit.todo.dependencies)
    draft.insert(draft.position(waiting.id), edit.todo)
    draft.change(waiting, dependencies=(*waiting.dependencies, edit.todo.id))


def _add_dependency(draft: Editing, edit: AddDependency) -> None:
    waiting = _found(draft, edit, edit.todo_id)
    _found(draft, edit, edit.on)
    if edit.on in waiting.dependencies:
        _refuse(edit, waiting.id, f"it waits for '{edit.on}' already", "leave the edit out")
    _check_order(draft, edit, waiting, (edit.on,))
    draft.change(waiting, dependencies=(*waiting.dependencies, edit.on))


def _narrow_files(draft: Editing, edit: NarrowFiles) -> None:
    todo = _found(draft, edit, edit.todo_id)
    if todo.allowed_files is not None:
        wider = widened_by(todo.allowed_files, edit.allowed_files)
        if wider is not None:
            held = ", ".join(todo.allowed_files) or "nothing"
            _refuse(
                edit,
                todo.id,
                f"'{wider}' is not within its allowed_files ({held})",
                "name patterns that lie within them, and keep its exclusions at the end",
            )
    draft.change(todo, allowed_files=edit.allowed_files)


def _add_check(draft: Editing, edit: AddCheck) -> None:
    todo = _found(draft, edit, edit.todo_id)
    _check_command(draft, edit, todo.id, edit.check.cmd)
    if any(spec.cmd.split() == edit.check.cmd.split() for _, spec in commands_of(todo)):
        _refuse(edit, todo.id, f"it has the command {edit.check.cmd!r} already", "leave the edit out")
    _check_keeps_convention(edit, todo)
    wanted = todo.acceptance_criteria
    draft.change(todo, acceptance_criteria=_with_tests(wanted, (edit.check, *wanted.tests)))


def _isolate(draft: Editing, edit: Isolate) -> None:
    todo = _found(draft, edit, edit.todo_id)
    if todo.parent_id is None:
        _refuse(
            edit, todo.id, "it is no branch, and a primary todo keeps all its criteria", "name a branch"
        )
    if not edit.tests:
        _refuse(edit, todo.id, "nothing would be left to prove", "name at least one command")
    for spec in edit.tests:
        _check_command(draft, edit, todo.id, spec.cmd)
    wanted = todo.acceptance_criteria
    report = REPORT.format(todo_id=todo.parent_id)
    kept: dict[str, Any] = {
        "extensions": wanted.extensions,
        "tests": edit.tests,
        "expected_artifacts": tuple(
            artifact
            for index, artifact in enumerate(wanted.expected_artifacts)
            if artifact.path == report or f"expected_artifacts[{index}]" in edit.keeps
        ),
        "metrics": _kept("metrics", wanted.metrics, edit.keeps),
        "manual": _kept("manual", wanted.manual, edit.keeps),
    }
    criteria = AcceptanceCriteria.model_construct(**{name: held for name, held in kept.items() if held})
    gone = ("verify", "test_command", "test_file")
    dropped = gone if "contract_path" in edit.keeps else (*gone, "contract_path")
    draft.replace(todo, _without(todo, dropped, acceptance_criteria=criteria))


def _add_context(draft: Editing, edit: AddContext) -> None:
    draft.change(_found(draft, edit, edit.todo_id), debug_instructions=edit.text)


def _name_artifact(draft: Editing, edit: NameArtifact) -> None:
    todo = _found(draft, edit, edit.todo_id)
    named: dict[str, Any] = {"target_file": edit.path}
    if edit.hint is not None:
        named["hint"] = edit.hint
    task = todo.controller_task_spec
    new = ControllerTaskSpec(type=edit.task or "CREATE", **named)
    task = new if task is None else task.model_copy(update=named)
    draft.change(todo, controller_task_spec=task)


def _add_contract(draft: Editing, edit: AddContract) -> None:
    todo = _found(draft, edit, edit.todo_id)
    if todo.contract_path is not None:
        _refuse(edit, todo.id, f"it is held to '{todo.contract_path}' already", "settle that contract")
    _check_keeps_convention(edit, todo)
    draft.change(todo, contract_path=edit.contract_path)


def _raise_limit(draft: Editing, edit: RaiseLimit) -> None:
    todo = _found(draft, edit, edit.todo_id)
    index = _test_index(todo, edit.check_id)
    if index is None:
        _refuse(
            edit,
            todo.id,
            f"{edit.check_id} has no limit of its own",
            "name a command in acceptance_criteria.tests, as tests[0]",
        )
    spec = todo.acceptance_criteria.tests[index]
    if spec.timeout_seconds != edit.from_seconds:
        _refuse(
            edit,
            todo.id,
            f"the limit of {edit.check_id} is {spec.timeout_seconds:g} s, not {edit.from_seconds:g} s",
            "decide from the newest plan",
        )
    if edit.to_seconds <= spec.timeout_seconds:
        _refuse(edit, todo.id, f"{edit.to_seconds:g} s is no more than it has", "name more")
    _change_test(draft, todo, index, timeout_seconds=edit.to_seconds)


def _retarget_check(draft: Editing, edit: RetargetCheck) -> None:
    todo = _found(draft, edit, edit.todo_id)
    held = {where: spec.cmd for where, spec in commands_of(todo)}.get(edit.check_id)
    if held != edit.from_cmd:
        found = "has no command" if held is None else f"is {held!r}"
        _refuse(
            edit, todo.id, f"{edit.check_id} {found}, not {edit.from_cmd!r}", "decide from the newest plan"
        )
    _check_command(draft, edit, todo.id, edit.to_cmd)
    index = _test_index(todo, edit.check_id)
    if index is not None:
        _change_test(draft, todo, index, cmd=edit.to_cmd)
    elif edit.check_id == "test_file":
        draft.change(todo, test_file=_file_of(edit, todo))
    elif edit.check_id in ("verify", "test_command"):
        draft.change(todo, **{edit.check_id: edit.to_cmd})
    else:
        _refuse(edit, todo.id, f"{edit.check_id} comes from a recipe", "write the commands of the recipe")


def _split_todo(draft: Editing, edit: SplitTodo) -> None:
    todo = _found(draft, edit, edit.todo_id)
    *parts, rest = edit.parts
    if rest.id != todo.id:
        _refuse(edit, todo.id, f"the last part is called '{rest.id}'", f"call it '{todo.id}'")
    lost = next(_lost(todo, edit.parts), None)
    if lost is not None:
        _refuse(edit, todo.id, f"no part keeps {lost}", "give each criterion to a part")
    place = draft.position(todo.id)
    for offset, part in enumerate(parts):
        _check_new(draft, edit, part)
        _check_order(draft, edit, todo, part.dependencies)
        draft.insert(place + offset, part)
    # What was added to its dependencies since the parts were made is kept.
    before = dict.fromkeys((*rest.dependencies, *todo.dependencies, *(part.id for part in parts)))
    rest = rest.model_copy(update={"dependencies": tuple(before)})
    _check_known(draft, edit, rest)
    _check_order(draft, edit, todo, rest.dependencies)
    draft.replace(todo, rest)


def _quarantine(draft: Editing, edit: QuarantineTest) -> None:
    _found(draft, edit, edit.todo_id)
    try:
        date.fromisoformat(edit.expires)
    except ValueError:
        _refuse(edit, edit.todo_id, f"'{edit.expires}' is no date of the calendar", "write YYYY-MM-DD")
    policy = draft.policy
    entries = policy.flaky_retry.quarantine
    for entry in entries:
        if entry.nodeid == edit.nodeid and entry.expires >= edit.expires:
            problem = f"{edit.nodeid} is in quarantine until {entry.expires}"
            _refuse(edit, edit.todo_id, problem, "leave the edit out")
    added = Quarantine(nodeid=edit.nodeid, owner=edit.owner, ticket=edit.ticket, expires=edit.expires)
    left = tuple(entry for entry in entries if entry.nodeid != edit.nodeid)
    retry = policy.flaky_retry.model_copy(update={"quarantine": (*left, added)})
    draft.set_policy(policy.model_copy(update={"flaky_retry": retry}))


_EFFECTS: dict[type[Any], Callable[[Editing, Any], None]] = {
    AddBranch: _add_branch,
    AddTodoBefore: _add_todo_before,
    AddDependency: _add_dependency,
    NarrowFiles: _narrow_files,
    AddCheck: _add_check,
    Isolate: _isolate,
    AddContext: _add_context,
    NameArtifact: _name_artifact,
    AddContract: _add_contract,
    RaiseLimit: _raise_limit,
    RetargetCheck: _retarget_check,
    SplitTodo: _split_todo,
    QuarantineTest: _quarantine,
}


def _found(draft: Editing, edit: Edit, todo_id: str) -> Todo:
    todo = draft.todo(todo_id)
    if todo is None:
        _refuse(edit, todo_id, "there is no such todo", "name one of the plan, or add it first")
    return todo


def _check_new(draft: Editing, edit: Edit, todo: Todo) -> None:
    if draft.todo(todo.id) is not None:
        _refuse(edit, todo.id, "the id is taken", "give the new todo another id")
    _check_known(draft, edit, todo)


def _check_known(draft: Editing, edit: Edit, todo: Todo) -> None:
    for dependency in todo.dependencies:
        if draft.todo(dependency) is None:
            _refuse(edit, todo.id, f"it depends on '{dependency}', which is no todo", "add that one first")


def _check_order(draft: Editing, edit: Edit, waiting: Todo, before: Iterable[str]) -> None:
    """Refuse that a todo waits for others which wait for it."""
    # What it waits for already cannot wait for it, so that nothing needs to be searched.
    new = [name for name in before if name not in waiting.dependencies]
    if new and draft.is_before(waiting.id, new):
        _refuse(
            edit, waiting.id, "the dependencies would go in a circle", "name others that do not wait for it"
        )


def _check_command(draft: Editing, edit: Edit, todo_id: str, cmd: str) -> None:
    try:
        parse_command(cmd, draft.policy.tools)
    except CommandSyntaxError as error:
        _refuse(edit, todo_id, f"{cmd!r} cannot be run: {error.problem}", error.remedy)


def _check_keeps_convention(edit: Edit, todo: Todo) -> None:
    """Refuse a first criterion of a todo that is tested by convention: it would put an end to that."""
    if wants_convention(todo):
        _refuse(edit, todo.id, "its tests are found by convention", "name them as criteria first")


def _change_test(draft: Editing, todo: Todo, index: int, **fields: Any) -> None:
    tests = list(todo.acceptance_criteria.tests)
    tests[index] = tests[index].model_copy(update=fields)
    draft.change(todo, acceptance_criteria=_with_tests(todo.acceptance_criteria, tuple(tests)))


def _with_tests(criteria: AcceptanceCriteria, tests: tuple[CommandSpec, ...]) -> AcceptanceCriteria:
    return criteria.model_copy(update={"tests": tests})


def _without(todo: Todo, names: Iterable[str], **fields: Any) -> Todo:
    """Return the todo with some fields as if they had never been set."""
    kept = {name: value for name, value in todo if name not in names} | fields
    return Todo.model_construct(_fields_set=(todo.model_fields_set - set(names)) | set(fields), **kept)


def _kept(name: str, specs: tuple[Any, ...], keeps: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(spec for index, spec in enumerate(specs) if f"{name}[{index}]" in keeps)


def _test_index(todo: Todo, check_id: str) -> int | None:
    count = len(todo.acceptance_criteria.tests)
    return next((index for index in range(count) if check_id == f"tests[{index}]"), None)


def _file_of(edit: RetargetCheck, todo: Todo) -> str:
    """Return the file that the new command of ``test_file`` runs."""
    run = parse_command(edit.to_cmd).pytest
    path = run.selections[0].removeprefix("./") if run and len(run.selections) == 1 else ""
    if not path or pytest_command(path).split() != edit.to_cmd.replace(" ./", " ").split():
        _refuse(
            edit, todo.id, f"{edit.to_cmd!r} is more than one file", "write 'pytest FILE' for a test_file"
        )
    return path


def _lost(todo: Todo, parts: Iterable[Todo]) -> Iterator[str]:
    """Yield the criteria of a todo that none of its parts has."""
    parts = tuple(parts)
    commands = [_command_key(spec) for part in parts for _, spec in commands_of(part)]
    for where, spec in commands_of(todo):
        if _command_key(spec) not in commands:
            yield where
    for name in ("expected_artifacts", "metrics", "manual"):
        held = [spec for part in parts for spec in getattr(part.acceptance_criteria, name)]
        for index, spec in enumerate(getattr(todo.acceptance_criteria, name)):
            if spec not in held:
                yield f"{name}[{index}]"
    if todo.contract_path is not None and all(part.contract_path != todo.contract_path for part in parts):
        yield "contract_path"
    if wants_convention(todo) and not wants_convention(parts[-1]):
        yield "its tests, which are found by convention"


def _command_key(spec: CommandSpec) -> tuple[str, float, str | None]:
    return spec.cmd, spec.timeout_seconds, spec.fixture
