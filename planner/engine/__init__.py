"""Engine: carries a plan from its submission to its end, as a fold over events.

It performs nothing. A driver reports events, each with its own time, and performs the actions that the
engine returns. The state is a value; equal events give equal states and actions, byte for byte, as no
clock, random source or file is read.

Modules in the order of their imports: ``state``, ``transaction`` (one event being applied, versions of
plans), ``requests`` (work and verifications), ``repair`` (from a verification to a branch),
``scheduler`` (consequences, queue, end of the run) and ``events`` (one handler for each event).
``intake`` turns the outcomes of a run into events; ``progress`` derives the status tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.engine.events import fold, start, step
from planner.engine.state import PlanPart, State, TodoRecord
from planner.engine.transaction import RULES
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
    "fold",
    "start",
    "step",
]


ENGINE_RULES: Mapping[str, str] = {**REVISION_RULES, **RULES["rules"]}
"""Rule ids of actions, including those of revisions, with their explanations."""
REFUSALS = RULES["refusals"]
"""Rule ids of refused events, with their explanations."""


class Engine:
    """The engine as one object, for programs that submit plans themselves."""

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
        """Return the state of a submitted plan.

        ``at`` is the time of submission, ``digest`` that of the plan file. ``problems`` are findings of an
        earlier validation; any of them rejects the plan.
        """
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
