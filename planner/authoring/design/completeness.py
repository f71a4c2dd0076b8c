"""What a design plan must say before a phase of its planning is over; references are checked elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.authoring.design.review import ReviewPhase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.authoring.design.plan import DesignPlan, Milestone

_PLANNER = "planner design"
"""How the command is called that mends a gap."""


def find_gaps(plan: DesignPlan, phase: ReviewPhase) -> tuple[str, ...]:
    """Return a line for everything that a plan lacks at the end of a phase, those before it included.

    After ``plan-docs`` a plan can be carried out from itself alone: it says what is to be done, in which
    files, in which order, why, and how it is proved.
    """
    gaps = [*_design_gaps(plan)]
    if phase is not ReviewPhase.PLAN_DESIGN:
        gaps += _code_gaps(plan)
        if phase is not ReviewPhase.PLAN_CODE:
            gaps += _documentation_gaps(plan)
    return tuple(gaps)


def _design_gaps(plan: DesignPlan) -> Iterator[str]:
    for name in ("problem", "approach"):
        if not getattr(plan.overview, name).strip():
            yield f"overview.{name} is empty; say it: {_PLANNER} set overview {name}=TEXT"
    if not plan.milestones:
        yield f"there is no milestone; add one: {_PLANNER} add milestone name=TEXT"
    for milestone in plan.milestones:
        yield from _gaps_of(milestone)
    placed = {each for wave in plan.waves for each in wave.milestones}
    for milestone in plan.milestones:
        if milestone.id not in placed:
            yield f"{milestone.id} is in no wave; add it: {_PLANNER} set W-1 milestones+={milestone.id}"
    by_id = {each.id: each for each in plan.milestones}
    for wave in plan.waves:
        owners: dict[str, str] = {}
        for milestone in (by_id[each] for each in wave.milestones):
            for file in milestone.touched_files:
                owner = owners.setdefault(file, milestone.id)
                if owner != milestone.id:
                    yield (
                        f"W-{wave.wave}: {owner} and {milestone.id} both change {file}, at the same time; "
                        "move one of them to a later wave"
                    )


def _gaps_of(milestone: Milestone) -> Iterator[str]:
    name = milestone.id
    if not milestone.requirements:
        yield f"{name} has no requirement: {_PLANNER} set {name} requirements+=TEXT"
    if not milestone.acceptance_criteria:
        yield f"{name} has no acceptance criterion: {_PLANNER} set {name} acceptance_criteria+=TEXT"
    if not milestone.touched_files:
        yield f"{name} names no file; add one: {_PLANNER} set {name} files+=FILE"
    if milestone.is_documentation_only:
        if milestone.code_intents or milestone.code_changes:
            yield f"{name} is documentation only, and has code intents or changes; remove these"
        return
    if not milestone.tests.files and milestone.tests.skip_reason is None:
        yield f"{name} has no test file; add one, or say why: {_PLANNER} set {name} tests.skip_reason=TEXT"
    if not milestone.code_intents:
        yield f"{name} has no code intent; add one: {_PLANNER} add intent --to {name}"


def _code_gaps(plan: DesignPlan) -> Iterator[str]:
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
                yield f"{change.id}.diff is no unified diff: {_PLANNER} set {change.id} diff=@FILE"


def _documentation_gaps(plan: DesignPlan) -> Iterator[str]:
    for milestone in plan.milestones:
        if not milestone.documentation:
            yield (
                f"{milestone.id} has no documentation; say what readers are told: "
                f"{_PLANNER} set {milestone.id} documentation.module_comment=TEXT"
            )
