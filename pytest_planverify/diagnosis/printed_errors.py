"""Read exceptions and stacks from what a process printed."""

from __future__ import annotations

import builtins
import re
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple

from planner.catalog.test_paths import is_test_module
from planner.model.evidence import ExceptionFact, Frame
from planner.model.verdicts import Side

_RAISED = "\nE  "
_HEADER = re.compile(r"^_{3,} (?P<name>\S.*?) _{3,}$")
_ERROR = re.compile(r"^E +(?P<type>[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Failed))"
                    r"(?:: (?P<message>.*))?$")  # fmt: skip
_ASSERTED = re.compile(r"^E +(?P<message>assert .+)$")
_PLACE = re.compile(r"^(?P<path>[^\s:][^:]*):(?P<line>\d+): (?:in (?P<function>\S+)|(?P<type>\w*))$")
_SYNTAX_PLACE = re.compile(r'^E +File "(?P<path>[^"]+)", line (?P<line>\d+)$')
_DEFINES = re.compile(r"^ +(?:async )?def (?P<name>\w+)\(")
_SOURCE = re.compile(r"^> +(?P<source>\S.*)$")


class PrintedFrame(NamedTuple):
    """A place on the way of a failure."""

    path: str
    line: int
    function: str
    source: str | None


class PrintedFailure(NamedTuple):
    """The first failure of a report."""

    type: str
    message: str
    frames: tuple[PrintedFrame, ...]
    syntax: PrintedFrame | None
    """Where the source does not parse."""


def read_report(text: str) -> PrintedFailure | None:
    """The first failure that pytest reports with its frames, or ``None``."""
    if _RAISED not in text:
        return None
    lines = [line.rstrip() for line in text.splitlines()]
    start = next((at for at, line in enumerate(lines) if _HEADER.match(line)), None)
    if start is None:
        return None
    end = next((at for at in range(start + 1, len(lines)) if _ends(lines[at])), len(lines))
    return _failure(lines[start + 1 : end], _function_of(lines[start]))


def _ends(line: str) -> bool:
    return bool(_HEADER.match(line)) or line.startswith("=====")


def _function_of(header: str) -> str:
    found = _HEADER.match(header)
    name = found["name"] if found else ""
    return "<module>" if " " in name else name.partition("[")[0]


def _failure(lines: list[str], function: str) -> PrintedFailure | None:
    frames: list[PrintedFrame] = []
    error: tuple[str, str] | None = None
    syntax: PrintedFrame | None = None
    source: str | None = None
    for at, line in enumerate(lines):
        if found := _DEFINES.match(line):
            function = function if function.endswith(found["name"]) else found["name"]
        elif found := _SOURCE.match(line):
            source = found["source"]
        elif found := _PLACE.match(line):
            shown = lines[at + 1].strip() if found["function"] and at + 1 < len(lines) else source
            frames.append(
                PrintedFrame(found["path"], int(found["line"]), found["function"] or function, shown)
            )
            source = None
        elif found := _SYNTAX_PLACE.match(line):
            syntax = PrintedFrame(found["path"], int(found["line"]), "<module>", None)
        elif found := _ERROR.match(line):
            error = found["type"], found["message"] or ""
        elif error is None and (found := _ASSERTED.match(line)):
            error = "AssertionError", found["message"]
    if error is None or not (frames or syntax):
        return None
    return PrintedFailure(*error, tuple(frames), syntax)


