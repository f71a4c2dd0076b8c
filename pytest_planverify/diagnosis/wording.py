"""Naming frames, values and nearest names in the sentences of a suggestion."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.evidence import ExceptionFact, Frame

_COMPARISON = re.compile(
    r"^assert (?P<left>.+?) (?P<operator>==|!=|<=|>=|<|>|is not|is|not in|in) (?P<right>.+)$"
)
_UNITTEST = re.compile(
    r"^(?:(?:First )?\w+ differ: )?(?P<left>.+?) (?P<operator>!=) (?P<right>.+?)(?: : .*)?$"
)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{4,}")
_WHERE = re.compile(r"^ \+ +(?:where|and) +(?P<value>.+?) = (?P<call>[^\n]+)$", re.MULTILINE)
_FUNCTION = re.compile(
    r"<(?:function|bound method|built-in function|class) '?(?P<name>[\w.<>]+?)'?"
    r"(?: (?:at|of) [^<>]*(?:<[^<>]*>[^<>]*)*)?>"
)


def place(frame: Frame) -> str:
    """``compute_rsi (indicators/rsi.py:31)``."""
    name = "module level" if frame.function == "<module>" else frame.function.replace(".<locals>", "")
    return f"{name} ({frame.path}:{frame.line})"


def quote(text: str, limit: int = 160) -> str:
    """The first line of a text, clipped."""
    line = _ADDRESS.sub("", text.strip().partition("\n")[0].strip())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def said(error: ExceptionFact) -> str:
    """``ValueError: bad period``, on one line."""
    return quote(f"{error.type}: {error.message}" if error.message else error.type)


def nearest(names: Iterable[str]) -> str:
    """``; the nearest existing name is compute_rsi``, or nothing."""
    first = next(iter(names), None)
    return f"; the nearest existing name is {first}" if first else ""


def alike(name: str, names: Iterable[str], cutoff: float = 0.75) -> tuple[str, ...]:
    """Names that look like a name, the most alike first."""
    return tuple(difflib.get_close_matches(name, sorted(names), n=3, cutoff=cutoff))


def comparison(error: ExceptionFact) -> tuple[str, str, str] | None:
    """What a failing assertion compared: left, operator, right, as they were rendered."""
    for line in error.message.splitlines()[:3]:
        if found := _COMPARISON.match(line) or (_UNITTEST.match(line) if line[:1] != " " else None):
            return quote(found["left"], 60), found["operator"], quote(found["right"], 60)
    return None


def origins_of_values(error: ExceptionFact) -> tuple[tuple[str, str], ...]:
    """Values of an assertion and the calls that gave them, as pytest tells: ``32.1``, ``rsi([1, 2])``."""
    found = (
        (each["value"], _FUNCTION.sub(r"\g<name>", each["call"])) for each in _WHERE.finditer(error.message)
    )
    return tuple((value, quote(call, 80)) for value, call in found)


def origin_of_value(error: ExceptionFact) -> str | None:
    """The call that gave an assertion its first value."""
    return next((call for _, call in origins_of_values(error)), None)
