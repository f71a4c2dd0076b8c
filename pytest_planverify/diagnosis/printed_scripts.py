"""Reading what JavaScript runtimes, compilers and shells print: an error with its place, or a death."""

from __future__ import annotations

import re
from typing import NamedTuple

_SYNTAX_PLACE = re.compile(r"^(?:.*\s)?(?:file://)?(?P<path>/?[^\s:()]+\.[cm]?[jt]sx?):(?P<line>\d+)$")
_ERROR = re.compile(
    r"^[#\s]*(?:Uncaught |Exception during run: )?(?P<type>(?:[A-Z]\w*)?Error)(?: \[\w+\])?: "
    r"(?P<message>.+?)\s*$",
    re.MULTILINE,
)
_YAML_ERROR = re.compile(
    r"^ +error: (?P<quote>[\"'])(?P<message>.+?)(?P=quote)\n(?: +code: .+\n)? +name: '(?P<type>\w*Error)'",
    re.MULTILINE,
)
_FRAME = re.compile(
    r"^[#\s]*(?:at )?(?:(?P<function>[\w.<>$\[\] ]+?) )?\(?(?:file://)?(?P<path>/?[^\s:()]+\.[cm]?[jt]sx?):(?P<line>\d+):\d+\)?$"
)
_DEATH = re.compile(
    r"^(?:(?:/bin/)?(?:ba)?sh: line \d+: +\d+ )?(?P<what>Segmentation fault|Aborted|Bus error|"
    r"Illegal instruction|Floating point exception|Killed)(?: .*)?$|^ +signal: '(?P<signal>SIG[A-Z]+)'$|"
    r"\(signal: \d+, (?P<rust>SIG[A-Z]+): |"
    r"^\S*make(?:\[\d+\])?: \*\*\* \[[^\]]+\] (?P<make>Segmentation fault|Aborted|Bus error|"
    r"Illegal instruction|Floating point exception|Killed)(?: .*)?$|"
    r"^[\w.-]+: exit (?P<tox>-\d+) \(|^Fatal Python error: (?P<python>\S.*)$|"
    r"didn't exit successfully: .+ \((?P<status>exit status: (?!101\b)\d+)\)$|"
    r"^#? ?-----? Native stack trace -----$",
    re.MULTILINE,
)
_ABSENT_HEADER = re.compile(
    r"^(?P<path>[^\s:]+):(?P<line>\d+):\d+: fatal error: (?P<header>\S+): No such file or directory\n"
    r"[^\n]*#\s*include\s*(?P<quote>[\"<])",
    re.MULTILINE,
)
_ABSENT_PREREQUISITE = re.compile(
    r"^g?make(?:\[\d+\])?: \*\*\* No rule to make target [`'](?P<name>[^']+)', "
    r"needed by [`'](?P<by>[^']+)'",
    re.MULTILINE,
)
_ASSERTED = re.compile(
    r"^\S+: (?P<path>[^\s:]+):(?P<line>\d+): .*: Assertion [`'](?P<message>.+)' failed\.$", re.MULTILINE
)
_COVERAGE = re.compile(
    r"^(?:Coverage failure: (?P<total>total of .+ is less than .+)|"
    r"(?:ERROR: |FAIL )(?:Coverage failure: |Required test coverage of )(?P<required>.+)|"
    r"(?:Jest: |ERROR: )(?P<jest>.*[Cc]overage .*(?:threshold|does not meet).+))$",
    re.MULTILINE,
)
_NO_TOOL = re.compile(
    r"^(?:(?:/bin/)?(?:ba|da)?sh|[^\s:]+): (?:line )?\d+: (?P<shell>[\w.+-]+|/[\w./+-]+): "
    r"(?:command )?not found$|"
    r"^g?make(?:\[\d+\])?: (?P<make>[\w+-]+): (?:No such file or directory|Command not found)$|"
    r"^npm error npx canceled due to missing packages .*\[\"(?P<npx>[^\"@]+)",
    re.MULTILINE,
)
_LIBRARY = re.compile(r"(?:^|/)node_modules/|^node:")


class Place(NamedTuple):
    """A file of the project and a line in it."""

    path: str
    line: int
    function: str = ""


class ScriptError(NamedTuple):
    """An error that a JavaScript runtime printed."""

    type: str
    message: str
    places: tuple[Place, ...]
    """The project's frames, the one that raised first."""


def read_script_error(text: str) -> ScriptError | None:
    """The first error of a script that is no failed assertion, or ``None``."""
    if "Error" not in text:
        return None
    lines = text.splitlines()
    for at, line in enumerate(lines):
        found = _ERROR.match(line)
        if found and found["type"] != "AssertionError":
            before = _syntax_place(lines[:at]) if found["type"] == "SyntaxError" else ()
            return ScriptError(found["type"], found["message"], before or _places(lines[at + 1 :]))
    if found := _YAML_ERROR.search(text):
        if found["type"] == "AssertionError":
            return None
        return ScriptError(found["type"], found["message"], _places(text[found.end() :].splitlines()))
    return None


def read_death(text: str) -> str | None:
    """How a program that the command started died, as a shell or a test runner says it."""
    found = _DEATH.search(text)
    if found is None:
        return None
    told = next((group for group in found.groups() if group), None)
    return told or "a crash in native code"


def read_absent_header(text: str) -> tuple[Place, str, bool] | None:
    """Where a header that is not there is included, its name, and whether it is one of the project."""
    found = _ABSENT_HEADER.search(text)
    if found is None:
        return None
    return Place(found["path"], int(found["line"])), found["header"], found["quote"] == '"'


def read_absent_prerequisite(text: str) -> tuple[str, str] | None:
    """A file that make needs and cannot make, and what needs it."""
    found = _ABSENT_PREREQUISITE.search(text)
    return None if found is None else (found["name"], found["by"])


def read_failed_assertion(text: str) -> tuple[Place, str] | None:
    """An assertion of C that did not hold, after which the program ends itself."""
    return _placed(_ASSERTED.search(text))


def _placed(found: re.Match[str] | None) -> tuple[Place, str] | None:
    return None if found is None else (Place(found["path"], int(found["line"])), found["message"])


def read_coverage(text: str) -> str | None:
    """What a tool says of a coverage that is below its limit."""
    found = _COVERAGE.search(text)
    return None if found is None else next(group for group in found.groups() if group)


def read_missing_tool(text: str) -> str | None:
    """The program that a shell or make, started by the command, did not find."""
    found = _NO_TOOL.search(text)
    return None if found is None else next(group for group in found.groups() if group)


def _syntax_place(before: list[str]) -> tuple[Place, ...]:
    """The file that does not parse stands some lines above the error, over the source and a caret."""
    for line in reversed(before[-6:]):
        if found := _SYNTAX_PLACE.match(line.strip()):
            return (Place(found["path"], int(found["line"])),)
    return ()


def _places(lines: list[str]) -> tuple[Place, ...]:
    found: list[Place] = []
    for line in lines:
        frame = _FRAME.match(line)
        if frame is not None and not _LIBRARY.search(frame["path"]):
            found.append(Place(frame["path"], int(frame["line"]), (frame["function"] or "").strip()))
        elif found and frame is None and not line.strip().lstrip("#").strip().startswith("at "):
            break
    return tuple(found)
