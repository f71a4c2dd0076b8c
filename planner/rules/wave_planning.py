"""The waves of a plan as people want to see them: without parents and what is done, each todo with why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from planner.rules.file_claims import FileClaims, claimed_files, grants_of
from planner.rules.waves import waves

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from planner.model.plan import Todo

MOST_OTHERS = 5
"""So many of the todos that one is kept apart from are named."""


class Apart(NamedTuple):
    """A todo that may write one of the same files, and the globs of both that meet."""

    todo_id: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One todo of a wave, and why it does not stand in the wave before."""

    todo: Todo
    files: tuple[str, ...]
    after: tuple[str, ...] = ()
    """What it depends on, of the wave before."""
    apart_from: tuple[Apart, ...] = ()
    """Todos of the wave before that may write one of its files, where it depends on none of them."""


def placed_in_waves(todos: Iterable[Todo]) -> tuple[tuple[Placed, ...], ...]:
    """The waves of todos. Raises ``ValueError`` as :func:`planner.rules.waves.waves` does."""
    by_id = {todo.id: todo for todo in todos}
    found: list[tuple[Placed, ...]] = []
    before: Sequence[str] = ()
    for wave in waves(by_id.values()):
        claims = FileClaims()
        for todo_id in before:
            claims = claims.add(todo_id, claimed_files(by_id[todo_id]))
        near = frozenset(before)
        found.append(tuple(_placed(by_id[todo_id], near, claims, by_id) for todo_id in wave))
        before = wave
    return tuple(found)


def to_be_worked_on(
    items: Iterable[Todo], children: Mapping[str, Sequence[str]], done: Collection[str]
) -> tuple[Todo, ...]:
    """The todos that somebody has to work on.

    None that is done; no parent whose todos are known (``children``); and none that has a branch, which is
    worked on in its place. Whoever depends on one of these depends on those that are worked on for it.
    """
    by_id = {todo.id: todo for todo in items}
    instead = dict(children)
    for todo in by_id.values():
        repaired = todo.parent_id
        if repaired in by_id and repaired not in children and repaired not in todo.dependencies:
            instead[repaired] = (*instead.get(repaired, ()), todo.id)
    last = {todo_id: tuple(_last_of(todo_id, by_id, instead)) for todo_id in instead}
    return tuple(
        _with_dependencies(todo, last) if any(each in last for each in todo.dependencies) else todo
        for todo in by_id.values()
        if todo.id not in instead and todo.id not in done and todo.parent_id not in done
    )


def _placed(todo: Todo, before: Collection[str], claims: FileClaims, by_id: Mapping[str, Todo]) -> Placed:
    files = claimed_files(todo)
    after = tuple(each for each in dict.fromkeys(todo.dependencies) if each in before)
    others = () if after else claims.conflicts(files)[:MOST_OTHERS]
    apart = tuple(Apart(other, tuple(_meeting(files, claimed_files(by_id[other])))) for other in others)
    return Placed(todo=todo, files=files, after=after, apart_from=apart)


def _meeting(files: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    """The globs of either that meet one of the other, each once."""
    pairs = [
        (one.pattern, other.pattern)
        for one in grants_of(files)
        for other in grants_of(others)
        if one.meets(other)
    ]
    return iter(dict.fromkeys(pattern for pair in pairs for pattern in pair))


def _last_of(
    todo_id: str, by_id: Mapping[str, Todo], instead: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Those that are worked on in place of a todo, without those that another one of them waits for."""
    waited_for = {each for other in instead[todo_id] for each in by_id[other].dependencies}
    for other in instead[todo_id]:
        if other not in waited_for:
            yield from _last_of(other, by_id, instead) if other in instead else (other,)


def _with_dependencies(todo: Todo, last: Mapping[str, Sequence[str]]) -> Todo:
    expanded = (name for each in todo.dependencies for name in last.get(each, (each,)))
    return todo.model_copy(update={"dependencies": tuple(dict.fromkeys(expanded))})
