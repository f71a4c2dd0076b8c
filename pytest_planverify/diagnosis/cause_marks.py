"""What proves that two failures have one cause: marks that are equal for the failures of one fault.

A mark is read from the structure of the evidence: a module that cannot be imported, a file that does not
parse, a fixture that raises, the product's function that raised or gave the value that a test refused.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from planner.model.taxonomy import Category
from planner.model.verdicts import Phase, Side
from planner.text.python_messages import callee_of
from pytest_planverify.diagnosis.case import Case, is_a, raises_by_hand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planner.model.evidence import Evidence, ExceptionFact, Finding, Frame
    from planner.model.outcome import Diagnosis


class Mark(NamedTuple):
    """Something that failures of one fault have in common: ``what`` kind of thing, and its ``name``."""

    what: str
    name: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Why failures with this mark are one."""
        return SENTENCES[self.what].format(*self.name)


SENTENCES = {
    "signature": "their signatures are equal",
    "module": "the module {0} cannot be imported",
    "name": "{0} has no {1}",
    "syntax": "{0} does not parse",
    "call": "{0}() does not take these arguments",
    "fixture": "the fixture {1} ({0}) fails",
    "raised": "{1} ({0}) raises {2}",
    "value": "{1} ({0}) is what does not do as tests expect",
    "stuck": "{1} ({0}) does not come to an end",
    "file": "the file {0} is not there",
    "changed": "{1} ({0}) was changed since their tests held",
}
"""By the kind of mark: what is the same about the failures."""

ASSERTIONS = ("builtins.AssertionError", "Failed", "_pytest.outcomes.Failed", "builtins.Failed")
"""A test's own verdict: that it was raised by a helper of the tests says nothing of the fault."""

_UNUSABLE = ("builtins.AttributeError", "builtins.LookupError", "builtins.TypeError", "builtins.ValueError")
"""What a test meets that uses a value of another kind than it expects."""

_CANNOT_IMPORT = re.compile(r"^cannot import name '(?P<name>[^']+)' from ")
_WHERE = re.compile(r"^ *\+ +(?:where|and) +.*? = (?P<call>.+)$", re.MULTILINE)
_METHOD = re.compile(r"^<bound method (?P<name>[\w.]+) of ")
_FUNCTION = re.compile(r"^<function (?P<name>[\w.<>]+) at ")
_ATTRIBUTE = re.compile(r"^<(?P<kind>[\w.]+) object at [^>]*>\.(?P<name>\w+)$")
_LITERAL = re.compile(r"\"[^\"]*\"|'[^']*'")
_CALL = re.compile(r"(?P<name>(?:\b[A-Za-z_]\w*)?(?:\.[A-Za-z_]\w*)*)\((?<=\w\()")
_OF_TESTS = ("self", "cls", "pytest")
"""Whose functions a test calls that give no value of the product: ``self.assertEqual``."""
_PLAIN_CALL = re.compile(r"^(?P<name>[A-Za-z_][\w.]*)\(")
_SYNTAX_CODES = frozenset({"invalid-syntax", "syntax-error", "syntax", "E999", "E902", "E0001"})


def marks_of(case: Case) -> Iterator[Mark]:
    """Every mark of a failure in focus, besides its signature."""
    if case.error is None:
        yield from _without_exception(case)
        return
    for read in _READERS:
        found = read(case, case.error)
        if found is not None:
            yield found


def changed_mark(diagnosis: Diagnosis) -> Mark | None:
    """The function whose change most likely made a test red that was green before."""
    first = next(iter(diagnosis.candidates), None)
    if diagnosis.category is not Category.TEST_REGRESSION or first is None or first.function is None:
        return None
    # What was only added has held nothing together before: two faults in it are two.
    is_change = first.hunk is not None and first.hunk.side is Side.PRODUCT and first.hunk.removed > 0
    return Mark("changed", (tidy(first.path), first.function)) if is_change else None


