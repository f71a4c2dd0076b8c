"""Rules for commands that are not pytest: by the tool, its findings, its output, and how it ended.

Several of the rules are one function with different parameters (``_found``, ``_script``, ``_ended``), added
by :meth:`Rules.add`. A task runner such as make may start any tool: for it, a finding is attributed by its
format instead of by the command's purpose.
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
from planner.model.taxonomy import Category as C
from planner.model.taxonomy import Owner
from pytest_planverify.diagnosis.case import Case, within_project
from pytest_planverify.diagnosis.known import CODES, SET_UP, UNKNOWN_NAME
from pytest_planverify.diagnosis.messages import error_text, quote
from pytest_planverify.diagnosis.rule import Hit, Reader, Rules
from pytest_planverify.diagnosis.tool_output import ScriptError, read_death, read_script_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planner.model.evidence import CommandFact, Finding

COMMAND_RULES = Rules()
"""Rules for a command that are evaluated before the rules for a Python exception in its output."""
SCRIPT_RULES = Rules()
"""Rules for a command whose output contains no Python exception that another rule explains."""

_CHECKERS = frozenset({"lint", "type_check"})
_RUNNERS = frozenset({"make", "tox", "nox", "npm", "pnpm", "yarn", "pre-commit"})
"""Tools that only start others: the command's purpose does not determine which tool complained."""

_PARSING, _ABOUT_TYPES = tuple(CODES["parsing"]), tuple(CODES["about_types"])
_UNKNOWN_NAME, _SET_UP = re.compile(UNKNOWN_NAME, re.MULTILINE), re.compile(SET_UP, re.MULTILINE)
_SET_UP_FILES = re.compile(
    r"^(?:pyproject\.toml|setup\.cfg|tox\.ini|\.?mypy\.ini|\.?pylintrc(?:\.toml)?|\.?ruff\.toml|\.flake8|"
    r"pyrightconfig\.json|tsconfig[\w.-]*\.json|\.eslintrc[\w.]*|eslint\.config\.[cm]?[jt]s|clippy\.toml)$"
)
"""Configuration files of checkers; a finding in one of them is no finding about the source."""
_TOOL_FRAME = re.compile(
    r"(?:^|/)(?:flake8|black|blib2to3|isort|pylint|astroid|mypy|pyright|bandit|ruff|pycodestyle|pyflakes|"
    r"importlinter|vulture|pydocstyle)(?:/|$|\.py$)|/node_modules/"
)
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
    """Return whether a missing file or module probably existed: it is one of the changed files.

    If changes are unknown, every module of the project counts.
    """
    if case.changed is None:
        return case.is_first_party(name)
    name = name.removeprefix("file://").removeprefix("./")
    if any(changed == name or name.endswith(f"/{changed}") for changed in case.changed):
        return True
    path = name.replace(".", "/") if _DOTTED.match(name) else ""
    ends = (f"/{path}.py", f"/{path}/__init__.py")
    return bool(path) and any(f"/{changed}".endswith(ends) for changed in case.changed)


@COMMAND_RULES.rule(C.ARTIFACT_MISSING, 0.9, second=(C.TEST_NOT_FOUND, 0.1))
def command_names_what_is_gone(case: Case) -> str | None:
    """The command is to look at a file of the project that was there and is gone."""
    names = (name for name in _unknown_names(case) if _is_gone(case, name))
    name = next((name for name in names if case.changed is not None or _is_asked(case.command, name)), None)
    look = f"{case.command.tool} should check"
    return name and f"{look} {quote(name, 80)}, which existed before and is gone: restore it."


@COMMAND_RULES.rule(C.TEST_NOT_FOUND, 0.92, second=(C.ENVIRONMENT_ERROR, 0.08))
def command_asks_for_nothing(case: Case) -> str | None:
    """The plan's command names a file, a target or an option that does not exist."""
    names = (name for name in _unknown_names(case) if _is_asked(case.command, name))
    name = next((name for name in names if not _is_gone(case, name)), None)
    unknown = f"which {case.command.tool} does not know or find"
    return name and f"The plan's command names {quote(name, 80)}, {unknown}: correct the command."


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
    text = "\n".join(_own_lines(case))
    return tuple(
        ".".join(filter(None, found.groups()))
        or (text[found.end() + 1 :].partition("\n")[0] if found[0].endswith(":") else "")
        for found in _UNKNOWN_NAME.finditer(text)
    )


