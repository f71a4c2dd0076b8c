"""A todo may touch what it must make, and nothing that judges it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.plan import RiskLevel
from planner.model.taxonomy import Role
from planner.rules.validation.facts import Facts, Found, is_branch, listed, named_fixture
from planner.rules.validation.having_tests import makers_of
from planner.rules.validation.project import Kind
from planner.text.glob_patterns import EVERYTHING, allowed, globs_overlap, is_glob, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.plan import Todo
    from planner.rules.validation.facts import Loc

_MAX_PATTERNS = 200


def check(facts: Facts) -> Iterator[Found]:
    """Rules about ``allowed_files``, ``protected_files`` and ``risk_level``."""
    protected = facts.plan.metadata.protected_files
    for index, todo in facts.todos:
        if protected or todo.allowed_files is not None:
            for loc, noun, path in _owed(facts, index, todo):
                yield from _owed_in_reach(facts, todo, loc, noun, path)
        if todo.allowed_files is not None:
            yield from _judges(facts, index, todo, todo.allowed_files)
            yield from _protected(facts, index, todo, todo.allowed_files)
        if todo.risk_level is RiskLevel.HIGH and not is_branch(todo):
            yield from _risk(index, todo)


def _owed(facts: Facts, index: int, todo: Todo) -> Iterator[tuple[Loc, str, str]]:
    """The files that the work on a todo has to make or change: place, what it is, path."""
    for position, artifact in enumerate(todo.acceptance_criteria.expected_artifacts):
        if _is_report(todo, artifact.path):
            continue
        loc = ("items", index, "acceptance_criteria", "expected_artifacts", position, "path")
        yield loc, "expected artifact", plain(artifact.path)
    task = todo.controller_task_spec
    if task is not None and task.target_file is not None:
        yield (
            ("items", index, "controller_task_spec", "target_file"),
            "target_file",
            plain(task.target_file),
        )
    if todo.contract_path is not None and todo.agent_role is Role.ARCHITECT:
        path = plain(todo.contract_path)
        makers = [maker for maker in makers_of(facts, path) if maker != todo.id]
        if not makers and facts.project.kind(path) is Kind.MISSING:
            yield ("items", index, "contract_path"), "contract", path


def _is_report(todo: Todo, path: str) -> bool:
    """The failure report that a branch names is written by the verifier, not by the work."""
    return is_branch(todo) and plain(path).startswith("diagnostics/")


def _owed_in_reach(facts: Facts, todo: Todo, loc: Loc, noun: str, path: str) -> Iterator[Found]:
    others = [maker for maker in makers_of(facts, path) if maker != todo.id]
    if noun == "expected artifact" and any(facts.ancestry.waits_for(todo.id, each) for each in others):
        return
    guard = next((each for each in facts.plan.metadata.protected_files if _named(path, (each,))), None)
    if guard is not None and not _exists(facts, path):
        yield Found(
            "protected-artifact",
            loc,
            todo.id,
            f"the {noun} {path} does not exist yet, but is protected by '{guard}'",
            f"take {path} out of protected_files until it is made, or out of '{todo.id}'",
        )
    elif guard is not None and noun == "target_file":
        yield Found(
            "protected-artifact",
            loc,
            todo.id,
            f"the {noun} {path} is protected by '{guard}'",
            f"take {path} out of protected_files, or give '{todo.id}' another target_file",
        )
    if todo.allowed_files is not None and not _named(path, todo.allowed_files):
        yield Found(
            "outside-allowed-files",
            loc,
            todo.id,
            f"the {noun} {path} is none of the allowed_files of '{todo.id}': "
            f"{listed(list(todo.allowed_files)) or 'it may touch nothing'}",
            f"add \"{_pattern_for(path)}\" to the allowed_files of '{todo.id}', "
            f"or leave {path} to another todo",
        )


def _named(path: str, patterns: tuple[str, ...]) -> bool:
    # A glob is granted by a pattern that matches its text: a star matches a star.
    return allowed(path, patterns)


def _exists(facts: Facts, path: str) -> bool:
    return facts.project.glob_holds(path) if is_glob(path) else facts.project.kind(path) is not Kind.MISSING


def _pattern_for(path: str) -> str:
    folder = path.rpartition("/")[0]
    return f"{folder}/**" if folder and is_glob(path) and not is_glob(folder) else path


def _judges(facts: Facts, index: int, todo: Todo, patterns: tuple[str, ...]) -> Iterator[Found]:
    """What judges a todo must not be its to change; who writes tests is judged by others."""
    if todo.agent_role is Role.TESTER or todo.has_sub_plan:
        return
    own = {plain(artifact.path) for artifact in todo.acceptance_criteria.expected_artifacts}
    judges: dict[str, None] = {}
    for criterion in facts.criteria.get(todo.id, ()):
        fixture = named_fixture(criterion)
        if fixture is not None:
            judges[plain(fixture)] = None
        if criterion.command is not None and criterion.command.pytest is not None:
            selected = facts.selector.of(criterion.command)
            judges.update(dict.fromkeys((*selected.files[:1_000], *selected.missing_files)))
    granted = [path for path in judges if path not in own and _named(path, patterns)]
    if granted:
        position, pattern = next(
            (at, each)
            for at, each in enumerate(patterns)
            if not each.startswith("!") and _named(granted[0], (each,))
        )
        yield Found(
            "judge-in-reach",
            ("items", index, "allowed_files", position),
            todo.id,
            f"'{pattern}' lets '{todo.id}' change what judges it: {listed(granted, 3)}",
            f"{_take_out(pattern, granted[0])}, or list the file among its expected_artifacts "
            "if writing it is the work",
        )


def _take_out(pattern: str, path: str) -> str:
    top = path.partition("/")[0]
    if pattern.startswith(f"{top}/") or pattern in (top, path):
        return f'remove "{pattern}"'
    return f'add "!{top}/**" to allowed_files' if "/" in path else f'add "!{path}" to allowed_files'


def _protected(facts: Facts, index: int, todo: Todo, patterns: tuple[str, ...]) -> Iterator[Found]:
    excluded = tuple(each[1:] for each in patterns if each.startswith("!"))
    for position, pattern in enumerate(patterns[:_MAX_PATTERNS]):
        if pattern.startswith("!"):
            continue
        for guard in facts.plan.metadata.protected_files[:_MAX_PATTERNS]:
            if globs_overlap(pattern, guard) and not _named(guard, excluded):
                yield Found(
                    "protected-and-allowed",
                    ("items", index, "allowed_files", position),
                    todo.id,
                    f"'{pattern}' grants '{todo.id}' what '{guard}' protects",
                    f"add \"!{guard}\" to the allowed_files of '{todo.id}', or narrow '{pattern}'",
                )
                break


def _risk(index: int, todo: Todo) -> Iterator[Found]:
    needed = [artifact.path for artifact in todo.acceptance_criteria.expected_artifacts]
    task = todo.controller_task_spec
    if task is not None and task.target_file is not None:
        needed.append(task.target_file)
    instead = ", ".join(f'"{path}"' for path in dict.fromkeys(needed[:5])) or '"src/part/**"'
    if todo.allowed_files is None:
        yield Found(
            "risk-wide",
            ("items", index, "risk_level"),
            todo.id,
            f"'{todo.id}' has risk_level HIGH and may touch any file, for it has no allowed_files",
            f"write allowed_files: [{instead}]",
        )
        return
    for position, pattern in enumerate(todo.allowed_files):
        if pattern in EVERYTHING:
            yield Found(
                "risk-wide",
                ("items", index, "allowed_files", position),
                todo.id,
                f"'{todo.id}' has risk_level HIGH and '{pattern}' grants it every file",
                f"write allowed_files: [{instead}]",
            )
