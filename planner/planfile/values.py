"""Conversion of a document's nodes to a validated model.

A scalar stays text until its location requires another type, so the id ``007`` stays ``007``. A node of
a wrong type is passed to pydantic unchanged, which rejects it; its message is then reworded with the
position.
"""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast, get_args, get_origin

from pydantic import AliasChoices, BeforeValidator, ValidationError

from planner.model.base import Value
from planner.model.plan import (
    DATE_PATTERN,
    HOST_PATTERN,
    ID_PATTERN,
    SHA256_PATTERN,
    ArtifactSpec,
    CommandSpec,
    Policy,
    Todo,
)
from planner.model.taxonomy import Category, RoutingKey
from planner.text.display import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

    from planner.planfile.document import Document, Node

_Model = TypeVar("_Model", bound=Value)

EXTENSION = "x-"
"""Prefix of the user's own keys."""

BOOLEANS = {
    spelling: word in ("true", "yes", "on")
    for word in ("true", "yes", "on", "false", "no", "off")
    for spelling in (word, word.capitalize(), word.upper())
}
"""Unquoted words accepted as booleans."""

_ANY: Types = (Any,)
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]{0,18})(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
_WHOLE = re.compile(r"[-+]?[0-9]+")
MAX_WHOLE = 2**63 - 1
"""Largest absolute integer in a plan."""

_FEW = 12
"""Number of keys up to which a message lists all of them."""

SHORTHANDS: Mapping[type, str] = {ArtifactSpec: "path", CommandSpec: "cmd"}
"""Models that a plain text may represent, with the field that it sets."""

Types: TypeAlias = tuple[Any, ...]
"""Element types of an annotation: ``(Todo,)`` for a tuple of todos."""


class Field(NamedTuple):
    """One field of a model."""

    name: str
    types: Types
    is_list: bool
    blank: Any
    """Default value; for required fields an empty tuple, an empty text or zero."""


@cache
def fields_by_key(model: type[Value]) -> dict[str, Field]:
    """Return the fields of a model by every accepted key."""
    found: dict[str, Field] = {}
    for name, info in model.model_fields.items():
        if name != "extensions":
            types = _types_in(info.annotation)
            members = (info.annotation, *get_args(info.annotation))
            is_list = any(get_origin(each) is tuple for each in members)
            blank = () if is_list else 0 if float in types else ""
            if not info.is_required():
                blank = info.get_default(call_default_factory=True)
            field = Field(name, types, is_list, blank)
            found.update(dict.fromkeys(spellings_of(name, info), field))
    return found


def spellings_of(name: str, info: FieldInfo) -> tuple[str, ...]:
    """Return the accepted keys of a field, preferred one first."""
    alias = info.validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return tuple(dict.fromkeys([*(choice for choice in choices if isinstance(choice, str)), name]))


def _types_in(annotation: Any) -> Types:
    """Return the innermost type arguments of an annotation, or the annotation itself."""
    parts = get_args(annotation)
    return tuple(held for part in parts for held in _types_in(part)) if parts else (annotation,)


def model_in(types: Types) -> type[Value] | None:
    """Return the model of a location, directly or in a list; ``None`` if there is none."""
    return next((each for each in types if isinstance(each, type) and issubclass(each, Value)), None)


# -- reading -------------------------------------------------------------------------------------------


def read_model(document: Document, model: type[_Model]) -> tuple[_Model, bool]:
    """Return the document as a model, with whether it is valid; if not, with what could be read.

    Adds faults to the document. Raises :class:`Refused` if it is no mapping.
    """
    if not isinstance(document.root.value, dict):
        problem = f"the file is not a mapping; write keys, such as '{next(iter(fields_by_key(model)))}: …'"
        raise document.refusal(document.root.start_mark.index, problem)
    # The keys are names of fields now, whichever spelling the file has.
    values = _plain(document, document.root, (model,), "")
    try:
        return model.model_validate(values, by_alias=False, by_name=True), True
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            _report(document, detail)
    return cast("_Model", _construct(values, model)), False


def _plain(document: Document, node: Node, types: Types, path: str) -> Any:
    """Return the plain value of a node, or the node itself if its type is wrong.

    Unknown keys, and two spellings of one key, are added to the faults; keys that were read are recorded in
    ``document.spelled``.
    """
    value, model = node.value, model_in(types)
    if isinstance(value, str):
        return _plain_scalar(node, value, types)
    if isinstance(value, list):
        return [_plain(document, each, types, f"{path}[{i}]") for i, each in enumerate(value)]
    start = f"{path}." if path else ""
    if model is None:
        entries = value.items()
        if Any not in types:  # a table, where own keys are allowed
            entries = [each for each in entries if not each[0].startswith(EXTENSION)]
        return {key: _plain(document, held, types, start + key) for key, (_, held) in entries}
    known = fields_by_key(model)
    found: dict[str, Any] = {}
    spelled = document.spelled.setdefault(id(node), {})
    for key, (name_node, held) in value.items():
        if key.startswith(EXTENSION):
            if "extensions" not in model.model_fields:  # a contract may have own keys, but keeps none
                continue
            extensions = found.setdefault("extensions", {})
            extensions[key] = _plain(document, held, _ANY, start + key)
        elif key not in known:
            problem = f"'{key}' is not a key here; {_key_hint(key, known)}"
            document.mark(name_node.start_mark.index, start + key, problem)
        else:
            name = known[key].name
            if name in found:
                problem = f"'{key}' and '{spelled[name]}' are two names of the same key; keep one"
                document.mark(name_node.start_mark.index, start + key, problem)
            else:
                spelled[name] = key
                is_record = model_in(known[key].types) is not None and isinstance(held.value, dict)
                if is_record and known[key].is_list:
                    found[name] = held  # a mapping instead of a list; pydantic refuses the node
                else:
                    found[name] = _plain(document, held, known[key].types, start + key)
    return found


def _plain_scalar(node: Node, text: str, types: Types) -> Any:
    """Return a scalar as one of the types of its place; a quoted one is never null, number or boolean."""
    is_bare = node.style is None
    # A validator before the type, as of a parameter's default, wants the value as JSON would have it.
    if Any in types or any(isinstance(each, BeforeValidator) for each in types if not model_in(types)):
        return anything(text) if is_bare else text
    if is_bare and text in _NULLS:
        return None
    if any(each in (float, int, 1) for each in types):  # 1 is the type in Literal[1]
        value = anything(text) if is_bare else text
        return node if isinstance(value, (str, bool)) else value
    if bool in types:
        return BOOLEANS.get(text, node) if is_bare else node
    return text


def anything(text: str) -> str | float | bool | None:
    """Return an unquoted scalar typed as in JSON; a number out of range stays text."""
    if text in _NULLS or text in ("true", "false"):
        return None if text in _NULLS else text == "true"
    if not _NUMBER.fullmatch(text):  # it limits the digits: int() of very many takes long, or fails
        return text
    if _WHOLE.fullmatch(text):
        return int(text) if abs(int(text)) <= MAX_WHOLE else text
    return float(text) if math.isfinite(float(text)) else text


def _construct(value: Any, model: type[Value]) -> Any:
    """Return an unvalidated model of what could be read, with blanks for the rest.

    The checks can use it, so that a file is refused with all of its faults at once.
    """
    alone = {SHORTHANDS.get(model, ""): value}
    held = cast("dict[str, Any]", value) if isinstance(value, dict) else alone
    parts: dict[str, Any] = {"extensions": held["extensions"]} if "extensions" in held else {}
    for field in fields_by_key(model).values():
        parts[field.name] = _salvage(held[field.name], field) if field.name in held else field.blank
    return model.model_construct(set(held), **parts)


def _salvage(value: Any, field: Field) -> Any:
    """Return the usable parts of the value of a field that may be invalid, else the field's blank."""
    inner, blank, kept = model_in(field.types), field.blank, value
    if isinstance(value, list) and field.is_list:
        parts = cast("list[Any]", value)
        if inner is not None:
            return tuple(_construct(each, inner) for each in parts)
        return tuple(each for each in parts if isinstance(each, str))
    if isinstance(value, dict) and inner and not field.is_list:
        return _construct(value, inner)
    if isinstance(value, dict) and isinstance(blank, dict):
        return {key: each for key, each in cast("dict[str, Any]", value).items() if isinstance(each, str)}
    is_scalar = isinstance(value, (str, int, float)) and inner is None and blank != ()
    return kept if is_scalar or (value is None and blank is None) else blank


# -- wording -------------------------------------------------------------------------------------------

_EXPECTED = {
    "string_type": "a text; quotes make it one",
    "bool_type": "true or false, without quotes",
    "int_type": "a whole number of at most 18 digits, without quotes or leading zeros",
    "int_from_float": "a whole number, without fraction and exponent",
    "float_type": "a number of at most 18 digits, without quotes or leading zeros",
    "tuple_type": "a list: put it in [ ], or start each line with '- '",
    "dict_type": "a mapping: key: value, or {}",
    "model_type": "a mapping: key: value",
}
"""What to write instead of a value of a wrong type, by pydantic's type of the error."""

_BY_PATTERN = {
    ID_PATTERN: "is not an id; use letters, digits, '_', '.' and '-' only",
    SHA256_PATTERN: "is not a SHA-256; write its 64 hexadecimal digits",
    DATE_PATTERN: "is not a date; write year, month and day, as in 2026-12-31",
    HOST_PATTERN: "is not a host; write one as in pypi.org, db.internal:5432, 10.0.0.* or *.example.org",
}
"""What is wrong with a text, and what to write instead, by the pattern that it does not match."""

_UNION_MEMBER = re.compile(r"(literal|tuple|str-enum)\[")


def _report(document: Document, detail: ErrorDetails) -> None:
    """Add a fault for an error of pydantic."""
    kind = detail["type"]
    # pydantic reports an error for each member of a union, with the member in the location. Of
    # `network`, a word or a list, only the error of the member that was meant is kept.
    members = [str(part) for part in detail["loc"] if _UNION_MEMBER.match(str(part))]
    loc = tuple(part for part in detail["loc"] if part not in members)
    is_key = loc[-1:] == ("[key]",)
    place = document.find(loc[:-1] if is_key else loc)
    value = place.node.value
    shape = "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else None
    if shape == "a list" and any(each.startswith("literal[") for each in members):
        return
    if members and kind == "tuple_type" and shape is None:
        return
    text = "" if shape else str(value)
    quote = '"' if getattr(place.node, "style", None) else "'"
    found = shape or f"{quote}{text if len(text) <= 60 else text[:57] + '…'}{quote}"
    if kind == "missing":
        problem = f"the key '{loc[-1]}' is missing; add it"
    elif is_key:
        words = [each.value for enum in (RoutingKey, Category) for each in enum]
        problem = f"'{loc[-2]}' is not a routing key; {hint(str(loc[-2]), words)}"
    elif detail["input"] is None:
        problem = "the value is empty; write something, or remove the key"
    elif kind in ("enum", "literal_error") and shape is None:
        expected = detail.get("ctx", {})["expected"]
        words = re.findall(r"'([^']*)'", expected) or [expected]  # numbers have no quotes
        words += ["or a list"] * bool(members)
        problem = f"{found} is not allowed here; {hint(text, words)}"
    elif kind in _EXPECTED:
        problem = f"{found} is given; write {_EXPECTED[kind]}"
    elif (pattern := detail.get("ctx", {}).get("pattern")) in _BY_PATTERN:
        problem = f"{found} {_BY_PATTERN[pattern]}"
    else:
        problem = f"{found} is refused: {detail['msg'][:1].lower()}{detail['msg'][1:]}"
    document.mark(place.at if is_key else place.start, place.path, problem)


def hint(word: str, known: Collection[str]) -> str:
    """Return a hint to the intended name, or the list of names."""
    listed = f"write one of {', '.join(known)}"
    # Short ones mislead: "=>" is like ">", but means ">=".
    return did_you_mean(word, known, listed) if len(word) > 2 else listed


def _key_hint(key: str, known: Mapping[str, Field]) -> str:
    """Return a hint for an unknown key: its correct place, or a similar key."""
    for name, field in known.items():
        below = None if field.is_list else model_in(field.types)
        if below is not None and key in fields_by_key(below):
            return f"it belongs below '{name}'"
    if known is fields_by_key(Policy) and key in fields_by_key(Todo):
        return "it is a key of todos, below 'items'"
    listed = f"your own keys start with '{EXTENSION}'"
    if len(known) <= _FEW:
        listed = f"write one of {', '.join(known)}; {listed}"
    return did_you_mean(key, known, listed)