def _own_lines(case: Case) -> tuple[str, ...]:
    """Return the output lines that may be about the tool itself; none if all findings are about source."""
    findings = case.command.findings
    is_source = all(each.path and each.line and each.code not in CODES["never_looked"] for each in findings)
    is_checker = case.command.purpose != "test"
    return () if findings and is_source and is_checker else case.output_lines


@COMMAND_RULES.rule(C.ENVIRONMENT_ERROR, 0.88, second=(C.LINT_ERROR, 0.1))
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
    found = _SET_UP.search("\n".join(_own_lines(case)))
    return found and f"{command.tool} cannot work with its configuration: {quote(found[0])}"


@COMMAND_RULES.rule(C.ENVIRONMENT_ERROR, 0.85, second=(C.LINT_ERROR, 0.1))
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


_NO_TOOL = re.compile(
    r"^(?:(?:/bin/)?(?:ba|da)?sh|[^\s:]+): (?:line )?\d+: (?P<shell>[\w.+-]+|/[\w./+-]+): "
    r"(?:command )?not found$|"
    r"^g?make(?:\[\d+\])?: (?P<make>[\w+-]+): (?:No such file or directory|Command not found)$|"
    r"^npm error npx canceled due to missing packages .*\[\"(?P<npx>[^\"@]+)",
    re.MULTILINE,
)
_ABSENT_HEADER = re.compile(
    r"^(?P<path>[^\s:]+):(?P<line>\d+):\d+: fatal error: (?P<header>\S+): No such file or directory\n"
    r"[^\n]*#\s*include\s*(?P<quote>[\"<])",
    re.MULTILINE,
)
_ABSENT_PREREQUISITE = re.compile(
    r"^g?make(?:\[\d+\])?: \*\*\* No rule to make target [`'](?P<name>[^']+)', "
    r"needed by [`'](?P<by>[^']+)'",
    re.MULTILINE,
)
_COVERAGE = re.compile(
    r"^(?:Coverage failure: (?P<total>total of .+ is less than .+)|"
    r"(?:ERROR: |FAIL )(?:Coverage failure: |Required test coverage of )(?P<required>.+)|"
    r"(?:Jest: |ERROR: )(?P<jest>.*[Cc]overage .*(?:threshold|does not meet).+))$",
    re.MULTILINE,
)


@COMMAND_RULES.rule(C.ENVIRONMENT_ERROR, 0.9)
def tool_missing_in_command(case: Case) -> str | None:
    """A program that the command starts is not installed here."""
    output = case.command.output_tail
    # Searching for substrings first is faster than the pattern on most output; likewise in rules below.
    may_match = "not found" in output or "No such file" in output or "npx canceled" in output
    found = _NO_TOOL.search(output) if may_match else None
    tool = next(filter(None, found.groups()), None) if found else None
    return tool and f"The command starts {tool}, which is not installed: install it, or correct PATH."


def _absent_header(sign: str, remedy: str) -> Reader:
    """Return a reader for a missing C header, by the character that opens its name: ``"`` or ``<``."""

    def read(case: Case) -> Hit | None:
        output = case.command.output_tail
        found = _ABSENT_HEADER.search(output) if "fatal error: " in output else None
        if found is None or found["quote"] != sign:
            return None
        return Hit(
            suggestion=(
                f"{found['path']}:{found['line']} includes {quote(found['header'], 80)}, which "
                f"does not exist: {remedy}."
            ),
            location=Location(path=found["path"], line=int(found["line"])),
        )

    return read


# fmt: off
COMMAND_RULES.add(
    "header-of-project-missing", _absent_header('"', "write it, or correct the name"),
    C.ARTIFACT_MISSING, 0.85, "A source file includes a header of the project that does not exist.",
    second=(C.COMPILATION_ERROR, 0.15),
)
COMMAND_RULES.add(
    "header-of-system-missing", _absent_header("<", "install the library that has it"),
    C.ENVIRONMENT_ERROR, 0.75, "A source file includes a header of a library that is not installed.",
    second=(C.IMPORT_ERROR, 0.25),
)
# fmt: on


