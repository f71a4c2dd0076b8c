"""Which lines of a Python file a reader needs who looks at one place in it: the function there, and what
that function uses of the same file."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from planner.edges.project.essential_lines import (
    Region,
    essential,
    in_docstring,
    without_docstring,
    words_of,
)
from planner.edges.project.imported_names import Imported, imports
from planner.edges.project.used_names import members, used, uses

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

WHOLE_FILE = 60
"""Lines. A file that is no longer is shown as it is."""

MOST_LINES = 80
"""Lines of one place with what it uses."""

WINDOW = 8
"""Lines before and after a line in a file whose structure cannot be told."""

MOST_OF_ONE = 40
"""Lines of one definition that is longer."""

_Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class PythonFile:
    """The structure of one file, as far as it can be told."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._count = len(lines)
        self._uses: dict[tuple[str, ...], Mapping[tuple[str, str | None], int]] = {}
        self._members: dict[tuple[str, ...], Mapping[str, int]] = {}
        self._inner: dict[tuple[str, ...], Mapping[str, Imported]] = {}

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

    @cached_property
    def _imported(self) -> dict[str, Imported]:
        nodes = ast.walk(self._tree) if self._tree else ()
        return {name: source for node in nodes for name, source in imports(node)}

    def at_line(self, line: int, words: Collection[str] = ()) -> list[Region]:
        """The lines to show for a line, those that matter most first; ``words`` are of the failure."""
        if self._count <= WHOLE_FILE:
            return [(1, self._count)]
        path = _enclosing(self._tree, line) if self._tree else []
        if not path:
            return [self._window(line)]
        return self._with_uses(path, line, words, only_imports=True)

    def of_name(self, names: Sequence[str], words: Collection[str] = ()) -> tuple[int, list[Region]] | None:
        """The line at which ``Class.method`` or ``function`` is defined, and the lines to show for it."""
        if self._count <= WHOLE_FILE and names:
            defined = re.compile(rf"\s*(?:async\s+def|def|class)\s+{re.escape(names[-1])}\b")
            at = next((number for number, line in enumerate(self._lines, 1) if defined.match(line)), None)
            return None if at is None else (at, [(1, self._count)])
        path = self._find(names)
        return None if path is None else (path[-1].lineno, self._with_uses(path, None, words))

    def imports_used_by(self, names: Sequence[str]) -> list[tuple[Imported, str | None]]:
        """What the function of that name uses that the file imports, each with the attribute that is used
        of it, in the order of use; also through the file's own fixtures and helpers."""
        path = self._find(names)
        if self._tree is None or path is None:
            return []
        imported = self._imported
        found: dict[tuple[Imported, str | None], None] = {}
        nodes = [path[-1], *(self._top[name] for name in _closure(path[-1], self._top))]
        for node in nodes:
            for name, attribute in uses(node):
                if name in imported:
                    found.setdefault((imported[name], attribute))
        return list(found)

    def reexport(self, name: str) -> Imported | None:
        """Where a name comes from that the file itself only imports."""
        node = self._top.get(name)
        return dict(imports(node)).get(name) if node is not None else None

    def names_at(self, line: int) -> tuple[str, ...]:
        """The names of the definitions around a line, the outermost first."""
        return tuple(node.name for node in (_enclosing(self._tree, line) if self._tree else ()))

    def has(self, names: Sequence[str]) -> bool:
        """Whether the file defines that itself."""
        return self._statement(names) is not None

    def is_class(self, names: Sequence[str]) -> bool:
        return isinstance(self._statement(names), ast.ClassDef)

    def methods(self, names: Sequence[str]) -> list[str]:
        node = self._statement(names)
        body = node.body if isinstance(node, ast.ClassDef) else []
        return [each.name for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]

    def imported(self, name: str, within: tuple[str, ...] = ()) -> Imported | None:
        """Where a name comes from that the file imports, or the definition ``within`` it by itself."""
        return self._imported_within(within).get(name) or self._imported.get(name)

    def _imported_within(self, names: tuple[str, ...]) -> Mapping[str, Imported]:
        if names not in self._inner:
            nodes = [inner for node in self._own(names) for inner in ast.walk(node)]
            self._inner[names] = {name: source for node in nodes for name, source in imports(node)}
        return self._inner[names]

    def bases(self, names: Sequence[str]) -> list[tuple[str, str | None]]:
        """The names of the bases of a class, each with the attribute that is used of it."""
        node = self._statement(names)
        bases = node.bases if isinstance(node, ast.ClassDef) else []
        return [use for base in bases for use in uses(base)]

    @cached_property
    def stars(self) -> list[Imported]:
        """The modules of which the file imports every name."""
        nodes = [
            node for node in (self._tree.body if self._tree else ()) if isinstance(node, ast.ImportFrom)
        ]
        return [
            Imported(node.module or "", None, node.level)
            for node in nodes
            if any(alias.name == "*" for alias in node.names)
        ]

    def uses(self, names: tuple[str, ...]) -> Mapping[tuple[str, str | None], int]:
        """The names that a definition reads, with the attribute that it takes of each, and the first line.

        Of a class those of its own statements, not of its methods.
        """
        if names not in self._uses:
            found: dict[tuple[str, str | None], int] = {}
            for node in self._own(names):
                for name, attribute, line in used(node):
                    found.setdefault((name, attribute), line)
            self._uses[names] = found
        return self._uses[names]

    def members_used(self, names: tuple[str, ...]) -> Mapping[str, int]:
        """The attributes that a definition takes of anything, each with its first line; also those that its
        syntax stands for."""
        if names not in self._members:
            found: dict[str, int] = {}
            for node in () if self.is_class(names) else self._own(names):
                for name, line in members(node):
                    found[name] = min(line, found.get(name, line))
            self._members[names] = found
        return self._members[names]

    def _own(self, names: Sequence[str]) -> list[ast.AST]:
        node = self._statement(names)
        if not isinstance(node, ast.ClassDef):
            return [] if node is None else [node]
        own = [child for child in node.body if not isinstance(child, _DEFINITIONS)]
        return [*own, *node.bases, *node.decorator_list]

    @cached_property
    def _line_words(self) -> list[frozenset[str]]:
        return [words_of(line) if line.strip() else frozenset[str]() for line in self._lines]

    @cached_property
    def _word_lines(self) -> Counter[str]:
        """In how many lines each word stands."""
        return Counter(word for words in self._line_words for word in words)

    def told(self, line: int, words: Mapping[str, float]) -> float:
        """How much a line speaks of the words, the rare ones of the file more."""
        if not 1 <= line <= self._count:
            return 0.0
        counts = self._word_lines
        return sum(
            words[word] / counts[word] ** 0.5 for word in self._line_words[line - 1] if word in words
        )

    def span(self, names: Sequence[str]) -> Region | None:
        """The lines of a definition; of a class those before its first method."""
        node = self._statement(names)
        if node is None:
            return None
        first, last = _span(node)
        methods = node.body if isinstance(node, ast.ClassDef) else ()
        starts = [_span(child)[0] for child in methods if isinstance(child, _DEFINITIONS)]
        return first, min([last, *(start - 1 for start in starts)])

    def text(self, region: Region) -> str:
        return "\n".join(self._lines[region[0] - 1 : region[1]])

    def lines_with(self, word: str) -> list[int]:
        """The lines in which a name or a string of that text stands."""
        whole = re.compile(rf"\b{re.escape(word)}\b")
        return [number for number, line in enumerate(self._lines, 1) if whole.search(line)]

    def code_lines(self, names: Sequence[str]) -> list[int]:
        """The lines of a definition without its docstring."""
        node, (first, last) = self._statement(names), self.span(names) or (1, 0)
        return [line for line in range(first, last + 1) if node is None or not in_docstring(node, line)]

    def regions(self, names: Sequence[str], words: Collection[str]) -> list[Region]:
        """The lines to show of one definition, with the line of its class."""
        node, span = self._statement(names), self.span(names)
        if node is None or span is None:
            return []
        if isinstance(node, ast.ClassDef):
            return without_docstring(node, span[0], min(span[1], span[0] + MOST_OF_ONE))
        regions = essential(self._lines, node, span[0], words, None, MOST_OF_ONE)
        outer = [self._statement(names[:count]) for count in range(1, len(names))]
        return [*regions, *((each.lineno, each.lineno) for each in outer if each is not None)]

    def outline(self) -> list[tuple[int, str]]:
        """The names that the file binds at its top, and the methods of its classes, each with its line."""
        found = [(node.lineno, name) for name, node in self._top.items() if name != "*"]
        for node in self._top.values():
            if isinstance(node, ast.ClassDef):
                inner = (each for each in node.body if isinstance(each, _DEFINITIONS))
                found += [(each.lineno, f"{node.name}.{each.name}") for each in inner]
        return found

    def _statement(self, names: Sequence[str]) -> ast.stmt | None:
        """What defines that: a function, a class, or an assignment."""
        if not names:
            return None
        scope = self._top
        for name in names[:-1]:
            node = scope.get(name)
            if not isinstance(node, ast.ClassDef):
                return None
            scope = _definitions(node.body)
        found = scope.get(names[-1])
        return None if isinstance(found, ast.Import | ast.ImportFrom) else found

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

    def _with_uses(
        self,
        path: Sequence[_Definition],
        line: int | None,
        words: Collection[str],
        *,
        only_imports: bool = False,
    ) -> list[Region]:
        *outer, node = path
        first, last = _span(node)
        if last - first >= MOST_LINES:
            return essential(self._lines, node, first, words, line, MOST_LINES * 2 // 3)
        regions = essential(self._lines, node, first, words, line, MOST_LINES)
        room = MOST_LINES - sum(end - start + 1 for start, end in regions)
        regions += [(each.lineno, max(each.body[0].lineno - 1, each.lineno)) for each in outer]
        scope = dict(self._top)
        if outer and isinstance(outer[-1], ast.ClassDef):
            scope |= {f"self.{name}": found for name, found in _definitions(outer[-1].body).items()}
        for name in _closure(node, scope):
            start, end = _span(scope[name])
            if only_imports and not isinstance(scope[name], ast.Import | ast.ImportFrom):
                continue
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
        yield from (name for name, _ in imports(node))


def _closure(node: ast.AST, scope: dict[str, ast.stmt]) -> list[str]:
    """The names of the scope that a piece of code needs, also through others, the nearest first."""
    needed: dict[str, None] = {}
    todo: list[ast.AST] = [node]
    seen = {id(node)}
    for each in todo:
        for name, _ in uses(each):
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
