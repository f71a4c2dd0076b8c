"""Changes of a design plan: one table of its kinds of parts, and three operations for all of them.

A part is named by its id (``M-001``; a wave by ``W-`` and its number), or it is one of ``PARTS``. What is
assigned to it is written in words, as on a command line:

``field=text``      a text, number or truth value; of a list field its only item, of an optional one nothing
                    where the text is empty
``field+=text``     one more item of a list; the same field assigned several times is a list, too
``field.inner=…``   a field of a field; of ``params``, one parameter, as JSON or else as text
"""

from __future__ import annotations

import json
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from planner.authoring.design.plan import (
    CodeChange,
    CodeIntent,
    Constraint,
    DesignPlan,
    InvisibleKnowledge,
    KnownRisk,
    LoggedDecision,
    Milestone,
    MilestoneDependencies,
    Overview,
    RejectedAlternative,
    Wave,
    faults_of,
)
from planner.errors import DesignError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime


class PartKind(NamedTuple):
    """A kind of part: its place in the plan and its model."""

    prefix: str
    place: tuple[str, ...]
    """In the plan; in its milestone where ``in_milestone``."""
    model: type[BaseModel]
    in_milestone: bool = False


KINDS = {
    "decision": PartKind("DL", ("planning_context", "decision_log"), LoggedDecision),
    "alternative": PartKind("RA", ("planning_context", "rejected_alternatives"), RejectedAlternative),
    "constraint": PartKind("C", ("planning_context", "constraints"), Constraint),
    "risk": PartKind("R", ("planning_context", "known_risks"), KnownRisk),
    "milestone": PartKind("M", ("milestones",), Milestone),
    "intent": PartKind("CI", ("code_intents",), CodeIntent, in_milestone=True),
    "change": PartKind("CC", ("code_changes",), CodeChange, in_milestone=True),
    "wave": PartKind("W", ("milestone_dependencies", "waves"), Wave),
}
PARTS: dict[str, type[BaseModel]] = {
    "overview": Overview,
    "invisible_knowledge": InvisibleKnowledge,
    "milestone_dependencies": MilestoneDependencies,
}
"""What there is once in every plan."""

_NUMBERS = {"wave": "wave", "milestone": "number"}
"""The field of a kind that counts its parts."""


def add_part(
    plan: DesignPlan, kind_name: str, words: Sequence[str], *, now: datetime, within: str | None = None
) -> tuple[DesignPlan, str]:
    """Return the plan with one part more, and its id. ``within`` names the milestone that it belongs to.

    Raises :class:`planner.errors.DesignError` with every violation.
    """
    kind = KINDS.get(kind_name)
    if kind is None:
        raise DesignError(kind_name, [f"there is no such kind; add one of {', '.join(KINDS)}"])
    data = plan.model_dump(mode="json")
    holder = data
    if kind.in_milestone:
        holder = next((each for each in data["milestones"] if each["id"] == within), None)
        if holder is None:
            known = ", ".join(each.id for each in plan.milestones) or "none yet; add a milestone"
            problem = f"no milestone {within}" if within else "it belongs to a milestone"
            raise DesignError(kind_name, [f"{problem}; name it with --to, there are: {known}"])
    elif within is not None:
        raise DesignError(kind_name, [f"it belongs to no milestone; leave out --to {within}"])
    parts = _list_at(holder, kind)
    counter = _NUMBERS.get(kind_name)
    raw: dict[str, Any] = {} if kind_name == "wave" else {"id": _next_id(plan, kind.prefix)}
    if counter is not None:
        raw[counter] = max((each[counter] for each in parts), default=0) + 1
    if kind_name == "decision":
        raw["timestamp"] = now.isoformat()
    assign(raw, kind.model, words, f"the new {kind_name}")
    parts.append(raw)
    name = f"W-{raw['wave']}" if kind_name == "wave" else str(raw["id"])
    return _validated(data, raw, kind.model, name), name


def change_part(plan: DesignPlan, name: str, words: Sequence[str]) -> DesignPlan:
    """Return the plan with other values in one of its parts. Raises :class:`planner.errors.DesignError`."""
    data = plan.model_dump(mode="json")
    raw, _, model = _find(data, name)
    before = raw.get("id")
    assign(raw, model, words, name)
    if raw.get("id") != before:
        raise DesignError(name, ["its id stays; remove it and add another"])
    return _validated(data, raw, model, name)


def remove_part(plan: DesignPlan, name: str) -> DesignPlan:
    """Return the plan without one of its parts. Raises :class:`planner.errors.DesignError`."""
    data = plan.model_dump(mode="json")
    raw, parts, _ = _find(data, name)
    if parts is None:
        raise DesignError(name, ["it is a part of every plan; set its fields instead"])
    parts.remove(raw)
    try:
        return DesignPlan.model_validate(data)
    except ValidationError as error:
        raise DesignError(f"{name} cannot be removed", faults_of(error)) from None


