"""Parser of the commands of a plan: words, tool and, for pytest, arguments.

Commands are run as argument vectors, without a shell. Whatever a shell would interpret outside of quotes
(pipes, lists, redirects, expansions, globs) is refused, and the message says what to write instead. Only
tools of the catalog (:mod:`.tools`) and of the plan's ``metadata.tools`` are allowed, and no option with
which a tool succeeds without having tested anything.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from planner.catalog.pytest_arguments import PytestInvocation, parse_pytest_arguments
from planner.catalog.tables import load_table
from planner.catalog.test_paths import is_test_path
from planner.catalog.tools import (
    CHANGING,
    LAUNCHERS,
    PYTEST,
    PYTHON_SCRIPT,
    RECIPES,
    REFUSED_MODULES,
    REFUSED_PROGRAMS,
    TOOLS,
    Launcher,
    Purpose,
    Tool,
    purpose_of_target,
    tool_of_plan,
)
from planner.errors import CommandSyntaxError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from planner.model.plan import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One parsed command of a plan, which can be run as an argument vector."""

    text: str
    """The command as it was written."""
    env: tuple[tuple[str, str], ...]
    """Environment variables, from the leading ``NAME=value`` words."""
    argv: tuple[str, ...]
    """The other words; the name of one of the plan's own tools is replaced by that tool's words."""
    tool: Tool
    """The tool that is run, behind all launchers."""
    pytest: PytestInvocation | None = None
    """The parsed arguments, if the command runs pytest."""
    arguments: tuple[str, ...] = ()
    """The words behind those that name the tool, its subcommand included."""
    script: str | None = None
    """Path in the plan's root of the Python file that ``python FILE.py`` or ``python -m`` runs."""


# Cached apart from parse_command, whose cache holds no errors: goals and lists ask for every code span.
@lru_cache(maxsize=4096)
def accepted_command(cmd: str) -> Command | None:
    """Return the parsed command, or ``None`` if it cannot be run."""
    try:
        return parse_command(cmd)
    except CommandSyntaxError:
        return None


@lru_cache(maxsize=4096)
def parse_command(cmd: str, tools: tuple[ToolSpec, ...] = ()) -> Command:
    """Parse a command. ``tools`` are those that the plan adds to the catalog.

    Raises :class:`CommandSyntaxError`, with problem and remedy, for everything that is not allowed.
    """
    words = split_words(cmd)
    env: list[tuple[str, str]] = []
    while len(env) < len(words) and (match := _VARIABLE.match(words[len(env)])):
        name = match[1]
        if _FORBIDDEN_VARIABLES.fullmatch(name):
            _refuse(
                f"the command sets {name}, which changes which programs run",
                "remove it, or name the program by its path",
            )
        env.append((name, words[len(env)][match.end() :]))
    argv = tuple(words[len(env) :])
    if not argv:
        _refuse("the command names no program", "write the command that must succeed")
    # Only `verify` expands a recipe, and only if it is the whole text.
    if argv[0] in RECIPES:
        _refuse(f"{argv[0]} is a recipe, not a command", f"write it alone: verify: {argv[0]}")
    try:
        found = _find(argv, {spec.name: tool_of_plan(spec) for spec in tools})
    except RecursionError:  # python -m coverage run python -m coverage run …
        _refuse("the command starts hundreds of launchers", "name the tool itself")
    tool, argv, rest = found.tool, found.argv, found.argv[found.length :]
    invocation = script = None
    # Hollow options of pytest are findings of the lint, not refusals; those of scripts are unknown.
    if tool is PYTEST:
        invocation = parse_pytest_arguments(
            argv[: found.length], rest, foreign=found.foreign, as_module=found.as_module
        )
    elif tool is PYTHON_SCRIPT:
        script = argv[found.length - 1]
        if found.as_module:
            script = f"{script.replace('.', '/')}.py"
    else:
        _refuse_hollow(tool, rest)
    if tool.targets:  # the purpose depends on the names of the targets: make lint
        targets = " ".join(
            word for word in rest if word not in tool.subcommands and word not in tool.valued
        )
        tool = replace(tool, purpose=purpose_of_target(targets) or tool.purpose)
    return Command(
        text=cmd, env=tuple(env), argv=argv, tool=tool, pytest=invocation, arguments=rest, script=script
    )


