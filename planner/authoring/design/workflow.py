"""The workflows that lead through the creation and the execution of a design plan, step by step.

The steps are data (``workflows/*.toml``) and rendered as XML; the pattern of a step selects guidance that
is added to it. Rendering a step decides and changes nothing: its reader does the work by other commands.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Literal

from planner.authoring.design.review import ReviewPhase, find_gaps
from planner.authoring.design.state_folder import StateFolder
from planner.authoring.design.templates import render
from planner.catalog.tables import load_table
from planner.model.base import Value

if TYPE_CHECKING:
    from pathlib import Path

_PACKAGE = "planner.authoring.design"
_GUIDANCE = load_table("guidance", _PACKAGE)


class WorkflowStep(Value):
    """One row of the table of a workflow."""

    workflow: str
    number: int
    name: str
    pattern: Literal["init", "verify", "execute", "qr", "gate"]
    agent: str
    phase: ReviewPhase | None = None
    """The phase to whose work, review or gate the step belongs."""
    reads: tuple[str, ...] = ()
    mutates: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    shows_waves: bool = False

    @property
    def command(self) -> str:
        """The command that shows the step, without the state directory."""
        return f"planner workflow {self.workflow} --step {self.number}"


STEPS = {
    (name, number): WorkflowStep.model_validate({"workflow": name, "number": number, **row})
    for name in ("plan", "execute")
    for number, row in enumerate(load_table(f"workflows/{name}", _PACKAGE)["steps"], 1)
}
"""The steps by workflow and number, which begins with 1, in the order in which they are carried out."""


def step_after_gate(phase: ReviewPhase, *, passed: bool) -> WorkflowStep:
    """Return the step that follows a decision: the next, or the work of the phase, two before its gate."""
    steps = list(STEPS.values())
    place = next(at for at, each in enumerate(steps) if each.pattern == "gate" and each.phase is phase)
    return steps[place + 1 if passed else place - 2]


def render_step(step: WorkflowStep, state_dir: Path | None) -> str:
    """Return a step as XML: role, inputs, outputs, state of the review, actions, and the next command.

    ``state_dir`` is ``None`` for the first step, before the folder is made. Raises
    :class:`planner.errors.DesignError` if it is not the step's turn.
    """
    steps = list(STEPS.values())
    place = steps.index(step)
    shown: dict[str, Any] = {"gate": None, "milestones": (), "waves": ()}
    if state_dir is not None and place > 0:
        folder = StateFolder(state_dir)
        plan = folder.plan()
        folder.check_passed(each.phase for each in steps[:place] if each.phase and each.pattern == "gate")
        if step.phase is not None:
            folder.check_turn(step.phase)
            gate = folder.gates().gate(step.phase)
            items = folder.review(step.phase).blocking(gate)
            shown |= {"gate": gate, "items": items, "gaps": find_gaps(plan, step.phase)}
        if step.shows_waves:
            shown |= {"milestones": plan.milestones, "waves": plan.waves}
    after = steps[place + 1] if place + 1 < len(steps) else None
    if step.phase is not None and step.pattern == "gate":
        shown["on_fail"] = step_after_gate(step.phase, passed=False)
    return render(
        "step.xml",
        step=step,
        count=sum(each.workflow == step.workflow for each in steps),
        role=_GUIDANCE["roles"][step.agent],
        guidance=_GUIDANCE["patterns"].get(step.pattern),
        after=after,
        where="" if state_dir is None else f" --state-dir {shlex.quote(str(state_dir))}",
        **shown,
    )
