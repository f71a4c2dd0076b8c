"""A plan as YAML or JSON text."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any, Literal, cast

import yaml

from planner.model.base import Value
from planner.model.plan import AcceptanceCriteria, ArtifactSpec, Plan
from planner.planfile.scalars import BOOLEANS, NoSuchScalarError, anything

_WIDTH = 100
_RESOLVER: Any = yaml.resolver.Resolver()
_TEXT = "tag:yaml.org,2002:str"


def render(plan: Plan, *, format: Literal["yaml", "json"]) -> str:
    """The text of a plan file that holds what was set in the plan, in the order of the models."""
    values = plain(plan)
    if format == "json":
        return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return yaml.dump(values, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)


def as_written(value: Value) -> Any:
    """A part of a plan in plain values, as a file would hold it: what was set, without the defaults."""
    return plain(value)


def plain(value: Any) -> Any:
    """Return a value as a file holds it: text, numbers, lists and mappings, without the defaults."""
    if isinstance(value, Value):
        fields = _fields(value)
        return value.path if isinstance(value, ArtifactSpec) and fields.keys() == {"path"} else fields
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [plain(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value


def _fields(value: Value) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, info in type(value).model_fields.items():
        held = getattr(value, name)
        if name == "extensions" or name not in value.model_fields_set:
            continue
        if isinstance(held, AcceptanceCriteria) and not held and not held.extensions:
            # A file with empty criteria is refused, one that leaves them out means the same.
            continue
        found[info.alias or name] = plain(held)
    return {**found, **getattr(value, "extensions", {})}


class Dumper(yaml.SafeDumper):
    """Quotes every text that would be read as something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: Any, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=text_style(text))


def text_style(text: str) -> str | None:
    """Return how a text is written so that it is read as text: ``|``, ``"``, or ``None`` for plainly."""
    if "\n" in text and _is_block(text):
        return "|"
    if not text.isprintable() or text in BOOLEANS or not _is_read_as_text(text[:60]):
        return '"'
    # What other readers of YAML would take for a date, or the like.
    return None if _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) == _TEXT else "'"


def _is_read_as_text(text: str) -> bool:
    try:
        return anything(text, False) == text
    except NoSuchScalarError:
        return False  # `14809e546193`: a number, if it were not too large for one


def _is_block(text: str) -> bool:
    lines = text.split("\n")
    return (
        all(line.isprintable() and line == line.rstrip() for line in lines)
        and text[0] not in " \n"
        and not text.endswith("\n\n")
    )


Dumper.add_representer(str, _represent_text)
