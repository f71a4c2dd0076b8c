"""After source that does not compile: check its syntax first, and touch that file only."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from planner.catalog import Purpose
from planner.model.edits import AddCheck
from planner.model.plan import CommandSpec
from planner.rules.revision.facts import check_ids, judging_command, listed, takes_command
from planner.rules.revision.files import files_with_findings
from planner.rules.revision.narrowing import narrow_files
from planner.rules.revision.tool_commands import commands_of_plan, own_commands, python_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.model.edits import Edit
    from planner.rules.revision.situation import Situation

_PYTHON = (".py", ".pyi")
_TOOLS: dict[str, tuple[str, ...]] = {
    ".ts": ("tsc",),
    ".tsx": ("tsc",),
    ".mts": ("tsc",),
    ".cts": ("tsc",),
    ".js": ("tsc", "eslint"),
    ".jsx": ("tsc", "eslint"),
    ".mjs": ("tsc", "eslint"),
    ".cjs": ("tsc", "eslint"),
    ".rs": ("cargo",),
    ".go": ("go",),
    ".c": ("make", "cmake"),
    ".cc": ("make", "cmake"),
    ".cpp": ("make", "cmake"),
    ".h": ("make", "cmake"),
    ".hpp": ("make", "cmake"),
    ".java": ("mvn", "gradle"),
    ".kt": ("gradle", "mvn"),
    ".cs": ("dotnet",),
}
"""By suffix, the tools of the catalog that compile or parse such a file."""


def after_compilation_error(situation: Situation) -> Iterator[Edit]:
    """Puts a syntax check first and narrows the files."""
    files = files_with_findings(situation)
    yield from _check_syntax(situation, files)
    yield from narrow_files(
        situation,
        files,
        rule="compilation-narrows-files",
        why="what does not compile is",
        folders=False,
    )


def _check_syntax(situation: Situation, files: Sequence[str]) -> Iterator[AddCheck]:
    branch = situation.branch
    if branch is None or not files:
        return
    python = [file for file in files if file.endswith(_PYTHON)]
    cmd = _py_compile(situation, python) if python else _used_elsewhere(situation, files[0])
    if cmd is None or not takes_command(branch, cmd):
        return
    yield AddCheck(
        rule="compilation-checks-syntax-first",
        because=f"no test says anything before it compiles: {listed(python or files)}",
        todo_id=branch.id,
        check=CommandSpec(cmd=cmd),
    )


def _py_compile(situation: Situation, files: Sequence[str]) -> str:
    failing = (judging_command(situation, check_id) for check_id in check_ids(situation))
    python = python_of(next((spec.cmd for spec in failing if spec is not None), ""))
    paths = (f"./{file}" if file.startswith("-") else file for file in files)
    return shlex.join([*python, "-m", "py_compile", *paths])


def _used_elsewhere(situation: Situation, file: str) -> str | None:
    """The command of the plan that compiles such files; none is invented."""
    tools = _TOOLS.get(file[file.rfind(".") :].lower(), ())
    for command in (*own_commands(situation), *commands_of_plan(situation.plan)):
        if command.tool.name in tools and command.tool.purpose is not Purpose.TEST:
            return command.text
    return None