def focus(evidence: Evidence) -> Case:
    """The exception that was stumbled upon, where the one that surfaced was only raised in its stead.

    The frames of what was caught begin where it was caught: in the function that raised the other.
    """
    case = Case.of(evidence)
    for inner in case.evidence.exceptions[1:]:
        raising = case.raised_at
        caught_there = (
            raising is not None
            and bool(inner.frames)
            and (inner.frames[0].path, inner.frames[0].function) == (raising.path, raising.function)
        )
        if not (caught_there and raises_by_hand(raising) and raising is case.innermost):
            break
        case = case.at(inner)
    return case


def _module(case: Case, error: ExceptionFact) -> Mark | None:
    if is_a(error, "builtins.ModuleNotFoundError") and error.name:
        return Mark("module", (error.name,))
    return None


def _name(case: Case, error: ExceptionFact) -> Mark | None:
    """A name that a module or a class lacks, whoever asked for it."""
    if is_a(error, "builtins.ImportError") and error.name:
        found = _CANNOT_IMPORT.match(error.message)
        return Mark("name", (error.name, found["name"])) if found else None
    if not error.name:
        return None
    if is_a(error, "builtins.NameError"):
        module = case.raised_at.module if case.raised_at else None
        return Mark("name", (module, error.name)) if module else None
    if is_a(error, "builtins.AttributeError") and error.object_type:
        owner = error.object_type.removeprefix("module ")
        if owner != error.object_type or error.object_side in (Side.PRODUCT, Side.TEST):
            return Mark("name", (owner, error.name))
    return None


def _syntax(case: Case, error: ExceptionFact) -> Mark | None:
    is_file = error.path and not error.path.startswith("<")
    return (
        Mark("syntax", (tidy(error.path or ""),))
        if is_file and is_a(error, "builtins.SyntaxError")
        else None
    )


def _call(case: Case, error: ExceptionFact) -> Mark | None:
    callee = callee_of(error.message) if error.qualified == "builtins.TypeError" else None
    return Mark("call", (callee,)) if callee else None


def _raised(case: Case, error: ExceptionFact) -> Mark | None:
    """The function that raised: the product's, or one that the tests share."""
    frame = case.raised_at
    if frame is None or is_a(error, "builtins.SyntaxError", "builtins.ImportError"):
        return None
    if case.evidence.timed_out:
        return Mark("stuck", (frame.path, frame.function)) if case.in_product else None
    if frame.side is Side.TEST:
        return _of_the_tests(case, error, frame)
    return Mark("raised", (frame.path, frame.function, error.qualified))


def _misbehaves(case: Case, error: ExceptionFact) -> Mark | None:
    """The product's function that raised when a test called it: other tests find its values wrong."""
    frame = case.raised_at
    if frame is None or frame.side is not Side.PRODUCT or case.evidence.phase is not Phase.CALL:
        return None
    others = any(
        each.side is Side.PRODUCT and (each.path, each.function) != (frame.path, frame.function)
        for each in case.frames
    )
    return None if others else Mark("value", (tidy(frame.path), frame.function))


def _of_the_tests(case: Case, error: ExceptionFact, frame: Frame) -> Mark | None:
    if case.evidence.phase in (Phase.SETUP, Phase.TEARDOWN):
        return Mark("fixture", (frame.path, frame.function))
    first = next(each for each in case.frames if each.side is Side.TEST)
    is_the_test = (first.path, first.function) == (frame.path, frame.function)
    if is_the_test or is_a(error, *ASSERTIONS):
        return None
    return Mark("raised", (frame.path, frame.function, error.qualified))


