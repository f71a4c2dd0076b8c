"""Telling from a tool's output that its success proves nothing: no test ran, no file was looked at."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.catalog.tools import Purpose
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planner.catalog.tools import Tool


def proves_nothing(tool: Tool, stdout: str, stderr: str) -> str | None:
    """Why an exit status of zero proves nothing, in a few words, else ``None``."""
    text = _LONG_LINE.sub(r"\1", clean(f"{stdout}\n{stderr}"))
    for pattern, reason in _PHRASES.get(tool.output, ()):
        if pattern.search(text):
            return reason
    special = _SPECIAL.get(tool.output)
    if special:
        return special(clean(stdout))
    if tool.purpose is not Purpose.TEST:
        return None
    runs = [run for runner in _RUNNERS_OF.get(tool.output, ()) for run in runner(text)]
    return runs[0][1] if runs and not any(proved for proved, _ in runs) else None


_LONG_LINE = re.compile(r"([^\n]{2000})[^\n]+")

_Run = tuple[int, str]
"""How many tests of one run prove something, and what to say where none does."""


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


_PHRASES: dict[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    "ruff": ((_pattern(r"^warning: No Python files found"), "ruff found no Python files"),),
    "ruff_format": ((_pattern(r"^warning: No Python files found"), "ruff found no Python files"),),
    "black": ((_pattern(r"^No Python files are present"), "black found no Python files"),),
    "isort": ((_pattern(r"was passed an invalid path|no files? found"), "isort found no files"),),
    "mypy": (
        (_pattern(r"^There are no \.py\[i\] files"), "mypy found no Python files"),
        (_pattern(r"^Success: no issues found in 0 source files"), "mypy looked at no file"),
    ),
    "pyright": ((_pattern(r"^No source files found"), "pyright found no source files"),),
    "compileall": ((_pattern(r"^Can't list "), "compileall could not list what it was given"),),
    "bandit": ((_pattern(r"^[ \t]+Total lines of code: 0$"), "bandit looked at no line of code"),),
    "npm": (
        (_pattern(r"^Error: no test specified"), "the script is npm's placeholder: no test specified"),
    ),
    "ctest": (
        (_pattern(r"^No tests were found"), "ctest found no tests"),
        (_pattern(r"^No test configuration file found"), "ctest found no test configuration"),
    ),
    "dotnet": ((_pattern(r"No test is available in|No test matches"), "dotnet found no tests"),),
    "jest": ((_pattern(r"^No tests? (?:files? )?found"), "no tests were found"),),
}


def _gofmt(stdout: str) -> str | None:
    return "gofmt succeeds although it names files that are not formatted" if stdout.strip() else None


_CLEAN_TREE = _pattern(r"^nothing to commit, working tree clean$")


def _git_status(stdout: str) -> str | None:
    shown = [line for line in stdout.splitlines() if line and not line.startswith("## ")]
    if not shown or _CLEAN_TREE.search(stdout):
        return None
    return "git status succeeds although the work tree has changes"


_HOOK = _pattern(r"^.+\.{3,}(?P<note>\(no files to check\))?\S*(?:Passed|Skipped)$")


def _pre_commit(stdout: str) -> str | None:
    notes = [match["note"] for match in _HOOK.finditer(stdout)]
    return "every hook was skipped: no files to check" if notes and all(notes) else None


_SPECIAL: dict[str, Callable[[str], str | None]] = {
    "gofmt": _gofmt,
    "git_status": _git_status,
    "pre_commit": _pre_commit,
}

_UNITTEST = _pattern(r"^Ran (?P<ran>\d{1,9}) tests? in .+\n\n(?:OK|NO TESTS RAN)(?: \((?P<notes>.+)\))?$")
_NOT_PROVED = re.compile(r"(?:skipped|expected failures)=(\d{1,9})")
_PYTEST = _pattern(r"^(?:=+ )?(?P<counts>no tests ran|\d{1,9} \w+(?:, \d{1,9} \w+)*) in \d[\d.]*s\b.*$")
_PYTEST_PROVED = re.compile(r"(\d+) (?:passed|xpassed)\b")
_CARGO = _pattern(
    r"^test result: ok\. (?P<passed>\d{1,9}) passed; \d+ failed; (?P<ignored>\d{1,9}) ignored"
)
_NEXTEST = _pattern(r"^ *Summary .*?(?P<ran>\d{1,9}) tests? run: (?P<passed>\d{1,9}) passed")
_GO = _pattern(
    r"^(?:ok[ \t]+\S+.*|\?[ \t]+\S+[ \t]+\[no test files\]|[ \t]+\S+[ \t]+coverage: 0\.0% of statements)$"
)
_JEST = _pattern(r"^[ \t]*Tests:? +(?P<counts>\d.*)$")
_MOCHA = _pattern(r"^  (?P<passed>\d{1,9}) passing\b")
_NODE = _pattern(r"^(?:#|\u2139) pass (?P<passed>\d{1,9})$")
_MAVEN = _pattern(
    r"^\[(?:INFO|WARNING)\] Tests run: "
    r"(?P<ran>\d{1,9}), Failures: 0, Errors: 0, Skipped: (?P<skipped>\d{1,9})"
)
_MAVEN_NONE = _pattern(r"^\[INFO\] No tests to run\.$")
_GRADLE_NONE = _pattern(r"^> Task \S*:test NO-SOURCE$")
_DOTNET = _pattern(r"^(?:Passed|Skipped)! +- Failed: +\d+, Passed: +(?P<passed>\d{1,9})")
_JEST_PASSED = re.compile(r"(\d{1,9}) passed")


def _unittest(text: str) -> Iterator[_Run]:
    for match in _UNITTEST.finditer(text):
        ran = int(match["ran"])
        not_proved = sum(int(count) for count in _NOT_PROVED.findall(match["notes"] or ""))
        yield (
            max(0, ran - not_proved),
            f"all {ran} tests were skipped or expected to fail" if ran else "Ran 0 tests",
        )


def _pytest(text: str) -> Iterator[_Run]:
    for match in _PYTEST.finditer(text):
        counts = match["counts"]
        yield sum(int(count) for count in _PYTEST_PROVED.findall(counts)), f"pytest says: {counts}"


def _cargo(text: str) -> Iterator[_Run]:
    for match in _CARGO.finditer(text):
        ignored = int(match["ignored"])
        yield int(match["passed"]), "all tests were skipped: ignored" if ignored else "running 0 tests"
    for match in _NEXTEST.finditer(text):
        yield int(match["passed"]), "0 tests run"


def _go(text: str) -> Iterator[_Run]:
    for match in _GO.finditer(text):
        line = match[0]
        runs = line.startswith("ok") and "[no tests to run]" not in line
        yield int(runs), "no test files" if "[no test files]" in line else "no tests to run"


def _javascript(text: str) -> Iterator[_Run]:
    for match in _JEST.finditer(text):
        passed = sum(int(count) for count in _JEST_PASSED.findall(match["counts"]))
        yield passed, f"no test passed: {match['counts'].strip()}"
    for pattern in (_MOCHA, _NODE):
        for match in pattern.finditer(text):
            yield int(match["passed"]), "no test passed: 0 passing"


def _java(text: str) -> Iterator[_Run]:
    for match in _MAVEN.finditer(text):
        ran, skipped = int(match["ran"]), int(match["skipped"])
        yield max(0, ran - skipped), f"all {ran} tests were skipped" if ran else "no tests to run"
    for pattern in (_MAVEN_NONE, _GRADLE_NONE):
        for _ in pattern.finditer(text):
            yield 0, "no tests to run"


def _dotnet(text: str) -> Iterator[_Run]:
    for match in _DOTNET.finditer(text):
        yield int(match["passed"]), "no test passed"


_PYTHON_RUNNERS = (_unittest, _pytest)
_ALL_RUNNERS = (_unittest, _pytest, _cargo, _go, _javascript, _java, _dotnet)
_RUNNERS_OF: dict[str, tuple[Callable[[str], Iterator[_Run]], ...]] = {
    "unittest": (_unittest,),
    "pytest": (_pytest,),
    "python": _PYTHON_RUNNERS,
    "tox": _PYTHON_RUNNERS,
    "nox": _PYTHON_RUNNERS,
    "make": _ALL_RUNNERS,
    "npm": _ALL_RUNNERS,
    "cargo": (_cargo,),
    "go": (_go,),
    "jest": (_javascript,),
    "node": (_javascript,),
    "maven": (_java,),
    "gradle": (_java,),
    "dotnet": (_dotnet,),
}
"""Whose summaries may stand in the output. One run that proves something is enough."""
