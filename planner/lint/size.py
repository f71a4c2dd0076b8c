"""Rules about size: todos with too many criteria, and flat plans that should be divided into phases."""

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
"""Recommended maximum number of criteria of a todo."""
MANY_TODOS = 15
"""Recommended maximum number of todos on one level; more are hard to follow."""
FEW_TODOS = 6
"""Minimum number of todos of a plan that should be divided, whatever it is about."""
PHASE_TODOS = 9
"""Maximum number of todos in a phase."""

_SIDE_FOLDERS = (
    ". .. tests test fixtures fixture contracts contract docs doc data out output build src lib "
    "diagnostics schemas reports artifacts"
)
"""Names of folders that do not indicate a domain of the product."""

_KINDS = (
    "test tests impl implementation integration design docs doc review setup spec contract api ui cli "
    "build deploy check refactor fix"
)
"""First words of ids that name a kind of work, not a domain."""

_PHASE = re.compile(r"\s*(phase|stage|milestone|part|sprint)\s+(\d{1,3}|[ivx]{1,5})\b", re.IGNORECASE)
_NUMBERED = re.compile(r"[a-z]{0,6}\d+")


def check(facts: LintFacts) -> Iterator[LintFinding]:
    """Yield findings about todos and plans that are too large."""
    for index, todo in facts.primaries:
        criteria = facts.criteria.get(todo.id, ())
        if len(criteria) > MOST_CRITERIA:
            half = listed([each.id for each in criteria[: len(criteria) // 2]], 10)
            message = f"'{todo.id}' has {len(criteria)} criteria, more than {MOST_CRITERIA}"
            fix = (
                f"split it by the subject of its criteria: a todo with {half} first, then '{todo.id}' with "
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
    """Return why a flat plan should be divided, and the titles and todo ids of the phases.

    That is so if it has more than :data:`MANY_TODOS` todos, if its titles name phases, or if its ids or
    files show several domains with few dependencies between them. The reason is empty, and there are no
    phases, if it should stay flat.
    """
    if len(todos) < FEW_TODOS:
        return "", []
    is_large = len(todos) > MANY_TODOS
    many = f"{len(todos)} todos are on one level, more than {MANY_TODOS}" if is_large else ""
    for groups, reason in (
        (_by_title(todos), "the titles name {} phases"),
        (_by_name(todos, _prefix), "the ids form {} groups by prefix"),
        (_by_name(todos, _domain), "the todos span {} domains"),
    ):
        if groups:
            why = f"{reason.format(len(groups))}: {listed(list(groups), 8)}"
            return f"{many}; {why}" if many else why, list(_phases(groups))
    return many, list(_phases({"Phase": list(dependency_order(todos))})) if many else []


def _by_title(todos: list[Todo]) -> dict[str, list[Todo]]:
    """Group todos by titles such as ``Phase 2: Buffer Management``.

    Empty unless at least two phases are named, by at least half of the todos.
    """
    groups: dict[str, list[Todo]] = {}
    last = "Preparation"
    for todo in todos:
        # A todo without a phase belongs to that of the todo before it.
        found = _PHASE.match(todo.title)
        last = f"{found[1].capitalize()} {found[2].upper()}" if found else last
        groups.setdefault(last, []).append(todo)
    named = sum(_PHASE.match(todo.title) is not None for todo in todos)
    return groups if len(groups.keys() - {"Preparation"}) > 1 and named * 2 >= len(todos) else {}


def _by_name(todos: list[Todo], name_of: Callable[[Todo], str]) -> dict[str, list[Todo]]:
    """Group todos by a name that they share with others; the remaining ones are grouped as ``Rest``.

    Empty unless there are three such groups with three quarters of the todos, and at least half of the
    dependencies stay within a group.
    """
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
    """Return the first word of an id: ``buffer`` of ``buffer-impl`` and of ``t3_buffer_tests``.

    Numbering is skipped. Empty for an id of one word, and if the word names a kind of work.
    """
    parts = [part for part in re.split(r"[-_.]+", todo.id.lower()) if part]
    while len(parts) > 1 and _NUMBERED.fullmatch(parts[0]):
        parts = parts[1:]
    return parts[0] if len(parts) > 1 and parts[0] not in _KINDS.split() else ""


def _domain(todo: Todo) -> str:
    """Return the first folder of the product among the files that a todo names, or an empty string."""
    paths = [artifact.path for artifact in todo.acceptance_criteria.expected_artifacts]
    paths += [pattern for pattern in todo.allowed_files or () if not pattern.startswith("!")]
    folders = (part for path in paths for part in path.split("/")[:-1])
    return next((each for each in folders if each not in _SIDE_FOLDERS.split() and not is_glob(each)), "")


def _phases(groups: dict[str, list[Todo]]) -> Iterator[tuple[str, list[str]]]:
    """Yield title and todo ids of each phase; groups that are too large are split evenly."""
    for name, group in groups.items():
        count = -(-len(group) // PHASE_TODOS)
        size = -(-len(group) // count)
        for at in range(count):
            title = name if count == 1 else f"{name} {at + 1}"
            yield title, [todo.id for todo in group[at * size : (at + 1) * size]]
