"""Reading the complaints of each tool out of its output.

A format is a list of patterns over the whole text, each with the named groups ``path``, ``line``,
``column``, ``code``, ``message`` and ``severity`` that a complaint of that kind carries. Formats that a
pattern cannot describe have a function. The patterns were written against what the tools really print.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

from planner.model.evidence import Finding
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planner.catalog.tools import Tool

MAX_FINDINGS = 100
"""More complaints than this are left out."""
MAX_OUTPUT = 60_000
"""Characters of the output that are read: its head and, twice as long, its tail."""
MAX_MESSAGE = 500
"""Characters of one complaint's message."""


def read_findings(tool: Tool, stdout: str, stderr: str) -> tuple[Finding, ...]:
    """What the tool complains of: errors first, then warnings, each in the order of the output."""
    text = _LONG_LINE.sub(r"\1", clean(f"{stdout}\n{stderr}", limit=MAX_OUTPUT))
    found = list(_read(tool.output, text)) or list(_read("generic", text))
    unique = list(dict.fromkeys(found))
    unique.sort(key=lambda finding: finding.severity in _MILD)
    return tuple(unique[:MAX_FINDINGS])


_LONG_LINE = re.compile(r"([^\n]{2000})[^\n]+")
_MILD = frozenset({"warning", "information", "note", "hint"})
_PLACE = r"(?P<path>[^\s:][^:\n]*?):(?P<line>\d+):(?P<column>\d+)"
_RUST_PLACE = r"\n +--> (?P<path>[^\n]+?):(?P<line>\d+):(?P<column>\d+)"

_SYNTAX_ERROR = (
    r'^ *File "(?P<path>[^"\n]+)", line (?P<line>\d+)\n(?:(?!  File ).*\n){0,3}?'
    r"(?P<code>SyntaxError|IndentationError|TabError): (?P<message>.+)$"
)
_COMPILER = rf"^{_PLACE}: (?P<severity>fatal error|error|warning): (?P<message>.+)$"
_GENERIC = r"^(?P<path>[^\s:'\"][^:\n'\"]*):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<message>\S.*)$"
_CODED = rf"^{_PLACE}: (?P<code>[A-Z]+\d+|[a-z]+(?:-[a-z]+)+):? (?:\[\*\] )?(?P<message>.+)$"
_PYTEST = r"^(?:FAILED|ERROR) (?P<path>[^\s:]+)(?:::(?P<code>\S+))?(?: - (?P<message>.+))?$"
_JEST = (
    r"^ *● (?P<code>\S.*)\n(?:.*\n){1,40}?[ \t]+at (?:.* \()?(?P<path>[^\s()]+?):"
    r"(?P<line>\d+):(?P<column>\d+)\)?$",
    r"^ *FAIL +(?P<code>\S.* > .+)\n(?P<message>.+)\n(?:.*\n){0,40}?"
    r" *\u276f (?P<path>[^\s()]+?):(?P<line>\d+):(?P<column>\d+)$",
    r"^ +\d+\) (?P<code>.+)\n +(?P<message>.+):\n(?:.*\n){1,40}? +at .*\((?P<path>[^\s()]+?):(?P<line>\d+)"
    r":(?P<column>\d+)\)$",
)
_NODE = (
    r"^(?P<path>/\S+\.[cm]?[jt]s):(?P<line>\d+)\n(?:.*\n){0,6}?(?P<code>\w*Error): (?P<message>.+)$",
    r"^(?P<code>\w*Error): (?P<message>.+)$",
    r"^not ok \d+ - (?P<code>.+)\n(?:.*\n){0,4}?  location: '(?P<path>[^'\n]+?):"
    r"(?P<line>\d+):(?P<column>\d+)'$",
)
_TSC = (
    r"^(?P<path>[^\s(][^(\n]*)\((?P<line>\d+),(?P<column>\d+)\): "
    r"(?P<severity>error|warning) (?P<code>TS\d+): "
    r"(?P<message>.+)$",
    rf"^{_PLACE} - (?P<severity>error|warning) (?P<code>TS\d+): (?P<message>.+)$",
    r"^(?P<severity>error) (?P<code>TS\d+): (?P<message>.+)$",
)
_MYPY = (
    r"^(?P<path>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)?(?:\d+:\d+:)? "
    r"(?P<severity>error|warning): "
    r"(?P<message>.+?)(?:  \[(?P<code>[\w-]+)\])?$",
    r"^(?P<path>[^\s:][^:\n]*): (?P<severity>error): (?P<message>.+?)(?:  \[(?P<code>[\w-]+)\])?$",
)
_RUFF = (
    r"^(?P<code>[A-Z]+\d+|[a-z]+(?:-[a-z]+)+):? (?:\[\*\] )?(?P<message>.+)"
    + _RUST_PLACE.replace(" +", " *"),
    _CODED,
)
_RUFF_FORMAT = (
    r"^Would reformat: (?P<path>.+)$",
    r"^(?P<code>unformatted): (?P<message>.+)" + _RUST_PLACE.replace(" +", " *"),
)
_BLACK = (
    r"^would reformat (?P<path>.+)$",
    r"^error: (?P<message>cannot (?:parse|format)):? (?P<path>[^:\n]+):(?: ?"
    r"(?P<line>\d+):(?P<column>\d+))?",
)
_DIFF = r"^--- (?P<path>.+)\n\+\+\+ .+\n@@ -(?P<line>\d+)"
_ISORT = (r"^ERROR: (?P<path>.+?) (?P<message>Imports are incorrectly sorted.*)$",)
_PYLINT = (rf"^{_PLACE}: (?P<code>[A-Z]\d+): (?P<message>.+)$",)
_PYRIGHT = (
    r"^ *(?P<path>[^\s:][^:\n]*):(?P<line>\d+):(?P<column>\d+) - "
    r"(?P<severity>error|warning|information): "
    r"(?P<message>.*?(?:\n[ \u00a0]{4}.*?){0,20}?)(?: \((?P<code>report\w+)\))?$(?!\n[ \u00a0]{4})",
)
_CARGO = (
    r"^(?P<severity>error|warning)(?:\[(?P<code>\w+)\])?: (?P<message>.+)" + _RUST_PLACE,
    r"^thread '(?P<code>[^'\n]+)'(?: \(\d+\))? panicked at (?P<path>[^\n]+?):"
    r"(?P<line>\d+):(?P<column>\d+):\n"
    r"(?P<message>.+)$",
    r"^(?P<severity>error): (?P<message>could not find .+|no such .+|failed to .+)$",
)
_CHECKERS = (
    *_MYPY,
    *_PYRIGHT,
    *_RUFF,
    *_RUFF_FORMAT,
    *_BLACK,
    *_ISORT,
    *_PYLINT,
    *_TSC,
    r"^(?P<severity>error|warning)\[(?P<code>E\d+)\]: (?P<message>.+)" + _RUST_PLACE,
    r"^Diff in (?P<path>.+?):(?P<line>\d+):$",
)
"""Of every checker that a target of make, tox or nox may start."""

