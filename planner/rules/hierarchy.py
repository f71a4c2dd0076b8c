"""Whether a flat plan would be better as phases with sub-plans of their own, and which phases these are."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.rules.dependencies import dependency_order
from planner.rules.todo_parts import domain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.plan import Plan, Todo

MANY_TODOS = 15
"""More todos than this on one level are hard to follow."""

PHASE_TODOS = 9
"""A phase has no more todos than this."""

FEW_TODOS = 6
"""Plans with fewer todos stay flat, whatever they are about."""

_PHASE = re.compile(
    r"\s*(?P<word>phase|stage|milestone|part|sprint)\s+(?P<number>\d{1,3}|[ivx]{1,5})\b\s*[:.)\u2013-]?\s*(?P<name>[^:]*)",
    re.IGNORECASE,
)
_SPLIT = re.compile(r"[-_.]+")
_NUMBERED = re.compile(r"[a-z]{0,6}\d+", re.IGNORECASE)
_KINDS = frozenset(
    [
        "test",
        "tests",
        "impl",
        "implementation",
        "integration",
        "design",
        "docs",
        "doc",
        "review",
        "setup",
        "spec",
        "contract",
        "api",
        "ui",
        "cli",
        "build",
        "deploy",
        "check",
        "refactor",
        "fix",
    ]
)


@dataclass(frozen=True, slots=True)
class Phase:
    """One group of todos that could be a plan of its own."""

    title: str
    todo_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """How a plan could be divided."""

    reason: str
    phases: tuple[Phase, ...]


def suggest(plan: Plan) -> Suggestion | None:
    """The phases that a plan could be divided into, or ``None`` where it is good as it is.

    A plan is divided when it has more than :data:`MANY_TODOS` todos, when its titles or ids name phases, or
    when it spans several domains that have little to do with each other. Branches are not counted, and
    neither are parents, which are divided already.
    """
    todos = [
        todo
        for todo in plan.items
        if todo.parent_id is None and not todo.is_temporary and not todo.has_sub_plan
    ]
    if len(todos) < FEW_TODOS:
        return None
    for read, reason in (
        (_by_phase_titles, "the titles name {count} phases"),
        (_by_prefixes, "the ids fall into {count} groups of the same beginning: {names}"),
        (_by_domains, "the todos span {count} domains: {names}"),
    ):
        groups = read(todos)
        if groups is not None:
            names = ", ".join(list(groups)[:8]) + (", …" if len(groups) > 8 else "")
            said = reason.format(count=len(groups), names=names)
            if len(todos) > MANY_TODOS:
                said = f"{len(todos)} todos stand on one level, more than {MANY_TODOS}; {said}"
            return Suggestion(said, _phases(groups))
    if len(todos) > MANY_TODOS:
        said = f"{len(todos)} todos stand on one level, more than {MANY_TODOS}"
        return Suggestion(said, _phases(_by_waves(todos)))
    return None


def _by_phase_titles(todos: list[Todo]) -> dict[str, list[Todo]] | None:
    """By ``Phase 2: Buffer Management``, where at least two phases are named and most todos name one."""
    groups: dict[str, list[Todo]] = {}
    names: dict[str, str] = {}
    rest: list[Todo] = []
    last: str | None = None
    for todo in todos:
        match = _PHASE.match(todo.title)
        if match is None:
            # What stands between two todos of a phase belongs to it.
            (groups[last] if last is not None else rest).append(todo)
            continue
        last = f"{match['word'].capitalize()} {match['number'].upper()}"
        groups.setdefault(last, []).append(todo)
        names.setdefault(last, match["name"].strip(" -\u2013"))
    named = sum(_PHASE.match(todo.title) is not None for todo in todos)
    if len(groups) < 2 or named * 2 < len(todos):
        return None
    if rest:
        groups = {"Preparation": rest, **groups}
    shared = {key for key, group in groups.items() if len(group) > 1}
    # The name of a single todo is its own; that of several is the phase's only if they agree.
    titled = {
        key: f"{key}: {name}"
        for key, name in names.items()
        if name and key in shared and _agree(groups[key])
    }
    return {titled.get(key, key): group for key, group in groups.items()}


def _agree(group: list[Todo]) -> bool:
    said = {
        match["name"].strip(" -\u2013") for todo in group if (match := _PHASE.match(todo.title)) is not None
    }
    return len(said) == 1


def _by_prefixes(todos: list[Todo]) -> dict[str, list[Todo]] | None:
    """By the beginning of ids (``buffer-tests``, ``buffer-impl``), where most share one with others."""
    groups: dict[str, list[Todo]] = {}
    for todo in todos:
        groups.setdefault(_prefix(todo.id), []).append(todo)
    shared = {name: group for name, group in groups.items() if len(group) > 1 and name}
    covered = sum(len(group) for group in shared.values())
    if len(shared) < 3 or covered * 4 < len(todos) * 3:
        return None
    return _with_loners(todos, shared, {name: _titled(name) for name in shared})


def _prefix(todo_id: str) -> str:
    """The first part of an id that is a word: ``buffer`` of ``buffer-impl`` and of ``t3_buffer_tests``."""
    parts = [part for part in _SPLIT.split(todo_id) if part]
    while len(parts) > 1 and _NUMBERED.fullmatch(parts[0]):
        parts = parts[1:]
    if len(parts) < 2 or parts[0].lower() in _KINDS:
        return ""
    return parts[0].lower()


def _by_domains(todos: list[Todo]) -> dict[str, list[Todo]] | None:
    """By the top folder of what todos make, or by what depends on each other, where these differ."""
    groups: dict[str, list[Todo]] = {}
    for todo in todos:
        name = _domain(todo)
        if name is not None:
            groups.setdefault(name, []).append(todo)
    shared = {name: group for name, group in groups.items() if len(group) > 1}
    covered = sum(len(group) for group in shared.values())
    if len(shared) >= 3 and covered * 4 >= len(todos) * 3 and _are_apart(todos, shared):
        return _with_loners(todos, shared, {name: _titled(name) for name in shared})
    islands = [group for group in _islands(todos) if len(group) > 2]
    if len(islands) >= 2 and sum(map(len, islands)) * 4 >= len(todos) * 3:
        named = {_island_name(group, at): group for at, group in enumerate(islands, 1)}
        return _with_loners(todos, named, {name: name for name in named})
    return None


def _domain(todo: Todo) -> str | None:
    """The top folder that most of a todo's files lie in."""
    paths = [artifact.path for artifact in todo.acceptance_criteria.expected_artifacts]
    paths += [pattern.removeprefix("!") for pattern in todo.allowed_files or ()]
    counted = Counter(name for path in paths if (name := domain(path)) is not None)
    return counted.most_common(1)[0][0] if counted else None


