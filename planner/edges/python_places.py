"""Which lines of a Python file a reader needs who looks at one place in it: the function there, and what
that function uses of the same file."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Region: TypeAlias = tuple[int, int]
"""The first and the last line, counted from one."""

WHOLE_FILE = 60
"""Lines. A file that is no longer is shown as it is."""

MOST_LINES = 80
"""Lines of one place with what it uses."""

WINDOW = 8
"""Lines before and after a line in a file whose structure cannot be told."""

_Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Imported:
    """Where a name of a module comes from."""

    module: str
    """Without the leading dots of a relative import."""
    name: str | None
    """Of ``from module import name``; ``None`` where the module itself is meant."""
    level: int
    """The number of leading dots."""


class PythonFile:
    """The structure of one file, as far as it can be told."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._count = len(lines)

    @cached_property
    def _tree(self) -> ast.Module | None:
        """Only where it is asked for: a short file is shown without being understood."""
        try:
            return ast.parse("\n".join(self._lines))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @cached_property
    def _top(self) -> dict[str, ast.stmt]:
        return _definitions(self._tree.body) if self._tree else {}

    def at_line(self, line: int) -> list[Region]:
        """The lines to show for a line, those that matter most first."""
        if self._count <= WHOLE_FILE:
            return [(1, self._count)]
        path = _enclosing(self._tree, line) if self._tree else []
        if not path:
            return [self._window(line)]
        return self._with_uses(path, line)

    def of_name(self, names: Sequence[str]) -> tuple[int, list[Region]] | None:
        """The line at which ``Class.method`` or ``function`` is defined, and the lines to show for it."""
        if self._count <= WHOLE_FILE and names:
            defined = re.compile(rf"\s*(?:async\s+def|def|class)\s+{re.escape(names[-1])}\b")
            at = next((number for number, line in enumerate(self._lines, 1) if defined.match(line)), None)
            return None if at is None else (at, [(1, self._count)])
        path = self._find(names)
        return None if path is None else (path[-1].lineno, self._with_uses(path, path[-1].lineno))

    def imports_used_by(self, names: Sequence[str]) -> list[tuple[Imported, str | None]]:
        """What the function of that name uses that the file imports, each with the attribute that is used
        of it, in the order of use; also through the file's own fixtures and helpers."""
        path = self._find(names)
        if self._tree is None or path is None:
            return []
        imported = {name: source for node in ast.walk(self._tree) for name, source in _imports(node)}
        found: dict[tuple[Imported, str | None], None] = {}
        nodes = [path[-1], *(self._top[name] for name in _closure(path[-1], self._top))]
        for node in nodes:
            for name, attribute in _uses(node):
                if name in imported:
                    found.setdefault((imported[name], attribute))
        return list(found)

    def reexport(self, name: str) -> Imported | None:
        """Where a name comes from that the file itself only imports."""
        node = self._top.get(name)
        return dict(_imports(node)).get(name) if node is not None else None

    def _find(self, names: Sequence[str]) -> list[_Definition] | None:
        body = self._tree.body if self._tree else []
        path: list[_Definition] = []
        for name in names:
            node = next((n for n in body if isinstance(n, _DEFINITIONS) and n.name == name), None)
            if node is None:
                return None
            path.append(node)
            body = node.body
        return path or None

    def _with_uses(self, path: Sequence[_Definition], line: int) -> list[Region]:
        *outer, node = path
        first, last = _span(node)
        if last - first >= MOST_LINES:
            start, end = self._window(line, MOST_LINES // 3)
            return [(max(start, first), min(end, last)), (first, min(node.body[0].lineno, start))]
        regions = [(first, last)]
        room = MOST_LINES - (last - first + 1)
        regions += [(each.lineno, max(each.body[0].lineno - 1, each.lineno)) for each in outer]
        scope = dict(self._top)
        if outer and isinstance(outer[-1], ast.ClassDef):
            scope |= {f"self.{name}": found for name, found in _definitions(outer[-1].body).items()}
        for name in _closure(node, scope):
            start, end = _span(scope[name])
            if end - start < room and not first <= start <= last:
                regions.append((start, end))
                room -= end - start + 1
        return regions

    def _window(self, line: int, around: int = WINDOW) -> Region:
        line = min(max(line, 1), self._count)
        return max(line - around, 1), min(line + around, self._count)


def contiguous(regions: Iterable[Region], gap: int = 2) -> list[Region]:
    """The regions in the order of the file, those that touch, or nearly, made one."""
    joined: list[Region] = []
    for first, last in sorted(region for region in regions if region[0] <= region[1]):
        if joined and first <= joined[-1][1] + gap + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


def _definitions(body: Iterable[ast.stmt]) -> dict[str, ast.stmt]:
    """By the name that they bind: functions, classes, assignments and imports."""
    found: dict[str, ast.stmt] = {}
    for node in body:
        for name in _bound(node):
            found.setdefault(name, node)
    return found


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, _DEFINITIONS):
        yield node.name
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (name for name, _ in _imports(node))


def _imports(node: ast.AST) -> Iterator[tuple[str, Imported]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0], Imported(alias.name, None, 0)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name, Imported(node.module or "", alias.name, node.level)


def _uses(node: ast.AST) -> list[tuple[str, str | None]]:
    """The names that a piece of code reads, in the order of the text, with the attribute that it takes of
    them; arguments too, for a test's arguments are its fixtures."""
    attributes: dict[int, str] = {}
    found: list[tuple[int, int, str, str | None]] = []
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            attributes[id(each.value)] = each.attr
            if isinstance(each.value, ast.Name) and each.value.id == "self":
                found.append((each.lineno, each.col_offset, f"self.{each.attr}", None))
        elif isinstance(each, ast.Name):
            found.append((each.lineno, each.col_offset, each.id, attributes.get(id(each))))
        elif isinstance(each, ast.arg):
            found.append((each.lineno, each.col_offset, each.arg, None))
    found.sort(key=lambda use: use[:2])
    return [(name, attribute) for _, _, name, attribute in found]


def _closure(node: ast.AST, scope: dict[str, ast.stmt]) -> list[str]:
    """The names of the scope that a piece of code needs, also through others, the nearest first."""
    needed: dict[str, None] = {}
    todo: list[ast.AST] = [node]
    seen = {id(node)}
    for each in todo:
        for name, _ in _uses(each):
            found = scope.get(name)
            if found is not None and id(found) not in seen:
                seen.add(id(found))
                needed.setdefault(name)
                todo.append(found)
    return list(needed)


def _enclosing(tree: ast.Module, line: int) -> list[_Definition]:
    """The definitions around a line, the outermost first; of nested functions only the outermost."""
    path: list[_Definition] = []
    body: list[ast.stmt] = tree.body
    while True:
        inside = (n for n in body if isinstance(n, _DEFINITIONS) and _span(n)[0] <= line <= _span(n)[1])
        node = next(inside, None)
        if node is None:
            return path
        path.append(node)
        if not isinstance(node, ast.ClassDef):
            return path
        body = node.body


def _span(node: ast.stmt) -> Region:
    decorators = node.decorator_list if isinstance(node, _DEFINITIONS) else []
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return first, node.end_lineno or node.lineno
