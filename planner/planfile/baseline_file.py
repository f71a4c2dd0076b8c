"""Reads and writes the baseline file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from planner.errors import BaselineError
from planner.model.baseline import BASELINE_VERSION, Baseline
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 256 << 20
_MAX_LINE = 400


def read_baseline(path: Path) -> tuple[Baseline, bytes]:
    """The baseline of a file, and its bytes. Raises :class:`planner.errors.BaselineError`, in one line."""
    try:
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            raise _error(str(path), f"it is larger than {MAX_BYTES >> 20} MiB")
        data = path.read_bytes()
    except OSError as error:
        raise _error(str(path), f"it cannot be read ({error.strerror})") from None
    return parse_baseline(data, str(path)), data


def parse_baseline(data: bytes, shown: str) -> Baseline:
    """The baseline that these bytes are. Raises :class:`planner.errors.BaselineError`, in one line."""
    try:
        held: Any = json.loads(data)
    except (RecursionError, ValueError) as error:
        raise _error(shown, f"it is no JSON: {error}") from None
    version = cast("dict[str, Any]", held).get("schema_version", 1) if isinstance(held, dict) else 1
    if isinstance(version, int) and version > BASELINE_VERSION:
        raise BaselineError(
            f"{shown}: the baseline cannot be used: schema_version {version} is newer than "
            f"{BASELINE_VERSION}, the newest that this version reads; update pytest-planverify"
        )
    try:
        return Baseline.model_validate(held)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        raise _error(shown, f"{where} is not as a baseline has it: {first['msg']}") from None
    except RecursionError:
        raise _error(shown, "the nesting is too deep for a baseline") from None


def baseline_bytes(document: Baseline) -> bytes:
    """The bytes of the file of a baseline."""
    held = {"schema_version": document.schema_version}
    held |= document.model_dump(mode="json", exclude_defaults=True)
    return (json.dumps(held, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def _error(shown: str, problem: str) -> BaselineError:
    line = (
        f"{shown}: the baseline cannot be used: {problem}; make it anew: planverify baseline PLAN --force "
        "--reason TEXT"
    )
    return BaselineError(" ".join(clean(line, limit=_MAX_LINE).split()))
