"""Reading the report that pytest prints of a failure, into the exception and its frames."""

from __future__ import annotations

import re
from typing import NamedTuple

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