_TRACEBACK = "Traceback (most recent call last):"
_FILE_MARK = ' File "'
_FILE = re.compile(r'^ +File "(?P<path>[^"\n]+)", line (?P<line>\d+)(?:,? in (?P<function>.+))?$')
_LAST = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$")
_STACK_TRACEBACK = re.compile(r"^(?:Current thread|Thread) 0x[0-9a-f]+.*:$")
_INTERNAL = "INTERNALERROR> "
_MISSING_MODULE = re.compile(r"^No module named '(?P<name>[^']+)'")
_CANNOT_IMPORT = re.compile(
    r"^cannot import name '[^']+' from (?:partially initialized module )?'(?P<name>[^']+)'"
)
_ERRNO = re.compile(r"^\[Errno (?P<errno>\d+)\] [^:]*(?:: '(?P<path>[^']*)')?")
_NO_ATTRIBUTE = re.compile(
    r"^(?:module '(?P<module>[\w.]+)'|'(?P<kind>[\w.]+)' object) has no attribute '(?P<name>\w+)'"
)
_LIBRARY = re.compile(r"/(?:site|dist)-packages/(?P<package>[^/.]+)")
_STDLIB = re.compile(r"/lib/python\d\.\d+/|\\Lib\\|^<frozen ")
_SESSION_START = re.compile(r"pytest_planverify[\/\\](?:observing[\/\\]session|observe[\/\\]worker)\.py$")
_FRAMEWORK = frozenset({"pytest", "_pytest", "pluggy", "xdist", "execnet"})
_SYNTAX_ERRORS = frozenset({"SyntaxError", "IndentationError", "TabError"})


def read_traceback(text: str, first_party: frozenset[str] = frozenset()) -> ExceptionFact | None:
    """The last traceback that a Python process printed, or a compiler's syntax error, or ``None``.

    Where there is none: the first failure that pytest reports. The sides of the frames are judged by
    their paths alone.
    """
    return _read_traceback(text, first_party) or _read_report(text, first_party)


def _read_report(text: str, first_party: frozenset[str]) -> ExceptionFact | None:
    found = read_report(text)
    if found is None:
        return None
    frames = tuple(_reported(frame, first_party) for frame in found.frames)
    syntax = _reported(found.syntax, first_party) if found.syntax else None
    return _exception(found.type, found.message, frames, syntax, first_party)


def _reported(frame: PrintedFrame, first_party: frozenset[str]) -> Frame:
    path = frame.path.removeprefix("./")
    return Frame(
        path=path,
        line=frame.line,
        function=frame.function,
        side=_side(path, first_party),
        source=frame.source,
    )


def _read_traceback(text: str, first_party: frozenset[str]) -> ExceptionFact | None:
    if _FILE_MARK not in text:
        return None  # most of what is printed holds no traceback
    lines = [line.removeprefix(_INTERNAL).rstrip() for line in text.splitlines()]
    starts = [at for at, line in enumerate(lines) if line.strip() == _TRACEBACK]
    if starts:
        return _read_from(lines[starts[-1] + 1 :], first_party)
    inside = [
        at
        for at, line in enumerate(text.splitlines())
        if line.startswith(_INTERNAL) and _FILE.match(lines[at])
    ]
    if inside:  # the beginning was cut off
        return _read_from(lines[inside[0] :], first_party)
    refused = [
        at for at, line in enumerate(lines) if (found := _FILE.match(line)) and not found["function"]
    ]
    error = _read_from(lines[refused[-1] :], first_party) if refused else None
    return error if error is not None and error.type in _SYNTAX_ERRORS else None


def _read_from(lines: list[str], first_party: frozenset[str]) -> ExceptionFact | None:
    """The frames up to the line that names the exception."""
    frames: list[Frame] = []
    syntax_frame: Frame | None = None
    for at, line in enumerate(lines):
        if found := _FILE.match(line):
            source = (
                lines[at + 1].strip() if at + 1 < len(lines) and not _FILE.match(lines[at + 1]) else None
            )
            frame = _frame(found, source, first_party)
            if found["function"] is None:
                syntax_frame = frame
            else:
                frames.append(frame)
        elif (frames or syntax_frame) and (last := _LAST.match(line)):
            return _exception(last["type"], last["message"] or "", tuple(frames), syntax_frame, first_party)
    return None