def fault_of_tool(spec: ToolSpec) -> str | None:
    """Return why a plan may not add this tool, and the remedy; ``None`` if it may.

    Refused programs, such as shells, refused options, and other meanings for the names of programs in the
    catalog are not allowed.
    """
    # A plan must not redefine what a criterion with the name of a known tool runs.
    if spec.name in _PROGRAMS and spec.argv[:1] not in ((), (spec.name,)):
        return f"{spec.name} is the name of a program of the catalog; give the tool another name"
    try:
        if "/" in "".join(spec.argv[:1]):
            _refuse_outside(spec.argv[0])
        # The words are judged as a command of their own, so a tool cannot hide a shell or an option that
        # is refused.
        parse_command(shlex.join(spec.argv or (spec.name,)), (spec,))
    except CommandSyntaxError as error:
        return str(error)
    return None


class _Found(NamedTuple):
    """The tool that a command starts."""

    tool: Tool
    argv: tuple[str, ...]
    """The words of the command, with the name of a plan's own tool replaced."""
    length: int
    """Number of words before the tool's arguments."""
    foreign: bool = False
    """Whether another interpreter or a launcher starts it, so that it needs a process of its own."""
    as_module: bool = False
    """Whether it is started by ``python -m``."""


_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
# With these variables a command could make an allowed program run anything else.
_FORBIDDEN_VARIABLES = re.compile(
    "PATH|LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES|PYTHONHOME|PYTHONSTARTUP|BASH_ENV|MAKEFLAGS"
)
_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?t?|py")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
# Without -h, -V and -i, with which Python prints or prompts. `-3.12` is an option of the launcher `py`.
_PYTHON_FLAGS = re.compile(r"-(?:[bBdEIOPqRsSuvx]+|3(?:\.\d+)?|[WX].+)")
_PLAIN = re.compile(r"[a-z][a-z0-9-]*")
"""A word that needs no quotes in YAML, and that may be a subcommand."""
_MODULE_OPTIONS = ("-m", "--module")


def _by(attribute: str) -> dict[str, tuple[Tool, ...]]:
    """Return the rows of the catalog by each name in an attribute; several rows may share a name."""
    rows: dict[str, tuple[Tool, ...]] = {}
    for tool in TOOLS:
        for name in getattr(tool, attribute):
            rows[name] = (*rows.get(name, ()), tool)
    return rows


_BY_PROGRAM = _by("programs")
_BY_MODULE = _by("modules")
_PROGRAMS = frozenset({*_BY_PROGRAM, "python", *(launcher.program for launcher in LAUNCHERS)})


def _refuse(problem: str, remedy: str) -> NoReturn:
    """Raise :class:`CommandSyntaxError`."""
    raise CommandSyntaxError(problem, remedy)


def _hint(word: str, known: Iterable[str]) -> str:
    """Return a question about the known name that is most similar to a word; empty if none is."""
    # Only with the same first letter: by `sort` nobody means isort.
    near = get_close_matches(word, sorted(known), n=1, cutoff=0.75)
    return f"did you mean {near[0]}? else " if near and near[0][0] == word[:1] else ""


def _in_metadata(program: str, rest: Sequence[str], name: str = "") -> str:
    """Return the remedy for a tool that the catalog does not know: the line to add to the plan."""
    kind = purpose_of_target(" ".join((program, *rest))) or Purpose.VALIDATE
    words = (program, *rest) if name else (program[:60],)
    # A JSON string is also one of YAML, so the line can be copied into the plan as it is.
    shown = [word if _PLAIN.fullmatch(word) else json.dumps(word, ensure_ascii=False) for word in words]
    return (
        f"name it in the plan: metadata: {{tools: [{{name: {name or shown[0]}, kind: {kind.value}, "
        f"argv: [{', '.join(shown)}]}}]}}"
    )


