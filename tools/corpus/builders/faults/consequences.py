"""Labels from what was done and which exception came of it, by the wording of the taxonomy.

Only facts of the recorded run are asked: the class of the exception that surfaced, whose code raised it,
what it is about. What any rule makes of these is not known here.
"""

from __future__ import annotations

import re

from faults.fault import Fault, Judged, Kind
from planner.model.evidence import Evidence, ExceptionFact, Frame
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind, Side
from tools.corpus.case import Label, Place, Reading

_OF_A_VALUE = ("TypeError", "AttributeError")
"""Exceptions about the kind of a value."""

_TAKEN = "A name or a call that does not fit inside the product is its bug, whatever the kind of the value."
_IMPORTED = "It is an import of the product itself that fails."

Found = tuple[Category, tuple[Reading, ...]]


def label_of(kind: Kind, fault: Fault, evidence: Evidence, *, product_edited: bool) -> Label | None:
    """What is true of a failure of this fault; ``None`` when the fault did not do what its kind says."""
    if not _did(kind, fault, evidence):
        return None
    category, also = _JUDGES[kind.judged](kind, fault, evidence)
    if product_edited and kind.if_product_edited is not None:
        also = (*also, kind.if_product_edited)
    return Label(
        category=category,
        owner=kind.owner,
        repeatability=kind.repeatability,
        also=tuple(each for each in also if _adds(each, category, kind.owner, evidence)),
        place=Place(
            path=fault.path,
            first_line=fault.first_line,
            last_line=fault.last_line,
            function=fault.function,
            exact=(kind.exact or kind.judged is Judged.BEHAVIOUR) and stands_on(evidence, fault),
        ),
    )


def stands_on(evidence: Evidence, fault: Fault) -> bool:
    """Whether the fault's own line raised, or was running when the process was ended."""
    surfaced = _surfaced(evidence)
    if surfaced is None:
        stack = (evidence.process.stack if evidence.process else None) or ""
        found = re.findall(rf'{re.escape(fault.path)}", line (\d+)', stack)
        return any(_within(int(line), fault) for line in found[:1])
    if surfaced.line is not None and surfaced.path is not None:
        return surfaced.path.endswith(fault.path) and _within(surfaced.line, fault)
    frame = _last_own(surfaced)
    return frame is not None and frame.path == fault.path and _within(frame.line, fault)


def met(evidence: Evidence, fault: Fault) -> bool:
    """Whether the fault was run: it stands in a traceback, or what it took away is named."""
    for error in evidence.exceptions:
        if any(frame.path == fault.path and _within(frame.line, fault) for frame in error.frames):
            return True
        if error.type in ("NameError", "UnboundLocalError") and error.name == fault.name:
            return True
        if error.type == "UnboundLocalError" and f"'{fault.name}'" in error.message:
            return True
    return stands_on(evidence, fault)


def _within(line: int, fault: Fault) -> bool:
    return fault.first_line is not None and fault.first_line <= line <= (
        fault.last_line or fault.first_line
    )


def _adds(reading: Reading, category: Category, owner: Owner, evidence: Evidence) -> bool:
    """Whether a reading says something else, and can be said of what was raised."""
    if reading.category is Category.IMPORT_ERROR:
        return any(_is_a(error, "ImportError") for error in evidence.exceptions)
    return (reading.category, reading.owner) != (category, owner)


def _did(kind: Kind, fault: Fault, evidence: Evidence) -> bool:
    if evidence.kind is EvidenceKind.SELECTION:  # the fault took the test's id away: another failure
        return False
    if kind.category is Category.TEST_TIMEOUT:
        return evidence.timed_out
    if kind.category is Category.TEST_CRASH:
        return evidence.process is not None and not evidence.timed_out
    if kind.judged is Judged.FIXED and not _names(evidence, fault):
        return False
    surfaced = _surfaced(evidence)
    if not kind.raises:
        return True
    return surfaced is not None and any(_is_a(surfaced, name) for name in kind.raises)


def _names(evidence: Evidence, fault: Fault) -> bool:
    """Whether what was said of the failure names what the fault is about, where that has a name."""
    said = (evidence.headline, evidence.longrepr, *(error.message for error in evidence.exceptions))
    return any(fault.name.split(".")[0] in each for each in said)


def _fixed(kind: Kind, fault: Fault, evidence: Evidence) -> Found:
    return kind.category, kind.also


def _behaviour(kind: Kind, fault: Fault, evidence: Evidence) -> Found:
    """A wrong answer, or an exception that it leads to in the product."""
    surfaced = _surfaced(evidence)
    if evidence.timed_out:
        return Category.TEST_TIMEOUT, kind.also
    if surfaced is None and evidence.process is not None:
        return Category.TEST_CRASH, kind.also
    if surfaced is not None and surfaced.type in _OF_A_VALUE and _side(surfaced) is Side.PRODUCT:
        return Category.TYPE_ERROR, kind.also
    return Category.TEST_REGRESSION, kind.also


def _interface(kind: Kind, fault: Fault, evidence: Evidence) -> Found:
    """Something is not there, or not as it was: it matters whether a test or the product asks for it."""
    surfaced = _surfaced(evidence)
    if surfaced is None:
        return _behaviour(kind, fault, evidence)
    by_product = _side(surfaced) is Side.PRODUCT
    if _is_a(surfaced, "ImportError"):
        why = Reading(category=Category.IMPORT_ERROR, owner=Owner.PRODUCT, why=_IMPORTED)
        return Category.SPEC_MISMATCH, (why,) if by_product else ()
    if surfaced.type in _OF_A_VALUE and by_product:
        why = Reading(category=Category.TEST_REGRESSION, owner=Owner.PRODUCT, why=_TAKEN)
        return Category.TYPE_ERROR, (why,)
    if surfaced.type in _OF_A_VALUE and _is_about(surfaced, fault):
        return Category.SPEC_MISMATCH, ()
    return Category.TEST_REGRESSION, ()


_JUDGES = {Judged.FIXED: _fixed, Judged.BEHAVIOUR: _behaviour, Judged.INTERFACE: _interface}


def _is_about(error: ExceptionFact, fault: Fault) -> bool:
    """Whether the exception names what was changed: the name itself, or the function with its arguments."""
    if not fault.name:
        return True
    function = (fault.function or "").rsplit(".", 1)[-1]
    owner = (fault.function or "").split(".")[0]
    said = error.message
    return (
        error.name == fault.name
        or any(f"{each}()" in said for each in (function, owner) if each)
        or f"'{fault.name}'" in said
    )


def _surfaced(evidence: Evidence) -> ExceptionFact | None:
    return evidence.exceptions[0] if evidence.exceptions else None


def _is_a(error: ExceptionFact, name: str) -> bool:
    return error.type == name or any(each.rsplit(".", 1)[-1] == name for each in error.bases)


def _last_own(error: ExceptionFact) -> Frame | None:
    own = [frame for frame in error.frames if frame.side in (Side.PRODUCT, Side.TEST)]
    return own[-1] if own else None


def _side(error: ExceptionFact) -> Side | None:
    frame = _last_own(error)
    return frame.side if frame else None