def read_stack(text: str, first_party: frozenset[str] = frozenset()) -> tuple[Frame, ...]:
    """The frames of a faulthandler stack, outermost call first.

    Of several threads the current one's, unless it only waits for another in which the product stands.
    """
    if _FILE_MARK not in text:
        return ()
    calls: list[re.Match[str]] = []
    stacks: list[tuple[str, list[re.Match[str]]]] = [("", calls)]
    for line in text.splitlines():
        if _STACK_TRACEBACK.match(line):
            calls = []
            stacks.append((line, calls))
        elif (found := _FILE.match(line)) and found["function"]:
            if _SESSION_START.search(found["path"]):
                calls = []  # it and its callers are the verifier, not the code under test
            calls.append(found)
    stacks = [(header, calls) for header, calls in stacks if calls]
    if not stacks:
        return ()
    current = next((calls for header, calls in stacks if header.startswith("Current")), stacks[0][1])
    if not _has_product(current, first_party):
        current = next((calls for _, calls in stacks if _has_product(calls, first_party)), current)
    return tuple(_frame(found, None, first_party) for found in reversed(current))


def _has_product(calls: list[re.Match[str]], first_party: frozenset[str]) -> bool:
    return any(_side(found["path"].removeprefix("./"), first_party) is Side.PRODUCT for found in calls)


def _frame(found: re.Match[str], source: str | None, first_party: frozenset[str]) -> Frame:
    path = found["path"].removeprefix("./")
    return Frame(
        path=path,
        line=int(found["line"]),
        function=found["function"] or "<module>",
        side=_side(path, first_party),
        source=source,
    )


@lru_cache(maxsize=4096)
def _side(path: str, first_party: frozenset[str]) -> Side:
    plain = path.replace("\\", "/")
    if library := _LIBRARY.search(plain):
        package = library["package"]
        if package in first_party:
            return Side.PRODUCT
        return (
            Side.FRAMEWORK if package in _FRAMEWORK or package.startswith("pytest_") else Side.THIRD_PARTY
        )
    if _STDLIB.search(path) or plain.startswith("<"):
        return Side.STDLIB
    pure = PurePosixPath(plain)
    if is_test_module(pure.name) or pure.name == "conftest.py" or "tests" in pure.parts:
        return Side.TEST
    return Side.PRODUCT


def _exception(
    name: str,
    message: str,
    frames: tuple[Frame, ...],
    syntax_frame: Frame | None,
    first_party: frozenset[str],
) -> ExceptionFact:
    bare = name.rpartition(".")[2]
    known = getattr(builtins, bare, None) if "." not in name else None
    bases: tuple[str, ...] = ()
    if isinstance(known, type) and issubclass(known, BaseException):
        bases = tuple(f"builtins.{base.__name__}" for base in known.__mro__[1:-1])
    found = _MISSING_MODULE.match(message) or _CANNOT_IMPORT.match(message)
    system = _ERRNO.match(message)
    syntax = syntax_frame if bare in _SYNTAX_ERRORS else None
    attribute = _NO_ATTRIBUTE.match(message) if bare == "AttributeError" else None
    object_type, side = _object(attribute, first_party) if attribute else (None, None)
    named = found or attribute
    return ExceptionFact(
        type=bare,
        qualified=name if "." in name else f"builtins.{name}",
        bases=bases,
        message=message,
        frames=frames,
        name=named["name"] if named else None,
        path=syntax.path if syntax else (system["path"] if system else None),
        line=syntax.line if syntax else None,
        errno=int(system["errno"]) if system else None,
        object_type=object_type,
        object_side=syntax.side if syntax else side,
    )


def _object(found: re.Match[str], first_party: frozenset[str]) -> tuple[str | None, Side | None]:
    """Type and side of what lacks an attribute, as far as the message tells."""
    if module := found["module"]:
        own = module.partition(".")[0] in first_party
        return f"module {module}", Side.PRODUCT if own else Side.THIRD_PARTY
    known = isinstance(getattr(builtins, found["kind"], None), type) or found["kind"] == "NoneType"
    return (f"builtins.{found['kind']}", Side.STDLIB) if known else (found["kind"], None)
