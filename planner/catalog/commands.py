"""From a command string to a :class:`Command`: its words, its tool and, for pytest, what it selects."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NoReturn

from planner.catalog.pytest_arguments import PytestInvocation, parse_pytest_arguments
from planner.catalog.splitting import Word, split_words
from planner.catalog.tools import (
    HELP_OPTIONS,
    LAUNCHERS,
    NO_HELP_SHORT,
    PYTEST,
    PYTHON_SCRIPT,
    RECIPES,
    REFUSED_PROGRAMS,
    TARGET_PURPOSES,
    TOOLS,
    Launcher,
    Tool,
)
from planner.errors import CommandSyntaxError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of a plan, ready to be run as an argument vector."""

    text: str
    """As it was written."""
    env: tuple[tuple[str, str], ...]
    """The ``NAME=value`` words in front."""
    argv: tuple[str, ...]
    """Without them."""
    tool: Tool
    pytest: PytestInvocation | None = None
    """Set where the command runs pytest."""


@lru_cache(maxsize=4096)
def parse_command(cmd: str) -> Command:
    """Understand a command. Raises :class:`CommandSyntaxError` for all that is not allowed."""
    words = split_words(cmd)
    env = _variables(words)
    argv = tuple(word.value for word in words[len(env) :])
    if not argv:
        _refuse("the command names no program", "write the command that must succeed")
    if argv[0] in RECIPES:
        _refuse(f"{argv[0]} is a recipe, not a command", f"write it alone: verify: {argv[0]}")
    found = _find(argv)
    tool, rest = found.tool, argv[found.length :]
    if tool is not PYTEST:
        _refuse_hollow(tool, rest)
        return Command(text=cmd, env=env, argv=argv, tool=_for_target(tool, rest))
    invocation = parse_pytest_arguments(
        argv[: found.length], rest, foreign=found.foreign, as_module=found.as_module
    )
    return Command(text=cmd, env=env, argv=argv, tool=tool, pytest=invocation)


@dataclass(frozen=True, slots=True)
class _Found:
    """Which tool a command starts, and how many words it takes to say so."""

    tool: Tool
    length: int
    foreign: bool = False
    as_module: bool = False


_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_FORBIDDEN_VARIABLES = frozenset(
    {
        "PATH",
        "LD_PRELOAD",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "BASH_ENV",
        "MAKEFLAGS",
    }
)
_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?t?|py")
_OWN_PYTHONS = frozenset({"python", "python3"})
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_PYTHON_VALUED = frozenset({"-W", "-X", "--check-hash-based-pycs"})
_PYTHON_FLAGS = re.compile(r"-(?:[bBdEIOPqRsSuvx]+|3(?:\.\d+)?|[WX].+)")
_REFUSED_MODULES: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("pip", "venv", "ensurepip", "virtualenv", "pipx"), REFUSED_PROGRAMS["pip"]),
    **dict.fromkeys(("pdb", "code", "idlelib"), REFUSED_PROGRAMS["pdb"]),
}
_SUFFIXES = (".exe", ".cmd", ".bat")


def _by(attribute: str) -> dict[str, tuple[Tool, ...]]:
    rows: dict[str, tuple[Tool, ...]] = {}
    for tool in TOOLS:
        for name in getattr(tool, attribute):
            rows[name] = (*rows.get(name, ()), tool)
    return rows


_BY_PROGRAM = _by("programs")
_BY_MODULE = _by("modules")
_PROGRAMS = tuple(sorted({*_BY_PROGRAM, "python", *(launcher.program for launcher in LAUNCHERS)}))


def _refuse(problem: str, remedy: str) -> NoReturn:
    raise CommandSyntaxError(problem, remedy)


def _variables(words: Sequence[Word]) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for word in words:
        match = _VARIABLE.match(word.value)
        if not match or match.end() > word.plain:
            break
        name, value = match.group(1), word.value[match.end() :]
        if name in _FORBIDDEN_VARIABLES:
            _refuse(
                f"the command sets {name}, which decides what programs mean",
                "leave it out, or name the program by its path",
            )
        found.append((name, value))
    return tuple(found)


