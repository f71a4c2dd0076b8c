"""``planner init``, ``new`` and ``decompose``: write a plan for a repository, from a template, for a goal.

The plans are made by :mod:`planner.authoring`. Every plan is loaded before it is written, so that no
command leaves a file that could not be verified, and none replaces an existing plan without ``--force``.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.authoring.decomposition import Decomposer, reasons_for_phases
from planner.authoring.first_plan import plan_of_list, plan_of_repository, root_for
from planner.authoring.outline import LONGEST_GOAL, read_goal, read_outline
from planner.authoring.plan_templates import PlanTemplates, read_values
from planner.authoring.repository import LARGEST_READ, read_repository
from planner.cli.app import command
from planner.cli.arguments import nearest, option, usual_plan
from planner.cli.exits import Status, UsageMistake, complain, program, say
from planner.cli.screen import Screen
from planner.errors import PlannerError
from planner.model.findings import Severity
from planner.model.plan import MAX_TODOS, Plan
from planner.model.verdicts import TodoState
from planner.planfile.file_writer import STANDARD_OUTPUT, write_file
from planner.planfile.latest_outcomes import find_outcomes
from planner.planfile.left_files import remember_written
from planner.planfile.loader import load_plan, load_plan_text
from planner.planfile.plan_folder import HOME
from planner.planfile.project_facts import repository_fingerprint
from planner.planfile.tree import load_flat
from planner.planfile.validation import validate_plan
from planner.planfile.writer import dump_plan, plain
from planner.policy.outcomes import state_of
from planner.store.run_log import RunLog
from planner.text.display import counted, moment
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.authoring.outline import Piece

USUAL_OUTPUT = Path("planverify.yaml")
AGENTS = Path("AGENTS.md")
BEGIN = "<!-- planverify: begin -->"
END = "<!-- planverify: end -->"
SECTION = f"""\
{BEGIN}
## Work and its verification

The todos are in `{{plan}}`. A todo is done when its criteria pass, and not before.

1. Show what to do: `planverify next`; the instructions for one todo: `planverify next --brief TODO`.
2. Work only on that todo, and only in its `allowed_files`.
3. Verify it: `planverify verify {{plan}}::TODO`; at the end, verify everything: `planverify verify`.
4. Run `planverify next` again and follow it, until it shows that the plan is completed.

Never edit these to make a check pass: existing tests, `conftest.py`, the settings of pytest, `{{plan}}`,
or anything in `.planverify/`. If a criterion is wrong, report it: `planverify next` shows who decides.
{END}
"""
_MOST_DONE = 20
"""The most finished todos that ``--after`` lists for those who work on the new plan."""

OutputOption = Annotated[Path, option("-o, --output FILE", "The file to write; - is standard output.")]
ForceOption = Annotated[bool, option("--force", "Replace an existing plan.")]
TemplatesOption = Annotated[Path | None, option("--templates DIR", "A folder with your templates.")]


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
    _refuse_existing(output, force=force)
    text, summary = _plan_of_repository(output) if source is None else _plan_of_list(source, output)
    if not text:
        complain(summary)
        return Status.FOUND
    _load(output, text)
    if source is None and output != STANDARD_OUTPUT:
        # Validation reads the plan from its file, so it is written once before its todos are filtered.
        write_file(output, text, mode=None)
        if unproved := _find_unproved(output):
            text, summary = _plan_of_repository(output, unproved)
    _write({output: text}, summary)
    return _write_agents(output) if agents and output != STANDARD_OUTPUT else Status.OK


def _find_unproved(plan: Path) -> dict[str, str]:
    """Return the todos with an error of validation, and its message; empty if all todos have one.

    In that case the plan is kept as it is: without these todos it would be empty.
    """
    errors = [each for each in validate_plan(plan) if each.severity is Severity.ERROR]
    found = {each.todo_id: each.message for each in errors if each.todo_id is not None}
    return found if len(found) < len(load_plan(plan).plan.items) else {}


def _plan_of_repository(output: Path, unproved: Mapping[str, str] | None = None) -> tuple[str, str]:
    """Return the text of a plan for the repository and a summary of it.

    The text is empty where the repository has neither tests nor checks; the summary gives the reason then.
    ``unproved`` todos, as of :func:`_find_unproved`, are left out.
    """
    here = Path.cwd()
    repository = read_repository(here)
    checks = [each.cmd for each in repository.checks if each.is_installed]
    if not repository.tests and not checks:
        return "", (
            "there are no tests here, and no checks whose tools are installed; write todos as a list with "
            f"check boxes, and run: {program()} init --from TODO.md"
        )
    text, plan = plan_of_repository(repository, root=root_for(here / output, here), unproved=unproved)
    files = repository.test_files
    parts = ", ".join([*([f"{counted(files, 'file')} with tests"] if files else []), *checks])
    left_out = f"; {len(unproved)} left out because they prove nothing" if unproved else ""
    return text, f"{counted(len(plan.items), 'todo')} for {parts}{left_out}"


def _plan_of_list(source: Path, output: Path) -> tuple[str, str]:
    """Return the text of a plan for the check boxes of a Markdown file, and a summary of it.

    The text is empty if there are no check boxes. Raises ``UsageMistake`` if the file is too large or has
    more check boxes than a plan can have todos.
    """
    here = Path.cwd()
    # Refused, not cut: a plan of half a list would look complete.
    if source.stat().st_size > LARGEST_READ:
        raise UsageMistake(
            f"--from {source}: it is larger than {LARGEST_READ:,} bytes; name a shorter list"
        )
    page = read_outline(source.read_text(encoding="utf-8-sig", errors="replace"))
    count = page.count_boxes()
    if not count:
        return "", f"{source}: it has no check boxes; write each todo as a line: - [ ] Write the parser"
    if count > MAX_TODOS:
        raise UsageMistake(
            f"--from {source}: it has {count:,} check boxes, and a plan at most {MAX_TODOS:,} todos; "
            "split the list"
        )
    root = root_for(here / output, here)
    text, plan = plan_of_list(page, here.name or "project", str(source), root=root)
    proved = sum(bool(each.verify or each.acceptance_criteria) for each in plan.items)
    return text, f"{counted(count, 'todo')} of {source}, {proved} with a command"


def _write_agents(plan: Path) -> int:
    """Add the section on verification to ``AGENTS.md``, or update it."""
    before = AGENTS.read_text(encoding="utf-8") if AGENTS.exists() else ""
    try:
        page = with_section(before, str(plan))
    except ValueError as error:
        raise UsageMistake(f"{AGENTS}: {error}; add both lines, or remove them") from None
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

    Raises ``ValueError`` if the page has one of the markers without the other.
    """
    section = SECTION.format(plan=plan)
    if BEGIN not in page and END not in page:
        gap = "" if not page else "\n" if page.endswith("\n") else "\n\n"
        return f"{page}{gap}{section}"
    before, begun, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not begun or not ended:
        missing, there = (END, BEGIN) if begun else (BEGIN, END)
        raise ValueError(f"there is {there} without {missing}")
    return f"{before}{section.rstrip()}{after}"


