"""Every todo is judged by tests: it names some, and they exist or somebody writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.verdicts import CheckKind
from planner.rules.validation.facts import Facts, Found, command_loc, is_branch, listed
from planner.rules.validation.project import Kind
from planner.text.glob_patterns import is_glob, matches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.plan import Todo
    from planner.rules.criteria import Criterion

_JUDGES = {
    CheckKind.ARTIFACT: "files",
    CheckKind.METRIC: "metrics",
    CheckKind.CONTRACT: "a contract",
    CheckKind.MANUAL: "people",
}
_COMMANDS = (CheckKind.TEST, CheckKind.COMMAND)


def check(facts: Facts) -> Iterator[Found]:
    """Rules about there being tests."""
    for index, todo in facts.todos:
        criteria = facts.criteria.get(todo.id, ())
        if not any(criterion.kind in _COMMANDS for criterion in criteria):
            yield from _untested(index, todo, criteria)
        for criterion in criteria:
            if criterion.id == "convention":
                yield from _assumed(facts, index, todo, criterion)
            elif criterion.command is not None and criterion.command.pytest is not None:
                yield from _selected(facts, index, todo, criterion)


def _untested(index: int, todo: Todo, criteria: tuple[Criterion, ...]) -> Iterator[Found]:
    if not todo.requires_testing or todo.has_sub_plan or is_branch(todo):
        return
    kinds = dict.fromkeys(_JUDGES[criterion.kind] for criterion in criteria)
    yield Found(
        "no-test",
        ("items", index, "acceptance_criteria") if todo.acceptance_criteria else ("items", index),
        todo.id,
        f"'{todo.id}' is judged by {listed(list(kinds))} only, by no test",
        f"add a test under acceptance_criteria.tests, such as 'pytest {_file_for(todo)}', "
        "or set requires_testing: false if there is nothing to test",
    )


def _assumed(facts: Facts, index: int, todo: Todo, criterion: Criterion) -> Iterator[Found]:
    command = criterion.command
    if command is None or command.pytest is None:
        return
    path = command.pytest.selections[0]
    if facts.project.kind(path) is not Kind.MISSING:
        yield from _selected(facts, index, todo, criterion)
        return
    if is_made_later(facts, todo, path):
        return
    places = facts.project.convention_places(todo)
    yield Found(
        "test-assumed",
        ("items", index),
        todo.id,
        f"'{todo.id}' names no criteria, and no test was found for it; looked for {listed(places, 8)}",
        f"write {path}, which is assumed, or name the test that shall judge: test_file: PATH",
    )


def _selected(facts: Facts, index: int, todo: Todo, criterion: Criterion) -> Iterator[Found]:
    assert criterion.command is not None
    selected = facts.selector.of(criterion.command)
    loc = command_loc(index, criterion.id)
    for path in dict.fromkeys(selected.missing_files):
        yield from _missing_file(facts, todo, loc, path)
    for path, name, near in selected.missing_tests:
        if is_made_later(facts, todo, path):
            continue
        guess = f"did you mean {path}::{near}? else " if near else ""
        yield Found(
            "test-missing",
            loc,
            todo.id,
            f"{path} holds no test '{name}'",
            f"{guess}write the test, or list {path} among the expected_artifacts of the todo that will",
        )
    for path, problem, left_alone in selected.unreadable:
        rule = "test-not-examined" if left_alone else "unreadable-test"
        line = facts.project.module(path).line
        at = f"{path}:{line}" if line else path
        fix = "split the file" if left_alone else f"mend {path}, so that pytest can collect it"
        yield Found(rule, loc, todo.id, f"{at} is selected, but {problem}", fix)


def _missing_file(facts: Facts, todo: Todo, loc: tuple[str | int, ...], path: str) -> Iterator[Found]:
    makers = makers_of(facts, path)
    if any(maker == todo.id or facts.ancestry.waits_for(todo.id, maker) for maker in makers):
        return
    if is_branch(todo) and todo.parent_id in makers:
        return
    if makers:
        yield Found(
            "dependency-missing",
            loc,
            todo.id,
            f"{path} does not exist; '{makers[0]}' makes it, but '{todo.id}' does not depend on that",
            f"add '{makers[0]}' to the dependencies of '{todo.id}'",
        )
        return
    near = facts.project.near(path)
    guess = f"did you mean {near}? else " if near else ""
    yield Found(
        "test-file-missing",
        loc,
        todo.id,
        f"{path} does not exist, and no todo says that it writes it",
        f"{guess}add {path} to the expected_artifacts of '{todo.id}' or of a tester's todo before it",
    )


def makers_of(facts: Facts, path: str) -> tuple[str, ...]:
    """The todos that make a file, or a file of that folder."""
    direct = facts.makers.get(path, ())
    if direct:
        return direct
    below = () if path.endswith(".py") else facts.makers_below(path)
    return below or tuple(owner for pattern, owner in facts.glob_makers if matches(path, pattern))


def is_made_later(facts: Facts, todo: Todo, path: str) -> bool:
    """Whether the todo itself, or one that it waits for, makes a file."""
    return any(
        maker == todo.id or facts.ancestry.waits_for(todo.id, maker) for maker in makers_of(facts, path)
    )


def _file_for(todo: Todo) -> str:
    for artifact in todo.acceptance_criteria.expected_artifacts:
        name = artifact.path.rpartition("/")[2]
        if name.endswith(".py") and not is_glob(name):
            return f"tests/test_{name}"
    return f"tests/test_{todo.id.replace('-', '_')}.py"
