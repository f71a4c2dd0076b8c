"""Quality review of a design plan: items and gates of the phases, and the gaps that keep a gate closed.

The phases pass their gates in order. A gate that fails starts the next iteration of its phase; in later
iterations fewer severities block it. These are values and rules; files and locks are in ``state_folder``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from planner.authoring.design.plan import Documentation, OptionalSentence, Sentence
from planner.model.base import Value
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.authoring.design.plan import DesignPlan

_LONGEST_LINE = 400


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
        answer = one_line(self.finding or self.check, limit=_LONGEST_LINE)
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
    return [message for is_met, message in _requirements(plan, phase) if not is_met]


def _requirements(plan: DesignPlan, phase: ReviewPhase) -> Iterator[tuple[object, str]]:
    """Yield every requirement of a phase: whether it is met, and the message where it is not."""
    add, set_ = "planner design add", "planner design set"
    needs_code = phase is not ReviewPhase.PLAN_DESIGN
    needs_documentation = needs_code and phase is not ReviewPhase.PLAN_CODE
    placed = {each for wave in plan.waves for each in wave.milestones}
    for name, text in (("problem", plan.overview.problem), ("approach", plan.overview.approach)):
        yield text.strip(), f"overview.{name} is empty; set it: {set_} overview {name}=TEXT"
    yield plan.milestones, f"the plan has no milestone; add one: {add} milestone name=TEXT"
    for each in plan.milestones:
        name, intents, changes = each.id, each.code_intents, each.code_changes
        yield each.requirements, f"{name} has no requirement: {set_} {name} requirements+=TEXT"
        criterion = f"{set_} {name} acceptance_criteria+=TEXT"
        yield each.acceptance_criteria, f"{name} has no acceptance criterion: {criterion}"
        yield each.touched_files, f"{name} names no file; add one: {set_} {name} files+=FILE"
        if each.is_documentation_only:
            has_code = bool(intents or changes)
            yield (
                not has_code,
                f"{name} is documentation only but has code intents or changes; remove these",
            )
        else:
            reason = f"add one, or give a reason: {set_} {name} tests.skip_reason=TEXT"
            yield each.tests.files or each.tests.skip_reason, f"{name} has no test file; {reason}"
            yield intents, f"{name} has no code intent; add one: {add} intent --to {name}"
        yield name in placed, f"{name} is in no wave; add it: {set_} W-1 milestones+={name}"
        if needs_code:
            changed = {change.intent_ref for change in changes}
            for intent in intents:
                change = f"{add} change --to {name} intent_ref={intent.id} file={intent.file} diff=@FILE"
                yield intent.id in changed, f"{intent.id} has no code change; add one: {change}"
            for change in changes:
                is_diff = any(line.startswith(("@@ ", "--- ")) for line in change.diff.splitlines())
                yield is_diff, f"{change.id}.diff is not a unified diff: {set_} {change.id} diff=@FILE"
        if needs_documentation:
            comment = f"{set_} {name} documentation.module_comment=TEXT"
            yield (
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
                yield owner == name, f"{both}; move one of them to a later wave"
