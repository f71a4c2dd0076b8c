"""After a type error: a type checker looks at the file before the tests run again."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from planner.catalog import TOOLS, Purpose
from planner.model.edits import AddCheck
from planner.model.plan import CommandSpec
from planner.rules.revision.facts import listed, takes_command
from planner.rules.revision.files import files_with_findings
from planner.rules.revision.tool_commands import about_files, commands_of_plan, own_commands

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.model.edits import Edit
    from planner.rules.revision.situation import Situation

_PYTHON = (".py", ".pyi")
_LAST_RESORT = "mypy"
_WHOLE_PROJECT = {"tsc": "npx --no-install tsc --noEmit", "cargo": "cargo check"}
"""How a checker that looks at whole projects is asked."""


def after_type_error(situation: Situation) -> Iterator[Edit]:
    """Puts a type checker first. One that the project is not known to use needs a person's approval."""
    branch = situation.branch
    if branch is None:
        return
    files = files_with_findings(situation)
    python = [file for file in files if file.endswith(_PYTHON)]
    for cmd, whose, is_known in _candidates(situation, python, other=bool(files) and not python):
        if takes_command(branch, cmd):
            because = f"{whose} looks at {listed(python or files) or 'the project'} before the tests do"
            yield AddCheck(
                rule="types-checked-before-retry",
                because=because,
                requires_approval=not is_known,
                todo_id=branch.id,
                check=CommandSpec(cmd=cmd),
            )
        return


def _candidates(
    situation: Situation, python: Sequence[str], *, other: bool
) -> Iterator[tuple[str, str, bool]]:
    """Commands, the best first: the todo's own, the plan's, those that the project is set up for."""
    for whose, commands in (
        ("the todo's own type checker", own_commands(situation)),
        ("the type checker that the plan uses elsewhere", commands_of_plan(situation.plan)),
    ):
        for command in commands:
            unfit = _WHOLE_PROJECT if python else _FOR_PYTHON if other else ()
            if command.tool.purpose is not Purpose.TYPE_CHECK or command.tool.name in unfit:
                continue
            asked = about_files(command, python) if python else None
            yield asked or command.text, whose, True
    for tool in TOOLS:
        for program in tool.programs:
            if tool.purpose is Purpose.TYPE_CHECK and program in situation.tools:
                if python and program in _FOR_PYTHON:
                    yield " ".join([program, *_quoted(python)]), f"{program}, which the project uses,", True
                elif other and program in _WHOLE_PROJECT:
                    yield _WHOLE_PROJECT[program], f"{program}, which the project uses,", True
    if python:
        yield (
            " ".join([_LAST_RESORT, *_quoted(python)]),
            f"{_LAST_RESORT}, which has to be installed for it,",
            False,
        )


_FOR_PYTHON = frozenset({"mypy", "pyright", "basedpyright"})


def _quoted(files: Sequence[str]) -> list[str]:
    return [shlex.quote(f"./{file}" if file.startswith("-") else file) for file in files]
