"""Models of a design plan (``plan.json``, schema version 2), and of the reviews of its phases.

Creating a :class:`DesignPlan` validates all its references: a plan with broken ones cannot exist, and the
error lists every violation at once. :mod:`planner.authoring.design.parts` changes a plan, as plain data.

The phases pass their gates in order. A gate that fails starts the next iteration of its phase; in later
iterations fewer severities block it. The gaps of :func:`find_gaps` always do. These are values and rules;
files and locks are in ``state_folder``.
"""

from __future__ import annotations

import re
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal
from uuid import UUID

from pydantic import (
    AwareDatetime,
    BeforeValidator,
    Field,
    JsonValue,
    StringConstraints,
    field_validator,
    model_validator,
)

from planner.model.base import Value
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

Sentence = Annotated[str, StringConstraints(min_length=1, max_length=9_000, pattern=r"\S")]
"""A text that becomes one line of the exported plan, where a line may have 10,000 characters."""
_EMPTY_IS_NONE = BeforeValidator(lambda text: text or None)
OptionalSentence = Annotated[Sentence | None, _EMPTY_IS_NONE]
Texts = tuple[Sentence, ...]
# One part of a path: anything but `.` and `..`, slashes, backslashes and control characters.
_NAME = r"(?:[^./\\\x00-\x1f]|\.[^./\\\x00-\x1f]|\.\.[^/\\\x00-\x1f])[^/\\\x00-\x1f]*"
Path = Annotated[str, StringConstraints(pattern=rf"^{_NAME}(?:/{_NAME})*$", max_length=4_096)]
"""The path of a file, relative to the project, with slashes and without ``..``."""
DecisionId = Annotated[str, StringConstraints(pattern=r"^DL-[0-9]{3,9}$")]
Ordinal = Annotated[int, Field(ge=1, le=1_000_000)]

# Fields that refer to decisions by their ids, in the middle of a sentence, too. Elsewhere, as in a diff,
# such a word may be anything.
_NAMES_DECISIONS = {"decision_ref", "decision_refs", "why_comments", "documentation"}
_FILES_OF_DIFF = re.compile(r"^(?:---|\+\+\+) [ab]/([^\t\r\n]+)", re.MULTILINE)
_DECISION_NAMED = re.compile(r"(?<![A-Z0-9-])DL-[0-9]+")


class Part(Value):
    """A part of the plan to which others, and reviews, refer by its id."""

    prefix: ClassVar[str]
    id: str

    @field_validator("id")
    @classmethod
    def _refuse_another_prefix(cls, value: str) -> str:
        if re.fullmatch(rf"{cls.prefix}-[0-9]{{3,9}}", value) is None:
            raise ValueError(f"an id of this kind is {cls.prefix}- and three digits or more")
        return value


class Overview(Value):
    title: Sentence
    problem: str = ""
    approach: str = ""


class LoggedDecision(Part):
    """A decision, and the chain of reasons that led there."""

    prefix = "DL"
    decision: Sentence
    reasoning_chain: str = ""
    timestamp: AwareDatetime


class RejectedAlternative(Part):
    """An alternative that was rejected, and the decision that was taken instead."""

    prefix = "RA"
    alternative: Sentence
    rejection_reason: Sentence
    decision_ref: DecisionId


class Constraint(Part):
    prefix = "C"
    type: Sentence
    description: Sentence
    source: str = ""


class KnownRisk(Part):
    prefix = "R"
    risk: Sentence
    mitigation: Sentence
    anchor: OptionalSentence = None
    """The place in the code that it is about: ``file:function``."""
    decision_ref: Annotated[DecisionId | None, _EMPTY_IS_NONE] = None


