"""JSON Schemas of the files that both packages read and write, built from the models on demand."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import textwrap
from typing import TYPE_CHECKING, Any, cast, get_args

from pydantic import TypeAdapter

from planner.model.actions import Action
from planner.model.answers import Answers
from planner.model.base import Value
from planner.model.baseline import Baseline
from planner.model.contract import Contract
from planner.model.events import Event
from planner.model.outcome import FailureReport, OutcomeDocument
from planner.model.plan import Plan
from planner.model.qualification import Qualification
from planner.planfile.values import EXTENSION, SHORTHANDS, spellings_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MODELS: Mapping[str, tuple[Any, str]] = {
    "plan": (Plan, "A plan of pytest-planverify"),
    "outcome": (OutcomeDocument, "The outcomes of a run of pytest-planverify"),
    "answers": (Answers, "Answers to the manual criteria of a plan"),
    "failure_report": (FailureReport, "The failure report of one todo"),
    "event": (Event, "An input line of planner step"),
    "action": (Action, "An output line of planner step"),
    "contract": (Contract, "The interface of a module"),
    "baseline": (Baseline, "The state before the work on a plan began"),
    "qualification": (Qualification, "The qualification of the checks of a plan"),
}


def names() -> tuple[str, ...]:
    """Return the names of all schemas."""
    return tuple(_MODELS)


def schema(name: str) -> dict[str, Any]:
    """Return the schema of that name, in the dialect 2020-12.

    It describes files as users write them, with all spellings, shorthands and extensions that the loader
    accepts. Raises ``KeyError``, naming the known ones, for any other name.
    """
    if name not in _MODELS:
        raise KeyError(f"unknown schema '{name}'; the schemas are {', '.join(_MODELS)}")
    model, title = _MODELS[name]
    models = _models_of(model)
    for held in models:
        held.model_rebuild()  # pydantic before 2.13 cannot serialize a default of a model that is not built
    document = TypeAdapter[Any](model).json_schema(by_alias=True)
    definitions = cast("dict[str, dict[str, Any]]", document.get("$defs", {}))
    for held in models:
        part = document if held is model else definitions[held.__name__]
        _describe(part, held)
        if part.get("properties", {}).pop("extensions", None) is not None:
            part["patternProperties"] = {f"^{EXTENSION}": {}}
        _admit_spellings(part, held)
    # Last, as this wraps definitions that the steps before have to change.
    for held in models:
        if held in SHORTHANDS:
            whole = definitions[held.__name__]
            alone = whole["properties"][SHORTHANDS[held]]
            definitions[held.__name__] = {"anyOf": [alone, whole], "title": held.__name__}
    return {"$schema": _DIALECT, **document, "title": title}


def schema_text(name: str) -> str:
    """Return a schema as printed."""
    return json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"


def _describe(part: dict[str, Any], model: type[Value]) -> None:
    """Add the docstring below each field as its description."""
    # pydantic can do this itself, but only while a model is built, which would slow every import down.
    properties = part.get("properties", {})
    for owner in reversed(model.__mro__):
        if not issubclass(owner, Value):
            continue
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
        assert isinstance(body, ast.ClassDef)
        for field, below in itertools.pairwise(body.body):
            if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                text, name = getattr(below.value, "value", None), getattr(field.target, "id", "")
                info = model.model_fields.get(name)
                for key in (name if info is None else info.alias or name, name):
                    if isinstance(text, str) and key in properties:
                        properties[key].setdefault("description", inspect.cleandoc(text))


def _admit_spellings(part: dict[str, Any], model: type[Value]) -> None:
    """Allow each field under all of its spellings; of a required one, exactly one must be present."""
    properties = part.get("properties", {})
    for name, info in model.model_fields.items():
        spellings = spellings_of(name, info)
        described = next((spelling for spelling in spellings if spelling in properties), None)
        if described is None or len(spellings) == 1:
            continue
        for spelling in spellings:
            properties.setdefault(spelling, properties[described])
        if described in part.get("required", ()):
            part["required"].remove(described)
            part["oneOf"] = [{"required": [spelling]} for spelling in spellings]


def _models_of(annotation: Any) -> dict[type[Value], None]:
    """Return the models in an annotation, and recursively those of their fields, as an ordered set."""
    if not (isinstance(annotation, type) and issubclass(annotation, Value)):
        return {model: None for part in get_args(annotation) for model in _models_of(part)}
    held = {annotation: None}
    for info in annotation.model_fields.values():
        held |= _models_of(info.annotation)
    return held
