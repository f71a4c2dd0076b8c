"""No check is made twice: within a todo, or for two todos that do not wait for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.plan import ArtifactSpec, MetricSpec
from planner.model.verdicts import CheckKind
from planner.rules.validation.facts import Facts, Found, command_loc, listed
from planner.text.glob_patterns import plain

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from planner.rules.criteria import Criterion

MOST_SHARED = 20
"""Of more todos that share a check, the rest is counted only."""

_SHOWN_ONLY = frozenset(
    [
        "-q",
        "-qq",
        "-v",
        "-vv",
        "-vvv",
        "-x",
        "-l",
        "-ra",
        "-rA",
        "--quiet",
        "--verbose",
        "--json-report",
        "--no-header",
        "--no-summary",
    ]
)


def check(facts: Facts) -> Iterator[Found]:
    """Rules about repeated criteria."""
    users: dict[Hashable, list[tuple[int, str, str]]] = {}
    for index, todo in facts.primaries:
        seen: dict[Hashable, str] = {}
        for criterion in facts.criteria.get(todo.id, ()):
            key = _key(criterion)
            if key is None:
                continue
            first = seen.setdefault(key, criterion.id)
            if first != criterion.id:
                yield Found(
                    "criterion-repeated",
                    command_loc(index, criterion.id),
                    todo.id,
                    f"{criterion.id} is the same check as {first}",
                    f"remove {criterion.id}, or let it check what is still unchecked",
                )
            elif criterion.kind in (CheckKind.TEST, CheckKind.COMMAND):
                users.setdefault(key, []).append((index, todo.id, criterion.id))
    for shared in users.values():
        if len(shared) > 1:
            yield from _shared(facts, shared)


def _shared(facts: Facts, shared: list[tuple[int, str, str]]) -> Iterator[Found]:
    strangers: list[str] = []
    for position, (index, todo_id, criterion_id) in enumerate(shared[1:MOST_SHARED], 1):
        others = [
            f"'{other}'"
            for _, other, _ in shared[:position]
            if not facts.ancestry.waits_for(todo_id, other) and not facts.ancestry.waits_for(other, todo_id)
        ]
        if not others:
            continue
        strangers.append(todo_id)
        yield Found(
            "criterion-shared",
            command_loc(index, criterion_id),
            todo_id,
            f"{criterion_id} of '{todo_id}' is also a check of {listed(others, 3)}, "
            "and neither waits for the other",
            f"select the tests of '{todo_id}' alone, or let one depend on the other",
        )
    left = len(shared) - MOST_SHARED
    if left > 0 and strangers:
        index, todo_id, criterion_id = shared[MOST_SHARED]
        yield Found(
            "criterion-shared",
            command_loc(index, criterion_id),
            todo_id,
            f"{criterion_id} of '{todo_id}' and of {left - 1} more todos "
            f"is the check of {MOST_SHARED} others too",
            "give each todo the tests of its own part",
        )


def _key(criterion: Criterion) -> Hashable | None:
    """Equal for checks that prove the same."""
    if criterion.command is not None:
        words = tuple(word for word in criterion.command.argv if word not in _SHOWN_ONLY)
        return (criterion.command.env, words, getattr(criterion.spec, "fixture", None))
    if isinstance(criterion.spec, ArtifactSpec):
        return ("artifact", plain(criterion.spec.path))
    if isinstance(criterion.spec, MetricSpec):
        return ("metric", criterion.spec.name, criterion.spec.operator, criterion.spec.value)
    return None
