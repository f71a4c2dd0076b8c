"""Todos small enough to be done and repaired, and plans flat only as long as they are small."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from planner.lint.facts import LintFinding
from planner.policy.dependencies import dependency_order
from planner.text.display import listed
from planner.text.glob_patterns import is_glob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planner.lint.facts import LintFacts
    from planner.model.plan import Todo

MOST_CRITERIA = 8
MANY_TODOS = 15
"""More todos than this on one level are hard to follow."""
FEW_TODOS = 6
"""Plans with fewer todos stay flat, whatever they are about."""
PHASE_TODOS = 9
"""A phase has no more todos than this."""

_SIDE_FOLDERS = (
    ". .. tests test fixtures fixture contracts contract docs doc data out output build src lib "
    "diagnostics schemas reports artifacts"
)
_KINDS = (
    "test tests impl implementation integration design docs doc review setup spec contract api ui cli "
    "build deploy check refactor fix"
)
_PHASE = re.compile(r"\s*(phase|stage|milestone|part|sprint)\s+(\d{1,3}|[ivx]{1,5})\b", re.IGNORECASE)
_NUMBERED = re.compile(r"[a-z]{0,6}\d+")


def check(facts: LintFacts) -> Iterator[LintFinding]:
    """Yield what is too large."""
    for index, todo in facts.primaries:
        criteria = facts.criteria.get(todo.id, ())
        if len(criteria) > MOST_CRITERIA:
            half = listed([each.id for each in criteria[: len(criteria) // 2]], 10)
            message = f"'{todo.id}' has {len(criteria)} criteria, more than {MOST_CRITERIA}"
            fix = (
                f"split it by what its criteria are about: a todo with {half} first, then '{todo.id}' with "
                "the rest, depending on it"
            )
            yield LintFinding("todo-too-large", ("items", index), todo.id, message, fix)
    reason, phases = divide([todo for _, todo in facts.primaries if not todo.has_sub_plan])
    if reason:
        shown = "; ".join(f"{title} ({listed(ids, 10)})" for title, ids in phases[:8])
        more = f"; and {len(phases) - 8} more" if len(phases) > 8 else ""
        fix = f"make {len(phases)} parent todos with a sub_plan each: {shown}{more}"
        yield LintFinding("hierarchy-suggested", ("items",), None, reason, fix)


def divide(todos: list[Todo]) -> tuple[str, list[tuple[str, list[str]]]]:
    """Return why a flat plan should be divided, empty where it need not be, and into which phases.

    It is divided when it has more than :data:`MANY_TODOS` todos, when its titles name phases, or when its
    ids or files show several domains that have little to do with each other.
    """
    if len(todos) < FEW_TODOS:
        return "", []
    is_large = len(todos) > MANY_TODOS
    many = f"{len(todos)} todos stand on one level, more than {MANY_TODOS}" if is_large else ""
    for groups, reason in (
        (_by_title(todos), "the titles name {} phases"),
        (_by_name(todos, _prefix), "the ids fall into {} groups of the same beginning"),
        (_by_name(todos, _domain), "the todos span {} domains"),
    ):
        if groups:
            why = f"{reason.format(len(groups))}: {listed(list(groups), 8)}"
            return f"{many}; {why}" if many else why, list(_phases(groups))
    return many, list(_phases({"Phase": list(dependency_order(todos))})) if many else []


def _by_title(todos: list[Todo]) -> dict[str, list[Todo]]:
    """By ``Phase 2: Buffer Management``, where two phases are named at least and most todos name one."""
    groups: dict[str, list[Todo]] = {}
    last = "Preparation"
    for todo in todos:
        # What stands between two todos of a phase belongs to it.
        found = _PHASE.match(todo.title)
        last = f"{found[1].capitalize()} {found[2].upper()}" if found else last
        groups.setdefault(last, []).append(todo)
    named = sum(_PHASE.match(todo.title) is not None for todo in todos)
    return groups if len(groups.keys() - {"Preparation"}) > 1 and named * 2 >= len(todos) else {}


def _by_name(todos: list[Todo], name_of: Callable[[Todo], str]) -> dict[str, list[Todo]]:
    """By what most todos share with others, where dependencies mostly stay within a group."""
    names = {todo.id: name_of(todo) for todo in todos}
    shared = {name for name, count in Counter(names.values()).items() if name and count > 1}
    covered = sum(name in shared for name in names.values())
    edges = [(names[todo.id], names[each]) for todo in todos for each in todo.dependencies if each in names]
    within = sum(one == other for one, other in edges)
    if len(shared) < 3 or covered * 4 < len(todos) * 3 or within * 2 < len(edges):
        return {}
    groups: dict[str, list[Todo]] = {}
    for todo in todos:
        name = names[todo.id]
        groups.setdefault(name if name in shared else "Rest", []).append(todo)
    return groups


def _prefix(todo: Todo) -> str:
    """Return the first word of an id: ``buffer`` of ``buffer-impl`` and of ``t3_buffer_tests``."""
    parts = [part for part in re.split(r"[-_.]+", todo.id.lower()) if part]
    while len(parts) > 1 and _NUMBERED.fullmatch(parts[0]):
        parts = parts[1:]
    return parts[0] if len(parts) > 1 and parts[0] not in _KINDS.split() else ""


def _domain(todo: Todo) -> str:
    """Return the first folder of the product that a todo names."""
    paths = [artifact.path for artifact in todo.acceptance_criteria.expected_artifacts]
    paths += [pattern for pattern in todo.allowed_files or () if not pattern.startswith("!")]
    folders = (part for path in paths for part in path.split("/")[:-1])
    return next((each for each in folders if each not in _SIDE_FOLDERS.split() and not is_glob(each)), "")


def _phases(groups: dict[str, list[Todo]]) -> Iterator[tuple[str, list[str]]]:
    """Yield the groups, the large ones in parts of equal size."""
    for name, group in groups.items():
        count = -(-len(group) // PHASE_TODOS)
        size = -(-len(group) // count)
        for at in range(count):
            title = name if count == 1 else f"{name} {at + 1}"
            yield title, [todo.id for todo in group[at * size : (at + 1) * size]]
