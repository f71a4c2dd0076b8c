"""Rules about what judges a todo: there are tests, they can fail, and they give the same answer twice."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from planner.lint.facts import Finding, command_spec, criterion_loc, listed
from planner.lint.project import Kind
from planner.lint.sources import make_targets, npm_scripts
from planner.model.plan import ArtifactSpec, MetricSpec, TodoStatus
from planner.model.verdicts import CheckKind
from planner.text.glob_patterns import allowed, is_glob, plain

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from planner.catalog import Command
    from planner.lint.facts import Facts, Loc
    from planner.lint.selection import Selected
    from planner.model.plan import Todo
    from planner.policy.criteria import Criterion

_JUDGES = {
    CheckKind.ARTIFACT: "files",
    CheckKind.METRIC: "metrics",
    CheckKind.CONTRACT: "a contract",
    CheckKind.MANUAL: "people",
}
_RUNS_NOTHING = {
    option: what
    for options, what in (
        ("--collect-only --collectonly --co --setup-plan --setupplan", "only lists tests"),
        ("--version -V --help -h --markers --fixtures --fixtures-per-test --cache-show", "runs no test"),
        ("--setup-only --setuponly", "only sets fixtures up"),
        ("--suppress-no-test-exit-code", "succeeds without a single test"),
    )
    for option in options.split()
}
_LAST_RUN = (
    "--lf --last-failed --ff --failed-first --nf --new-first --sw --stepwise --sw-skip --stepwise-skip"
)
_SHOWS_ONLY = "-q -qq -v -vv -vvv -x -l -ra -rA --quiet --verbose --json-report --no-header --no-summary"
_IMPURE = {
    "chance": ("unseeded-random", "draws unseeded random values", "seed it"),
    "clock": ("wall-clock", "reads the wall clock", "pass the moment in, or freeze it"),
    "network": (
        "network-access",
        "opens a network connection",
        "replace the connection by recorded answers",
    ),
}
_DATA_FOLDERS = frozenset({"fixtures", "fixture", "testdata", "test_data"})
_DYNAMIC_METRIC = re.compile(r"(?:\.metric|record_(?:testsuite_)?property)\(\s*(?![\"'\s])")
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_DEPENDENCY_FILES = ("pyproject.toml", "requirements.txt", "requirements-dev.txt", "setup.cfg", "setup.py")


def check(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong with the criteria of the todos."""
    unwritten: dict[str, tuple[str, str, Loc]] = {}
    for index, todo in facts.primaries:
        criteria = facts.criteria.get(todo.id, ())
        yield from _untested(index, todo, criteria)
        yield from _repeated(index, todo, criteria)
        yield from _metrics(facts, index, todo, criteria)
        yield from _unused_data(index, todo, criteria)
        for criterion in criteria:
            loc = criterion_loc(index, criterion.id)
            if criterion.command is not None and criterion.command.pytest is not None:
                yield from _missing(facts, todo, criterion, loc, unwritten)
                yield from _hollow(facts, todo, criterion.command, loc)
                yield from _impure(facts, todo, criterion, loc)
                yield from _imports(facts, todo, criterion.command, loc)
            elif criterion.command is not None:
                yield from _other_command(facts, todo, criterion.command, loc)
    if unwritten:
        path, (todo_id, stem, loc) = next(iter(unwritten.items()))
        shown = listed([f"{path} ('{owner}')" for path, (owner, _, _) in unwritten.items()], 3)
        message = f"not written yet: {shown}"
        fix = (
            f"add {path} to the expected_artifacts of '{todo_id}', and its data to the test: "
            f"fixture: fixtures/{stem}_cases.json; likewise for the others"
        )
        yield Finding("tests-unwritten", loc, None, message, fix)