def _find(argv: tuple[str, ...], own: dict[str, Tool]) -> _Found:
    """Return the tool that a command runs, behind all launchers; ``own`` are the plan's tools by name."""
    at, foreign, inner = 0, False, ""
    while at < len(argv):
        tool = own.get(argv[at])
        # `grep` alone is the plan's tool of that name; `grep -q x` is a use of the program, which has to
        # begin with the tool's words (see `_program`).
        if tool and (argv[at] not in _PROGRAMS | {tool.argv[0]} or at + 1 == len(argv)):
            # Replace the tool's name by its words, once: the tool stays known, but without a name.
            argv = (*argv[:at], *tool.argv, *argv[at + 1 :])
            own = {name: each for name, each in own.items() if each is not tool} | {"": tool}
        # On Windows, programs may be written with their ending.
        name = re.sub(r"\.(?:exe|cmd|bat)$", "", PurePosixPath(inner or argv[at]).name)
        launched = _behind_launcher(name, argv, at)
        if launched is None:
            # A path may lead into another environment than the one that runs this: .venv/bin/pytest.
            foreign = foreign or "/" in (inner or argv[at])
            if _PYTHON.fullmatch(name):
                # python3.12 and py may start another version of Python.
                return _python(argv, at + 1, own, foreign=foreign or name not in ("python", "python3"))
            return _program(name, argv, at + 1, own, foreign=foreign)
        launcher, at, module = launched
        foreign, inner = True, ""
        if module:
            return _python(argv, at, own, foreign=True)
        if at < len(argv) and launcher.environments:
            inner = argv[at].partition(":")[2]
        elif at < len(argv) and launcher.versions:
            inner = argv[at].partition("@")[0]
    _refuse(f"{' '.join(argv)} starts nothing", "name the tool to run")


def _behind_launcher(name: str, argv: tuple[str, ...], at: int) -> tuple[Launcher, int, bool] | None:
    """Return the launcher, the position after its own words, and whether arguments of Python follow.

    ``None`` if there is no launcher of that name, or its subcommands are not those that launch a program.
    """
    for launcher in LAUNCHERS:
        if launcher.program == name:
            end, pending = at + 1, list(launcher.subcommands)
            # An option -m ends the launcher's own words where it takes a module: uv run -m pytest.
            while end < len(argv) and (
                pending or argv[end] not in _MODULE_OPTIONS or not launcher.interpreter
            ):
                word = argv[end]
                if pending and word == pending[0]:
                    del pending[0]
                elif word == "--" or not word.startswith("-"):
                    break
                elif word in launcher.script and not pending:
                    _refuse(f"{name} {word} runs a script of the command line", "name the tool itself")
                end += 2 if word in launcher.valued else 1
            # Else another row for the same program may fit: `uv tool run` after `uv run`.
            if not pending:
                word = argv[end] if end < len(argv) else ""
                runs_python = word in _MODULE_OPTIONS or word.endswith(".py")
                return launcher, end + (word == "--"), launcher.interpreter and runs_python
    return None


def _first_word(words: Sequence[str], valued: Collection[str]) -> str | None:
    """Return the first word that is neither an option nor the value of one."""
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in valued:
            skip = True
        # `+nightly` selects a toolchain of cargo.
        elif not word.startswith(("-", "+")):
            return word
    return None


