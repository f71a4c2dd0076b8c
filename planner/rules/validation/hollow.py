"""No command succeeds whatever the work is like: no-ops, empty targets, tests that assert nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.rules.validation.facts import Facts, Found, command_loc, counted, is_branch, listed
from planner.rules.validation.having_tests import is_made_later
from planner.rules.validation.project import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.catalog import Command
    from planner.model.plan import Todo
    from planner.rules.criteria import Criterion
    from planner.rules.validation.facts import Loc
    from planner.rules.validation.selecting import Selected

_RUNS_NOTHING = {
    **dict.fromkeys(
        ("--collect-only", "--collectonly", "--co", "--setup-plan", "--setupplan"), "only lists tests"
    ),
    **dict.fromkeys(("--version", "-V", "--help", "-h"), "only speaks of pytest itself"),
    **dict.fromkeys(("--fixtures", "--funcargs", "--fixtures-per-test"), "only lists fixtures"),
    **dict.fromkeys(("--markers",), "only lists marks"),
    **dict.fromkeys(("--cache-show",), "only shows the cache"),
    **dict.fromkeys(("--setup-only", "--setuponly"), "only sets fixtures up and runs no test"),
    **dict.fromkeys(("--suppress-no-test-exit-code",), "succeeds without a single test"),
}
_HOLLOW_SCRIPTS = frozenset({"true", ":", "exit 0", "", "exit", "node -e ''", 'node -e ""'})


def check(facts: Facts) -> Iterator[Found]:
    """Rules about commands and tests that prove nothing."""
    for index, todo in facts.todos:
        if is_branch(todo):
            continue
        for criterion in facts.criteria.get(todo.id, ()):
            if criterion.command is not None:
                loc = command_loc(index, criterion.id)
                judge = _other if criterion.command.pytest is None else _pytest
                yield from judge(facts, todo, criterion, loc)


def _pytest(facts: Facts, todo: Todo, criterion: Criterion, loc: Loc) -> Iterator[Found]:
    command = criterion.command
    assert command is not None
    assert command.pytest is not None
    for word in command.pytest.args:
        name = word.partition("=")[0]
        if name in _RUNS_NOTHING:
            yield Found(
                "command-hollow",
                loc,
                todo.id,
                f"'{_shown(command)}' {_RUNS_NOTHING[name]}: {name}",
                f"leave {name} out",
            )
            return
    selected = facts.selector.of(command)
    yield from _empty(facts, todo, selected, loc)
    if selected.dropped and not selected.tests and selected.sound:
        options = _narrowing(command)
        yield Found(
            "nothing-selected",
            loc,
            todo.id,
            f"{options} leaves none of {counted(selected.dropped, 'test')} over",
            f"leave {options} out, or name what it shall select: {_examples(facts, selected)}",
        )
    yield from _hollow_tests(facts, todo, selected, loc)


def _empty(facts: Facts, todo: Todo, selected: Selected, loc: Loc) -> Iterator[Found]:
    for path in selected.empty:
        if not selected.tests and not is_made_later(facts, todo, path):
            kind = "file" if path.endswith(".py") else "folder"
            named = " (named test_*.py)" if kind == "folder" else ""
            yield Found(
                "no-tests",
                loc,
                todo.id,
                f"the {kind} {path} holds no tests{named}",
                f"write a test in {path}, or select where the tests of '{todo.id}' are",
            )


def _hollow_tests(facts: Facts, todo: Todo, selected: Selected, loc: Loc) -> Iterator[Found]:
    hollow: list[tuple[str, str]] = []
    skipped: list[str] = []
    with_fixtures = 0
    for file, name in selected.tests:
        unit = facts.project.module(file).units[name]
        if unit.skipped:
            skipped.append(f"{file}::{name}")
        elif unit.hollow is not None:
            hollow.append((f"{file}:{unit.line} {name}", unit.hollow))
            with_fixtures += facts.selector.has_own_fixtures(file, name)
    if skipped and len(skipped) == len(selected.tests) and selected.sound:
        yield Found(
            "tests-skipped",
            loc,
            todo.id,
            f"every selected test is skipped, or expected to fail: {listed(skipped)}",
            f"remove the marks, or select tests that run for '{todo.id}'",
        )
    elif (
        len(hollow) > with_fixtures and len(hollow) + len(skipped) == len(selected.tests) and selected.sound
    ):
        shown = listed([f"{place} ({why})" for place, why in hollow], 3)
        yield Found(
            "criterion-hollow",
            loc,
            todo.id,
            f"no selected test proves anything: {shown}",
            f"let {hollow[0][0]} call what '{todo.id}' makes{_product(todo)} and assert what it gives",
        )
    else:
        for place, why in hollow[:20]:
            yield Found(
                "test-hollow",
                loc,
                todo.id,
                f"{place} passes whatever the product does: {why}",
                f"let it call what '{todo.id}' makes{_product(todo)} and assert what it gives, or drop it",
            )


def _other(facts: Facts, todo: Todo, criterion: Criterion, loc: Loc) -> Iterator[Found]:
    command = criterion.command
    assert command is not None
    if command.tool.name == "python":
        yield from _script(facts, todo, command, loc)
    elif command.tool.name == "make":
        yield from _make(facts, todo, command, loc)
    elif command.tool.name in ("npm", "pnpm", "yarn"):
        yield from _npm(facts, todo, command, loc)


def _script(facts: Facts, todo: Todo, command: Command, loc: Loc) -> Iterator[Found]:
    path = next((word for word in command.argv[1:] if word.endswith(".py")), None)
    if path is None or "-m" in command.argv:
        return
    if is_made_later(facts, todo, path):
        return
    kind = facts.project.kind(path)
    if kind is Kind.MISSING:
        near = facts.project.near(path)
        yield Found(
            "target-missing",
            loc,
            todo.id,
            f"the script {path} does not exist, and no todo says that it writes it",
            f"{f'did you mean {near}? else ' if near else ''}add {path} to the expected_artifacts of "
            f"'{todo.id}' or of a todo before it",
        )
        return
    why = facts.project.script(path) if kind is Kind.FILE else None
    if why is not None:
        yield Found(
            "command-hollow",
            loc,
            todo.id,
            f"running {path} proves nothing: {why}",
            f"let {path} check what '{todo.id}' makes and exit with a failure where it is wrong",
        )


def _make(facts: Facts, todo: Todo, command: Command, loc: Loc) -> Iterator[Found]:
    words = command.argv[1:]
    targets = facts.project.make_targets()
    if targets is None or any(word.startswith("-") for word in words):
        return
    wanted = [word for word in words if "=" not in word] or [next(iter(targets), "")]
    for target in wanted:
        if target in targets and targets[target] is not None:
            yield Found(
                "command-hollow",
                loc,
                todo.id,
                f"'make {target}' proves nothing: {targets[target]}",
                f"give the target {target} a recipe that tests the work, or name a test instead",
            )
        elif target and target not in targets and facts.project.kind(target) is Kind.MISSING:
            known = listed([each for each in targets if not each.startswith(".")])
            yield Found(
                "target-missing",
                loc,
                todo.id,
                f"the Makefile has no target '{target}'",
                f"add the target, or name one that is there: {known or 'there is none'}",
            )


def _npm(facts: Facts, todo: Todo, command: Command, loc: Loc) -> Iterator[Found]:
    scripts = facts.project.npm_scripts()
    words = [word for word in command.argv[1:] if not word.startswith("-")]
    if scripts is None or not words or len(words) != len(command.argv[1:]):
        return
    runs = words[0] in ("run", "run-script")
    name = words[1] if runs and len(words) > 1 else "test" if not runs else ""
    if not name:
        return
    shown = " ".join(command.argv)
    if name not in scripts:
        yield Found(
            "target-missing",
            loc,
            todo.id,
            f"package.json has no script '{name}'",
            f"add the script, or name one that is there: {listed(list(scripts)) or 'there is none'}",
        )
        return
    script = scripts[name].strip()
    if script in _HOLLOW_SCRIPTS or (script.startswith("echo ") and not set("&|;") & set(script)):
        yield Found(
            "command-hollow",
            loc,
            todo.id,
            f"'{shown}' proves nothing: its script is '{script}'",
            f"let the script '{name}' run the tests of the work",
        )


def _narrowing(command: Command) -> str:
    assert command.pytest is not None
    options = [
        *([f"-k '{command.pytest.keyword}'"] if command.pytest.keyword is not None else []),
        *([f"-m '{command.pytest.markexpr}'"] if command.pytest.markexpr is not None else []),
        *(f"--deselect {each}" for each in command.pytest.deselect),
    ]
    return " ".join(options)


def _examples(facts: Facts, selected: Selected) -> str:
    names = [name for file in selected.files for name in facts.project.module(file).tests]
    return listed(names, 3)


def _product(todo: Todo) -> str:
    product = [
        artifact.path
        for artifact in todo.acceptance_criteria.expected_artifacts
        if artifact.path.endswith(".py") and "test" not in artifact.path.rpartition("/")[2]
    ]
    return f" ({listed(product, 2)})" if product else ""


def _shown(command: Command) -> str:
    return command.text if len(command.text) <= 80 else f"{command.text[:77]}…"