def _untested(index: int, todo: Todo, criteria: tuple[Criterion, ...]) -> Iterator[Finding]:
    tested = any(each.kind in (CheckKind.TEST, CheckKind.COMMAND) for each in criteria)
    if tested or not todo.requires_testing or todo.has_sub_plan:
        return
    made = (each.path.rpartition("/")[2] for each in todo.acceptance_criteria.expected_artifacts)
    name = next((each for each in made if each.endswith(".py") and not is_glob(each)), "")
    file = f"tests/test_{name or todo.id.replace('-', '_') + '.py'}"
    at = ("items", index, "acceptance_criteria") if todo.acceptance_criteria else ("items", index)
    message = (
        f"'{todo.id}' is judged by {listed(list(dict.fromkeys(_JUDGES[each.kind] for each in criteria)))} "
        "only, by no test"
    )
    fix = f"add a test under acceptance_criteria.tests, such as 'pytest {file}', or requires_testing: false"
    yield Finding("no-test", at, todo.id, message, fix)


def _missing(
    facts: Facts, todo: Todo, criterion: Criterion, loc: Loc, unwritten: dict[str, tuple[str, str, Loc]]
) -> Iterator[Finding]:
    """Say which selected files and tests are missing; those that may be written go to ``unwritten``."""
    assert criterion.command is not None
    assert criterion.command.pytest is not None
    selected = facts.selector.of(criterion.command.pytest)
    for path in dict.fromkeys(selected.missing_files):
        makers = facts.makers_of(path)
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
            yield Finding("test-assumed", loc, todo.id, message, fix)
        elif makers:
            message = (
                f"{path} does not exist; '{makers[0]}' makes it, but '{todo.id}' does not depend on that"
            )
            fix = f"add '{makers[0]}' to the dependencies of '{todo.id}'"
            yield Finding("dependency-missing", loc, todo.id, message, fix)
        else:
            near = facts.project.near(path)
            may = todo.allowed_files is None or allowed(path, todo.allowed_files)
            if near is None and may and todo.status is TodoStatus.OPEN:
                name = path.rpartition("/")[2].removesuffix(".py")
                stem = name.removeprefix("test_").removesuffix("_test") or name
                unwritten.setdefault(path, (todo.id, stem, loc))
            else:
                message = f"{path} does not exist, and no todo says that it writes it"
                fix = (
                    f"did you mean {near}? else " if near else ""
                ) + f"add {path} to the expected_artifacts of '{todo.id}' or of a todo before it"
                yield Finding("test-missing", loc, todo.id, message, fix)
    for path, name, near in selected.missing_tests:
        if not facts.is_made(todo, path):
            message = f"{path} holds no test '{name}'"
            fix = (
                f"did you mean {path}::{near}? else " if near else ""
            ) + f"write the test, or list {path} among the expected_artifacts of the todo that will"
            yield Finding("test-missing", loc, todo.id, message, fix)
    for problem in selected.broken:
        yield Finding("unreadable-test", loc, todo.id, problem)


def _hollow(facts: Facts, todo: Todo, command: Command, loc: Loc) -> Iterator[Finding]:
    assert command.pytest is not None
    for word in command.pytest.args:
        name = word.partition("=")[0]
        if name in _RUNS_NOTHING:
            yield Finding(
                "command-hollow", loc, todo.id, f"{name} {_RUNS_NOTHING[name]}", f"leave {name} out"
            )
            return
        if name in _LAST_RUN.split():
            message = f"{word} lets the last run decide which tests are run, and when"
            yield Finding("depends-on-last-run", loc, todo.id, message, f"leave {word} out")
    selected = facts.selector.of(command.pytest)
    empty = [path for path in selected.empty if not facts.is_made(todo, path)]
    if empty and not selected.tests:
        yield Finding("nothing-selected", loc, todo.id, f"{listed(empty)} holds no tests")
    elif selected.tests and selected.sound:
        broken = facts.once(("worth", id(selected)), lambda: _worth(selected))
        if broken is not None:
            yield Finding(broken[0], loc, todo.id, broken[1])


def _worth(selected: Selected) -> tuple[str, str] | None:
    """Return the rule that a selection breaks because no test of it can fail by what the product does."""
    live = [
        (f"{file}:{test.line} {name}", test)
        for (file, name), test in selected.tests.items()
        if not test.skipped
    ]
    if not live:
        names = listed([f"{file}::{name}" for file, name in selected.tests], 3)
        return "tests-skipped", f"every selected test is skipped, or expected to fail: {names}"
    if all(test.vacuous for _, test in live):
        shown = listed([f"{place} ({test.vacuous})" for place, test in live], 3)
        return "criterion-hollow", f"no selected test proves anything: {shown}"
    if not any(test.asserts for _, test in live):
        return (
            "no-assertion",
            f"no selected test asserts anything: {listed([place for place, _ in live], 3)}",
        )
    return None


