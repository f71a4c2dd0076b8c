"""``:s/pattern/replacement/flags``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vi_editor.buffer.text import Buffer
from vi_editor.search.patterns import PatternError, compile_pattern


@dataclass(frozen=True, slots=True)
class Substitution:
    """What is replaced by what, and whether everywhere in a line."""

    pattern: str
    replacement: str
    everywhere: bool = False


def parse_substitution(text: str) -> Substitution:
    """Read ``/pattern/replacement/g``; any mark may stand for the slash. Raises :class:`PatternError`."""
    if not text or text[0].isalnum() or text[0].isspace():
        raise PatternError("write s/pattern/replacement/")
    separator = re.escape(text[0])
    parts = [part.replace(f"\\{text[0]}", text[0]) for part in re.split(rf"(?<!\\){separator}", text[1:])]
    pattern, replacement, flags = (*parts, "", "", "")[:3]
    if flags not in ("", "g"):
        raise PatternError(f"there is no flag {flags}")
    return Substitution(pattern, replacement, flags == "g")


def substitute(buffer: Buffer, first: int, last: int, what: Substitution) -> int:
    """Replace in these lines; return how often. ``&`` is the match. Raises :class:`PatternError`."""
    pattern = compile_pattern(what.pattern)
    total = 0
    for number in range(first, last + 1):
        line, count = pattern.subn(
            lambda match: what.replacement.replace("&", match.group()),
            buffer.lines[number],
            count=0 if what.everywhere else 1,
        )
        buffer.lines[number] = line
        total += count
    if not total:
        raise PatternError(f"{what.pattern} not found")
    return total
