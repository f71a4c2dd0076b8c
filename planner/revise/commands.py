"""Commands made from those of the plan: fewer tests, one file to check, a linter that fixes."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from planner.catalog import TOOLS, Purpose
from planner.catalog.splitting import MAX_COMMAND_LENGTH
from planner.policy.criteria import commands_of
from planner.revise.situation import below_root, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.catalog import Command
    from planner.model.outcome import Check
    from planner.model.plan import CommandSpec
    from planner.revise.situation import Situation

MAX_IDS = 20
"""Of more failing tests their files are run."""

_WHOLE = frozenset(
    {"--lf", "--last-failed", "--sw", "--stepwise", "--pyargs", "--cov-fail-under", "--json-report-omit"}
    | {"--collect-only", "--collectonly", "--co", "--looponfail", "-f"}
)
"""With these a command means something else, or cannot pass, when fewer tests are named."""

_RUNNERS = frozenset({"uv", "poetry", "pdm", "pipenv", "rye"})
"""Launchers that start an interpreter as they start any tool."""

_PYTHON = (".py", ".pyi")
_COMPILERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((".ts", ".tsx", ".mts", ".cts"), ("tsc",)),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), ("tsc", "eslint")),
    **dict.fromkeys((".c", ".cc", ".cpp", ".h", ".hpp"), ("make", "cmake")),
    **dict.fromkeys((".java", ".kt"), ("mvn", "gradle")),
    ".rs": ("cargo",),
    ".go": ("go",),
    ".cs": ("dotnet",),
}
"""By suffix, the tools of the catalog that compile or parse such a file."""

_FOR_PYTHON = ("mypy", "pyright", "basedpyright")
_WHOLE_PROJECT = {"tsc": "npx --no-install tsc --noEmit", "cargo": "cargo check"}
"""Checkers of other languages, which look at whole projects."""

_VALUED = {
    "mypy": "--config-file --python-version --platform --cache-dir --follow-imports --exclude "
    "--enable-error-code --disable-error-code --python-executable",
    "pyright": "--pythonplatform --pythonpath --pythonversion -t --typeshedpath -v --venvpath --level",
}
"""Options that take the next word, of the checkers that can be asked about single files."""

_SELECTING = {"mypy": "-p --package -m --module -c --command", "pyright": "-p --project --files"}
"""Options that say what to look at; they do not go with files."""


class _Fixer(NamedTuple):
    """How a linter's command becomes one that fixes."""

    out: str
    """Words that are taken out."""
    add: str = ""
    """Words that are put behind the tool's own."""
    subcommand: bool = False
    """The tool's subcommand follows its name and stays in front."""


_FIXERS = {
    "ruff": _Fixer("--no-fix --diff -q --quiet", "--fix", subcommand=True),
    "ruff_format": _Fixer("--check --diff", subcommand=True),
    "black": _Fixer("--check --diff"),
    "isort": _Fixer("--check --check-only -c --diff --df"),
    "eslint": _Fixer("", "--fix"),
    "prettier": _Fixer("--check -c --list-different -l", "--write"),
    "cargo": _Fixer("", "--fix --allow-dirty", subcommand=True),
    "cargo_fmt": _Fixer("--check", subcommand=True),
    "gofmt": _Fixer("-l -d", "-w"),
    "dotnet": _Fixer("--verify-no-changes", subcommand=True),
    "pre_commit": _Fixer("", subcommand=True),
}
"""By the manner of complaining of the tool. What is not here cannot fix anything by itself."""


# -- fewer tests ---------------------------------------------------------------------------------------


def isolated_commands(situation: Situation) -> tuple[CommandSpec, ...]:
    """Return the commands that run the failing tests and nothing else; none where none shows them."""
    wanted = situation.failing_tests
    found: dict[str, CommandSpec] = {}
    for check_id, own in _checks_of(situation, wanted):
        spec = situation.command_of(check_id)
        if spec is not None:
            spec = narrowed_command(spec, own)
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
    for chosen in (named if len(named) <= MAX_IDS else [], _files_of(named, command)):
        cmd = with_selections(command, chosen) if chosen else None
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
        if new is not None and new.pytest is not None and new.env == command.env:
            wanted = replace(run, args=new.pytest.args, selections=tuple(selections))
            if new.pytest == wanted:
                return text
    return None