def _impure(facts: Facts, todo: Todo, criterion: Criterion, loc: Loc) -> Iterator[Finding]:
    spec = command_spec(criterion)
    assert criterion.command is not None
    assert criterion.command.pytest is not None
    if spec is None or spec.fixture is not None or "seed" in criterion.command.text.lower():
        return
    selected = facts.selector.of(criterion.command.pytest)
    for kind, places in facts.once(
        ("impure", id(selected)), lambda: _impure_calls(facts, selected)
    ).items():
        rule, what, fix = _IMPURE[kind]
        message = f"the selected test code {what}: {listed(list(places), 3)}"
        fix = f"{fix}, or name the data: fixture: fixtures/{todo.id}_cases.json"
        yield Finding(rule, loc, todo.id, message, fix)


def _impure_calls(facts: Facts, selected: Selected) -> dict[str, dict[str, None]]:
    """Return by kind the places that are not repeatable, in modules that keep nothing out."""
    found: dict[str, dict[str, None]] = {}
    for (file, _), test in selected.tests.items():
        around = (file, *facts.selector.conftests(file)) if test.impure else ()
        if not any(facts.selector.module(each).guarded for each in around):
            for kind, name, line in test.impure:
                found.setdefault(kind, {})[f"{file}:{line} {name}()"] = None
    return found


def _unused_data(index: int, todo: Todo, criteria: tuple[Criterion, ...]) -> Iterator[Finding]:
    """A data file that a todo makes for its tests should be named by one of them."""
    commands = [each for each in criteria if each.command is not None and each.command.pytest is not None]
    specs = [spec for each in commands if (spec := command_spec(each)) is not None]
    made = [
        path
        for each in todo.acceptance_criteria.expected_artifacts
        if not is_glob(path := plain(each.path))
        and not path.endswith(".py")
        and _DATA_FOLDERS.intersection(path.split("/")[:-1])
    ]
    if made and specs and all(spec.fixture is None for spec in specs):
        at = criterion_loc(index, commands[0].id)
        message = f"'{todo.id}' makes {listed(made, 3)}, but none of its tests names that"
        fix = f"add fixture: {made[0]} to the test that uses it"
        yield Finding("fixture-hint", at, todo.id, message, fix)


def _repeated(index: int, todo: Todo, criteria: tuple[Criterion, ...]) -> Iterator[Finding]:
    seen: dict[Hashable, str] = {}
    for criterion in criteria:
        key: Hashable = criterion.id
        if criterion.command is not None:
            words = tuple(word for word in criterion.command.argv if word not in _SHOWS_ONLY.split())
            key = (criterion.command.env, words, getattr(criterion.spec, "fixture", None))
        elif isinstance(criterion.spec, ArtifactSpec):
            key = plain(criterion.spec.path)
        elif isinstance(criterion.spec, MetricSpec):
            key = (criterion.spec.name, criterion.spec.operator, criterion.spec.value)
        first = seen.setdefault(key, criterion.id)
        if first != criterion.id:
            loc = criterion_loc(index, criterion.id)
            message = f"{criterion.id} of '{todo.id}' is the same check as {first}"
            yield Finding("criterion-repeated", loc, todo.id, message)


# -- other commands ------------------------------------------------------------------------------------


