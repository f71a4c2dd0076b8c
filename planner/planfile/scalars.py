"""Read a number, a boolean, or any value from the text of a scalar."""

from __future__ import annotations

import math
import re

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

_DIGITS = re.compile(r"[-+]?[0-9]+")
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})")
_DECIMAL = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_PADDED = re.compile(r"[-+]?0[0-9_]+")
_NOT_FINITE = re.compile(r"[-+]?\.?(nan|inf|infinity)", re.IGNORECASE)
_LONGEST = 400


class NoSuchScalarError(ValueError):
    """The text does not mean what is wanted. The message says why and what to write."""


def boolean(text: str, quoted: bool) -> bool:
    """Return the scalar as a boolean. Raises :class:`NoSuchScalarError`."""
    meaning = BOOLEANS.get(text)
    if meaning is None:
        raise NoSuchScalarError(f"{quotation(text, quoted)} is no boolean; write true or false")
    if quoted:
        raise NoSuchScalarError(f'"{text}" is text; write {str(meaning).lower()} without quotes')
    return meaning


def number(text: str, quoted: bool, *, whole: bool) -> int | float:
    """Return the scalar as a finite number. Raises :class:`NoSuchScalarError`."""
    shown, wanted = quotation(text, quoted), "whole number" if whole else "number"
    if quoted and _DECIMAL.fullmatch(text):
        raise NoSuchScalarError(f"{shown} is text; write the number without quotes")
    if _NOT_FINITE.fullmatch(text):
        raise NoSuchScalarError(f"{shown} is no finite number; write a {wanted}")
    if _PADDED.fullmatch(text) and not quoted:
        raise NoSuchScalarError(f"{shown} could mean two numbers; write it without leading zeros")
    if quoted or len(text) > _LONGEST or not _DECIMAL.fullmatch(text):
        raise NoSuchScalarError(f"{shown} is no number; write a {wanted}")
    if not whole:
        value = float(text)
        if math.isinf(value):
            raise NoSuchScalarError(f"{shown} is too large for a number; write a smaller one")
        return value
    if not _DIGITS.fullmatch(text):
        raise NoSuchScalarError(f"{shown} is no whole number; leave out fraction and exponent")
    if not _WHOLE.fullmatch(text) or abs(int(text)) > MAX_WHOLE:
        raise NoSuchScalarError(f"{shown} is too large; write a number between -2^63 and 2^63")
    return int(text)


def anything(text: str, quoted: bool) -> str | float | bool | None:
    """Return the scalar as JSON would mean it. Raises :class:`NoSuchScalarError`."""
    if quoted:
        return text
    if text in NULLS:
        return None
    if text in ("true", "false"):
        return text == "true"
    if _DECIMAL.fullmatch(text):
        return number(text, quoted, whole=_DIGITS.fullmatch(text) is not None)
    return text


def quotation(text: str, quoted: bool) -> str:
    """Quote the scalar for a message."""
    if not text:
        return "an empty text" if quoted else "nothing"
    shown = text if len(text) <= 60 else text[:57] + "…"
    return f'"{shown}"' if quoted else f"'{shown}'"
