"""Quality review: the items of a phase, and the gate that they let a plan through."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from planner.authoring.design.plan import Sentence
from planner.model.base import Value


class ReviewPhase(StrEnum):
    """The five phases that are reviewed, in their order."""

    PLAN_DESIGN = "plan-design"
    PLAN_CODE = "plan-code"
    PLAN_DOCS = "plan-docs"
    IMPL_CODE = "impl-code"
    IMPL_DOCS = "impl-docs"

    @property
    def before(self) -> tuple[ReviewPhase, ...]:
        """The phases whose gates come before."""
        phases = tuple(ReviewPhase)
        return phases[: phases.index(self)]

    @property
    def is_of_planning(self) -> bool:
        """Whether it is reviewed before the plan is frozen."""
        return self.value.startswith("plan-")


class LoopState(StrEnum):
    """Where the loop of reviewing and mending stands."""

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
"""From an iteration on, the severities that block; fewer later, so that no loop is without end."""


def blocking_severities(iteration: int) -> tuple[ReviewSeverity, ...]:
    """Return the severities that block a gate in an iteration, counted from 1."""
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
            raise ValueError("a FAIL needs a finding that says what to mend: finding=TEXT")
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
            raise ValueError(f"items: {', '.join(twice)} is there more than once; leave one of them")
        return self

    def blocking(self, iteration: int) -> tuple[ReviewItem, ...]:
        """Return the items that have not passed and block the gate in this iteration."""
        severities = blocking_severities(iteration)
        return tuple(
            each
            for each in self.items
            if each.status is not ItemStatus.PASS and each.severity in severities
        )


class Gate(Value):
    """The gate of a phase: the state of its loop, and the iteration that it is in."""

    state: LoopState = LoopState.INITIAL
    iteration: Annotated[int, Field(ge=1, le=1_000_000)] = 1

    @model_validator(mode="after")
    def _refuse_an_impossible_iteration(self) -> Gate:
        if (self.state is LoopState.INITIAL and self.iteration > 1) or (
            self.state is LoopState.RETRY and self.iteration == 1
        ):
            raise ValueError(f"{self.state.value} is not the state of iteration {self.iteration}")
        return self

    @property
    def is_complete(self) -> bool:
        return self.state is LoopState.COMPLETE

    def decided(self, *, passed: bool) -> Gate:
        """Return the gate after a decision. COMPLETE is final: raises ``ValueError``."""
        if self.is_complete:
            raise ValueError("the gate is COMPLETE, which is final")
        if passed:
            return Gate(state=LoopState.COMPLETE, iteration=self.iteration)
        return Gate(state=LoopState.RETRY, iteration=self.iteration + 1)
