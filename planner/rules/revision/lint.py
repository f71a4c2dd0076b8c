"""After complaints of a linter: what it can mend by itself is mended in a step before the branch."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.catalog import Purpose
from planner.rules.revision.facts import listed, observed, quoted
from planner.rules.revision.files import files_with_findings
from planner.rules.revision.narrowing import narrow_files, narrowed
from planner.rules.revision.steps import add_step
from planner.rules.revision.tool_commands import own_commands, tool_index
from planner.rules.routing import role_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.catalog import Command
    from planner.model.edits import Edit
    from planner.rules.revision.situation import Situation


@dataclass(frozen=True, slots=True)
class _Fixer:
    """How a linter's command becomes one that mends: words taken out, words put behind the tool's own."""

    out: frozenset[str]
    add: tuple[str, ...] = ()
    subcommand: bool = False
    """The tool's subcommand follows its name and stays in front."""


def _fixer(out: str, add: str = "", *, subcommand: bool = False) -> _Fixer:
    return _Fixer(frozenset(out.split()), tuple(add.split()), subcommand)


_FIXERS: dict[str, _Fixer] = {
    "ruff": _fixer("--no-fix --diff -q --quiet", "--fix", subcommand=True),
    "ruff_format": _fixer("--check --diff", subcommand=True),
    "black": _fixer("--check --diff"),
    "isort": _fixer("--check --check-only -c --diff --df"),
    "eslint": _fixer("", "--fix"),
    "prettier": _fixer("--check -c --list-different -l", "--write"),
    "cargo": _fixer("", "--fix --allow-dirty", subcommand=True),
    "cargo_fmt": _fixer("--check", subcommand=True),
    "gofmt": _fixer("-l -d", "-w"),
    "dotnet": _fixer("--verify-no-changes", subcommand=True),
    "pre_commit": _fixer("", subcommand=True),
}
"""By the manner of complaining of the tool. What is not here cannot mend anything by itself."""


def after_lint_error(situation: Situation) -> Iterator[Edit]:
    """Adds a step that mends, and narrows the files to those complained of."""
    files = files_with_findings(situation)
    command = next((each for each in own_commands(situation) if each.tool.purpose is Purpose.LINT), None)
    fix = None if command is None else fixing_command(command)
    if fix is None and "ruff" in situation.tools:
        python = [file for file in files if file.endswith((".py", ".pyi"))]
        fix = shlex.join(["ruff", "check", "--fix", *python]) if python else None
    linter = command.text if command is not None else "the linter"
    yield from add_step(
        situation,
        rule="lint-fixed-first",
        because=f"{quoted(linter)} complains{_of(files)}, and what can be mended by itself needs no branch",
        title=f"Mend what {quoted(linter)} can mend by itself",
        task="AUTO_FIX" if fix else "FIX",
        hint=_hint(situation, linter, fix),
        role=role_for(situation.failure, situation.todo),
        target_file=files[0] if files else None,
        allowed_files=_allowed(situation, files),
    )
    yield from narrow_files(
        situation, files, rule="lint-narrows-files", why="the linter complains of", folders=False
    )


def fixing_command(command: Command) -> str | None:
    """The command that mends what another complains of; ``None`` where the tool cannot."""
    fixer = _FIXERS.get(command.tool.output)
    at = tool_index(command)
    if fixer is None or at is None or (command.tool.output == "cargo" and "clippy" not in command.argv):
        return None
    words = list(command.argv)
    behind = at + 1
    if fixer.subcommand:
        behind = (
            words.index(command.tool.subcommands[0], at) + 1
            if command.tool.subcommands[0] in words
            else at + 2
        )
    head, tail = words[:behind], [word for word in words[behind:] if word not in fixer.out]
    variables = [f"{name}={shlex.quote(value)}" for name, value in command.env]
    return " ".join([*variables, shlex.join([*head, *fixer.add, *tail])])


def _hint(situation: Situation, linter: str, fix: str | None) -> str:
    said = [
        f"{finding.path}:{finding.line} {finding.code or ''} {finding.message}"
        for observation in observed(situation)
        if observation.command is not None
        for finding in observation.command.findings
    ]
    findings = f"\nIt complains of: {listed(said, at_most=10)}." if said else ""
    if fix is not None:
        return f"Run this, then look at what it changed:\n{fix}{findings}"
    return f"{quoted(linter)} cannot mend this by itself: mend each complaint by hand.{findings}"


def _of(files: Sequence[str]) -> str:
    return f" of {listed(files)}" if files else ""


def _allowed(situation: Situation, files: Sequence[str]) -> tuple[str, ...]:
    """The files complained of, as far as the todo may change them."""
    old = situation.todo.allowed_files
    return narrowed(old, files, folders=False) or old or ()
