"""Detection of chance in code: random numbers, clocks, threads, or the order of sets.

Confirmation repeats a failing check more often where chance is found. The source is searched for calls by
their names, without imports or types. A false hit costs repeated runs, a missed one lets a flaky failure
count as deterministic.
"""

from __future__ import annotations

import ast
import os
import sys
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from planner.model.verdicts import EvidenceKind, Side
from planner.planfile.project_files import read_regular
from planner.text.python_text import parse_module

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from planner.model.evidence import Evidence

_ORDERS = frozenset({"set", "frozenset", "hash", "id"})
"""Calls whose results, or the order of whose elements, differ between processes."""
_MORE_CHANCE = frozenset(
    {"monotonic", "perf_counter", "sleep", "getpid"}
    | {"Thread", "ThreadPoolExecutor", "gather", "as_completed"}
)
"""Nondeterministic names beyond those in the catalog of impure calls."""
_CERTAIN = frozenset({"builtins.ImportError", "builtins.SyntaxError"})
"""Import errors that recur on every run, whatever else the module does."""
_LARGEST = 1 << 20
"""Size in bytes of a source file above which it is not parsed."""


class _Scope(NamedTuple):
    """A function of a module at any depth, or all code of the module that is in no function."""

    first: int
    """Line of its first decorator; 0 for the module."""
    last: int
    name: str
    is_helper: bool
    """Whether tests of the file may use it: it is a fixture, or no test by its name."""
    draws: bool
    """Whether it involves chance by other things than sets."""
    has_sets: bool


def depends_on_chance(
    piece: Evidence, root: Path, executed: Mapping[str, Collection[tuple[str, int, str]]] | None = None
) -> bool:
    """Return whether code executed by a failing test involves chance.

    ``executed`` are the product functions (path, first line, name) that each test executed, if a
    confirmation recorded them. The functions that the test names, or the traceback shows, always count.
    """
    kinds = {piece.exceptions[0].qualified, *piece.exceptions[0].bases} if piece.exceptions else set[str]()
    is_import = piece.kind is EvidenceKind.COLLECTION
    if is_import and not _CERTAIN.isdisjoint(kinds):
        return False
    frames = (frame for error in piece.exceptions for frame in error.frames)
    shown = [*piece.subjects, *(frame for frame in frames if frame.side in (Side.TEST, Side.PRODUCT))]
    places = {(each.path, each.line) for each in shown}
    if any(_function_draws(root / path, line, with_sets=not is_import) for path, line in places):
        return True
    file, _, names = (piece.nodeid or "").partition("::")
    # The test may use any fixture or helper of its file, but no other test.
    test = names.rpartition("::")[2].partition("[")[0]
    scopes = (_scopes_of(root / file) or ()) if file and not is_import else ()
    if any(each.draws or each.has_sets for each in scopes if each.name == test or each.is_helper):
        return True
    # Sets are common and mostly used for membership tests, so they do not count in all that ran.
    ran = (executed or {}).get(piece.nodeid or "", ())
    return any(_function_draws(root / path, first, with_sets=False) for path, first, _ in ran)


def _function_draws(path: Path, line: int, *, with_sets: bool = True) -> bool:
    """Return whether the innermost function around a line, or the module itself, involves chance."""
    scopes = _scopes_of(path)
    if scopes is None:
        # Repeated runs cost less than a flaky failure that counts as deterministic. Unlike Path.is_file()
        # these functions accept names of any length: a test may compile code under any name.
        return os.path.isfile(path) and os.path.getsize(path) > _LARGEST
    scope = max(each for each in scopes if each.first <= line <= each.last)  # the innermost begins last
    return scope.draws or (with_sets and scope.has_sets)


def _scopes_of(path: Path) -> tuple[_Scope, ...] | None:
    """Return the functions and the module of a file; ``None`` if it is missing or too large."""
    try:
        return _parsed(read_regular(path, _LARGEST))
    except (OSError, ValueError):  # also of a larger file, and for a null byte in the name
        return None


# By content, not by path, so that a changed file is parsed again. Cached, as a file is queried for each
# function that each test executed.
@lru_cache(maxsize=64)
def _parsed(source: bytes) -> tuple[_Scope, ...]:
    nodes = list(ast.walk(parse_module(source)))
    scopes: list[_Scope] = []
    inside = set[ast.AST]()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = list(ast.walk(node))
            inside.update(own)
            names = (each for decorator in node.decorator_list for each in ast.walk(decorator))
            is_fixture = any("fixture" in getattr(each, "attr", getattr(each, "id", "")) for each in names)
            first = min(each.lineno for each in (node, *node.decorator_list))
            is_helper = is_fixture or not node.name.startswith("test")
            scopes.append(_Scope(first, node.end_lineno or 0, node.name, is_helper, *_chances(own)))
    outside = [node for node in nodes if node not in inside]
    return (*scopes, _Scope(0, sys.maxsize, "", False, *_chances(outside)))


def _chances(nodes: Sequence[ast.AST]) -> tuple[bool, bool]:
    """Return whether nodes involve chance by nondeterministic calls, and by the order of sets."""
    calls = {
        node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    }
    has_sets = any(isinstance(node, ast.Set | ast.SetComp) for node in nodes)
    return not calls.isdisjoint(_names_of_chance()), has_sets or not calls.isdisjoint(_ORDERS)


@cache
def _names_of_chance() -> frozenset[str]:
    """Return the last components of the names of nondeterministic calls.

    Imports are not resolved, so names that mean something else in other modules are left out.
    """
    from planner.catalog.impure_calls import GENERATORS, IMPURE_CALLS

    drawn = [name for name, kind in IMPURE_CALLS.items() if kind != "network"]
    return frozenset(name.rpartition(".")[2] for name in (*drawn, *GENERATORS)) | _MORE_CHANCE