@COMMAND_RULES.rule(C.ARTIFACT_MISSING, 0.8, second=(C.TEST_NOT_FOUND, 0.15))
def prerequisite_missing(case: Case) -> str | None:
    """A file that make needs does not exist, and make has no rule for it."""
    output = case.command.output_tail
    found = _ABSENT_PREREQUISITE.search(output) if "No rule to make" in output else None
    return found and (
        f"make needs {quote(found['name'], 80)} for {quote(found['by'], 80)}, and nothing makes it: a file "
        "of the project is gone, or a rule names another."
    )


@COMMAND_RULES.rule(C.METRIC_UNMET, 0.92)
def coverage_below_limit(case: Case) -> str | None:
    """The tests cover less than the limit that was set."""
    output = "" if case.has_error else case.command.output_tail
    found = _COVERAGE.search(output) if "overage " in output else None
    return found and f"The coverage is too low: {quote(next(filter(None, found.groups())))}."


_RUST_TOOLS = frozenset({"cargo", "rustc"})
_RUST_CODE = re.compile(r"^E0\d{3}$")
_RUST_CRATE = re.compile(
    r"(?:unresolved import|(?:undeclared|unresolved) (?:crate or )?module(?: or unlinked crate)?) `\w+`$|"
    r"^can't find crate for `"
)
_RUST_PACKAGE = re.compile(r"^error: no matching package named `(?P<name>[^`]+)` found", re.MULTILINE)
_RUST_SYNTAX = re.compile(
    r"^(?:expected |this file contains an |mismatched closing |unexpected closing |"
    r"un(?:closed|terminated) |unknown start of token|unexpected token|unexpected end of )"
)


def _rust(wanted: Callable[[Finding], bool], owner: Owner | None = None) -> Reader:
    """Return a reader for the first error of rustc, if ``wanted`` accepts it; failing tests do not count.

    ``owner`` replaces the owner that the file of the error implies.
    """

    def read(case: Case) -> Hit | None:
        command = case.command
        if command.tool not in _RUST_TOOLS:
            return None
        is_rustc = any(_RUST_CODE.match(each.code or "") or _is_syntax(each) for each in command.findings)
        errors = (
            each
            for each in _errors(command.findings)
            if (each.severity or "error") == "error" and (each.code is None or _RUST_CODE.match(each.code))
        )
        error = next(errors, None) if is_rustc or command.purpose != "lint" else None
        if error is None or not wanted(error):
            return None
        hit = _complaint(case, (error,), promise=False)
        return Hit(suggestion=hit.suggestion, location=hit.location, owner=owner or hit.owner)

    return read


@COMMAND_RULES.rule(C.IMPORT_ERROR, 0.88, second=(C.ENVIRONMENT_ERROR, 0.1))
def rust_package_not_found(case: Case) -> str | None:
    """Cargo found no package of the name that the project declares."""
    found = _RUST_PACKAGE.search(case.command.output_tail) if case.command.tool in _RUST_TOOLS else None
    return found and f"cargo finds no package {found['name']}: correct Cargo.toml, or make it available."


# fmt: off
COMMAND_RULES.add(
    "rust-module-missing", _rust(lambda error: error.code == "E0583"),
    C.ARTIFACT_MISSING, 0.9, "A module is declared whose file does not exist.",
    second=(C.COMPILATION_ERROR, 0.1),
)
COMMAND_RULES.add(
    "rust-crate-missing",
    _rust(lambda error: error.code in CODES["rust_imports"] and bool(_RUST_CRATE.search(error.message))),
    C.IMPORT_ERROR, 0.9, "A crate is used that the project does not declare.",
)
COMMAND_RULES.add(
    "rust-interface-broken",
    _rust(
        lambda error: error.code in CODES["rust_interface"] and is_test_path(error.path or ""),
        Owner.PRODUCT,
    ),
    C.SPEC_MISMATCH, 0.85, "A test uses a name or a signature that the crate does not have.",
    second=(C.COMPILATION_ERROR, 0.15),
)
COMMAND_RULES.add(
    "rust-types-do-not-fit", _rust(lambda error: error.code in CODES["rust_types"]),
    C.TYPE_ERROR, 0.85, "The compiler rejected the type of a value.",
    second=(C.COMPILATION_ERROR, 0.15),
)
COMMAND_RULES.add(
    "rust-does-not-compile", _rust(lambda error: True),
    C.COMPILATION_ERROR, 0.9, "The compiler rejected a source file.",
)
# fmt: on