# -- new -----------------------------------------------------------------------------------------------


@command(
    "Exit status: 0 written, 2 wrong usage, or there is a plan already, 4 an unusable template or file."
)
def new(
    goal: Annotated[str, typer.Argument(metavar="GOAL", help="The goal, in a sentence or a page.")] = "",
    template: Annotated[str, option("-t, --template NAME", "The template; --list shows all.")] = "feature",
    output: OutputOption = USUAL_OUTPUT,
    templates: TemplatesOption = None,
    list_: Annotated[bool, option("--list", "List the templates.")] = False,
    force: ForceOption = False,
) -> int:
    """Write a plan for a goal: the steps of a template, with the files and commands of this repository.

    Every todo has criteria and allowed files. Tests are written first, by another role than the code.
    Nothing is executed.
    """
    here = Path.cwd()
    if list_:
        screen = Screen()
        names = _templates(templates).names()
        for name, purpose in names.items():
            screen.labelled(name, purpose, indent=0, room=max(map(len, names)) + 2)
        screen.show()
        return Status.OK
    _require_goal(goal, f"{program()} new 'Export as CSV' --template feature")
    known = _templates(templates, template)
    _refuse_existing(output, force=force)
    values = read_values(goal, here) | {"root": root_for(here / output, here)}
    text = f"# Made by {program()} new --template {template}. Edit it freely.\n"
    text += known.fill(template, values)
    _write({output: text}, counted(len(_load(output, text).items), "todo"))
    return Status.OK


def _require_goal(goal: str, example: str) -> None:
    if not clean(goal).strip():
        raise UsageMistake(f"name the goal: {example}")


def _templates(folder: Path | None, name: str | None = None) -> PlanTemplates:
    """Return the templates, including those in ``folder``.

    Raises ``UsageMistake`` if there is no template ``name``.
    """
    known = PlanTemplates(folder)
    if name is not None and name not in (names := known.names()):
        hint = nearest(name, names, "the templates are")
        raise UsageMistake(f"--template {name}: unknown template; {hint}")
    return known


# -- decompose -----------------------------------------------------------------------------------------


