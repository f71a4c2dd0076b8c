"""Loads what a command speaks of: the plan with its sub-plans, its outcomes, and the board of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.edges.latest_outcomes import find_outcomes
from planner.edges.run_history import blocked_since
from planner.errors import OutcomeFileError, PlannerError
from planner.model.outcome import OutcomeDocument, RunInfo, Summary
from planner.planfile.tree import load_tree
from planner.rules.board import Board, lay_out

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from planner.planfile.loader import LoadedPlan

NOTHING_RUN = OutcomeDocument(
    plans=(),
    run=RunInfo(
        run_id="",
        started_at="",
        finished_at="",
        duration_ms=0,
        exit_status=0,
        scope="all",
        python="",
        pytest="",
    ),
    summary=Summary(),
    outcomes=(),
)
"""What is known of a plan that was never verified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """A plan and how it stands."""

    loaded: LoadedPlan
    document: OutcomeDocument
    board: Board
    remarks: tuple[str, ...] = ()
    """Why less is known than there should be: no outcomes, or stale ones."""
    since: Mapping[str, str] = field(default_factory=dict[str, str])


def load_view(path: Path, outcomes: Path | None) -> PlanView:
    """Load all of it. Outcomes that were not asked for by name may be missing, and any may be stale.

    A sub-plan that cannot be loaded is told in a remark: its parent is then shown without children.
    """
    tree = load_tree(path)
    remarks: list[str] = []
    try:
        tree.load_all()
    except PlannerError as error:
        remarks.append(str(error))
    loaded = tree.loaded
    subs = {name: sub.loaded for name, sub in tree.sub_plans().items()}
    document = NOTHING_RUN
    try:
        found = find_outcomes(loaded, outcomes, subs)
        if found.document is None:
            remarks.append(f"the plan was not verified yet; run first: {found.verify}")
        else:
            document = found.document
        remarks.extend([found.plan_change] if found.plan_change else [])
    except OutcomeFileError as error:
        if outcomes is not None:
            raise
        remarks.append(str(error))
    return PlanView(
        loaded=loaded,
        document=document,
        board=lay_out(loaded.plan, document, {name: sub.plan for name, sub in subs.items()}),
        remarks=tuple(remarks),
        since=blocked_since(loaded.root, loaded.plan.todo_list_id),
    )