FORMATS: dict[str, tuple[str, ...]] = {
    "generic": (_COMPILER, _GENERIC),
    "pytest": (_PYTEST,),
    "python": (_SYNTAX_ERROR,),
    "unittest": (_SYNTAX_ERROR,),
    "doctest": (
        r'^File "(?P<path>[^"\n]+)", line (?P<line>\d+), in (?P<code>.+)\n'
        r"(?P<message>Failed example:\n.+)$",
        _SYNTAX_ERROR,
    ),
    "py_compile": (_SYNTAX_ERROR, r"^\[Errno \d+\] (?P<message>[^:\n]+): '(?P<path>[^'\n]+)'"),
    "compileall": (_SYNTAX_ERROR, r"^(?P<message>Can't list) '(?P<path>[^'\n]+)'$"),
    "coverage": (r"^(?P<message>Coverage failure: .+|No data to report\.)$",),
    "ruff": _RUFF,
    "ruff_format": (*_RUFF_FORMAT, *_RUFF, _DIFF),
    "black": _BLACK,
    "isort": _ISORT,
    "flake8": (_CODED,),
    "pylint": _PYLINT,
    "bandit": (
        r"^>> Issue: \[(?P<code>B\d+):\w+\] (?P<message>.+)\n(?:.*\n){0,4}?"
        r" +Location: (?P<path>.+?):(?P<line>\d+):(?P<column>\d+)$",
    ),
    "import_linter": (r"^(?P<message>.+) BROKEN(?: .*)?$", r"^(?P<message>(?:Could not|Module ').+)$"),
    "mypy": _MYPY,
    "pyright": (*_PYRIGHT, r"^(?P<message>File or directory .+ does not exist)\.?$"),
    "make": (
        _COMPILER,
        *_CHECKERS,
        _PYTEST,
        r"^g?make(?:\[\d+\])?: \*\*\* (?:\[(?:(?P<path>[^:\]\n]+):(?P<line>\d+): )?(?P<code>[^\]\n]+)\] )?"
        r"(?P<message>.+)$",
    ),
    "compiler": (
        _COMPILER,
        r"^CMake (?P<severity>Error|Warning)(?: at (?P<path>[^:\n]+):"
        r"(?P<line>\d+) \(.*\))?:\n? *(?P<message>.+)$",
        r"^(?P<severity>Error): (?P<message>.+)$",
    ),
    "ctest": (
        r"^[ \t]*\d+ - (?P<code>\S+) \((?P<message>[^()\n]+)\)$",
        r"^(?P<message>No test.+ found!+)$",
    ),
    "tsc": _TSC,
    "eslint": (r"^(?P<message>No files matching .+|Oops! .+|.*(?:configuration|config) .*not.* found.*)$",),
    "prettier": (
        r"^\[warn\] (?P<path>\S+\.\w+)$",
        r"^\[error\] (?P<path>[^:\s]+): (?P<code>\w+): (?P<message>.+?)(?: \("
        r"(?P<line>\d+):(?P<column>\d+)\))?$",
    ),
    "jest": (*_JEST, r"^(?P<message>No tests? (?:files? )?found.*)$"),
    "node": _NODE,
    "npm": (
        *_TSC,
        *_JEST,
        r"^npm (?:error|ERR!) (?P<message>(?!A complete log|code |errno |path |command |\s)\S.+)$",
    ),
    "cargo": _CARGO,
    "cargo_fmt": (
        r"^Diff in (?P<path>.+?):(?P<line>\d+):$",
        r"^(?P<severity>error)(?:\[(?P<code>\w+)\])?: (?P<message>.+)" + _RUST_PLACE,
    ),
    "go": (
        r"^[ \t]*(?:vet: )?(?P<path>[^\s:]+\.go):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<message>.+)$",
        r"^[ \t]*--- FAIL: (?P<code>\S+)(?P<message> .*)$",
    ),
    "gofmt": (r"^(?P<path>[^\s:]+\.go)$", _GENERIC),
    "maven": (
        r"^\[ERROR\] (?P<path>/.+?\.\w+):\[(?P<line>\d+),(?P<column>\d+)\] (?P<message>.+)$",
        r"^\[ERROR\] +(?P<code>[\w.$]+):(?P<line>\d+) (?P<message>.+)$",
        r"^\[ERROR\] (?P<message>Failed to execute goal .+|The goal you specified .+|No POM .+)$",
    ),
    "gradle": (
        r"^(?P<path>/.+?\.\w+):(?P<line>\d+): (?P<severity>error|warning): (?P<message>.+)$",
        r"^e: (?:file://)?(?P<path>/.+?):(?P<line>\d+):(?P<column>\d+) (?P<message>.+)$",
        r"^(?P<code>\S+ > .+) FAILED\n +(?P<message>.+)$",
        r"^\* What went wrong:\n(?P<message>.+)$",
    ),
    "dotnet": (
        r"^[ \t]*(?P<path>[^\s(][^(\n]*)\((?P<line>\d+),(?P<column>\d+)\): (?P<severity>error|warning) "
        r"(?P<code>\w+): (?P<message>.+?)(?: \[.+\])?$",
        r"^[ \t]*Failed (?P<code>\S+) \[.*\]\n[ \t]*Error Message:\n[ \t]*(?P<message>.+)$",
    ),
    "pre_commit": (_COMPILER, *_CHECKERS, r"^(?P<code>.+?)\.{3,}.*(?P<message>Failed)$"),
    "git_diff": (r"^(?P<path>[^:\n]+):(?P<line>\d+): (?P<message>.+)\.$",),
    "git_status": (r"^(?P<code>[ MADRCU?!]{2}) (?P<path>\S.*)$",),
    "tox": (
        _PYTEST,
        *_CHECKERS,
        r"^ *(?P<code>[\w.-]+): FAIL (?P<message>.+)$",
        r"^ROOT: HandledError\| (?P<message>.+)$",
    ),
    "nox": (_PYTEST, *_CHECKERS, r"^nox > (?P<message>Command .+ failed with exit code .+)$"),
}
"""How each format of :attr:`planner.catalog.tools.Tool.output` is read."""

