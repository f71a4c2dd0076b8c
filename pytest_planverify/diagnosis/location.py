"""Fault localization: ranking of functions by changes, executed lines and the traceback.

Each product function that takes part in a failure is a candidate. Its score rises, in order of weight, if
it was changed, if failing tests execute it and passing tests do not (Ochiai's coefficient), and if it is in
the traceback near the raise. Coverage and traceback together rank the faulty function above a public
function that only calls it: the caller is executed by more passing tests and is farther from the raise.

:func:`suspects_of` collects the facts of each function, :func:`score` weighs them, and
:func:`candidates_of` returns the best for the diagnosis.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from planner.catalog.test_paths import is_test_module
from planner.model.outcome import UNRELATED, Candidate, Location
from planner.model.verdicts import EvidenceKind, Side
from planner.text.python_text import callee_of
from pytest_planverify.diagnosis.case import PROSE, frames_of, is_remark, last_frame_of, removals_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from planner.model.evidence import Evidence, ExceptionFact, ExecutedFunction, Frame, Hunk

MOST_CANDIDATES = 5
"""Limit of candidates of a diagnosis, and of a tool's findings that are considered."""

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_TRANSLATION = re.compile(r"raise .*\bfrom (?!None\b)\w+( *#.*)?$")
_OF_INNER = 0.8
"""Factor on the score of an inner function, for the function that encloses it."""

_LINT = "lint"
_CHANGED, _SPECTRUM, _TRACEBACK, _ORIGIN = "changed", "spectrum", "traceback", "origin"

Key = tuple[str, str | None]
"""Path and qualified name; ``None`` for module level."""


@dataclass(slots=True)
class Suspect:
    """A function, class or module level with the facts about its part in a failure."""

    path: str
    function: str | None
    line: int
    side: Side = Side.PRODUCT
    hunk: Hunk | None = None
    executed: ExecutedFunction | None = None
    """Counts of the tests that executed it; of several functions of one name the most suspicious."""
    spectrum: float = 0.0
    """Suspiciousness by these counts."""
    distance: int | None = None
    """Number of product functions between it and the raise; ``None`` if it is in no traceback. For a tool's
    finding, the finding's position. Nearest is what returned the ``None`` that the error is about.
    """
    is_origin: bool = False
    """It returned the ``None`` that the error is about."""
    is_named: bool = False
    """The failing line of the test names or calls it."""
    is_missing: bool = False
    """Its change removes the missing name, or it is the changed function that does not take the arguments
    of a call. If no change is either: its change mentions the name, or is where its file may define it.
    """
    is_apart: bool = False
    """Its change is inside of a function that does not define what is missing."""
    likeness: float = 0.0
    """Share of its name's words that the test's name repeats."""

    @property
    def key(self) -> Key:
        """Return path and function."""
        return self.path, self.function


@lru_cache(maxsize=4096)
def plain_name(function: str) -> str | None:
    """Return a qualified name without ``<locals>`` and lambdas: ``outer.inner``; ``None`` for a module.

    In this form the names of tracebacks equal those of the syntax tree.
    """
    parts: list[str] = []
    for part in function.split("."):
        if part == "<locals>":
            continue
        if part.startswith("<"):  # lambdas and comprehensions belong to the enclosing function
            break
        parts.append(part)
    return ".".join(parts) or None


