"""Reads and writes the outcome file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from pydantic import ValidationError

from planner.errors import OutcomeFileError
from planner.model.outcome import SCHEMA_VERSION, Outcome, OutcomeDocument
from planner.planfile.document import Refused, read_source
from planner.planfile.file_writer import write_file
from planner.text.sanitizing import clean, without_surrogates

if TYPE_CHECKING:
    from pathlib import Path

    from planner.model.base import ReadValue

_Model = TypeVar("_Model", bound="ReadValue")

Held: TypeAlias = dict[str, Any]

_OF_ONE = frozenset(("todo_id", "step_id"))
"""Keys that only one outcome by itself has at its top."""

_MAX_LINE = 400


def read_outcomes(path: Path) -> OutcomeDocument:
    """Return the outcomes of a run. Raises :class:`planner.errors.OutcomeFileError`, in one line."""
    return _of_this_version(path, _validated(path, _parsed(path), OutcomeDocument))


def read_any_outcomes(path: Path) -> OutcomeDocument | Outcome:
    """Return the outcomes of a run, or the one that stands alone in the file."""
    held = _parsed(path)
    keys = cast("Held", held) if isinstance(held, dict) else {}
    if "outcomes" not in keys and not _OF_ONE.isdisjoint(keys):
        return _validated(path, held, Outcome)
    return _of_this_version(path, _validated(path, held, OutcomeDocument))


def write_outcomes(document: OutcomeDocument, path: Path) -> None:
    """Write the outcomes where the user wants them. Raises :class:`planner.errors.FileWriteError`."""
    write_file(path, outcomes_text(document))


def outcomes_text(document: OutcomeDocument) -> str:
    """Return the text of an outcome file."""
    try:
        return document.model_dump_json(indent=2) + "\n"
    except ValueError:  # bytes of a path that the locale cannot decode, or half of a surrogate pair
        data = document.model_dump(mode="json")
        return without_surrogates(json.dumps(data, indent=2, ensure_ascii=False)) + "\n"


def _of_this_version(path: Path, document: OutcomeDocument) -> OutcomeDocument:
    if document.schema_version > SCHEMA_VERSION:
        raise _error(
            path,
            f"schema_version {document.schema_version} is newer than {SCHEMA_VERSION}, the newest that "
            "this version reads; update pytest-planverify",
        )
    return document


def _validated(path: Path, held: Any, model: type[_Model]) -> _Model:
    try:
        return model.model_validate(held, by_alias=True, by_name=True)
    except (RecursionError, ValueError) as error:
        raise _error(path, _why(error)) from None


def _parsed(path: Path) -> Any:
    try:
        # Python's own parser first: pydantic's message for broken JSON names no column.
        return json.loads(read_source(path).text)
    except Refused as refused:
        raise _error(path, str(refused)) from None
    except json.JSONDecodeError as error:
        raise _error(path, f"line {error.lineno}, column {error.colno} is no JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        raise _error(path, _why(error)) from None


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "the nesting is too deep for an outcome file; delete it and run again"
    if not isinstance(error, ValidationError):
        return f"{error}; delete it and run again"
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the document"
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{where} is not as an outcome file has it: {first['msg']}{more}; delete it and run again"


def _error(path: Path, problem: str) -> OutcomeFileError:
    line = f"{path}: the outcome file cannot be used: {problem}"
    return OutcomeFileError(" ".join(clean(line, limit=_MAX_LINE).split()))
