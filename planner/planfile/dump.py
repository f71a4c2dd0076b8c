"""Plain values as YAML or JSON text."""

from __future__ import annotations

import io
import json
import re
from enum import Enum
from typing import Any, Literal, NamedTuple, cast

import yaml

from planner.model.base import Value
from planner.model.plan import AcceptanceCriteria, ArtifactSpec, Plan
from planner.planfile.values import BOOLEANS, anything

_RESOLVER: Any = yaml.resolver.Resolver()
_EMITTER: Any = yaml.emitter.Emitter(io.StringIO(), allow_unicode=True)
_TEXT = "tag:yaml.org,2002:str"


class Indentation(NamedTuple):
    """How a YAML text is indented, in columns."""

    step: int = 2
    """From a key to those below it."""
    offset: int = 0
    """From a key to the dashes below it."""
    dash: int = 2
    """From a dash to what follows it."""


def render(plan: Plan, *, format: Literal["yaml", "json"]) -> str:
    """Return the text of a plan file that holds what was set in the plan, in the order of the models."""
    values = plain(plan)
    if format == "json":
        return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return yaml_text(values)


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


# -- YAML ----------------------------------------------------------------------------------------------


def yaml_text(values: dict[str, Any]) -> str:
    """Return the text of a file that holds these values."""
    return yaml_block(values, -Indentation().step, Indentation()).removeprefix("\n") + "\n"


def yaml_block(value: Any, column: int, indentation: Indentation, *, is_item: bool = False) -> str:
    """Return what follows ``key:``, or the dash of an item; ``column`` is that of the key or dash.

    A list or mapping begins with a line break, below a dash with its first entry.
    """
    step, offset, dash = indentation
    if isinstance(value, dict) and value:
        inner = column + (dash if is_item else step)
        parts = [
            f"{yaml_scalar(key)}:{yaml_block(held, inner, indentation)}"
            for key, held in cast("dict[str, Any]", value).items()
        ]
    elif isinstance(value, list) and value:
        inner = column + (dash if is_item else offset)
        items = cast("list[Any]", value)
        parts = [f"-{yaml_block(held, inner, indentation, is_item=True)}" for held in items]
    else:
        return " " * (dash - 1 if is_item else 1) + (
            _literal(value, column + (dash if is_item else step), dash if is_item else step)
            or (yaml_scalar(value) if isinstance(value, str) else yaml_flow(value))
        )
    margin = "\n" + " " * inner
    return (" " * (dash - 1) if is_item else margin) + margin.join(parts)


def yaml_flow(value: Any) -> str:
    """Return a value in one line, lists and mappings in brackets."""
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value).items()
        pairs = (f"{yaml_scalar(key, is_flow=True)}: {yaml_flow(each)}" for key, each in held)
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(yaml_flow(each) for each in cast("list[Any]", value)) + "]"
    if isinstance(value, str):
        return yaml_scalar(value, is_flow=True)
    return json.dumps(value, allow_nan=False)


def yaml_scalar(text: str, quote: str | None = None, *, is_flow: bool = False) -> str:
    """Return a text in one line, in the quotes that it has or needs."""
    style = quote if quote and text.isprintable() else text_style(text)
    if style == '"':
        return _in_double_quotes(text)
    analysis = _EMITTER.analyze_scalar(text)
    if style is None and (analysis.allow_flow_plain if is_flow else analysis.allow_block_plain):
        return text
    return "'" + text.replace("'", "''") + "'"


def _in_double_quotes(text: str) -> str:
    return re.sub(
        r"[^\x20-\x7e]",
        lambda found: found[0] if found[0].isprintable() else _escaped(ord(found[0])),
        json.dumps(text, ensure_ascii=False),
    )


def _escaped(code: int) -> str:
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


def _literal(value: Any, column: int, step: int) -> str | None:
    """Return a text of several lines as such: what pytest shows has lines that end with blanks."""
    if not isinstance(value, str) or "\n" not in value:
        return None
    lines = value.removesuffix("\n").split("\n")
    if not value.replace("\n", "").replace("\t", "").isprintable() or not lines[-1].strip():
        return None
    # Where the text itself begins with a blank, the width of the indentation has to be said.
    head = "|" + (str(step) if value[0] in " \t\n" else "") + ("" if value.endswith("\n") else "-")
    return "\n".join([head, *(" " * column + line if line else "" for line in lines)])


def text_style(text: str) -> str | None:
    """Return the quotes in which a text is read as text: ``"``, ``'``, or ``None`` where it needs none."""
    if not text.isprintable() or text in BOOLEANS or not _is_read_as_text(text[:60]):
        return '"'
    # What other readers of YAML would take for a date, or the like.
    return None if _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) == _TEXT else "'"


def _is_read_as_text(text: str) -> bool:
    return anything(text) == text