@command(
    "Exit status: 0 written; 2 wrong usage, or there is a plan already; 4 an unusable file, template or "
    "model; 11 the goal could be planned in phases: add --phases or --flat."
)
def decompose(
    goal: Annotated[
        str, typer.Argument(metavar="GOAL", help="The goal: a sentence, a page, or - for standard input.")
    ],
    output: OutputOption = USUAL_OUTPUT,
    phases: Annotated[
        bool | None,
        typer.Option("--phases/--flat", help="Write a plan for each phase, or one plan for all."),
    ] = None,
    max_depth: Annotated[
        int, option("--max-depth N", "The greatest number of levels of plans.", min=1, max=5)
    ] = 3,
    first: Annotated[
        bool, option("--first", "Plan only the first phase in detail; plan the others after it.")
    ] = False,
    after: Annotated[
        Path | None, option("--after PLAN", "Add what was done in this plan to the instructions.")
    ] = None,
    template: Annotated[
        str | None,
        option("-t, --template NAME", "The template for every part. Default: chosen by its words."),
    ] = None,
    templates: TemplatesOption = None,
    model: Annotated[
        str | None,
        option("--model PROVIDER:NAME", "Let a language model plan it; needs pytest-planverify[llm]."),
    ] = None,
    retries: Annotated[
        int, option("--retries N", "How often the model may correct its plan.", min=0, max=20)
    ] = 3,
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
    here = Path.cwd()
    # One character more than allowed is enough to see that the goal is too long.
    text = sys.stdin.read(LONGEST_GOAL + 1) if goal == "-" else goal
    _require_goal(text, f"{program()} decompose 'Export orders as CSV'")
    if len(text) > LONGEST_GOAL:
        raise UsageMistake(
            f"the goal is longer than {LONGEST_GOAL:,} characters; split it into several plans"
        )
    _refuse_existing(output, force=force)
    known = _templates(templates, template)
    piece = read_goal(text)
    if not anew and after is None and (cached := _cached(piece.title, output)) is not None:
        plan, when = cached
        _write_decomposed({output: plan}, f"# Completed here on {when}; --anew plans it again.\n")
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
        raise UsageMistake(
            "--phases: the goal has no phases; write them as headings or a list, or use --flat"
        )
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
        plans = {output: _with_keys(plan, {"x-goal": piece.title, "x-model": model})}
    elif in_phases:
        if not (here / output).resolve().is_relative_to(here):
            raise UsageMistake(
                f"-o {output}: a plan with phases must be in the repository; name a file in it"
            )
        phased = decomposer.phased(piece, here / output, depth=max_depth, detailed=1 if first else None)
        plans = {Path(os.path.relpath(path, here)): plan for path, plan in phased.items()}
        for path in plans:
            _refuse_existing(path, force=force)
    else:
        plans = {output: decomposer.flat(piece, here / output)}
    _write_decomposed(plans, f"# Made by {program()} decompose. Edit it freely.\n")
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
                plan = _with_keys(plan, {"root": root_for(here / output, here), "x-goal": goal}, anew=True)
                return plan, moment(each["opened"])
    except (PlannerError, OSError, ValueError):
        return None  # an unreadable cache must not prevent planning
    return None


def _with_keys(plan: Plan, keys: Mapping[str, str], *, anew: bool = False) -> Plan:
    """Return the plan with further keys; with ``anew``, without the status of its todos."""
    values: dict[str, Any] = {**plain(plan), **keys}
    if anew:
        values["items"] = [
            {key: value for key, value in todo.items() if key != "status"} for todo in values["items"]
        ]
    # It is the default, and a plan file is read by people.
    if values.get("root") == ".":
        del values["root"]
    return type(plan).model_validate(values)


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


def _write_decomposed(plans: Mapping[Path, Plan], heading: str) -> None:
    leaves = sum(not todo.has_sub_plan for plan in plans.values() for todo in plan.items)
    below = f" in {counted(len(plans) - 1, 'phase')}" if len(plans) > 1 else ""
    texts = {path: heading + dump_plan(plan, format="yaml") for path, plan in plans.items()}
    _write(texts, f"{counted(leaves, 'todo')}{below}")


# -- the files -----------------------------------------------------------------------------------------


def _refuse_existing(output: Path, *, force: bool) -> None:
    """Raise ``UsageMistake`` if the output exists, or would hide a plan, and ``force`` is not set."""
    if output == STANDARD_OUTPUT or force:
        return
    # planverify.yaml has precedence over the other usual names, and would hide a plan with one of them.
    known = (usual_plan() if output == USUAL_OUTPUT else None) or output
    # A link to a missing file counts: writing would follow it.
    if os.path.lexists(known):
        raise UsageMistake(f"{known} exists already; name another file with -o, or add --force")


def _load(output: Path, text: str) -> Plan:
    """Parse the text of a plan. Raises ``PlanFileError`` if it could not be run."""
    return load_plan_text(text, USUAL_OUTPUT if output == STANDARD_OUTPUT else output).plan


def _write(texts: dict[Path, str], summary: str) -> None:
    """Write plans once all of them have been parsed; print ``summary`` and the commands that continue.

    The first is the parent of the others.
    """
    for path, text in texts.items():
        _load(path, text)
    # The sub-plans first, so that the parent never names a file that does not exist.
    for path, text in reversed(texts.items()):
        write_file(path, text, mode=None)
    output = next(iter(texts))
    if output != STANDARD_OUTPUT:
        # The commands find the usual plan by themselves.
        name = "" if usual_plan() == output else f" {shlex.quote(str(output))}"
        say(f"wrote {output}: {summary}")
        say(f"read it, then:  {program()} next{name}")
        say(f"verify it:      planverify verify{name}")
