"""Detection of chance in code: random numbers, clocks, threads, or the order of sets.

Confirmation repeats a failing check more often where chance is found. The source is searched for calls by
their names, without imports or types. A false hit costs repeated runs, a missed one lets a flaky failure
count as deterministic.
"""

from __future__ import annotations

import ast
import os
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from planner.model.verdicts import EvidenceKind, Side

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from planner.model.evidence import Evidence

_ORDERS = frozenset({"set", "frozenset", "hash", "id"})
"""Calls whose results, or the order of whose elements, differ between processes."""
_MORE_CHANCE = _ORDERS | frozenset(
    {"monotonic", "perf_counter", "sleep", "getpid"}
    | {"Thread", "ThreadPoolExecutor", "gather", "as_completed"}
)
"""Nondeterministic names beyond those in the catalog of impure calls."""
_CERTAIN = frozenset({"builtins.ModuleNotFoundError", "builtins.SyntaxError"})
"""Import errors that recur on every run, whatever else the module does."""
_LARGEST = 1 << 20
"""Size in bytes of a source file above which it is not parsed."""


class _Source(NamedTuple):
    """The functions of a module and its lines that involve chance; lines are counted from 1."""

    functions: tuple[tuple[int, int, str, bool], ...]
    """First and last line of each function at any depth, its name, and whether it is a test by name."""
    chances: tuple[tuple[int, bool], ...]
    """Lines that involve chance, and whether only by the order of a set."""


def depends_on_chance(
    piece: Evidence, root: Path, executed: Mapping[str, Collection[tuple[str, int, str]]] | None = None
) -> bool:
    """Return whether code executed by a failing test involves chance.

    ``executed`` are the product functions (path, first line, name) that each test executed, if a
    confirmation recorded them. The functions that the test names, or the traceback shows, always count.
    """
    kinds = {piece.exceptions[0].qualified, *piece.exceptions[0].bases} if piece.exceptions else set[str]()
    if piece.kind is EvidenceKind.COLLECTION and not _CERTAIN.isdisjoint(kinds):
        return False
    frames = (frame for error in piece.exceptions for frame in error.frames)
    shown = [*piece.subjects, *(frame for frame in frames if frame.side in (Side.TEST, Side.PRODUCT))]
    if any(_function_draws(root / path, line) for path, line in {(each.path, each.line) for each in shown}):
        return True
    if piece.nodeid is not None and _test_depends_on_chance(piece.nodeid, root):
        return True
    # Sets are common and mostly used for membership tests, so they do not count in all that ran.
    ran = (executed or {}).get(piece.nodeid or "", ())
    return any(_function_draws(root / path, first, with_sets=False) for path, first, _ in ran)


def _test_depends_on_chance(nodeid: str, root: Path) -> bool:
    """Return whether a test, or any function of its file that is no other test, involves chance."""
    file, _, names = nodeid.partition("::")
    source = _source_of(root / file)
    if source is None:
        return False
    # The test may use any fixture or helper of its file.
    test = names.rpartition("::")[2].partition("[")[0]
    used = [(first, last) for first, last, name, is_test in source.functions if name == test or not is_test]
    return any(first <= at <= last for at, _ in source.chances for first, last in used)


def _function_draws(path: Path, line: int, *, with_sets: bool = True) -> bool:
    """Return whether the innermost function around a line involves chance.

    Outside of functions, all code of the module that is in no function counts.
    """
    source = _source_of(path)
    if source is None:
        # Repeated runs cost less than a flaky failure that counts as deterministic. Unlike Path.is_file()
        # these functions accept names of any length: a test may compile code under any name.
        return os.path.isfile(path) and os.path.getsize(path) > _LARGEST
    drawing = [at for at, is_set in source.chances if with_sets or not is_set]
    around = [each for each in source.functions if each[0] <= line <= each[1]]
    if around:
        first, last, *_ = max(around)  # the innermost one begins last
        return any(first <= at <= last for at in drawing)
    return any(not any(each[0] <= at <= each[1] for each in source.functions) for at in drawing)


def _source_of(path: Path) -> _Source | None:
    """Return a parsed file; ``None`` if it is missing, too large, or no valid Python."""
    try:
        return _parsed(path.read_bytes()) if path.stat().st_size <= _LARGEST else None
    except (OSError, ValueError):  # a null byte in the name
        return None


# By content, not by path, so that a changed file is parsed again. Cached, as a file is queried for each
# function that each test executed.
@lru_cache(maxsize=64)
def _parsed(source: bytes) -> _Source | None:
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return _Source(
        functions=tuple(
            # The code of a function begins with its first decorator.
            (
                min(one.lineno for one in (node, *node.decorator_list)),
                node.end_lineno or 0,
                node.name,
                node.name.startswith("test")
                and not any("fixture" in ast.dump(one) for one in node.decorator_list),
            )
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ),
        chances=tuple(
            (node.lineno, not _is_chance(node, with_sets=False))
            for node in nodes
            if isinstance(node, ast.expr) and _is_chance(node)
        ),
    )


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
