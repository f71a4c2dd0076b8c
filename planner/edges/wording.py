"""Says in a plan author's words what the models refuse: lengths, ranges and patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

ALREADY_SAID = frozenset(("missing", "literal_error", "enum", "extra_forbidden"))
"""Errors that the reading of shapes reports itself, with better knowledge of the file."""

_TEMPLATES = {
    "greater_than": "{input} is too small; write a number greater than {gt:g}",
    "greater_than_equal": "{input} is too small; write {ge:g} or more",
    "less_than": "{input} is too large; write a number less than {lt:g}",
    "less_than_equal": "{input} is too large; write {le:g} or less",
    "string_too_short": "the text is empty; write something, or leave the key out",
    "string_too_long": "the text is longer than {max_length} characters; shorten it",
    "string_unicode": "the text holds half of a surrogate pair; write the whole character",
}
_ID = "{input} is no id; use letters, digits, '_', '.' and '-' only"
_PATTERNS = {
    "id": _ID,
    "dependencies": _ID,
    "parent_id": _ID,
    "via": _ID,
    "sha256": "{input} is no SHA-256 digest; write its 64 hexadecimal digits in lower case",
    "expires": "{input} is no date; write it as YYYY-MM-DD",
}


def worded(error: ErrorDetails) -> str:
    """What is wrong, then what to do."""
    values: dict[str, Any] = {**error.get("ctx", {}), "input": _shown(error["input"])}
    template = _TEMPLATES.get(error["type"])
    if error["type"] == "string_pattern_mismatch":
        names = (str(part) for part in reversed(error["loc"]))
        template = next((_PATTERNS[name] for name in names if name in _PATTERNS), None)
    if template is None:
        return f"{values['input']} is not accepted here; see the plan reference"
    return template.format(**values)


def _shown(value: object) -> str:
    if not isinstance(value, str):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return f"'{value}'" if len(value) <= 60 else f"'{value[:57]}…'"