def _other_command(facts: Facts, todo: Todo, command: Command, loc: Loc) -> Iterator[Finding]:
    words = [word for word in command.argv[1:] if not word.startswith("-")]
    options = len(words) < len(command.argv) - 1
    if command.tool.name == "python":
        path = next((word for word in words if word.endswith(".py")), None)
        if path is not None and "-m" not in command.argv and not facts.is_made(todo, path):
            yield from _script(facts, todo, path, loc)
    elif command.tool.name == "make" and not options:
        file = next((each for each in _MAKEFILES if facts.project.kind(each) is Kind.FILE), None)
        targets = make_targets(facts.project.text(file) or "include") if file else None
        wanted = [word for word in words if "=" not in word] or list(targets or ())[:1]
        for target in wanted:
            if facts.project.kind(target) is Kind.MISSING or target in (targets or ()):
                yield from _target(todo, "target", "Makefile", target, targets, loc)
    elif command.tool.name in ("npm", "pnpm", "yarn") and words and not options:
        scripts = npm_scripts(facts.project.text("package.json") or "")
        runs = words[0] in ("run", "run-script")
        name = (words[1] if len(words) > 1 else None) if runs else "test"
        if name is not None:
            yield from _target(todo, "script", "package.json", name, scripts, loc)


def _script(facts: Facts, todo: Todo, path: str, loc: Loc) -> Iterator[Finding]:
    if facts.project.kind(path) is Kind.MISSING and not facts.lies_above(path):
        near = facts.project.near(path)
        message = f"the script {path} does not exist, and no todo says that it writes it"
        fix = (
            f"did you mean {near}? else " if near else ""
        ) + f"add {path} to the expected_artifacts of '{todo.id}' or of a todo before it"
        yield Finding("target-missing", loc, todo.id, message, fix)


def _target(
    todo: Todo, noun: str, file: str, name: str, known: Mapping[str, bool] | None, loc: Loc
) -> Iterator[Finding]:
    if known is None:
        return
    if name not in known:
        there = f"name one that is there: {listed(list(known))}" if known else "name a test instead"
        message = f"the {file} has no {noun} '{name}'"
        yield Finding("target-missing", loc, todo.id, message, f"add the {noun}, or {there}")
    elif known[name]:
        message = f"the {noun} '{name}' of the {file} does nothing"
        yield Finding("command-hollow", loc, todo.id, message, f"let the {noun} '{name}' test the work")


# -- metrics -------------------------------------------------------------------------------------------


def _metrics(facts: Facts, index: int, todo: Todo, criteria: tuple[Criterion, ...]) -> Iterator[Finding]:
    by_name: dict[str, list[tuple[str, MetricSpec]]] = {}
    for criterion in criteria:
        if isinstance(criterion.spec, MetricSpec):
            by_name.setdefault(criterion.spec.name, []).append((criterion.id, criterion.spec))
    sources = _sources_of(facts, criteria) if by_name else None
    files = tuple(sources or ())
    for name, specs in by_name.items():
        bounds = [spec for _, spec in specs]
        if not satisfiable(bounds):
            pairs = ([one, other] for at, one in enumerate(bounds) for other in bounds[at + 1 :])
            contrary = next((pair for pair in pairs if not satisfiable(pair)), bounds)
            said = " and ".join(f"{each.name} {each.operator} {each.value:g}" for each in contrary)
            loc = criterion_loc(index, specs[bounds.index(contrary[-1])][0])
            yield Finding("metric-unsatisfiable", loc, todo.id, f"no number satisfies {said}")
        if sources is not None and not facts.once(
            ("metric", name, files), lambda name=name: any(name in text for text in sources.values())
        ):
            at = criterion_loc(index, specs[0][0])
            message = f"the metric '{name}' is named nowhere in {listed(list(sources), 3)}"
            fix = f"record it in a test of '{todo.id}': record_property(\"{name}\", value)"
            yield Finding("metric-unrecorded", at, todo.id, message, fix)


def satisfiable(specs: list[MetricSpec]) -> bool:
    """Return whether one number satisfies all comparisons: a bound, one between two, or beyond all."""
    values = sorted({spec.value for spec in specs})
    between = [(low + high) / 2 for low, high in pairwise(values)]
    return any(
        all(_holds(spec, candidate) for spec in specs)
        for candidate in (*values, *between, values[0] - 1, values[-1] + 1, 0.0)
    )


def _holds(spec: MetricSpec, value: float) -> bool:
    return {
        ">=": value >= spec.value,
        ">": value > spec.value,
        "<=": value <= spec.value,
        "<": value < spec.value,
        "==": value == spec.value,
        "!=": value != spec.value,
    }[spec.operator.value]


