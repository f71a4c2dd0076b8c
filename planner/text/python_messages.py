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


def removed_definition(name: str, diff: str) -> str | None:
    """Return the removed line of a unified diff that imports or defines ``name`` at any level.

    ``None`` if there is none, or if an added line defines the name again.
    """
    word = re.escape(name)
    defines = re.compile(
        rf"(?:from \S+ )?import (?:.*[ ,(.])?{word}\b|(?:async )?(?:def|class) {word}\b"
        rf"|{word} ?(?::[^=]+)?=(?!=)"
    )
    lines = [line for line in diff.splitlines() if defines.match(line[1:].strip())]
    if any(line.startswith("+") for line in lines):
        return None
    return next((line[1:].strip() for line in lines if line.startswith("-")), None)