_NAMES_FILES = frozenset({_BLACK[0], _RUFF_FORMAT[0]})
_REFORMAT = "would be reformatted"
"""What a formatter says that only names files."""
_DEFAULT_MESSAGES = {
    "ruff_format": _REFORMAT,
    "black": _REFORMAT,
    "prettier": _REFORMAT,
    "cargo_fmt": "is not formatted",
    "gofmt": "is not formatted",
    "git_status": "is changed",
}
_PATTERNS = {
    name: tuple(re.compile(pattern, re.MULTILINE) for pattern in patterns)
    for name, patterns in FORMATS.items()
}


def _read(output: str, text: str) -> Iterator[Finding]:
    function = _FUNCTIONS.get(output)
    if function:
        yield from function(text)
    for pattern in _PATTERNS[output]:
        default = _DEFAULT_MESSAGES.get(output, _REFORMAT if pattern.pattern in _NAMES_FILES else "failed")
        for match in pattern.finditer(text):
            groups = match.groupdict()
            yield _finding(
                path=groups.get("path"),
                line=groups.get("line"),
                column=groups.get("column"),
                code=groups.get("code"),
                message=groups.get("message") or default,
                severity=groups.get("severity"),
            )


def _finding(
    *,
    path: str | None = None,
    line: str | None = None,
    column: str | None = None,
    code: str | None = None,
    message: str,
    severity: str | None = None,
) -> Finding:
    return Finding(
        path=path.strip() if path else None,
        line=_number(line),
        column=_number(column),
        code=code.strip()[:MAX_MESSAGE] if code else None,
        message=clean(" ".join(message.split()), limit=MAX_MESSAGE),
        severity=severity.lower() if severity else None,
    )


