"""The workflows: what to do in each step, read from one table a workflow and shown as XML.

The steps are data (``workflows/*.toml``), and the pattern of a step says which guidance stands in it
besides. Nothing here decides or changes anything: whoever reads a step does its work by other commands.
"""

from __future__ import annotations

import shlex
import tomllib
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from planner.authoring.design.review import ItemStatus, ReviewPhase, blocking_severities, find_gaps
from planner.authoring.design.state_folder import StateFolder
from planner.errors import DesignError
from planner.model.base import Value
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MOST_SHOWN = 50
_IN_FOLDER = (".json", ".md")
_TAKES_FOLDER = ("design ", "workflow ")


class Pattern(StrEnum):
    """The sort of a step, whatever it is about."""

    INIT = "init"
    VERIFY = "verify"
    EXECUTE = "execute"
    QR = "qr"
    GATE = "gate"


class WorkflowStep(Value):
    """One row of the table of a workflow."""

    name: str
    pattern: Pattern
    agent: str
    phase: ReviewPhase | None = None
    """The phase whose work, review or gate it is."""
    after: ReviewPhase | None = None
    """The gate that has to have passed, where the step is of no phase."""
    reads: tuple[str, ...] = ()
    mutates: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    shows_waves: bool = False


class DesignWorkflow(Value):
    """One workflow; its steps are counted from 1."""

    name: str
    steps: tuple[WorkflowStep, ...]


@cache
def _guidance() -> dict[str, dict[str, str]]:
    page = files("planner.authoring.design") / "guidance.toml"
    return tomllib.loads(page.read_text("utf-8"))


@cache
def discover_workflows() -> Mapping[str, DesignWorkflow]:
    """Return every workflow by its name; each file of the folder holds exactly one."""
    folder = files("planner.authoring.design") / "workflows"
    pages = sorted(
        (each for each in folder.iterdir() if each.name.endswith(".toml")), key=lambda at: at.name
    )
    found = [DesignWorkflow.model_validate(tomllib.loads(each.read_text("utf-8"))) for each in pages]
    return MappingProxyType({each.name: each for each in found})


STEPS: Mapping[str, Mapping[int, WorkflowStep]] = {
    name: dict(enumerate(workflow.steps, 1)) for name, workflow in discover_workflows().items()
}
"""The steps of each workflow by their numbers."""


def step_after_gate(phase: ReviewPhase, *, passed: bool) -> tuple[str, int]:
    """Return the workflow and number of the step that follows a decision at a gate."""
    workflow, number = next(
        (name, number)
        for name, steps in STEPS.items()
        for number, step in steps.items()
        if step.pattern is Pattern.GATE and step.phase is phase
    )
    if not passed:
        return workflow, number - 2
    return (workflow, number + 1) if number < len(STEPS[workflow]) else ("execute", 1)


def render_step(workflow: str, number: int, state_dir: Path | None, *, program: str) -> str:
    """Return the guidance of a step as XML: role, inputs, outputs, what to do, and the next command.

    Raises :class:`planner.errors.DesignError` before its turn.
    """
    step = STEPS[workflow][number]
    where = "" if state_dir is None else f" --state-dir {shlex.quote(str(state_dir))}"

    def command(text: str) -> str:
        if text.startswith("planverify "):
            return text
        return f"{program} {text}{where if text.startswith(_TAKES_FOLDER) else ''}"

    root = ET.Element(
        "step", workflow=workflow, number=str(number), of=str(len(STEPS[workflow])), name=step.name
    )
    _add(root, "role", _guidance()["roles"][step.agent], agent=step.agent)
    for tag, names in (("inputs", step.reads), ("outputs", step.mutates)):
        held = _add(root, tag)
        for name in names:
            is_file = state_dir is not None and name.endswith(_IN_FOLDER) and " " not in name
            _add(
                held,
                "file" if is_file else "item",
                str(state_dir / name) if is_file and state_dir else name,
            )
    if state_dir is not None and number > 1:
        _add_standing(root, step, workflow, StateFolder(state_dir))
    actions = _add(root, "actions")
    for text in (_guidance()["patterns"].get(step.pattern), *step.actions):
        if text is not None:
            _add(actions, "action", text)
    for text in step.commands:
        _add(actions, "command", command(text))
    following = _add(root, "next")
    if step.pattern is Pattern.GATE and step.phase is not None:
        for decision in ("pass", "fail"):
            name, target = step_after_gate(step.phase, passed=decision == "pass")
            then = command(f"workflow {name} --step {target}")
            told = f"design gate {step.phase.value} {decision}"
            _add(following, "command", command(told), when=decision.upper(), then=then)
    elif number < len(STEPS[workflow]):
        then = f"workflow {workflow} --step {number + 1}"
        if workflow == "plan" and number == 1 and state_dir is None:
            then += " --state-dir DIR"
        _add(following, "command", command(then))
    else:
        _add(following, "end", "This was the last step: report to the user.")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _add_standing(root: ET.Element, step: WorkflowStep, workflow: str, folder: StateFolder) -> None:
    """Add where the phase stands: its iteration, what blocks it, what is missing."""
    plan = folder.plan()
    if step.after is not None and not folder.gates().gate(step.after).is_complete:
        remedy = f"its gate comes first, see: planner design gate {step.after.value}"
        raise DesignError(step.name, [f"the phase {step.after.value} is not over; {remedy}"])
    if step.phase is not None:
        folder.check_turn(step.phase)
        gate = folder.gates().gate(step.phase)
        if gate.is_complete:
            name, number = step_after_gate(step.phase, passed=True)
            raise DesignError(
                step.name,
                [f"the gate {step.phase.value} has passed; go on: planner workflow {name} --step {number}"],
            )
        blocks = " ".join(each.value for each in blocking_severities(gate.iteration))
        loop = _add(
            root,
            "loop",
            phase=step.phase.value,
            state=gate.state.value,
            iteration=str(gate.iteration),
            blocks=blocks,
        )
        review = folder.review(step.phase)
        shown = review.blocking(gate.iteration)
        if step.pattern is Pattern.EXECUTE:
            shown = tuple(each for each in review.items if each.status is ItemStatus.FAIL)
        for item in shown[:_MOST_SHOWN]:
            about = {"id": item.id, "scope": item.scope, "severity": item.severity.value}
            held = _add(loop, "item", **about, status=item.status.value)
            _add(held, "check", item.check)
            if item.finding is not None:
                _add(held, "finding", item.finding)
        if workflow == "plan" and step.pattern is not Pattern.QR:
            for gap in find_gaps(plan, step.phase)[:_MOST_SHOWN]:
                _add(loop, "missing", gap)
    if step.shows_waves:
        names = {each.id: each.name for each in plan.milestones}
        for wave in plan.waves:
            held = _add(root, "wave", number=str(wave.wave))
            for milestone in wave.milestones:
                _add(held, "milestone", names[milestone], id=milestone)


def _add(parent: ET.Element, tag: str, text: str | None = None, **attributes: str) -> ET.Element:
    element = ET.SubElement(parent, tag, {name: clean(value) for name, value in attributes.items()})
    element.text = None if text is None else clean(text)
    return element
