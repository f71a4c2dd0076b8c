"""Changed hunks by function, as facts for the diagnosis.

A change belongs to the innermost function or class around it in the current syntax tree. All changes of
one function form one hunk. Diffs come from git or, for files of a baseline, from :func:`compare`; both have
the form of a unified diff without its header.
"""

from __future__ import annotations

import ast
import difflib
import re
from typing import TYPE_CHECKING, NamedTuple

from planner.model.evidence import Hunk
from planner.text.redaction import redact
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from planner.model.verdicts import Side

MOST_HUNKS = 300
"""Limit of hunks of all files."""
LARGEST = 1 << 20
"""Limit in bytes; larger files are listed without hunks."""

_MOST_TEXT_LINES = 40
_LONGEST_LINE = 200
_MOST_LOOSE = 20
"""Limit of hunks of one file outside of functions, so that a data table does not crowd out other files."""
_CONTEXT = 2
"""Unchanged lines that are shown before and after a change."""
_MOST_COMPARED_LINES = 20_000
"""Limit of lines of both files together: the time of difflib can grow with their square."""
_RANGES = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


class Span(NamedTuple):
    """The lines of a function or class, from 1, including decorators."""

    first: int
    last: int
    column: int
    name: str
    """Qualified name; nested functions are joined by a dot."""


class _Piece(NamedTuple):
    """Consecutive changed lines of one function, or of the module level (``function`` is ``None``)."""

    line: int
    added: int
    removed: int
    function: str | None
    text: tuple[str, ...]


def spans_of(source: str | bytes) -> list[Span]:
    """Return the functions and classes of a module, outer ones first; empty if it does not parse."""
    found: list[Span] = []
    # A stack instead of recursion: deeply nested expressions would exceed the recursion limit.
    pending: list[tuple[ast.AST, str]] = [(_parsed(source), "")]
    while pending:
        node, prefix = pending.pop()
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                # ``lineno`` is that of ``def``, but a changed decorator changes the function, too.
                first = min((child.lineno, *(each.lineno for each in child.decorator_list)))
                last = child.end_lineno or child.lineno
                found.append(Span(first, last, child.col_offset, prefix + child.name))
                name = f"{prefix}{child.name}."
            pending.append((child, name))
    return sorted(found)


def function_at(spans: Iterable[Span], line: int) -> str | None:
    """Return the qualified name of the innermost function or class around a line, or ``None``."""
    around = [span for span in spans if span.first <= line <= span.last]
    return max(around, key=lambda span: span.first).name if around else None


def run_at_import(source: str) -> frozenset[str]:
    """Return the qualified names of the functions that a module runs while it is imported.

    Its body, class bodies, decorators and defaults call them by name, or a function does that they call.
    Empty if the source does not parse.
    """
    tree = _parsed(source)
    calls: dict[str, set[str]] = {"": set()}  # names that each function calls; of the import under ""
    defined: dict[str, list[str]] = {}  # qualified names of functions by the name that calls them
    pending: list[tuple[ast.AST, str, str]] = [(tree, "", "")]  # node, enclosing names, running function
    while pending:
        node, prefix, running = pending.pop()
        inner: list[ast.AST] = []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = prefix + node.name
            defined.setdefault(node.name, []).append(name)
            if node.name == "__init__":  # run by a call of its class
                defined.setdefault(prefix.rstrip(".").rpartition(".")[2], []).append(name)
            calls.setdefault(name, set())
            calls[running] |= {_called(each) for each in node.decorator_list}
            pending += [(each, f"{name}.", name) for each in node.body]
            # Decorators and defaults run where the function is defined, its body only when it is called.
            inner = [*node.decorator_list, node.args]
        elif isinstance(node, ast.ClassDef):
            calls[running] |= {_called(each) for each in node.decorator_list}
            # The body of a class runs at once, in the code around it.
            pending += [(each, f"{prefix}{node.name}.", running) for each in node.body]
            inner = [*node.decorator_list, *node.keywords]
        elif not isinstance(node, ast.Lambda):  # whose body does not run where it is written
            inner = list(ast.iter_child_nodes(node))
            calls[running] |= {_called(node)} if isinstance(node, ast.Call) else set()
        pending += [(each, prefix, running) for each in inner]
    found: set[str] = set()
    reached = list(calls[""])
    while reached:
        for name in defined.get(reached.pop(), ()):
            if name not in found:
                found.add(name)
                reached += calls[name]
    return frozenset(found)


def _parsed(source: str | bytes) -> ast.Module:
    """Return the syntax tree of a module, empty if it does not parse."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _called(node: ast.AST) -> str:
    """Return the last part of the name that a call or decorator names; empty for other expressions."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def compare(before: str, now: str) -> list[str]:
    """Return the lines of a unified diff without header; empty for files that are too long."""
    then, lines = _lines_of(before), _lines_of(now)
    if len(then) + len(lines) > _MOST_COMPARED_LINES:
        return []
    return list(difflib.unified_diff(then, lines, lineterm="", n=3))[2:]  # without the names of the files


def _lines_of(text: str) -> list[str]:
    """Return the lines of a text, without their ends."""
    # Not splitlines(), which breaks lines at form feeds, too, where the parser and git count none.
    text = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    return text.split("\n") if text else []