class PlanningContext(Value):
    decision_log: tuple[LoggedDecision, ...] = ()
    rejected_alternatives: tuple[RejectedAlternative, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    known_risks: tuple[KnownRisk, ...] = ()


class Diagram(Value):
    diagram_ascii: str = ""
    description: str = ""


class InvisibleKnowledge(Value):
    """Knowledge that a reader of the code alone would not have."""

    architecture: Diagram = Diagram()
    data_flow: Diagram = Diagram()
    structure_rationale: str = ""
    invariants: Texts = ()
    tradeoffs: Texts = ()


class Scenarios(Value):
    normal: Texts = ()
    edge: Texts = ()
    error: Texts = ()


class MilestoneTests(Value):
    """The tests that prove a milestone, or why there are none."""

    files: tuple[Path, ...] = ()
    type: OptionalSentence = None
    """What kind they are: unit, integration, property-based …"""
    backing: OptionalSentence = None
    """Who asked for them: the user, a document, a convention …"""
    scenarios: Scenarios = Scenarios()
    skip_reason: OptionalSentence = None


class CodeIntent(Part):
    """The purpose of a file, or of a function in it."""

    prefix = "CI"
    file: Path
    function: OptionalSentence = None
    behavior: Sentence
    decision_refs: tuple[DecisionId, ...] = ()
    params: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])


class CodeChange(Part):
    """The unified diff that carries out an intent."""

    prefix = "CC"
    intent_ref: str
    file: Path
    diff: str
    context_lines: tuple[str, ...] = ()
    """Lines around the change by which its place is found."""
    why_comments: Texts = ()
    """Comments that the change writes into the code; ``DL-001`` in one refers to a decision."""


class Documentation(Value):
    """Documentation of the files of a milestone; ``DL-001`` refers to a decision."""

    module_comment: OptionalSentence = None
    docstrings: Texts = ()
    algorithm_blocks: Texts = ()
    inline_comments: Texts = ()


class Milestone(Part):
    prefix = "M"
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
    delegated_to: OptionalSentence = None

    @property
    def touched_files(self) -> tuple[str, ...]:
        """Every file to create or change: those of the milestone and its intents, without its tests."""
        return tuple(dict.fromkeys([*self.files, *(each.file for each in self.code_intents)]))


class Wave(Value):
    """Milestones that may be carried out at the same time, after those of the waves before."""

    wave: Ordinal
    milestones: tuple[str, ...] = ()


class MilestoneDependencies(Value):
    diagram_ascii: str = ""
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

    @property
    def waves(self) -> tuple[Wave, ...]:
        """The waves in the order in which they are carried out, by number."""
        return tuple(sorted(self.milestone_dependencies.waves, key=lambda each: each.wave))

    def parts(self) -> Iterator[Part]:
        """Yield every part that has an id, in the order of the plan."""
        context = self.planning_context
        yield from (*context.decision_log, *context.rejected_alternatives)
        yield from (*context.constraints, *context.known_risks)
        for milestone in self.milestones:
            yield from (milestone, *milestone.code_intents, *milestone.code_changes)

    @model_validator(mode="after")
    def _refuse_broken_references(self) -> DesignPlan:
        """Raise with a message for every reference to a missing part, and every name that occurs twice."""
        remedy = "add it, or name another"
        violations: list[str] = []
        decisions = {each.id for each in self.planning_context.decision_log}
        for part in self.parts():
            named = dict.fromkeys(_DECISION_NAMED.findall(part.model_dump_json(include=_NAMES_DECISIONS)))
            missing = (ref for ref in named if ref not in decisions)
            violations += [f"{part.id}: the decision {ref} does not exist; {remedy}" for ref in missing]
        names = [each.id for each in self.parts()]
        for each in self.milestones:
            names.append(f"the milestone number {each.number}")
            intents = {intent.id for intent in each.code_intents}
            for change in each.code_changes:
                if change.intent_ref not in intents:
                    violations.append(
                        f"{change.id}: {each.id} has no code intent {change.intent_ref}; {remedy}"
                    )
        milestones = {each.id for each in self.milestones}
        for wave in self.waves:
            names += [f"W-{wave.wave}", *(f"{each} in the waves" for each in wave.milestones)]
            missing = (ref for ref in wave.milestones if ref not in milestones)
            fault = f"W-{wave.wave}: the milestone"
            violations += [f"{fault} {ref} does not exist; {remedy}" for ref in missing]
        counts = Counter(names).items()
        violations += [f"{name} occurs {count} times; keep one" for name, count in counts if count > 1]
        if violations:
            raise ValueError("\n".join(violations))
        return self


