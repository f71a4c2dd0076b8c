"""``python -m tools.names`` lists names and docstrings of the packages that are hard to understand.

These are modules named by a participle, docstrings that begin with a question word instead of a verb or a
noun, equal class names in several modules, and small modules with one importer. The exit status is 1 if
there are more than the known ones.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = ("planner", "pytest_planverify")
KNOWN = 2
"""Number of known places."""

SMALL = 60
QUESTION = re.compile(r"(What|Whether|Those|Who|Whose|Whom|How|Where|Which|That)\b")
PARTICIPLE = re.compile(r"(ing|ed)$")
NOUNS = {"authoring", "embed", "fencing", "routing", "sanitizing", "testing"}
"""Names that end like a participle, but are established nouns."""

Documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def places(root: Path) -> Iterator[str]:
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
    }
    classes: dict[str, set[Path]] = defaultdict(set)
    importers: dict[str, set[Path]] = defaultdict(set)
    for path, tree in trees.items():
        shown = path.relative_to(root)
        if PARTICIPLE.search(path.stem) and path.stem not in NOUNS:
            yield f"{shown}:1: the module is named by a participle"
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes[node.name].add(shown)
        for node in ast.walk(tree):
            if isinstance(node, Documented) and QUESTION.match(doc := ast.get_docstring(node) or ""):
                yield f"{shown}:{getattr(node, 'lineno', 1)}: {doc.splitlines()[0]}"
            elif isinstance(node, ast.ImportFrom):
                importers[node.module or ""].add(path)
                for each in node.names:
                    importers[f"{node.module}.{each.name}"].add(path)
    for name, where in sorted(classes.items()):
        if len(where) > 1 and not name.startswith("_"):
            yield f"{min(where)}:1: class {name} is in {', '.join(map(str, sorted(where)))}"
    for path in trees:
        shown = path.relative_to(root)
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines < SMALL and path.stem != "__init__":
            found = importers[".".join(shown.with_suffix("").parts)]
            if len(found) == 1:
                yield f"{shown}:1: {lines} lines, imported only by {min(found).relative_to(root)}"


if __name__ == "__main__":
    listed = list(places(Path(__file__).parents[1]))
    print("\n".join([*listed, f"{len(listed)} places"]))
    sys.exit(len(listed) > KNOWN)
