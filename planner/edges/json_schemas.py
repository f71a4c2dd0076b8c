"""JSON Schemas of the files that the packages read and write, generated from the models.

``python -m planner.edges.json_schemas`` writes them to ``planner/edges/schemas``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.edges.model_shapes import record_of
from planner.edges.shapes import EXTENSION, Record
from planner.model.failure_report import FailureReport
from planner.model.outcome import OutcomeDocument
from planner.model.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.base import Value

FOLDER = Path(__file__).parent / "schemas"
"""Where the generated files are, in the package."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MODELS: Mapping[str, tuple[type[Value], str]] = {
    "plan": (Plan, "A plan of pytest-planverify"),
    "outcome": (OutcomeDocument, "The outcomes of a run of pytest-planverify"),
    "failure_report": (FailureReport, "The failure report of one todo"),
}


def names() -> tuple[str, ...]:
    """The names of all schemas."""
    return tuple(_MODELS)


def schema(name: str) -> dict[str, Any]:
    """The shipped schema ``plan``, ``outcome`` or ``failure_report``. Raises ``KeyError`` for others."""
    if name not in _MODELS:
        raise KeyError(f"there is no schema '{name}'; known are {', '.join(_MODELS)}")
    return json.loads(path_of(name).read_text(encoding="utf-8"))


def path_of(name: str) -> Path:
    """The file of a schema."""
    return FOLDER / f"{name}.schema.json"


def generate(name: str) -> dict[str, Any]:
    """The schema as the models have it now."""
    model, title = _MODELS[name]
    document = model.model_json_schema(by_alias=True)
    for part in (document, *document.get("$defs", {}).values()):
        _without_extensions(part)
    if model is Plan:
        _admit_spellings(document)
    # The root of a document has a description of its own; what pydantic calls it is a class name.
    return {"$schema": _DIALECT, **document, "title": title}


def render(name: str) -> str:
    """The text of the file of a schema."""
    return json.dumps(generate(name), indent=2, ensure_ascii=False) + "\n"


def write(folder: Path = FOLDER) -> None:
    """Write every schema."""
    folder.mkdir(exist_ok=True)
    for name in _MODELS:
        (folder / path_of(name).name).write_text(render(name), encoding="utf-8")


def _without_extensions(part: dict[str, Any]) -> None:
    """The user's own keys stand beside the others in a file, not in a mapping of their own."""
    if part.get("properties", {}).pop("extensions", None) is not None:
        part["patternProperties"] = {f"^{EXTENSION}": {}}


def _admit_spellings(document: dict[str, Any]) -> None:
    """Let a field of the plan be named by each of its spellings, and an artifact by its path alone."""
    parts: dict[str, dict[str, Any]] = document["$defs"]
    for record in _records(record_of(Plan)):
        part = document if record.model is Plan else parts[record.model.__name__]
        _spell(part, record)
    for record in _records(record_of(Plan)):
        name = record.model.__name__
        if record.shorthand is not None:
            whole = parts[name]
            parts[name] = {"anyOf": [whole["properties"][record.shorthand], whole], "title": name}


def _spell(part: dict[str, Any], record: Record) -> None:
    by_field: dict[str, list[str]] = {}
    for spelling, known in record.fields.items():
        by_field.setdefault(known.name, []).append(spelling)
    for spellings in by_field.values():
        described = next(spelling for spelling in spellings if spelling in part["properties"])
        for spelling in spellings:
            part["properties"].setdefault(spelling, part["properties"][described])
        if len(spellings) > 1 and described in part.get("required", ()):
            part["required"].remove(described)
            part["oneOf"] = [{"required": [spelling]} for spelling in spellings]


def _records(record: Record, seen: set[str] | None = None) -> list[Record]:
    """The record and all that it holds."""
    seen = set() if seen is None else seen
    if record.model.__name__ in seen:
        return []
    seen.add(record.model.__name__)
    found = [record]
    for known in record.fields.values():
        inner = getattr(known.shape, "item", known.shape)
        if isinstance(inner, Record):
            found += _records(inner, seen)
    return found


if __name__ == "__main__":
    write()