def _python(argv: tuple[str, ...], at: int, own: dict[str, Tool], *, foreign: bool) -> _Found:
    """Return the module or script that a Python command runs; ``at`` is the position after ``python``."""
    while at < len(argv):
        word = argv[at]
        if word in _MODULE_OPTIONS:
            return _module(argv, at + 1, own, foreign=foreign)
        # These take the next word.
        if word in ("-W", "-X", "--check-hash-based-pycs"):
            at += 1
        elif word.startswith("-c"):
            _refuse("python -c contains code", "move it to a script or a test of the project")
        elif word.endswith(".py") and not word.startswith("-"):
            _refuse_outside(word)
            return _Found(PYTHON_SCRIPT, argv, at + 1, foreign)
        elif not _PYTHON_FLAGS.fullmatch(word):
            break
        foreign = True
        at += 1
    _refuse(
        f"{' '.join(argv)} runs neither a module nor a script",
        "write python -m MODULE or python FILE.py, with the file inside the plan's root",
    )


def _module(argv: tuple[str, ...], at: int, own: dict[str, Tool], *, foreign: bool) -> _Found:
    """Return the tool that ``python -m`` runs; ``at`` is the position of the module's name."""
    name = argv[at] if at < len(argv) else ""
    if not _MODULE.fullmatch(name):
        _refuse("python -m lacks the name of a module", "write python -m MODULE")
    # ``coverage run`` is a launcher: parse it as if it were started as a program.
    if name == "coverage" and _first_word(argv[at + 1 :], ()) == "run":
        inner = _find(("coverage", *argv[at + 1 :]), own)
        argv = (*argv[: at + 1], *inner.argv[1:])
        return inner._replace(argv=argv, length=inner.length + at, foreign=True)
    rows = _BY_MODULE.get(name, ())
    row = _row(rows, argv[at + 1 :])
    if row is not None:
        return _Found(row, argv, at + 1, foreign, as_module=True)
    if rows:
        _refuse_subcommand(name, rows, argv[at + 1 :])
    top = name.partition(".")[0]
    if top in REFUSED_MODULES:
        why, instead = REFUSED_MODULES[top]
        _refuse(f"python -m {name} {why}", instead)
    # Any other name may be a module of the project; those of the standard library are known.
    if top in sys.stdlib_module_names:
        known = ", ".join(each for each in _BY_MODULE if each.partition(".")[0] in sys.stdlib_module_names)
        _refuse(
            f"python -m {name} is no tool of the catalog",
            f"of the standard library, only {known} are supported",
        )
    return _Found(PYTHON_SCRIPT, argv, at + 1, foreign, as_module=True)


def _program(name: str, argv: tuple[str, ...], at: int, own: dict[str, Tool], *, foreign: bool) -> _Found:
    """Return the tool of a program: the catalog's row, else the plan's tool with the same first words.

    ``at`` is the position after the program.
    """
    rows = _BY_PROGRAM.get(name, ())
    # The catalog comes before the plan's tools, which must not weaken its rows.
    row = _row(rows, argv[at:])
    if row is not None:
        if row.name == "node":
            _refuse_node(argv[at:])
        return _Found(row, argv, at, foreign)
    if name in REFUSED_PROGRAMS:
        why, instead = REFUSED_PROGRAMS[name]
        _refuse(f"{name} {why}", instead)
    for tool in own.values():
        size = at - 1 + len(tool.argv)
        # By its name alone, too, if the command writes it with a path: bin/grep -q.
        if tool.argv in (argv[at - 1 : size], (name, *argv[at:size])):
            return _Found(tool, argv, size, foreign)
    if rows or any(launcher.program == name for launcher in LAUNCHERS):
        _refuse_subcommand(name, rows, argv[at:])
    shown = [repr(" ".join(tool.argv)) for tool in own.values() if tool.argv[0] == name]
    if shown:
        _refuse(
            f"the plan allows {name} only as {' and '.join(shown)}",
            "start the command with that, or shorten the argv of the tool in metadata.tools",
        )
    word = argv[at - 1]
    if "::" in word or is_test_path(word):
        # Not python: a file of tests that python runs defines its tests, calls none, and exits with 0.
        remedy = f"write pytest {word}"
    elif name.endswith(".py"):
        remedy = f"write python {word}"
    else:
        remedy = _hint(name, _PROGRAMS) + _in_metadata(name, argv[at : at + 1])
    _refuse(f"{name[:60]!r} is no tool of the catalog", remedy)