def _program_name(word: str) -> str:
    name = PurePosixPath(word).name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _find(argv: tuple[str, ...]) -> _Found:
    """Walk over the launchers to the tool itself."""
    at, foreign = 0, False
    while at < len(argv):
        word = argv[at]
        name = _program_name(word)
        launcher = _launcher_at(name, argv, at)
        if launcher is None:
            foreign = foreign or "/" in word
            if _PYTHON.fullmatch(name):
                return _python(argv, at + 1, foreign=foreign or name not in _OWN_PYTHONS)
            return _program(name, argv, at + 1, foreign=foreign)
        foreign = True
        at, module = _skip(launcher, argv, at)
        if module:
            return _python(argv, at, foreign=True)
        if launcher.environments and at < len(argv) and ":" in argv[at]:
            inner = argv[at].partition(":")[2]
            argv = (*argv[:at], inner, *argv[at + 1 :])
    _refuse(f"{' '.join(argv)} starts nothing", "name the tool that it shall run")


def _launcher_at(name: str, argv: tuple[str, ...], at: int) -> Launcher | None:
    for launcher in LAUNCHERS:
        if launcher.program == name and (
            not launcher.subcommand or _first_word(argv[at + 1 :], launcher.valued) == launcher.subcommand
        ):
            return launcher
    if name == "coverage" or name in _BY_PROGRAM:
        return None
    for launcher in LAUNCHERS:
        if launcher.program == name:
            _refuse(
                f"{' '.join(argv[at : at + 2])} is not allowed",
                f"of {name} only '{name} {launcher.subcommand} TOOL' is known",
            )
    return None


def _skip(launcher: Launcher, argv: tuple[str, ...], at: int) -> tuple[int, bool]:
    """Where the launcher's own words end, and whether an interpreter's arguments follow."""
    at += 1
    pending = launcher.subcommand
    while at < len(argv):
        word = argv[at]
        if launcher.modules and not pending and (word in ("-m", "--module") or word.endswith(".py")):
            return at, True
        if word == pending:
            pending = ""
        elif word == "--":
            return at + 1, False
        elif not word.startswith("-"):
            return at, False
        elif word in ("-c", "--call", "--shell", "-s") and launcher.program in ("npx", "npm", "pnpm", "uv"):
            _refuse(f"{launcher.program} {word} runs a script of the command line", "name the tool itself")
        elif word in launcher.valued:
            at += 1
        at += 1
    return at, False


def _first_word(words: Sequence[str], valued: frozenset[str] | tuple[str, ...]) -> str | None:
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in valued:
            skip = True
        elif not word.startswith(("-", "+")):
            return word
    return None


def _python(argv: tuple[str, ...], at: int, *, foreign: bool) -> _Found:
    """What an interpreter is asked to run; ``at`` is the word after it."""
    while at < len(argv):
        word = argv[at]
        if word in ("-m", "--module"):
            return _module(argv, at + 1, foreign=foreign)
        if word in _PYTHON_VALUED:
            at += 1
        elif word == "-c" or (word.startswith("-c") and not word.startswith("--")):
            _refuse("python -c holds code in the plan", "put it into a script or a test of the project")
        elif word.endswith(".py") and not word.startswith("-"):
            _refuse_outside(word)
            return _Found(PYTHON_SCRIPT, at + 1, foreign)
        elif not _PYTHON_FLAGS.fullmatch(word):
            break
        foreign = True
        at += 1
    _refuse(
        f"{' '.join(argv)} runs neither a module nor a script",
        "write python -m MODULE or python FILE.py, with the file inside the plan's root",
    )


def _module(argv: tuple[str, ...], at: int, *, foreign: bool) -> _Found:
    name = argv[at] if at < len(argv) else ""
    if not _MODULE.fullmatch(name):
        _refuse("python -m lacks the name of a module", "write python -m MODULE")
    if name == "coverage" and _first_word(argv[at + 1 :], ()) == "run":
        inner = _find(("coverage", *argv[at + 1 :]))
        return replace(inner, length=inner.length + at, foreign=True)
    rows = _BY_MODULE.get(name)
    if rows:
        tool = _row(name, rows, argv[at + 1 :])
        return _Found(tool, at + 1, foreign, as_module=True)
    top = name.partition(".")[0]
    refusal = _REFUSED_MODULES.get(top)
    if refusal:
        _refuse(f"python -m {name} {refusal[0]}", refusal[1])
    if top in sys.stdlib_module_names:
        _refuse(
            f"python -m {name} is no tool of the catalog",
            f"of the standard library only {', '.join(_STDLIB_TOOLS)} are known",
        )
    return _Found(PYTHON_SCRIPT, at + 1, foreign, as_module=True)