def _text(command: Command, *words: str) -> str:
    """Return words as a command line, with the variables of another command in front."""
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in command.env), shlex.join(words)])


def _checks_of(situation: Situation, wanted: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the criteria in which the tests fail, each with those of the tests that are its own."""
    ids = situation.check_ids
    checks = {check.id: check for check in situation.outcome.checks}
    shown = [check for check in checks.values() if check.id in ids or _own(check, wanted)]
    for check in shown:
        yield check.id, _own(check, wanted) or ([] if check.tests else wanted)
    for check_id in ids:
        if check_id not in checks:
            yield check_id, wanted
    if shown or ids:
        return
    red = [check.id for check in checks.values() if check.counts_as.is_red and check.cmd]
    # An outcome that names no criterion: those whose commands select one of the tests.
    commands = ((where, parsed(spec.cmd)) for where, spec in commands_of(situation.todo))
    for check_id in red or [
        where
        for where, command in commands
        if command is not None
        and command.pytest is not None
        and any(_as_selected(nodeid, command) for nodeid in wanted)
    ]:
        yield check_id, wanted


def _own(check: Check, wanted: Sequence[str]) -> list[str]:
    names = {test.nodeid for test in check.tests}
    return [name for name in wanted if name in names]


def _as_selected(nodeid: str, command: Command) -> str | None:
    """Return a node id as the command would have to name it; ``None`` where it selects no such file."""
    path, colons, name = nodeid.partition("::")
    if below_root(path) != path or not colons:
        return None
    selections = _selected_paths(command)
    if not selections or any(each in ("", ".", path) or path.startswith(f"{each}/") for each in selections):
        return nodeid
    # Some outcomes name a test relative to the folder of the tests.
    return next((f"{each}::{name}" for each in selections if each.endswith(f"/{path}")), None)


def _selected_paths(command: Command, *, ids_only: bool = False) -> list[str]:
    assert command.pytest is not None
    named = (each for each in command.pytest.selections if not ids_only or "::" in each)
    return [each.partition("::")[0].removeprefix("./").rstrip("/") for each in named]


def _files_of(nodeids: Sequence[str], command: Command) -> list[str]:
    """Return the files of the tests, unless the command selects less than those."""
    files = list(dict.fromkeys(nodeid.partition("::")[0] for nodeid in nodeids))
    too_wide = not set(files).isdisjoint(_selected_paths(command, ids_only=True))
    return [] if too_wide or len(files) > MAX_IDS else files


# -- checks before the tests ---------------------------------------------------------------------------


def own_commands(situation: Situation) -> Iterator[Command]:
    """Yield the commands of the failing criteria, then the todo's others."""
    specs = [*situation.failing_commands(), *(spec for _, spec in commands_of(situation.todo))]
    for cmd in dict.fromkeys(spec.cmd for spec in specs):
        command = parsed(cmd)
        if command is not None:
            yield command


def plan_commands(situation: Situation) -> Iterator[Command]:
    """Yield every command of the plan that is not pytest, each once."""
    for cmd in dict.fromkeys(spec.cmd for todo in situation.plan.items for _, spec in commands_of(todo)):
        command = parsed(cmd)
        if command is not None and command.pytest is None:
            yield command


def syntax_check(situation: Situation, files: Sequence[str]) -> str | None:
    """Return the command that compiles files; of other languages than Python only one that the plan has."""
    python = [file for file in files if file.endswith(_PYTHON)]
    if python:
        failing = next((spec.cmd for spec in situation.failing_commands()), "")
        return shlex.join([*python_of(failing), "-m", "py_compile", *map(_no_option, python)])
    tools = _COMPILERS.get(PurePosixPath(files[0]).suffix.lower(), ()) if files else ()
    for command in (*own_commands(situation), *plan_commands(situation)):
        if command.tool.name in tools and command.tool.purpose is not Purpose.TEST:
            return command.text
    return None


def python_of(cmd: str) -> tuple[str, ...]:
    """Return the interpreter that runs a command's pytest, as far as the command names it."""
    command = parsed(cmd)
    run = None if command is None else command.pytest
    if run is None:
        return ("python",)
    words = run.launcher[: -2 if run.as_module else -1]
    if run.as_module:
        is_python = bool(words) and PurePosixPath(words[-1]).name.startswith("python")
        return words if is_python else ("python",)
    return (*(words if words and words[0] in _RUNNERS else ()), "python")


def type_checks(situation: Situation, files: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Yield commands that check types, the best first, each with whose it is and whether it is in use."""
    python = [file for file in files if file.endswith(_PYTHON)]
    other = bool(files) and not python
    unfit = tuple(_WHOLE_PROJECT) if python else _FOR_PYTHON if other else ()
    for whose, commands in (
        ("the todo's own type checker", own_commands(situation)),
        ("the type checker that the plan uses elsewhere", plan_commands(situation)),
    ):
        for command in commands:
            if command.tool.purpose is Purpose.TYPE_CHECK and command.tool.name not in unfit:
                yield (about_files(command, python) if python else None) or command.text, whose, True
    names = shlex.join(map(_no_option, python))
    for program in (each for tool in TOOLS if tool.purpose is Purpose.TYPE_CHECK for each in tool.programs):
        if program in situation.tools and python and program in _FOR_PYTHON:
            yield f"{program} {names}", f"{program}, which the project uses,", True
        elif program in situation.tools and other and program in _WHOLE_PROJECT:
            yield _WHOLE_PROJECT[program], f"{program}, which the project uses,", True
    if python:
        yield f"mypy {names}", "mypy, which has to be installed for it,", False


def about_files(command: Command, files: Sequence[str]) -> str | None:
    """Return the command of a type checker that looks at these files, with the options it had.

    ``None`` for a tool that is asked about a project as a whole.
    """
    tool = command.tool.name
    at = _tool_index(command)
    if tool not in _VALUED or at is None:
        return None
    valued, selecting = _VALUED[tool].split(), _SELECTING[tool].split()
    words, rest = list(command.argv[: at + 1]), iter(command.argv[at + 1 :])
    for word in rest:
        name, equals, _ = word.partition("=")
        if name in selecting:
            _ = None if equals else next(rest, None)
        elif word in valued:
            words += [word, *([value] if (value := next(rest, None)) is not None else [])]
        elif word.startswith("-") and word != "--":
            words.append(word)
    return _text(command, *words, *map(_no_option, files))


def fixing_command(command: Command) -> str | None:
    """Return the command that fixes what a linter complains of; ``None`` where the tool cannot."""
    fixer = _FIXERS.get(command.tool.output)
    at = _tool_index(command)
    if fixer is None or at is None or (command.tool.output == "cargo" and "clippy" not in command.argv):
        return None
    words = list(command.argv)
    behind = at + 1
    if fixer.subcommand:
        subcommand = command.tool.subcommands[0]
        behind = words.index(subcommand, at) + 1 if subcommand in words[at:] else at + 2
    tail = [word for word in words[behind:] if word not in fixer.out.split()]
    return _text(command, *words[:behind], *fixer.add.split(), *tail)


def _tool_index(command: Command) -> int | None:
    """Return where in the words of a command its tool is named."""
    for index, word in enumerate(command.argv):
        if PurePosixPath(word).name in command.tool.programs:
            return index
        if index and command.argv[index - 1] == "-m" and word in command.tool.modules:
            return index
    return None


def _no_option(path: str) -> str:
    return f"./{path}" if path.startswith("-") else path
