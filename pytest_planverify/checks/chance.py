"""Detection of chance in code: random numbers, clocks, threads, or the order of sets.

Confirmation repeats a failing check, and qualification any check, more often where chance is found. The
source is searched for calls by their names, without imports or types. A false hit costs repeated runs, a
missed one lets a flaky failure count as deterministic.
"""

from __future__ import annotations

import ast
import os
from collections import defaultdict
from functools import cache, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from planner.model.verdicts import EvidenceKind, Side

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from planner.model.evidence import Evidence

ExecutedLines: TypeAlias = "Mapping[tuple[str, int, str], tuple[int, int]]"
"""Depth and executed lines (as bits) of functions, by path, first line and name."""

_ORDERS = frozenset({"set", "frozenset", "hash", "id"})
"""Calls whose results, or the order of whose elements, differ between processes."""
_MORE_CHANCE = _ORDERS | frozenset(
    {"monotonic", "perf_counter", "sleep", "getpid"}
    | {"Thread", "ThreadPoolExecutor", "gather", "as_completed"}
)
"""Nondeterministic names beyond those in the catalog of impure calls."""
_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_CERTAIN = frozenset({"builtins.ModuleNotFoundError", "builtins.SyntaxError"})
"""Import errors that recur on every run, whatever else the module does."""
_LARGEST = 1 << 20
"""Size in bytes of a source file above which it is not parsed."""


def depends_on_chance(
    piece: Evidence, root: Path, executed: Mapping[str, ExecutedLines] | None = None
) -> bool:
    """Return whether code executed by a failing test involves chance.

    ``executed`` are the product lines that each test executed, if a confirmation recorded them. For a test
    without a recording, the functions that it names count as executed.
    """
    kinds = {piece.exceptions[0].qualified, *piece.exceptions[0].bases} if piece.exceptions else set[str]()
    if piece.kind is EvidenceKind.COLLECTION and not _CERTAIN.isdisjoint(kinds):
        return False
    ran = (executed or {}).get(piece.nodeid or "")
    frames = {
        (frame.path, frame.line)
        for error in piece.exceptions
        for frame in error.frames
        if frame.side in (Side.TEST, Side.PRODUCT)
    }
    named = {(frame.path, frame.line) for frame in piece.subjects}
    # Where the executed lines are known, a function that the test only names need not have run.
    places = frames if ran is not None else frames | named
    if any(_function_draws(root / path, line) for path, line in places):
        return True
    if piece.nodeid is not None and test_depends_on_chance(piece.nodeid, root):
        return True
    # Sets are common and mostly used for membership tests, so they only count in functions that the
    # test calls directly.
    return any(
        _lines_draw(root / path, first, lines, with_sets=(path, first) in named)
        for (path, first, _), (_, lines) in (ran or {}).items()
    )


def test_depends_on_chance(nodeid: str, root: Path) -> bool:
    """Return whether a test, or anything that it uses in its file, involves chance.

    Functions are followed by their names: calls, attributes, and parameters, which may be fixtures.
    """
    file, _, rest = nodeid.partition("::")
    tree = _parsed(root / file)
    functions = {} if tree is None else _functions_of(tree)
    pending = [rest.rpartition("::")[2].partition("[")[0]]
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        for node in (node for function in functions.get(name, ()) for node in ast.walk(function)):
            if _is_chance(node):
                return True
            match node:
                case ast.Name(id=other) | ast.Attribute(attr=other) | ast.arg(arg=other):
                    pending.append(other)
                case _:
                    pass
    return False


def _function_draws(path: Path, line: int) -> bool:
    """Return whether the innermost function around a line involves chance.

    Outside of functions, all code of the module that is in no function counts.
    """
    tree = _parsed(path)
    if tree is None:
        # Repeated runs cost less than a flaky failure that counts as deterministic. Unlike Path.is_file()
        # these functions accept names of any length: a test may compile code under any name.
        return os.path.isfile(path) and os.path.getsize(path) > _LARGEST
    functions = chain.from_iterable(_functions_of(tree).values())
    spans = [(_first_line(node), node.end_lineno or node.lineno) for node in functions]
    drawing = [at for at, _ in _chances_of(tree)]
    around = [(first, last) for first, last in spans if first <= line <= last]
    if around:
        first, last = max(around)  # the innermost one begins last
        return any(first <= at <= last for at in drawing)
    return any(not any(first <= at <= last for first, last in spans) for at in drawing)


def _lines_draw(path: Path, first: int, lines: int, *, with_sets: bool) -> bool:
    """Return whether an executed line involves chance; ``lines`` are bits, starting at line ``first``."""
    tree = _parsed(path)
    return tree is not None and any(
        line >= first and lines >> (line - first) & 1 and (with_sets or not is_set)
        for line, is_set in _chances_of(tree)
    )


# Cached: a file is queried for each function that each test executed.


@lru_cache(maxsize=64)
def _functions_of(tree: ast.Module) -> dict[str, list[_Function]]:
    """Return the functions of a module by name, at any depth."""
    found: dict[str, list[_Function]] = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTION):
            found[node.name].append(node)
    return found


@lru_cache(maxsize=64)
def _chances_of(tree: ast.Module) -> tuple[tuple[int, bool], ...]:
    """Return the lines that involve chance, and whether only by the order of a set."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.expr) and _is_chance(node))
    return tuple((node.lineno, not _is_chance(node, with_sets=False)) for node in nodes)


def _first_line(node: _Function) -> int:
    """Return the first line of a function's code, which is that of its first decorator."""
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _parsed(path: Path) -> ast.Module | None:
    """Return the syntax tree of a file; ``None`` if it is missing, too large, or no valid Python."""
    try:
        return _tree_of(path.read_bytes()) if path.stat().st_size <= _LARGEST else None
    except (OSError, ValueError):  # a null byte in the name
        return None


# By content, not by path, so that a changed file is parsed again. Queries arrive file by file.
@lru_cache(maxsize=64)
def _tree_of(source: bytes) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@cache
def _names_of_chance() -> frozenset[str]:
    """Return the last components of the names of nondeterministic calls.

    Imports are not resolved, so names that mean something else in other modules are left out.
    """
    from planner.catalog.impure_calls import GENERATORS, IMPURE_CALLS

    drawn = [name for name, kind in IMPURE_CALLS.items() if kind != "network"]
    return frozenset(name.rpartition(".")[2] for name in (*drawn, *GENERATORS)) | _MORE_CHANCE


def _is_chance(node: ast.AST, *, with_sets: bool = True) -> bool:
    """Return whether a node is a nondeterministic call, or with ``with_sets`` a set."""
    match node:
        case ast.Set() | ast.SetComp():
            return with_sets
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name in _names_of_chance() and (with_sets or name not in _ORDERS)
        case _:
            return False