def suspects_of(evidence: Evidence, fault: Frame | None = None, holder: str | None = None) -> list[Suspect]:
    """Return the functions of the product and of changed tests that may take part in the failure.

    Collected from executed functions, tracebacks, the functions that the failing line names, tools'
    findings and changed hunks. ``fault`` is the frame of the fault as determined by the rule, if it is not
    the last of the traceback; ``holder`` is the file that lacks a requested name.
    """
    found: dict[Key, Suspect] = {}

    def get(path: str, function: str | None, line: int, side: Side = Side.PRODUCT) -> Suspect:
        suspect = found.get((path, function))
        if suspect is None:
            suspect = found[path, function] = Suspect(path, function, line, side)
        return suspect

    for each in evidence.executed:
        name = plain_name(each.function)
        value = _spectrum(each, evidence)
        if name is not None:
            # A line is more informative than the function's start only if fewer passing tests executed it.
            passed_by = each.suspect_line is not None and each.line_green < each.green
            line = each.suspect_line or each.line if passed_by else each.line
            suspect = get(each.path, name, line)
            if value > suspect.spectrum:
                suspect.executed, suspect.spectrum = each, value
            if each.is_origin_of_none:
                suspect.distance, suspect.is_origin = 0, True
        # Enclosing functions such as decorators ran at import, so no test is recorded as executing them.
        for outer in _outer_functions(each.function):
            suspect = get(each.path, outer, each.line)
            suspect.spectrum = max(suspect.spectrum, _OF_INNER * value)
    distance = int(any(each.is_origin_of_none for each in evidence.executed))
    for frame in _product_frames(evidence, fault):
        suspect = get(frame.path, plain_name(frame.function), frame.line)
        if suspect.distance is None:
            suspect.distance, suspect.line = distance, frame.line
            distance += 1
    # Subjects are definitions and no frames of a traceback, so they get no distance.
    for frame in evidence.subjects:
        if frame.side is Side.PRODUCT and not frame.path.startswith("<"):
            get(frame.path, plain_name(frame.function), frame.line).is_named = True
    command = evidence.command
    findings = command.findings if command is not None else ()
    for number, finding in enumerate(findings[:MOST_CANDIDATES]):
        if finding.path is not None and finding.line is not None:
            suspect = get(finding.path, _changed_around(evidence, finding.path, finding.line), finding.line)
            suspect.distance = number if suspect.distance is None else suspect.distance
    if evidence.hunks:
        _add_changes(evidence, holder, plain_name(fault.function) if fault and holder else None, get)
    # A linter reads each file by itself: no other change explains what it finds in a changed place.
    if command is not None and command.purpose == _LINT:
        changed = {key: each for key, each in found.items() if each.hunk and each.distance is not None}
        found = changed or found
    if found:
        _compare_names(evidence, found.values())
    return list(found.values())


def _add_changes(
    evidence: Evidence, holder: str | None, called: str | None, get: Callable[..., Suspect]
) -> None:
    """Add the changed functions, each with its largest hunk, to the suspects that ``get`` returns.

    ``called`` is the name of the function that lacks a requested parameter.
    """
    missing = {error.name for error in evidence.exceptions if error.name}
    callees = [callee_of(error.message) for error in evidence.exceptions]
    refusing = {plain_name(each) for each in callees if each} - {None}
    explaining = [each for each in evidence.hunks if each.function in refusing]
    explaining += [each for name in missing for each in removals_of(name, evidence)]
    certain = [each for each in explaining if holder in (None, each.path)]
    # Nothing ran of a selection: only changes of the selected files can be the cause.
    selected = {each.text.partition("::")[0] for each in evidence.selectors}
    is_selection = evidence.kind is EvidenceKind.SELECTION
    # A command may read any file. But changes of known sides are likelier than those of other files, and
    # tests rarely read documents.
    is_any = evidence.kind is EvidenceKind.COMMAND and all(each.side is None for each in evidence.hunks)
    command = evidence.command if is_any else None
    for hunk in evidence.hunks:
        is_read = command and (
            command.purpose != "test" or hunk.path in command.argv or not hunk.path.endswith(PROSE)
        )
        if (hunk.side is None and not is_read) or (is_selection and hunk.path not in selected):
            continue
        # Comments do not affect tests, but they may affect tools, as directives of linters do.
        if evidence.nodeid is not None and is_remark(hunk):
            continue
        is_certain = any(hunk is each for each in certain)
        is_apart = holder is not None and not _may_define(hunk, called)
        if is_apart and certain and not is_certain:
            continue  # known to be another's fault, although the test may execute only this function
        suspect = get(hunk.path, hunk.function, hunk.line, hunk.side or Side.PRODUCT)
        suspect.is_apart = is_apart
        suspect.is_missing |= is_certain
        if not certain:
            suspect.is_missing |= hunk.path == holder and not is_apart
            suspect.is_missing |= not missing.isdisjoint(_IDENTIFIER.findall(hunk.text))
        if suspect.hunk is None or _size(hunk) > _size(suspect.hunk):
            suspect.hunk, suspect.line = hunk, hunk.line


def _may_define(hunk: Hunk, called: str | None) -> bool:
    """Return whether a change may define a name, or a parameter of the called function.

    It may at module level, in a class, in a ``__getattr__`` and in the called function itself.
    """
    name = hunk.function or ""
    last = name.rpartition(".")[2]
    if not last or last.lstrip("_")[:1].isupper() or last.startswith("__getattr"):
        return True
    return called is not None and (f"{name}.".startswith(f"{called}.") or called.startswith(f"{name}."))


