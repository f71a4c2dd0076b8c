"""Selection of tests: the narrowing that a user requests for a run, and similar names for a missing one."""

from __future__ import annotations

import ast
import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from _pytest.mark import KeywordMatcher, MarkMatcher
from _pytest.mark.expression import Expression

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from pytest_planverify.observe.spec import Narrowing


def narrow(config: pytest.Config, items: list[pytest.Item], narrowing: Narrowing) -> list[str]:
    """Deselect items that the user of this run did not request; return their node ids."""
    keyword = Expression.compile(narrowing.keyword) if narrowing.keyword else None
    markexpr = Expression.compile(narrowing.markexpr) if narrowing.markexpr else None

    def is_wanted(item: pytest.Item) -> bool:
        if keyword is not None and not keyword.evaluate(KeywordMatcher.from_item(item)):
            return False
        if markexpr is not None and not markexpr.evaluate(MarkMatcher.from_markers(item.iter_markers())):
            return False
        return not item.nodeid.startswith(narrowing.deselect) if narrowing.deselect else True

    dropped = [item for item in items if not is_wanted(item)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        gone = set(map(id, dropped))
        items[:] = [item for item in items if id(item) not in gone]
    return [item.nodeid for item in dropped]


def alike_names(text: str, root: Path) -> list[str]:
    """Return similar test names in the file of a node id that was not found."""
    base, _, parameters = text.partition("[")
    file, *names = base.split("::")
    wanted = "::".join(names) + (f"[{parameters}" if parameters else "")
    return _alike(wanted, _names_in(Path(os.path.abspath(root / file))), cutoff=0.5)


def _alike(wanted: str, names: Iterable[str], *, cutoff: float) -> list[str]:
    """Return the most similar names, ignoring the common prefix of tests."""
    bare = {_bare(name): name for name in sorted(names, reverse=True)}
    return [bare[each] for each in difflib.get_close_matches(_bare(wanted), bare, n=3, cutoff=cutoff)]


def _bare(name: str) -> str:
    return name.replace("test_", "").removesuffix(".py").removesuffix("_test")


def _names_in(path: Path) -> set[str]:
    """Return the test functions and methods defined in a file, from its text."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return set()
    nodes = [("", node) for node in tree.body]
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    nodes += [(f"{each.name}::", member) for each in classes for member in each.body]
    return {
        prefix + node.name
        for prefix, node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
    }


def alike_paths(path: Path) -> list[str]:
    """Return similar names beside a missing path, most similar first."""
    folder = path.parent
    while not folder.is_dir():
        folder = folder.parent
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except OSError:
        return []
    return _alike(path.name, names, cutoff=0.6)
