"""Selection of tests: narrowing by the user's options, and similar names for a missing test or path.

A worker runs its command's own ``-k``, ``-m`` and ``--deselect``, so those of the user are applied after
the collection.
"""

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
    """Deselect items that the user of this run did not request; return their node ids.

    ``items`` is changed in place. Selection follows the rules of pytest's own options.
    """
    keyword = Expression.compile(narrowing.keyword) if narrowing.keyword else None
    markexpr = Expression.compile(narrowing.markexpr) if narrowing.markexpr else None

    def is_requested(item: pytest.Item) -> bool:
        if keyword is not None and not keyword.evaluate(KeywordMatcher.from_item(item)):
            return False
        if markexpr is not None and not markexpr.evaluate(MarkMatcher.from_markers(item.iter_markers())):
            return False
        return not item.nodeid.startswith(narrowing.deselect) if narrowing.deselect else True

    dropped = [item for item in items if not is_requested(item)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        dropped_ids = set(map(id, dropped))
        items[:] = [item for item in items if id(item) not in dropped_ids]
    return [item.nodeid for item in dropped]


def alike_names(text: str, root: Path) -> list[str]:
    """Return up to three similar test names in the file of a node id that was not found.

    Names are those after the file: ``test_a`` or ``TestB::test_a``. ``root`` is the folder that the node id
    is relative to.
    """
    base, _, parameters = text.partition("[")
    file, *names = base.split("::")
    wanted = "::".join(names) + (f"[{parameters}" if parameters else "")
    return _similar_names(wanted, _tests_defined_in(Path(os.path.abspath(root / file))), cutoff=0.5)


def _similar_names(wanted: str, names: Iterable[str], *, cutoff: float) -> list[str]:
    """Return the up to three most similar names, ignoring the common prefix and suffix of tests.

    These would make any two names of tests look similar. ``cutoff`` is the least similarity, from 0 to 1.
    """
    bare = {_strip_test(name): name for name in sorted(names, reverse=True)}
    return [bare[each] for each in difflib.get_close_matches(_strip_test(wanted), bare, n=3, cutoff=cutoff)]


def _strip_test(name: str) -> str:
    return name.replace("test_", "").removesuffix(".py").removesuffix("_test")


def _tests_defined_in(path: Path) -> set[str]:
    """Return the test functions and methods that a file defines; it is parsed, not imported."""
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
    """Return up to three similar names beside a missing path, most similar first.

    If its folder is missing, too, names in the nearest existing folder are compared.
    """
    folder = path.parent
    while not folder.is_dir():
        folder = folder.parent
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except OSError:
        return []
    return _similar_names(path.name, names, cutoff=0.6)
