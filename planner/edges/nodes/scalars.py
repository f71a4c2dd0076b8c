"""What the text of a scalar means where a number, a yes or no, or anything at all is wanted."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.edges.nodes import Scalar

MAX_WHOLE = 2**63 - 1
"""The largest whole number, and with a minus the smallest, that a plan may hold."""

NULLS = frozenset(("", "~", "null", "Null", "NULL"))
BOOLEANS = {
    spelling: meaning
    for words, meaning in ((("true", "yes", "on"), True), (("false", "no", "off"), False))
    for word in words
    for spelling in (word, word.capitalize(), word.upper())
}
"""Every unquoted word that answers where a boolean is wanted."""

_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})")
_DECIMAL = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_PADDED = re.compile(r"[-+]?0[0-9_]+")
_NOT_FINITE = re.compile(r"[-+]?\.?(nan|inf|infinity)", re.IGNORECASE)
_LONGEST = 400


class NoSuchScalarError(ValueError):
    """The text does not mean what is wanted. The message says why and what to write."""


def is_null(node: Scalar) -> bool:
    """Whether the scalar says that there is nothing."""
    return not node.quoted and node.text in NULLS


def boolean(node: Scalar) -> bool:
    """The scalar as yes or no. Raises :class:`NoSuchScalarError`."""
    meaning = BOOLEANS.get(node.text)
    if meaning is None:
        raise NoSuchScalarError(f"{_shown(node)} is no boolean; write true or false")
    if node.quoted:
        raise NoSuchScalarError(f"{_shown(node)} is text; write {str(meaning).lower()} without quotes")
    return meaning


def number(node: Scalar, *, whole: bool) -> int | float:
    """The scalar as a finite number. Raises :class:`NoSuchScalarError`."""
    text = node.text
    wanted = "whole number" if whole else "number"
    if node.quoted and _DECIMAL.fullmatch(text):
        raise NoSuchScalarError(f"{_shown(node)} is text; write the number without quotes")
    if _NOT_FINITE.fullmatch(text):
        raise NoSuchScalarError(f"{_shown(node)} is no finite number; write a {wanted}")
    if _PADDED.fullmatch(text) and not node.quoted:
        raise NoSuchScalarError(f"{_shown(node)} could mean two numbers; write it without leading zeros")
    if node.quoted or len(text) > _LONGEST or not _DECIMAL.fullmatch(text):
        raise NoSuchScalarError(f"{_shown(node)} is no number; write a {wanted}")
    if not whole:
        value = float(text)
        if math.isinf(value):
            raise NoSuchScalarError(f"{_shown(node)} is too large for a number; write a smaller one")
        return value
    if not re.fullmatch(r"[-+]?[0-9]+", text):
        raise NoSuchScalarError(f"{_shown(node)} is no whole number; leave out fraction and exponent")
    if not _WHOLE.fullmatch(text) or abs(int(text)) > MAX_WHOLE:
        raise NoSuchScalarError(f"{_shown(node)} is too large; write a number between -2^63 and 2^63")
    return int(text)


def anything(node: Scalar) -> object:
    """The scalar as JSON would mean it, for keys of the user's own. Raises :class:`NoSuchScalarError`."""
    if node.quoted:
        return node.text
    if node.text in NULLS:
        return None
    if node.text in ("true", "false"):
        return node.text == "true"
    if _DECIMAL.fullmatch(node.text):
        return number(node, whole=re.fullmatch(r"[-+]?[0-9]+", node.text) is not None)
    return node.text


def _shown(node: Scalar) -> str:
    text = node.text if len(node.text) <= 60 else node.text[:57] + "…"
    if not text:
        return "an empty text" if node.quoted else "nothing"
    return f'"{text}"' if node.quoted else f"'{text}'"