# -- reviews -------------------------------------------------------------------------------------------

_LONGEST_ANSWER = 400


class ReviewPhase(StrEnum):
    """The five phases that are reviewed, in their order."""

    PLAN_DESIGN = "plan-design"
    PLAN_CODE = "plan-code"
    PLAN_DOCS = "plan-docs"
    IMPL_CODE = "impl-code"
    IMPL_DOCS = "impl-docs"

    @property
    def before(self) -> tuple[ReviewPhase, ...]:
        """The phases whose gates must have passed before this one is decided."""
        phases = tuple(ReviewPhase)
        return phases[: phases.index(self)]


class LoopState(StrEnum):
    """State of the loop of reviews and fixes."""

    INITIAL = "INITIAL"
    RETRY = "RETRY"
    COMPLETE = "COMPLETE"


Severity = Literal["MUST", "SHOULD", "COULD"]
BLOCKING: dict[int, tuple[Severity, ...]] = {
    1: ("MUST", "SHOULD", "COULD"),
    3: ("MUST", "SHOULD"),
    5: ("MUST",),
}
"""The first iteration and the severities that block from then on; fewer later, so that every loop ends."""


class ReviewItem(Value):
    """One question of a review, and its answer."""

    id: Annotated[str, StringConstraints(pattern=r"^qa-[0-9]{3,9}$")]
    scope: Sentence = "*"
    """The id of the part of the plan that it is about, a file, or ``*`` for everything."""
    check: Sentence
    severity: Severity = "MUST"
    status: Literal["TODO", "PASS", "FAIL"] = "TODO"
    finding: OptionalSentence = None

    @model_validator(mode="after")
    def _refuse_a_failure_without_finding(self) -> ReviewItem:
        if self.status == "FAIL" and self.finding is None:
            raise ValueError("a FAIL needs a finding that says what to fix: finding=TEXT")
        return self

    def __str__(self) -> str:
        """Return the item on one line."""
        answer = one_line(self.finding or self.check, limit=_LONGEST_ANSWER)
        return f"{self.id} ({self.severity}, {self.scope}) is {self.status}: {answer}"


class ReviewFile(Value):
    """``qr-{phase}.json``: it is there from the first item of a review until its gate has passed."""

    schema_version: Literal["1.0"] = "1.0"
    phase: ReviewPhase
    items: tuple[ReviewItem, ...] = ()

    @model_validator(mode="after")
    def _refuse_items_of_one_id(self) -> ReviewFile:
        ids = [each.id for each in self.items]
        if twice := sorted({each for each in ids if ids.count(each) > 1}):
            raise ValueError(f"{', '.join(twice)} occurs more than once; keep one")
        return self

    def blocking(self, gate: Gate) -> tuple[ReviewItem, ...]:
        """Return the items that block the gate: they have not passed, and are of a blocking severity."""
        open_ = (each for each in self.items if each.status != "PASS")
        return tuple(each for each in open_ if each.severity in gate.blocks)


class Gate(Value):
    """The gate of a phase: the state of its loop, and the iteration that it is in."""

    state: LoopState = LoopState.INITIAL
    iteration: Annotated[int, Field(ge=1, le=1_000_000)] = 1

    @property
    def blocks(self) -> tuple[Severity, ...]:
        """The severities that block the gate in its iteration."""
        return BLOCKING[max(first for first in BLOCKING if first <= self.iteration)]

    @property
    def is_complete(self) -> bool:
        return self.state is LoopState.COMPLETE


