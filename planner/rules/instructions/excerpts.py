"""The source around the places that count, with line numbers and marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.kinds import Side
from planner.rules.instructions.quoting import quotation, span
from planner.text.redaction import redact
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.model.failure_report import SourceExcerpt
    from planner.rules.instructions.case import Case
    from planner.text.budgets import Section

MARK = ">"
_LANGUAGES = {
    "py": "python",
    "pyi": "python",
    "json": "json",
    "yaml": "yaml",
    "yml": "yaml",
    "toml": "toml",
    "js": "javascript",
    "ts": "typescript",
    "sh": "sh",
    "md": "markdown",
}
_OWN = (Side.PRODUCT, Side.TEST)


def source_sections(case: Case) -> Iterator[Section]:
    """One section a file: first the code under suspicion, then the tests."""
    marks = _marks(case)
    tests = {nodeid.partition("::")[0] for nodeid in (*case.tests, *case.other_tests)}
    by_path: dict[str, list[SourceExcerpt]] = {}
    for excerpt in _excerpts(case):
        by_path.setdefault(excerpt.path, []).append(excerpt)
    heading = "## The source"
    for path, excerpts in sorted(by_path.items(), key=lambda entry: entry[0] in tests):
        marked = marks.get(path, frozenset())
        yield quotation(
            heading,
            _numbered(excerpts, marked),
            intro=f"{span(path)}, {_role(case, path, tests)}{_marked(marked, excerpts)}:",
            info=language(path),
            priority=3 if path in tests else 1,
        )
        heading = ""


def language(path: str) -> str:
    """The name of the language by the file's name, for the info string."""
    return _LANGUAGES.get(path.rpartition(".")[2].lower(), "text")


def _role(case: Case, path: str, tests: set[str]) -> str:
    if case.location is not None and case.location.path == path:
        return "where the diagnosis points" + (" (the test)" if path in tests else "")
    return "the test" if path in tests else "which is involved"


def _marked(marked: Iterable[int], excerpts: list[SourceExcerpt]) -> str:
    shown = [
        line
        for line in sorted(marked)
        if any(each.first_line <= line < each.first_line + len(each.lines) for each in excerpts)
    ]
    if not shown:
        return ""
    return f" (line {', '.join(map(str, shown))} marked)"


def _excerpts(case: Case) -> Iterator[SourceExcerpt]:
    """What was read for this, then what the failure report has besides."""
    covered: set[tuple[str, int]] = set()
    for excerpt in (*(case.context.excerpts if case.context else ()), *_reported(case)):
        lines = {(excerpt.path, excerpt.first_line + index) for index in range(len(excerpt.lines))}
        if not lines - covered:
            continue
        if not lines & covered:
            yield excerpt
            covered |= lines


def _reported(case: Case) -> Iterator[SourceExcerpt]:
    for raised in case.seen.exceptions[:3] if case.seen else ():
        for excerpt in (raised.raised_at, raised.reached_from):
            if excerpt is not None:
                yield excerpt


def _marks(case: Case) -> dict[str, frozenset[int]]:
    """The lines that matter, by path: where it was raised and passed through, else where it is placed."""
    found: dict[str, set[int]] = {}
    for raised in case.seen.exceptions if case.seen else ():
        for frame in raised.frames:
            if frame.side in _OWN:
                found.setdefault(frame.path, set()).add(frame.line)
        if not raised.frames and raised.raised_at is not None:
            found.setdefault(raised.raised_at.path, set()).add(raised.raised_at.line)
    if case.seen is not None and case.seen.command is not None:
        for finding in case.seen.command.findings:
            if finding.path and finding.line:
                found.setdefault(finding.path, set()).add(finding.line)
    if case.location is not None and case.location.line and case.location.path not in found:
        found[case.location.path] = {case.location.line}
    return {path: frozenset(lines) for path, lines in found.items()}


def _numbered(excerpts: list[SourceExcerpt], marked: Iterable[int]) -> str:
    marked = set(marked)
    width = len(str(max(each.first_line + len(each.lines) - 1 for each in excerpts)))
    parts: list[str] = []
    for excerpt in sorted(excerpts, key=lambda each: each.first_line):
        text = "\n".join(excerpt.lines).rstrip()
        lines = redact(clean(text)).split("\n")
        if len(lines) != text.count("\n") + 1:
            parts.append(
                "\n".join(lines)
            )  # a secret over several lines is gone: the numbers no longer hold
            continue
        parts.append(
            "\n".join(
                f"{MARK if number in marked else ' '} {number:>{width}} | {line}".rstrip()
                for number, line in enumerate(lines, excerpt.first_line)
            )
        )
    return f"\n{' ' * (width + 2)} …\n".join(parts)