@COMMAND_RULES.rule(C.ENVIRONMENT_ERROR, 0.97)
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
_RUNNER_SAYS = re.compile(
    r"^(?:Error \d+|Aborted|Killed|Segmentation fault|.* failed with exit code .+|Failed|code )"
)
_RUNNER_FILE = re.compile(r"(?:^|/)(?:GNU)?[Mm]akefile$|\.mk$")
_RUNNER_REMARK = re.compile(r"^(?:g?make(?:\[\d+\])?: |npm (?:ERR!|error)|error: script )")


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
    is_recipe = finding.path is None or _RUNNER_FILE.search(finding.path)
    return bool(is_recipe and _RUNNER_SAYS.match(finding.message))


def _findings(command: CommandFact) -> tuple[Finding, ...]:
    """Return the tool's findings; for a runner with messages of its own only, those in its output."""
    if command.tool not in _RUNNERS or not all(map(_is_runner_message, command.findings)):
        return command.findings
    return _parse_output(command.tool, command.output_tail) or command.findings


@lru_cache(maxsize=16)
def _complaints(case: Case) -> tuple[Finding, ...]:
    """Return the findings that make the case's command fail."""
    return _errors(_findings(case.command))


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


def _is_compiler_finding(finding: Finding) -> bool:
    """Return whether a finding is about a file of a compiled language."""
    return PurePosixPath(finding.path or "").suffix in CODES["compiled"]


def _misses(case: Case, finding: Finding, *, own: bool) -> bool:
    """Return whether the tool could not find a module of the project (``own``) or of a third party."""
    if finding.code not in CODES["imports"]:
        return False
    found = _MODULE.search(finding.message)
    name = found["name"] if found else ""
    top = name.partition(".")[0].partition("/")[0]
    is_own = name.startswith((".", "/")) or case.is_first_party(top) or case.is_test_package(top)
    return is_own is own


def _found(purposes: str, wanted: Callable[[Case, Finding], bool], *, promise: bool = False) -> Reader:
    """Return a reader for the first finding that ``wanted`` accepts.

    Applies to commands for one of the ``purposes``, which are separated by spaces, and to runners. With
    ``promise`` the product owns the finding even if it is in a test file.
    """
    known = frozenset(purposes.split())

    def read(case: Case) -> Hit | None:
        command = case.command
        if not command.findings or not (command.purpose in known or command.tool in _RUNNERS):
            return None
        if case.timed_out or case.process.signal is not None:
            return None  # findings that a tool printed before it was killed are not why it failed
        chosen = tuple(each for each in _complaints(case) if wanted(case, each))
        return _complaint(case, chosen, promise=promise) if chosen else None

    return read


def _complaint(case: Case, findings: tuple[Finding, ...], *, promise: bool) -> Hit:
    """Return the hit for the first finding, with the number of further ones."""
    first = findings[0]
    path = within_project(first.path, case.evidence) if first.path else None
    where = f" at {path}:{first.line}" if path and first.line else f" at {path}" if path else ""
    code = f" [{first.code}]" if first.code else ""
    rest = f" It has {len(findings) - 1} more complaints." if len(findings) > 1 else ""
    is_tests = path is not None and not promise and _is_to_blame(case, path)
    return Hit(
        suggestion=f"{case.command.tool}{where}: {quote(first.message).rstrip('.')}{code}.{rest}",
        location=Location(path=path, line=first.line) if path else None,
        owner=Owner.TEST if is_tests else None,
    )


def _is_to_blame(case: Case, path: str) -> bool:
    """Return whether a file is a test that is to blame: it changed, or the product did not."""
    return is_test_path(path) and (case.is_changed(path) or not case.product_changed)


def _in_manner(manner: Callable[[Finding], bool]) -> Callable[[Case, Finding], bool]:
    """Return a filter that accepts any finding of the tool itself, under a runner those in its format."""
    return lambda case, finding: case.command.tool not in _RUNNERS or manner(finding)


# fmt: off
COMMAND_RULES.add(
    "tool-found-syntax-error",
    _found("test lint type_check build validate", lambda case, finding: _is_syntax(finding)),
    C.COMPILATION_ERROR, 0.96, "The tool could not parse the source.",
)
COMMAND_RULES.add(
    "tool-misses-own-module",
    _found("lint type_check build", lambda case, finding: _misses(case, finding, own=True), promise=True),
    C.ARTIFACT_MISSING, 0.88, "The tool does not find a module of the project: its file is gone.",
    second=(C.IMPORT_ERROR, 0.1),
)
COMMAND_RULES.add(
    "type-checker-found-no-module",
    _found("lint type_check build", lambda case, finding: _misses(case, finding, own=False), promise=True),
    C.IMPORT_ERROR, 0.88, "The tool does not find a module that is not the project's.",
    second=(C.TYPE_ERROR, 0.1),
)
COMMAND_RULES.add(
    "type-checker-complained", _found("type_check", _in_manner(_is_type)),
    C.TYPE_ERROR, 0.97, "A type checker found errors.",
)
COMMAND_RULES.add(
    "linter-complained", _found("lint", _in_manner(_is_style)),
    C.LINT_ERROR, 0.97, "A linter found errors.",
)
COMMAND_RULES.add(
    "compiler-complained", _found("build", _in_manner(_is_compiler_finding)),
    C.COMPILATION_ERROR, 0.93, "A compiler or build tool found errors.",
)
# fmt: on

_SCRIPT_PURPOSES = frozenset({"test", "validate", "build", "other"})
_DEADLY_STATUS = {132: "SIGILL", 134: "SIGABRT", 135: "SIGBUS", 136: "SIGFPE", 139: "SIGSEGV"}
"""Exit status that a shell returns for a program that crashed: 128 plus the number of the signal."""
_NO_FUNCTION = re.compile(r"is not a (?:function|constructor)\b")
_NO_MODULE = re.compile(r"^Cannot find (?:module|package) '(?P<name>[^']+)'")
_NO_EXPORT = re.compile(r"does not provide an export named '(?P<name>[^']+)'")


@SCRIPT_RULES.rule(C.TEST_CRASH, 0.88, second=(C.TEST_REGRESSION, 0.1))
def program_died_in_command(case: Case) -> str | None:
    """The command's output, or its exit status, says that a program died by a signal."""
    if case.command.purpose not in _SCRIPT_PURPOSES:
        return None
    death = read_death(case.command.output_tail) or _DEADLY_STATUS.get(case.process.exit_code or 0)
    return death and f"A program of the project died in the command: {death}. Run it alone."


def _script(wanted: Callable[[ScriptError], bool], sentence: str, owner: Owner | None = None) -> Reader:
    """Return a reader for the printed JavaScript error, if ``wanted`` accepts it.

    ``sentence`` begins the suggestion; its ``{at}`` is replaced by the place.
    """

    def read(case: Case) -> Hit | None:
        is_script = case.command.purpose in _SCRIPT_PURPOSES
        error = _script_error(case) if is_script else None
        if error is None or not wanted(error):
            return None
        place, at, location, blamed = error.place, "", None, owner
        if place is not None:
            path = within_project(place.path, case.evidence)
            at = f" at {path}:{place.line}"
            location = Location(path=path, line=place.line, function=place.function or None)
            blamed = owner or (Owner.TEST if _is_to_blame(case, path) else None)
        message = quote(f"{error.type}: {error.message}")
        return Hit(suggestion=f"{sentence.format(at=at)}: {message}.", location=location, owner=blamed)

    return read


@lru_cache(maxsize=16)
def _script_error(case: Case) -> ScriptError | None:
    return read_script_error(case.command.output_tail)


def _is_in_test(error: ScriptError) -> bool:
    return error.place is not None and is_test_path(error.place.path)


def _lacks_module(error: ScriptError, *, own: bool) -> bool:
    """Return whether an import found no module: a file of the project (``own``) or a package."""
    found = _NO_MODULE.match(error.message)
    return found is not None and found["name"].startswith((".", "/")) is own


def _misses_promise(error: ScriptError) -> bool:
    """Return whether a test calls a function, or anything imports a name, that the product lacks."""
    if error.type == "SyntaxError":
        return bool(_NO_EXPORT.search(error.message))
    return error.type == "TypeError" and bool(_NO_FUNCTION.search(error.message)) and _is_in_test(error)


# fmt: off
SCRIPT_RULES.add(
    "script-misses-promise",
    _script(_misses_promise, "The test{at} uses something that does not exist", Owner.PRODUCT),
    C.SPEC_MISMATCH, 0.8, "The test of a script uses what the product does not have.",
    second=(C.TYPE_ERROR, 0.15),
)
SCRIPT_RULES.add(
    "script-does-not-parse",
    _script(lambda error: error.type == "SyntaxError", "The source{at} does not parse"),
    C.COMPILATION_ERROR, 0.92, "A script of the project does not parse.",
)
SCRIPT_RULES.add(
    "script-lacks-own-module",
    _script(lambda error: _lacks_module(error, own=True), "A file that is imported{at} does not exist"),
    C.ARTIFACT_MISSING, 0.8, "A script imports a file of the project that does not exist.",
    second=(C.SPEC_MISMATCH, 0.2),
)
SCRIPT_RULES.add(
    "script-lacks-package",
    _script(lambda error: _lacks_module(error, own=False), "A package that is imported{at} is not "
        "installed"),
    C.IMPORT_ERROR, 0.88, "A script imports a package that is not installed.",
    second=(C.ENVIRONMENT_ERROR, 0.1),
)
SCRIPT_RULES.add(
    "script-meets-wrong-kind",
    _script(lambda error: error.type == "TypeError" and not _is_in_test(error),
            "The code{at} gets a value of the wrong type"),
    C.TYPE_ERROR, 0.85, "Product code of a script gets a value of the wrong type.",
    second=(C.TEST_REGRESSION, 0.15),
)
SCRIPT_RULES.add(
    "script-raised",
    _script(lambda error: error.place is not None, "An error was raised{at}"),
    C.TEST_REGRESSION, 0.85, "A script of the project raised an error.",
)
# fmt: on


def _ended(*purposes: str, must_speak: bool = False) -> Reader:
    """Return a reader for a command that failed without anything recognizable in its output.

    Applies to commands for one of ``purposes``, or for any if none is given. With ``must_speak`` the output
    has to contain more than messages of a runner.
    """

    def read(case: Case) -> Hit | None:
        command = case.command
        lines = [line for line in command.output_tail.splitlines() if line.strip()]
        speaks = any(not _RUNNER_REMARK.match(line.strip()) for line in lines)
        # The purpose of ``make check`` is validation by name, but such targets mostly run tests.
        is_runner = command.tool in _RUNNERS and command.purpose == "validate" and speaks
        purpose = "test" if is_runner else command.purpose
        if (purposes and purpose not in purposes) or (must_speak and not speaks):
            return None
        last = f"; its last line was: {quote(lines[-1])}" if lines else " without output"
        shown = quote(" ".join(command.argv) or command.tool)
        own = (
            each for each in _complaints(case) if each.path and each.line and not _is_runner_message(each)
        )
        first = next(own, None)
        return Hit(
            suggestion=f"{shown} ended with exit code {case.process.exit_code}{last}.",
            location=Location(path=within_project(first.path, case.evidence), line=first.line)
            if first is not None and first.path
            else None,
        )

    return read


# fmt: off
SCRIPT_RULES.add("linter-failed", _ended("lint"), C.LINT_ERROR, 0.88, "A linter or formatter failed.")
SCRIPT_RULES.add("type-checker-failed", _ended("type_check"), C.TYPE_ERROR, 0.85, "A type checker failed.")
SCRIPT_RULES.add(
    "build-failed", _ended("build"), C.COMPILATION_ERROR, 0.75, "A build failed.",
    second=(C.ENVIRONMENT_ERROR, 0.2),
)
SCRIPT_RULES.add(
    "test-command-failed", _ended("test"),
    C.TEST_REGRESSION, 0.8, "A test runner other than pytest failed.",
    second=(C.COMPILATION_ERROR, 0.1),
)
SCRIPT_RULES.add(
    "validation-failed", _ended("validate", must_speak=True),
    C.SPEC_MISMATCH, 0.65, "A validator rejected its input.",
    second=(C.TEST_REGRESSION, 0.3),
)
SCRIPT_RULES.add(
    "command-failed", _ended(must_speak=True),
    C.TEST_REGRESSION, 0.45, "A command of unknown purpose failed.",
    owner=Owner.UNKNOWN, second=(C.UNKNOWN, 0.4),
)
# fmt: on
