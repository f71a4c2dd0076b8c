"""Parser of the output of tools by ``output.toml``: findings, and success that proves nothing.

A format is a list of patterns over the whole output. Formats that patterns cannot describe have a reader: a
function of this module, or findings below a heading that names their file. JSON of checkers is read alike.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from planner.catalog.tables import load_table
from planner.catalog.tools import Purpose
from planner.model.evidence import Finding
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.catalog.tools import Tool

MAX_FINDINGS = 100
"""Limit of the findings of one output; further ones are dropped."""
MAX_OUTPUT = 60_000
"""Limit in characters of the output that is parsed: its head and, twice as long, its tail."""
MAX_MESSAGE = 500
"""Limit in characters of a finding's message."""

_LONG_LINE = re.compile(r"^([^\n]{2000})[^\n]+", re.MULTILINE)
"""A line that is cut: what a pattern takes from it is shown to people and kept in outcomes."""
_MILD = frozenset({"1", "warning", "warn", "information", "info", "style", "note", "hint"})
"""Severities below an error; eslint's JSON has numbers."""


def read_findings(tool: Tool, stdout: str, stderr: str) -> tuple[Finding, ...]:
    """Return the findings in the output of a tool, errors first, otherwise in the order of the output.

    If the tool's own format finds no file, those of the checkers that it may have started follow, then the
    generic one.
    """
    text = _LONG_LINE.sub(r"\1", clean(f"{stdout}\n{stderr}", limit=MAX_OUTPUT))
    is_checker = tool.purpose in (Purpose.LINT, Purpose.TYPE_CHECK)
    found = [*_from_json(stdout), *_from_json(stderr)] if is_checker else []
    for name in (tool.output, "checkers", "generic"):
        if not any(each.path for each in found):
            found += _read(name, text)
    unique = list(dict.fromkeys(found))
    # The sort is stable: within errors and within warnings, the tool's own order stays.
    unique.sort(key=lambda finding: finding.severity in _MILD)
    return tuple(unique[:MAX_FINDINGS])


def proves_nothing(tool: Tool, stdout: str, stderr: str) -> str | None:
    """Return in a few words why an exit status of zero proves nothing; ``None`` if no reason is known."""
    text = _whole_text(stdout, stderr)
    form = _format(tool.output)
    for each in form.get("hollow", ()):
        if re.search(each["says"], clean(stdout) if "quiet" in each else text, re.MULTILINE):
            return each["means"].format(tool=tool.name)
    runs = [
        proof
        for name in form.get("runs", ())
        for run in output_table()["runs"][name]
        if tool.purpose is Purpose.TEST or "any_tool" in run
        for proof in _proofs(run, text)
    ]
    # A tool may run several suites: one of them with a passed test suffices.
    return runs[0][1] if runs and not any(proved for proved, _ in runs) else None


def hidden_failures(tool: Tool, stdout: str, stderr: str) -> str | None:
    """Return the line with which a tool for tests reports failures although its exit status is zero.

    ``None`` if there is none. So for a recipe of make that ignores a status, or a script that does not pass
    on that of pytest.
    """
    if tool.purpose is not Purpose.TEST:
        return None
    text = _whole_text(stdout, stderr)
    failures = output_table()["failures"]
    patterns = (failures[name] for name in _format(tool.output).get("runs", ()) if name in failures)
    found = (re.search(pattern, text, re.MULTILINE) for pattern in patterns)
    return next((match[0].strip(" =") for match in found if match), None)


def _whole_text(stdout: str, stderr: str) -> str:
    # Not cut to a length: the summary that decides may be anywhere in the output.
    return _LONG_LINE.sub(r"\1", clean(f"{stdout}\n{stderr}"))


@cache
def output_table() -> dict[str, Any]:
    """Load ``output.toml``; only when the first output is read, as most commands read none."""
    return load_table("output")


def _format(name: str) -> dict[str, Any]:
    """Return a format of the table; an empty one for an unknown name."""
    return output_table()["formats"].get(name, {})


