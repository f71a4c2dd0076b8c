"""Faults of a file: collected with their positions, and shown on one screen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.errors import PlanFileError
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SCREEN = 20
"""How many lines of faults are shown."""

MAX_LINE = 400
"""How many characters one line of a fault may have."""

_ALIKE = 3
"""Up to so many equal faults are shown each on its own line."""

_INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong. ``problem`` says what, and after a semicolon what to do."""

    line: int | None = None
    column: int | None = None
    path: str = ""
    """Where in the plan: ``items[2].title``; empty for the document itself."""
    problem: str

    @property
    def order(self) -> tuple[int, int]:
        """Sorts faults by their position."""
        return (self.line or 0, self.column or 0)


class Refused(Exception):
    """The file cannot be read any further: ``faults`` tells why, or the message does."""

    def __init__(self, problem: str, faults: tuple[Fault, ...] = ()) -> None:
        self.faults = faults or (Fault(problem=problem),)
        super().__init__(self.faults[0].problem)


class ManyFaultsError(PlanFileError):
    """A plan file with more faults than a screen holds: the first are shown, all are in ``faults``."""

    def __str__(self) -> str:
        head, *lines = super().__str__().split("\n")
        return "\n".join([head, *lines[:SCREEN], f"… and {len(lines) - SCREEN} more"])


def plan_file_error(name: str, faults: Iterable[Fault]) -> PlanFileError:
    """The error that shows these faults, in the order of their positions, of the file ``name``."""
    shown = _shown(name, MAX_LINE)
    lines = tuple(_lines(shown, sorted(set(faults), key=lambda fault: (fault.order, fault.path))))
    kind = ManyFaultsError if len(lines) > SCREEN else PlanFileError
    return kind(shown, lines)


def _lines(name: str, faults: Sequence[Fault]) -> Iterable[str]:
    groups: dict[tuple[str, str], list[Fault]] = {}
    for fault in faults:
        groups.setdefault((_INDEX.sub("[]", fault.path), fault.problem), []).append(fault)
    for group in groups.values():
        if len(group) <= _ALIKE:
            continue
        places = ", ".join(f"{fault.line}:{fault.column}" for fault in group[1:_ALIKE])
        also = f" (and {len(group) - 1} more like it: {places} …)"
        yield _line(name, group[0], also)
    for group in groups.values():
        if len(group) <= _ALIKE:
            yield from (_line(name, fault) for fault in group)


def _line(name: str, fault: Fault, also: str = "") -> str:
    position = "" if fault.line is None else f":{fault.line}:{fault.column}"
    path = f" {_shown(fault.path, 120)}" if fault.path else ""
    return f"{name}{position}{path}: {_shown(fault.problem, MAX_LINE)}{also}"


def _shown(text: str, limit: int) -> str:
    """Make a text of a file fit for one line of a terminal."""
    return " ".join(clean(text, limit=limit).split())