def find_gaps(plan: DesignPlan, phase: ReviewPhase) -> list[str]:
    """Return a message with a remedy for everything that a plan lacks at the end of a phase.

    This includes what the phases before require. After ``plan-docs`` a plan can be carried out without
    further information: it has what is to be done, in which files, in which order, why, and how it is
    proved. Broken references are no gaps: a plan with these cannot exist.
    """
    gaps: list[str] = []

    def require(is_met: object, message: str) -> None:
        if not is_met:
            gaps.append(message)

    add, set_ = "planner design add", "planner design set"
    needs_code = phase is not ReviewPhase.PLAN_DESIGN
    needs_documentation = needs_code and phase is not ReviewPhase.PLAN_CODE
    placed = {each for wave in plan.waves for each in wave.milestones}
    for name, text in (("problem", plan.overview.problem), ("approach", plan.overview.approach)):
        require(text.strip(), f"overview.{name} is empty; set it: {set_} overview {name}=TEXT")
    for decision in plan.planning_context.decision_log:
        reasons = f"{set_} {decision.id} reasoning_chain=TEXT"
        require(decision.reasoning_chain.strip(), f"{decision.id} has no reasons; give them: {reasons}")
    require(plan.milestones, f"the plan has no milestone; add one: {add} milestone name=TEXT")
    for each in plan.milestones:
        name, intents, changes = each.id, each.code_intents, each.code_changes
        require(each.requirements, f"{name} has no requirement: {set_} {name} requirements+=TEXT")
        criterion = f"{set_} {name} acceptance_criteria+=TEXT"
        require(each.acceptance_criteria, f"{name} has no acceptance criterion: {criterion}")
        require(each.touched_files, f"{name} names no file; add one: {set_} {name} files+=FILE")
        if each.is_documentation_only:
            has_code = bool(intents or changes)
            require(
                not has_code, f"{name} is documentation only but has code intents or changes; remove these"
            )
        else:
            reason = f"add one, or give a reason: {set_} {name} tests.skip_reason=TEXT"
            require(each.tests.files or each.tests.skip_reason, f"{name} has no test file; {reason}")
            require(intents, f"{name} has no code intent; add one: {add} intent --to {name}")
        require(name in placed, f"{name} is in no wave; add it: {set_} W-1 milestones+={name}")
        if needs_code:
            changed = {change.intent_ref for change in changes}
            for intent in intents:
                change = f"{add} change --to {name} intent_ref={intent.id} file={intent.file} diff=@FILE"
                require(intent.id in changed, f"{intent.id} has no code change; add one: {change}")
            files = {intent.id: intent.file for intent in intents}
            for change in changes:
                is_diff = any(line.startswith(("@@ ", "--- ")) for line in change.diff.splitlines())
                require(is_diff, f"{change.id}.diff is not a unified diff: {set_} {change.id} diff=@FILE")
                about, fix = files[change.intent_ref], f"{set_} {change.id} file=FILE"
                fault = f"{change.id} changes {change.file}, but"
                require(change.file == about, f"{fault} {change.intent_ref} is about {about}: {fix}")
                named = _FILES_OF_DIFF.findall(change.diff)  # none in a diff of hunks alone
                is_named = not named or change.file in named
                require(is_named, f"{fault} its diff {', '.join(dict.fromkeys(named))}: {fix}")
        if needs_documentation:
            comment = f"{set_} {name} documentation.module_comment=TEXT"
            require(
                each.documentation != Documentation(),
                f"{name} has no documentation; describe it: {comment}",
            )
    # Milestones of one wave are carried out at the same time.
    by_id = {each.id: each for each in plan.milestones}
    for wave in plan.waves:
        owners: dict[str, str] = {}
        for name in wave.milestones:
            for file in by_id[name].touched_files:
                owner = owners.setdefault(file, name)
                both = f"W-{wave.wave}: {owner} and {name} both change {file} in the same wave"
                require(owner == name, f"{both}; move one of them to a later wave")
    return gaps
