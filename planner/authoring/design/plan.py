"""The design plan, ``plan.json`` of schema version 2, as a value that cannot refer to what is not there.

Whoever makes a :class:`DesignPlan`, from a file, by a command or in a program, gets every broken reference
told at once, and no plan.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field, JsonValue, StringConstraints, ValidationError, model_validator

from planner.model.base import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA_VERSION: Literal[2] = 2

Text = Annotated[str, StringConstraints(max_length=1_000_000)]
Sentence = Annotated[str, StringConstraints(min_length=1, max_length=9_000, pattern=r"\S")]
"""What becomes a line of the exported plan, which may have 10,000 characters."""
Texts = tuple[Sentence, ...]
_NAME = r"(?:[^./\\\x00-\x1f]|\.[^./\\\x00-\x1f]|\.\.[^/\\\x00-\x1f])[^/\\\x00-\x1f]*"
Path = Annotated[str, StringConstraints(pattern=rf"^{_NAME}(?:/{_NAME})*$", max_length=4_096)]
"""Of a file, relative to the project, with slashes and without ``..``."""

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
        """Every file that is to be made or changed, those of the intents included, tests excluded."""
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
        """The waves in the order in which they are carried out."""
        return tuple(sorted(self.milestone_dependencies.waves, key=lambda each: each.wave))

    def ids(self) -> Iterator[str]:
        """Yield the id of every part that has one, in the order of the plan."""
        context = self.planning_context
        for part in (
            context.decision_log,
            context.rejected_alternatives,
            context.constraints,
            context.known_risks,
        ):
            yield from (each.id for each in part)
        for milestone in self.milestones:
            yield milestone.id
            yield from (each.id for each in milestone.code_intents)
            yield from (each.id for each in milestone.code_changes)


def find_broken_references(plan: DesignPlan) -> Iterator[str]:
    """Yield a line for every reference to what is not there, and for everything that is there twice."""
    context = plan.planning_context
    decisions = {each.id for each in context.decision_log}

    def missing(place: str, refs: tuple[str, ...]) -> Iterator[str]:
        for ref in refs:
            if ref not in decisions:
                yield f"{place}: there is no decision {ref}; add it, or name another"

    yield from _repeated("id", list(plan.ids()))
    yield from _repeated("milestone number", [each.number for each in plan.milestones])
    for rejected in context.rejected_alternatives:
        yield from missing(f"{rejected.id}.decision_ref", (rejected.decision_ref,))
    for risk in context.known_risks:
        if risk.decision_ref is not None:
            yield from missing(f"{risk.id}.decision_ref", (risk.decision_ref,))
    for milestone in plan.milestones:
        intents = {each.id for each in milestone.code_intents}
        for intent in milestone.code_intents:
            if not decisions.issuperset(intent.decision_refs):
                yield from missing(f"{intent.id}.decision_refs", intent.decision_refs)
        for change in milestone.code_changes:
            if change.intent_ref not in intents:
                yield (
                    f"{change.id}.intent_ref: {milestone.id} has no code intent {change.intent_ref}; "
                    "add it there, or name another"
                )
            yield from missing(f"{change.id}.why_comments", _decisions_in(change.why_comments))
        written = milestone.documentation
        if written:
            texts = (
                written.module_comment or "",
                *written.docstrings,
                *written.algorithm_blocks,
                *written.inline_comments,
            )
            yield from missing(f"{milestone.id}.documentation", _decisions_in(texts))
    known = {each.id for each in plan.milestones}
    waves = plan.milestone_dependencies.waves
    yield from _repeated("wave", [each.wave for each in waves])
    for wave in waves:
        for ref in wave.milestones:
            if ref not in known:
                yield f"W-{wave.wave}.milestones: there is no milestone {ref}; add it, or name another"
    yield from _repeated("in the waves", [each for wave in waves for each in wave.milestones])


def _decisions_in(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(ref for text in texts if "DL-" in text for ref in _DECISION_NAMED.findall(text))


def _repeated(what: str, values: list[str] | list[int]) -> Iterator[str]:
    if len(set(values)) < len(values):
        for value, count in Counter(values).items():
            if count > 1:
                yield f"{what}: {value} is there {count} times; leave one of them"


def faults_of(error: ValidationError) -> tuple[str, ...]:
    """Return every violation that a model found, one line each: the place, and what is wrong there."""
    lines: list[str] = []
    for each in error.errors(include_url=False):
        place = ".".join(str(part) for part in each["loc"])
        told = each["msg"].removeprefix("Value error, ")
        lines += [f"{place}: {line}" if place else line for line in told.split("\n")]
    return tuple(lines)
