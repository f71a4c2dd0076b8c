"""Collection of gaps: from outcomes, findings of ruff and pyright, an inbox folder and a roadmap.

Each ``gaps_of_…`` function reads one source and yields :class:`planner.authoring.iterations.Gap` values.
Files that cannot be read, are too large or have another format raise :class:`planner.errors.PlannerError`.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from planner.authoring.iterations import Gap, GapReport, constraints_of
from planner.authoring.outline import read_outline
from planner.errors import PlannerError
from planner.model.base import ReadValue
from planner.planfile.loader import shown_path
from planner.planfile.project_files import read_regular
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from planner.authoring.outline import Piece
    from planner.model.outcome import OutcomeDocument

MOST_BYTES = 8 * 1024 * 1024
"""The size from which on files are refused."""

MOST_FILES = 50
"""The most files that a gap names."""

MOST_TEXT = 300
"""The most characters of a description."""

_Output = TypeVar("_Output")

INBOX = "inbox"
ROADMAP = "ROADMAP.md"


def gaps_of_outcomes(document: OutcomeDocument) -> Iterator[Gap]:
    """Yield a gap for each failed todo of a run; of several with the same failure signature, the first."""
    seen: set[str] = set()
    for outcome in document.outcomes:
        failure = outcome.failure_evidence
        if outcome.success or failure is None or (failure.signature or outcome.todo_id) in seen:
            continue
        seen.add(failure.signature or outcome.todo_id)
        head = one_line(
            failure.stack_trace_head or failure.because or failure.category.value, limit=MOST_TEXT
        )
        place = failure.location
        where = [] if place is None else [f"{place.path}:{place.line}" if place.line else place.path]
        yield Gap(
            category="quality",
            description=f"{outcome.todo_id} fails: {failure.category.value}",
            evidence=(*where, head),
            commands=tuple(
                each.cmd for each in outcome.checks if each.cmd is not None and each.counts_as.is_red
            ),
            tool="planverify",
        )


class _RuffFinding(ReadValue):
    filename: str = ""


class _PyrightFinding(ReadValue):
    severity: str = ""
    file: str = ""


class _PyrightOutput(ReadValue):
    found: tuple[_PyrightFinding, ...] = Field(alias="generalDiagnostics")


def gaps_of_ruff(path: Path) -> Iterator[Gap]:
    """Yield one gap for the output of ``ruff check --output-format json``, if it has findings."""
    found = _parse(path, tuple[_RuffFinding, ...], "the output of ruff check --output-format json")
    yield from _gap_of_tool("ruff", "ruff check", (each.filename for each in found))


def gaps_of_pyright(path: Path) -> Iterator[Gap]:
    """Yield one gap for the output of ``pyright --outputjson``, if it has errors."""
    found = _parse(path, _PyrightOutput, "the output of pyright --outputjson").found
    yield from _gap_of_tool("pyright", "pyright", (each.file for each in found if each.severity == "error"))


def gaps_of_inbox(folder: Path, root: Path) -> Iterator[Gap]:
    """Yield a gap for each Markdown file of a folder but a README; its first line is the description."""
    for path in sorted(folder.glob("*.md")):
        text = _read(path).decode("utf-8", "replace")
        lines = (line.strip().lstrip("#").strip() for line in text.splitlines())
        title = next(filter(None, lines), "")
        if title and path.name.casefold() != "readme.md":
            yield Gap(
                category="inbox",
                description=one_line(title, limit=MOST_TEXT),
                evidence=(_relative(path, root),),
                constraints=tuple(one_line(each, limit=MOST_TEXT) for each in constraints_of(text)),
                commands=tuple(each for item in read_outline(text).boxes() for each in item.commands),
            )


def gaps_of_roadmap(path: Path, root: Path) -> Iterator[Gap]:
    """Yield a gap for each unchecked box all of whose sub-boxes are checked."""

    def innermost(items: Iterable[Piece]) -> Iterator[Piece]:
        for item in items:
            yield from innermost(item.parts)
            if not item.is_checked and all(each.is_checked for each in item.parts):
                yield item

    for item in innermost(read_outline(_read(path).decode("utf-8", "replace")).boxes()):
        yield Gap(
            category="roadmap",
            description=one_line(item.title, limit=MOST_TEXT),
            evidence=(f"{_relative(path, root)}:{item.line}",),
            commands=tuple(item.commands),
        )


def read_gap_report(path: Path) -> GapReport:
    """Read a gap report in JSON, as ``planner gaps -o`` writes it. Raises :class:`PlannerError`."""
    try:
        return GapReport.model_validate_json(_read(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the report"
        raise PlannerError(
            f"{shown_path(path)}: {place}: {first['msg']}; write it with planner gaps -o FILE"
        ) from None


def _gap_of_tool(tool: str, command: str, files: Iterable[str]) -> Iterator[Gap]:
    """Yield one gap for the findings of a tool, given the file of each; the most frequent come first.

    The gap's command checks only these files, or everything where they are more than ``MOST_FILES``.
    """
    counts = Counter(os.path.relpath(each) if os.path.isabs(each) else each for each in files if each)
    named = sorted(counts, key=lambda each: (-counts[each], each))
    if named:
        yield Gap(
            category="quality",
            description=f"{command} fails",
            evidence=tuple(named[:MOST_FILES]),
            commands=(f"{command} {shlex.join(named)}" if len(named) <= MOST_FILES else command,),
            tool=tool,
        )


def _parse(path: Path, kind: type[_Output], what: str) -> _Output:
    """Parse the JSON output of a tool. Raises :class:`PlannerError` if it is not ``what``."""
    try:
        return TypeAdapter(kind).validate_json(_read(path))
    except ValidationError:
        raise PlannerError(f"{shown_path(path)}: this is not {what}; write the file again") from None


def _read(path: Path) -> bytes:
    try:
        return read_regular(path, MOST_BYTES)
    except OSError as error:
        problem = f"it cannot be read ({error.strerror}); name a readable file"
        raise PlannerError(f"{shown_path(path)}: {problem}") from None


def _relative(path: Path, root: Path) -> str:
    return os.path.relpath(path, root).replace(os.sep, "/")
