"""Rules about what judges a todo: there are tests, they run, and they give the same answer twice."""

from __future__ import annotations

import operator
import re
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from planner.catalog.tables import load_table
from planner.lint.facts import LintFinding, command_spec, criterion_loc
from planner.model.findings import PathKind
from planner.model.plan import MetricSpec, Operator, TodoStatus
from planner.model.verdicts import CheckKind
from planner.text.display import listed
from planner.text.glob_patterns import allowed, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.catalog import PytestInvocation
    from planner.lint.facts import LintFacts, Loc
    from planner.lint.selection import Selected
    from planner.model.plan import Todo
    from planner.policy.criteria import Criterion

_OPTIONS = {
    option: (row["rule"], row["what"])
    for row in load_table("pytest_options")["doubtful"]
    for option in row["options"].split()
}
"""Options of pytest with which a pass proves nothing, or each time something else."""

_IMPURE = {
    "unseeded-random": ("draws unseeded random values", "seed it"),
    "wall-clock": ("reads the wall clock", "pass the moment in, or freeze it"),
    "network-access": ("opens a network connection", "replace the connection by recorded answers"),
}
_HOLDS = dict(
    zip(
        Operator,
        (operator.ge, operator.gt, operator.le, operator.lt, operator.eq, operator.ne),
        strict=True,
    )
)
_DYNAMIC_METRIC = re.compile(r"(?:\.metric|record_(?:testsuite_)?property)\(\s*(?![\"'\s])")
_DEPENDENCY_FILES = ("pyproject.toml", "requirements.txt", "requirements-dev.txt", "setup.cfg", "setup.py")


def check(facts: LintFacts) -> Iterator[LintFinding]:
    """Yield what is wrong with the criteria of the todos."""
    unwritten: dict[str, tuple[str, str, Loc]] = {}
    for index, todo in facts.primaries:
        criteria = facts.criteria.get(todo.id, ())
        yield from _untested(index, todo, criteria)
        yield from _metrics(facts, index, todo, criteria)
        for criterion in criteria:
            if criterion.command is not None and criterion.command.pytest is not None:
                loc, command = criterion_loc(index, criterion.id), criterion.command.pytest
                yield from _missing(facts, todo, criterion, loc, unwritten)
                yield from _unsteady(facts, todo, criterion, command, loc)
                yield from _imports(facts, todo, command, loc)
    if unwritten:
        path, (todo_id, stem, loc) = next(iter(unwritten.items()))
        shown = listed([f"{path} ('{owner}')" for path, (owner, _, _) in unwritten.items()], 3)
        fix = (
            f"add {path} to the expected_artifacts of '{todo_id}', and its data to the test: "
            f"fixture: fixtures/{stem}_cases.json; likewise for the others"
        )
        yield LintFinding("tests-unwritten", loc, None, f"not written yet: {shown}", fix)


def _untested(index: int, todo: Todo, criteria: tuple[Criterion, ...]) -> Iterator[LintFinding]:
    tested = any(each.kind in (CheckKind.TEST, CheckKind.COMMAND) for each in criteria)
    if tested or not todo.requires_testing or todo.has_sub_plan:
        return
    at = ("items", index, "acceptance_criteria") if todo.acceptance_criteria else ("items", index)
    yield LintFinding("no-test", at, todo.id, f"'{todo.id}' has no test")


