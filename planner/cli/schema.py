"""``planner schema``: the JSON Schemas of the files that are read and written."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.app import command_app
from planner.cli.arguments import nearest
from planner.cli.ending import Status, UsageMistake, ends
from planner.cli.screen import write

NAMES = {
    "plan": "the plan file; YAML is checked as the JSON that it stands for",
    "outcome": "what a run found: .planverify/outcomes.json",
    "contract": "what a module promises: the file that a todo's contract_path names",
    "answers": "answers to questions of a plan: .planverify/answers.json",
    "failure_report": "all that was seen of a failed todo: diagnostics/TODO_failure_report.json",
    "event": "a fact that planner step is told, one a line",
    "action": "what planner step asks for, one a line",
    "baseline": "what held before the work began: .planverify/plans/PLAN/baseline.json",
    "qualification": "what the checks of a plan are worth: .planverify/plans/PLAN/qualification.json",
}

app = command_app()


@app.command(
    epilog="\b\nNames\n"
    + "\n".join(f"  {name:<16}{text}" for name, text in NAMES.items())
    + "\n\nExit status: 0 printed, 2 there is no such schema."
)
@ends
def schema(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which schema; see below.")],
) -> int:
    """Print the JSON Schema (draft 2020-12) of a file, for editors and other programs."""
    from planner.planfile.schemas import schema_text

    wanted = name.casefold().replace("-", "_")
    wanted = wanted if wanted in NAMES else wanted.removesuffix("s")
    if wanted not in NAMES:
        raise UsageMistake(f"there is no schema '{name}'; {nearest(name, NAMES, 'there are')}")
    write(schema_text(wanted))
    return Status.OK