def _row(rows: tuple[Tool, ...], rest: tuple[str, ...]) -> Tool | None:
    """Return the row for the subcommand that is given; ``None`` if there is none."""
    for tool in rows:
        if not tool.subcommands or _first_word(rest, tool.valued) in tool.subcommands:
            return tool
    return None


def _refuse_subcommand(name: str, rows: tuple[Tool, ...], rest: tuple[str, ...]) -> NoReturn:
    """Refuse a subcommand that the catalog does not know; the remedy lists those that it knows."""
    known = [word for tool in rows for word in tool.subcommands]
    given = _first_word(rest, rows[0].valued if rows else ())
    # Both also start scripts without `run`, where the word could be a command of theirs.
    is_script = given and name in ("pnpm", "yarn")
    hint = f"write {name} run {given} if it is a script; " if is_script else ""
    launched = (" ".join((*each.subcommands, "TOOL")) for each in LAUNCHERS if each.program == name)
    remedy = f"{hint}the known commands of {name} are: {', '.join(dict.fromkeys((*known, *launched)))}"
    if given is None:
        _refuse(f"{name} alone proves nothing", remedy)
    if not hint and given == rest[0] and given not in CHANGING and _PLAIN.fullmatch(given):
        remedy += f"; or {_in_metadata(name, (given,), f'{name}-{given}')}"
    _refuse(f"{name} {given} is not allowed", remedy)


def _refuse_outside(path: str) -> None:
    """Refuse a script that is absolute or whose path leaves the root."""
    # Part by part, as a/../../b leaves the root without beginning with `..`.
    depth = 0
    for part in PurePosixPath(path).parts:
        depth += -1 if part == ".." else 1
        if depth < 0 or part == "/":
            _refuse(f"the script {path} is outside of the plan's root", "write a path relative to the root")


def _refuse_node(rest: tuple[str, ...]) -> None:
    """Refuse node without a script inside the root, unless it runs tests."""
    script = _first_word(rest, ("-r", "--require", "--import", "--loader", "--test-name-pattern"))
    if script is None and "--test" not in rest:
        _refuse("node runs no script", "write node FILE.js or node --test")
    if script is not None:
        _refuse_outside(script)


def _refuse_hollow(tool: Tool, rest: tuple[str, ...]) -> None:
    """Refuse options with which success proves nothing about the work, or which rewrite it."""
    # What follows `--` goes to another program: npm test -- --version.
    words = rest[: rest.index("--")] if "--" in rest else rest
    program = tool.name
    for word in words:
        name = word.partition("=")[0] if word.startswith("--") else word
        if name in ("--version", "--help") or (name == "-h" and tool.h_is_help):
            _refuse(f"{program} {name} only prints information on {program}", f"remove {name}")
        # A refused letter may be part of a cluster: make -sn.
        is_cluster = tool.clusters and re.match(r"-[^-]", name)
        letters = re.split(f"[{tool.clusters}]", name[1:], maxsplit=1)[0] if is_cluster else ""
        given = (name, name.partition("=")[0], *(f"-{letter}" for letter in letters))
        if not set(tool.refused).isdisjoint(given):
            _refuse(f"{program} {name} proves nothing about the work or changes it", f"remove {name}")
    # Here the words after `--` count, too: cargo fmt -- --check.
    given = {word.partition("=")[0] if word.startswith("-") else word for word in rest}
    for group in tool.needs:
        if not given.intersection(group):
            shown = " ".join((program, *tool.subcommands[:1]))
            _refuse(
                f"{shown} without {group[0]} succeeds whatever it finds, or rewrites the work",
                f"add {group[0]}",
            )


# -- words ---------------------------------------------------------------------------------------------

MAX_COMMAND_LENGTH = 10_000
"""Limit in characters of a command, the same as in the plan model."""


