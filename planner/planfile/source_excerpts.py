"""Context of a failed todo beyond its outcome: the failure report, and source excerpts.

The report must be of the same todo and failure. Everything is read below the plan's root and within limits;
unreadable files are left out.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from pydantic import ValidationError

from planner.brief.instructions import deciding_failure, fault_location, files_to_look_up, module_paths
from planner.model.base import report_path
from planner.model.outcome import (
    FAILURE_REPORT_VERSION,
    FailureContext,
    FailureReport,
    SourceExcerpt,
    evidence_of,
)
from planner.model.plan import ID_PATTERN
from planner.model.taxonomy import Category
from planner.model.verdicts import Side
from planner.planfile.project_files import RootedFiles
from planner.text.python_text import parse_module
from planner.text.redaction import redact
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from planner.model.evidence import Evidence
    from planner.model.outcome import Failure, Outcome

LARGEST_REPORT = 8 * 1024 * 1024
"""Bytes."""

LARGEST_EVIDENCE = 2 * 1024 * 1024
"""Bytes of a report up to which its evidence is kept: that becomes part of a line in the log of a run."""

EXCERPT_LINES = 12
FUNCTION_LINES = 24
"""Lines shown of a function from its beginning."""
LONGEST_LINE = 240
"""Characters."""

_MOST_FACTS = 2
_OWN = (Side.PRODUCT, Side.TEST)
_ID = re.compile(ID_PATTERN)


def load_failure_context(outcome: Outcome, plan_id: str, *, root: Path, reports: Path) -> FailureContext:
    """Return the context of an outcome of the top plan ``plan_id``.

    ``root`` is the root of the plan with the todo, ``reports`` that of the top plan, with all reports.
    """
    files = RootedFiles(root)
    failure = deciding_failure(outcome)
    found = _read_report(RootedFiles(reports), outcome, plan_id)
    if found is None:
        excerpts = read_excerpts(files, failure, ())
        return look_up(files, outcome.todo_id, failure, ()).model_copy(update={"excerpts": excerpts})
    report, size = found
    context = look_up(files, outcome.todo_id, failure, report.evidence)
    known = {"excerpts": report.excerpts, "report_path": _report_path(outcome.todo_id)}
    return context.model_copy(update=known | ({"evidence": ()} if size > LARGEST_EVIDENCE else {}))


def look_up(
    files: RootedFiles, todo_id: str, failure: Failure, evidence: tuple[Evidence, ...]
) -> FailureContext:
    """Return which of the files that a failure mentions exist."""
    own = evidence_of(failure, evidence)
    wanted = files_to_look_up(failure, own)
    present = tuple(path for path in wanted if files.read(path) is not None)
    absent = tuple(path for path in wanted if path not in present)
    # A module that was removed is not another one with a similar name.
    removed = {each.path for fact in own for each in fact.changed or ()}
    modules = dict.fromkeys(path for fact in own for path in module_paths(fact) if path not in removed)
    guesses = {path: found for path in modules if path in absent and (found := files.near(path))}
    near = {path: found for path, found in guesses.items() if files.read(found) is not None}
    return FailureContext(todo_id=todo_id, evidence=evidence, present=present, absent=absent, near=near)


def read_excerpts(
    files: RootedFiles, failure: Failure, evidence: Sequence[Evidence]
) -> tuple[SourceExcerpt, ...]:
    """Return source excerpts at the places of a failure and its evidence, most likely first."""
    found: list[SourceExcerpt] = []
    of_signature = failure.category is Category.SPEC_MISMATCH
    for path, line in dict.fromkeys(_places(files, failure, evidence[:_MOST_FACTS])):
        excerpt = _excerpt(files, path, line, of_signature=of_signature)
        if excerpt is not None and not any(_overlap(excerpt, other) for other in found):
            found.append(excerpt)
    return tuple(found)


def _report_path(todo_id: str) -> str:
    """Return the path of a todo's report; the ``/`` of qualified ids would be a folder, and is replaced."""
    return report_path(todo_id.replace("/", "__"))