@cache
def _patterns(name: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the patterns of a format, each with the message for findings without one."""
    form = _format(name)
    found: list[tuple[re.Pattern[str], str]] = []
    for pattern in form.get("patterns", ()):
        if pattern.startswith("@"):  # the patterns of another format
            found += _patterns(pattern[1:])
        else:
            found.append((re.compile(_expand(pattern), re.MULTILINE), form.get("message", "failed")))
    return tuple(found)


def _expand(pattern: str) -> str:
    """Replace the names of parts in a pattern by their texts, which may name other parts."""
    return re.sub("<<([a-z_]+)>>", lambda part: _expand(output_table()["parts"][part[1]]), pattern)


def _read(name: str, text: str) -> Iterator[Finding]:
    """Yield the findings of a format: those of its readers, then those of its patterns."""
    for reader in _format(name).get("readers", ()):
        yield from _FUNCTIONS[reader](text) if reader in _FUNCTIONS else _grouped(reader, text)
    for pattern, message in _patterns(name):
        for match in pattern.finditer(text):
            yield _finding(match.groupdict(), message)


def _finding(groups: dict[str, str | Any], default: str = "failed") -> Finding:
    """Return the finding of a match; ``default`` is the message if the match has none."""
    path, code, severity = groups.get("path"), groups.get("code"), groups.get("severity")
    return Finding(
        path=path.strip() if path else None,
        line=_number(groups.get("line")),
        column=_number(groups.get("column")),
        code=code.strip()[:MAX_MESSAGE] if code else None,
        message=clean(" ".join((groups.get("message") or default).split()), limit=MAX_MESSAGE),
        severity=severity.lower() if severity else None,
    )


_KEYS = {
    "path": ("filename", "filePath", "file", "path"),
    "line": ("line", "row"),
    "column": ("column", "character"),
    "code": ("code", "ruleId", "rule", "message-id", "messageId"),
    "message": ("message",),
    "severity": ("severity", "type"),
}
"""How checkers name the parts of a finding in JSON."""


def _from_json(text: str) -> list[Finding]:
    """Return the findings of a checker that prints one JSON document, or one in each line."""
    for parts in ((text,), text.splitlines()) if text.lstrip()[:1] in ("[", "{") else ():
        with suppress(ValueError, RecursionError):
            documents = [json.loads(part) for part in parts if part.strip()]
            return list(islice(_placed(documents, None), 100 * MAX_FINDINGS))
    return []


def _placed(value: Any, path: Any) -> Iterator[Finding]:
    """Yield the findings in a value of a JSON document; ``path`` is the one that it is below."""
    if isinstance(value, list):
        value = dict(enumerate(cast("list[Any]", value)))
    if not isinstance(value, dict):
        return
    fields = cast("dict[Any, Any]", value)
    flat = {**fields}
    for name in ("location", "range", "start"):
        flat |= inner if isinstance(inner := flat.get(name), dict) else {}
    plain = {key: each for key, each in flat.items() if each and isinstance(each, str | int)}
    found = {part: next((plain[key] for key in keys if key in plain), None) for part, keys in _KEYS.items()}
    path = found["path"] = found["path"] or path
    if isinstance(found["message"], str):
        finding = _finding(
            {part: clean(str(each), limit=2_000) for part, each in found.items() if each is not None}
        )
        # Of the checkers, only pyright counts lines from 0.
        yield finding.model_copy(update={"line": (finding.line or 0) + 1}) if "range" in flat else finding
        return
    for each in fields.values():
        yield from _placed(each, path)


def _number(digits: str | None) -> int | None:
    # Longer numbers are no line numbers, and int() of very long ones raises.
    return int(digits) if digits and len(digits) < 10 else None


_UNITTEST = re.compile(
    r"^(?:ERROR|FAIL): (?P<name>.+)\n(?:.+\n)?-{70}\n(?P<body>(?:(?!={70}|-{70}).*\n)*)", re.MULTILINE
)
_FRAME = re.compile(r'^ *File "(?P<path>[^"\n]+)", line (?P<line>\d+)', re.MULTILINE)
_EXCEPTION = re.compile(r"^(?P<code>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.MULTILINE)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):\n(?P<body>(?: .*\n)+\S.*)$", re.MULTILINE)


def _unittest(text: str) -> Iterator[Finding]:
    """Yield the failed tests that unittest prints, each at the last frame of its traceback."""
    for match in _UNITTEST.finditer(text):
        finding = _raised(match["body"])
        test = match["name"].split(" ")[0]
        yield finding.model_copy(update={"message": f"{test}: {finding.message}"})


def _traceback(text: str) -> Iterator[Finding]:
    """Yield the exception of the last traceback."""
    bodies = [match["body"] for match in _TRACEBACK.finditer(text)]
    if bodies:
        yield _raised(bodies[-1])


def _raised(body: str) -> Finding:
    """Return the last exception of a traceback as finding at the last frame."""
    groups: dict[str, str | Any] = {}
    for pattern in (_FRAME, _EXCEPTION):
        for match in pattern.finditer(body):
            # Each match replaces the one before: the last frame is where it was raised, the last
            # exception is the one that was not caught.
            groups |= match.groupdict()
    return _finding(groups)


_FUNCTIONS = {"unittest": _unittest, "traceback": _traceback}


def _grouped(name: str, text: str) -> Iterator[Finding]:
    """Yield findings in lines below a heading that names their file."""
    pattern = re.compile(output_table()["grouped"][name])
    heading = re.compile(output_table()["headings"].get(name, r"(?P<path>(?!\W+$)\S.*)"))
    file: dict[str, str] = {}
    for line in text.splitlines():
        # Without a heading first, a line is no finding, as it has no file.
        if file and (match := pattern.match(line)):
            yield _finding(file | match.groupdict())
        elif match := heading.match(line):
            file = match.groupdict()


def _proofs(run: dict[str, Any], text: str) -> Iterator[tuple[int, str]]:
    """Yield the number of passed tests in each summary of a run, and the message for the case of none."""
    for match in re.finditer(run["summary"], text, re.MULTILINE):
        groups = {name: (value or "").strip() for name, value in match.groupdict().items()}
        passed = groups.get("passed", groups.get("counts", ""))
        if "counts" in groups or passed.isdigit():
            proved = _sum(run, "passed", passed) - _sum(run, "apart", groups.get("apart", ""))
        else:
            proved = int(bool(passed))
        idle = run.get("idle") if int(groups.get("held") or 0) else None
        yield max(0, proved), (idle or run["none"]).format(**groups)


def _sum(run: dict[str, Any], name: str, text: str) -> int:
    return sum(int(number) for number in re.findall(run.get(name, r"(\d{1,9})"), text))