def _value(case: Case, error: ExceptionFact) -> Mark | None:
    """The product's function that gave the value which the test did not expect, or could not use."""
    frame = case.raised_at
    if frame is None or frame.side is not Side.TEST or not is_a(error, *ASSERTIONS, *_UNUSABLE):
        return None
    if error.object_side in (Side.PRODUCT, Side.TEST) or callee_of(error.message):
        return None  # it lacks a name, or was called in another way: marks of their own
    giver = giver_of(case.evidence, error, frame)
    return Mark("value", giver) if giver else None


def giver_of(evidence: Evidence, error: ExceptionFact, frame: Frame) -> tuple[str, str] | None:
    """Path and qualified name of the only function of the product that can have given the value."""
    if not evidence.subjects:
        return None
    called = False
    for name in chain(_shown_calls(error.message), _calls(frame.source or "")):
        called = True
        found = {giver for subject in evidence.subjects if (giver := _as_subject(name, subject))}
        if len(found) == 1:
            return found.pop()
    only = evidence.subjects[0]
    if called or len(evidence.subjects) > 1 or _is_class(only):
        return None
    return tidy(only.path), only.function


def _as_subject(name: str, subject: Frame) -> tuple[str, str] | None:
    """The function that this name means, where the subject is that function, or the class that holds it."""
    holder, _, last = name.rpartition(".")
    if _is_class(subject):
        of_it = last and holder and holder.rpartition(".")[2] in ("", subject.function.rpartition(".")[2])
        of_it = of_it or (holder and not holder.rpartition(".")[2][:1].isupper())
        return (tidy(subject.path), f"{subject.function}.{last}") if of_it else None
    return (tidy(subject.path), subject.function) if subject.function.rpartition(".")[2] == last else None


def _is_class(frame: Frame) -> bool:
    return frame.function.rpartition(".")[2].lstrip("_")[:1].isupper()


def _shown_calls(message: str) -> Iterator[str]:
    """Names of what gave the values of an assertion, as pytest explains it, the outermost call first."""
    for found in _WHERE.finditer(message):
        call = found["call"]
        if method := _METHOD.match(call) or _FUNCTION.match(call):
            yield method["name"]
        elif attribute := _ATTRIBUTE.match(call):
            yield f"{attribute['kind']}.{attribute['name']}"
        elif plain := _PLAIN_CALL.match(call):
            yield plain["name"]


def _calls(source: str) -> Iterator[str]:
    """Names of what a line of source calls, from the left: of nested calls the outermost first."""
    for found in _CALL.finditer(_LITERAL.sub("0", source)):
        name = found["name"]
        if name.rpartition(".")[0] not in _OF_TESTS:
            yield f"value{name}" if name.startswith(".") else name


def _without_exception(case: Case) -> Iterator[Mark]:
    evidence = case.evidence
    if evidence.artifact is not None and evidence.artifact.problem == "missing":
        yield Mark("file", (evidence.artifact.path,))
    if evidence.command is not None and (path := unparsed(evidence.command.findings)):
        yield Mark("syntax", (path,))
    if evidence.timed_out and (frame := case.stuck_at) is not None and frame.side is Side.PRODUCT:
        yield Mark("stuck", (frame.path, frame.function))


def unparsed(findings: tuple[Finding, ...]) -> str | None:
    """The one file that a tool could not parse, where it complains of no other file."""
    paths = {tidy(finding.path) for finding in findings if finding.path}
    broken = any(is_syntax(finding) for finding in findings)
    return paths.pop() if broken and len(paths) == 1 else None


def is_syntax(finding: Finding) -> bool:
    """Whether a complaint says that a file does not parse."""
    return finding.code in _SYNTAX_CODES or finding.message.startswith(("SyntaxError:", "Syntax error"))


def tidy(path: str) -> str:
    """A path as evidence has it: with slashes, and without the folder itself in front."""
    return path.replace("\\", "/").removeprefix("./")


_READERS: tuple[Callable[[Case, ExceptionFact], Mark | None], ...] = (
    _module,
    _name,
    _syntax,
    _call,
    _raised,
    _misbehaves,
    _value,
)
