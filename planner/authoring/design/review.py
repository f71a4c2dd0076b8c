"""Quality review of a design plan: items and gates of the phases, and the gaps that keep a gate closed.

The phases pass their gates in order. A gate that fails starts the next iteration of its phase; in later
iterations fewer severities block it. These are values and rules; files and locks are in ``state_folder``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from planner.authoring.design.plan import Sentence
from planner.model.base import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.authoring.design.plan import DesignPlan, Milestone


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

    @property
    def is_of_planning(self) -> bool:
        """Return whether the phase is reviewed before the plan is frozen."""
        return self.value.startswith("plan-")


class LoopState(StrEnum):
    """State of the loop of reviews and fixes."""

    INITIAL = "INITIAL"
    RETRY = "RETRY"
    COMPLETE = "COMPLETE"


class ItemStatus(StrEnum):
    TODO = "TODO"
    PASS = "PASS"
    FAIL = "FAIL"


class ReviewSeverity(StrEnum):
    MUST = "MUST"
    SHOULD = "SHOULD"
    COULD = "COULD"


BLOCKING = (
    (1, tuple(ReviewSeverity)),
    (3, (ReviewSeverity.MUST, ReviewSeverity.SHOULD)),
    (5, (ReviewSeverity.MUST,)),
)
"""The first iteration and the severities that block from then on; fewer later, so that every loop ends."""


def blocking_severities(iteration: int) -> tuple[ReviewSeverity, ...]:
    """Return the severities that block a gate in an iteration; iterations are counted from 1."""
    return next(severities for first, severities in reversed(BLOCKING) if iteration >= first)


class ReviewItem(Value):
    """One question of a review, and its answer."""

    id: Annotated[str, StringConstraints(pattern=r"^qa-[0-9]{3,9}$")]
    scope: Sentence = "*"
    """The id of the part of the plan that it is about, a file, or ``*`` for everything."""
    check: Sentence
    severity: ReviewSeverity = ReviewSeverity.MUST
    status: ItemStatus = ItemStatus.TODO
    finding: Sentence | None = None

    @model_validator(mode="after")
    def _refuse_a_failure_without_finding(self) -> ReviewItem:
        if self.status is ItemStatus.FAIL and self.finding is None:
            raise ValueError("a FAIL needs a finding that says what to fix: finding=TEXT")
        return self


class ReviewFile(Value):
    """``qr-{phase}.json``: it is there from the first item of a review until its gate has passed."""

    schema_version: Literal["1.0"] = "1.0"
    phase: ReviewPhase
    items: tuple[ReviewItem, ...] = ()

    @model_validator(mode="after")
    def _refuse_items_of_one_id(self) -> ReviewFile:
        ids = [each.id for each in self.items]
        if twice := sorted({each for each in ids if ids.count(each) > 1}):
            raise ValueError(f"items: {', '.join(twice)} occurs more than once; keep one")
        return self

    def blocking(self, iteration: int) -> tuple[ReviewItem, ...]:
        """Return the items that block the gate: they have not passed, and are of a blocking severity."""
        severities = blocking_severities(iteration)
        open_ = (each for each in self.items if each.status is not ItemStatus.PASS)
        return tuple(each for each in open_ if each.severity in severities)


class Gate(Value):
    """The gate of a phase: the state of its loop, and the iteration that it is in."""

    state: LoopState = LoopState.INITIAL
    iteration: Annotated[int, Field(ge=1, le=1_000_000)] = 1

    @model_validator(mode="after")
    def _refuse_an_impossible_iteration(self) -> Gate:
        impossible = {LoopState.INITIAL: self.iteration > 1, LoopState.RETRY: self.iteration == 1}
        if impossible.get(self.state, False):
            raise ValueError(f"{self.state.value} does not fit iteration {self.iteration}")
        return self

    @property
    def is_complete(self) -> bool:
        return self.state is LoopState.COMPLETE


# -- gaps at the end of a phase; broken references are refused by the plan itself ------------------------

_PLANNER = "planner design"
"""The command in the messages, which name a remedy for each gap."""


def find_gaps(plan: DesignPlan, phase: ReviewPhase) -> tuple[str, ...]:
    """Return a message for everything that a plan lacks at the end of a phase and the phases before it.

    After ``plan-docs`` a plan can be carried out without further information: it has what is to be done, in
    which files, in which order, why, and how it is proved.
    """
    gaps = [*_design_gaps(plan)]
    if phase is not ReviewPhase.PLAN_DESIGN:
        gaps += _code_gaps(plan)
    if phase not in (ReviewPhase.PLAN_DESIGN, ReviewPhase.PLAN_CODE):
        bare = (each.id for each in plan.milestones if not each.documentation)
        describe = "has no documentation; describe it"
        gaps += [
            f"{name} {describe}: {_PLANNER} set {name} documentation.module_comment=TEXT" for name in bare
        ]
    return tuple(gaps)


def _design_gaps(plan: DesignPlan) -> Iterator[str]:
    """Yield what ``plan-design`` requires; milestones of one wave must not change the same file."""
    for name in ("problem", "approach"):
        if not getattr(plan.overview, name).strip():
            yield f"overview.{name} is empty; set it: {_PLANNER} set overview {name}=TEXT"
    if not plan.milestones:
        yield f"the plan has no milestone; add one: {_PLANNER} add milestone name=TEXT"
    for milestone in plan.milestones:
        yield from _gaps_of(milestone)
    by_id = {each.id: each for each in plan.milestones}
    placed = {each for wave in plan.waves for each in wave.milestones}
    for name in (name for name in by_id if name not in placed):
        yield f"{name} is in no wave; add it: {_PLANNER} set W-1 milestones+={name}"
    for wave in plan.waves:
        owners: dict[str, str] = {}
        for milestone in (by_id[each] for each in wave.milestones):
            for file in milestone.touched_files:
                owner = owners.setdefault(file, milestone.id)
                if owner != milestone.id:
                    yield (
                        f"W-{wave.wave}: {owner} and {milestone.id} both change {file} in the same wave; "
                        "move one of them to a later wave"
                    )


def _gaps_of(milestone: Milestone) -> Iterator[str]:
    """Yield what one milestone lacks; those with documentation only need neither tests nor intents."""
    name = milestone.id
    if not milestone.requirements:
        yield f"{name} has no requirement: {_PLANNER} set {name} requirements+=TEXT"
    if not milestone.acceptance_criteria:
        yield f"{name} has no acceptance criterion: {_PLANNER} set {name} acceptance_criteria+=TEXT"
    if not milestone.touched_files:
        yield f"{name} names no file; add one: {_PLANNER} set {name} files+=FILE"
    if milestone.is_documentation_only:
        if milestone.code_intents or milestone.code_changes:
            yield f"{name} is documentation only but has code intents or changes; remove these"
        return
    if not milestone.tests.files and milestone.tests.skip_reason is None:
        yield (
            f"{name} has no test file; add one, or give a reason: {_PLANNER} set {name} "
            "tests.skip_reason=TEXT"
        )
    if not milestone.code_intents:
        yield f"{name} has no code intent; add one: {_PLANNER} add intent --to {name}"


def _code_gaps(plan: DesignPlan) -> Iterator[str]:
    """Yield what ``plan-code`` requires: a change for every intent, as a unified diff."""
    for milestone in plan.milestones:
        changed = {each.intent_ref for each in milestone.code_changes}
        for intent in milestone.code_intents:
            if intent.id not in changed:
                yield (
                    f"{intent.id} has no code change; add one: {_PLANNER} add change --to {milestone.id} "
                    f"intent_ref={intent.id} file={intent.file} diff=@FILE"
                )
        for change in milestone.code_changes:
            if not any(line.startswith(("@@ ", "--- ")) for line in change.diff.splitlines()):
                yield f"{change.id}.diff is not a unified diff: {_PLANNER} set {change.id} diff=@FILE"
