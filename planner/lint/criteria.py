"""Rules about the criteria of todos: tests exist, can run, and give the same verdict each time."""

from __future__ import annotations

import operator
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from planner.catalog.tables import load_table
from planner.lint.facts import LintFinding, command_spec, criterion_loc
from planner.model.plan import MetricSpec, Operator, TodoStatus
from planner.model.verdicts import CheckKind
from planner.text.display import listed
from planner.text.glob_patterns import allowed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.catalog import PytestInvocation
    from planner.lint.facts import LintFacts, Loc
    from planner.model.plan import Todo
    from planner.policy.criteria import Criterion

_OPTIONS = {
    option: (row["rule"], row["what"])
    for row in load_table("pytest_options")["doubtful"]
    for option in row["options"].split()
}
"""Options of pytest with which a pass proves nothing or is not repeatable; rule and phrase by option."""

_IMPURE = {
    "unseeded-random": ("draws unseeded random values", "seed it"),
    "wall-clock": ("reads the wall clock", "pass the time in, or freeze it"),
    "network-access": ("opens a network connection", "replace the connection by recorded answers"),
}
_COMPARE = dict(
    zip(
        Operator,
        (operator.ge, operator.gt, operator.le, operator.lt, operator.eq, operator.ne),
        strict=True,
    )
)


def check(facts: LintFacts) -> Iterator[LintFinding]:
    """Yield findings about the criteria of all todos but branches, which borrow their criteria."""
    unwritten: dict[str, tuple[str, str, Loc]] = {}
    for index, todo in facts.primaries:
        criteria = facts.criteria.get(todo.id, ())
        yield from _untested(index, todo, criteria)
        yield from _metrics(index, todo, criteria)
        for criterion in criteria:
            if criterion.command is not None and criterion.command.pytest is not None:
                loc, command = criterion_loc(index, criterion.id), criterion.command.pytest
                yield from _missing(facts, todo, criterion, loc, unwritten)
                yield from _unrepeatable(facts, todo, criterion, command, loc)
    # Missing tests of open todos are normal in a new plan, so they share one finding.
    if unwritten:
        path, (todo_id, stem, loc) = next(iter(unwritten.items()))
        shown = listed([f"{path} ('{owner}')" for path, (owner, _, _) in unwritten.items()], 3)
        fix = (
            f"add {path} to the expected_artifacts of '{todo_id}', and its data to the test: "
            f"fixture: fixtures/{stem}_cases.json; likewise for the others"
        )
        yield LintFinding("tests-unwritten", loc, None, f"not written yet: {shown}", fix)


def _untested(index: int, todo: Todo, criteria: tuple[Criterion, ...]) -> Iterator[LintFinding]:
    """Yield a finding for a todo that requires testing but has no test and no command."""
    tested = any(each.kind in (CheckKind.TEST, CheckKind.COMMAND) for each in criteria)
    if tested or not todo.requires_testing or todo.has_sub_plan:
        return
    at = ("items", index, "acceptance_criteria") if todo.acceptance_criteria else ("items", index)
    yield LintFinding("no-test", at, todo.id, f"'{todo.id}' has no test")