_BLANKS = " \t\r\n"
_QUOTED = re.compile(r"'[^']*'|\"(?:\\[\s\S]|[^\"\\])*\"|\\[\s\S]")
_IN_DOUBLE_QUOTES = re.compile(r"\\(?P<escaped>[\s\S])|`|\$[A-Za-z0-9_{(@*#?$!-]")
_MASK = "\0"
"""Replacement of each quoted character, so that no pattern of the table matches inside quotes."""

_TABLE = load_table("shell")
_REFUSED = re.compile("|".join(f"({row['at']})" for row in _TABLE["refused"]))


def split_words(text: str) -> list[str]:
    """Split a command into words, as a POSIX shell does.

    Raises :class:`CommandSyntaxError` for everything that needs a shell.
    """
    if len(text) > MAX_COMMAND_LENGTH:
        _refuse(f"the command has {len(text)} characters", f"keep it under {MAX_COMMAND_LENGTH}")
    # No argument of a program can contain NUL, so it is free to serve as the mask.
    if _MASK in text:
        _refuse("the command holds a NUL character", "remove it")
    if re.search("[\ud800-\udfff]", text):
        _refuse("the command holds a lone surrogate, which cannot be passed to a program", "remove it")
    # Quotations are adapted to shlex first, then masked: the mask has the same length as the text.
    text = _QUOTED.sub(_as_shlex_reads_it, text)
    masked = _QUOTED.sub(lambda quoted: _MASK * len(quoted[0]), text)
    # Stripped by the mask, as an escaped blank at the end belongs to the last word.
    begin, end = len(masked) - len(masked.lstrip(_BLANKS)), len(masked.rstrip(_BLANKS))
    text, masked = text[begin:end], masked[begin:end]
    _refuse_shell(text, masked)
    return shlex.split(text)


def _as_shlex_reads_it(quoted: re.Match[str]) -> str:
    """Return a quotation without the escapes that a shell removes but shlex keeps: ``\\$`` and the like.

    Raises :class:`CommandSyntaxError` for expansions inside double quotes.
    """
    text = quoted[0]
    if text[0] == "\\" and text[1].isascii() and text[1].isalnum():  # as in tests\test_a.py
        _refuse(
            f"the command has a backslash before '{text[1]}', which a shell would remove",
            f"write '/' between folders, or {_TABLE['literal']}",
        )
    if text[0] != '"':
        # A shell removes an escaped end of line, from which shlex makes a character of the word.
        return "" if text == "\\\n" else text

    def unescaped(found: re.Match[str]) -> str:
        if found["escaped"] is None:
            shown = text[found.start() : found.start() + 12].removesuffix('"')
            _refuse(
                f"the command has {shown!r} inside double quotes, which a shell would replace",
                "use single quotes if it is literal, else write the value",
            )
        # Inside double quotes, shlex unescapes only a quote and a backslash.
        return {"\n": "", "$": "$", "`": "`"}.get(found["escaped"], found[0])

    return _IN_DOUBLE_QUOTES.sub(unescaped, text)


def _refuse_shell(text: str, masked: str) -> None:
    """Raise the refusal for the first text outside of quotes that a shell would interpret.

    At each position, the first matching row of ``shell.toml`` decides the message.
    """
    for found in _REFUSED.finditer(masked):
        before = masked[: found.start()]
        if found[0] in "*?" and "[" in re.split(r"[ \t]", before)[-1].partition("::")[2]:
            continue  # in test_a.py::test_b[a*b]: it matches no file, so a shell would pass it unchanged
        if found[0][0] in "&|;\n" and before.split()[:1] == ["cd"]:
            _refuse(
                "the command changes the folder with 'cd'",
                "set the plan's root, or give the tool its own option for the folder; "
                "two commands are two criteria",
            )
        assert found.lastindex is not None
        row = _TABLE["refused"][found.lastindex - 1]
        shown = repr(text[found.start() : found.end()])
        _refuse(
            f"the command {row['why'].replace('<found>', shown)}",
            row["instead"].replace("<literal>", _TABLE["literal"]),
        )