def _missing(
    facts: LintFacts, todo: Todo, criterion: Criterion, loc: Loc, unwritten: dict[str, tuple[str, str, Loc]]
) -> Iterator[LintFinding]:
    """Say which selected files and tests are missing; those that may be written go to ``unwritten``."""
    assert criterion.command is not None
    assert criterion.command.pytest is not None
    selected = facts.selector.of(criterion.command.pytest)
    for path in dict.fromkeys(selected.missing_files):
        if facts.is_made(todo, path) or facts.lies_above(path):
            continue
        if criterion.id == "convention":
            name = todo.id.replace("-", "_")
            message = (
                f"'{todo.id}' names no criteria, and no test was found for it; looked for "
                f"tests/test_{name}.py, the target test-{todo.id} of a Makefile, {name}_test.py and "
                f"test_{name}.py in any folder"
            )
            fix = f"write {path}, which is assumed, or name the test that shall judge: test_file: PATH"
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
                message = f"{path} does not exist, and no todo says that it writes it"
                fix = f"add {path} to the expected_artifacts of '{todo.id}' or of a todo before it"
                fix = f"did you mean {near}? else {fix}" if near else fix
                yield LintFinding("test-missing", loc, todo.id, message, fix)
    for path, name, near in selected.missing_tests:
        if not facts.is_made(todo, path):
            message = f"{path} holds no test '{name}'" if name else f"{path} holds no test"
            fix = f"write the test, or list {path} among the expected_artifacts of the todo that will"
            fix = f"did you mean {path}::{near}? else {fix}" if near else fix
            yield LintFinding("test-missing", loc, todo.id, message, fix)
    for problem in selected.broken:
        yield LintFinding("unreadable-test", loc, todo.id, problem)


def _unsteady(
    facts: LintFacts, todo: Todo, criterion: Criterion, command: PytestInvocation, loc: Loc
) -> Iterator[LintFinding]:
    """Say which options and calls make a command prove nothing, or something else each time."""
    for word in command.args:
        name = word.partition("=")[0]
        if name in _OPTIONS:
            rule, what = _OPTIONS[name]
            yield LintFinding(rule, loc, todo.id, f"{name} {what}", f"leave {name} out")
    spec = command_spec(criterion)
    if spec is None or spec.fixture is not None or "seed" in spec.cmd.lower():
        return
    for rule, places in facts.selector.of(command).impure.items():
        what, instead = _IMPURE[rule]
        message = f"the selected test code {what}: {listed(places, 3)}"
        fix = f"{instead}, or name the data: fixture: fixtures/{todo.id}_cases.json"
        yield LintFinding(rule, loc, todo.id, message, fix)


# -- metrics -------------------------------------------------------------------------------------------


def _metrics(
    facts: LintFacts, index: int, todo: Todo, criteria: tuple[Criterion, ...]
) -> Iterator[LintFinding]:
    by_name: dict[str, list[tuple[str, MetricSpec]]] = {}
    for criterion in criteria:
        if isinstance(criterion.spec, MetricSpec):
            by_name.setdefault(criterion.spec.name, []).append((criterion.id, criterion.spec))
    sources = _recording_sources(facts, criteria) if by_name else None
    for name, specs in by_name.items():
        bounds = [spec for _, spec in specs]
        if not satisfiable(bounds):
            pairs = (pair for pair in combinations(bounds, 2) if not satisfiable(list(pair)))
            contrary = next(pairs, bounds)
            said = " and ".join(f"{each.name} {each.operator} {each.value:g}" for each in contrary)
            loc = criterion_loc(index, specs[bounds.index(contrary[-1])][0])
            yield LintFinding("metric-unsatisfiable", loc, todo.id, f"no number satisfies {said}")
        if sources is not None and not any(name in text for text in sources.values()):
            at = criterion_loc(index, specs[0][0])
            message = f"the metric '{name}' is named nowhere in {listed(list(sources), 3)}"
            fix = f"record it in a test of '{todo.id}': record_property(\"{name}\", value)"
            yield LintFinding("metric-unrecorded", at, todo.id, message, fix)


def satisfiable(specs: list[MetricSpec]) -> bool:
    """Return whether one number satisfies all comparisons: a bound, one between two, or beyond all."""
    values = sorted({spec.value for spec in specs})
    between = [(low + high) / 2 for low, high in pairwise(values)]
    return any(
        all(_HOLDS[spec.operator](candidate, spec.value) for spec in specs)
        for candidate in (*values, *between, values[0] - 1, values[-1] + 1, 0.0)
    )