def _read_report(files: RootedFiles, outcome: Outcome, plan_id: str) -> tuple[FailureReport, int] | None:
    """Return the report of this todo and of the same deciding failure, by its signature, and its bytes."""
    # A file of outcomes may hold any text as an id, which becomes a part of the report's path.
    if not _ID.match(outcome.todo_id.replace("/", "__")):
        return None
    file = files.read_once(_report_path(outcome.todo_id), limit=LARGEST_REPORT)
    if file is None or not file.is_whole:
        return None
    try:
        report = FailureReport.model_validate_json(file.data)
    except ValidationError:
        return None
    if report.schema_version > FAILURE_REPORT_VERSION:
        return None
    if (report.todo.id, report.plan.todo_list_id) != (outcome.todo_id, plan_id):
        return None
    # A report of another run serves, too, if it is of the same failure.
    signature = deciding_failure(outcome).signature
    same = signature is not None and report.failures and report.failures[0].signature == signature
    return (report, len(file.data)) if same else None


def _places(
    files: RootedFiles, failure: Failure, evidence: Sequence[Evidence]
) -> Iterator[tuple[str, int]]:
    """Yield the location of the fault, own frames of exceptions, and the first failing test."""
    location = fault_location(failure, evidence[0] if evidence else None)
    if location is not None and location.line:
        yield location.path, location.line
    for raised in (each for fact in evidence for each in fact.exceptions[:2]):
        own = [frame for frame in reversed(raised.frames) if frame.side in _OWN]
        for side in _OWN:
            yield from [(frame.path, frame.line) for frame in own if frame.side is side][:1]
    for nodeid in failure.top_failing_tests[:1]:
        path, *names = nodeid.partition("[")[0].split("::")
        file = files.read(path)
        pattern = re.compile(rf"\s*(?:async )?def {re.escape(names[-1])}\b") if names else None
        for number, line in enumerate(file.lines if file and pattern else (), 1):
            if pattern is not None and pattern.match(line):
                yield path, number


def _excerpt(files: RootedFiles, path: str, line: int, *, of_signature: bool) -> SourceExcerpt | None:
    """Return the lines around a line, from the start of its function if that is near; else ``None``.

    If the docstring of the function would fill them, they are those of its code, except with
    ``of_signature``.
    """
    file = files.read(path)
    if file is None or file.is_binary or not 1 <= line <= len(file.lines):
        return None
    # Redact the whole file, as an excerpt may begin inside a multi-line secret. If one is removed,
    # line numbers no longer match.
    lines = _redacted(file.text).removesuffix("\n").split("\n")
    if len(lines) != len(file.lines):
        return None
    # A file that was cut at the limit would be no valid syntax.
    definitions = _definitions(file.text) if path.endswith(".py") and file.is_whole else ()
    # The innermost function begins last. What follows its end did not run.
    around = [each for each in definitions if each[0] <= line <= each[-1]]
    first, code, end = max(around, default=(None, 0, len(lines)))
    most = FUNCTION_LINES
    # A docstring that fills the excerpt would hide the code, of which any line may be at fault.
    if first is not None and line < first + FUNCTION_LINES <= code <= end and not of_signature:
        first = code
    elif first is None or line >= first + FUNCTION_LINES:
        first, most = max(line - EXCERPT_LINES + 4, 1), EXCERPT_LINES
    shown = (
        clean(text.expandtabs(4).rstrip(), limit=LONGEST_LINE).replace("\n", " ")
        for text in lines[first - 1 : min(first - 1 + most, end)]
    )
    return SourceExcerpt(path=path, line=line, first_line=first, lines=tuple(shown))


@lru_cache(maxsize=16)
def _definitions(text: str) -> tuple[tuple[int, int, int], ...]:
    """Return for each function and class its first line, the first after its docstring, and its last."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return tuple(
        (
            node.lineno,
            (node.body[0].end_lineno or 0) + 1 if ast.get_docstring(node, clean=False) else node.lineno,
            node.end_lineno or node.lineno,
        )
        for node in ast.walk(parse_module(text))
        if isinstance(node, kinds)
    )


_redacted = lru_cache(maxsize=16)(redact)


def _overlap(one: SourceExcerpt, other: SourceExcerpt) -> bool:
    """Return whether one excerpt's relevant line is shown by the other."""
    last = other.first_line + len(other.lines) - 1
    return one.path == other.path and other.first_line <= max(one.line, one.first_line) <= last
