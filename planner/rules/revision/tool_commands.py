"""The commands of a plan that are not pytest: which tools it uses, and how to ask them about one file."""

from __future__ import annotations

import shlex
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from planner.rules.criteria import commands_of
from planner.rules.revision.facts import check_ids, judging_command, understood

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.catalog import Command
    from planner.model.plan import Plan
    from planner.rules.revision.situation import Situation


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VALUED: dict[str, frozenset[str]] = {
    "mypy": _options(
        "--config-file --python-version --platform --cache-dir --follow-imports --exclude "
        "--enable-error-code --disable-error-code --always-true --always-false --python-executable "
        "--custom-typeshed-dir --num-workers -n"
    ),
    "pyright": _options(
        "--pythonplatform --pythonpath --pythonversion -t --typeshedpath -v --venvpath --level --threads"
    ),
}
"""Options that take the next word, of the checkers that can be asked about single files."""

_SELECTING: dict[str, frozenset[str]] = {
    "mypy": _options("-p --package -m --module -c --command"),
    "pyright": _options("-p --project --files"),
}
"""Options that say what to look at; they do not go with files."""


def own_commands(situation: Situation) -> Iterator[Command]:
    """The commands of the failing criteria, then the todo's others."""
    failing = (judging_command(situation, check_id) for check_id in check_ids(situation))
    specs = [spec for spec in failing if spec is not None]
    specs += [spec for _, spec in commands_of(situation.todo)]
    for cmd in dict.fromkeys(spec.cmd for spec in specs):
        command = understood(cmd)
        if command is not None:
            yield command


def commands_of_plan(plan: Plan) -> tuple[Command, ...]:
    """Every command of the plan that is not pytest, each once, in the order of the plan."""
    return _commands(_Same(plan))


def about_files(command: Command, files: Sequence[str]) -> str | None:
    """The command of a type checker that looks at these files, with the options it had.

    ``None`` for a tool that is asked about a project as a whole.
    """
    valued, selecting = _VALUED.get(command.tool.name), _SELECTING.get(command.tool.name, frozenset())
    start = _after_tool(command)
    if valued is None or start is None:
        return None
    words = list(command.argv[:start])
    rest = iter(command.argv[start:])
    for word in rest:
        name, equals, _ = word.partition("=")
        if name in selecting:
            if not equals:
                next(rest, None)
        elif word in valued:
            words += [word, *([value] if (value := next(rest, None)) is not None else [])]
        elif word.startswith("-") and word != "--":
            words.append(word)
    paths = [f"./{file}" if file.startswith("-") else file for file in files]
    variables = [f"{name}={shlex.quote(value)}" for name, value in command.env]
    return " ".join([*variables, shlex.join([*words, *paths])])


def python_of(cmd: str) -> tuple[str, ...]:
    """The interpreter that runs a command's pytest, as far as the command names it."""
    command = understood(cmd)
    run = None if command is None else command.pytest
    if run is None:
        return ("python",)
    words = run.launcher[:-2] if run.as_module else run.launcher[:-1]
    if run.as_module and words and PurePosixPath(words[-1]).name.startswith("python"):
        return words
    starts = words if not run.as_module and words and words[0] in _RUNNERS else ()
    return (*starts, "python")


_RUNNERS = frozenset({"uv", "poetry", "pdm", "pipenv", "rye"})
"""Launchers that start an interpreter as they start any tool."""


def tool_index(command: Command) -> int | None:
    """Where in the words of a command its tool is named."""
    for index, word in enumerate(command.argv):
        if PurePosixPath(word).name in command.tool.programs:
            return index
        if index and command.argv[index - 1] == "-m" and word in command.tool.modules:
            return index
    return None


def _after_tool(command: Command) -> int | None:
    index = tool_index(command)
    return None if index is None else index + 1


class _Same:
    """A plan as a key: itself, whatever it equals. A plan has no cheap hash."""

    __slots__ = ("plan",)

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __hash__(self) -> int:
        return id(self.plan)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.plan is other.plan


@lru_cache(maxsize=2)
def _commands(key: _Same) -> tuple[Command, ...]:
    texts = dict.fromkeys(spec.cmd for todo in key.plan.items for _, spec in commands_of(todo))
    known = (understood(text) for text in texts)
    return tuple(command for command in known if command is not None and command.pytest is None)
