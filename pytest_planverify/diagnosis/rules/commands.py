"""Rules for commands that are not pytest: by the tool, its findings, its output, and how it ended.

Rules that differ only in a pattern, a kind of finding or a purpose share a function that makes their
reader. A task runner such as make may start any tool: for it, a finding is attributed by its format instead
of by the command's purpose.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from planner.catalog.output import read_findings
from planner.catalog.test_paths import is_test_path
from planner.catalog.tools import TOOLS
from planner.model.outcome import Location
from planner.model.taxonomy import Owner
from planner.text.display import counted
from pytest_planverify.diagnosis.case import SCRIPT_PURPOSES, Case, top_level, within_project
from pytest_planverify.diagnosis.known import CODES, matching_lines
from pytest_planverify.diagnosis.messages import error_text, quote
from pytest_planverify.diagnosis.rule import Hit, Reader
from pytest_planverify.diagnosis.tool_output import read_death

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.model.evidence import CommandFact, Finding


_CHECKERS = frozenset({"lint", "type_check"})
_RUNNERS = frozenset(tool.name for tool in TOOLS if tool.targets) - {"bun", "deno"}
"""Tools that start others: the command's purpose does not determine which tool complained. ``bun`` and
``deno`` check and build by themselves, too, and are known by name only."""

_PARSING, _ABOUT_TYPES = tuple(CODES["parsing"]), tuple(CODES["about_types"])
_SET_UP_FILES = re.compile(
    r"^(?:pyproject\.toml|setup\.cfg|tox\.ini|\.?mypy\.ini|\.?pylintrc(?:\.toml)?|\.?ruff\.toml|\.flake8|"
    r"pyrightconfig\.json|tsconfig[\w.-]*\.json|\.eslintrc[\w.]*|eslint\.config\.[cm]?[jt]s|clippy\.toml)$"
)
"""Configuration files of checkers; a finding in one of them is no finding about the source."""
_TOOL_FRAME = re.compile(
    r"(?:^|/)(?:flake8|black|blib2to3|isort|pylint|astroid|mypy|pyright|bandit|ruff|pycodestyle|pyflakes|"
    r"importlinter|vulture|pydocstyle)(?:/|$|\.py$)|/node_modules/"
)
_USAGE = re.compile(r"^usage: (?P<tool>\S+) .*\n(?:.*\n)*?(?P=tool): error: (?P<why>.*\w)", re.MULTILINE)
_DOTTED = re.compile(r"^[A-Za-z_]\w*(?:\.\w+)*$")


def _is_asked(command: CommandFact, name: str) -> bool:
    """Return whether the plan's command itself contains this name, as option, path, module or target."""
    name = name.removeprefix("file://").removeprefix("./")
    bare = name.lstrip("-")
    for word in command.argv[1:]:
        option, _, value = word.partition("=")
        for given in (each.removeprefix("./").rstrip("/") for each in (word, option, value)):
            if not given:
                continue
            if bare == given.lstrip("-") or name.endswith(f"/{given}") or given.endswith(f".{name}"):
                return True
    return False


def _is_gone(case: Case, name: str) -> bool:
    """Return whether a missing file or module probably existed: a change may have removed it.

    If changes are unknown, every module of the project counts.
    """
    if case.changed is None:
        return top_level(name) in case.first_party
    name = name.removeprefix("file://").removeprefix("./")
    removed = [path for path in case.changed if case.may_be_deleted(path)]
    if any(path == name or name.endswith(f"/{path}") for path in removed):
        return True
    path = name.replace(".", "/") if _DOTTED.match(name) else ""
    ends = (f"/{path}.py", f"/{path}/__init__.py")
    return bool(path) and any(f"/{each}".endswith(ends) for each in removed)


def command_names_what_is_gone(case: Case) -> str | None:
    """The command is to look at a file of the project that was there and is gone."""
    names = (name for name in _unknown_names(case) if _is_gone(case, name))
    name = next((name for name in names if case.changed is not None or _is_asked(case.command, name)), None)
    look = f"{case.command.tool} should check"
    return name and f"{look} {quote(name, 80)}, which existed before and is gone: restore it."


def command_asks_for_nothing(case: Case) -> str | None:
    """The plan's command names a file, target or option that does not exist, or lacks one."""
    names = (name for name in _unknown_names(case) if _is_asked(case.command, name))
    name = next((name for name in names if not _is_gone(case, name)), None)
    if name:
        return (
            f"The plan's command names {quote(name, 80)}, which {case.command.tool} does not know or find."
        )
    # As argparse reports it: a line of usage, and a complaint about no file.
    shown = _USAGE.search(case.command.output_tail) if case.command.purpose in _CHECKERS else None
    why = shown and shown["why"]
    return why and f"{case.command.tool} refuses the plan's command: {quote(why)}."


def _unknown_names(case: Case) -> Iterator[str]:
    """Yield the names that the tool reports as unknown or not found, if it ran and failed."""
    if not case.command.found or not case.process.exit_code:
        return
    for finding in case.command.findings:
        is_unread = finding.code in CODES["never_looked"] or finding.message.startswith("Cannot read file:")
        if finding.path and is_unread:
            yield finding.path
    for name in _names_in(case):
        yield name or case.command.argv[-1]


@lru_cache(maxsize=16)  # several rules query the same case, which is hashed by identity
def _names_in(case: Case) -> tuple[str, ...]:
    """Return the names that the output reports as unknown; an empty string if it is not printed."""
    return tuple(
        ".".join(filter(None, found.groups()))
        or (text[found.end() + 1 :].partition("\n")[0].strip() if found[0].endswith(":") else "")
        for text, found in _own_lines(case, "unknown_names", "unknown_words")
    )


def _own_lines(case: Case, key: str, words: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield each text of the tool with its lines that match the table ``key``.

    Lines of the table ``words`` count, too, if the tool runs no code of the project, which may print such.
    """
    command = case.command
    runs_code = command.tool in _RUNNERS or command.purpose not in (*_CHECKERS, "validate")
    for text in _own_texts(case):
        for each in (key,) if runs_code else (key, words):
            yield from ((text, found) for found in matching_lines(each, text))


def _own_texts(case: Case) -> tuple[str, ...]:
    """Return the outputs that may be about the tool itself; none if all findings are about source."""
    findings, evidence = case.command.findings, case.evidence
    is_source = all(each.path and each.line and each.code not in CODES["never_looked"] for each in findings)
    is_checker = case.command.purpose != "test"
    if findings and is_source and is_checker:
        return ()
    texts = (case.command.output_tail, evidence.stderr_tail, evidence.stdout_tail)
    return tuple(filter(None, texts))


def tool_set_up_wrongly(case: Case) -> Hit | str | None:
    """The tool's configuration, a plugin or its version keeps it from working."""
    command = case.command
    if not command.found or not case.process.exit_code:
        return None
    for finding in command.findings[:3]:
        is_file = _SET_UP_FILES.match((finding.path or "").rpartition("/")[2])
        if finding.code in CODES["set_up"] or (command.purpose in _CHECKERS and is_file):
            return Hit(
                suggestion=f"{command.tool} is not configured correctly: {quote(finding.message)}",
                location=Location(path=finding.path, line=finding.line) if finding.path else None,
            )
    _, found = next(_own_lines(case, "set_up", "set_up_words"), (None, None))
    return found and f"{command.tool} cannot work with its configuration: {quote(found[0])}"


def tool_broke_down(case: Case) -> Hit | None:
    """The tool failed with a traceback of its own."""
    frames = case.error.frames
    if case.command.purpose not in _CHECKERS or not any(_TOOL_FRAME.search(f.path) for f in frames[:4]):
        return None
    return Hit(
        suggestion=(
            f"{case.command.tool} itself failed: {error_text(case.error)}. Check its configuration, "
            "its plugins and its version."
        ),
        location=Location(path=frames[-1].path, line=frames[-1].line, function=frames[-1].function),
    )


def reader_of_line(marks: list[str], pattern: str, sentence: str) -> Reader:
    """Return a reader for a line of the output; ``marks`` are substrings that are searched first.

    ``sentence`` is the suggestion, with places for the groups of the pattern that matched.
    """
    line = re.compile(pattern, re.MULTILINE)

    def read(case: Case) -> Hit | None:
        output = case.command.output_tail
        found = line.search(output) if any(mark in output for mark in marks) else None
        if found is None:
            return None
        named, texts = found.groupdict(), [quote(text, 80) for text in found.groups() if text]
        place = Location(path=named["path"], line=int(named["line"])) if "path" in named else None
        return Hit(suggestion=sentence.format(*texts), location=place)

    return read


def tool_not_found(case: Case) -> Hit | None:
    """The program that the command names is not there to be run."""
    command = case.command
    if command.found and case.process.exit_code not in (126, 127):
        return None
    program = command.argv[0] if command.argv else command.tool
    missing = f"{program} is not installed or not executable: install it, or correct PATH."
    if not command.found and "-m" in command.argv[:-1] and case.process.exit_code is not None:
        # The interpreter was started, so what is missing is the module that it was to run.
        module = command.argv[command.argv.index("-m") + 1]
        missing = f"{program} does not have the module {module}: install it there."
    return Hit(suggestion=missing, weight=0.9 if command.found else 1.0)


_TYPESCRIPT_SYNTAX = re.compile(r"^TS1\d{3}$")
_MODULE = re.compile(
    r"(?:module named |[Cc]annot find module |Unable to import |Import |stubs for (?:module )?|"
    r"find the module |could not resolve |to module |path to module )[\"'`](?P<name>[^\"'`]+)[\"'`]"
)
_TYPE_CODE = re.compile(r"^(?:TS\d+|report[A-Z]\w+)$")
_KEBAB = re.compile(r"^[a-z]+(?:-[a-z]+)*$")
_LINT_CODE = re.compile(r"^[A-Z]{1,6}\d{2,4}$")
_LINT_SAYS = ("would be reformatted", "is not formatted", "Imports are incorrectly sorted", "unformatted")
_WARNING_FLAG = re.compile(r"\[-W(?:error=)?(?P<flag>[\w+-]+)[^\]]*\]$")
_SCRIPTS = (".js", ".jsx", ".cjs", ".mjs", ".ts", ".tsx", ".vue")
_RUST_TOOLS = frozenset({"cargo", "rustc"})
_RUST_CODE = re.compile(r"^E0\d{3}$")
_RUST_CRATE = re.compile(
    r"(?:unresolved import|(?:undeclared|unresolved) (?:crate or )?module(?: or unlinked crate)?) `\w+`$|"
    r"^can't find crate for `"
)
_RUST_SYNTAX = re.compile(
    r"^(?:expected |this file contains an |mismatched closing |unexpected closing |"
    r"un(?:closed|terminated) |unknown start of token|unexpected token|unexpected end of )"
)
_RUNNER_SAYS = re.compile(
    r"^(?:Error \d+|Aborted|Killed|Segmentation fault|.* failed with exit code .+|Failed|code )"
)
_RUNNER_FILE = re.compile(r"(?:^|/)(?:GNU)?[Mm]akefile$|\.mk$")
_RUNNER_REMARK = re.compile(r"^(?:g?make(?:\[\d+\])?: |npm (?:ERR!|error)|error: script |# )")


def _errors(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings that make a tool fail: its errors, or all findings if none has that severity.

    A runner's message that its recipe failed is left out if a tool under it reported more.
    """
    findings = tuple(each for each in findings if not _is_runner_message(each)) or findings
    errors = tuple(
        each for each in findings if (each.severity or "error").lower() in ("error", "fatal error")
    )
    return errors or findings


def _is_runner_message(finding: Finding) -> bool:
    """Return whether a finding is the runner's own message that a recipe or script failed."""
    # In outcomes of earlier versions, make's message has the path of its file.
    is_recipe = finding.path is None or _RUNNER_FILE.search(finding.path)
    return bool(is_recipe and _RUNNER_SAYS.match(finding.message))


def _findings(command: CommandFact) -> tuple[Finding, ...]:
    """Return the tool's findings; for a runner with messages of its own only, those in its output."""
    if command.tool not in _RUNNERS or not all(map(_is_runner_message, command.findings)):
        return command.findings
    return _parse_output(command.tool, command.output_tail) or command.findings


@lru_cache(maxsize=16)  # several rules query the same case, which is hashed by identity
def _complaints(case: Case) -> tuple[Finding, ...]:
    """Return the findings that make the case's command fail.

    Of rustc only the first error, since the others may follow from it; lints of clippy count if it
    reports no error.
    """
    errors = _errors(_findings(case.command))
    if case.command.tool not in _RUST_TOOLS:
        return errors
    is_compiler = any(_RUST_CODE.match(each.code or "") or _is_syntax(each) for each in errors)
    compiler = (each for each in errors if is_compiler and (not each.code or _RUST_CODE.match(each.code)))
    first = next(compiler, None)
    return errors if first is None else (first,)


@lru_cache(maxsize=64)
def _parse_output(name: str, output: str) -> tuple[Finding, ...]:
    """Return the findings that the catalog's tool of that name can read from an output."""
    tool = next((each for each in TOOLS if each.name == name), None)
    return read_findings(tool, output, "") if tool else ()


def _is_python(path: str | None) -> bool:
    return (path or "").endswith((".py", ".pyi"))


def _is_syntax(finding: Finding) -> bool:
    """Return whether the tool reports that it could not parse a file."""
    code = finding.code or ""
    if code in CODES["syntax"] or _TYPESCRIPT_SYNTAX.match(code) or finding.message.startswith(_PARSING):
        return True
    if code:
        return False
    if _is_python(finding.path):
        # For Python files, only pyright reports without a code, and only what it could not parse.
        is_placed = finding.severity == "error" and finding.column is not None
        return is_placed and not finding.message.startswith(_ABOUT_TYPES)
    is_rust = (finding.path or "").endswith((".rs", "Cargo.toml"))
    return is_rust and bool(_RUST_SYNTAX.match(finding.message))


def _is_type(finding: Finding) -> bool:
    """Return whether a finding is a type checker's, by the format of its code."""
    code = finding.code or ""
    if found := _WARNING_FLAG.search(finding.message):
        return found["flag"] in CODES["type_flags"]
    is_mypy = bool(_KEBAB.match(code)) and finding.severity == "error" and _is_python(finding.path)
    return is_mypy or bool(_TYPE_CODE.match(code))


def _is_style(finding: Finding) -> bool:
    """Return whether a finding is a linter's or formatter's, by the format of its code and message."""
    code = finding.code or ""
    if code == "unformatted" or finding.message.startswith(_LINT_SAYS) or _LINT_CODE.match(code):
        return True
    is_script = (finding.path or "").endswith(_SCRIPTS) and finding.severity
    if is_script and _KEBAB.match(code.rpartition("/")[2]):
        return True
    found = _WARNING_FLAG.search(finding.message)
    return found is not None and found["flag"] not in CODES["hard_flags"] and "error=" in found[0]


def _kind_of(case: Case, finding: Finding) -> str | None:
    """Return the kind of a finding, one of those in the table of rules; ``None`` if it is none of them."""
    code, command = finding.code or "", case.command
    if _is_syntax(finding):
        return "syntax"
    if code in CODES["imports"]:
        found = _MODULE.search(finding.message)
        name = found["name"] if found else ""
        top = name.partition(".")[0].partition("/")[0]
        is_own = name.startswith((".", "/")) or case.is_first_party(top) or case.is_test_package(top)
        return "own module" if is_own else "package"
    # Findings with other codes are lints of clippy, or tests that failed.
    is_error = (finding.severity or "error") == "error" and not (code or command.purpose == "lint")
    if command.tool in _RUST_TOOLS and (is_error or _RUST_CODE.match(code)):
        return _kind_in_rust(finding)
    if command.tool not in _RUNNERS:
        return _KIND_BY_PURPOSE.get(command.purpose)
    is_compiled = PurePosixPath(finding.path or "").suffix in CODES["compiled"]
    return (
        ("type" if _is_type(finding) else None)
        or ("style" if _is_style(finding) else None)
        or ("build" if is_compiled and (finding.severity or command.purpose == "build") else None)
    )


_KIND_BY_PURPOSE = {"type_check": "type", "lint": "style", "build": "build"}


def _kind_in_rust(finding: Finding) -> str:
    """Return the kind of an error of rustc, by its code."""
    code = finding.code or ""
    if code == "E0583":
        return "own module"
    if code in CODES["rust_imports"] and _RUST_CRATE.search(finding.message):
        return "package"
    if code in CODES["rust_interface"] and is_test_path(finding.path or ""):
        return "interface"
    return "type" if code in CODES["rust_types"] else "build"


@lru_cache(maxsize=16)
def _complaints_by_kind(case: Case) -> dict[str | None, list[Finding]]:
    """Return the findings that make the command fail, by kind; none if the command was killed.

    What a tool printed before it was killed is not why it failed.
    """
    found: dict[str | None, list[Finding]] = {}
    if not case.timed_out and case.process.signal is None:
        for finding in _complaints(case) if case.command.findings else ():
            found.setdefault(_kind_of(case, finding), []).append(finding)
    return found


def reader_of_finding(kind: str) -> Reader:
    """Return a reader for the first finding of a kind."""

    def read(case: Case) -> Hit | None:
        chosen = _complaints_by_kind(case).get(kind)
        return _complaint(case, chosen, promise=kind in _PROMISES) if chosen else None

    return read


_PROMISES = ("own module", "package", "interface")
"""Kinds of findings that the product owns even if they are in a test file."""


def _complaint(case: Case, findings: Sequence[Finding], *, promise: bool) -> Hit:
    """Return the hit for the first finding, if any of a changed file, with the number of others."""
    first = next((each for each in findings if each.path and case.is_changed(each.path)), findings[0])
    path = within_project(first.path, case.evidence) if first.path else None
    where = f" at {path}:{first.line}" if path and first.line else f" at {path}" if path else ""
    code = f" [{first.code}]" if first.code else ""
    more = counted(len(findings) - 1, "more complaint")
    rest = f" It has {more}." if len(findings) > 1 else ""
    is_tests = path is not None and not promise and _is_to_blame(case, path)
    return Hit(
        suggestion=f"{case.command.tool}{where}: {quote(first.message).rstrip('.')}{code}.{rest}",
        location=Location(path=path, line=first.line) if path else None,
        owner=Owner.TEST if is_tests else None,
    )


def _is_to_blame(case: Case, path: str) -> bool:
    """Return whether a file is a test that is to blame: it changed, or the product did not."""
    return is_test_path(path) and (case.is_changed(path) or not case.product_changed)


_DEADLY_STATUS = {132: "SIGILL", 134: "SIGABRT", 135: "SIGBUS", 136: "SIGFPE", 139: "SIGSEGV"}
"""Exit status that a shell returns for a program that crashed: 128 plus the number of the signal."""


def program_died_in_command(case: Case) -> str | None:
    """The command's output, or its exit status, says that a program died by a signal."""
    if case.command.purpose not in SCRIPT_PURPOSES:
        return None
    death = read_death(case.command.output_tail) or _DEADLY_STATUS.get(case.process.exit_code or 0)
    return death and f"A program of the project died in the command: {death}. Run it alone."


def reader_of_purpose(purpose: str) -> Reader:
    """Return a reader for a command of a purpose that failed without anything recognizable in its output.

    For a validator, and for the empty purpose, which is any, the output has to contain more than messages
    of a runner.
    """

    def read(case: Case) -> Hit | None:
        command = case.command
        lines = [line for line in command.output_tail.splitlines() if re.search(r"\w", line)]
        speaks = any(not _RUNNER_REMARK.match(line.strip()) for line in lines)
        # The purpose of ``make check`` is validation by name, but such targets mostly run tests.
        is_runner = command.tool in _RUNNERS and command.purpose == "validate" and speaks
        # A target of any name may run tests: what fails in them is no build.
        if command.tool in _RUNNERS and command.purpose == "build":
            is_runner = any(is_test_path(each.path or "") for each in _complaints(case))
        if purpose not in ("", "test" if is_runner else command.purpose):
            return None
        if purpose in ("", "validate") and not speaks:
            return None
        own = (
            each for each in _complaints(case) if each.path and each.line and not _is_runner_message(each)
        )
        first = next(own, None)
        path = within_project(first.path, case.evidence) if first and first.path else None
        # A test that was not changed shows the fault of what was changed.
        is_test = path is not None and is_test_path(path)
        only_tests = all(map(is_test_path, case.changed or ()))
        if first is not None:
            why = f": {quote(': '.join(filter(None, (first.code, first.message))))} at {path}:{first.line}"
        elif case.has_error:
            why = f": {error_text(case.error)}"
        else:
            said = [line for line in lines if not _RUNNER_REMARK.match(line.strip())] or lines
            why = f"; its last line was: {quote(said[-1])}" if said else " without output"
        shown = quote(" ".join(command.argv) or command.tool)
        return Hit(
            suggestion=f"{shown} ended with exit code {case.process.exit_code}{why}.",
            location=Location(path=path, line=first.line)
            if first and path and not (is_test and not only_tests)
            else None,
            owner=Owner.TEST if is_test and path and case.is_changed(path) and only_tests else None,
        )

    return read
