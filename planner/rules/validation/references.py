"""Contracts, fixtures and schemas that a plan names exist, can be read, or are made in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from planner.model.plan import ArtifactSpec
from planner.model.taxonomy import Role
from planner.rules.validation.facts import Facts, Found, command_loc, is_branch, named_fixture
from planner.rules.validation.having_tests import makers_of
from planner.rules.validation.project import Kind
from planner.text.glob_patterns import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planner.model.plan import Todo
    from planner.rules.validation.facts import Loc
    from planner.rules.validation.project import Checked


class _Reference(NamedTuple):
    """What a todo names: one kind of file."""

    noun: str
    rule: str
    path: str
    loc: Loc


def check(facts: Facts) -> Iterator[Found]:
    """Rules about files that a plan names."""
    for index, todo in facts.todos:
        if is_branch(todo):
            continue
        seen: set[str] = set()
        for reference in _references(facts, index, todo):
            path = plain(reference.path)
            kind = facts.project.kind(path)
            if kind is Kind.FILE:
                yield from _content(facts, todo, reference, path)
            elif path not in seen:
                seen.add(path)
                yield from _missing(facts, todo, reference, path, kind)


def _references(facts: Facts, index: int, todo: Todo) -> Iterator[_Reference]:
    if todo.contract_path is not None:
        yield _Reference(
            "contract", "contract-missing", todo.contract_path, ("items", index, "contract_path")
        )
    for criterion in facts.criteria.get(todo.id, ()):
        loc = command_loc(index, criterion.id)
        fixture = named_fixture(criterion)
        if fixture is not None:
            yield _Reference("fixture", "fixture-missing", fixture, (*loc[:-1], "fixture"))
        spec = criterion.spec
        if isinstance(spec, ArtifactSpec) and spec.json_schema is not None:
            yield _Reference("schema", "schema-missing", spec.json_schema, (*loc[:-1], "json_schema"))


def _missing(facts: Facts, todo: Todo, reference: _Reference, path: str, kind: Kind) -> Iterator[Found]:
    noun = reference.noun
    makers = makers_of(facts, path)
    if any(_comes_first(facts, todo, maker) for maker in makers):
        return
    if makers:
        yield Found(
            "dependency-missing",
            reference.loc,
            todo.id,
            f"the {noun} {path} does not exist; '{makers[0]}' makes it, "
            f"but '{todo.id}' does not depend on that",
            f"add '{makers[0]}' to the dependencies of '{todo.id}'",
        )
        return
    what = "is a folder" if kind is Kind.FOLDER else "does not exist"
    near = facts.project.near(path)
    guess = f"did you mean {near}? else " if near else ""
    yield Found(
        reference.rule,
        reference.loc,
        todo.id,
        f"the {noun} {path} {what}, and no todo says that it makes it",
        guess + _who_makes_it(facts, todo, noun, path),
    )


def _comes_first(facts: Facts, todo: Todo, maker: str) -> bool:
    """Whether a file that ``maker`` makes is there when the todo needs it. The steps of a repair are: the
    todo under repair waits for its branch, and the branch for the step.
    """
    if maker == todo.id or facts.ancestry.waits_for(todo.id, maker):
        return True
    other = facts.by_id.get(maker)
    return other is not None and is_branch(other)


def _who_makes_it(facts: Facts, todo: Todo, noun: str, path: str) -> str:
    if noun != "contract":
        places = f"of '{todo.id}' or of a todo before it"
        return f"add the file, or list {path} among the expected_artifacts {places}"
    for dependency in todo.dependencies:
        other = facts.by_id.get(dependency)
        if other is not None and other.agent_role is Role.ARCHITECT:
            return f"list {path} among the expected_artifacts of the architect's '{other.id}'"
    return f"add an architect's todo before '{todo.id}' with {path} among its expected_artifacts"


def _content(facts: Facts, todo: Todo, reference: _Reference, path: str) -> Iterator[Found]:
    readers: dict[str, Callable[[str], Checked]] = {
        "contract": facts.project.contract,
        "schema": facts.project.json_schema,
    }
    reader = readers.get(reference.noun)
    if reader is None:
        return
    checked = reader(path)
    if checked.problem is not None:
        yield Found(
            f"{reference.noun}-invalid",
            reference.loc,
            todo.id,
            f"the {reference.noun} {path} cannot be used: {checked.problem}",
            f"mend {path}",
        )
    elif checked.is_empty:
        yield Found(
            "contract-empty",
            reference.loc,
            todo.id,
            f"the contract {path} promises nothing",
            f"add to {path} the functions, classes or schemas that '{todo.id}' owes",
        )