def _compare_names(evidence: Evidence, suspects: Iterable[Suspect]) -> None:
    """Compare the names of the suspects with the source line that failed and with the test's name."""
    frame = last_frame_of(evidence.exceptions[0].frames, Side.TEST) if evidence.exceptions else None
    called = frozenset(_IDENTIFIER.findall(frame.source)) if frame and frame.source else frozenset[str]()
    test = _words((evidence.nodeid or "").rpartition("::")[2])
    for suspect in suspects:
        if suspect.function is None:
            continue
        owner, _, name = suspect.function.rpartition(".")
        suspect.is_named |= name in called or (name == "__init__" and owner.rpartition(".")[2] in called)
        words = _words(suspect.function)
        suspect.likeness = len(words & test) / len(words) if words else 0.0


def ranking(
    evidence: Evidence, fault: Frame | None = None, holder: str | None = None
) -> list[tuple[float, Suspect]]:
    """Return the suspects with their scores, most suspicious first; arguments as of :func:`suspects_of`."""
    scored = [(score(suspect, evidence), suspect) for suspect in suspects_of(evidence, fault, holder)]
    return sorted(scored, key=lambda each: (-each[0], each[1].path, -_nesting(each[1]), each[1].line))


def _nesting(suspect: Suspect) -> int:
    """Return how many functions enclose it: of equals, a view precedes the function that defines it."""
    return suspect.executed.function.count("<locals>") if suspect.executed else 0


def score(suspect: Suspect, evidence: Evidence) -> float:
    """Return the suspiciousness of a function, from 0 to 1.

    The weights were chosen to rank the faulty function first most often on bugs of published packages.
    A changed product function with a part in the failure scores 0.5 and more; the value of an unchanged one
    is halved, so that changed functions precede the others.
    """
    traceback = 0.0 if suspect.distance is None else 1 / (1 + suspect.distance)
    depth = 0 if suspect.executed is None else min(suspect.executed.depth, 3)
    value = 0.55 * suspect.spectrum + 0.3 * traceback + 0.12 * suspect.likeness
    value += 0.02 * suspect.is_named + 0.01 * depth + 0.2 * suspect.is_missing
    # Most tests of a class execute the first anyway, and a failing assertion of its objects the second.
    if (suspect.function or "").endswith(("__init__", "__bool__")):
        value = max(value - 0.05, 0.0)
    if suspect.hunk is None:
        return 0.5 * value
    # Data has a side only if the failing criterion read it.
    if is_data(suspect.path):
        return 0.5
    if suspect.side is Side.TEST:  # after the product: whether a test is at fault is decided by the owner
        return 0.05
    is_part = suspect.spectrum or suspect.distance is not None or suspect.is_missing
    # No function that was not executed makes the import of a module fail.
    is_import = any(each.type == "ModuleNotFoundError" for each in evidence.exceptions)
    if suspect.hunk.is_unread and not (is_part or is_import):
        return UNRELATED
    if is_part or not (evidence.executed or is_import or suspect.is_apart):
        return min(0.5 + 0.5 * value, 1.0)
    # Class and module bodies run at import, so their execution is not recorded: a changed body counts if
    # the test executed a function in it, or if it has constants only, as far as is known.
    inside = f"{suspect.function}." if suspect.function else ""
    near = [each for each in evidence.executed if each.path == suspect.path]
    if any((plain_name(each.function) or "").startswith(inside) for each in near):
        return 0.52
    if (suspect.function or "A").rpartition(".")[2].lstrip("_")[:1].isupper():
        return 0.5
    return 0.3 if near else UNRELATED


def candidates_of(
    evidence: Evidence, fault: Frame | None = None, holder: str | None = None, *, of_tests: bool = False
) -> tuple[Candidate, ...]:
    """Return the most likely faulty functions, best first; ``of_tests`` prefers the changed tests."""
    ranked = ranking(evidence, fault, holder)
    tests = [each for each in ranked if each[1].side is Side.TEST]
    others = [each for each in ranked if each[1].side is not Side.TEST]
    # Changed data of tests would otherwise take the places of the product's functions.
    ranked = (_on_the_way(evidence, tests) or others) if of_tests else others + tests
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