def part_of(plan: DesignPlan, name: str) -> dict[str, Any]:
    """Return what a part holds, as JSON has it. Raises :class:`planner.errors.DesignError`."""
    return _find(plan.model_dump(mode="json"), name)[0]


def assign(raw: dict[str, Any], model: type[BaseModel], words: Sequence[str], name: str) -> None:
    """Assign to the fields of a part, in its place. Raises :class:`planner.errors.DesignError`."""
    listed: set[str] = set()
    faults: list[str] = []
    for word in words:
        field, sign, text = word.partition("=")
        if not sign:
            faults.append(f"'{word}' assigns nothing; write FIELD=VALUE")
            continue
        path = field.removesuffix("+")
        fault = _assign_one(raw, model, path, text, appends=field.endswith("+") or path in listed)
        listed.add(path)
        faults += [] if fault is None else [fault]
    if faults:
        raise DesignError(name, faults)


# -- where a part stands -------------------------------------------------------------------------------


def _list_at(holder: Any, kind: PartKind) -> list[dict[str, Any]]:
    for key in kind.place:
        holder = holder[key]
    return holder


def _find(data: dict[str, Any], name: str) -> tuple[Any, list[dict[str, Any]] | None, type[BaseModel]]:
    """Return a part, the list that it stands in, and its model."""
    if name in PARTS:
        return data[name], None, PARTS[name]
    for kind in KINDS.values():
        if name.startswith(f"{kind.prefix}-"):
            for holder in data["milestones"] if kind.in_milestone else [data]:
                parts = _list_at(holder, kind)
                for raw in parts:
                    if name == (raw.get("id") or f"W-{raw['wave']}"):
                        return raw, parts, kind.model
    raise DesignError(name, [f"there is no such part; name an id of the plan, or {', '.join(PARTS)}"])


def _next_id(plan: DesignPlan, prefix: str) -> str:
    start = f"{prefix}-"
    taken = [int(each.removeprefix(start)) for each in plan.ids() if each.startswith(start)]
    return f"{start}{max(taken, default=0) + 1:03d}"


def _validated(data: dict[str, Any], raw: dict[str, Any], model: type[BaseModel], name: str) -> DesignPlan:
    """Return the plan of this data; the violations of the part itself are told by its own fields."""
    try:
        model.model_validate(raw)
    except ValidationError as error:
        raise DesignError(name, faults_of(error)) from None
    try:
        return DesignPlan.model_validate(data)
    except ValidationError as error:
        raise DesignError(f"{name} does not fit the plan", faults_of(error)) from None


# -- what is assigned ----------------------------------------------------------------------------------


def _assign_one(
    raw: dict[str, Any], model: type[BaseModel], path: str, text: str, *, appends: bool
) -> str | None:
    """Assign a text to the field of a path; return what is wrong where that cannot be."""
    name, dot, inner = path.partition(".")
    field = model.model_fields.get(name)
    if field is None:
        return f"there is no field '{name}'; there are {', '.join(model.model_fields)}"
    shape = _shape_of(field.annotation)
    if isinstance(shape, type) and issubclass(shape, BaseModel):
        if not dot:
            inner_names = ", ".join(f"{name}.{each}" for each in shape.model_fields)
            return f"{name} is no text; name a field of it: {inner_names}"
        return _assign_one(raw.setdefault(name, {}), shape, inner, text, appends=appends)
    if shape is dict:
        if dot:
            raw.setdefault(name, {})[inner] = _json_or_text(text)
            return None
        raw[name] = {}
        return f"name one of its keys: {name}.KEY=VALUE" if text else None
    if dot:
        return f"{name} has no fields; write {name}=VALUE"
    if shape is list:
        old: list[str] = raw.get(name, []) if appends else []
        raw[name] = [*old, text] if text else old
    elif shape is tuple:
        return f"{name} has parts of its own; add, set and remove these by their ids"
    elif appends:
        return f"{name} is no list; assign it once, with {name}=VALUE"
    else:
        raw[name] = None if shape is NoneType and not text else text
    return None


def _shape_of(annotation: Any) -> Any:
    """Return a model, ``dict``, ``list`` (of texts), ``tuple`` (of models), ``NoneType`` or ``str``."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return NoneType
    if origin is tuple:
        is_model = isinstance(arguments[0], type) and issubclass(arguments[0], BaseModel)
        return tuple if is_model else list
    if origin is dict:
        return dict
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else str


def _json_or_text(text: str) -> Any:
    def refuse(constant: str) -> None:  # NaN and Infinity, which are no JSON
        raise ValueError(constant)

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return text


def fields_of(model: type[BaseModel], above: str = "") -> Iterator[str]:
    """Yield the paths of all fields that can be assigned, lists with ``[]``; the id is given."""
    for name, field in model.model_fields.items():
        shape = _shape_of(field.annotation)
        if isinstance(shape, type) and issubclass(shape, BaseModel):
            yield from fields_of(shape, f"{above}{name}.")
        elif shape is not tuple and (above or name != "id"):
            yield f"{above}{name}" + ("[]" if shape is list else ".KEY" if shape is dict else "")
