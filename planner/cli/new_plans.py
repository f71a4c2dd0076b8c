"""``planner init``, ``new`` and ``decompose``: write a plan for a repository, from a template, for a goal.

``planner tools`` lists what their commands may use.

The plans are made by :mod:`planner.authoring`. Every plan is loaded before it is written, so that no
command leaves a file that could not be verified, and none replaces an existing plan without ``--force``.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.authoring.decomposition import (
    Decomposer,
    fill_template,
    read_values,
    reasons_for_phases,
    template_names,
)
from planner.authoring.first_plan import (
    in_format_of,
    plan_of_list,
    plan_of_repository,
    plan_text,
    root_for,
)
from planner.authoring.outline import LONGEST_GOAL, read_goal, read_page
from planner.authoring.repository import is_module_there, is_runnable, is_there, read_repository
from planner.catalog import RECIPES, TOOLS
from planner.cli.app import command
from planner.cli.arguments import nearest, option, usual_plan
from planner.cli.exits import Status, UsageMistake, complain, program, say
from planner.cli.screen import Screen
from planner.errors import PlannerError
from planner.model.plan import Plan, TodoStatus
from planner.model.verdicts import TodoState
from planner.planfile.file_writer import STANDARD_OUTPUT, write_file
from planner.planfile.latest_outcomes import find_outcomes
from planner.planfile.left_files import remember_written
from planner.planfile.loader import load_plan_text
from planner.planfile.plan_folder import HOME
from planner.planfile.project_facts import repository_fingerprint
from planner.planfile.tree import load_flat
from planner.planfile.writer import format_of
from planner.policy.outcomes import state_of
from planner.store.run_log import RunLog
from planner.text.display import counted, moment
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from planner.authoring.outline import Piece

USUAL_OUTPUT = Path("planverify.yaml")
AGENTS = Path("AGENTS.md")
BEGIN = "<!-- planverify: begin -->"
END = "<!-- planverify: end -->"
SECTION = Path(__file__).with_name("data") / "agents.md"
"""The section of ``AGENTS.md`` between these two lines, about the plan ``{plan}``."""
_MOST_DONE = 20
"""The most finished todos that ``--after`` lists for those who work on the new plan."""

GoalArgument = Annotated[
    str, typer.Argument(metavar="GOAL", help="The goal: a sentence, a page, or - for standard input.")
]
OutputOption = Annotated[Path, option("-o, --output FILE", "The file to write; - is standard output.")]
ForceOption = Annotated[bool, option("--force", "Replace an existing plan.")]


# -- init ----------------------------------------------------------------------------------------------


@command(
    "Exit status: 0 written, 1 there is nothing to make a plan from, 2 wrong usage or an existing "
    "plan, 4 a file cannot be read or written."
)
def init(
    source: Annotated[
        Path | None, option("--from FILE.md", "Make the plan from the check boxes of a Markdown list.")
    ] = None,
    output: OutputOption = USUAL_OUTPUT,
    force: ForceOption = False,
    agents: Annotated[
        bool, option("--agents", "Add or update a section of AGENTS.md on how work is verified.")
    ] = False,
) -> int:
    """Make a first plan: a todo for each part of the tests, and for each check that the repository runs.

    Tests are those that pytest would collect here; checks are the commands of tox, nox, CI, make and
    pre-commit, and the tools configured in pyproject.toml, if they are installed. With --from, each check
    box becomes a todo: claimed if it is checked, and verified by the command in its text or in a block
    below it; nested items become its dependencies. Nothing is executed.
    """
    standing = usual_plan() if output == USUAL_OUTPUT and not force else None
    # --agents is for projects with a plan, too: that plan is not replaced, and its section is written.
    if standing is not None and agents and source is None:
        say(f"{standing} is unchanged")
        return _write_agents(standing)
    refuse_existing(output, force=force)
    here = Path.cwd()
    root = root_for(here / output, here)
    notes: list[str] = []
    if source is not None:
        page = read_page(source)
        plan = plan_of_list(page, here.name or "project", root=root)
        nothing = f"{source}: it has no check boxes; write each todo as a line: - [ ] Write the parser"
        # Commands elsewhere are no criteria of a todo, whether the catalog has them or not.
        below = (each for box in page.walk() if box.is_checked is not None for each in box.walk())
        refused = dict.fromkeys(f"- line {each.line}: {code}" for each in below for code in each.refused)
        title = f"No criteria, as the catalog has no such commands ({program()} tools lists it):"
        notes += [title, *refused] if refused else []
    else:
        repository = read_repository(here)
        plan = plan_of_repository(repository, root=root)
        nothing = (
            "there are no tests here, and no checks whose tools are installed; write todos as a list with "
            f"check boxes, and run: {program()} init --from TODO.md"
        )
        missing = [f"- {each.cmd} ({each.source})" for each in repository.checks if not each.is_installed]
        notes += ["Left out, as their tools are not installed here:", *missing] if missing else []
    if not plan.items:
        complain(nothing)
        return Status.FOUND
    heading = (
        "Made by planverify init. Verify it: planverify verify. Show what comes next: planverify next.",
        "Edit it freely: a todo is one piece of work, and verify is the command that proves it done.",
        "A todo with requires_testing: false is not verified: replace that by verify: COMMAND.",
    )
    write_plans({output: plan_text(plan, heading, notes)})
    for each in notes if format_of(output) == "json" else ():  # which has no comments
        complain(each)
    return _write_agents(output) if agents and output != STANDARD_OUTPUT else Status.OK


def _write_agents(plan: Path) -> int:
    """Add the section on verification to ``AGENTS.md``, or update it."""
    try:
        before = AGENTS.read_text(encoding="utf-8") if AGENTS.exists() else ""
    except UnicodeDecodeError:
        raise UsageMistake(
            f"{AGENTS}: it is not text in UTF-8; convert it, or leave out --agents"
        ) from None
    page = with_section(before, str(plan))
    if page == before:
        say(f"{AGENTS} is up to date")
        return Status.OK
    write_file(AGENTS, page, mode=None)
    # Otherwise the next run would blame a todo for the change.
    remember_written(AGENTS)
    say(f"wrote {AGENTS}: how work is verified, what comes next, what must not be edited")
    return Status.OK


def with_section(page: str, plan: str) -> str:
    """Return the page with the section for ``plan``, in place of an earlier one, else at the end.

    Raises ``UsageMistake`` if the page has one of the markers without the other behind or before it.
    """
    section = SECTION.read_text(encoding="utf-8").format(plan=plan)
    if BEGIN not in page and END not in page:
        gap = "" if not page else "\n" if page.endswith("\n") else "\n\n"
        return f"{page}{gap}{section}"
    before, _, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not ended:
        raise UsageMistake(f"{AGENTS}: there is no {BEGIN} with {END} below it; add both lines, or none")
    return f"{before}{section.rstrip()}{after}"


# -- new -----------------------------------------------------------------------------------------------


@command("Exit status: 0 written, 2 wrong usage, or there is a plan already, 4 an unusable file.")
def new(
    goal: GoalArgument = "",
    template: Annotated[str, option("-t, --template NAME", "The template; --list shows all.")] = "feature",
    output: OutputOption = USUAL_OUTPUT,
    list_: Annotated[bool, option("--list", "List the templates.")] = False,
    force: ForceOption = False,
) -> None:
    """Write a plan for a goal: the steps of a template, with the files and commands of this repository.

    Every todo has criteria and allowed files. Tests are written first, by another role than the code.
    Nothing is executed.
    """
    names = template_names()
    if list_:
        screen = Screen()
        for name, purpose in names.items():
            screen.labelled(name, purpose, indent=0, room=max(map(len, names)) + 2)
        screen.show()
        return
    text = _checked_goal(goal)
    if template not in names:
        hint = nearest(template, names, "the templates are")
        raise UsageMistake(f"--template {template}: unknown template; {hint}")
    refuse_existing(output, force=force)
    here = Path.cwd()
    values = read_values(text, here) | {"root": root_for(here / output, here)}
    heading = f"# Made by {program()} new --template {template}. Edit it freely.\n"
    write_plans({output: heading + fill_template(template, values)})


def _checked_goal(goal: str) -> str:
    """Return a goal of the command line or, for ``-``, of standard input.

    Raises ``UsageMistake`` if it is empty, too long, or the name of a file.
    """
    if goal != "-" and os.path.isfile(goal):
        raise UsageMistake(f"{goal} is a file; to read the goal from it, write - < {shlex.quote(goal)}")
    # One character more than allowed, each of four bytes at most, shows that the goal is too long.
    stdin, size = sys.stdin, 4 * (LONGEST_GOAL + 1)
    text = stdin.buffer.read(size).decode(stdin.encoding, "replace") if goal == "-" else goal
    if not clean(text).strip():
        raise UsageMistake(f"name the goal: {program()} new 'Export orders as CSV'")
    if len(text) > LONGEST_GOAL:
        raise UsageMistake(
            f"the goal is longer than {LONGEST_GOAL:,} characters; split it into several plans"
        )
    return text


# -- decompose -----------------------------------------------------------------------------------------


@command(
    "Exit status: 0 written; 2 wrong usage, or there is a plan already; 4 an unusable file or "
    "model; 11 the goal could be planned in phases: add --phases or --flat."
)
def decompose(
    goal: GoalArgument,
    output: OutputOption = USUAL_OUTPUT,
    phases: Annotated[
        bool | None,
        typer.Option("--phases/--flat", help="Write a plan for each phase, or one plan for all."),
    ] = None,
    max_depth: Annotated[
        int, option("--max-depth N", "The greatest number of levels of plans.", min=1, max=5)
    ] = 3,
    after: Annotated[
        Path | None, option("--after PLAN", "Add what was done in this plan to the instructions.")
    ] = None,
    model: Annotated[
        str | None,
        option("--model PROVIDER:NAME", "Let a language model plan it; needs pytest-planverify[llm]."),
    ] = None,
    anew: Annotated[
        bool, option("--anew", "Plan it again, even if a plan for this goal was completed here before.")
    ] = False,
    force: ForceOption = False,
) -> int:
    """Break a goal into todos, using templates and the files of the repository.

    Headings and list items of the goal become todos; numbered items depend on each other. For a goal with
    phases, many todos or several domains, the command suggests a plan for each phase and asks. A goal that
    was completed here before gets its earlier plan. Nothing is executed.
    """
    text = _checked_goal(goal)
    refuse_existing(output, force=force)
    here, piece = Path.cwd(), read_goal(text)
    heading = f"Made by {program()} decompose. Edit it freely."
    if not anew and after is None and (cached := _cached(piece.title, output)) is not None:
        plan, when = cached
        write_plans({output: plan_text(plan, [f"Completed here on {when}; --anew plans it again."])})
        return Status.OK
    facts = read_values(piece.title, here)
    done = "" if after is None else _done_before(after)
    if model is not None:
        from planner.authoring.model_plans import plan_by_model

        plan = plan_by_model(model, text, facts, folder=here, output=here / output, done_before=done)
        keys = {**plan.extensions, "x-goal": piece.title, "x-model": model}
        write_plans({output: plan_text(plan.model_copy(update={"extensions": keys}), [heading])})
        return Status.OK

    def decomposed(depth: int) -> dict[Path, Plan]:
        return Decomposer(facts=facts, folder=here, done_before=done).plans(piece, here / output, depth)

    plans = decomposed(1)
    reasons = reasons_for_phases(piece, sum(len(plan.items) for plan in plans.values()))
    if phases is None and reasons and max_depth > 1:
        phases = _ask(piece, reasons)
        if phases is None:
            return Status.HUMAN_NEEDED
    if phases and max_depth > 1:
        if len(piece.parts) < 2:
            raise UsageMistake(
                "--phases: the goal has no phases; write them as headings or a list, or use --flat"
            )
        if not (here / output).resolve().is_relative_to(here):
            raise UsageMistake(
                f"-o {output}: a plan with phases must be in the repository; name a file in it"
            )
        plans = decomposed(max_depth)
    texts = {Path(os.path.relpath(path, here)): plan_text(plan, [heading]) for path, plan in plans.items()}
    for path in texts:
        refuse_existing(path, force=force)
    write_plans(texts)
    return Status.OK


def _ask(goal: Piece, reasons: list[str]) -> bool | None:
    """Print the proposed phases and ask whether to use them.

    Return ``None`` where the answer is neither yes nor no, or standard input is no terminal.
    """
    say(f"this could be planned in phases: {'; '.join(reasons)}")
    for number, part in enumerate(goal.parts, 1):
        inner = f" ({counted(len(list(part.leaves())), 'part')})" if part.parts else ""
        say(f"  {number}. {part.title}{inner}")
    # A program cannot answer; it gets the status for a person's decision.
    if not sys.stdin.isatty():
        complain("choose: --phases for a plan for each of these, or --flat for one plan")
        return None
    answer = typer.prompt("A plan for each? (yes/no/customize)", default="yes").strip().casefold()
    if answer in ("y", "yes", "n", "no"):
        return answer in ("y", "yes")
    say(f"write the phases as a list or as headings, and run: {program()} decompose - < goal.md")
    return None


def _cached(goal: str, output: Path) -> tuple[Plan, str] | None:
    """Return a plan for the same goal that was completed in this repository as it is now, and when.

    It is the plan as its run began. Return ``None`` if there is none. Plans with sub-plans are not reused.
    """
    from planner.cli.history import open_index_of, project_root

    here, root = Path.cwd(), project_root()
    if not (root / HOME).is_dir():
        return None
    wanted = goal.casefold().split()
    try:
        with open_index_of(root) as index:
            found = [each for each in index.runs() if each["goal"].casefold().split() == wanted]
        for each in (each for each in found if each["state"] == "completed"):
            with RunLog.read(Path(each["log"])) as log:
                plan: Plan = next(log.entries()).event.plan
            is_same = repository_fingerprint(here, plan) == each["fingerprint"]
            if is_same and not any(todo.has_sub_plan or todo.is_temporary for todo in plan.items):
                # Whether a todo was claimed to be done says nothing about the new work.
                todos = (todo.model_copy(update={"status": TodoStatus.OPEN}) for todo in plan.items)
                changes = {"root": root_for(here / output, here), "items": tuple(todos)}
                return plan.model_copy(update=changes), moment(each["opened"])
    except (PlannerError, OSError, ValueError):
        return None  # an unreadable cache must not prevent planning
    return None


def _done_before(path: Path) -> str:
    """Return a list of the done todos of a plan, by the outcomes of its last run, as text for instructions.

    Raises ``UsageMistake`` if the plan was not verified, or none of its todos is done.
    """
    flat = load_flat(path)
    found = find_outcomes(flat.loaded, None, flat.files)
    if found.document is None:
        raise UsageMistake(f"--after {path}: the plan was not verified yet; run first: {found.verify}")
    done = {each.todo_id for each in found.document.outcomes if state_of(each) is TodoState.DONE}
    # Parents are left out, as the todos of their sub-plans are listed.
    todos = [todo for todo in flat.loaded.plan.items if todo.id in done and todo.id not in flat.children]
    if not todos:
        raise UsageMistake(f"--after {path}: no todo of the plan is done yet; run first: {found.verify}")
    lines = ["Done before:"]
    for todo in todos[-_MOST_DONE:]:
        files = f" ({', '.join(todo.allowed_files[:3])})" if todo.allowed_files else ""
        lines.append(f"- {one_line(todo.title, limit=120)}{files}")
    return "\n".join(lines)


# -- the files -----------------------------------------------------------------------------------------


def refuse_existing(output: Path, *, force: bool) -> None:
    """Raise ``UsageMistake`` if the output exists, or would hide a plan, and ``force`` is not set."""
    if output == STANDARD_OUTPUT or force:
        return
    # planverify.yaml has precedence over the other usual names, and would hide a plan with one of them.
    known = (usual_plan() if output == USUAL_OUTPUT else None) or output
    # A link to a missing file counts: writing would follow it.
    if os.path.lexists(known):
        raise UsageMistake(f"{known} exists already; name another file with -o, or add --force")


def write_plans(texts: dict[Path, str]) -> None:
    """Write plans once all of them have been parsed; print their size and the commands that continue.

    The first is the parent of the others. Raises ``PlanFileError`` if one of them could not be run.
    """
    texts = {path: in_format_of(path, text) for path, text in texts.items()}
    # What goes to standard output is loaded as the usual file.
    places = [USUAL_OUTPUT if path == STANDARD_OUTPUT else path for path in texts]
    plans = [load_plan_text(text, place).plan for place, text in zip(places, texts.values(), strict=True)]
    # The sub-plans first, so that the parent never names a file that does not exist.
    for path, text in reversed(texts.items()):
        write_file(path, text, mode=None)
    output = next(iter(texts))
    if output != STANDARD_OUTPUT:
        todos = counted(sum(not todo.has_sub_plan for plan in plans for todo in plan.items), "todo")
        below = f" in {counted(len(plans) - 1, 'phase')}" if len(plans) > 1 else ""
        # The commands find the usual plan by themselves.
        name = "" if usual_plan() == output else f" {shlex.quote(str(output))}"
        say(f"wrote {output}: {todos}{below}")
        say(f"read it, then:  {program()} next{name}")
        say(f"verify it:      planverify verify{name}")


# -- tools ---------------------------------------------------------------------------------------------

_HERE = {True: "yes", False: "no"}


@command("Exit status: 0 shown, 2 wrong usage.")
def tools() -> None:
    """List the tools of the catalog and the recipes, with what each runs."""
    recipes = [
        ("" if number else name, _HERE[is_runnable(each)], each)
        for name, commands in RECIPES.items()
        for number, each in enumerate(commands)
    ]
    rows: list[tuple[str, str, str, str]] = []
    for tool in TOOLS:
        words = [*tool.programs[:1], "|".join(tool.subcommands)] if tool.programs else []
        # Only the entry of Python has neither programs nor modules: it runs scripts of the project.
        runs = " ".join(filter(None, words)) or " ".join(f"python -m {each}" for each in tool.modules[:1])
        here = any(map(is_there, tool.programs)) or any(map(is_module_there, tool.modules)) or not runs
        rows.append((tool.name, tool.purpose, runs or "python FILE.py", _HERE[here]))
    screen = Screen()
    screen.table(("TOOL", "FOR", "RUNS", "HERE"), rows, apart=False)
    screen.table(("RECIPE", "HERE", "RUNS"), recipes)
    screen.show()