def _on_the_way(evidence: Evidence, tests: list[tuple[float, Suspect]]) -> list[tuple[float, Suspect]]:
    """Return the changed tests that take part: data first, then the failing test and what it called.

    Other functions of its file, and helpers, may take part at import. Other test modules do not.
    """
    file, _, name = (evidence.nodeid or "").partition("[")[0].partition("::")
    frames = [frame for error in evidence.exceptions for frame in error.frames]
    found = evidence.command.findings if evidence.command else ()
    own = {(file, name.replace("::", ".")), *((each.path, plain_name(each.function)) for each in frames)}
    files = {file, *(each.path for each in (*frames, *evidence.exceptions, *found))}
    near = (each for each in tests if each[1].path in files or not is_test_module(each[1].path))
    # A new fixture comes with imports, which are less likely at fault.
    return sorted(
        near,
        key=lambda each: (
            not is_data(each[1].path) and each[1].key not in own,
            each[1].function is None,
        ),
    )


def location_of(candidate: Candidate) -> Location:
    """Return the location of a candidate."""
    return Location(path=candidate.path, line=candidate.line, function=candidate.function)


def is_data(path: str) -> bool:
    """Return whether a changed file of the product or the tests holds data rather than Python code."""
    return not path.endswith((".py", ".pyi"))


def _reasons(suspect: Suspect) -> Iterator[str]:
    """Yield the kinds of facts that speak against a function, for the candidate."""
    if suspect.hunk is not None:
        yield _CHANGED
    if suspect.executed is not None:
        yield _SPECTRUM
    if suspect.is_origin:
        yield _ORIGIN
    elif suspect.distance is not None:
        yield _TRACEBACK


def _spectrum(ran: ExecutedFunction, evidence: Evidence) -> float:
    """Return the suspiciousness of a function by execution counts, from 0 to 1.

    A weighted mean of Ochiai's coefficients of the function and of its most suspicious line, if lines were
    recorded, and of a term that decreases with the number of passing tests.
    """
    function = _ochiai(ran.red, ran.green, evidence.red_tests)
    if ran.suspect_line is None:
        return (4 * function + 2 / math.sqrt(1 + ran.green)) / 6
    line = _ochiai(ran.line_red, ran.line_green, evidence.red_tests)
    return (function + 3 * line + 2 / math.sqrt(1 + ran.line_green)) / 6


def _outer_functions(function: str) -> Iterator[str]:
    """Yield the plain names of the functions that enclose a function, outermost first."""
    parts = function.split(".<locals>.")
    for count in range(1, len(parts)):
        name = plain_name(".<locals>.".join(parts[:count]))
        if name is not None:
            yield name


def _ochiai(red: int, green: int, all_red: int) -> float:
    """Return Ochiai's coefficient, from 0 to 1.

    ``red`` and ``green`` are the numbers of failing and passing tests that executed the code, ``all_red``
    is the number of recorded failing tests.
    """
    return red / math.sqrt(max(all_red, red) * (red + green)) if red else 0.0


def _product_frames(evidence: Evidence, fault: Frame | None) -> Iterator[Frame]:
    """Yield the product frames of all exceptions: the surfacing one's first, innermost frames first.

    Before them the frame of the fault, unless it is the definition of a subject. Compared by identity, as
    rules return frames of the evidence itself and comparing models is slow.
    """
    is_subject = any(fault is each for each in evidence.subjects)
    if fault is not None and fault.side is Side.PRODUCT and not is_subject:
        yield fault
    for error in (*_origins_first(evidence.exceptions), *evidence.exceptions_in_group):
        asking, every = (
            [at for at in reversed(frames) if at.side is Side.PRODUCT and not at.path.startswith("<")]
            for frames in (frames_of(error), error.frames)
        )
        yield from asking or every  # of a test that asks, the product has only its __getattr__


def _origins_first(chain: Iterable[ExceptionFact]) -> Iterable[ExceptionFact]:
    """Return a chain with the cause before each exception that translates it: ``raise … from …``."""
    found: list[ExceptionFact] = []
    start = 0
    for error in chain:
        found.insert(start, error)
        source = (error.frames[-1].source if error.frames else None) or ""
        if not _TRANSLATION.match(source):
            start = len(found)
    return found


def _changed_around(evidence: Evidence, path: str, line: int) -> str | None:
    """Return the changed function that probably contains a line: the last one that starts above it."""
    above = [hunk for hunk in evidence.hunks if hunk.path == path and hunk.line <= line]
    return max(above, key=lambda hunk: hunk.line).function if above else None


@lru_cache(maxsize=4096)
def _words(name: str) -> frozenset[str]:
    """Return the lower-case words of a snake-case or camel-case name, without short and common ones."""
    found = _WORD.findall(name.partition("[")[0])
    return frozenset(word.lower() for word in found if len(word) > 2) - {"test", "tests", "self"}


def _size(hunk: Hunk) -> int:
    """Return the number of changed lines."""
    return hunk.added + hunk.removed
