"""Reading of command lines such as ``2,$s/a/b/g``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ADDRESS = r"(\d+|[.$])?((?:[+-]\d*)*)"
_COMMAND = re.compile(rf"\s*(?:(%)|{_ADDRESS}(?:(,){_ADDRESS})?)\s*([a-z]*)(!?)(.*)", re.DOTALL)


class CommandError(Exception):
    """A command that cannot be carried out; ``str()`` says why."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command with the lines that it is about, counted from 0; ``None`` where it names none."""

    name: str
    argument: str = ""
    force: bool = False
    lines: tuple[int, int] | None = None


def parse_command(text: str, *, current: int, last: int) -> Command:
    """Return the command of a line. Raises :class:`CommandError`."""
    match = _COMMAND.fullmatch(text)
    assert match is not None  # the last group takes anything
    whole, base, offset, comma, base_2, offset_2, name, force, argument = match.groups("")
    lines = None
    if whole:
        lines = (0, last)
    elif base or offset or comma:
        first = _line(base, offset, current, last)
        lines = (first, _line(base_2, offset_2, current, last) if comma else first)
        if lines[0] > lines[1]:
            raise CommandError("the first line comes after the last")
    if not name and (argument.strip() or force):
        raise CommandError(f"not a command: {text.strip()}")
    return Command(name, argument.strip(), bool(force), lines)


def _line(base: str, offset: str, current: int, last: int) -> int:
    start = {"": current, ".": current, "$": last}.get(base)
    line = int(base) - 1 if start is None else start
    for step in re.findall(r"[+-]\d*", offset):
        line += int(step) if len(step) > 1 else int(f"{step}1")
    if not 0 <= line <= last:
        raise CommandError(f"there is no line {line + 1}")
    return line
