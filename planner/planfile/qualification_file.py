"""Reads and writes the qualification file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from planner.errors import QualificationError
from planner.model.qualification import QUALIFICATION_VERSION, Qualification
from planner.planfile.file_writer import write_file
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 64 << 20
_MAX_LINE = 400


def read_qualification(path: Path) -> Qualification:
    """The qualification of a file. Raises :class:`planner.errors.QualificationError`, in one line."""
    try:
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            raise _error(path, f"it is larger than {MAX_BYTES >> 20} MiB")
        held: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise _error(path, f"it cannot be read ({error.strerror})") from None
    except (RecursionError, ValueError) as error:
        raise _error(path, f"it is no JSON: {error}") from None
    version = cast("dict[str, Any]", held).get("schema_version", 1) if isinstance(held, dict) else 1
    if isinstance(version, int) and version > QUALIFICATION_VERSION:
        raise _error(path, f"schema_version {version} is newer than {QUALIFICATION_VERSION}")
    try:
        return Qualification.model_validate(held)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        raise _error(path, f"{where} is not as a qualification has it: {first['msg']}") from None


def write_qualification(document: Qualification, path: Path) -> None:
    """Write it where the user wants it. Raises :class:`planner.errors.FileWriteError`."""
    text = json.dumps(document.model_dump(mode="json"), indent=1, ensure_ascii=False)
    write_file(path, text + "\n", durable=True)


def _error(path: Path, problem: str) -> QualificationError:
    line = f"{path}: the qualification cannot be used: {problem}; make it anew: planverify qualify PLAN"
    return QualificationError(" ".join(clean(line, limit=_MAX_LINE).split()))
