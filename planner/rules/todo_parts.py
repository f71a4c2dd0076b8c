"""How a todo with many criteria could be split: which parts, under which ids, with which criteria."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.plan import ArtifactSpec, CommandSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.model.plan import Todo
    from planner.rules.criteria import Criterion

MOST_PARTS = 5
"""More parts than this are put together again."""

MOST_CRITERIA = 8
"""A part has no more criteria than this, if it can be helped."""

_WORD = re.compile(r"[A-Za-z0-9]+")
_SIDE_FOLDERS = frozenset(
    [
        "tests",
        "test",
        "fixtures",
        "fixture",
        "contracts",
        "contract",
        "docs",
        "doc",
        "data",
        "out",
        "output",
        "build",
        "src",
        "lib",
        "diagnostics",
        "schemas",
        "reports",
        "artifacts",
    ]
)


@dataclass(frozen=True, slots=True)
class Part:
    """One of the todos that a todo could be split into; the last bears the old id."""

    todo_id: str
    criteria: tuple[str, ...]
    """The ids of the criteria that it takes."""


def propose_split(
    todo: Todo, criteria: Sequence[Criterion], *, most_seconds: float | None = None
) -> tuple[Part, ...]:
    """Parts of what belongs together by name; fewer than two where nothing can be split.

    Criteria that name the same thing (``tests/test_rsi.py`` and ``indicators/rsi.py``) stay together;
    what names nothing stays with the last part.
    """
    named: dict[str, list[Criterion]] = {}
    loose: list[Criterion] = []
    for criterion in criteria:
        name = topic(criterion)
        if name is None:
            loose.append(criterion)
        else:
            named.setdefault(name, []).append(criterion)
    groups = _joined(named)
    if most_seconds is not None:
        groups = [half for group in groups for half in _cut(group, most_seconds)]
    groups = _together(groups, most_seconds)
    if len(groups) < 2:
        groups = _halves([each for _, group in groups for each in group])
    if len(groups) < 2:
        return ()
    groups[-1][1].extend(loose)
    parts: list[Part] = []
    for number, (name, group) in enumerate(groups, 1):
        last = number == len(groups)
        parts.append(
            Part(todo.id if last else f"{todo.id}_{number}_{name}", tuple(each.id for each in group))
        )
    return tuple(parts)


def worded_split(parts: Iterable[Part]) -> str:
    """``a_1_rsi (tests[0], metrics[0]), then a (tests[1]), each depending on the one before``."""
    shown = [f"{part.todo_id} ({', '.join(part.criteria)})" for part in parts]
    return ", then ".join(shown) + ", each depending on the one before"


def domain(path: str) -> str | None:
    """The top folder of a path, if it stands for a part of the product."""
    folders = [part for part in path.split("/")[:-1] if part not in ("", ".", "..")]
    for folder in folders:
        if folder not in _SIDE_FOLDERS and not any(sign in folder for sign in "*?["):
            return folder
    return None


def topic(criterion: Criterion) -> str | None:
    """What a criterion is about, by the name of its file."""
    if isinstance(criterion.spec, ArtifactSpec):
        return _stem(criterion.spec.path)
    if isinstance(criterion.spec, CommandSpec) and criterion.command is not None:
        selections = criterion.command.pytest.selections if criterion.command.pytest else ()
        if selections:
            return _stem(selections[0].partition("::")[0])
        return criterion.command.tool.name
    if isinstance(criterion.spec, str):
        return _stem(criterion.spec)
    return None


def _stem(path: str) -> str:
    name = path.rstrip("/").rpartition("/")[2].partition(".")[0]
    for affix in ("test_", "_test", "_tests", "_contract", "_cases", "_expected", "_scenarios"):
        name = name.removeprefix(affix).removesuffix(affix)
    words = _WORD.findall(name)
    return "_".join(words).lower() or "rest"


def _joined(named: dict[str, list[Criterion]]) -> list[tuple[str, list[Criterion]]]:
    """Groups whose names begin alike are one: ``rsi`` and ``rsi_values``."""
    groups: dict[str, list[Criterion]] = {}
    for name in sorted(named, key=len):
        home = next(
            (each for each in groups if name.startswith(f"{each}_") or name in (f"{each}s", each)), name
        )
        groups.setdefault(home, []).extend(named[name])
    order = {id(each): place for place, group in enumerate(named.values()) for each in group}
    return sorted(groups.items(), key=lambda item: min(order[id(each)] for each in item[1]))


def _cut(group: tuple[str, list[Criterion]], most: float) -> list[tuple[str, list[Criterion]]]:
    """A group in pieces that each fit the time."""
    name, criteria = group
    pieces: list[list[Criterion]] = [[]]
    for criterion in criteria:
        if pieces[-1] and _seconds([*pieces[-1], criterion]) > most:
            pieces.append([])
        pieces[-1].append(criterion)
    return [(name if len(pieces) == 1 else f"{name}{at}", piece) for at, piece in enumerate(pieces, 1)]


def _together(
    groups: list[tuple[str, list[Criterion]]], most: float | None
) -> list[tuple[str, list[Criterion]]]:
    """Neighbouring groups put together, the smallest first, until they are few."""
    groups = [(name, list(group)) for name, group in groups]
    while len(groups) > 2:
        pairs = [
            at
            for at in range(len(groups) - 1)
            if most is None or _seconds([*groups[at][1], *groups[at + 1][1]]) <= most
        ]
        if not pairs:
            break
        at = min(pairs, key=lambda place: len(groups[place][1]) + len(groups[place + 1][1]))
        size = len(groups[at][1]) + len(groups[at + 1][1])
        if len(groups) <= MOST_PARTS and size > MOST_CRITERIA // 2:
            break
        groups[at : at + 2] = [(groups[at][0], groups[at][1] + groups[at + 1][1])]
    return groups


def _halves(criteria: list[Criterion]) -> list[tuple[str, list[Criterion]]]:
    """Where all is about one thing: its tests in two parts."""
    commands = [each for each in criteria if each.command is not None]
    if len(commands) < 2:
        return []
    first = commands[: len(commands) // 2]
    rest = [each for each in criteria if each not in first]
    return [("first", first), ("rest", rest)]


def _seconds(criteria: Iterable[Criterion]) -> float:
    return sum(each.spec.timeout_seconds for each in criteria if isinstance(each.spec, CommandSpec))
