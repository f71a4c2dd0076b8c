"""Collection of gaps: from outcomes, findings of ruff and pyright, an inbox folder and a roadmap.

Each ``gaps_of_…`` function reads one source and yields :class:`planner.authoring.iterations.Gap` values.
Files that cannot be read, are too large or have another format raise :class:`planner.errors.PlannerError`.
"""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from planner.authoring.iterations import Gap, GapReport, constraints_of
from planner.authoring.outline import read_outline
from planner.errors import PlannerError
from planner.planfile.loader import shown_path
from planner.planfile.project_files import open_regular
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


def gaps_of_ruff(path: Path) -> Iterator[Gap]:
    """Yield one gap for the output of ``ruff check --output-format json``, if it has findings."""
    document: Any = _json(path, list, "the output of ruff check --output-format json")
    yield from _gap_of_tool(
        "ruff", "ruff check", (_text(each, "filename") for each in cast("list[Any]", document))
    )


def gaps_of_pyright(path: Path) -> Iterator[Gap]:
    """Yield one gap for the output of ``pyright --outputjson``, if it has errors."""
    document = cast("dict[str, Any]", _json(path, dict, "the output of pyright --outputjson"))
    found: Any = document.get("generalDiagnostics")
    if not isinstance(found, list):
        raise _refusal(path, "the output of pyright --outputjson")
    errors = (each for each in cast("list[Any]", found) if _text(each, "severity") == "error")
    yield from _gap_of_tool("pyright", "pyright", (_text(each, "file") for each in errors))


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
    from pydantic import ValidationError

    try:
        return GapReport.model_validate(_json(path, dict, "a gap report"))
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


def _text(value: Any, key: str) -> str:
    """Return the text of a key; empty if the value is no object or has no such text."""
    found: Any = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _json(path: Path, kind: type, what: str) -> object:
    """Parse a JSON file; refuse it as not ``what`` if its top level is not of ``kind``."""
    try:
        document: object = json.loads(_read(path))
    except (ValueError, RecursionError):
        raise _refusal(path, what) from None
    if not isinstance(document, kind):
        raise _refusal(path, what)
    return document


def _read(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise PlannerError(
            f"{shown_path(path)}: it cannot be read ({reason}); name a readable file"
        ) from None
    if len(data) > MOST_BYTES:
        raise PlannerError(
            f"{shown_path(path)}: it is larger than {MOST_BYTES // 2**20} MiB; name a smaller one"
        )
    return data


def _refusal(path: Path, what: str) -> PlannerError:
    return PlannerError(f"{shown_path(path)}: this is not {what}; write the file again")


def _relative(path: Path, root: Path) -> str:
    return os.path.relpath(path, root).replace(os.sep, "/")
