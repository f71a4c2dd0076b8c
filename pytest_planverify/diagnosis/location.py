"""Which function is most likely to be at fault: what changed, what the failing tests ran, what raised.

Each product function that is known to take part in a failure is a candidate. Three things speak for it, in
the order of their weight: it was changed; the failing tests execute it and the passing ones do not
(Ochiai's coefficient); it stands in the traceback, near to the raise. A public function that only calls
the one at fault is executed by more green tests, and stands further from the raise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.model.kinds import Side
from planner.model.outcome import Candidate, Location

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.evidence import Evidence, ExecutedFunction, Frame, Hunk

MOST_CANDIDATES = 5

_CHANGED, _SPECTRUM, _TRACEBACK = "changed", "spectrum", "traceback"

Key = tuple[str, str | None]
"""A path and a qualified name; without one, the module."""


@dataclass(slots=True)
class Suspect:
    """A function, and all that is known of its part in a failure."""

    path: str
    function: str | None
    line: int = 0
    side: Side = Side.PRODUCT
    hunk: Hunk | None = None
    executed: ExecutedFunction | None = None
    frame: Frame | None = None
    distance: int = 0
    """How many frames of the product lie between it and the raise."""
    subject: bool = False
    """The test names it."""
    names: frozenset[str] = field(default_factory=frozenset[str])


def plain_name(function: str) -> str | None:
    """Return a qualified name as it stands in the source: ``outer.inner``; ``None`` for a module."""
    parts: list[str] = []
    for part in function.split("."):
        if part == "<locals>":
            continue
        if part.startswith("<"):  # a lambda or a comprehension is a part of the function around it
            break
        parts.append(part)
    return ".".join(parts) or None


def suspects_of(evidence: Evidence) -> list[Suspect]:
    """Return every function that takes part in the failure, the product's and changed tests."""
    found: dict[Key, Suspect] = {}

    def get(path: str, function: str | None, line: int, side: Side = Side.PRODUCT) -> Suspect:
        suspect = found.get((path, function))
        if suspect is None:
            suspect = found[path, function] = Suspect(path, function, line, side)
        return suspect

    for each in evidence.executed:
        suspect = get(each.path, plain_name(each.function), each.line)
        if suspect.executed is None or each.green < suspect.executed.green:
            suspect.executed = each
    for distance, frame in enumerate(_product_frames(evidence)):
        suspect = get(frame.path, plain_name(frame.function), frame.line)
        if suspect.frame is None:
            suspect.frame, suspect.distance, suspect.line = frame, distance, frame.line
    for frame in evidence.subjects:
        if frame.side is Side.PRODUCT:
            get(frame.path, plain_name(frame.function), frame.line).subject = True
    for hunk in evidence.hunks:
        if hunk.side is not None:
            suspect = get(hunk.path, hunk.function, hunk.line, hunk.side)
            suspect.line = hunk.line
            if suspect.hunk is None or _size(hunk) > _size(suspect.hunk):
                suspect.hunk = hunk
    return list(found.values())


def score(suspect: Suspect, evidence: Evidence) -> float:
    """Return how suspicious a function is, from 0 to 1."""
    spectrum = _ochiai(suspect, evidence)
    traceback = 0.0 if suspect.frame is None else 1 / (1 + suspect.distance)
    value = 0.5 * (spectrum or 0.0) + 0.3 * traceback + 0.1 * suspect.subject
    if suspect.hunk is None:
        return 0.5 * value
    if suspect.side is Side.TEST:
        return 0.3 if _is_of_test(suspect, evidence) else 0.05
    if spectrum == 0.0 and suspect.frame is None and suspect.function is not None:
        return 0.1  # it was not executed
    return 0.5 + 0.5 * value


def candidates_of(evidence: Evidence) -> tuple[Candidate, ...]:
    """Return the functions most likely to be at fault, the likeliest first."""
    ranked = sorted(
        ((score(suspect, evidence), suspect) for suspect in suspects_of(evidence)),
        key=lambda each: (-each[0], each[1].path, each[1].line),
    )
    return tuple(
        Candidate(
            path=suspect.path,
            line=max(suspect.line, 1),
            function=suspect.function,
            score=round(min(max(value, 0.0), 1.0), 3),
            reasons=tuple(_reasons(suspect)),
            hunk=suspect.hunk,
        )
        for value, suspect in ranked[:MOST_CANDIDATES]
        if value > 0
    )


def location_of(candidate: Candidate) -> Location:
    """Return the place that a candidate names."""
    return Location(path=candidate.path, line=candidate.line, function=candidate.function)


def _reasons(suspect: Suspect) -> Iterator[str]:
    if suspect.hunk is not None:
        yield _CHANGED
    if suspect.executed is not None:
        yield _SPECTRUM
    if suspect.frame is not None:
        yield _TRACEBACK


def _ochiai(suspect: Suspect, evidence: Evidence) -> float | None:
    """Return Ochiai's coefficient; ``None`` where nothing was recorded."""
    if not evidence.executed:
        return None
    ran = suspect.executed
    if ran is None:
        return 0.0
    return ran.red / math.sqrt(max(evidence.red_tests, 1) * (ran.red + ran.green))


def _product_frames(evidence: Evidence) -> list[Frame]:
    """Return the product's frames, those of the surfacing exception first, the raising one first."""
    errors = (*evidence.exceptions, *evidence.exceptions_in_group)
    return [frame for error in errors for frame in reversed(error.frames) if frame.side is Side.PRODUCT]


def _is_of_test(suspect: Suspect, evidence: Evidence) -> bool:
    return any(
        nodeid.startswith(f"{suspect.path}::") for nodeid in (evidence.nodeid or "", *evidence.tests)
    )


def _size(hunk: Hunk) -> int:
    return hunk.added + hunk.removed