def _number(digits: str | None) -> int | None:
    # Longer numbers are no lines of a file, and int() of very long ones raises.
    return int(digits) if digits and len(digits) < 10 else None


_UNITTEST = re.compile(
    r"^(?:ERROR|FAIL): (?P<name>.+)\n(?:.+\n)?-{70}\n(?P<body>(?:(?!={70}|-{70}).*\n)*)", re.MULTILINE
)
_FRAME = re.compile(r'^ *File "(?P<path>[^"\n]+)", line (?P<line>\d+)', re.MULTILINE)
_EXCEPTION = re.compile(r"^(?P<code>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.MULTILINE)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):\n(?P<body>(?: .*\n)+\S.*)$", re.MULTILINE)
_NO_MODULE = re.compile(
    r"^\S*python\S*: (?P<message>(?:No module named|can't open file|Error while finding module) .+)$",
    re.MULTILINE,
)


def _unittest(text: str) -> Iterator[Finding]:
    for match in _UNITTEST.finditer(text):
        finding = _raised(match["body"])
        test = match["name"].split(" ")[0]
        yield finding.model_copy(update={"message": f"{test}: {finding.message}"})


def _python(text: str) -> Iterator[Finding]:
    bodies = [match["body"] for match in _TRACEBACK.finditer(text)]
    if bodies:
        yield _raised(bodies[-1])
    for match in _NO_MODULE.finditer(text):
        yield _finding(message=match["message"])


def _raised(body: str) -> Finding:
    """The last exception of a traceback, at its last frame."""
    frame = next(iter(deque(_FRAME.finditer(body), maxlen=1)), None)
    exception = next(iter(deque(_EXCEPTION.finditer(body), maxlen=1)), None)
    return _finding(
        path=frame["path"] if frame else None,
        line=frame["line"] if frame else None,
        code=exception["code"] if exception else None,
        message=(exception["message"] if exception else None) or "failed",
    )


_ESLINT = re.compile(
    r"^ +(?P<line>\d+):(?P<column>\d+) +(?P<severity>error|warning) +(?P<message>.+?)(?:  +(?P<code>\S+))?$"
)


def _eslint(text: str) -> Iterator[Finding]:
    path = None
    for line in text.splitlines():
        match = _ESLINT.match(line)
        if match and path:
            yield _finding(path=path, **match.groupdict())
        elif line and not line[0].isspace():
            path = line


_FUNCTIONS: dict[str, Callable[[str], Iterator[Finding]]] = {
    "unittest": _unittest,
    "python": _python,
    "eslint": _eslint,
    "npm": _eslint,
    "tox": _unittest,
    "nox": _unittest,
    "make": _unittest,
}
