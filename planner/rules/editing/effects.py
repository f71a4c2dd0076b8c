"""What each kind of edit changes in a plan, as primitive changes."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, NoReturn, cast

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
    RecordAttempt,
    RetargetCheck,
    SplitTodo,
)
from planner.model.plan import AcceptanceCriteria, ControllerTaskSpec, Quarantine, Todo
from planner.rules.branching import MEMORY, REPORT
from planner.rules.criteria import commands_of, pytest_command, wants_convention
from planner.rules.editing.allowed_files import widened_by
from planner.rules.editing.drafting import Change, InsertTodo, ReplaceTodo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from planner.model.plan import CommandSpec
    from planner.rules.editing.drafting import Draft


def effects(draft: Draft, edit: Edit) -> Iterator[Change]:
    """The changes of an edit, each to be made before the next is asked for.

    Raises :class:`planner.errors.EditConflictError` where the edit does not fit.
    """
    effect = cast("Callable[[Draft, Edit], Iterator[Change]]", _EFFECTS[type(edit)])
    return effect(draft, edit)


def _refuse(edit: Edit, todo_id: str, problem: str, remedy: str) -> NoReturn:
    raise EditConflictError(edit.edit, todo_id, problem, remedy)


def _add_branch(draft: Draft, edit: AddBranch) -> Iterator[Change]:
    branch = edit.todo
    parent = None if branch.parent_id is None else draft.get(branch.parent_id)
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
    yield InsertTodo(draft.behind_branches_of(parent.id), branch)


def _add_todo_before(draft: Draft, edit: AddTodoBefore) -> Iterator[Change]:
    waiting = _found(draft, edit, edit.todo_id)
    _check_new(draft, edit, edit.todo)
    _check_order(draft, edit, waiting, edit.todo.dependencies)
    yield InsertTodo(draft.position(waiting.id), edit.todo)
    yield _changed(waiting, dependencies=(*waiting.dependencies, edit.todo.id))


def _add_dependency(draft: Draft, edit: AddDependency) -> Iterator[Change]:
    waiting = _found(draft, edit, edit.todo_id)
    _found(draft, edit, edit.on)
    if edit.on in waiting.dependencies:
        _refuse(edit, waiting.id, f"it waits for '{edit.on}' already", "leave the edit out")
    _check_order(draft, edit, waiting, (edit.on,))
    yield _changed(waiting, dependencies=(*waiting.dependencies, edit.on))


def _narrow_files(draft: Draft, edit: NarrowFiles) -> Iterator[Change]:
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
    yield _changed(todo, allowed_files=edit.allowed_files)


def _add_check(draft: Draft, edit: AddCheck) -> Iterator[Change]:
    todo = _found(draft, edit, edit.todo_id)
    _check_command(draft, edit, todo.id, edit.check.cmd)
    if any(spec.cmd.split() == edit.check.cmd.split() for _, spec in commands_of(todo)):
        _refuse(edit, todo.id, f"it has the command {edit.check.cmd!r} already", "leave the edit out")
    _check_keeps_convention(edit, todo)
    wanted = todo.acceptance_criteria
    yield _changed(todo, acceptance_criteria=_with_tests(wanted, (edit.check, *wanted.tests)))


def _isolate(draft: Draft, edit: Isolate) -> Iterator[Change]:
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
    yield ReplaceTodo(todo, _without(todo, dropped, acceptance_criteria=criteria))


def _add_context(draft: Draft, edit: AddContext) -> Iterator[Change]:
    yield _changed(_found(draft, edit, edit.todo_id), debug_instructions=edit.text)


def _name_artifact(draft: Draft, edit: NameArtifact) -> Iterator[Change]:
    todo = _found(draft, edit, edit.todo_id)
    named: dict[str, Any] = {"target_file": edit.path}
    if edit.hint is not None:
        named["hint"] = edit.hint
    task = todo.controller_task_spec
    task = ControllerTaskSpec(type="CREATE", **named) if task is None else task.model_copy(update=named)
    yield _changed(todo, controller_task_spec=task)


def _add_contract(draft: Draft, edit: AddContract) -> Iterator[Change]:
    todo = _found(draft, edit, edit.todo_id)
    if todo.contract_path is not None:
        _refuse(edit, todo.id, f"it is held to '{todo.contract_path}' already", "settle that contract")
    _check_keeps_convention(edit, todo)
    yield _changed(todo, contract_path=edit.contract_path)


def _raise_limit(draft: Draft, edit: RaiseLimit) -> Iterator[Change]:
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
            "decide anew from the plan",
        )
    if edit.to_seconds <= spec.timeout_seconds:
        _refuse(edit, todo.id, f"{edit.to_seconds:g} s is no more than it has", "name more")
    yield _changed_test(todo, index, timeout_seconds=edit.to_seconds)


def _retarget_check(draft: Draft, edit: RetargetCheck) -> Iterator[Change]:
    todo = _found(draft, edit, edit.todo_id)
    held = {where: spec.cmd for where, spec in commands_of(todo)}.get(edit.check_id)
    if held != edit.from_cmd:
        found = "has no command" if held is None else f"is {held!r}"
        _refuse(
            edit, todo.id, f"{edit.check_id} {found}, not {edit.from_cmd!r}", "decide anew from the plan"
        )
    _check_command(draft, edit, todo.id, edit.to_cmd)
    index = _test_index(todo, edit.check_id)
    if index is not None:
        yield _changed_test(todo, index, cmd=edit.to_cmd)
    elif edit.check_id == "test_file":
        yield _changed(todo, test_file=_file_of(edit, todo))
    elif edit.check_id in ("verify", "test_command"):
        yield _changed(todo, **{edit.check_id: edit.to_cmd})
    else:
        _refuse(edit, todo.id, f"{edit.check_id} comes from a recipe", "write the commands of the recipe")


def _split_todo(draft: Draft, edit: SplitTodo) -> Iterator[Change]:
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
        yield InsertTodo(place + offset, part)
    # What was added to its dependencies since the parts were made is kept.
    before = dict.fromkeys((*rest.dependencies, *todo.dependencies, *(part.id for part in parts)))
    rest = rest.model_copy(update={"dependencies": tuple(before)})
    _check_known(draft, edit, rest)
    _check_order(draft, edit, todo, rest.dependencies)
    yield ReplaceTodo(todo, rest)


def _quarantine(draft: Draft, edit: QuarantineTest) -> Iterator[Change]:
    _found(draft, edit, edit.todo_id)
    try:
        date.fromisoformat(edit.expires)
    except ValueError:
        _refuse(edit, edit.todo_id, f"'{edit.expires}' is no date of the calendar", "write YYYY-MM-DD")
    policy = draft.policy
    entries = policy.flaky_retry.quarantine
    for entry in entries:
        if entry.nodeid == edit.nodeid and entry.expires >= edit.expires:
            _refuse(
                edit, edit.todo_id, f"{edit.nodeid} is borne until {entry.expires}", "leave the edit out"
            )
    added = Quarantine(nodeid=edit.nodeid, owner=edit.owner, ticket=edit.ticket, expires=edit.expires)
    left = tuple(entry for entry in entries if entry.nodeid != edit.nodeid)
    retry = policy.flaky_retry.model_copy(update={"quarantine": (*left, added)})
    yield draft.replace_policy(policy.model_copy(update={"flaky_retry": retry}))


def _record_attempt(draft: Draft, edit: RecordAttempt) -> Iterator[Change]:
    todo = _found(draft, edit, edit.todo_id)
    held: Any = todo.extensions.get(MEMORY, {})
    if not isinstance(held, dict):
        _refuse(
            edit, todo.id, f"its {MEMORY} is no mapping", f"give your own key another name than {MEMORY}"
        )
    told = {"attempts": edit.attempts, "signature": edit.signature, "diff_hash": edit.diff_hash}
    memory = cast("dict[str, Any]", held) | {
        name: value for name, value in told.items() if value is not None
    }
    yield _changed(todo, extensions=todo.extensions | {MEMORY: memory})


_EFFECTS: dict[type[Any], Callable[[Draft, Any], Iterator[Change]]] = {
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
    RecordAttempt: _record_attempt,
}


def _found(draft: Draft, edit: Edit, todo_id: str) -> Todo:
    todo = draft.get(todo_id)
    if todo is None:
        _refuse(edit, todo_id, "there is no such todo", "name one of the plan, or add it first")
    return todo


def _check_new(draft: Draft, edit: Edit, todo: Todo) -> None:
    if draft.get(todo.id) is not None:
        _refuse(edit, todo.id, "the id is taken", "give the new todo another id")
    _check_known(draft, edit, todo)


def _check_known(draft: Draft, edit: Edit, todo: Todo) -> None:
    for dependency in todo.dependencies:
        if draft.get(dependency) is None:
            _refuse(edit, todo.id, f"it depends on '{dependency}', which is no todo", "add that one first")


def _check_order(draft: Draft, edit: Edit, waiting: Todo, before: Iterable[str]) -> None:
    """Whether a todo may wait for others: they must not wait for it."""
    # What it waits for already cannot wait for it, so that nothing needs to be searched.
    new = [name for name in before if name not in waiting.dependencies]
    if new and draft.reaches(new, waiting.id):
        _refuse(
            edit, waiting.id, "the dependencies would go in a circle", "name others that do not wait for it"
        )


def _check_command(draft: Draft, edit: Edit, todo_id: str, cmd: str) -> None:
    try:
        parse_command(cmd, draft.policy.tools)
    except CommandSyntaxError as error:
        _refuse(edit, todo_id, f"{cmd!r} cannot be run: {error.problem}", error.remedy)


def _check_keeps_convention(edit: Edit, todo: Todo) -> None:
    """A todo without criteria is tested by convention; a first criterion would put an end to that."""
    if wants_convention(todo):
        _refuse(edit, todo.id, "its tests are found by convention", "name them as criteria first")


def _changed(todo: Todo, **fields: Any) -> ReplaceTodo:
    return ReplaceTodo(todo, todo.model_copy(update=fields))


def _changed_test(todo: Todo, index: int, **fields: Any) -> ReplaceTodo:
    tests = list(todo.acceptance_criteria.tests)
    tests[index] = tests[index].model_copy(update=fields)
    return _changed(todo, acceptance_criteria=_with_tests(todo.acceptance_criteria, tuple(tests)))


def _with_tests(criteria: AcceptanceCriteria, tests: tuple[CommandSpec, ...]) -> AcceptanceCriteria:
    return criteria.model_copy(update={"tests": tests})


def _without(todo: Todo, names: Iterable[str], **fields: Any) -> Todo:
    """The todo with some fields as if they had never been set."""
    kept = {name: value for name, value in todo if name not in names} | fields
    return Todo.model_construct(_fields_set=(todo.model_fields_set - set(names)) | set(fields), **kept)


def _kept(name: str, specs: tuple[Any, ...], keeps: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(spec for index, spec in enumerate(specs) if f"{name}[{index}]" in keeps)


def _test_index(todo: Todo, check_id: str) -> int | None:
    count = len(todo.acceptance_criteria.tests)
    return next((index for index in range(count) if check_id == f"tests[{index}]"), None)


def _file_of(edit: RetargetCheck, todo: Todo) -> str:
    """The file that the new command of ``test_file`` runs."""
    run = parse_command(edit.to_cmd).pytest
    path = run.selections[0].removeprefix("./") if run and len(run.selections) == 1 else ""
    if not path or pytest_command(path).split() != edit.to_cmd.replace(" ./", " ").split():
        _refuse(
            edit, todo.id, f"{edit.to_cmd!r} is more than one file", "write 'pytest FILE' for a test_file"
        )
    return path


def _lost(todo: Todo, parts: Iterable[Todo]) -> Iterator[str]:
    """Criteria of a todo that none of its parts has."""
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