def _are_apart(todos: list[Todo], groups: dict[str, list[Todo]]) -> bool:
    """Whether dependencies mostly stay within a group: else it is one feature in several folders."""
    home = {todo.id: name for name, group in groups.items() for todo in group}
    edges = [
        (home.get(todo.id), home.get(other))
        for todo in todos
        for other in todo.dependencies
        if other in home
    ]
    within = sum(one == other for one, other in edges)
    return within * 2 >= len(edges)


def _islands(todos: list[Todo]) -> list[list[Todo]]:
    """Groups of todos without a dependency between them, in the order of the plan."""
    leader = {todo.id: todo.id for todo in todos}

    def find(todo_id: str) -> str:
        while leader[todo_id] != todo_id:
            leader[todo_id] = leader[leader[todo_id]]
            todo_id = leader[todo_id]
        return todo_id

    for todo in todos:
        for other in todo.dependencies:
            if other in leader:
                leader[find(todo.id)] = find(other)
    groups: dict[str, list[Todo]] = {}
    for todo in todos:
        groups.setdefault(find(todo.id), []).append(todo)
    return list(groups.values())


def _island_name(group: list[Todo], at: int) -> str:
    names = Counter(name for todo in group if (name := _domain(todo)) is not None)
    return f"Group {at}" + (f" ({names.most_common(1)[0][0]})" if names else f" (from {group[0].id})")


def _by_waves(todos: list[Todo]) -> dict[str, list[Todo]]:
    """Where nothing else tells: in the order of work, each wave after what it depends on."""
    depth: dict[str, int] = {}
    for todo in dependency_order(todos):
        depth[todo.id] = 1 + max((depth[each] for each in todo.dependencies if each in depth), default=-1)
    ordered = sorted(todos, key=lambda todo: depth[todo.id])
    return {"Phase": ordered}


def _with_loners(
    todos: list[Todo], groups: dict[str, list[Todo]], titles: dict[str, str]
) -> dict[str, list[Todo]]:
    """The groups under their titles, with what belongs to none put where its neighbours are."""
    home = {todo.id: name for name, group in groups.items() for todo in group}
    loners: list[Todo] = []
    for todo in todos:
        if todo.id in home:
            continue
        near = Counter(home[other] for other in todo.dependencies if other in home)
        if len(near) == 1:
            groups[next(iter(near))].append(todo)
        else:
            loners.append(todo)
    named = {titles[name]: group for name, group in groups.items()}
    if loners:
        starts = [todo for todo in loners if not todo.dependencies]
        ends = [todo for todo in loners if todo.dependencies]
        named = {
            **({"Preparation": starts} if starts else {}),
            **named,
            **({"Integration": ends} if ends else {}),
        }
    return named


def _titled(name: str) -> str:
    return name[:1].upper() + name[1:]


def _phases(groups: dict[str, list[Todo]]) -> tuple[Phase, ...]:
    """The groups as phases, the large ones cut, each todo in the order of the plan's dependencies."""
    phases: list[Phase] = []
    for name, group in groups.items():
        pieces = list(_pieces(group))
        for at, piece in enumerate(pieces, 1):
            title = name if len(pieces) == 1 else f"{name} {at}"
            phases.append(Phase(title, tuple(todo.id for todo in piece)))
    return tuple(phases)


def _pieces(group: list[Todo]) -> Iterable[list[Todo]]:
    """A group in parts of equal size, none too large."""
    count = -(-len(group) // PHASE_TODOS)
    size = -(-len(group) // count)
    return (group[at : at + size] for at in range(0, len(group), size))
