"""Commands derived from those of a plan: with fewer tests, with the same interpreter, or fixing lint.

A derived command is parsed again and must mean exactly what was intended; otherwise there is none.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from planner.catalog import parse_command
from planner.catalog.commands import MAX_COMMAND_LENGTH
from planner.errors import CommandSyntaxError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.catalog import Command
    from planner.model.plan import CommandSpec

MAX_IDS = 20
"""Maximum number of selections in a narrowed command; above it, the tests' files are run instead."""

_WHOLE = frozenset(
    {"--lf", "--last-failed", "--sw", "--stepwise", "--pyargs", "--cov-fail-under", "--json-report-omit"}
    | {"--collect-only", "--collectonly", "--co", "--looponfail", "-f"}
)
"""Options with which a command means something else, or cannot pass, if it selects fewer tests."""

_FIXERS = {
    "ruff": ("--no-fix --diff -q --quiet", "--fix"),
    "ruff_format": ("--check --diff", ""),
    "black": ("--check --diff", ""),
    "isort": ("--check --check-only -c --diff --df", ""),
    "eslint": ("", "--fix"),
    "prettier": ("--check -c --list-different -l", "--write"),
    "pre_commit": ("", ""),
}
"""Words to remove from the command of a linter or formatter, and words to add, so that it fixes.

The key is the tool's output format.
"""

PYTHON = (".py", ".pyi")

_MAX_PATH = 4_096
_UNUSUAL = re.compile(r"^[/\\~]|^[A-Za-z]:|[\x00-\x1f\x7f\\\ud800-\udfff]")
_FOREIGN = frozenset({"site-packages", "dist-packages", "node_modules", ".venv", "venv", ".tox", ".nox"})
"""Folders of installed code."""

_RECORDS = frozenset({".planverify", "diagnostics"})
"""Top-level folders in which runs are recorded."""


def below_root(path: str | None) -> str | None:
    """Return a path of an outcome in its plain form; ``None`` if it is not one of the project's files.

    Absolute paths, paths that lead out of the root, folders, installed code and records of runs are not.
    """
    if not path or len(path) > _MAX_PATH or _UNUSUAL.search(path):
        return None
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or path.endswith("/"):
        return None
    return None if parts[0] in _RECORDS or not _FOREIGN.isdisjoint(parts) else "/".join(parts)


def parsed(cmd: str) -> Command | None:
    """Return the parsed command, or ``None`` if it cannot be run."""
    try:
        return parse_command(cmd)
    except CommandSyntaxError:
        return None


def narrowed_command(spec: CommandSpec, nodeids: Sequence[str]) -> CommandSpec:
    """Return a criterion's command restricted to these tests; unchanged if it cannot select them.

    Of too many tests, their files are selected, unless the command itself selects single tests of them.
    """
    command = parsed(spec.cmd)
    if command is None or command.pytest is None or command.pytest.guessed:
        return spec
    if _WHOLE & {word.partition("=")[0] for word in command.pytest.args}:
        return spec
    named = [name for nodeid in nodeids if (name := as_selected(nodeid, command)) is not None]
    files = list(dict.fromkeys(nodeid.partition("::")[0] for nodeid in named))
    # If the command selects single tests of a file, the whole file would be more than it runs now.
    by_id = {each.partition("::")[0] for each in command.pytest.selections if "::" in each}
    for chosen in (named, files if by_id.isdisjoint(files) else []):
        cmd = with_selections(command, chosen) if 0 < len(chosen) <= MAX_IDS else None
        if cmd is not None:
            return spec if cmd == spec.cmd else spec.model_copy(update={"cmd": cmd})
    return spec


def with_selections(command: Command, selections: Sequence[str]) -> str | None:
    """Return a pytest command with other selections; ``None`` if anything else would change, too.

    ``command`` must run pytest.
    """
    run = command.pytest
    assert run is not None
    # A word equal to a selection may also be the value of an option. The first and the last such words
    # are tried; only parsing the result shows which of them was the selection.
    for step in (1, -1):
        rest, removed = [word for word in run.args if word != "--"][::step], list(run.selections[::step])
        kept = [word for word in rest if not (removed and word == removed[0] and removed.pop(0))][::step]
        text = _text(command, *run.launcher, *selections, *kept)
        new = parsed(text) if len(text) <= MAX_COMMAND_LENGTH else None
        if new is None or new.pytest is None or new.env != command.env:
            continue
        if new.pytest == replace(run, args=new.pytest.args, selections=tuple(selections)):
            return text
    return None


def _text(command: Command, *words: str) -> str:
    """Return words as a command line, preceded by the environment variables of ``command``."""
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in command.env), shlex.join(words)])


def as_selected(nodeid: str, command: Command) -> str | None:
    """Return a node id as the command has to name it; ``None`` if the command does not select its file.

    ``None`` also for paths outside of the project, and for a command that does not run pytest.
    """
    path, colons, name = nodeid.partition("::")
    if below_root(path) != path or not colons or command.pytest is None:
        return None
    named = (each.partition("::")[0] for each in command.pytest.selections)
    selections = [each.removeprefix("./").rstrip("/") for each in named]
    if not selections or any(each in ("", ".", path) or path.startswith(f"{each}/") for each in selections):
        return nodeid
    # Some outcomes name a test relative to the folder of the tests.
    return next((f"{each}::{name}" for each in selections if each.endswith(f"/{path}")), None)


def python_of(cmd: str) -> tuple[str, ...]:
    """Return the words that start the interpreter of a pytest command; ``python`` if it names none."""
    command = parsed(cmd)
    run = None if command is None else command.pytest
    if run is None:
        return ("python",)
    if run.as_module:
        words = run.launcher[:-2]
        return words if words and PurePosixPath(words[-1]).name.startswith("python") else ("python",)
    # Runners start an interpreter in the same environment as they start pytest.
    is_runner = run.launcher[0] in ("uv", "poetry", "pdm", "pipenv", "rye")
    return (*run.launcher[:-1], "python") if is_runner else ("python",)


def fixing_command(command: Command) -> str | None:
    """Return the command that fixes the findings of a linter; ``None`` if the tool cannot fix any."""
    argv, tool = command.argv, command.tool
    names = (PurePosixPath(word).name for word in argv)
    at = next((at for at, name in enumerate(names) if name in (*tool.programs, *tool.modules)), None)
    if tool.output not in _FIXERS or at is None:
        return None
    dropped, added = _FIXERS[tool.output]
    tail_start = next((at + 1 for at, word in enumerate(argv) if word in tool.subcommands), at + 1)
    tail = [word for word in argv[tail_start:] if word not in dropped.split()]
    return _text(command, *argv[:tail_start], *added.split(), *tail)


def no_option(path: str) -> str:
    """Return a path in a form that no program parses as an option."""
    return f"./{path}" if path.startswith("-") else path
