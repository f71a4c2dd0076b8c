"""The engine: carries a plan from its submission to its end, as a fold over events.

It does nothing itself. A driver tells it facts, each with its own time, and performs the actions that it
answers with. The state is a value; the same events give the same states and the same actions, byte for
byte. No clock, no random source and no file is read.

The modules, in the order of their imports: ``state``, ``transaction`` (one event being taken in, and the
versions of plans), ``requests`` (what is asked of the driver), ``repair`` (from a verification to a
branch), ``scheduler`` and ``events``, whose table has one handler for each event. ``intake`` tells the
outcomes of a run, ``progress`` reads the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.catalog.tables import load_table
from planner.engine.events import advance, fold, start, step
from planner.engine.state import PlanPart, State, TodoRecord
from planner.model.events import PlanSubmitted, RunPolicy
from planner.model.past import PastRecords
from planner.revise.strategies import REVISION_RULES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from planner.model.plan import Plan

__all__ = [
    "ENGINE_RULES",
    "REFUSALS",
    "Engine",
    "PlanPart",
    "State",
    "TodoRecord",
    "advance",
    "fold",
    "start",
    "step",
]


_TABLE = load_table("rules", "planner.engine")
ENGINE_RULES: Mapping[str, str] = {**REVISION_RULES, **_TABLE["rules"]}
"""Every rule that an action may name, with what it says; those of revisions, too."""
REFUSALS: Mapping[str, str] = _TABLE["refusals"]
"""The rules by which an event is refused; no action bears them."""


class Engine:
    """The engine under one name, for programs that submit a plan of their own."""

    @staticmethod
    def start(
        plan: Plan,
        policy: RunPolicy | None = None,
        memory: PastRecords | None = None,
        *,
        at: datetime,
        digest: str = "",
        path: str = "plan.yaml",
        problems: tuple[str, ...] = (),
    ) -> State:
        """Return the state of a submitted plan. ``problems`` are those of validation."""
        event = PlanSubmitted(
            at=at,
            plan=plan,
            digest=digest,
            path=path,
            problems=problems,
            policy=policy or RunPolicy(),
            memory=memory or PastRecords(),
        )
        return start(event)[0]

    step = staticmethod(step)
