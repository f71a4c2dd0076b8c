"""The shapes of a plan and of a todo, derived from the models so that a field is described once only."""

from __future__ import annotations

import types
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import AliasChoices

from planner.edges.nodes.shapes import (
    Anything,
    Boolean,
    Choice,
    Either,
    FieldShape,
    ListOf,
    Number,
    Record,
    Shape,
    Table,
    Text,
)
from planner.model.base import Value
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
    Operator,
    Plan,
    Policy,
    Quarantine,
    RiskLevel,
    Todo,
    TodoStatus,
)
from planner.model.taxonomy import BranchReason, Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic.fields import FieldInfo

_NOUNS: dict[type, str] = {
    Plan: "a plan",
    Policy: "metadata",
    Todo: "a todo",
    AcceptanceCriteria: "acceptance_criteria",
    CommandSpec: "a test",
    ArtifactSpec: "an artifact",
    MetricSpec: "a metric",
    ManualSpec: "a manual check",
    ControllerTaskSpec: "controller_task_spec",
    FlakyRetry: "flaky_retry",
    Quarantine: "a quarantine",
    Budget: "budget",
    HaltPolicy: "halt",
}
_WORDS: dict[type, str] = {
    Operator: "operator",
    RiskLevel: "risk level",
    TodoStatus: "status",
    BranchReason: "branch reason",
    Role: "role",
}
SHORTHANDS: Mapping[type, str] = {ArtifactSpec: "path"}
"""Of a model that a mere text may stand for, the field that the text then is."""

_EXTENSIONS = "extensions"


@cache
def record_of(model: type[Value]) -> Record:
    """The shape of a model."""
    record = Record(model, _NOUNS.get(model, model.__name__), shorthand=SHORTHANDS.get(model))
    for name, info in fields_of(model).items():
        if name == _EXTENSIONS:
            continue
        known = FieldShape(name, _shape(info.annotation), info.is_required())
        for spelling in spellings_of(name, info):
            record.fields[spelling] = known
    return record


def spellings_of(name: str, info: FieldInfo) -> tuple[str, ...]:
    """Every key by which a file may name a field, the preferred one first."""
    alias = info.validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return tuple(dict.fromkeys([*(choice for choice in choices if isinstance(choice, str)), name]))


def fields_of(model: type[Value]) -> dict[str, FieldInfo]:
    """The fields of a model by name."""
    # Read off the class through Any: pydantic declares it as a property of the instance.
    return cast("Any", model).model_fields


@cache
def all_spellings() -> dict[str, frozenset[str]]:
    """By the name of a field, every key by which a file may name it."""
    found: dict[str, set[str]] = {}
    for model in _NOUNS:
        for name, info in fields_of(model).items():
            found.setdefault(name, set()).update(spellings_of(name, info))
    return {name: frozenset(keys) for name, keys in found.items()}


def _shape(annotation: Any) -> Shape:
    plain, nullable = _without_none(annotation)
    origin = get_origin(plain)
    if plain is Any:
        return Anything()
    if plain is bool:
        return Boolean(nullable)
    if plain is int or plain is float:
        return Number(plain is int, nullable)
    if plain is str:
        return Text(nullable)
    if origin is tuple:
        return ListOf(_shape(get_args(plain)[0]), nullable)
    if origin is dict:
        keys, values = get_args(plain)
        return Table(Choice(_words(keys), "routing key"), _shape(values))
    if origin in (Union, types.UnionType):
        return _union(get_args(plain))
    if origin is Literal:
        return Choice(get_args(plain), "halt policy", nullable)
    if isinstance(plain, type) and issubclass(plain, Enum):
        return Choice(_words(plain), _WORDS[plain], nullable)
    if isinstance(plain, type) and issubclass(plain, Value):
        return record_of(plain)
    raise TypeError(f"no shape is known for {annotation!r}")


def _union(members: tuple[Any, ...]) -> Shape:
    words = next(member for member in members if get_origin(member) is Literal)
    many = next(member for member in members if get_origin(member) is tuple)
    return Either(Choice(get_args(words), "network policy"), ListOf(_shape(get_args(many)[0])))


def _words(annotation: Any) -> tuple[str, ...]:
    """The values of an enum, or of a union of enums."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return tuple(str(member.value) for member in annotation)
    return tuple(word for member in get_args(annotation) for word in _words(member))


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """An annotation without ``Annotated`` and ``None``, and whether ``None`` was allowed."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not type(None)]
        if len(members) == 1:
            return _without_none(members[0])[0], True
    return annotation, False
