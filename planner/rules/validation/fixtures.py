"""Fixture hints: which data file a criterion should name, and which is still to be made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.rules.validation.facts import Facts, Found, command_loc, listed, named_fixture
from planner.rules.validation.repeatable import MAX_TESTS, stem_of
from planner.text.glob_patterns import is_glob, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.plan import Todo
    from planner.rules.criteria import Criterion

_DATA_FOLDERS = frozenset({"fixtures", "fixture", "testdata", "test_data"})


def check(facts: Facts) -> Iterator[Found]:
    """Rules about fixtures that should be named."""
    for index, todo in facts.primaries:
        tests = [
            criterion
            for criterion in facts.criteria.get(todo.id, ())
            if criterion.command is not None and criterion.command.pytest is not None
        ]
        named = {plain(fixture) for each in tests if (fixture := named_fixture(each)) is not None}
        made = [path for path in _made(todo) if path not in named]
        hinted = False
        unknown: set[str] = set()
        for criterion in tests:
            if named_fixture(criterion) is not None:
                continue
            for found in _hints(facts, index, todo, criterion, made):
                hinted = True
                if found.message not in unknown:
                    yield found
                unknown.add(found.message)
        if made and tests and not hinted and not named:
            yield _unused(index, todo, tests[0], made)


def _hints(facts: Facts, index: int, todo: Todo, criterion: Criterion, made: list[str]) -> Iterator[Found]:
    assert criterion.command is not None
    selected = facts.selector.of(criterion.command)
    loc = command_loc(index, criterion.id)
    opened = dict.fromkeys(
        path
        for file, name in selected.tests[:MAX_TESTS]
        for path in facts.selector.opened(file, name)
        if not _is_product(todo, path)
    )
    if opened:
        first = next(iter(opened))
        yield Found(
            "fixture-hint",
            loc,
            todo.id,
            f"the test code opens {listed(list(opened), 3)}, but the criterion names no fixture",
            f"add fixture: {first}" + _each_its_own(list(opened)),
        )
    elif selected.missing_files and not selected.tests:
        suggested = made[0] if made else f"fixtures/{stem_of(selected.missing_files[0])}_cases.json"
        yield Found(
            "fixture-unknown",
            loc,
            todo.id,
            f"{selected.missing_files[0]} is not written yet and the criterion names no fixture, "
            "so nobody can tell whether it will be repeatable",
            f"add fixture: {suggested} (the inputs and the expected results), "
            "and have the test written against it",
        )


def _unused(index: int, todo: Todo, criterion: Criterion, made: list[str]) -> Found:
    return Found(
        "fixture-hint",
        command_loc(index, criterion.id),
        todo.id,
        f"'{todo.id}' makes {listed(made, 3)}, but none of its tests names that",
        f"add fixture: {made[0]} to the test that uses it",
    )


def _each_its_own(opened: list[str]) -> str:
    return (
        "" if len(opened) == 1 else "; a criterion names one fixture, so give each file its own criterion"
    )


def _made(todo: Todo) -> Iterator[str]:
    """The fixtures among what a todo makes."""
    for artifact in todo.acceptance_criteria.expected_artifacts:
        path = plain(artifact.path)
        if not is_glob(path) and not path.endswith(".py") and _DATA_FOLDERS & set(path.split("/")[:-1]):
            yield path


def _is_product(todo: Todo, path: str) -> bool:
    """Whether a file is what the todo is to make, and no data for its tests."""
    makes = {plain(artifact.path) for artifact in todo.acceptance_criteria.expected_artifacts}
    return path in makes and not _DATA_FOLDERS & set(path.split("/")[:-1])
