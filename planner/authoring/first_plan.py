"""First plans: from the tests and checks of a repository, or from a Markdown list with check boxes.

Plans are returned as YAML text with comments for the person who will edit them, and as values.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from planner.catalog.tools import Purpose
from planner.model.plan import Plan, Todo
from planner.planfile.writer import dump_plan, plain
from planner.policy.criteria import commands_of
from planner.text.display import counted
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from planner.authoring.outline import Piece
    from planner.authoring.repository import FoundCheck, RepositoryFacts

_LONGEST_ID = 40
_LONGEST_TITLE = 120
_LONGEST_COMMENT = 160
_TITLES = {
    Purpose.LINT: ("style", "The code follows its style"),
    Purpose.TYPE_CHECK: ("types", "The types are correct"),
    Purpose.BUILD: ("build", "The project builds"),
    Purpose.VALIDATE: ("checks", "The files are valid"),
    Purpose.TEST: ("tests", "The tests pass"),
}
"""Id and title of the todo for the checks of one purpose."""


def plan_of_repository(
    repository: RepositoryFacts, *, root: str = ".", unproved: Mapping[str, str] | None = None
) -> tuple[str, Plan]:
    """Return a plan for the tests and installed checks of a repository, as text and as value.

    ``unproved`` maps ids of todos to the reason why they would prove nothing: these are left out, as are
    checks whose tools are not installed. Comments at the end list both.
    """
    unproved = unproved or {}
    # Ids are given before any todo is left out: `unproved` names todos by the ids of the complete plan.
    every = list(_todos_of(repository))
    todos = [_todo(*each) for each in every if each[0] not in unproved]
    found = [f"{counted(repository.test_files, 'file')} with tests"] if repository.test_files else []
    found += sorted({each.source for each in repository.checks if each.is_installed})
    after = [
        f"Besides verify, a todo may have: allowed_files: [{', '.join(repository.sources) or 'src/**'}], "
        "dependencies: [ID], status: claimed."
    ]
    missing = [f"{each.cmd}  ({each.source})" for each in repository.checks if not each.is_installed]
    empty = [f"{commands[0]}: {unproved[name]}" for name, _, commands in every if name in unproved]
    for why, lines in (("they are not installed here", missing), ("they would prove nothing", empty)):
        after += [f"Left out, for {why}:", *(f"  {line}" for line in lines)] if lines else []
    plan = make_plan(repository.name, todos, root=root, tools=[plain(each) for each in repository.tools])
    return _text(plan, f"from {', '.join(found)}", after), plan


def plan_of_list(page: Piece, name: str, source: str, *, root: str = ".") -> tuple[str, Plan]:
    """Return a plan for the check boxes of a page, as text and as value.

    Boxes below a box become its dependencies; a checked box is a claimed todo. Comments at the end name
    the lines without a command. ``source`` is the page's file, for the heading.
    """
    taken: set[str] = set()
    todos: list[dict[str, Any]] = []
    unproved: list[int] = []

    def add(item: Piece) -> str:
        # Children first: their ids are the dependencies of this todo.
        below = [add(child) for child in item.parts]
        more = {"status": "claimed"} if item.is_checked else {}
        more |= {"dependencies": below} if below else {}
        todos.append(_todo(fresh_id(item.title, taken), item.title, item.commands, more))
        if not item.commands and not below:
            unproved.append(item.line)
        return todos[-1]["id"]

    for item in page.boxes():
        add(item)
    after: list[str] = []
    if any(not todo.get("requires_testing", True) for todo in todos):
        after = ["Todos with requires_testing: false are not verified: replace it by verify: COMMAND."]
    if unproved:
        after.append(f"These lines name no command: {', '.join(map(str, unproved))}.")
    title = next((each.title for each in page.parts if each.is_phase), name)
    plan = make_plan(title, todos, root=root)
    return _text(plan, f"from {source}", after), plan


def make_plan(
    title: str,
    items: Sequence[Mapping[str, Any]],
    *,
    root: str,
    tools: Sequence[Mapping[str, Any]] = (),
    **more: Any,
) -> Plan:
    """Return a plan with todos as a plan file has them; its id and its name are made of the title.

    It declares those of the repository's own ``tools`` that a command of a todo runs.
    """
    todos = [Todo.model_validate(each) for each in items]
    named = {spec.cmd.split()[0] for todo in todos for _, spec in commands_of(todo)}
    used = [each for each in tools if each["name"] in named]
    name = short_title(title) or "Plan"
    fields = {
        "todo_list_id": fresh_id(name, set()),
        "workflow_name": name,
        **({} if root == "." else {"root": root}),
        **({"metadata": {"tools": used}} if used else {}),
    }
    return Plan.model_validate({**fields, **more, "items": todos})


def root_for(output: Path, folder: Path) -> str:
    """Return the ``root`` for a plan in ``output`` so that its paths are relative to ``folder``."""
    return os.path.relpath(folder, output.parent).replace(os.sep, "/")


def fresh_id(title: str, taken: set[str]) -> str:
    """Return an id made of the words of a title, numbered if it is in ``taken``, and add it there."""
    words = re.findall(r"[a-z0-9_](?:[a-z0-9_.]*[a-z0-9_])?", title.lower())
    base = "-".join(words)
    if len(base) > _LONGEST_ID:
        # Cut between words; only a single long word is cut inside.
        base = base[: _LONGEST_ID + 1].rpartition("-")[0] or base[:_LONGEST_ID].rstrip(".")
    base = base or "todo"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    taken.add(name)
    return name


def short_title(text: str) -> str:
    """Return a text as a title: one line of at most ``_LONGEST_TITLE`` characters."""
    line = one_line(text, limit=2 * _LONGEST_TITLE)
    return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1].rstrip()}…"


def _todos_of(repository: RepositoryFacts) -> Iterator[tuple[str, str, list[str]]]:
    """Yield id, title and commands of each todo: one for each group of tests and each purpose of checks."""
    taken: set[str] = set()
    for group in repository.tests:
        is_file = group.place.endswith(".py")
        where = "" if group.place == "." else f" in {group.place}"
        title = f"{group.place} passes" if is_file else f"The tests{where} pass"
        yield fresh_id(group.name, taken), title, [group.cmd]
    by_purpose: dict[Purpose, list[FoundCheck]] = {}
    for check in repository.checks:
        if check.is_installed:
            by_purpose.setdefault(check.purpose, []).append(check)
    for purpose, checks in by_purpose.items():
        name, title = _TITLES[purpose]
        yield fresh_id(name, taken), title, [each.cmd for each in checks]


def _todo(
    todo_id: str, title: str, commands: Sequence[str], more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a todo as a plan file has it; without commands it has ``requires_testing: false``."""
    proof: dict[str, Any] = {"requires_testing": False}
    if len(commands) == 1:
        proof = {"verify": commands[0]}
    elif commands:
        proof = {"acceptance_criteria": {"tests": [{"cmd": each} for each in commands]}}
    return {"id": todo_id, "title": short_title(title) or todo_id, **(more or {}), **proof}


def _text(plan: Plan, origin: str, after: Sequence[str]) -> str:
    """Return the text of a plan with comments before and after it."""
    heading = [
        f"Made by planverify init {origin}. Verify it: planverify verify",
        "Show what comes next: planverify next. Edit it freely: a todo is one piece of work, and",
        "verify is the command that proves it done.",
    ]
    # Comments contain titles and commands from outside: a line break in one would become YAML.
    before, behind = (
        "".join(f"# {''.join(char if char.isprintable() else ' ' for char in each)}\n" for each in lines)
        for lines in (heading, [each[:_LONGEST_COMMENT] for each in after])
    )
    return f"{before}{dump_plan(plan, format='yaml')}{behind}"
