"""Parser of the messages of CPython's own exceptions."""

from __future__ import annotations

import re

_CALL = re.compile(
    r"^(?P<callee>[\w.<>]+)\(\) (?:missing \d+ required |takes |got an unexpected keyword argument|"
    r"got multiple values for |got some positional-only arguments)"
)


def callee_of(message: str) -> str | None:
    """Return the function that a ``TypeError`` about the arguments of a call names, else ``None``."""
    found = _CALL.match(message)
    return found["callee"] if found else None
