"""From the nodes of a document to a validated model: the models say what each place wants.

A scalar is text until a place is known that wants something else, so the id ``007`` stays as it was
written. What does not fit its place is handed to pydantic as the bare node, which every type refuses; the
refusal is then worded from the node and from what was wanted.
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from pydantic import AliasChoices, ValidationError

from planner.model.base import Value
from planner.model.kinds import Purpose
from planner.model.plan import (
    AcceptanceCriteria,
    ArtifactSpec,
    Budget,
    CommandSpec,
    ControllerTaskSpec,
    FlakyRetry,
    HaltPolicy,
    ManualSpec,
    MetricSpec,
    NegativeControl,
    Operator,
    Plan,
    Policy,
    Quarantine,
    RiskLevel,
    Todo,
    TodoStatus,
    ToolSpec,
)
from planner.model.taxonomy import BranchReason, Role
from planner.planfile.document import Document, Loc, Node
from planner.planfile.faults import Refused
from planner.planfile.scalars import NULLS, NoSuchScalarError, anything, boolean, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

_Model = TypeVar("_Model", bound=Value)

EXTENSION = "x-"
"""Keys that begin so are the user's own."""

SHORTHANDS: Mapping[type, str] = {ArtifactSpec: "path", CommandSpec: "cmd"}
"""Of a model that a mere text may stand for, the field that the text then is."""

_NOUNS: dict[type, str] = {
    Plan: "a plan",
    Policy: "metadata",
    Todo: "a todo",
    AcceptanceCriteria: "acceptance_criteria",
    CommandSpec: "a test",
    ArtifactSpec: "an artifact",
    MetricSpec: "a metric",
    ManualSpec: "a manual check",
    NegativeControl: "a negative control",
    ControllerTaskSpec: "controller_task_spec",
    FlakyRetry: "flaky_retry",
    Quarantine: "a quarantine",
    Budget: "budget",
    HaltPolicy: "halt",
    ToolSpec: "a tool",
    Purpose: "kind of tool",
    Operator: "operator",
    RiskLevel: "risk level",
    TodoStatus: "status",
    BranchReason: "branch reason",
    Role: "role",
}
_COMPARED = 80
"""So many characters are compared when a name is guessed: the comparison is quadratic."""

_SHORT = 2
"""Of words up to this length nothing is guessed."""

