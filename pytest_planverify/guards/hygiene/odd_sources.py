"""Sources that are odd and valid: sums of a thousand terms, numbers of a thousand digits, form feeds."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

_FRAMES = 60_000
"""What reads a tree calls itself several times a level; Python parses thousands of levels."""
_USUAL_FRAMES = 1_000
_DIGITS = 100_000
_LINE_ENDS = re.compile(r"\r\n?|\n")


@contextmanager
def room_for_odd_sources() -> Generator[None]:
    """Let trees be looked through that are deeper, and numbers spelled that are longer, than is usual."""
    digits = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(_DIGITS)
    try:
        with _depth(_FRAMES):
            yield
    finally:
        sys.set_int_max_str_digits(digits)


def parsed(content: bytes) -> ast.Module:
    """The tree of a source; quiet about what is only ugly."""
    # How deep the parser goes on the stack of C depends on the limit of Python.
    with _depth(_USUAL_FRAMES), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(content)


def lines_of(text: str) -> list[str]:
    """The lines as Python counts them: form feeds and the separators of Unicode end none."""
    return _LINE_ENDS.split(text)


@contextmanager
def _depth(frames: int) -> Generator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(frames)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