def _sources_of(facts: Facts, criteria: tuple[Criterion, ...]) -> dict[str, str] | None:
    """Return the sources that may record metrics; ``None`` where not all of them can be read."""
    commands = (each.command.pytest for each in criteria if each.command is not None)
    selections = [facts.selector.of(command) for command in commands if command is not None]
    if not all(selected.sound for selected in selections):
        return None
    files = tuple(sorted({file for selected in selections for file in selected.files}))
    return facts.once(("sources", files), lambda: _recording_sources(facts, files))


def _recording_sources(facts: Facts, files: tuple[str, ...]) -> dict[str, str] | None:
    wanted = dict.fromkeys(files)
    for file in files:
        wanted.update(dict.fromkeys(facts.selector.conftests(file)))
        for name, _ in facts.selector.module(file).imports:
            wanted.update(dict.fromkeys(_module_places(facts, file, name)[0]))
    texts = [(file, facts.project.text(file)) for file in wanted]
    readable = {file: text for file, text in texts if text is not None}
    dynamic = any(_DYNAMIC_METRIC.search(text) for text in readable.values())
    return readable if readable and len(readable) == len(wanted) and not dynamic else None


# -- imports -------------------------------------------------------------------------------------------


def _imports(facts: Facts, todo: Todo, command: Command, loc: Loc) -> Iterator[Finding]:
    """A module of the project that a test needs is there, or somebody may write it."""
    assert command.pytest is not None
    if todo.allowed_files is None:
        return
    for file in facts.selector.of(command.pytest).files:
        for name, line, places in facts.once(("imports", file), lambda file=file: _lacking(facts, file)):
            if not any(allowed(each, todo.allowed_files) or facts.is_made(todo, each) for each in places):
                what = f"{places[0]} does not exist, and '{todo.id}' may not write it"
                message = f"{file}:{line} imports {name}: {what}"
                fix = f"add {places[0]} to its allowed_files, or to the artifacts of a todo before it"
                yield Finding("import-unreachable", loc, todo.id, message, fix)
                return


def _lacking(facts: Facts, file: str) -> list[tuple[str, int, list[str]]]:
    """Return the modules of the project that a test file imports and that do not exist yet."""
    imports = [
        (name, line, _module_places(facts, file, name)[1])
        for name, line in facts.selector.module(file).imports
    ]
    return [each for each in imports if each[2]]


def _module_places(facts: Facts, file: str, name: str) -> tuple[list[str], list[str]]:
    """Return the files of a module of the project, and where it would be written if it does not exist.

    Both are empty for what is not the project's.
    """
    project = facts.project
    top, *rest = name.split(".")
    starts = (".", "src", *facts.selector.settings.pythonpath, file.rpartition("/")[0] or ".")
    bases = [f"{start}/{top}".removeprefix("./") for start in dict.fromkeys(map(plain, starts))]
    paths = ["/".join((base, *rest)) for base in bases]
    files = [each for path in paths for each in (f"{path}.py", f"{path}/__init__.py")]
    found = [each for each in files if project.kind(each) is Kind.FILE]
    homes = [at for at, base in enumerate(bases) if project.kind(base) is Kind.FOLDER]
    if found or any(project.kind(path) is not Kind.MISSING for path in paths) or project.is_installed(top):
        return found, []
    if homes:
        # An extension module or a stub is no file of Python, and yet there.
        there = any(project.glob_holds(f"{path}.*") for path in paths)
        return [], [] if there else files[2 * homes[0] : 2 * homes[0] + 2]
    # Nothing of that name is here: it is to be written, unless it is declared, or lies where settings say.
    word = re.compile(rf"(?<![\w.-]){re.escape(top).replace('_', '[-_]')}(?![\w-])", re.IGNORECASE)
    declared = any(word.search(project.text(each) or "") for each in _DEPENDENCY_FILES)
    elsewhere = any(f"/{top}." in f"/{each}" or f"/{top}/" in f"/{each}" for each in project.files(".")[0])
    return [], [] if declared or elsewhere else files[:2]
