"""``planner init``: a first plan of a repository, or of a Markdown list with check boxes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from planner.cli.app import command
from planner.cli.arguments import option, usual_plan
from planner.cli.exits import Status, UsageMistake, complain, program, say
from planner.text.display import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

USUAL_OUTPUT = Path("planverify.yaml")
AGENTS = Path("AGENTS.md")
BEGIN = "<!-- planverify: begin -->"
END = "<!-- planverify: end -->"
SECTION = f"""\
{BEGIN}
## Work and its verification

The todos stand in `{{plan}}`. A todo is done when its criteria pass, and not before.

1. See what to do: `planverify next`; the instructions for one todo: `planverify next --brief TODO`.
2. Work only on that todo, and only in its `allowed_files`.
3. Verify it: `planverify verify {{plan}}::TODO`; at the end everything: `planverify verify`.
4. Run `planverify next` again and do what it says, until it says that the plan is completed.

Never edit for a green: tests that exist, `conftest.py`, the settings of pytest, `{{plan}}`, or anything
in `.planverify/`. If a criterion is wrong, say so and ask: `planverify next` names who answers.
{END}
"""


@command(
    "Exit status: 0 written, 1 there is nothing to make a plan of, 2 wrong usage, or there is a "
    "plan already, 4 a file that cannot be read or written."
)
def init(
    source: Annotated[
        Path | None, option("--from FILE.md", "Make it of the check boxes of a Markdown list.")
    ] = None,
    output: Annotated[
        Path, option("-o, --output FILE", "Where the plan goes; - is standard output.")
    ] = USUAL_OUTPUT,
    force: Annotated[bool, option("--force", "Replace the plan that is there.")] = False,
    agents: Annotated[
        bool, option("--agents", "Add, or renew, a section of AGENTS.md on how work is verified.")
    ] = False,
) -> int:
    """Make a first plan: a todo for each part of the tests, and for each check that the repository runs.

    Tests are those that pytest would find here; checks are the commands of tox, nox, CI, make and
    pre-commit, and of tools set up in pyproject.toml, as far as they are installed. With --from each check
    box is a todo: claimed where it is checked, proved by the command in its text or in a block below it;
    items below it are todos that it depends on. Nothing is executed.
    """
    from planner.planfile.file_writer import STANDARD_OUTPUT, write_file
    from planner.planfile.loader import load_plan_text

    is_shown = output == STANDARD_OUTPUT
    standing = None
    if not is_shown and not force:  # a plan of a usual name elsewhere would be found no more
        usual = usual_plan() if output == USUAL_OUTPUT else None
        standing = output if os.path.lexists(output) else usual
    if standing is not None and agents and source is None and output == USUAL_OUTPUT:
        return _write_agents(standing, f"{standing} stands as it is")
    if standing is not None:
        raise UsageMistake(
            f"there is a plan already, {standing}; name another file with -o, or add --force"
        )
    text, summary = _of_repository(output) if source is None else _of_list(source, output)
    if not text:
        complain(summary)
        return Status.FOUND
    load_plan_text(text, Path("plan.yaml") if is_shown else output)  # what is written can be run
    write_file(output, text, mode=None)
    if is_shown:
        return Status.OK
    if source is None and (unproved := _unproved(output)):
        text, summary = _of_repository(output, unproved)
        write_file(output, text, mode=None)
    say(f"wrote {output}: {summary}")
    if agents:
        _write_agents(output)
    name = "" if usual_plan() == output else f" {output}"
    say(f"verify it:  planverify verify{name}")
    say(f"then:       {program()} next{name}")
    return Status.OK


def _unproved(plan: Path) -> dict[str, str]:
    """Return the todos of a plan whose commands prove nothing, and why, unless that are all of them."""
    from planner.model.findings import Severity
    from planner.planfile.loader import load_plan
    from planner.planfile.validation import validate_plan

    errors = [each for each in validate_plan(plan) if each.severity is Severity.ERROR]
    found = {each.todo_id: each.message for each in errors if each.todo_id is not None}
    return found if len(found) < len(load_plan(plan).plan.items) else {}


def _of_repository(output: Path, unproved: Mapping[str, str] | None = None) -> tuple[str, str]:
    """Return the text of the plan and what it holds; no text, and why, where nothing was found."""
    from planner.authoring.first_plan import plan_of_repository, root_for
    from planner.authoring.repository import read_repository

    here = Path.cwd()
    repository = read_repository(here)
    checks = [each for each in repository.checks if each.is_installed]
    if not repository.tests and not checks:
        return "", (
            "there are no tests here, and no checks whose tools are installed; write todos as a list with "
            f"check boxes, and name it: {program()} init --from TODO.md"
        )
    text, plan = plan_of_repository(repository, root=root_for(here / output, here), unproved=unproved)
    files = repository.test_files
    told = [f"{counted(files, 'file')} with tests"] if files else []
    told += [each.cmd for each in checks]
    left_out = f"; {len(unproved)} left out that prove nothing" if unproved else ""
    return text, f"{counted(len(plan.items), 'todo')} for {', '.join(told)}{left_out}"


def _of_list(source: Path, output: Path) -> tuple[str, str]:
    from planner.authoring.first_plan import plan_of_list, root_for
    from planner.authoring.outline import read_outline
    from planner.authoring.repository import LARGEST_READ
    from planner.model.plan import MAX_TODOS

    here = Path.cwd()
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
            "make several lists of it"
        )
    text, plan = plan_of_list(page, here.name or "project", str(source), root=root_for(here / output, here))
    proved = sum(bool(each.verify or each.acceptance_criteria) for each in plan.items)
    return text, f"{count} todos of {source}, {proved} with a command"


def _write_agents(plan: Path, told: str | None = None) -> int:
    from planner.planfile.file_writer import write_file

    before = AGENTS.read_text(encoding="utf-8") if AGENTS.exists() else ""
    try:
        page = with_section(before, str(plan))
    except ValueError as error:
        raise UsageMistake(f"{AGENTS}: {error}; put both lines there, or remove them") from None
    if told is not None:
        say(told)
    if page == before:
        say(f"{AGENTS} says so already")
        return Status.OK
    write_file(AGENTS, page, mode=None)
    say(f"wrote {AGENTS}: how work is verified, what comes next, what is not to be edited")
    return Status.OK


def with_section(page: str, plan: str) -> str:
    """Return a page with the section in it: in place of the one between its markers, else at its end.

    Raises ``ValueError`` where one of the markers stands without the other.
    """
    section = SECTION.format(plan=plan)
    before, begun, rest = page.partition(BEGIN)
    if not begun:
        if END in page:
            raise ValueError(f"there is {END} without {BEGIN} before it")
        gap = "" if not page else "\n" if page.endswith("\n") else "\n\n"
        return f"{page}{gap}{section}"
    _, ended, after = rest.partition(END)
    if not ended:
        raise ValueError(f"there is {BEGIN} without {END} after it")
    return f"{before}{section.rstrip()}{after}"
