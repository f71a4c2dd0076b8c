"""Commands made from those of the plan: fewer tests, one file to check, a linter that fixes."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from planner.catalog import Purpose
from planner.catalog.commands import MAX_COMMAND_LENGTH
from planner.policy.criteria import commands_of
from planner.revise.situation import below_root, parsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.catalog import Command
    from planner.model.plan import CommandSpec
    from planner.revise.situation import Situation

MAX_IDS = 20
"""Of more failing tests their files are run."""

_WHOLE = frozenset(
    {"--lf", "--last-failed", "--sw", "--stepwise", "--pyargs", "--cov-fail-under", "--json-report-omit"}
    | {"--collect-only", "--collectonly", "--co", "--looponfail", "-f"}
)
"""With these a command means something else, or cannot pass, when fewer tests are named."""

_FIXERS = {
    "ruff": ("--no-fix --diff -q --quiet", "--fix"),
    "ruff_format": ("--check --diff", ""),
    "black": ("--check --diff", ""),
    "isort": ("--check --check-only -c --diff --df", ""),
    "eslint": ("", "--fix"),
    "prettier": ("--check -c --list-different -l", "--write"),
    "pre_commit": ("", ""),
}
"""By how a tool complains, the words to take out of its command and to add, so that it fixes."""

_TYPE_CHECKERS = ("mypy", "pyright", "basedpyright")
PYTHON = (".py", ".pyi")


def isolated_commands(situation: Situation) -> tuple[CommandSpec, ...]:
    """Return the commands that run the failing tests and nothing else; none where none shows them."""
    wanted, checks = situation.failing_tests, situation.outcome.checks
    own = {check.id: [each.nodeid for each in check.tests if each.nodeid in wanted] for check in checks}
    judged = {check.id for check in checks if check.tests}
    shown = [name for name in own if own[name] or name in situation.check_ids]
    shown += [name for name in situation.check_ids if name not in own]
    if not shown:  # a failure that names no criterion: what is red, else what selects one of the tests
        shown = [check.id for check in checks if check.counts_as.is_red]
    if not shown:
        commands = ((where, parsed(spec.cmd)) for where, spec in commands_of(situation.todo))
        shown = [
            where
            for where, command in commands
            if command and any(_as_selected(each, command) for each in wanted)
        ]
    found: dict[str, CommandSpec] = {}
    for check_id in shown:
        spec = situation.command_of(check_id)
        if spec is not None:
            spec = narrowed_command(spec, own[check_id] if check_id in judged else wanted)
            found.setdefault(spec.cmd, spec)
    return tuple(found.values())


def narrowed_command(spec: CommandSpec, nodeids: Sequence[str]) -> CommandSpec:
    """Return a criterion's command with only these tests; as it was, where it cannot name them."""
    command = parsed(spec.cmd)
    if command is None or command.pytest is None or command.pytest.guessed:
        return spec
    if _WHOLE & {word.partition("=")[0] for word in command.pytest.args}:
        return spec
    named = [name for nodeid in nodeids if (name := _as_selected(nodeid, command)) is not None]
    files = list(dict.fromkeys(nodeid.partition("::")[0] for nodeid in named))
    # Where the command selects less than whole files, these would be too much.
    by_id = {each.partition("::")[0] for each in command.pytest.selections if "::" in each}
    for chosen in (named, files if by_id.isdisjoint(files) else []):
        cmd = with_selections(command, chosen) if 0 < len(chosen) <= MAX_IDS else None
        if cmd is not None:
            return spec if cmd == spec.cmd else spec.model_copy(update={"cmd": cmd})
    return spec


def with_selections(command: Command, selections: Sequence[str]) -> str | None:
    """Return a pytest command with other selections; ``None`` where it would not mean just that."""
    run = command.pytest
    assert run is not None
    # A selection may also be the value of an option: which of the two words goes shows only afterwards.
    for step in (1, -1):
        rest, gone = [word for word in run.args if word != "--"][::step], list(run.selections[::step])
        kept = [word for word in rest if not (gone and word == gone[0] and gone.pop(0))][::step]
        text = _text(command, *run.launcher, *selections, *kept)
        new = parsed(text) if len(text) <= MAX_COMMAND_LENGTH else None
        if new is None or new.pytest is None or new.env != command.env:
            continue
        if new.pytest == replace(run, args=new.pytest.args, selections=tuple(selections)):
            return text
    return None


def _text(command: Command, *words: str) -> str:
    """Return words as a command line, with the variables of another command in front."""
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in command.env), shlex.join(words)])


def _as_selected(nodeid: str, command: Command) -> str | None:
    """Return a node id as the command would have to name it; ``None`` where it selects no such file."""
    path, colons, name = nodeid.partition("::")
    if below_root(path) != path or not colons or command.pytest is None:
        return None
    named = (each.partition("::")[0] for each in command.pytest.selections)
    selections = [each.removeprefix("./").rstrip("/") for each in named]
    if not selections or any(each in ("", ".", path) or path.startswith(f"{each}/") for each in selections):
        return nodeid
    # Some outcomes name a test relative to the folder of the tests.
    return next((f"{each}::{name}" for each in selections if each.endswith(f"/{path}")), None)


# -- checks before the tests ---------------------------------------------------------------------------


def syntax_check(situation: Situation, files: Sequence[str]) -> str | None:
    """Return the command that compiles files of Python; ``None`` where there are none."""
    python = [_no_option(file) for file in files if file.endswith(PYTHON)]
    failing = next((spec.cmd for spec in situation.failing_commands()), "")
    return shlex.join([*python_of(failing), "-m", "py_compile", *python]) if python else None


def python_of(cmd: str) -> tuple[str, ...]:
    """Return the interpreter that runs a command's pytest, as far as the command names it."""
    command = parsed(cmd)
    run = None if command is None else command.pytest
    if run is None:
        return ("python",)
    if run.as_module:
        words = run.launcher[:-2]
        return words if words and PurePosixPath(words[-1]).name.startswith("python") else ("python",)
    # These start an interpreter as they start any tool.
    is_runner = run.launcher[0] in ("uv", "poetry", "pdm", "pipenv", "rye")
    return (*run.launcher[:-1], "python") if is_runner else ("python",)


def type_check(situation: Situation, files: Sequence[str]) -> tuple[str, str, bool] | None:
    """Return a command that checks types, whose it is, and whether the project uses it already."""
    for command in situation.known_commands():
        if command.tool.purpose is Purpose.TYPE_CHECK:
            return command.text, "the type checker of the plan", True
    python = [_no_option(file) for file in files if file.endswith(PYTHON)]
    if not python:
        return None
    for program in _TYPE_CHECKERS:
        if program in situation.tools:
            return shlex.join([program, *python]), f"{program}, which the project uses,", True
    return shlex.join(["mypy", *python]), "mypy, which has to be installed for it,", False


def fixing_command(command: Command) -> str | None:
    """Return the command that fixes what a linter complains of; ``None`` where the tool cannot."""
    argv, tool = command.argv, command.tool
    names = (PurePosixPath(word).name for word in argv)
    at = next((at for at, name in enumerate(names) if name in (*tool.programs, *tool.modules)), None)
    if tool.output not in _FIXERS or at is None:
        return None
    out, add = _FIXERS[tool.output]
    behind = next((at + 1 for at, word in enumerate(argv) if word in tool.subcommands), at + 1)
    tail = [word for word in argv[behind:] if word not in out.split()]
    return _text(command, *argv[:behind], *add.split(), *tail)


def _no_option(path: str) -> str:
    return f"./{path}" if path.startswith("-") else path
