"""Phrases of suggestions: frames, quoted values, similar names, and what changed."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.evidence import Evidence, ExceptionFact, Frame

_COMPARISON = re.compile(
    r"^assert (?P<left>.+?) (?P<operator>==|!=|<=|>=|<|>|is not|is|not in|in) (?P<right>.+)$"
)
_UNITTEST = re.compile(r"^(?:(?:First )?\w+ differ: )?(?P<left>.+?) != (?P<right>.+?)(?: : .*)?$")
"""A failed assertEqual: ``1 != 2``, ``Lists differ: [1] != [2]``, with or without a message."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{4,}")
_WHERE = re.compile(r"^ *\+ +(?:where|and) +(?P<value>.+?) = (?P<call>[^\n]+)$", re.MULTILINE)
_FUNCTION = re.compile(
    r"<(?:function|bound method|built-in function|class) '?(?P<name>[\w.<>]+?)'?"
    r"(?: (?:at|of) [^<>]*(?:<[^<>]*>[^<>]*)*)?>"
)
_OBJECT = re.compile(r"<(?P<name>[\w.]+) object at [^<>]*>")
_LONGEST_VALUE = 60
"""Limit of characters of each compared value."""
_BEFORE_DIFFERENCE = 20
"""Characters that are shown before the first difference of long values."""
_SINCE = {"baseline": "the baseline", "commit": "the last commit", "green": "the last green run"}


def names_file(text: str, path: str) -> bool:
    """Return whether a text contains the whole path of a file, which has a suffix."""
    # A bare name must not be the end of another path.
    before = r"(?<![\w.-])" if "/" in path else r"(?<![\w/.-])(?:\./)?"
    return "." in path and re.search(rf"{before}{re.escape(path)}(?![\w-])", text) is not None


def place(frame: Frame | None, unknown: str = "the code") -> str:
    """Return function and position of a frame: ``compute_rsi (indicators/rsi.py:31)``.

    At module level the position alone.
    """
    if frame is None:
        return unknown
    at = f"{frame.path}:{frame.line}"
    return at if frame.function == "<module>" else f"{frame.function.replace('.<locals>', '')} ({at})"


def quote(text: str, limit: int = 160) -> str:
    """Return the first line of a text without memory addresses, clipped to ``limit`` characters."""
    line = _ADDRESS.sub("", text.strip().partition("\n")[0].strip())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def error_text(error: ExceptionFact) -> str:
    """Return type and message of an exception on one line: ``ValueError: bad period``."""
    return quote(f"{error.type}: {error.message}" if error.message else error.type)


def nearest(names: Iterable[str]) -> str:
    """Return the end of a sentence: ``; the nearest existing name is compute_rsi``; empty without names."""
    first = next(iter(names), None)
    return f"; the nearest existing name is {first}" if first else ""


def alike(name: str, names: Iterable[str], cutoff: float = 0.75) -> str | None:
    """Return the most similar of ``names``, or ``None``; ``cutoff`` is the minimum similarity, 0 to 1."""
    return next(iter(difflib.get_close_matches(name, sorted(names), n=1, cutoff=cutoff)), None)


def comparison(error: ExceptionFact) -> tuple[str, str, str] | None:
    """Return the compared values of a failed assertion as rendered: left, operator, right; or ``None``.

    The operator is that of the assertion, so ``==`` for the ``1 != 2`` of assertEqual. Only the first three
    lines of the message are inspected; later ones show differences.
    """
    for line in error.message.splitlines()[:3]:
        if found := _COMPARISON.match(line) or (_UNITTEST.match(line) if line[:1] != " " else None):
            left, right = found["left"], found["right"]
            operator = "==" if found.re is _UNITTEST else found["operator"]
            # A negation, or parentheses around the whole condition: it is more than one comparison.
            if line.startswith("assert not ") or left.startswith("not "):
                return None
            if left.startswith("(") and left.count("(") > left.count(")") and right.endswith(")"):
                return None
            start = _first_difference(left, right) - _BEFORE_DIFFERENCE
            if start > 0 and max(len(left), len(right)) > _LONGEST_VALUE:
                left, right = f"…{left[start:]}", f"…{right[start:]}"
            return quote(left, _LONGEST_VALUE), operator, quote(right, _LONGEST_VALUE)
    return None


def _first_difference(left: str, right: str) -> int:
    """Return the index at which two texts begin to differ, at most the length of the shorter one."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(left), len(right)))


def origins_of_values(error: ExceptionFact) -> tuple[tuple[str, str], ...]:
    """Return values of an assertion with what returned them: ``32.1``, ``rsi([1, 2])``; outermost first.

    Functions and objects are shown by their names: ``Cart.total()``, ``shop.cart.Cart.total``.
    """
    found = (
        [_OBJECT.sub(r"\g<name>", _FUNCTION.sub(r"\g<name>", each[part])) for part in ("value", "call")]
        for each in _WHERE.finditer(error.message)
    )
    return tuple((value, quote(call, 80)) for value, call in found)


def since(evidence: Evidence) -> str:
    """Return the state that changes are compared with as a phrase: `` since the last commit``."""
    return f" since {_SINCE.get(evidence.changed_since or '', 'the baseline or the last commit')}"