def parts_of_diff(diff: bytes) -> dict[str, list[str]]:
    """Return git's diff of several files by path, each without header; binary files have no entry."""
    found: dict[str, list[str]] = {}
    former = ""
    lines: list[str] | None = None  # ``None`` while in the header of a file
    for line in diff.decode("utf-8", "replace").split("\n"):
        if line.startswith("diff --git "):
            # A name that git quotes, as it contains a quote or a tab, is in no form that is read here.
            former, lines = "", None
        elif lines is None and line.startswith("rename to "):
            found.setdefault(line.removeprefix("rename to "), [])  # without changes nothing else follows
        elif lines is None and line.startswith("--- a/"):
            former = line[6:].rstrip("\t")  # git appends a tab to a path that contains spaces
        elif lines is None and line.startswith("+++ "):
            # A deleted file is ``/dev/null`` here.
            path = line[6:].rstrip("\t") if line.startswith("+++ b/") else former
            lines = found.setdefault(path, [])
        elif lines is not None:
            lines.append(line)
    return found


def hunks_of(path: str, diff: Sequence[str], now: str, side: Side | None) -> Iterator[Hunk]:
    """Yield the hunks of one file from its diff; ``now`` is its current text.

    Texts are sanitized, redacted and clipped.
    """
    spans = spans_of(now) if path.endswith((".py", ".pyi")) else []
    pieces: dict[object, _Piece] = {}
    loose = 0
    for piece in _pieces(diff, spans):
        loose += piece.function is None
        # Pieces outside of functions stay separate up to the limit; the rest is joined with the last one.
        key = min(loose, _MOST_LOOSE) if piece.function is None else piece.function
        if known := pieces.get(key):
            added, removed = known.added + piece.added, known.removed + piece.removed
            piece = _Piece(known.line, added, removed, known.function, (*known.text, *piece.text))
        pieces[key] = piece
    for piece in pieces.values():
        text = [line[:_LONGEST_LINE] for line in piece.text[:_MOST_TEXT_LINES]]
        yield Hunk(
            path=path,
            line=piece.line,
            added=piece.added,
            removed=piece.removed,
            function=piece.function,
            side=side,
            text=redact(clean("\n".join(text))),
        )


def new_file(text: str) -> list[str]:
    """Return the diff of a new file, all of whose lines are added."""
    lines = _lines_of(text)
    return [f"@@ -0,0 +1,{len(lines)} @@", *(f"+{line}" for line in lines)]


def _pieces(diff: Sequence[str], spans: Sequence[Span]) -> Iterator[_Piece]:
    """Yield the blocks of changed lines of a diff, split at function boundaries.

    ``line`` counts the lines of the current file.
    """
    line = at = 0
    while at < len(diff):
        text = diff[at]
        if found := _RANGES.match(text):
            line = int(found[1]) + (found[2] == "0")  # an empty range names the line before it
        elif text[:1] in "+-" and text:
            end = at
            while end < len(diff) and diff[end][:1] in ("+", "-", "\\"):
                end += 1
            yield from _split(diff, at, end, line, spans)
            line += sum(each.startswith("+") for each in diff[at:end])
            at = end
            continue
        elif not text.startswith("\\"):
            line += 1
        at += 1


def _split(diff: Sequence[str], start: int, end: int, line: int, spans: Sequence[Span]) -> Iterator[_Piece]:
    """Split a block of changed lines, ``diff[start:end]``, at function boundaries.

    ``line`` is the first line of the block in the current file.
    """
    removed = [text for text in diff[start:end] if text.startswith("-")]
    added = [text for text in diff[start:end] if text.startswith("+")]
    before, after = (
        [text for text in around if text.startswith(" ")]
        for around in (diff[max(start - _CONTEXT, 0) : start], diff[end : end + _CONTEXT])
    )
    groups: list[tuple[str | None, int, list[str]]] = []
    for number, text in enumerate(added, line):
        place = function_at(spans, number)
        # Blank lines stay with the lines above, so that they start no piece of their own.
        if groups and (groups[-1][0] == place or not text[1:].strip()):
            groups[-1][2].append(text)
        else:
            groups.append((place, number, [text]))
    groups = groups or [(_place_of_removed(removed, line, spans), line, [])]
    for group in groups:
        place, first, texts = group
        # Removed lines have no place in the current file: the first added lines replace them.
        replaced = removed if group is groups[0] else []
        shown = (*(before if group is groups[0] else ()), *replaced, *texts)
        shown += tuple(after) if group is groups[-1] else ()
        yield _Piece(first, len(texts), len(replaced), place, shown)


def _place_of_removed(removed: Sequence[str], line: int, spans: Sequence[Span]) -> str | None:
    """Return the function that removed lines belonged to, given the current line at their place.

    The first removed line has to be indented deeper than the function's ``def``. The function may end right
    above the place, if its last lines were removed.
    """
    first = next((text[1:] for text in removed if text[1:].strip()), "")
    indent = len(first) - len(first.lstrip())
    around = [span for span in spans if span.column < indent and span.first < line <= span.last + 1]
    return max(around, key=lambda span: span.first).name if around else None