_STDLIB_TOOLS = tuple(name for name in _BY_MODULE if name.partition(".")[0] in sys.stdlib_module_names)


def _program(name: str, argv: tuple[str, ...], at: int, *, foreign: bool) -> _Found:
    rows = _BY_PROGRAM.get(name)
    if rows:
        tool = _row(name, rows, argv[at:])
        if tool.name == "node":
            _refuse_node(argv[at:])
        return _Found(tool, at, foreign)
    refusal = REFUSED_PROGRAMS.get(name)
    if refusal:
        _refuse(f"{name} {refusal[0]}", refusal[1])
    near = get_close_matches(name, _PROGRAMS, n=1)
    if name.endswith(".py"):
        remedy = f"write python {argv[at - 1]}"
    elif near:
        remedy = f"did you mean {near[0]}?"
    else:
        remedy = f"known programs: {', '.join(_PROGRAMS)}"
    _refuse(f"{name[:60]!r} is no tool of the catalog", remedy)


def _row(name: str, rows: tuple[Tool, ...], rest: tuple[str, ...]) -> Tool:
    """The row for the subcommand."""
    allowed: list[str] = []
    for tool in rows:
        if not tool.subcommands or _first_word(rest, tool.valued) in tool.subcommands:
            return tool
        allowed.extend(tool.subcommands)
    given = _first_word(rest, rows[0].valued)
    problem = (
        f"{name} {given} is not allowed" if given else f"{name} alone does nothing that proves anything"
    )
    near = get_close_matches(given or "", allowed, n=1)
    hint = f"did you mean {name} {near[0]}? " if near else ""
    if given and name in ("pnpm", "yarn"):
        hint = f"write {name} run {given} if it is a script; "
    _refuse(problem, f"{hint}of {name} are known: {', '.join(dict.fromkeys(allowed))}")


def _refuse_outside(path: str) -> None:
    depth = 0
    for part in PurePosixPath(path).parts:
        depth += -1 if part == ".." else 1
        if depth < 0 or part == "/":
            _refuse(f"the script {path} is outside of the plan's root", "write a path relative to the root")


def _refuse_node(rest: tuple[str, ...]) -> None:
    script = _first_word(rest, ("-r", "--require", "--import", "--loader", "--test-name-pattern"))
    if script is None and "--test" not in rest:
        _refuse("node runs no script", "write node FILE.js or node --test")
    if script is not None:
        _refuse_outside(script)


def _refuse_hollow(tool: Tool, rest: tuple[str, ...]) -> None:
    """Refuse options with which success says nothing about the work, or which rewrite it."""
    if tool is PYTHON_SCRIPT:
        return
    words = rest[: rest.index("--")] if "--" in rest else rest
    names = [word.partition("=")[0] if word.startswith("--") else word for word in words]
    program = tool.name
    for name in names:
        if name in HELP_OPTIONS and not (name == "-h" and program in NO_HELP_SHORT):
            _refuse(f"{program} {name} only speaks of {program} itself", f"leave {name} out")
        if name in tool.refused or _cluster_holds(name, tool) or name.partition("=")[0] in tool.refused:
            _refuse(f"{program} {name} proves nothing about the work or changes it", f"leave {name} out")
    if tool.needs and not any(need in rest for need in tool.needs):
        shown = " ".join((program, *tool.subcommands[:1]))
        _refuse(
            f"{shown} without {tool.needs[0]} succeeds whatever it finds or rewrites the work",
            f"add {tool.needs[0]}",
        )


def _cluster_holds(word: str, tool: Tool) -> bool:
    """Whether one of the refused letters hides in a cluster: ``make -sn``."""
    if not tool.clusters or not word.startswith("-") or word.startswith("--"):
        return False
    for letter in word[1:]:
        if f"-{letter}" in tool.refused:
            return True
        if letter in tool.clusters:
            return False
    return False


_TARGETS = tuple((re.compile(pattern), purpose) for pattern, purpose in TARGET_PURPOSES)


def _for_target(tool: Tool, rest: tuple[str, ...]) -> Tool:
    """The tool with the purpose that the names of its targets tell: ``make lint``."""
    if not tool.target_tells:
        return tool
    targets = " ".join(word for word in rest if word not in tool.subcommands and word not in tool.valued)
    for pattern, purpose in _TARGETS:
        if pattern.search(targets.lower()):
            return tool if purpose is tool.purpose else replace(tool, purpose=purpose)
    return tool
