"""Chooses the lines of one definition that a reader needs: all of a short one; of a long one its head and
what speaks of the failure."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

Region: TypeAlias = tuple[int, int]
"""The first and the last line, counted from one."""

LONGEST_DOCSTRING = 8
"""Lines. Of a longer one the beginning is shown."""

MOST_WORDS = 400
"""Of one text."""

_COMMON = """
actual and any are arg args assert assertequal assertionerror bool but case class cls def did does
elif else equal error expect expected expects fail failed fails false for from function gave got had
has have implementation import init int isinstance kwargs lambda len list make must name none not
nothing number object one other output pass print product pytest python raise raised raises range
result return returned self should src str test tests that the then this todo true try tuple type
unittest value values was when where which while with without yield
"""
_SAYING_NOTHING = frozenset(_COMMON.split())
"""Words of any test, message or program."""

_HEAD = 12
"""Lines of a signature."""

_AROUND = 3
_BEGINNING = 3
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]{2,40}(?:_[A-Za-z0-9]{1,40}){0,8}")


def words_of(text: str) -> frozenset[str]:
    """The names and words of a text in small letters; of names with underscores the parts as well."""
    found: set[str] = set()
    for match in _WORD.finditer(text):
        word = match[0].lower()
        found.add(word)
        if "_" in word:
            found.update(part for part in word.split("_") if len(part) > 2)
        if len(found) >= MOST_WORDS:
            break
    return frozenset(found - _SAYING_NOTHING)


def essential(
    lines: Sequence[str], node: ast.stmt, first: int, words: Collection[str], at: int | None, most: int
) -> list[tuple[int, int]]:
    """The regions of the lines ``first`` to the end of ``node``, ``most`` lines or little more.

    ``words`` are those of the failure, ``at`` a line that has to be among them.
    """
    last = node.end_lineno or node.lineno
    body = _body_start(node)
    regions = without_docstring(node, first, last)
    if sum(end - start + 1 for start, end in regions) <= most:
        return regions
    head_end = max(first, min(_docstring_start(node) - 1, first + _HEAD))
    most -= head_end - first + 1
    chosen: set[int] = set()
    if at is not None and body <= at <= last:
        chosen.update(range(max(at - most // 3, body), min(at + most // 3, last) + 1))
    for line in _by_weight(lines, body, last, words):
        around = range(max(line - _AROUND, body), min(line + _AROUND, last) + 1)
        if len(chosen.union(around)) > most:
            break
        chosen.update(around)
    if not chosen:
        chosen.update(range(body, min(body + most, last + 1)))
    return [*_runs(sorted(chosen)), (first, head_end)]


def _by_weight(lines: Sequence[str], first: int, last: int, words: Collection[str]) -> list[int]:
    """The lines that speak of the words, the rarest words of the definition first."""
    told = {line: words_of(lines[line - 1]).intersection(words) for line in range(first, last + 1)}
    counts = Counter(word for found in told.values() for word in found)
    weights = {line: sum(1 / counts[word] for word in found) for line, found in told.items() if found}
    return sorted(weights, key=lambda line: (-weights[line], line))


def _docstring(node: ast.stmt) -> ast.stmt | None:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return None
    match node.body[0]:
        case ast.Expr(value=ast.Constant(value=str())) as text:
            return text
        case _:
            return None


def in_docstring(node: ast.stmt, line: int) -> bool:
    """Whether a line lies in the docstring of a definition."""
    text = _docstring(node)
    return text is not None and text.lineno <= line <= (text.end_lineno or text.lineno)


def _docstring_start(node: ast.stmt) -> int:
    text = _docstring(node)
    return _body_start(node) if text is None else text.lineno


def _body_start(node: ast.stmt) -> int:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.lineno
    text = _docstring(node)
    if text is not None and len(node.body) > 1:
        return (text.end_lineno or text.lineno) + 1
    return node.body[0].lineno


def without_docstring(node: ast.stmt, first: int, last: int) -> list[tuple[int, int]]:
    """The lines of a definition with no more than the beginning of a long docstring."""
    text = _docstring(node)
    if text is None or (text.end_lineno or text.lineno) - text.lineno < LONGEST_DOCSTRING:
        return [(first, last)]
    after = (text.end_lineno or text.lineno) + 1
    kept = (first, text.lineno + _BEGINNING - 1)
    return [kept, (after, last)] if after <= last else [kept]


def _runs(numbers: Sequence[int]) -> list[Region]:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs
