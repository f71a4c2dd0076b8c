"""Parts of a design plan, and items of a review, by their names; and assignment of words to their fields.

The models are frozen, so a plan is changed as plain data, which the models validate again as a whole:
:func:`add_part`, :func:`change_part` and :func:`remove_part` work on all kinds of parts by the table
:data:`KINDS`. A part is named by its id (``M-001``; a wave by ``W-`` and its number), or is an object that
every plan has once, as ``overview``. Words assign to its fields as on a command line:

``field=text``      a text, number or truth value; for a list field its only item; an empty text removes
``field+=text``     one more item of a list; assigning the same list field again appends, too
``field.inner=…``   a field of a field; in ``params``, one parameter
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from functools import reduce
from operator import getitem
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from pydantic_core import to_jsonable_python

from planner.authoring.design import plan
from planner.errors import DesignError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import BaseModel, ValidationError

Data = dict[str, Any]
"""An object of a JSON file."""


class PartKind(NamedTuple):
    """A kind of part: the prefix of its ids, its model and its place."""

    prefix: str
    model: type[BaseModel]
    place: tuple[str, ...]
    """The keys that lead to its list, from the file, or from a milestone."""

    def list_in(self, holder: Data) -> list[Data]:
        """Return the list of the parts of this kind. Raises ``KeyError`` if the holder has none."""
        return reduce(getitem, self.place, holder)  # pyright: ignore[reportReturnType, reportArgumentType]


KINDS = {
    "decision": PartKind("DL", plan.LoggedDecision, ("planning_context", "decision_log")),
    "alternative": PartKind("RA", plan.RejectedAlternative, ("planning_context", "rejected_alternatives")),
    "constraint": PartKind("C", plan.Constraint, ("planning_context", "constraints")),
    "risk": PartKind("R", plan.KnownRisk, ("planning_context", "known_risks")),
    "milestone": PartKind("M", plan.Milestone, ("milestones",)),
    "intent": PartKind("CI", plan.CodeIntent, ("code_intents",)),
    "change": PartKind("CC", plan.CodeChange, ("code_changes",)),
    "wave": PartKind("W", plan.Wave, ("milestone_dependencies", "waves")),
    "item": PartKind("qa", plan.ReviewItem, ("items",)),
}
_LISTS_OF_PARTS = {kind.place[-1] for kind in KINDS.values()} - {"milestones"}  # a wave has only their ids
_QUESTION = {"scope", "check", "severity"}
"""The fields of an item that cannot change: no review passes by weaker questions."""


def add_part(data: Data, kind_name: str, words: Sequence[str], *, to: str | None = None) -> str:
    """Add a part, and return its name, with the next free number of its kind.

    ``kind_name`` is a key of :data:`KINDS`, ``to`` names the milestone of an intent or change. Raises
    :class:`planner.errors.DesignError` with every word that cannot be assigned.
    """
    kind, about = KINDS[kind_name], f"the new {kind_name}"
    try:
        parts = kind.list_in(data if to is None else part_of(data, to))
    except KeyError:
        milestones = ", ".join(each["id"] for each in data.get("milestones", ())) or "none yet"
        remedy = f"only intents and changes need one, with --to; the plan has {milestones}"
        raise DesignError(about, f"it has no place in {to or 'no milestone'}; {remedy}") from None
    taken = [each.get("number", 0) for each in parts]
    taken += [int(name.rpartition("-")[2]) for name in _named(data) if name.startswith(f"{kind.prefix}-")]
    number = max(taken, default=0) + 1
    raw = blank_of(kind.model)
    given = {"id": f"{kind.prefix}-{number:03d}", "number": number, "wave": number}
    given["timestamp"] = datetime.now(UTC).isoformat()
    raw |= {key: value for key, value in given.items() if key in raw}
    assign(raw, words, about)
    # Without those that nobody assigned, so that the model reports them as missing.
    parts.append({key: value for key, value in raw.items() if value is not None})
    return _name_of(raw)


def change_part(data: Data, name: str, words: Sequence[str]) -> None:
    """Assign words to the fields of a part. Raises ``DesignError`` with every one that cannot be."""
    asked = [field for word in words if (field := word.partition("=")[0].rstrip("+")) in _QUESTION]
    if asked:
        raise DesignError(name, f"{asked[0]} cannot be changed; set status and finding, or add an item")
    assign(part_of(data, name), words, name)


def remove_part(data: Data, name: str) -> None:
    """Remove a part; raises ``DesignError`` if there is none, or every plan has it."""
    raw = part_of(data, name)
    for parts in _lists(data):
        if raw in parts:
            return parts.remove(raw)
    raise DesignError(name, "every plan has it; set its fields instead")


def part_of(data: Data, name: str) -> Data:
    """Return the part of that name. Raises :class:`planner.errors.DesignError` if there is none."""
    named = _named(data) | {key: value for key, value in data.items() if _is_object(value)}
    if name not in named:
        raise DesignError(name, f"unknown part; the parts are: {', '.join(named) or 'none yet'}")
    return named[name]


def _lists(data: Data) -> Iterator[list[Data]]:
    """Yield every list of parts: those of the file itself, and those of its milestones."""
    for holder in (data, *data.get("milestones", ())):
        for kind in KINDS.values():
            with suppress(KeyError):
                yield kind.list_in(holder)


def _named(data: Data) -> dict[str, Data]:
    return {_name_of(raw): raw for parts in _lists(data) for raw in parts}


def _name_of(raw: Any) -> str:
    """Return the name of a part; empty for anything else."""
    try:
        return str(raw.get("id") or f"W-{raw['wave']}")
    except (AttributeError, KeyError):
        return ""


def _is_object(value: Any) -> TypeGuard[Data]:
    return isinstance(value, dict)


# -- fields --------------------------------------------------------------------------------------------


def blank_of(model: type[BaseModel]) -> Data:
    """Return a part with the default of each field; ``None`` for fields that must be assigned."""
    blank: Data = {}
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True)
        blank[name] = None if field.is_required() else to_jsonable_python(default)
    return blank


def fields_of(raw: Data, above: str = "") -> dict[str, Data]:
    """Return, by the dotted path of each field that can be assigned, the object that has it."""
    fields: dict[str, Data] = {}
    for name, value in raw.items():
        if _is_object(value) and name != "params":
            fields |= fields_of(value, f"{above}{name}.")
        elif name not in _LISTS_OF_PARTS and name != "id":
            fields[f"{above}{name}"] = raw
    return fields


def assign(raw: Data, words: Sequence[str], name: str) -> None:
    """Assign words such as ``field=text`` to the fields of a part.

    Only the form is checked here, not the values; ``name`` is what errors call the part. Raises
    :class:`planner.errors.DesignError` with every word that cannot be assigned.
    """
    holders = fields_of(raw)
    assigned: set[str] = set()
    unknown: list[str] = []
    faults: list[str] = []
    for word in words:
        field, sign, text = word.partition("=")
        path = field.removesuffix("+")
        above, _, last = path.rpartition(".")
        appends = path != field or path in assigned
        assigned.add(path)
        # The keys of params are free; all other fields are there already, with their defaults.
        holder = raw["params"] if above == "params" and above in raw else holders.get(path)
        old = None if holder is None else holder.get(last)
        if not sign or holder is None or isinstance(old, dict):
            unknown.append(f"'{word}'")
        elif isinstance(old, list):
            holder[last] = [*(old if appends else ()), *([text] if text else ())]
        elif appends:
            faults.append(f"{path} is not a list; assign it once, with {path}=VALUE")
        else:
            holder[last] = text
    if unknown:
        form = f"write FIELD=VALUE, with one of the fields {', '.join(holders)}"
        faults.append(f"{', '.join(unknown)}: this assigns to no field; {form}")
    if faults:
        raise DesignError(name, *faults)


def faults_of(error: ValidationError, data: Any) -> list[str]:
    """Return a line for every violation that a model found in the data: its place, and what is wrong there.

    A place begins with the name of the innermost part around it. A validator of ours reports several
    violations as the lines of one message; each becomes a line.
    """
    lines: list[str] = []
    for each in error.errors(include_url=False):
        place: list[str] = []
        held = data
        for key in each["loc"]:
            place.append(str(key))
            held = _member(held, key)
            if name := _name_of(held):
                place = [name]
        # Fields that were not given are null in new parts.
        message = "Field required" if each["input"] is None else each["msg"].removeprefix("Value error, ")
        lines += [": ".join(filter(None, [".".join(place), line])) for line in message.split("\n")]
    return lines


def _member(value: Any, key: Any) -> Any:
    try:
        return value[key]
    except (KeyError, IndexError, TypeError):  # a field is missing, or something else is there
        return None
