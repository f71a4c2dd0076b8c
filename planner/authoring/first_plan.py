"""Writes the text of a first plan, with comments that say how to go on."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.catalog.tools import Purpose
from planner.model.plan import MAX_TODOS
from planner.planfile.dump import plain, yaml_flow, yaml_scalar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from planner.authoring.markdown_list import ListItem, MarkdownList
    from planner.authoring.repository import FoundCheck, Repository

_LONGEST_ID = 40
_LONGEST_COMMENT = 160
_TITLES = {
    Purpose.LINT: ("style", "The code keeps to its style"),
    Purpose.TYPE_CHECK: ("types", "The types agree"),
    Purpose.BUILD: ("build", "The project builds"),
    Purpose.VALIDATE: ("checks", "The files are valid"),
    Purpose.TEST: ("tests", "The tests pass"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _FirstTodo:
    id: str
    title: str
    commands: Sequence[str]
    is_claimed: bool = False
    dependencies: Sequence[str] = ()
    comment: str | None = None


def plan_of_repository(
    repository: Repository, *, root: str = ".", unproved: Mapping[str, str] | None = None
) -> tuple[str, int]:
    """Return the text of a plan of what a repository offers, and how many todos it has.

    Todos that are ``unproved``, by their ids with the reason, are told in a comment instead.
    """
    unproved = unproved or {}
    every = list(_todos_of(repository))
    todos = [todo for todo in every if todo.id not in unproved]
    found = [f"{repository.test_files} files with tests"] if repository.test_files else []
    found += sorted({each.source for each in repository.checks if each.is_installed})
    missing = [f"{each.cmd}  ({each.source})" for each in repository.checks if not each.is_installed]
    empty = [f"{each.commands[0]}: {unproved[each.id]}" for each in every if each.id in unproved]
    after = [
        f"# Beside verify, a todo may say: allowed_files: [{', '.join(repository.sources) or 'src/**'}], "
        "dependencies: [ID], status: claimed."
    ]
    for why, lines in (("they are not installed here", missing), ("nothing would be proved", empty)):
        after += [f"# Left out, for {why}:"] if lines else []
        after += [f"#   {line}"[:_LONGEST_COMMENT] for line in lines]
    named = {cmd.split()[0] for todo in todos for cmd in todo.commands}
    tools = [plain(each) for each in repository.tools if each.name in named]
    return _text(repository.name, f"from {', '.join(found)}", todos, root, after, tools), len(todos)


def plan_of_list(page: MarkdownList, name: str, source: str, *, root: str = ".") -> tuple[str, int]:
    """Return the text of a plan of a list with check boxes, and how many todos it has."""
    taken: set[str] = set()
    todos: list[_FirstTodo] = []

    def add(item: ListItem) -> str:
        below = [add(child) for child in item.children]
        todo = _FirstTodo(
            id=fresh_id(item.title, taken),
            title=item.title,
            commands=item.commands,
            is_claimed=item.is_checked,
            dependencies=below,
            comment=None if item.commands or below else f"line {item.line} names no command",
        )
        todos.append(todo)
        return todo.id

    for item in page.items:
        add(item)
    after: list[str] = []
    if any(not todo.commands for todo in todos):
        after = ["# Where requires_testing is false nothing is verified: put verify: COMMAND in its place."]
    return _text(page.title or name, f"from {source}", todos, root, after), len(todos)


def count_items(items: Sequence[ListItem]) -> int:
    """Return how many items there are, with those below them."""
    return sum(1 + count_items(item.children) for item in items)


def is_too_long(page: MarkdownList) -> bool:
    """Return whether a list has more items than a plan may have todos."""
    return count_items(page.items) > MAX_TODOS


def root_for(output: Path, folder: Path) -> str:
    """Return the ``root`` of a plan in a file so that its paths are relative to a folder."""
    return os.path.relpath(folder, output.parent).replace(os.sep, "/")


def _todos_of(repository: Repository) -> Iterator[_FirstTodo]:
    taken: set[str] = set()
    for group in repository.tests:
        todo_id = fresh_id(group.name, taken)
        yield _FirstTodo(id=todo_id, title=f"{group.place} passes", commands=[group.cmd])
    by_purpose: dict[Purpose, list[FoundCheck]] = {}
    for check in repository.checks:
        if check.is_installed:
            by_purpose.setdefault(check.purpose, []).append(check)
    for purpose, checks in by_purpose.items():
        name, title = _TITLES[purpose]
        yield _FirstTodo(
            id=fresh_id(name, taken),
            title=title,
            commands=[each.cmd for each in checks],
            comment=", ".join(dict.fromkeys(each.source for each in checks)),
        )


def fresh_id(title: str, taken: set[str]) -> str:
    """Return an id of the words of a title that no other todo has."""
    words = re.findall(r"[a-z0-9_](?:[a-z0-9_.]*[a-z0-9_])?", title.lower())
    base = "-".join(words)
    if len(base) > _LONGEST_ID:
        base = base[: _LONGEST_ID + 1].rpartition("-")[0] or base[:_LONGEST_ID].rstrip(".")
    base = base or "todo"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    taken.add(name)
    return name


def _text(
    name: str,
    origin: str,
    todos: Sequence[_FirstTodo],
    root: str,
    after: Sequence[str],
    tools: Sequence[dict[str, Any]] = (),
) -> str:
    lines = [
        f"# Made by planverify init {_one_line(origin)}. Verify it: planverify verify",
        "# Say what comes next: planverify next. Edit it as you like: a todo is one piece of work, and",
        "# verify is the command that proves it done.",
        f"todo_list_id: {_scalar(fresh_id(name, set()))}",
        f"workflow_name: {_scalar(name)}",
        *([] if root == "." else [f"root: {_scalar(root)}"]),
        *(["metadata:", f"  tools: {yaml_flow(tools)}"] if tools else []),
        "items:",
    ]
    for todo in todos:
        comment = "" if todo.comment is None else f"  # {_one_line(todo.comment)}"
        lines.append(f"  - id: {_scalar(todo.id)}{comment}")
        lines.append(f"    title: {_scalar(todo.title)}")
        if todo.is_claimed:
            lines.append("    status: claimed")
        if todo.dependencies:
            lines.append(f"    dependencies: [{', '.join(map(_scalar, todo.dependencies))}]")
        if len(todo.commands) == 1:
            lines.append(f"    verify: {_scalar(todo.commands[0])}")
        elif todo.commands:
            lines += ["    acceptance_criteria:", "      tests:"]
            lines += [f"        - {_scalar(cmd)}" for cmd in todo.commands]
        else:
            lines.append("    requires_testing: false")
    return "\n".join([*lines, *map(_one_line, after)]) + "\n"


def _scalar(text: str) -> str:
    """Return a text as YAML holds it on one line, quoted where it would be read as something else."""
    return yaml_scalar(_one_line(text))


def _one_line(text: str) -> str:
    """Return a text without what breaks a line or moves a cursor."""
    return "".join(char if char.isprintable() else " " for char in text)
