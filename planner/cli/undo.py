"""``planner undo``: puts back the plan as it was before it was revised."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.app import command_app
from planner.cli.arguments import PlanArgument, plan_or_usual
from planner.cli.ending import Status, ends

app = command_app()


@app.command(epilog="Exit status: 0 put back, 2 wrong usage, 4 no version before, or edited since.")
@ends
def undo(
    plan: PlanArgument = None,
    force: Annotated[
        bool, typer.Option("--force", help="Put it back though it was edited since; the edits are lost.")
    ] = False,
) -> int:
    """Put back a plan, and its sub-plans, as they were before planner revised them last.

    The versions before are kept in .planverify, the last 20 of each plan; each call goes back by one.
    """
    from planner.planfile.loader import shown_path
    from planner.planfile.versions import undo_plan

    undone = undo_plan(plan_or_usual(plan), force=force)
    for path in undone.files:
        typer.echo(f"{shown_path(path)}: put back as it was before")
    if undone.left:
        typer.echo(f"older versions that are kept: {undone.left}")
    return Status.OK
