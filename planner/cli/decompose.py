"""``planner decompose``: a goal, broken into todos and phases."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.app import command
from planner.cli.arguments import nearest, option, usual_plan
from planner.cli.exits import Status, UsageMistake, complain, program, say
from planner.cli.init import USUAL_OUTPUT
from planner.cli.new import ForceOption, OutputOption, TemplatesOption, refuse_standing, template_folder
from planner.text.display import counted

if TYPE_CHECKING:
    from planner.authoring.outline import Piece
    from planner.model.plan import Plan

_MOST_DONE = 20


@command(
    "Exit status: 0 written; 2 wrong usage, or there is a plan already; 4 an unusable file, template or "
    "model; 11 it could be planned in phases: say --phases or --flat."
)
def decompose(
    goal: Annotated[
        str,
        typer.Argument(metavar="GOAL", help="What shall be there: a sentence, a page, or - for the input."),
    ],
    output: OutputOption = USUAL_OUTPUT,
    phases: Annotated[
        bool | None, typer.Option("--phases/--flat", help="A plan for each phase, or one plan for all.")
    ] = None,
    max_depth: Annotated[
        int, typer.Option("--max-depth", min=1, max=5, metavar="N", help="At most so many levels of plans.")
    ] = 3,
    first: Annotated[
        bool, option("--first", "Break only the first phase into todos; plan the others after it.")
    ] = False,
    after: Annotated[
        Path | None, option("--after PLAN", "Tell whoever works on it what has been done in this plan.")
    ] = None,
    template: Annotated[
        str | None, option("-t, --template NAME", "For every piece. Default: what its words ask for.")
    ] = None,
    templates: TemplatesOption = None,
    model: Annotated[
        str | None,
        option("--model PROVIDER:NAME", "Have a language model plan it; needs pytest-planverify[llm]."),
    ] = None,
    retries: Annotated[
        int,
        typer.Option("--retries", min=0, max=20, metavar="N", help="So often the model may correct it."),
    ] = 3,
    anew: Annotated[
        bool, option("--anew", "Plan it even if a plan for this goal was completed here before.")
    ] = False,
    force: ForceOption = False,
) -> int:
    """Break a goal into todos, by templates and what the repository says about itself.

    Headings and items of lists in the goal are its pieces; numbered ones build on one another. Where it has
    phases, many todos or several domains, a plan for each phase is suggested, and asked for. A goal that
    was completed here before is answered with its plan. Nothing is executed.
    """
    from planner.authoring.decomposition import Decomposer, reasons_for_phases
    from planner.authoring.outline import LONGEST_GOAL, read_goal
    from planner.authoring.plan_templates import PlanTemplates, read_values
    from planner.text.sanitizing import clean

    here = Path.cwd()
    text = sys.stdin.read(LONGEST_GOAL + 1) if goal == "-" else goal
    if not clean(text).strip():
        raise UsageMistake(f"say what shall be there: {program()} decompose 'Export orders as CSV'")
    if len(text) > LONGEST_GOAL:
        raise UsageMistake(f"the goal is longer than {LONGEST_GOAL:,} characters; make several plans of it")
    refuse_standing(output, force=force)
    known = PlanTemplates(templates or template_folder(here))
    if template is not None and template not in (names := known.names()):
        hint = nearest(template, names, "the templates are")
        raise UsageMistake(f"--template {template}: there is no such template; {hint}")
    piece = read_goal(text)
    if not anew and after is None and (cached := _cached(piece.title, here, output)) is not None:
        _write({output: cached[0]}, f"# As it was completed here on {cached[1]}; --anew plans it again.\n")
        return Status.OK
    facts = read_values(piece.title, here)
    done = "" if after is None else _done_before(after)
    decomposer = Decomposer(templates=known, facts=facts, folder=here, template=template, done_before=done)
    reasons = reasons_for_phases(piece, decomposer.estimate(piece)) if max_depth > 1 else []
    if phases is None and reasons:
        phases = _ask(piece, reasons)
        if phases is None:
            return Status.HUMAN_NEEDED
    in_phases = bool(phases) and max_depth > 1
    if in_phases and len(piece.parts) < 2:
        raise UsageMistake("--phases: the goal names none; write them as headings or a list, or say --flat")
    made_by = f"# Made by {program()} decompose. Edit it as you like.\n"
    if model is not None:
        from planner.authoring.model_plans import plan_by_model

        listed = "\n".join(f"{number}. {each.goal}" for number, each in enumerate(piece.parts, 1))
        plan = plan_by_model(
            model,
            text,
            facts,
            folder=here,
            output=here / output,
            phases=listed if in_phases else "",
            done_before=done,
            retries=retries,
        )
        named = {"x-goal": piece.title, "x-model": model}
        _write({output: type(plan).model_validate({**_plain(plan), **named})}, made_by)
    elif in_phases:
        if not (here / output).resolve().is_relative_to(here):
            raise UsageMistake(f"-o {output}: plans with phases lie in the repository; name a file in it")
        plans = decomposer.phased(piece, here / output, depth=max_depth, detailed=1 if first else None)
        for path in plans:
            refuse_standing(path, force=force)
        _write({Path(os.path.relpath(path, here)): plan for path, plan in plans.items()}, made_by)
    else:
        _write({output: decomposer.flat(piece, here / output)}, made_by)
    return Status.OK


def _ask(goal: Piece, reasons: list[str]) -> bool | None:
    """Propose the phases and ask; ``None`` where nobody can answer."""
    say(f"this could be planned in phases: {'; '.join(reasons)}")
    for number, part in enumerate(goal.parts, 1):
        inner = f" ({counted(len(list(part.leaves())), 'part')})" if part.parts else ""
        say(f"  {number}. {part.title}{inner}")
    if not sys.stdin.isatty():
        complain("say which: --phases, a plan for each of these, or --flat, one plan for all")
        return None
    answer = typer.prompt("A plan for each? (yes/no/customize)", default="yes").strip().casefold()
    if answer in ("y", "yes"):
        return True
    if answer in ("n", "no"):
        return False
    say("write the phases as a list or as headings, and give that: planner decompose - < goal.md")
    return None


def _cached(goal: str, here: Path, output: Path) -> tuple[Plan, str] | None:
    """Return the plan that was completed for a goal in this repository as it is now, and when."""
    from planner.authoring.first_plan import root_for
    from planner.cli.history import about_project, open_index_of
    from planner.errors import PlannerError
    from planner.model.plan import Plan
    from planner.planfile.plan_folder import HOME
    from planner.planfile.project_facts import repository_fingerprint
    from planner.store import questions
    from planner.text.display import moment

    subject = about_project()
    if not (subject.root / HOME).is_dir():
        return None
    try:
        with open_index_of(subject, None) as index, index.reading() as rows:
            found = questions.plans_for(rows, goal)
        for each in found:
            if each["ended"] != "completed":
                continue
            plan = Plan.model_validate(each["document"])
            if any(todo.has_sub_plan for todo in plan.items):
                continue
            if repository_fingerprint(here, plan) == each["fingerprint"]:
                open_again = [_opened(todo) for todo in _plain(plan)["items"]]
                root = root_for(here / output, here)
                rooted = {} if root == "." else {"root": root}
                values = {name: value for name, value in _plain(plan).items() if name != "root"}
                plan = Plan.model_validate({**values, **rooted, "x-goal": goal, "items": open_again})
                return plan, moment(each["at"])
    except (PlannerError, OSError, ValueError):
        return None  # a cache that cannot be read is none
    return None


def _opened(todo: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in todo.items() if name != "status"}


def _done_before(path: Path) -> str:
    """Return what has been done in a plan, from the outcomes of its last run. Raises ``UsageMistake``."""
    from planner.model.verdicts import TodoState
    from planner.planfile.latest_outcomes import find_outcomes
    from planner.planfile.tree import load_tree
    from planner.policy.outcomes import state_of
    from planner.text.sanitizing import one_line

    flat = load_tree(path).load_all().flat()
    found = find_outcomes(flat.loaded, None, flat.files)
    if found.document is None:
        raise UsageMistake(f"--after {path}: it was not verified yet; run first: {found.verify}")
    done = {each.todo_id for each in found.document.outcomes if state_of(each) is TodoState.DONE}
    todos = [todo for todo in flat.loaded.plan.items if todo.id in done and todo.id not in flat.children]
    if not todos:
        raise UsageMistake(f"--after {path}: nothing of it is done yet; run first: {found.verify}")
    lines = [
        f"- {one_line(todo.title, limit=120)}"
        + (f" ({', '.join(todo.allowed_files[:3])})" if todo.allowed_files else "")
        for todo in todos[-_MOST_DONE:]
    ]
    return "Done before:\n" + "\n".join(lines)


def _plain(plan: Plan) -> dict[str, Any]:
    from planner.planfile.writer import plain

    return plain(plan)


def _write(plans: dict[Path, Plan], heading: str) -> None:
    """Write plans, all of which can be run, and say how to go on."""
    from planner.planfile.file_writer import STANDARD_OUTPUT, write_file
    from planner.planfile.loader import load_plan_text
    from planner.planfile.writer import dump_plan

    texts = {path: heading + dump_plan(plan, format="yaml") for path, plan in plans.items()}
    output = next(iter(texts))
    is_shown = output == STANDARD_OUTPUT
    for path, text in texts.items():
        load_plan_text(text, USUAL_OUTPUT if is_shown else path)
    for path, text in reversed(texts.items()):
        write_file(path, text, mode=None)
    if is_shown:
        return
    leaves = sum(not todo.has_sub_plan for plan in plans.values() for todo in plan.items)
    below = f" in {counted(len(plans) - 1, 'phase')}" if len(plans) > 1 else ""
    say(f"wrote {output}: {counted(leaves, 'todo')}{below}")
    name = "" if usual_plan() == output else f" {output}"
    say(f"read it, then:  {program()} next{name}")
    say(f"verify it:      planverify verify{name}")
