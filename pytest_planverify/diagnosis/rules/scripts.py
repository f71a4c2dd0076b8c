"""Rules for commands whose output tells of an error in another language than Python, or of a death."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.kinds import EvidenceKind
from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.printed_scripts import (
    ScriptError,
    is_test_path,
    read_compiler_error,
    read_death,
    read_linker_error,
    read_missing_tool,
    read_script_error,
)
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.wording import quote

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_planverify.diagnosis.printed_scripts import Place
    from pytest_planverify.diagnosis.reading import Case

_SCRIPTS = frozenset({"test", "validate", "build", "other"})
_DEADLY_STATUS = {128 + number: name for number, name in ((4, "SIGILL"), (6, "SIGABRT"), (7, "SIGBUS"),
                                                           (8, "SIGFPE"), (11, "SIGSEGV"))}  # fmt: skip
_NO_MODULE = re.compile(r"^Cannot find (?:module|package) '(?P<name>[^']+)'")
_NO_FUNCTION = re.compile(r"is not a (?:function|constructor)\b")
_NO_EXPORT = re.compile(r"does not provide an export named '(?P<name>[^']+)'")


def _output(case: Case) -> str | None:
    command = case.evidence.command
    if case.evidence.kind is not EvidenceKind.COMMAND or command is None or command.purpose not in _SCRIPTS:
        return None
    return command.output_tail


def _owner(place: Place | None) -> Owner | None:
    return Owner.TEST if place is not None and is_test_path(place.path) else None


def _hit(sentence: str, place: Place | None, owner: Owner | None = None) -> Hit:
    where = f" at {place.path}:{place.line}" if place else ""
    location = (
        Location(path=place.path, line=place.line, function=place.function or None) if place else None
    )
    return Hit(suggestion=sentence.format(at=where), location=location, owner=owner or _owner(place))


def _died(case: Case) -> Hit | None:
    text = _output(case)
    if text is None:
        return None
    death = _DEADLY_STATUS.get(case.process.exit_code or 0) or read_death(text)
    if death is None:
        return None
    return Hit(suggestion=f"A program of the project died under the command: {death}. Run it alone.")


def _compiler(case: Case) -> Hit | None:
    text = _output(case)
    found = read_compiler_error(text) if text else None
    if found is None:
        return None
    place, message = found
    said = quote(message).replace("{", "(").replace("}", ")")
    return _hit(f"The compiler{{at}} says: {said}.", place)


def _linker(case: Case) -> Hit | None:
    text = _output(case)
    name = read_linker_error(text) if text else None
    return (
        None
        if name is None
        else Hit(suggestion=f"The linker finds no {quote(name, 80)}: define or link it.")
    )


def _missing_tool(case: Case) -> Hit | None:
    text = _output(case)
    tool = read_missing_tool(text) if text else None
    if tool is None:
        return None
    return Hit(
        suggestion=f"The command starts {tool}, which is not installed here: install it, or correct PATH."
    )


def _script(wanted: Callable[[ScriptError], bool], sentence: str, owner: Owner | None = None) -> Reader:
    """Reads the error of a script, if it is one of those that are wanted."""

    def read(case: Case) -> Hit | None:
        text = _output(case)
        error = read_script_error(text) if text else None
        if error is None or not wanted(error):
            return None
        said = quote(f"{error.type}: {error.message}").replace("{", "(").replace("}", ")")
        return _hit(f"{sentence}: {said}.", error.places[0] if error.places else None, owner)

    return read


def _in_test(error: ScriptError) -> bool:
    return bool(error.places) and is_test_path(error.places[0].path)


def _module_name(error: ScriptError) -> str:
    found = _NO_MODULE.match(error.message)
    return found["name"] if found else ""


def _is_own_module(error: ScriptError) -> bool:
    return _module_name(error).startswith((".", "/"))


def _misses_promise(error: ScriptError) -> bool:
    """A test calls, or imports, what the product no longer offers."""
    if error.type == "SyntaxError":
        return bool(_NO_EXPORT.search(error.message))
    return error.type == "TypeError" and bool(_NO_FUNCTION.search(error.message)) and _in_test(error)


SCRIPT_RULES: tuple[Rule, ...] = (
    Rule(
        id="program-died-in-command",
        because="The command's output, or its exit status, says that a program died by a signal.",
        category=Category.TEST_CRASH,
        confidence=0.88,
        runner_up=(Category.TEST_REGRESSION, 0.1),
        read=_died,
    ),
    Rule(
        id="compiler-refused-in-command",
        because="A compiler that the command started refused a source file.",
        category=Category.COMPILATION_ERROR,
        confidence=0.88,
        runner_up=(Category.TEST_REGRESSION, 0.1),
        read=_compiler,
    ),
    Rule(
        id="linker-misses-something",
        because="The linker does not find what a source file uses.",
        category=Category.COMPILATION_ERROR,
        confidence=0.88,
        read=_linker,
    ),
    Rule(
        id="tool-missing-in-command",
        because="A program that the command starts is not installed here.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.9,
        read=_missing_tool,
    ),
    Rule(
        id="script-misses-promise",
        because="A script's test calls or imports what the product does not offer.",
        category=Category.SPEC_MISMATCH,
        confidence=0.8,
        runner_up=(Category.TYPE_ERROR, 0.15),
        read=_script(_misses_promise, "What the test{at} asks for is not there", Owner.PRODUCT),
    ),
    Rule(
        id="script-does-not-parse",
        because="A script of the project does not parse.",
        category=Category.COMPILATION_ERROR,
        confidence=0.92,
        read=_script(lambda error: error.type == "SyntaxError", "The source{at} does not parse"),
    ),
    Rule(
        id="script-lacks-own-module",
        because="A script imports a file of the project that does not exist.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.8,
        runner_up=(Category.SPEC_MISMATCH, 0.2),
        read=_script(_is_own_module, "A file that is imported{at} is not there"),
    ),
    Rule(
        id="script-lacks-package",
        because="A script imports a package that is not installed.",
        category=Category.IMPORT_ERROR,
        confidence=0.88,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.1),
        read=_script(
            lambda error: bool(_module_name(error)), "A package that is imported{at} is not installed"
        ),
    ),
    Rule(
        id="script-meets-wrong-kind",
        because="A script's product code meets a value of the wrong kind.",
        category=Category.TYPE_ERROR,
        confidence=0.85,
        runner_up=(Category.TEST_REGRESSION, 0.15),
        read=_script(
            lambda error: error.type == "TypeError" and not _in_test(error),
            "The code{at} meets a value of the wrong kind",
        ),
    ),
)
