"""Chance in code: whether a failing function, or a test, asks for random numbers, clocks or threads."""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

from planner.model.verdicts import Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from planner.model.evidence import Evidence

_MORE_CHANCE = frozenset(
    {"monotonic", "perf_counter", "sleep", "getpid", "set", "frozenset", "hash", "id"}
    | {"Thread", "ThreadPoolExecutor", "gather", "as_completed"}
)
"""What gives another answer each time though it is no call that the rules for plans know."""
_LARGEST = 1 << 20


def depends_on_chance(evidence: Iterable[Evidence], root: Path) -> bool:
    """Return whether a function that the failure goes through asks for chance, a clock or sets."""
    places = dict.fromkeys(place for piece in evidence for place in _places_of(piece))
    return any(_asks_for_chance(root / path, line) for path, line in places)


def test_depends_on_chance(nodeid: str, root: Path) -> bool:
    """Return whether the code of a test itself asks for chance, a clock or sets."""
    file, _, rest = nodeid.partition("::")
    name = rest.rpartition("::")[2].partition("[")[0]
    tree = _parsed(root / file)
    return tree is not None and any(
        _is_chance(node)
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and function.name == name
        for node in ast.walk(function)
    )


def _places_of(evidence: Evidence) -> Iterator[tuple[str, int]]:
    frames = [frame for error in evidence.exceptions for frame in error.frames]
    for frame in (*frames, *evidence.subjects):
        if frame.side in (Side.TEST, Side.PRODUCT):
            yield frame.path, frame.line


def _asks_for_chance(path: Path, line: int) -> bool:
    tree = _parsed(path)
    if tree is None:
        return path.is_file() and path.stat().st_size > _LARGEST
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    innermost = max(around, key=lambda node: node.lineno, default=tree)
    return any(_is_chance(node) for node in ast.walk(innermost))


def _parsed(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_bytes()) if path.stat().st_size <= _LARGEST else None
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@cache
def _names_of_chance() -> frozenset[str]:
    """Return names whose calls give another answer each time: chance, clocks, the order of sets, threads.

    Only the last part of a name is compared, so those are left out that mean something else elsewhere.
    """
    from planner.catalog.impure_calls import CHANCE, CLOCK, GENERATORS

    drawn = " ".join((*CHANCE.values(), *CLOCK.values())).split()
    return frozenset(drawn) | {name.rpartition(".")[2] for name in GENERATORS} | _MORE_CHANCE


def _is_chance(node: ast.AST) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name in _names_of_chance()
        case _:
            return False
