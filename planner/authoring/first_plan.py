"""First plans: from the tests and checks of a repository, or from a Markdown list with check boxes.

Also the titles, ids and heads of all plans that are made here.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any
from unicodedata import combining, normalize

from planner.catalog.tools import Purpose
from planner.model.plan import Plan, Todo
from planner.planfile.loader import load_plan_text
from planner.planfile.writer import dump_plan, format_of
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from planner.authoring.outline import Piece
    from planner.authoring.repository import RepositoryFacts

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


def plan_of_repository(repository: RepositoryFacts, *, root: str = ".") -> Plan:
    """Return a plan with a todo for each group of tests, and for the installed checks of each purpose."""
    taken: set[str] = set()
    todos: list[dict[str, Any]] = []
    for group in repository.tests:
        is_file = group.place.endswith(".py")
        title = f"{group.place} passes" if is_file else f"The tests in {group.place} pass"
        if group.place in (".", "tests", "test"):
            title = "The tests pass"
        todos.append(_todo(fresh_id(group.name, taken), title, [group.cmd]))
    by_purpose: defaultdict[Purpose, list[str]] = defaultdict(list)
    for check in repository.checks:
        if check.is_installed:
            by_purpose[check.purpose].append(check.cmd)
    for purpose, commands in by_purpose.items():
        name, title = _TITLES[purpose]
        todos.append(_todo(fresh_id(name, taken), title, commands))
    return make_plan(repository.name, todos, root=root)


def plan_of_list(page: Piece, name: str, *, root: str = ".") -> Plan:
    """Return a plan for the check boxes of a page; ``name`` is its title where the page has none.

    Boxes below a box become its dependencies; a checked box is a claimed todo.
    """
    taken: set[str] = set()
    todos: list[dict[str, Any]] = []

    def add(item: Piece) -> str:
        # Children first: their ids are the dependencies of this todo.
        below = [add(child) for child in item.parts]
        todo = _todo(fresh_id(item.title, taken), item.title, item.commands)
        todo |= {"status": "claimed"} if item.is_checked else {}
        todo |= {"dependencies": below} if below else {}
        todos.append(todo)
        return todo["id"]

    for item in page.boxes():
        add(item)
    return make_plan(next((each.title for each in page.parts if each.is_phase), name), todos, root=root)


def make_plan(title: str, items: Sequence[Mapping[str, Any] | Todo], *, root: str, **more: Any) -> Plan:
    """Return a plan with todos as a plan file has them; its id and its name are made of the title."""
    todos = [Todo.model_validate(each) for each in items]
    name = short_title(title) or "Plan"
    fields = {
        "todo_list_id": fresh_id(name, set()),
        "workflow_name": name,
        **({} if root == "." else {"root": root}),
    }
    return Plan.model_validate({**fields, **more, "items": todos})


def plan_text(plan: Plan, heading: Iterable[str], after: Iterable[str] = ()) -> str:
    """Return the text of a plan file with comments before and after the plan."""
    # Comments contain texts from outside: a line break in one would become YAML.
    before, behind = (
        "".join(f"# {one_line(each, limit=_LONGEST_COMMENT)}\n" for each in lines)
        for lines in (heading, after)
    )
    return f"{before}{dump_plan(plan, format='yaml')}{behind}"


def in_format_of(path: Path, text: str) -> str:
    """Return the text of a plan in YAML, or in JSON, without its comments, if ``path`` ends in ``.json``.

    Raises :class:`planner.errors.PlanFileError` if the plan could not be run.
    """
    if format_of(path) == "yaml":
        return text
    return dump_plan(load_plan_text(text, path.with_suffix(".yaml")).plan, format="json")


def root_for(output: Path, folder: Path) -> str:
    """Return the ``root`` for a plan in ``output`` so that its paths are relative to ``folder``."""
    return os.path.relpath(folder, output.parent).replace(os.sep, "/")


def fresh_id(title: str, taken: set[str]) -> str:
    """Return an id made of the words of a title, numbered if it is in ``taken``, and add it there."""
    # Letters keep their place without their accents, which NFKD separates.
    plain = "".join(each for each in normalize("NFKD", title).casefold() if not combining(each))
    base = "-".join(re.findall(r"[a-z0-9_](?:[a-z0-9_.]*[a-z0-9_])?", plain))
    if len(base) > _LONGEST_ID:
        # Cut between words; only a single long word is cut inside.
        base = base[: _LONGEST_ID + 1].rpartition("-")[0] or base[:_LONGEST_ID].rstrip(".")
    name, number = base or "todo", 2
    while name in taken:
        name, number = f"{base or 'todo'}-{number}", number + 1
    taken.add(name)
    return name


def short_title(text: str) -> str:
    """Return a text as a title: one line of at most ``_LONGEST_TITLE`` characters."""
    line = one_line(text, limit=2 * _LONGEST_TITLE)
    return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1].rstrip()}…"


def _todo(todo_id: str, title: str, commands: Sequence[str]) -> dict[str, Any]:
    """Return a todo as a plan file has it; without commands it has ``requires_testing: false``."""
    proof: dict[str, Any] = {"requires_testing": False}
    if len(commands) == 1:
        proof = {"verify": commands[0]}
    elif commands:
        proof = {"acceptance_criteria": {"tests": list(commands)}}
    return {"id": todo_id, "title": short_title(title) or todo_id, **proof}