_FEW = 12
"""Fewer keys than this are all listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a place of a plan may hold. A ``word`` with an ``item`` may be a list instead."""

    kind: Literal["text", "word", "number", "whole", "boolean", "list", "table", "record", "any"]
    nullable: bool = False
    noun: str = ""
    words: tuple[str, ...] = ()
    """The words that may stand here, or as the keys of a table."""
    item: Wanted | None = None
    model: type[Value] | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a model."""

    name: str
    wanted: Wanted
    required: bool


@cache
def fields_by_key(model: type[Value]) -> dict[str, Field]:
    """Return the fields of a model by every key that a file may use for them."""
    found: dict[str, Field] = {}
    for name, info in fields_of(model).items():
        if name != "extensions":
            field = Field(name, wanted_by(info.annotation), info.is_required())
            found.update(dict.fromkeys(spellings_of(name, info), field))
    return found


def spellings_of(name: str, info: FieldInfo) -> tuple[str, ...]:
    """Return every key by which a file may name a field, the preferred one first."""
    alias = info.validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return tuple(dict.fromkeys([*(choice for choice in choices if isinstance(choice, str)), name]))


def fields_of(model: type[Value]) -> dict[str, FieldInfo]:
    """Return the fields of a model by name."""
    # Read off the class through Any: pydantic declares it as a property of the instance.
    return cast("Any", model).model_fields


@cache
def all_spellings() -> dict[str, frozenset[str]]:
    """Return by the name of a field every key by which a file may name it."""
    found: dict[str, set[str]] = {}
    for model in _NOUNS:
        if issubclass(model, Value):
            for name, info in fields_of(model).items():
                found.setdefault(name, set()).update(spellings_of(name, info))
    return {name: frozenset(keys) for name, keys in found.items()}


def wanted_by(annotation: Any) -> Wanted:
    """Return what a field of this type wants. Raises ``TypeError`` for types that no plan has."""
    plain, nullable = _without_none(annotation)
    origin, inner = get_origin(plain), get_args(plain)
    simple: dict[Any, Any] = {Any: "any", bool: "boolean", int: "whole", float: "number", str: "text"}
    if plain in simple:
        return Wanted(kind=simple[plain], nullable=nullable)
    if origin is tuple:
        return Wanted(kind="list", nullable=nullable, item=wanted_by(inner[0]))
    if origin is dict:
        return Wanted(kind="table", noun="routing key", words=_words(inner[0]), item=wanted_by(inner[1]))
    if origin in (Union, types.UnionType):
        word, many = sorted(inner, key=lambda member: get_origin(member) is tuple)
        noun = "network policy"
        return Wanted(kind="word", noun=noun, words=get_args(word), item=wanted_by(get_args(many)[0]))
    if origin is Literal:
        return Wanted(kind="word", nullable=nullable, noun="halt policy", words=inner)
    if isinstance(plain, type) and issubclass(plain, Enum):
        return Wanted(kind="word", nullable=nullable, noun=_NOUNS[plain], words=_words(plain))
    if isinstance(plain, type) and issubclass(plain, Value):
        return Wanted(kind="record", nullable=nullable, noun=_NOUNS[plain], model=plain)
    raise TypeError(f"no plan holds {annotation!r}")


def _words(annotation: Any) -> tuple[str, ...]:
    """Return the values of an enum, or of a union of enums."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return tuple(str(member.value) for member in annotation)
    return tuple(word for member in get_args(annotation) for word in _words(member))


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """Return an annotation without ``Annotated`` and ``None``, and whether ``None`` was allowed."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not type(None)]
        if len(members) == 1:
            return _without_none(members[0])[0], True
    return annotation, False


_UNREAD = Node(0, "")
"""Stands for a value that a file does not hold."""


# -- reading -------------------------------------------------------------------------------------------


def plain_values(document: Document) -> Any:
    """Return the document as JSON would mean it. Numbers out of range are marked as faults."""
    return _read(document, document.root, Wanted(kind="any"), ())


def read_model(document: Document, model: type[_Model]) -> tuple[_Model, bool]:
    """Return the model that the document holds, and whether it is sound; if not, what could be read.

    Faults are added to the document. Raises :class:`Refused` where it is no mapping.
    """
    top = wanted_by(model)
    if not isinstance(document.root.value, dict):
        problem = f"the file is no mapping; write keys, such as '{_example(top)}: …'"
        document.mark(document.root, "", problem)
        raise Refused("", tuple(document.faults))
    values = _read(document, document.root, top, ())
    try:
        return model.model_validate(values, by_alias=False, by_name=True), True
    except ValidationError as error:
        details = error.errors(include_url=False)
    for detail in details:
        _report(document, top, detail)
    if not document.faults:
        # That no wording was found for a refusal must not leave the user without a word.
        document.mark(document.root, "", f"{details[0]['msg']}; see the plan reference")
    return cast("_Model", _construct(values, top)), False


def _read(document: Document, node: Node, wanted: Wanted, loc: Loc) -> Any:
    """Return the plain value of a node, or the node itself where another kind of value is wanted."""
    value, kind = node.value, wanted.kind
    if isinstance(value, str):
        return _read_scalar(document, node, wanted, loc, value)
    if isinstance(value, list):
        item = wanted if kind == "any" else wanted.item
        if item is None or kind == "table":
            return node
        return [_read(document, each, item, (*loc, index)) for index, each in enumerate(value)]
    if wanted.model is not None:
        return _read_record(document, node, value, wanted, loc)
    if kind == "any":
        return {key: _read(document, held, wanted, (*loc, key)) for key, (_, held) in value.items()}
    if kind == "table" and wanted.item is not None:
        return {
            key: _read(document, held, wanted.item, (*loc, key))
            for key, (_, held) in value.items()
            if not key.startswith(EXTENSION)
        }
    return node


def _read_scalar(document: Document, node: Node, wanted: Wanted, loc: Loc, text: str) -> Any:
    kind, quoted = wanted.kind, node.quoted
    is_null = not quoted and text in NULLS
    if is_null and wanted.nullable:
        return None
    if kind == "text" or (kind == "word" and text in wanted.words):
        return node if is_null and kind == "text" else text
    try:
        if kind == "whole" or kind == "number":
            return number(text, quoted, whole=kind == "whole")
        if kind == "boolean":
            return boolean(text, quoted)
        if kind == "any":
            return anything(text, quoted)
    except NoSuchScalarError as error:
        if kind == "any":  # pydantic would take the node for a value
            document.mark(node, _path(loc), str(error))
            return None
    shorthand = SHORTHANDS.get(wanted.model) if wanted.model is not None else None
    return {shorthand: text} if shorthand is not None and not is_null else node


def _read_record(
    document: Document, node: Node, entries: dict[str, tuple[int, Node]], wanted: Wanted, loc: Loc
) -> dict[str, Any]:
    """Return the values by the names of the fields. What is wrong with keys is marked here."""
    assert wanted.model is not None
    known = fields_by_key(wanted.model)
    values: dict[str, Any] = {}
    extensions: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    for key, (at, held) in entries.items():
        field = known.get(key)
        if key.startswith(EXTENSION):
            extensions[key] = _read(document, held, Wanted(kind="any"), (*loc, key))
        elif field is None:
            problem = f"'{key}' is no key of {wanted.noun}; {_nearest(key, known)}"
            document.mark(node, _path((*loc, key)), problem, at)
        elif field.name in values:
            problem = f"'{key}' and '{spelled[field.name]}' are two names of one key; keep one"
            document.mark(node, _path((*loc, key)), problem, at)
        else:
            spelled[field.name] = key
            values[field.name] = _read(document, held, field.wanted, (*loc, key))
    if extensions:
        values["extensions"] = extensions
    return values


def _construct(value: Any, wanted: Wanted) -> Any:
    """Return the unchecked models of what could be read, with blanks for what could not."""
    blanks: dict[str, Any] = {"list": (), "number": 0, "whole": 0, "boolean": False}
    if value is None and wanted.nullable:
        return None
    if wanted.model is not None:
        held = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        parts = {"extensions": held["extensions"]} if "extensions" in held else {}
        for field in fields_by_key(wanted.model).values():
            part = held.get(field.name, _UNREAD)
            if field.required or not isinstance(part, Node):
                parts[field.name] = _construct(part, field.wanted)
        return wanted.model.model_construct(None, **parts)
    if wanted.kind == "table":
        held = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        return {key: each for key, each in held.items() if key in wanted.words and isinstance(each, str)}
    if isinstance(value, list) and wanted.item is not None:
        return tuple(_construct(each, wanted.item) for each in cast("list[Any]", value))
    return blanks.get(wanted.kind, "") if isinstance(value, Node) else cast("object", value)


# -- wording -------------------------------------------------------------------------------------------

_TEMPLATES = {
    "greater_than": "{input} is too small; write a number greater than {gt:g}",
    "greater_than_equal": "{input} is too small; write {ge:g} or more",
    "less_than": "{input} is too large; write a number less than {lt:g}",
    "less_than_equal": "{input} is too large; write {le:g} or less",
    "string_too_short": "the text is empty; write something, or leave the key out",
    "string_too_long": "the text is longer than {max_length} characters; shorten it",
    "string_unicode": "the text holds half of a surrogate pair; write the whole character",
}
_ID = "{input} is no id; use letters, digits, '_', '.' and '-' only"
_PATTERNS = {
    "id": _ID,
    "dependencies": _ID,
    "parent_id": _ID,
    "via": _ID,
    "sha256": "{input} is no SHA-256 digest; write its 64 hexadecimal digits in lower case",
    "expires": "{input} is no date; write it as YYYY-MM-DD",
}


def _report(document: Document, top: Wanted, detail: ErrorDetails) -> None:
    """Say in the document what pydantic refuses."""
    is_missing = detail["type"] == "missing"
    traced = _trace(document, top, detail["loc"][:-1] if is_missing else detail["loc"])
    if traced is None:
        return
    loc, wanted, is_key = traced
    place = document.find((*loc, *detail["loc"][-1:]) if is_missing else loc, all_spellings())
    template = _TEMPLATES.get(detail["type"])
    if detail["type"] == "string_pattern_mismatch":
        names = (str(part) for part in reversed(loc))
        template = next((_PATTERNS[name] for name in names if name in _PATTERNS), None)
    if is_missing:
        problem = f"{wanted.noun} needs the key '{detail['loc'][-1]}'; add it"
        document.mark(place.node, place.path, problem)
    elif template is not None:
        # The value can be read, so what else is wrong with it is said, too.
        problem = template.format(**detail.get("ctx", {}), input=_shown(detail["input"]))
        document.add(place.node.at, place.path, problem)
    elif is_key:
        key = Node(place.at, str(loc[-1]))
        document.mark(key, place.path, _refusal(key, wanted))
    else:
        document.mark(place.node, place.path, _refusal(place.node, wanted))


def _trace(document: Document, wanted: Wanted, told: Loc) -> tuple[Loc, Wanted, bool] | None:
    """Return the place that pydantic means, what it wants, and whether its key is meant.

    Pydantic puts the members of a union among the names. What it says of a member that nobody tried to
    write is dropped: ``None``.
    """
    loc: Loc = ()
    for index, part in enumerate(told):
        if wanted.model is not None:
            wanted = fields_by_key(wanted.model)[str(part)].wanted
        elif wanted.kind == "table" and told[index + 1 : index + 2] == ("[key]",):
            return (*loc, part), Wanted(kind="word", noun=wanted.noun, words=wanted.words), True
        elif isinstance(part, int) or wanted.kind == "table":
            wanted = wanted.item or wanted
        elif part.startswith("tuple") == isinstance(document.find(loc, all_spellings()).node.value, list):
            continue
        else:
            return None
        loc = (*loc, part)
    return loc, wanted, False


def _refusal(node: Node, wanted: Wanted) -> str:
    """Say what stands in a place of another kind, and what to write."""
    value, kind = node.value, wanted.kind
    if isinstance(value, str):
        is_null = not node.quoted and value in NULLS
        if kind == "word":
            said = f"'{value}' is no {wanted.noun}" if value else f"no {wanted.noun} is written here"
            return f"{said}; {_suggestion(value, wanted.words)}"
        try:
            if kind == "whole" or kind == "number":
                number(value, node.quoted, whole=kind == "whole")
            elif kind == "boolean":
                boolean(value, node.quoted)
        except NoSuchScalarError as error:
            return str(error)
        if is_null and kind == "text":
            return "nothing is written here; write a text, in quotes if it is meant as it stands"
        if is_null:
            keys = {"list": "[]", "table": "{}"}.get(kind, "its keys")
            return f"nothing is written here; write {keys}, or leave the key out"
        found = f"'{_cut(value)}'" if value else "nothing"
    else:
        found = "a list" if isinstance(value, list) else "a mapping"
    name, remedy = {
        "text": ("a text", "put it in quotes if it is meant as text"),
        "word": (f"a {wanted.noun}", f"write one of {', '.join(wanted.words)}"),
        "boolean": ("a boolean", "write true or false"),
        "list": ("a list", "put it in [ ], or begin each line with '- '"),
        "table": ("a mapping", f"write '{wanted.noun}: …'"),
        "record": ("a mapping", f"write the keys of {wanted.noun}, such as '{_example(wanted)}: …'"),
    }.get(kind, ("a number", "write digits"))
    return f"{found} stands where {name} is wanted; {remedy}"


def _example(wanted: Wanted) -> str:
    """Return a key that such a mapping may have."""
    return next(iter(fields_by_key(wanted.model))) if wanted.model is not None else ""


def _nearest(key: str, known: Mapping[str, Field]) -> str:
    near = get_close_matches(key[:_COMPARED].lower(), known, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    listed = f"known are {', '.join(known)}; " if len(known) < _FEW else ""
    return f"{listed}keys of your own begin with '{EXTENSION}'"


def _suggestion(word: str, names: Iterable[str]) -> str:
    """Say which of the names was meant, or list them all."""
    names = list(names)
    known = {name.lower(): name for name in names}
    guessed = word[:_COMPARED].lower() if len(word) > _SHORT else ""
    near = get_close_matches(guessed, known, n=1, cutoff=0.6)
    return f"did you mean '{known[near[0]]}'?" if near else f"write one of {', '.join(names)}"


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f"'{_cut(value)}'"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"


def _path(loc: Loc) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).removeprefix(".")
