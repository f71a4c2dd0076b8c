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
from planner.text.python_text import parse_module
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
_MOST_WITH_DOCSTRING = 20
"""Limit of lines of a hunk with docstrings; they would crowd out the code of a longer one in a brief."""
_LONGEST_LINE = 200
_MOST_LOOSE = 20
"""Limit of hunks of one file outside of functions, so that a data table does not crowd out other files."""
_MOST_COMPARED_LINES = 20_000
"""Limit of lines of both files together: the time of difflib can grow with their square."""
_RANGES = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_REMOVED_DOCSTRING = re.compile(
    # First, or below the changed line of its definition: quotes below other lines may end a string.
    r"(?:\A|(?<=:\n))-[ \t]+[rR]?(\"{3}|'{3})(?:(?:(?!\1).)*\n-)+(?:(?!\1).)*\1[ \t]*(?:\n|\Z)"
)
"""Matches a removed docstring of several lines in the text of a hunk."""


class Span(NamedTuple):
    """The lines of a function or class, from 1, including decorators."""

    first: int
    last: int
    column: int
    name: str
    """Qualified name; nested functions are joined by a dot."""
    docstring: range
    """The lines of its docstring."""


def spans_of(source: str | bytes) -> list[Span]:
    """Return the functions and classes of a module, outer ones first; empty if it does not parse."""
    found: list[Span] = []
    # A stack instead of recursion: deeply nested expressions would exceed the recursion limit.
    pending: list[tuple[ast.AST, str]] = [(parse_module(source), "")]
    while pending:
        node, prefix = pending.pop()
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                # ``lineno`` is that of ``def``, but a changed decorator changes the function, too.
                first = min((child.lineno, *(each.lineno for each in child.decorator_list)))
                last = child.end_lineno or child.lineno
                text = child.body[0] if ast.get_docstring(child, clean=False) is not None else None
                lines = range(text.lineno, (text.end_lineno or text.lineno) + 1) if text else range(0)
                found.append(Span(first, last, child.col_offset, prefix + child.name, lines))
                name = f"{prefix}{child.name}."
            pending.append((child, name))
    return sorted(found)


def names_by_line(spans: Iterable[Span]) -> dict[int, str]:
    """Return the qualified name of the innermost function or class by line; ``spans`` are sorted."""
    return {line: span.name for span in spans for line in range(span.first, span.last + 1)}


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


def hunks_of(path: str, diff: Iterable[str], now: str, side: Side | None) -> Iterator[Hunk]:
    """Yield the hunks of one file from its diff; ``now`` is its current text.

    Texts are sanitized, redacted and clipped.
    """
    spans = spans_of(now) if path.endswith((".py", ".pyi")) else []
    names = names_by_line(spans)
    documented = {number for span in spans for number in span.docstring}
    found: dict[object, tuple[int, str | None, list[tuple[str, bool]]]] = {}
    # Values: line, function, and changed lines, each with whether it is of a docstring.
    line = loose = 0  # of the current file; blocks outside of functions
    current: object = None  # the hunk of the last changed line
    waiting: list[str] = []  # removed lines, and leading blank ones, that belong to no hunk yet
    for text in (*diff, ""):  # the last one ends the last block
        is_added, is_blank = text.startswith("+"), not text[1:].strip()
        if text.startswith("\\"):
            continue
        if text.startswith("-") or (is_added and is_blank and current is None):
            waiting.append(text)
            line += is_added
            continue
        # Removed lines have no place in the current file: the added lines below replace them.
        changed = [*waiting, text] if is_added else waiting
        if changed:
            place = names.get(line) if is_added else _place_of_removed(changed, line, spans)
            # Blank lines stay with the lines above, so that they start no hunk of their own.
            if current is None or (is_added and not is_blank and place != found[current][1]):
                loose += place is None
                # Blocks outside of functions stay separate up to the limit; the rest joins the last one.
                current = min(loose, _MOST_LOOSE) if place is None else place
                # Lines that were removed from the end of a function are placed at its new last line.
                is_inside = f"{names.get(line)}.".startswith(f"{place}.")
                found.setdefault(current, (line if is_inside or place is None else line - 1, place, []))
            first, function, lines = found[current]
            lines += ((each, each is text and line in documented) for each in changed)
            # A docstring is never at fault if code was changed, too.
            if first in documented and line not in documented:
                found[current] = (line, function, lines)
        waiting = []
        if is_added:
            line += 1
        else:
            current = None
            ranges = _RANGES.match(text)
            # An empty range names the line before it.
            line = int(ranges[1]) + (ranges[2] == "0") if ranges else line + 1
    for first, function, marked in found.values():
        lines = [text for text, _ in marked]
        kept = "\n".join(text for text, is_docstring in marked if not is_docstring)
        code = _REMOVED_DOCSTRING.sub("", kept).split("\n")
        has_code = any(text[1:].strip() for text in code)
        told = code if has_code and len(lines) > _MOST_WITH_DOCSTRING else lines
        shown = [text[:_LONGEST_LINE] for text in told[:_MOST_TEXT_LINES]]
        yield Hunk(
            path=path,
            line=first,
            added=sum(text.startswith("+") for text in lines),
            removed=sum(text.startswith("-") for text in lines),
            function=function,
            side=side,
            text=redact(clean("\n".join(shown))),
        )


def _place_of_removed(removed: Sequence[str], line: int, spans: Sequence[Span]) -> str | None:
    """Return the function that removed lines belonged to, given the current line at their place.

    The first removed line has to be indented deeper than the function's ``def``. The function may end right
    above the place, if its last lines were removed.
    """
    first = next((text[1:] for text in removed if text[1:].strip()), "")
    indent = len(first) - len(first.lstrip())
    around = [span for span in spans if span.column < indent and span.first < line <= span.last + 1]
    return max(around, key=lambda span: span.first).name if around else None
