"""Lays small projects out in folders of their own, commits them, edits them, and says where an edit is."""

from __future__ import annotations

import ast
import fnmatch
import os
import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tools.corpus.case import Place

if TYPE_CHECKING:
    from small_projects.bundles import Edit, SmallProject

IGNORED = ".planverify/\n.pytest_cache/\n__pycache__/\n"
ENVIRONMENT = {
    name: value
    for person in ("AUTHOR", "COMMITTER")
    for name, value in (
        (f"GIT_{person}_NAME", "Corpus"),
        (f"GIT_{person}_EMAIL", "corpus@example.org"),
        (f"GIT_{person}_DATE", "2026-01-05T10:00:00Z"),
    )
}
REMARKS = (
    "# Kept small on purpose: callers depend on every name here.",
    "# See the change log for the history of this module.",
    "# Reviewed together with the tests of this module.",
    "# The order of the definitions follows the documentation.",
)
"""Harmless additions to product files."""
EXTRA_TESTS = (
    "def test_sorting_is_stable():\n    assert sorted([3, 1, 2]) == [1, 2, 3]\n",
    "def test_text_is_stripped_of_blanks():\n    assert '  a '.strip() == 'a'\n",
    "def test_an_empty_list_is_falsy():\n    assert not []\n",
)
"""Harmless additions to the tests."""


def lay_out(folder: Path, files: dict[str, str]) -> None:
    """Write the files into a new folder and commit them."""
    write(folder, {".gitignore": IGNORED, **files})
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-q", "-m", "All tests are green")


def write(folder: Path, files: dict[str, str], before: dict[str, str] | None = None) -> None:
    """Write the files that differ from those before, and remove those that are gone."""
    known = before or {}
    for path, text in sorted(files.items()):
        if known.get(path) != text:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    for path in sorted(set(known) - set(files)):
        (folder / path).unlink()


def with_company(
    project: SmallProject, files: dict[str, str], edits: tuple[Edit, ...], rng: random.Random
) -> None:
    """Put a harmless change beside the edits, in about half of all cases, in a file of its own."""
    if rng.random() < 0.5:
        return
    taken = {edit.path for edit in edits}
    tests = _free(project.tests, files, taken)
    product = [path for path in _free(project.product, files, taken) if not _is_test(project, path)]
    side = rng.choice(("product", "test")) if product and tests else "product" if product else "test"
    if side == "product":
        path = rng.choice(product)
        files[path] = f"{files[path]}\n{rng.choice(REMARKS)}\n"
    elif tests:
        path = rng.choice(tests)
        files[path] = f"{files[path]}\n\n{rng.choice(EXTRA_TESTS)}"


def place_of(edit: Edit, after: dict[str, str], *, exact: bool) -> Place:
    """Where an edit has left its mark in the file as it is now."""
    text = after.get(edit.path)
    if text is None:
        return Place(path=edit.path)
    old, new = edit.old.splitlines(), edit.new.splitlines()
    at = max(text.find(edit.new), 0)
    first = text.count("\n", 0, at) + 1
    same = _common(old, new)
    last = first + max(len(new) - _common(old[same:][::-1], new[same:][::-1]), same + 1) - 1
    first = min(first + same, text.count("\n"))
    return Place(
        path=edit.path,
        first_line=first,
        last_line=max(first, last),
        function=_function(edit.path, text, first),
        exact=exact,
    )


def snippet(text: str, limit: int = 400) -> str:
    """A few lines of source."""
    return text if len(text) <= limit else text[:limit] + "…"


def _is_test(project: SmallProject, path: str) -> bool:
    return any(fnmatch.fnmatch(path, glob) for glob in project.tests)


def _common(one: list[str], other: list[str]) -> int:
    """How many lines are the same at the beginning."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


def _free(globs: tuple[str, ...], files: dict[str, str], taken: set[str]) -> list[str]:
    return [
        path
        for path in sorted(files)
        if path not in taken
        and path.endswith(".py")
        and not path.endswith(("__init__.py", "conftest.py"))
        and any(fnmatch.fnmatch(path, glob) for glob in globs)
    ]


def _function(path: str, text: str, line: int) -> str | None:
    if not path.endswith(".py"):
        return None
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    return _innermost(tree, line)


def _innermost(node: ast.AST, line: int) -> str | None:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if (found := _innermost(child, line)) is not None:
                return found
        elif child.lineno <= line <= (child.end_lineno or child.lineno):
            inner = _innermost(child, line)
            if inner is not None:
                return f"{child.name}.{inner}"
            return None if isinstance(child, ast.ClassDef) else child.name
    return None


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", *arguments], cwd=folder, check=True, env=os.environ | ENVIRONMENT, capture_output=True
    )
