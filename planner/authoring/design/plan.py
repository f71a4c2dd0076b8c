"""Models of a design plan (``plan.json``, schema version 2), and the operations that change one.

Creating a :class:`DesignPlan` validates all its references: a plan with broken ones cannot exist, and the
error lists every violation at once. A changed plan is a new value, made by :func:`add_part`,
:func:`change_part` or :func:`remove_part`, which work on all kinds of parts by the table :data:`KINDS`.

A part is named by its id (``M-001``; a wave by ``W-`` and its number), or is one of :data:`PARTS`. Values
are assigned to its fields by words, as on a command line:

``field=text``      a text, number or truth value; for a list field its only item; for an optional field, an
                    empty text removes the value
``field+=text``     one more item of a list; assigning the same list field again appends, too
``field.inner=…``   a field of a field; in ``params``, one parameter, parsed as JSON or else kept as text
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin
from uuid import UUID

from pydantic import (
    AwareDatetime,
    BaseModel,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    model_validator,
)

from planner.errors import DesignError
from planner.model.base import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime


SCHEMA_VERSION: Literal[2] = 2

Text = Annotated[str, StringConstraints(max_length=1_000_000)]
Sentence = Annotated[str, StringConstraints(min_length=1, max_length=9_000, pattern=r"\S")]
"""A text that becomes one line of the exported plan, where a line may have 10,000 characters."""
Texts = tuple[Sentence, ...]
# One part of a path: anything but `.` and `..`, slashes, backslashes and control characters.
_NAME = r"(?:[^./\\\x00-\x1f]|\.[^./\\\x00-\x1f]|\.\.[^/\\\x00-\x1f])[^/\\\x00-\x1f]*"
Path = Annotated[str, StringConstraints(pattern=rf"^{_NAME}(?:/{_NAME})*$", max_length=4_096)]
"""The path of a file, relative to the project, with slashes and without ``..``."""

DecisionId = Annotated[str, StringConstraints(pattern=r"^DL-[0-9]{3,9}$")]
AlternativeId = Annotated[str, StringConstraints(pattern=r"^RA-[0-9]{3,9}$")]
ConstraintId = Annotated[str, StringConstraints(pattern=r"^C-[0-9]{3,9}$")]
RiskId = Annotated[str, StringConstraints(pattern=r"^R-[0-9]{3,9}$")]
MilestoneId = Annotated[str, StringConstraints(pattern=r"^M-[0-9]{3,9}$")]
IntentId = Annotated[str, StringConstraints(pattern=r"^CI-[0-9]{3,9}$")]
ChangeId = Annotated[str, StringConstraints(pattern=r"^CC-[0-9]{3,9}$")]
Ordinal = Annotated[int, Field(ge=1, le=1_000_000)]

_DECISION_NAMED = re.compile(r"\bDL-[0-9]+\b")


class Overview(Value):
    title: Sentence
    problem: Text = ""
    approach: Text = ""


class LoggedDecision(Value):
    """A decision, and the chain of reasons that led there."""

    id: DecisionId
    decision: Sentence
    reasoning_chain: Text = ""
    timestamp: AwareDatetime


class RejectedAlternative(Value):
    """An alternative that was rejected, and the decision that was taken instead."""

    id: AlternativeId
    alternative: Sentence
    rejection_reason: Sentence
    decision_ref: DecisionId


class Constraint(Value):
    id: ConstraintId
    type: Sentence
    description: Sentence
    source: Text = ""


class KnownRisk(Value):
    id: RiskId
    risk: Sentence
    mitigation: Sentence
    anchor: Sentence | None = None
    """The place in the code that it is about: ``file:function``."""
    decision_ref: DecisionId | None = None


class PlanningContext(Value):
    decision_log: tuple[LoggedDecision, ...] = ()
    rejected_alternatives: tuple[RejectedAlternative, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    known_risks: tuple[KnownRisk, ...] = ()


class Diagram(Value):
    diagram_ascii: Text = ""
    description: Text = ""


class InvisibleKnowledge(Value):
    """Knowledge that a reader of the code alone would not have."""

    architecture: Diagram = Diagram()
    data_flow: Diagram = Diagram()
    structure_rationale: Text = ""
    invariants: Texts = ()
    tradeoffs: Texts = ()


class Scenarios(Value):
    normal: Texts = ()
    edge: Texts = ()
    error: Texts = ()


class MilestoneTests(Value):
    """The tests that prove a milestone, or why there are none."""

    files: tuple[Path, ...] = ()
    type: Sentence | None = None
    """What kind they are: unit, integration, property-based …"""
    backing: Sentence | None = None
    """Who asked for them: the user, a document, a convention …"""
    scenarios: Scenarios = Scenarios()
    skip_reason: Sentence | None = None


class CodeIntent(Value):
    """The purpose of a file, or of a function in it."""

    id: IntentId
    file: Path
    function: Sentence | None = None
    behavior: Sentence
    decision_refs: tuple[DecisionId, ...] = ()
    params: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])


class CodeChange(Value):
    """The unified diff that carries out an intent."""

    id: ChangeId
    intent_ref: IntentId
    file: Path
    diff: Text
    context_lines: tuple[Text, ...] = ()
    """Lines around the change by which its place is found."""
    why_comments: Texts = ()
    """Comments that the change writes into the code; ``DL-001`` in one refers to a decision."""


class Documentation(Value):
    """Documentation of the files of a milestone; ``DL-001`` refers to a decision."""

    module_comment: Sentence | None = None
    docstrings: Texts = ()
    algorithm_blocks: Texts = ()
    inline_comments: Texts = ()

    def __bool__(self) -> bool:
        return bool(self.module_comment or self.docstrings or self.algorithm_blocks or self.inline_comments)


class Milestone(Value):
    id: MilestoneId
    number: Ordinal
    name: Sentence
    files: tuple[Path, ...] = ()
    flags: Texts = ()
    requirements: Texts = ()
    acceptance_criteria: Texts = ()
    tests: MilestoneTests = MilestoneTests()
    code_intents: tuple[CodeIntent, ...] = ()
    code_changes: tuple[CodeChange, ...] = ()
    documentation: Documentation = Documentation()
    is_documentation_only: bool = False
    delegated_to: Sentence | None = None

    @property
    def touched_files(self) -> tuple[str, ...]:
        """Every file to create or change: those of the milestone and its intents, without its tests."""
        return tuple(dict.fromkeys([*self.files, *(each.file for each in self.code_intents)]))


class Wave(Value):
    """Milestones that may be carried out at the same time, after those of the waves before."""

    wave: Ordinal
    milestones: tuple[MilestoneId, ...] = ()


class MilestoneDependencies(Value):
    diagram_ascii: Text = ""
    waves: tuple[Wave, ...] = ()


class DesignPlan(Value):
    """One design plan. ``frozen_at`` means that nothing of it changes any more."""

    schema_version: Literal[2]
    plan_id: UUID
    created_at: AwareDatetime
    frozen_at: AwareDatetime | None = None
    overview: Overview
    planning_context: PlanningContext = PlanningContext()
    invisible_knowledge: InvisibleKnowledge = InvisibleKnowledge()
    milestones: tuple[Milestone, ...] = ()
    milestone_dependencies: MilestoneDependencies = MilestoneDependencies()

    @model_validator(mode="after")
    def _refuse_broken_references(self) -> DesignPlan:
        violations = list(find_broken_references(self))
        if violations:
            raise ValueError("\n".join(violations))
        return self

    @property
    def waves(self) -> tuple[Wave, ...]:
        """The waves in the order in which they are carried out, by number."""
        return tuple(sorted(self.milestone_dependencies.waves, key=lambda each: each.wave))

    def ids(self) -> Iterator[str]:
        """Yield the id of every part that has one, in the order of the plan."""
        context = self.planning_context
        yield from (each.id for each in (*context.decision_log, *context.rejected_alternatives))
        yield from (each.id for each in (*context.constraints, *context.known_risks))
        for milestone in self.milestones:
            yield milestone.id
            yield from (each.id for each in (*milestone.code_intents, *milestone.code_changes))


def find_broken_references(plan: DesignPlan) -> Iterator[str]:
    """Yield a message for every reference to a part that does not exist, and for every duplicate.

    Duplicates are repeated ids, numbers of milestones or waves, and milestones in more than one wave.
    """
    context, waves = plan.planning_context, plan.milestone_dependencies.waves
    yield from _repeated("id", list(plan.ids()))
    yield from _repeated("milestone number", [each.number for each in plan.milestones])
    decided = [(f"{each.id}.decision_ref", each.decision_ref) for each in context.rejected_alternatives]
    decided += [
        (f"{each.id}.decision_ref", each.decision_ref) for each in context.known_risks if each.decision_ref
    ]
    for milestone in plan.milestones:
        intents = {each.id for each in milestone.code_intents}
        for intent in milestone.code_intents:
            decided += [(f"{intent.id}.decision_refs", ref) for ref in intent.decision_refs]
        for change in milestone.code_changes:
            decided += [(f"{change.id}.why_comments", ref) for ref in _decisions_in(*change.why_comments)]
            if change.intent_ref not in intents:
                yield (
                    f"{change.id}.intent_ref: {milestone.id} has no code intent {change.intent_ref}; "
                    "add it there, or name another"
                )
        written = milestone.documentation
        texts = (*written.docstrings, *written.algorithm_blocks, *written.inline_comments)
        refs = _decisions_in(written.module_comment or "", *texts)
        decided += [(f"{milestone.id}.documentation", ref) for ref in refs]
    yield from _missing("decision", decided, {each.id for each in context.decision_log})
    yield from _repeated("wave", [each.wave for each in waves])
    placed = [(f"W-{wave.wave}.milestones", ref) for wave in waves for ref in wave.milestones]
    yield from _missing("milestone", placed, {each.id for each in plan.milestones})
    yield from _repeated("in the waves", [ref for _, ref in placed])


def _missing(what: str, references: list[tuple[str, str]], known: set[str]) -> Iterator[str]:
    for place, ref in references:
        if ref not in known:
            yield f"{place}: the {what} {ref} does not exist; add it, or name another"


def _decisions_in(*texts: str) -> list[str]:
    return [ref for text in texts for ref in _DECISION_NAMED.findall(text)]


def _repeated(what: str, values: list[str] | list[int]) -> Iterator[str]:
    for value, count in Counter(values).items():
        if count > 1:
            yield f"{what}: {value} occurs {count} times; keep one"


def faults_of(error: ValidationError) -> tuple[str, ...]:
    """Return a line for every violation of a validation error: the place, and what is wrong there.

    A validator of ours reports several violations as the lines of one message; each becomes a line.
    """
    lines: list[str] = []
    for each in error.errors(include_url=False):
        place = ".".join(str(part) for part in each["loc"])
        message = each["msg"].removeprefix("Value error, ")
        lines += [f"{place}: {line}" if place else line for line in message.split("\n")]
    return tuple(lines)


# -- changes of a plan ---------------------------------------------------------------------------------


class PartKind(NamedTuple):
    """A kind of part: its place in the plan and its model."""

    prefix: str
    place: tuple[str, ...]
    """The keys that lead to its list, from the plan, or from a milestone where ``in_milestone``."""
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
"""The parts that every plan has exactly once, by name."""

_NUMBERS = {"wave": "wave", "milestone": "number"}
"""For kinds whose parts are numbered, the field that has the number."""


def add_part(
    plan: DesignPlan, kind_name: str, words: Sequence[str], *, now: datetime, within: str | None = None
) -> tuple[DesignPlan, str]:
    """Return the plan with a new part, and the id of that part, which is the next free one of its kind.

    ``kind_name`` is a key of :data:`KINDS`, ``within`` is the id of the milestone for kinds that belong to
    one, ``now`` is the time of a decision.
    Raises :class:`planner.errors.DesignError` with every violation.
    """
    kind = KINDS[kind_name]
    # Changed as plain data, as the models are frozen. The validation at the end is that of a loaded plan.
    data = plan.model_dump(mode="json")
    holder = data
    if kind.in_milestone:
        holder = next((each for each in data["milestones"] if each["id"] == within), None)
        if holder is None:
            known = ", ".join(each.id for each in plan.milestones) or "none yet; add a milestone"
            problem = f"no milestone {within}" if within else "it belongs to a milestone"
            raise DesignError(kind_name, [f"{problem}; name it with --to, one of: {known}"])
    elif within is not None:
        raise DesignError(kind_name, [f"it belongs to no milestone; remove --to {within}"])
    parts = _list_at(holder, kind)
    counter = _NUMBERS.get(kind_name)
    raw: dict[str, Any] = {}
    if kind_name != "wave":
        start = f"{kind.prefix}-"
        taken = [int(each.removeprefix(start)) for each in plan.ids() if each.startswith(start)]
        raw["id"] = f"{start}{max(taken, default=0) + 1:03d}"
    if counter is not None:
        raw[counter] = max((each[counter] for each in parts), default=0) + 1
    if kind_name == "decision":
        raw["timestamp"] = now.isoformat()
    assign(raw, kind.model, words, f"the new {kind_name}")
    parts.append(raw)
    name = f"W-{raw['wave']}" if kind_name == "wave" else str(raw["id"])
    return _validated(data, raw, kind.model, name), name


def change_part(plan: DesignPlan, name: str, words: Sequence[str]) -> DesignPlan:
    """Return the plan with new values in the named part, whose id must stay.

    Raises :class:`planner.errors.DesignError` with every violation.
    """
    data = plan.model_dump(mode="json")
    raw, _, model = _find(data, name)
    before = raw.get("id")
    assign(raw, model, words, name)
    # Other parts, reviews and comments in diffs refer to it by its id.
    if raw.get("id") != before:
        raise DesignError(name, ["the id cannot be changed; remove the part and add another"])
    return _validated(data, raw, model, name)


def remove_part(plan: DesignPlan, name: str) -> DesignPlan:
    """Return the plan without the named part.

    Raises :class:`planner.errors.DesignError` if there is no such part, every plan has it, or others refer
    to it.
    """
    data = plan.model_dump(mode="json")
    raw, parts, _ = _find(data, name)
    if parts is None:
        raise DesignError(name, ["every plan has it; set its fields instead"])
    # The validation names the parts that still refer to it.
    parts.remove(raw)
    try:
        return DesignPlan.model_validate(data)
    except ValidationError as error:
        raise DesignError(f"{name} cannot be removed", faults_of(error)) from None


def part_of(plan: DesignPlan, name: str) -> dict[str, Any]:
    """Return a part as a JSON object. Raises :class:`planner.errors.DesignError` if there is none."""
    return _find(plan.model_dump(mode="json"), name)[0]


def assign(raw: dict[str, Any], model: type[BaseModel], words: Sequence[str], name: str) -> None:
    """Assign words such as ``field=text`` to the fields of a part, in place.

    Only the form is checked here, not the values; ``name`` is what errors call the part. Raises
    :class:`planner.errors.DesignError` with every word that cannot be assigned.
    """
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


# -- finding parts -------------------------------------------------------------------------------------


def _list_at(holder: Any, kind: PartKind) -> list[dict[str, Any]]:
    for key in kind.place:
        holder = holder[key]
    return holder


def _find(data: dict[str, Any], name: str) -> tuple[Any, list[dict[str, Any]] | None, type[BaseModel]]:
    """Return a part, the list that it is in (``None`` for one of ``PARTS``), and its model.

    Raises :class:`planner.errors.DesignError` if there is no such part.
    """
    if name in PARTS:
        return data[name], None, PARTS[name]
    for kind in KINDS.values():
        if name.startswith(f"{kind.prefix}-"):
            for holder in data["milestones"] if kind.in_milestone else [data]:
                parts = _list_at(holder, kind)
                for raw in parts:
                    if name == (raw.get("id") or f"W-{raw['wave']}"):
                        return raw, parts, kind.model
    raise DesignError(name, [f"unknown part; name an id of the plan, or {', '.join(PARTS)}"])


def _validated(data: dict[str, Any], raw: dict[str, Any], model: type[BaseModel], name: str) -> DesignPlan:
    """Return the validated plan of ``data``, in which the part ``raw`` is new or changed.

    The part is validated first, by its own model, so that errors name its fields instead of its place.
    """
    try:
        model.model_validate(raw)
    except ValidationError as error:
        raise DesignError(name, faults_of(error)) from None
    try:
        return DesignPlan.model_validate(data)
    except ValidationError as error:
        raise DesignError(f"{name} does not fit the plan", faults_of(error)) from None


# -- assignment ----------------------------------------------------------------------------------------


def _assign_one(
    raw: dict[str, Any], model: type[BaseModel], path: str, text: str, *, appends: bool
) -> str | None:
    """Assign a text to the field with a dotted path; return a message if that is not possible."""
    name, dot, inner = path.partition(".")
    field = model.model_fields.get(name)
    if field is None:
        return f"unknown field '{name}'; the fields are {', '.join(model.model_fields)}"
    shape = _shape_of(field.annotation)
    if isinstance(shape, type) and issubclass(shape, BaseModel):
        if not dot:
            inner_names = ", ".join(f"{name}.{each}" for each in shape.model_fields)
            return f"{name} is not a text; name one of its fields: {inner_names}"
        return _assign_one(raw.setdefault(name, {}), shape, inner, text, appends=appends)
    if shape is dict:
        if dot:
            value: Any = text
            with suppress(ValueError, RecursionError):
                parsed = json.loads(text)
                json.dumps(parsed, allow_nan=False)  # Python's parser accepts NaN, which is not JSON
                value = parsed
            raw.setdefault(name, {})[inner] = value
            return None
        # An empty text removes all keys.
        raw[name] = {}
        return f"name one of its keys: {name}.KEY=VALUE" if text else None
    if dot:
        return f"{name} has no fields; write {name}=VALUE"
    if shape is list:
        old: list[str] = raw.get(name, []) if appends else []
        # An empty text empties the list.
        raw[name] = [*old, text] if text else old
    elif shape is tuple:
        return f"{name} has parts; add, set and remove these by their ids"
    elif appends:
        return f"{name} is not a list; assign it once, with {name}=VALUE"
    else:
        raw[name] = None if shape is NoneType and not text else text
    return None


def _shape_of(annotation: Any) -> Any:
    """Return how a field is assigned: its model, or a type that stands for a kind of field.

    ``dict`` stands for a mapping, ``list`` for a list of texts, ``tuple`` for a list of models,
    ``NoneType`` for an optional value, and ``str`` for any other value, which the model parses from the
    text.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return NoneType
    if origin is tuple:
        is_model = isinstance(arguments[0], type) and issubclass(arguments[0], BaseModel)
        return tuple if is_model else list
    if origin is dict:
        return dict
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else str


def fields_of(model: type[BaseModel], above: str = "") -> Iterator[str]:
    """Yield the dotted paths of all fields that can be assigned, without the id, which is chosen.

    Lists end in ``[]``, mappings in ``.KEY``; lists of parts are left out.
    """
    for name, field in model.model_fields.items():
        shape = _shape_of(field.annotation)
        if isinstance(shape, type) and issubclass(shape, BaseModel):
            yield from fields_of(shape, f"{above}{name}.")
        elif shape is not tuple and (above or name != "id"):
            yield f"{above}{name}" + ("[]" if shape is list else ".KEY" if shape is dict else "")