def _missing(
    facts: LintFacts, todo: Todo, criterion: Criterion, loc: Loc, unwritten: dict[str, tuple[str, str, Loc]]
) -> Iterator[LintFinding]:
    """Yield findings about selected files and tests that are missing or cannot be parsed.

    Missing files that an open todo may create itself are added to ``unwritten`` instead: by path, the id
    of the todo, the stem of the file's name and the location in the plan.
    """
    assert criterion.command is not None
    assert criterion.command.pytest is not None
    selected = facts.selector.of(criterion.command.pytest)
    for path in dict.fromkeys(selected.missing_files):
        if facts.is_made(todo, path):
            continue
        if criterion.id == "convention":
            name = todo.id.replace("-", "_")
            message = (
                f"'{todo.id}' names no criteria, and no test was found; searched for "
                f"tests/test_{name}.py, the target test-{todo.id} of a Makefile, {name}_test.py and "
                f"test_{name}.py in any folder"
            )
            fix = f"write {path}, which is assumed, or name the test to run: test_file: PATH"
            yield LintFinding("test-assumed", loc, todo.id, message, fix)
        elif facts.makers_of(path):
            yield facts.unawaited(todo, path, loc)
        else:
            near = facts.project.near(path)
            may = todo.allowed_files is None or allowed(path, todo.allowed_files)
            if near is None and may and todo.status is TodoStatus.OPEN:
                name = path.rpartition("/")[2].removesuffix(".py")
                stem = name.removeprefix("test_").removesuffix("_test") or name
                unwritten.setdefault(path, (todo.id, stem, loc))
            else:
                message = f"{path} does not exist, and no todo is to write it"
                fix = f"add {path} to the expected_artifacts of '{todo.id}' or of a todo before it"
                fix = f"did you mean {near}? else {fix}" if near else fix
                yield LintFinding("test-missing", loc, todo.id, message, fix)
    for path, name, near in selected.missing_tests:
        if not facts.is_made(todo, path):
            message = f"{path} contains no test '{name}'" if name else f"{path} contains no test"
            fix = f"write the test, or list {path} among the expected_artifacts of the todo that will"
            fix = f"did you mean {path}::{near}? else {fix}" if near else fix
            yield LintFinding("test-missing", loc, todo.id, message, fix)
    for problem in selected.broken:
        yield LintFinding("unreadable-test", loc, todo.id, problem)


def _unrepeatable(
    facts: LintFacts, todo: Todo, criterion: Criterion, command: PytestInvocation, loc: Loc
) -> Iterator[LintFinding]:
    """Yield findings about options and calls by which a pass proves nothing or is not repeatable.

    Calls are accepted if the criterion names its data, or a seed in its command.
    """
    for word in command.args:
        name = word.partition("=")[0]
        if name in _OPTIONS:
            rule, what = _OPTIONS[name]
            yield LintFinding(rule, loc, todo.id, f"{name} {what}", f"remove {name}")
    spec = command_spec(criterion)
    if spec is None or spec.fixture is not None or "seed" in spec.cmd.lower():
        return
    for rule, places in facts.selector.of(command).impure.items():
        what, instead = _IMPURE[rule]
        message = f"the selected test code {what}: {listed(places, 3)}"
        fix = f"{instead}, or name the data: fixture: fixtures/{todo.id}_cases.json"
        yield LintFinding(rule, loc, todo.id, message, fix)


# -- metrics -------------------------------------------------------------------------------------------


def _metrics(index: int, todo: Todo, criteria: tuple[Criterion, ...]) -> Iterator[LintFinding]:
    """Yield a finding for each metric whose bounds contradict each other."""
    by_name: dict[str, list[tuple[str, MetricSpec]]] = {}
    for criterion in criteria:
        if isinstance(criterion.spec, MetricSpec):
            by_name.setdefault(criterion.spec.name, []).append((criterion.id, criterion.spec))
    for specs in by_name.values():
        bounds = [spec for _, spec in specs]
        if not satisfiable(bounds):
            pairs = (pair for pair in combinations(bounds, 2) if not satisfiable(list(pair)))
            contradiction = next(pairs, bounds)
            bounds_text = " and ".join(
                f"{each.name} {each.operator} {each.value:g}" for each in contradiction
            )
            loc = criterion_loc(index, specs[bounds.index(contradiction[-1])][0])
            yield LintFinding("metric-unsatisfiable", loc, todo.id, f"no number satisfies {bounds_text}")


def satisfiable(specs: list[MetricSpec]) -> bool:
    """Return whether one number satisfies all comparisons.

    It suffices to try each bound, a number between each two neighbours, and one beyond either end.
    """
    values = sorted({spec.value for spec in specs})
    between = [(low + high) / 2 for low, high in pairwise(values)]
    return any(
        all(_COMPARE[spec.operator](candidate, spec.value) for spec in specs)
        for candidate in (*values, *between, values[0] - 1, values[-1] + 1, 0.0)
    )
