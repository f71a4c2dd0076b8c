"""``planner workflow``: what to do in a step of planning or of execution."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.authoring.design.workflow import STEPS, render_step
from planner.cli.app import command
from planner.cli.arguments import nearest, option
from planner.cli.design import STATE_DIR
from planner.cli.exits import Status, UsageMistake, program
from planner.cli.screen import write


@command("Exit status: 0 shown, 2 there is no such step, 4 it is not its turn, or a file cannot be used.")
def workflow(
    name: Annotated[str, typer.Argument(metavar="plan|execute", help="Which workflow.")],
    step: Annotated[int, option("--step N", "Which step: 1 to 11 of plan, 1 to 9 of execute.")] = 1,
    state_dir: Annotated[
        Path | None,
        option("--state-dir DIR", "The folder of the plan; step 1 of plan makes it.", envvar=STATE_DIR),
    ] = None,
) -> int:
    """Print what is to be done in a step, for whom, with which files and commands, and what comes next.

    It is XML for an agent that works, decides, and asks for the next step. Nothing is changed here.
    """
    if name not in STEPS:
        raise UsageMistake(f"there is no workflow '{name}'; {nearest(name, STEPS, 'there are')}")
    if step not in STEPS[name]:
        raise UsageMistake(f"--step {step}: the steps of {name} are 1 to {len(STEPS[name])}")
    if state_dir is None and (name, step) != ("plan", 1):
        raise UsageMistake(f"--state-dir is missing; name the folder that {program()} design init printed")
    write(render_step(name, step, state_dir, program=program()))
    return Status.OK
