"""Rules for commands whose output tells of an error in another language than Python, or of a death."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.catalog.test_paths import is_test_path
from planner.model.kinds import EvidenceKind
from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.printed_scripts import (
    ScriptError,
    read_absent_header,
    read_absent_prerequisite,
    read_absent_script,
    read_compiler_error,
    read_coverage,
    read_death,
    read_failed_assertion,
    read_linker_error,
    read_makefile_error,
    read_missing_tool,
    read_script_error,
    read_shell_syntax,
)
from pytest_planverify.diagnosis.project_files import within_project
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.rules.complaints import is_unchanged_test
from pytest_planverify.diagnosis.wording import quote

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.model.evidence import CommandFact
    from pytest_planverify.diagnosis.printed_scripts import Place
    from pytest_planverify.diagnosis.reading import Case

_SCRIPTS = frozenset({"test", "validate", "build", "other"})
_DEADLY_STATUS = {128 + number: name for number, name in ((4, "SIGILL"), (6, "SIGABRT"), (7, "SIGBUS"),
                                                           (8, "SIGFPE"), (11, "SIGSEGV"))}  # fmt: skip
_NO_MODULE = re.compile(r"^Cannot find (?:module|package) '(?P<name>[^']+)'")
_CHECKERS = frozenset({"lint", "type_check"})
_CONFIG = re.compile(
    r"^(?:Error: )?(?:Cannot find (?:module|package) '|Error importing plugin|Failed to load plugin|"
    r"ESLint couldn't find the (?:plugin|config)|Oops! Something went wrong)",
    re.MULTILINE,
)
_NO_FUNCTION = re.compile(r"is not a (?:function|constructor)\b")
_NO_EXPORT = re.compile(r"does not provide an export named '(?P<name>[^']+)'")


def _output(case: Case) -> str | None:
    command = case.evidence.command
    if case.evidence.kind is not EvidenceKind.COMMAND or command is None or command.purpose not in _SCRIPTS:
        return None
    return command.output_tail


def _any_command(case: Case) -> CommandFact | None:
    return case.evidence.command if case.evidence.kind is EvidenceKind.COMMAND else None


def _owner(case: Case, place: Place | None) -> Owner | None:
    """Of the file; a test that is as it was is not to blame for a product that was changed."""
    if place is None or not is_test_path(place.path) or is_unchanged_test(case, place.path):
        return None
    return Owner.TEST


def _hit(case: Case, sentence: str, place: Place | None, owner: Owner | None = None) -> Hit:
    if place is not None:
        place = place._replace(path=within_project(place.path, case.evidence))
    where = f" at {place.path}:{place.line}" if place else ""
    location = (
        Location(path=place.path, line=place.line, function=place.function or None) if place else None
    )
    return Hit(suggestion=sentence.format(at=where), location=location, owner=owner or _owner(case, place))


def _died(case: Case) -> Hit | None:
    text = _output(case)
    if text is None or read_failed_assertion(text):
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
    return _hit(case, f"The compiler{{at}} says: {said}.", place)


def _linker(case: Case) -> Hit | None:
    text = _output(case)
    name = read_linker_error(text) if text else None
    return (
        None
        if name is None
        else Hit(
            suggestion=f"The linker finds no {quote(name, 80)}: define or link it.",
            owner=Owner.TEST if case.only_tests_changed else None,
        )
    )


def _missing_tool(case: Case) -> Hit | None:
    command = _any_command(case)
    tool = read_missing_tool(command.output_tail) if command else None
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
        return _hit(case, f"{sentence}: {said}.", error.places[0] if error.places else None, owner)

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


def _absent_prerequisite(case: Case) -> Hit | None:
    command = _any_command(case)
    found = read_absent_prerequisite(command.output_tail) if command else None
    if found is None:
        return None
    name, by = found
    return Hit(
        suggestion=f"make needs {quote(name, 80)} for {quote(by, 80)}, and nothing makes it: a file of the "
        "project is gone, or a rule names another."
    )


def _absent_header(own: bool) -> Reader:
    def read(case: Case) -> Hit | None:
        command = _any_command(case)
        found = read_absent_header(command.output_tail) if command else None
        if found is None or found[2] is not own:
            return None
        place, header, _ = found
        remedy = "write it, or correct the name" if own else "install the library that brings it"
        return Hit(
            suggestion=f"{place.path}:{place.line} includes {quote(header, 80)}, which is not there: "
            f"{remedy}.",
            location=Location(path=place.path, line=place.line),
        )

    return read


def _misconfigured(case: Case) -> Hit | None:
    command = _any_command(case)
    if command is None or command.purpose not in _CHECKERS or not _CONFIG.search(command.output_tail):
        return None
    return Hit(
        suggestion=f"{command.tool} cannot load its own set-up: install what its configuration asks for."
    )


def _told(read: Callable[[str], tuple[Place, str] | None], sentence: str) -> Reader:
    """Reads a place and what is said of it, under whatever started the program."""

    def reader(case: Case) -> Hit | None:
        command = _any_command(case)
        found = read(command.output_tail) if command else None
        if found is None:
            return None
        said = quote(found[1]).replace("{", "(").replace("}", ")")
        return _hit(case, f"{sentence}{{at}}: {said}.", found[0])

    return reader


def _absent_script(case: Case) -> Hit | None:
    command = _any_command(case)
    path = read_absent_script(command.output_tail) if command else None
    return None if path is None else Hit(suggestion=f"A shell is to run {quote(path, 80)}, which is gone.")


def _coverage(case: Case) -> Hit | None:
    command = _any_command(case)
    said = read_coverage(command.output_tail) if command and case.error is None else None
    return None if said is None else Hit(suggestion=f"The tests cover too little: {quote(said)}.")


EARLY_SCRIPT_RULES: tuple[Rule, ...] = (
    Rule(
        id="tool-missing-in-command",
        because="A program that the command starts is not installed here.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.9,
        read=_missing_tool,
    ),
    Rule(
        id="tool-cannot-load-its-setup",
        because="A linter or type checker cannot load a plugin that its configuration asks for.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.75,
        runner_up=(Category.LINT_ERROR, 0.2),
        read=_misconfigured,
    ),
    Rule(
        id="header-of-project-missing",
        because="A source file includes a header of the project that does not exist.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.85,
        runner_up=(Category.COMPILATION_ERROR, 0.15),
        read=_absent_header(own=True),
    ),
    Rule(
        id="header-of-system-missing",
        because="A source file includes a header of a library that is not installed.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.75,
        runner_up=(Category.IMPORT_ERROR, 0.25),
        read=_absent_header(own=False),
    ),
    Rule(
        id="prerequisite-missing",
        because="A file that make needs does not exist, and make has no rule for it.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.8,
        runner_up=(Category.TEST_NOT_FOUND, 0.15),
        read=_absent_prerequisite,
    ),
    Rule(
        id="shell-script-missing",
        because="A shell was to run a script of the project that does not exist.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.85,
        runner_up=(Category.TEST_NOT_FOUND, 0.1),
        read=_absent_script,
    ),
    Rule(
        id="shell-script-does-not-parse",
        because="A shell script does not parse.",
        category=Category.COMPILATION_ERROR,
        confidence=0.9,
        read=_told(read_shell_syntax, "The shell script does not parse"),
    ),
    Rule(
        id="makefile-does-not-parse",
        because="The file that make reads does not parse.",
        category=Category.COMPILATION_ERROR,
        confidence=0.88,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.1),
        read=_told(read_makefile_error, "make cannot read its file"),
    ),
    Rule(
        id="coverage-below-limit",
        because="The tests cover less than the limit that was set.",
        category=Category.METRIC_UNMET,
        confidence=0.92,
        read=_coverage,
    ),
)
"""What is asked before the findings of a command are looked at."""

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
    Rule(
        id="native-assertion-failed",
        because="An assertion of a program in C did not hold.",
        category=Category.TEST_REGRESSION,
        confidence=0.88,
        runner_up=(Category.TEST_CRASH, 0.1),
        read=_told(read_failed_assertion, "An assertion does not hold"),
    ),
    Rule(
        id="script-raised",
        because="A script of the project raised an error.",
        category=Category.TEST_REGRESSION,
        confidence=0.85,
        read=_script(lambda error: bool(error.places), "An error was raised{at}"),
    ),
)
