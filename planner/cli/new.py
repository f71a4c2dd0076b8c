"""``planner new``: a plan for a goal, from a template."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.app import command
from planner.cli.arguments import option, usual_plan
from planner.cli.exits import Status, UsageMistake, program, say
from planner.cli.init import USUAL_OUTPUT
from planner.cli.screen import Screen

GoalArgument = Annotated[
    str, typer.Argument(metavar="GOAL", help="What shall be there, in a sentence or a page.")
]
OutputOption = Annotated[Path, option("-o, --output FILE", "Where the plan goes; - is standard output.")]
ForceOption = Annotated[bool, option("--force", "Replace the plan that is there.")]
TemplatesOption = Annotated[
    Path | None,
    option(
        "--templates DIR",
        "A folder with templates of your own. Default: templates in [tool.planverify] of pyproject.toml.",
    ),
]


@command(
    "Exit status: 0 written, 2 wrong usage, or there is a plan already, 4 an unusable template or file."
)
def new(
    goal: GoalArgument = "",
    template: Annotated[str, option("-t, --template NAME", "Which; --list tells them.")] = "feature",
    output: OutputOption = USUAL_OUTPUT,
    templates: TemplatesOption = None,
    list_: Annotated[bool, option("--list", "List the templates.")] = False,
    force: ForceOption = False,
) -> int:
    """Write a plan for a goal: the steps of a template, with the files and commands of this repository.

    Every todo has criteria, and files that it may change: tests are written first, by another role than
    the code. Nothing is executed.
    """
    from planner.authoring.first_plan import root_for
    from planner.authoring.plan_templates import PlanTemplates, read_values
    from planner.text.sanitizing import clean

    here = Path.cwd()
    known = PlanTemplates(templates or template_folder(here))
    names = known.names()
    if list_:
        screen = Screen()
        for name, purpose in names.items():
            screen.line(screen.one_line(f"{name:{max(map(len, names))}}  {purpose}"))
        screen.show()
        return Status.OK
    if not clean(goal).strip():
        raise UsageMistake(f"say what shall be there: {program()} new 'Export as CSV' --template feature")
    if template not in names:
        from planner.cli.arguments import nearest

        hint = nearest(template, names, "the templates are")
        raise UsageMistake(f"--template {template}: there is no such template; {hint}")
    refuse_standing(output, force=force)
    values = read_values(goal, here) | {"root": root_for(here / output, here)}
    text = f"# Made by {program()} new --template {template}. Edit it as you like.\n"
    text += known.fill(template, values)
    write_plan(output, text)
    return Status.OK


def template_folder(folder: Path) -> Path | None:
    """Return the folder of templates that the repository names."""
    from planner.planfile.discovery import planverify_settings

    settings = planverify_settings(folder)
    named = settings.values.get("templates")
    if named is None:
        return None
    if not isinstance(named, str):
        raise UsageMistake(f"{settings.place}: templates is no text; name a folder")
    return folder / named


def refuse_standing(output: Path, *, force: bool) -> None:
    """Raise ``UsageMistake`` where the output is there already and may not be replaced."""
    from planner.planfile.file_writer import STANDARD_OUTPUT

    if output != STANDARD_OUTPUT and not force and os.path.lexists(output):
        raise UsageMistake(f"there is a plan already, {output}; name another file with -o, or add --force")


def write_plan(output: Path, text: str) -> None:
    """Write a plan that can be run, and say how to go on."""
    from planner.planfile.file_writer import STANDARD_OUTPUT, write_file
    from planner.planfile.loader import load_plan_text
    from planner.text.display import counted

    is_shown = output == STANDARD_OUTPUT
    plan = load_plan_text(text, USUAL_OUTPUT if is_shown else output).plan
    write_file(output, text, mode=None)
    if not is_shown:
        name = "" if usual_plan() == output else f" {output}"
        say(f"wrote {output}: {counted(len(plan.items), 'todo')}")
        say(f"read it, then:  {program()} next{name}")
        say(f"verify it:      planverify verify{name}")