def _recording_sources(facts: LintFacts, criteria: tuple[Criterion, ...]) -> dict[str, str] | None:
    """Return the sources that may record metrics; ``None`` where not all of them can be read."""
    commands = (each.command.pytest for each in criteria if each.command is not None)
    selections: list[Selected] = [facts.selector.of(each) for each in commands if each is not None]
    wanted: dict[str, None] = {}
    for selected in selections:
        if not selected.certain or selected.missing_files or selected.missing_tests or selected.broken:
            return None
        for file in selected.files:
            wanted.update(dict.fromkeys((file, *facts.selector.conftests(file))))
            for name, _ in facts.selector.module(file).imports:
                wanted.update(dict.fromkeys(_module_places(facts, file, name)[0]))
    texts = {file: facts.project.text(file) for file in wanted}
    readable = {file: text for file, text in texts.items() if text is not None}
    dynamic = any(_DYNAMIC_METRIC.search(text) for text in readable.values())
    return readable if readable and len(readable) == len(wanted) and not dynamic else None


# -- imports -------------------------------------------------------------------------------------------


def _imports(facts: LintFacts, todo: Todo, command: PytestInvocation, loc: Loc) -> Iterator[LintFinding]:
    """A module of the project that a test needs is there, or somebody may write it."""
    if todo.allowed_files is None:
        return
    for file in facts.selector.of(command).files:
        for name, line in facts.selector.module(file).imports:
            places = _module_places(facts, file, name)[1]
            reach = (allowed(each, todo.allowed_files) or facts.is_made(todo, each) for each in places)
            if places and not any(reach):
                what = f"{places[0]} does not exist, and '{todo.id}' may not write it"
                message = f"{file}:{line} imports {name}: {what}"
                fix = f"add {places[0]} to its allowed_files, or to the artifacts of a todo before it"
                yield LintFinding("import-unreachable", loc, todo.id, message, fix)
                return


def _module_places(facts: LintFacts, file: str, name: str) -> tuple[list[str], list[str]]:
    """Return the files of a module of the project, and where it would be written if it does not exist.

    Both are empty for what is not the project's.
    """
    key = (file.rpartition("/")[0] or ".", name)
    if key not in facts.modules:
        facts.modules[key] = _find_module(facts, *key)
    return facts.modules[key]


def _find_module(facts: LintFacts, folder: str, name: str) -> tuple[list[str], list[str]]:
    project = facts.project
    top, *rest = name.split(".")
    starts = (".", "src", *facts.selector.settings.pythonpath, folder)
    bases = [f"{start}/{top}".removeprefix("./") for start in dict.fromkeys(map(plain, starts))]
    paths = ["/".join((base, *rest)) for base in bases]
    files = [each for path in paths for each in (f"{path}.py", f"{path}/__init__.py")]
    found = [each for each in files if project.kind(each) is PathKind.FILE]
    if (
        found
        or any(project.kind(path) is not PathKind.MISSING for path in paths)
        or project.is_installed(top)
    ):
        return found, []
    homes = [at for at, base in enumerate(bases) if project.kind(base) is PathKind.FOLDER]
    if homes:
        # An extension module or a stub is no file of Python, and yet there.
        there = any(project.glob_holds(f"{path}.*") for path in paths)
        return [], [] if there else files[2 * homes[0] : 2 * homes[0] + 2]
    # Nothing of that name is here: it is to be written, unless it is declared, or lies where settings say.
    word = re.compile(rf"(?<![\w.-]){re.escape(top).replace('_', '[-_]')}(?![\w-])", re.IGNORECASE)
    declared = any(word.search(project.text(each) or "") for each in _DEPENDENCY_FILES)
    elsewhere = any(f"/{top}." in f"/{each}" or f"/{top}/" in f"/{each}" for each in project.files(".")[0])
    return [], [] if declared or elsewhere else files[:2]
