"""Rules for commands that are not pytest: by the tool, its findings, its words, and how it ended."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from planner.catalog.output import read_findings
from planner.catalog.test_paths import is_test_path
from planner.catalog.tools import TOOLS
from planner.model.evidence import CommandFact, Finding
from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind
from pytest_planverify.diagnosis.case import Case, within_project
from pytest_planverify.diagnosis.printed_scripts import (
    ScriptError,
    read_absent_header,
    read_absent_prerequisite,
    read_coverage,
    read_death,
    read_failed_assertion,
    read_missing_tool,
    read_script_error,
)
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.wording import quote, said

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_planverify.diagnosis.printed_scripts import Place

_SYNTAX_CODES = frozenset({"invalid-syntax", "syntax-error", "syntax", "E999", "E0001"})
_TYPESCRIPT_SYNTAX = re.compile(r"^TS1\d{3}$")
_PARSING = (
    "Parsing error:",
    "SyntaxError:",
    "Failed to parse",
    "cannot parse",
    "Cannot parse",
    "expected \u2018",
    "expected '",
    "expected expression",
)
_ABOUT_TYPES = ("Argument ", "Type ", "No overloads for ", "Cannot ", "Operator ", "Object of type ",
                "Could not ", "Method ", "Return type ", "Expression ", "\"__")  # fmt: skip
"""How pyright begins what it says of types over several lines, the last of which holds the code."""
_RUST = (".rs", "Cargo.toml")
_RUST_SYNTAX = re.compile(
    r"^(?:expected |this file contains an |mismatched closing |unexpected closing |"
    r"un(?:closed|terminated) |"
    r"unknown start of token|unexpected token|unexpected end of )"
)
_IMPORT_CODES = frozenset(
    {
        "import",
        "import-not-found",
        "import-untyped",
        "import-error",
        "reportMissingImports",
        "reportMissingModuleSource",
        "unresolved-import",
        "E0401",
        "TS2307",
        "TS2792",
        "TS7016",
        "n/no-missing-import",
        "n/no-missing-require",
        "import/no-unresolved",
    }
)
_MODULE = re.compile(
    r"(?:module named |[Cc]annot find module |Unable to import |Import |stubs for (?:module )?|"
    r"find the module |could not resolve |to module |path to module )[\"'`](?P<name>[^\"'`]+)[\"'`]"
)
_TYPE_CODE = re.compile(r"^(?:TS\d+|report[A-Z]\w+)$")
_KEBAB = re.compile(r"^[a-z]+(?:-[a-z]+)*$")
_LINT_CODE = re.compile(r"^[A-Z]{1,6}\d{2,4}$")
_LINT_SAYS = ("would be reformatted", "is not formatted", "Imports are incorrectly sorted", "unformatted")
_WARNING_FLAG = re.compile(r"\[-W(?:error=)?(?P<flag>[\w+-]+)[^\]]*\]$")
_TYPE_FLAGS = frozenset(
    {"incompatible-pointer-types", "int-conversion", "incompatible-function-pointer-types",
     "discarded-qualifiers", "return-mismatch", "sign-conversion", "conversion"}
)  # fmt: skip
_HARD_FLAGS = _TYPE_FLAGS | {"implicit-function-declaration", "implicit-int"}
"""What no compiler of today lets pass as a mere warning."""
_SCRIPTS = (".js", ".jsx", ".cjs", ".mjs", ".ts", ".tsx", ".vue")
_SOURCES = frozenset(
    {".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".m", ".mm", ".f90", ".rs", ".go", ".java", ".kt",
     ".cs", ".ts", ".tsx", ".swift", ".scala"}
)  # fmt: skip
_RUNNER_SAYS = re.compile(
    r"^(?:Error \d+|Aborted|Killed|Segmentation fault|.* failed with exit code .+|Failed)"
)
_RUNNER_FILE = re.compile(r"(?:^|/)(?:GNU)?[Mm]akefile$|\.mk$")


def errors_of(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that make a tool fail: its errors where it tells errors from lesser complaints.

    What a runner says about its recipe is left out where a tool under it says more.
    """
    findings = tuple(findings)
    findings = tuple(each for each in findings if not is_runners(each)) or findings
    errors = tuple(finding for finding in findings if (finding.severity or "error").lower() in _ERRORS)
    return errors or findings


_ERRORS = frozenset({"error", "fatal error"})


def is_runners(finding: Finding) -> bool:
    """Whether only a runner speaks: a recipe of its failed."""
    if finding.path is not None and not _RUNNER_FILE.search(finding.path):
        return False
    return bool(_RUNNER_SAYS.match(finding.message)) or finding.message.startswith("code ")


def is_syntax(finding: Finding) -> bool:
    """Whether the tool says that it could not parse a file."""
    code = finding.code or ""
    if code in _SYNTAX_CODES or _TYPESCRIPT_SYNTAX.match(code) or finding.message.startswith(_PARSING):
        return True
    # of a file of Python only pyright complains without a code, and then it could not parse it
    uncoded = not code and finding.severity == "error" and finding.column is not None
    uncoded = uncoded and not finding.message.startswith(_ABOUT_TYPES)
    return (uncoded and _is_python(finding.path)) or (
        not code and bool(_RUST_SYNTAX.match(finding.message)) and (finding.path or "").endswith(_RUST)
    )


def _is_python(path: str | None) -> bool:
    return (path or "").endswith((".py", ".pyi"))


def is_import(finding: Finding) -> bool:
    """Whether the tool says that it could not find a module."""
    return (finding.code or "") in _IMPORT_CODES


def is_own_module(case: Case, finding: Finding) -> bool:
    """Whether the module that was not found is one of the project."""
    found = _MODULE.search(finding.message)
    if found is None:
        return False
    name = found["name"]
    if name.startswith((".", "/")):
        return True
    return is_own_name(case, name)


def is_own_name(case: Case, module: str) -> bool:
    """Whether a dotted name belongs to the project, by what is known of it and by its files."""
    top = module.partition(".")[0].partition("/")[0]
    return case.is_first_party(top) or case.is_test_package(top)


def is_unchanged_test(case: Case, path: str | None) -> bool:
    """Whether a file of the tests is as it was, while the product is not."""
    return (
        bool(path) and is_test_path(path or "") and case.product_changed and not case.is_changed(path or "")
    )


def is_type(finding: Finding) -> bool:
    """Whether it is a type checker's complaint, by its manner."""
    code = finding.code or ""
    if _TYPE_CODE.match(code):
        return True
    if found := _WARNING_FLAG.search(finding.message):
        return found["flag"] in _TYPE_FLAGS
    return bool(_KEBAB.match(code)) and finding.severity == "error" and _is_python(finding.path)


def is_style(finding: Finding) -> bool:
    """Whether it is the complaint of a linter or formatter, by its manner."""
    code = finding.code or ""
    if code == "unformatted" or finding.message.startswith(_LINT_SAYS) or _LINT_CODE.match(code):
        return True
    if (
        finding.severity
        and _KEBAB.match(code.rpartition("/")[2])
        and (finding.path or "").endswith(_SCRIPTS)
    ):
        return True
    found = _WARNING_FLAG.search(finding.message)
    return found is not None and found["flag"] not in _HARD_FLAGS and "error=" in found[0]


def is_compilers(finding: Finding) -> bool:
    """Whether a compiler complains of a source file."""
    return PurePosixPath(finding.path or "").suffix in _SOURCES


NEVER_LOOKED = frozenset({"E902", "F0001"})
"""Codes of findings about a file that could not be opened."""

SET_UP_CODES = frozenset({"E0013", "TS2688", "TS5023", "TS5024", "TS5107", "TS5108", "TS6046", "TS18003"})
"""Codes of findings about the tool's own configuration."""

SET_UP_FILES = re.compile(
    r"^(?:pyproject\.toml|setup\.cfg|tox\.ini|\.?mypy\.ini|\.?pylintrc(?:\.toml)?|\.?ruff\.toml|\.flake8|"
    r"pyrightconfig\.json|tsconfig[\w.-]*\.json|\.eslintrc[\w.]*|eslint\.config\.[cm]?[jt]s|clippy\.toml)$"
)
"""Files that say how a checker works; what it says about them is no complaint about the work."""

_PYTHON = r"\S*python[\w.\-]*(?:\.exe)?"
_MAKE = r"\S*make(?:\[\d+\])?"
_NPM = r"npm (?:ERR!|error)"

NOT_THERE = re.compile(
    "^(?:"
    + "|".join(
        (
            # argparse, optparse, click, clap, getopt
            r".*: error: unrecognized arguments?: (\S+)",
            r"(?:.*: error: )?no such option: (\S+)",
            r".*: error: Unrecognized option found: (\S+)",
            r".*: error: argument [\w/, \-]+: (?:can't open|invalid choice:) '([^']+)'.*",
            r"Error: No such (?:option|command):? '?([^'\s]+?)'?[.:]?(?: .*)?",
            r"Error: Invalid value for .*: (?:Path|File|Directory|File or directory) '([^']+)' "
            r"does not exist\.",
            r"error: (?:unexpected argument|unrecognized subcommand|invalid value) '([^']+)'.*",
            r"error: Found argument '([^']+)'.*",
            r".*: unrecognized option [`'\"]?([^'\"\s]+)['\"]?",
            # checkers of Python
            r"mypy: error: Cannot find config file '([^']+)'",
            r"The config file (\S+) doesn't exist!",
            r"Unexpected option (\S+?)\.?",
            r"File or directory \"([^\"]+)\" does not exist\.?",
            r"Cause: Unknown rule selector `([^`]+)` in `[\w-]+` from the CLI",
            r"Broken \d+ paths",
            r"io: (\S+): No such file or directory .*",
            r"\[Errno 2\] No such file or directory: '([^']+)'",
            r"Can't list '([^']+)'",
            r"No source for code: '([^']+)'.*",
            # interpreters and test runners
            rf"{_PYTHON}: can't open file '?([^']+?)'?: \[Errno 2\] .*",
            rf"{_PYTHON}: No module named '?([\w.]+)'?(?:;.*)?",
            rf"{_PYTHON}: Error while finding module specification for '([\w.]+)'.*",
            r"ModuleNotFoundError: No module named '([\w.]+)'(?:; .*)?",
            r"AttributeError: module '([\w.]+)' has no attribute '(\w+)'",
            r"AttributeError: type object '([\w.]+)' has no attribute '(\w+)'",
            r"ImportError: Start directory is not importable: '([^']+)'",
            r"ERROR: (?:file or directory not found: |not found: )(\S+)",
            # JavaScript
            r"Could not find '([^']+)'",
            r"Error: Cannot find module '(/[^']+)'",
            r"\S*node: bad option: (\S+)",
            r"Error: No test files found: \"([^\"]+)\"",
            r"Warning: Cannot find any files matching pattern \"([^\"]+)\"",
            r"No files matching (?:the pattern )?[\"']([^\"']+)[\"'] were found\.?",
            r"(?:\[error\] )?No files matching the pattern were found: \"([^\"]+)\"\.?",
            r"Invalid option '([^']+)'.*",
            r"error TS5023: Unknown compiler option '([^']+)'.*",
            r"error TS(?:5057|5058|5083|6053): .*?'([^']+)'.*",
            rf"{_NPM} Missing script: \"?([^\"]+)\"?",
            # make, tox, nox, cargo
            rf"{_MAKE}: \*\*\* No rule to make target [`']([^']+)'\.(?:  Stop\.)?",
            rf"{_MAKE}: ([^\s:]+): No such file or directory",
            r"ROOT: HandledError\| provided environments not found in configuration file:",
            r"ROOT: HandledError\| unrecognized arguments: (\S+)",
            r"nox > Sessions not found: (.+)",
            r"error: no (?:test|bin|example|bench) target named `([^`]+)`.*",
            r"error: package ID specification `([^`]+)` did not match any packages",
            r"error: package\(s\) `([^`]+)` not found in workspace.*",
            r"error: manifest path `([^`]+)` does not exist",
            r"error: (?:the package '[^']+' does not contain|none of the selected packages contains) "
            r"(?:this|these) features?: (\S+)",
        )
    )
    + ")$"
)
"""A name that a tool does not know or find; where no group matched, it stands in the next line."""

SET_UP = re.compile(
    "^(?:"
    + "|".join(
        (
            # Python
            r"(?:\S+: )?[Ee]rror importing plugin .*",
            r"Config file \".+\" could not be parsed\..*",
            r"ruff failed",
            r"There was a critical error during execution of Flake8:.*",
            r"Error: (?:Could not open file '[^']+': )?Error reading configuration file.*",
            r"Error: Could not open file '[^']+': Error reading configuration.*",
            r"Error: Invalid (?:value for|config keys) .*",
            r"(?:Oh no! )?.*The required version `[^`]+` does not match the running version .*",
            r"(?:No data to report\.|No source for code: .*)",
            r"(?:Couldn't (?:read|use) .*config.*|Can't read '.*' as .*)",
            r"[\w.-]+: Exception running subprocess \[Errno \d+\] .*",
            r"[\w.-]+: exit \d+ \(.*\) .*> (?:\S*python\S* -I -m pip|pip|uv pip) install .*",
            r"ROOT: (?:HandledError\| .*|No tox\.ini .*)",
            # JavaScript
            r"npm (?:ERR!|error) code (?!ELIFECYCLE)E[A-Z]+",
            r".*Error \[ERR_MODULE_NOT_FOUND\]: Cannot find package '[^']+' imported from "
            r".*/node_modules/.*",
            r"Error: Unable to read/parse .*",
            r"Oops! Something went wrong! :\(",
            r"(?:ESLint couldn't find .*|Failed to load (?:plugin|config) .*)",
            r"\[error\] Invalid configuration .*",
            # Rust and C
            r"error: (?:toolchain '.*|could not download file .*|'[\w-]+' is not installed for .*|"
            r"component '.*|"
            r"no such (?:sub)?command: `.*|rustc [\d.]+ is not supported by .*|linker `.*` not found|"
            r"package `.*` cannot be built because it requires rustc .*|override toolchain '.*|"
            r"the 'cargo.*' (?:binary|component) .*)",
            r"error: custom toolchain '.*",
            r"The file `[^`]+` failed to parse\.",
            r"\S*(?:cc|gcc|clang|g\+\+|cc1|cc1plus|clang\+\+)(?:-[\d.]+)?: (?:fatal )?error: "
            r"(?:unrecognized command[- ]line option|"
            r"unknown argument|unsupported option).*",
            r"\S*ld(?:\.\w+)?: cannot find -l.*",
        )
    )
    + ")$"
)
"""A tool that says why it cannot work here."""

TOOL_FRAME = re.compile(
    r"(?:^|/)(?:flake8|black|blib2to3|isort|pylint|astroid|mypy|pyright|bandit|ruff|pycodestyle|pyflakes|"
    r"importlinter|vulture|pydocstyle)(?:/|$|\.py$)|/node_modules/"
)
"""The file of a frame that belongs to a checker."""


_CHECKERS = frozenset({"lint", "type_check"})
_DOTTED = re.compile(r"^[A-Za-z_]\w*(?:\.\w+)*$")


def command_of(case: Case) -> CommandFact | None:
    """The command that failed, where the criterion is one."""
    return case.evidence.command if case.evidence.kind is EvidenceKind.COMMAND else None


def is_asked(command: CommandFact, name: str) -> bool:
    """Whether the plan's own command says this name: an option, a path, a module, a target."""
    name = name.removeprefix("file://").removeprefix("./")
    bare = name.lstrip("-")
    for word in command.argv[1:]:
        option, _, value = word.partition("=")
        for said_here in (word, option, value):
            said_here = said_here.removeprefix("./").rstrip("/")
            if said_here and (said_here == name or said_here.lstrip("-") == bare):
                return True
            if said_here and (name.endswith(f"/{said_here}") or said_here.endswith(f".{name}")):
                return True
    return False


def is_gone(case: Case, name: str) -> bool:
    """Whether what is not there is known to have been there: it is one of the changed files."""
    if not case.changed:
        return False
    name = name.removeprefix("file://").removeprefix("./")
    path = name.replace(".", "/") if _DOTTED.match(name) and "/" not in name else ""
    ends = tuple(end for end in (f"/{path}.py", f"/{path}/__init__.py") if path)
    return any(
        changed == name or name.endswith(f"/{changed}") or f"/{changed}".endswith(ends)
        for changed in case.changed
    )


def _may_be_gone(case: Case, name: str) -> bool:
    """A module of the project, where nothing is known of changes."""
    return case.changed is None and case.is_first_party(name)


def _not_there(case: Case, command: CommandFact) -> Iterator[str]:
    """The names that the tool says it does not know or find."""
    for finding in command.findings:
        if finding.path and (
            finding.code in NEVER_LOOKED or finding.message.startswith("Cannot read file:")
        ):
            yield finding.path
    for name in _unknown_names(case.output_lines):
        yield name or command.argv[-1]


@lru_cache(maxsize=64)
def _unknown_names(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The names that the lines complain of; an empty one where the tool does not tell."""
    names: list[str] = []
    for at, line in enumerate(lines):
        found = NOT_THERE.match(line) if line else None
        if found is None:
            continue
        groups = [group for group in found.groups() if group]
        follows = lines[at + 1] if line.endswith(":") and at + 1 < len(lines) else ""
        names.append(".".join(groups) or follows)
    return tuple(names)


def _asked_for_nothing(case: Case) -> Hit | None:
    command = command_of(case)
    if command is None or not command.found or not case.process.exit_code:
        return None
    for name in _not_there(case, command):
        if is_asked(command, name) and not is_gone(case, name) and not _may_be_gone(case, name):
            return Hit(
                suggestion=f"The plan's command names {quote(name, 80)}, which {command.tool} does not "
                "know or find: correct the command."
            )
    return None


def _names_what_is_gone(case: Case) -> Hit | None:
    command = command_of(case)
    if command is None or not command.found or not case.process.exit_code:
        return None
    for name in _not_there(case, command):
        if is_gone(case, name) or (is_asked(command, name) and _may_be_gone(case, name)):
            return Hit(
                suggestion=f"{command.tool} is to look at {quote(name, 80)}, which was there and is gone: "
                "put it back."
            )
    return None


def _set_up_wrongly(case: Case) -> Hit | None:
    command = command_of(case)
    if command is None or not command.found or not case.process.exit_code:
        return None
    for finding in command.findings[:3]:
        path = (finding.path or "").rpartition("/")[2]
        if finding.code in SET_UP_CODES or (command.purpose in _CHECKERS and SET_UP_FILES.match(path)):
            return Hit(
                suggestion=f"{command.tool} is not set up rightly: {quote(finding.message)}",
                location=Location(path=finding.path, line=finding.line) if finding.path else None,
            )
    line = next((line for line in case.output_lines if line and SET_UP.match(line)), None)
    if line is None:
        return None
    return Hit(suggestion=f"{command.tool} cannot work as it is set up here: {quote(line)}")


def _broke_down(case: Case) -> Hit | None:
    """A traceback that begins in a tool of Python, and never comes to code of the project."""
    command, error = command_of(case), case.error
    if command is None or error is None or command.purpose not in _CHECKERS or not error.frames:
        return None
    if not any(TOOL_FRAME.search(frame.path) for frame in error.frames[:4]):
        return None
    last = error.frames[-1]
    return Hit(
        suggestion=f"{command.tool} itself failed: {said(error)}. Look at its configuration, its plugins "
        "and its version.",
        location=Location(path=last.path, line=last.line, function=last.function),
    )


# fmt: off
TOOL_USE_RULES: tuple[Rule, ...] = (
    Rule("command-names-what-is-gone", Category.ARTIFACT_MISSING, 0.9, _names_what_is_gone,
         second=(Category.TEST_NOT_FOUND, 0.1),
         because="The command is to look at a file of the project that was there and is gone."),
    Rule("command-asks-for-nothing", Category.TEST_NOT_FOUND, 0.92, _asked_for_nothing,
         second=(Category.ENVIRONMENT_ERROR, 0.08),
         because="The plan's command names a file, a target or an option that does not exist."),
    Rule("tool-set-up-wrongly", Category.ENVIRONMENT_ERROR, 0.88, _set_up_wrongly,
         second=(Category.LINT_ERROR, 0.1),
         because="The tool's configuration, a plugin or its version keeps it from working."),
    Rule("tool-broke-down", Category.ENVIRONMENT_ERROR, 0.85, _broke_down,
         second=(Category.LINT_ERROR, 0.1),
         because="The tool failed with a traceback of its own."),
)
# fmt: on
"""What is asked first: a tool that did not look at the work says nothing about it."""


_NOT_STARTED = (126, 127)

_RUNPY = re.compile(r"^\S*python[\w.\-]*(?:\.exe)?: (?:Error while finding module specification for .*|"
                    r"No module named '?(?P<module>[\w.]+)'?(?:;.*)?)$")  # fmt: skip


def _command(case: Case) -> CommandFact | None:
    return case.evidence.command if case.evidence.kind is EvidenceKind.COMMAND else None


def _line(case: Case, pattern: re.Pattern[str]) -> str | None:
    """The name that a line of the output, matched as a whole, complains about."""
    command = _command(case)
    if command is None:
        return None
    for line in case.output_lines:
        if found := pattern.match(line):
            return next((group for group in found.groups() if group), "")
    return None


def _not_there_commands(case: Case) -> Hit | None:
    command = _command(case)
    if command is None or (command.found and case.process.exit_code not in _NOT_STARTED):
        return None
    program = command.argv[0] if command.argv else command.tool
    return Hit(
        suggestion=f"{program} is not installed here or cannot be executed: install it, or correct PATH.",
        weight=1.0 if not command.found else 0.9,
    )


def _module_not_there(case: Case) -> Hit | None:
    module = _line(case, _RUNPY)
    if not module or case.is_first_party(module):
        return None
    return Hit(suggestion=f"The interpreter of the command has no module {module}: install it there.")


def findings_of(command: CommandFact) -> tuple[Finding, ...]:
    """The tool's findings; of a runner that tells only that a recipe failed, what its output holds."""
    if command.tool not in RUNNERS or not all(map(is_runners, command.findings)):
        return command.findings
    return _read_again(command.tool, command.output_tail) or command.findings


@lru_cache(maxsize=64)
def _read_again(name: str, output: str) -> tuple[Finding, ...]:
    tool = next((each for each in TOOLS if each.name == name), None)
    return read_findings(tool, output, "") if tool else ()


_Choice = Callable[[Case, Finding], bool]
RUNNERS = frozenset({"make", "tox", "nox", "npm", "pnpm", "yarn", "pre-commit"})
"""Tools that only start others: what they were asked for does not tell whose complaint it is."""


def _findings(purposes: frozenset[str], wanted: _Choice, *, promise: bool = False) -> Reader:
    """Reads the first complaint that is wanted, of a tool for one of the purposes, or under a runner."""

    def read(case: Case) -> Hit | None:
        command = _command(case)
        if command is None or not command.findings or _was_ended(case):
            return None
        if command.purpose not in purposes and command.tool not in RUNNERS:
            return None
        chosen = tuple(each for each in errors_of(findings_of(command)) if wanted(case, each))
        return _complaint(case, command, chosen, promise=promise) if chosen else None

    return read


def _was_ended(case: Case) -> bool:
    """What a tool said before it was ended is not why it failed."""
    return case.evidence.timed_out or case.process.timed_out or case.process.signal is not None


def _complaint(case: Case, command: CommandFact, findings: tuple[Finding, ...], *, promise: bool) -> Hit:
    tool, first = command.tool, findings[0]
    if first.path:
        first = first.model_copy(update={"path": within_project(first.path, case.evidence)})
    position = f"{first.path}:{first.line}" if first.path and first.line else first.path
    where = f" at {position}" if position else ""
    code = f" [{first.code}]" if first.code else ""
    rest = f" It has {len(findings) - 1} more complaints." if len(findings) > 1 else ""
    in_test = bool(first.path) and is_test_path(first.path or "")
    return Hit(
        suggestion=f"{tool}{where}: {quote(first.message).rstrip('.')}{code}.{rest}",
        location=Location(path=first.path, line=first.line) if first.path else None,
        owner=Owner.TEST if in_test and not (promise or is_unchanged_test(case, first.path)) else None,
    )


def _by_kind(purpose: str, manner: Callable[[Finding], bool]) -> _Choice:
    """Complaints of a tool for the purpose; under a runner those that are made in such a tool's manner."""

    def wanted(case: Case, finding: Finding) -> bool:
        command = case.evidence.command
        if command is None:
            return False
        if command.tool in RUNNERS:
            return manner(finding)
        return command.purpose == purpose

    return wanted


def _no_such_module(*, own: bool) -> _Choice:
    return lambda case, finding: is_import(finding) and is_own_module(case, finding) is own


_ANY = frozenset({"test", "lint", "type_check", "build", "validate"})
_CHECKED = frozenset({"lint", "type_check", "build"})

# fmt: off
COMMAND_RULES: tuple[Rule, ...] = (
    Rule("tool-not-found", Category.ENVIRONMENT_ERROR, 0.97, _not_there_commands,
         because="The program that the command names is not there to be run."),
    Rule("tool-module-not-found", Category.ENVIRONMENT_ERROR, 0.9, _module_not_there,
         second=(Category.IMPORT_ERROR, 0.2),
         because="The interpreter lacks the module that the command runs."),
    Rule("tool-found-syntax-error", Category.COMPILATION_ERROR, 0.96,
         _findings(_ANY, lambda case, finding: is_syntax(finding)),
         because="The tool could not parse the source."),
    Rule("tool-misses-own-module", Category.ARTIFACT_MISSING, 0.88,
         _findings(_CHECKED, _no_such_module(own=True), promise=True),
         second=(Category.IMPORT_ERROR, 0.1),
         because="The tool does not find a module of the project: its file is gone."),
    Rule("type-checker-found-no-module", Category.IMPORT_ERROR, 0.88,
         _findings(_CHECKED, _no_such_module(own=False), promise=True),
         second=(Category.TYPE_ERROR, 0.1),
         because="The tool does not find a module that is not the project's."),
    Rule("type-checker-complained", Category.TYPE_ERROR, 0.97,
         _findings(frozenset({"type_check"}), _by_kind("type_check", is_type)),
         because="A type checker found errors."),
    Rule("linter-complained", Category.LINT_ERROR, 0.97,
         _findings(frozenset({"lint"}), _by_kind("lint", is_style)),
         because="A linter found errors."),
    Rule("compiler-complained", Category.COMPILATION_ERROR, 0.93,
         _findings(frozenset({"build"}), _by_kind("build", is_compilers)),
         because="A compiler or build tool found errors."),
)
# fmt: on
"""What is asked of a command before its output is read for an exception."""


_TOOLS = frozenset({"cargo", "rustc"})
_CODE = re.compile(r"^E0\d{3}$")
_KINDS = frozenset(
    {
        "E0023", "E0026", "E0027", "E0053", "E0069", "E0070", "E0277", "E0282", "E0283", "E0308", "E0369",
        "E0600", "E0604", "E0605", "E0606", "E0607", "E0608", "E0614", "E0618",
    }
)  # fmt: skip
"""Errors about the type of a value."""
_INTERFACE = frozenset(
    {"E0046", "E0050", "E0060", "E0061", "E0063", "E0107", "E0186", "E0407", "E0412", "E0423", "E0425",
     "E0432", "E0433", "E0437", "E0560", "E0599", "E0603", "E0609", "E0616", "E0624"}
)  # fmt: skip
"""Errors about a name, a field or a signature that is another than the caller believes."""
_IMPORTS = frozenset({"E0432", "E0433", "E0463"})
_CRATE = re.compile(
    r"(?:unresolved import|(?:undeclared|unresolved) (?:crate or )?module(?: or unlinked crate)?) `\w+`$|"
    r"^can't find crate for `"
)
_NO_FILE = "E0583"
_NO_PACKAGE = re.compile(r"^error: no matching package named `(?P<name>[^`]+)` found", re.MULTILINE)


def _error(case: Case) -> Finding | None:
    """The compiler's first error; a failing test is none."""
    command = case.evidence.command
    if case.evidence.kind is not EvidenceKind.COMMAND or command is None or command.tool not in _TOOLS:
        return None
    if command.purpose == "lint" and not any(map(_is_compilers, command.findings)):
        return None
    errors = (
        each
        for each in errors_of(command.findings)
        if (each.severity or "error") == "error" and (each.code is None or _CODE.match(each.code))
    )
    return next(errors, None)


def _is_compilers(finding: Finding) -> bool:
    """What the linter under cargo would not say by itself: the source does not compile."""
    return bool(_CODE.match(finding.code or "")) or is_syntax(finding)


def _reading(wanted: Callable[[Finding], bool], owner: Owner | None = None) -> Reader:
    def read(case: Case) -> Hit | None:
        error = _error(case)
        if error is None or not wanted(error):
            return None
        where = f" at {error.path}:{error.line}" if error.path else ""
        code = f" [{error.code}]" if error.code else ""
        in_test = error.path is not None and is_test_path(error.path)
        return Hit(
            suggestion=f"rustc{where}: {quote(error.message).rstrip('.')}{code}.",
            location=Location(path=error.path, line=error.line) if error.path else None,
            owner=owner or (Owner.TEST if in_test else None),
        )

    return read


def _is_import(error: Finding) -> bool:
    return error.code in _IMPORTS and bool(_CRATE.search(error.message))


def _is_promise(error: Finding) -> bool:
    return error.code in _INTERFACE and error.path is not None and is_test_path(error.path)


def _no_package(case: Case) -> Hit | None:
    command = case.evidence.command
    if case.evidence.kind is not EvidenceKind.COMMAND or command is None or command.tool not in _TOOLS:
        return None
    found = _NO_PACKAGE.search(command.output_tail)
    if found is None:
        return None
    return Hit(
        suggestion=f"cargo finds no package {found['name']}: correct Cargo.toml, or make it available."
    )


# fmt: off
RUST_RULES: tuple[Rule, ...] = (
    Rule("rust-module-missing", Category.ARTIFACT_MISSING, 0.9,
         _reading(lambda error: error.code == _NO_FILE),
         second=(Category.COMPILATION_ERROR, 0.1),
         because="A module is declared whose file does not exist."),
    Rule("rust-package-not-found", Category.IMPORT_ERROR, 0.88, _no_package,
         second=(Category.ENVIRONMENT_ERROR, 0.1),
         because="Cargo found no package of the name that the project declares."),
    Rule("rust-crate-missing", Category.IMPORT_ERROR, 0.9, _reading(_is_import),
         because="A crate is used that the project does not have."),
    Rule("rust-interface-broken", Category.SPEC_MISMATCH, 0.85, _reading(_is_promise, Owner.PRODUCT),
         second=(Category.COMPILATION_ERROR, 0.15),
         because="A test uses a name or a signature that the crate does not have."),
    Rule("rust-types-do-not-fit", Category.TYPE_ERROR, 0.85, _reading(lambda error: error.code in _KINDS),
         second=(Category.COMPILATION_ERROR, 0.15),
         because="The compiler refused the type of a value."),
    Rule("rust-does-not-compile", Category.COMPILATION_ERROR, 0.9, _reading(lambda error: True),
         because="The compiler refused a source file."),
)
# fmt: on


_SCRIPTS_scripts = frozenset({"test", "validate", "build", "other"})
_DEADLY_STATUS = {128 + number: name for number, name in ((4, "SIGILL"), (6, "SIGABRT"), (7, "SIGBUS"),
                                                           (8, "SIGFPE"), (11, "SIGSEGV"))}  # fmt: skip
_NO_MODULE = re.compile(r"^Cannot find (?:module|package) '(?P<name>[^']+)'")
_NO_FUNCTION = re.compile(r"is not a (?:function|constructor)\b")
_NO_EXPORT = re.compile(r"does not provide an export named '(?P<name>[^']+)'")


def _output(case: Case) -> str | None:
    command = case.evidence.command
    if (
        case.evidence.kind is not EvidenceKind.COMMAND
        or command is None
        or command.purpose not in _SCRIPTS_scripts
    ):
        return None
    return command.output_tail


def _any_command(case: Case) -> CommandFact | None:
    return case.evidence.command if case.evidence.kind is EvidenceKind.COMMAND else None


def _owner(case: Case, place: Place | None) -> Owner | None:
    """Of the file; a test that is as it was is not to blame for a product that was changed."""
    if place is None or not is_test_path(place.path) or is_unchanged_test(case, place.path):
        return None
    return Owner.TEST


def _hit(case: Case, sentence: str, place: Place | None, owner: Owner | None = None) -> Hit:
    if place is not None:
        place = place._replace(path=within_project(place.path, case.evidence))
    where = f" at {place.path}:{place.line}" if place else ""
    location = (
        Location(path=place.path, line=place.line, function=place.function or None) if place else None
    )
    return Hit(suggestion=sentence.format(at=where), location=location, owner=owner or _owner(case, place))


def _died(case: Case) -> Hit | None:
    text = _output(case)
    if text is None or read_failed_assertion(text):
        return None
    death = _DEADLY_STATUS.get(case.process.exit_code or 0) or read_death(text)
    if death is None:
        return None
    return Hit(suggestion=f"A program of the project died under the command: {death}. Run it alone.")


def _missing_tool(case: Case) -> Hit | None:
    command = _any_command(case)
    tool = read_missing_tool(command.output_tail) if command else None
    if tool is None:
        return None
    return Hit(
        suggestion=f"The command starts {tool}, which is not installed here: install it, or correct PATH."
    )


def _script(wanted: Callable[[ScriptError], bool], sentence: str, owner: Owner | None = None) -> Reader:
    """Reads the error of a script, if it is one of those that are wanted."""

    def read(case: Case) -> Hit | None:
        text = _output(case)
        error = read_script_error(text) if text else None
        if error is None or not wanted(error):
            return None
        said = quote(f"{error.type}: {error.message}").replace("{", "(").replace("}", ")")
        return _hit(case, f"{sentence}: {said}.", error.places[0] if error.places else None, owner)

    return read


def _in_test(error: ScriptError) -> bool:
    return bool(error.places) and is_test_path(error.places[0].path)


def _module_name(error: ScriptError) -> str:
    found = _NO_MODULE.match(error.message)
    return found["name"] if found else ""


def _is_own_module(error: ScriptError) -> bool:
    return _module_name(error).startswith((".", "/"))


def _misses_promise(error: ScriptError) -> bool:
    """A test calls, or imports, what the product no longer offers."""
    if error.type == "SyntaxError":
        return bool(_NO_EXPORT.search(error.message))
    return error.type == "TypeError" and bool(_NO_FUNCTION.search(error.message)) and _in_test(error)


def _meets_wrong_kind(error: ScriptError) -> bool:
    return error.type == "TypeError" and not _in_test(error)


def _absent_prerequisite(case: Case) -> Hit | None:
    command = _any_command(case)
    found = read_absent_prerequisite(command.output_tail) if command else None
    if found is None:
        return None
    name, by = found
    return Hit(
        suggestion=f"make needs {quote(name, 80)} for {quote(by, 80)}, and nothing makes it: a file of the "
        "project is gone, or a rule names another."
    )


def _absent_header(own: bool) -> Reader:
    def read(case: Case) -> Hit | None:
        command = _any_command(case)
        found = read_absent_header(command.output_tail) if command else None
        if found is None or found[2] is not own:
            return None
        place, header, _ = found
        remedy = "write it, or correct the name" if own else "install the library that brings it"
        return Hit(
            suggestion=f"{place.path}:{place.line} includes {quote(header, 80)}, which is not there: "
            f"{remedy}.",
            location=Location(path=place.path, line=place.line),
        )

    return read


def _coverage(case: Case) -> Hit | None:
    command = _any_command(case)
    said = read_coverage(command.output_tail) if command and case.error is None else None
    return None if said is None else Hit(suggestion=f"The tests cover too little: {quote(said)}.")


# fmt: off
EARLY_SCRIPT_RULES: tuple[Rule, ...] = (
    Rule("tool-missing-in-command", Category.ENVIRONMENT_ERROR, 0.9, _missing_tool,
         because="A program that the command starts is not installed here."),
    Rule("header-of-project-missing", Category.ARTIFACT_MISSING, 0.85, _absent_header(own=True),
         second=(Category.COMPILATION_ERROR, 0.15),
         because="A source file includes a header of the project that does not exist."),
    Rule("header-of-system-missing", Category.ENVIRONMENT_ERROR, 0.75, _absent_header(own=False),
         second=(Category.IMPORT_ERROR, 0.25),
         because="A source file includes a header of a library that is not installed."),
    Rule("prerequisite-missing", Category.ARTIFACT_MISSING, 0.8, _absent_prerequisite,
         second=(Category.TEST_NOT_FOUND, 0.15),
         because="A file that make needs does not exist, and make has no rule for it."),
    Rule("coverage-below-limit", Category.METRIC_UNMET, 0.92, _coverage,
         because="The tests cover less than the limit that was set."),
)
# fmt: on
"""What is asked before the findings of a command are looked at."""

# fmt: off
SCRIPT_RULES: tuple[Rule, ...] = (
    Rule("program-died-in-command", Category.TEST_CRASH, 0.88, _died,
         second=(Category.TEST_REGRESSION, 0.1),
         because="The command's output, or its exit status, says that a program died by a signal."),
    Rule("script-misses-promise", Category.SPEC_MISMATCH, 0.8,
         _script(_misses_promise, "What the test{at} asks for is not there", Owner.PRODUCT),
         second=(Category.TYPE_ERROR, 0.15),
         because="A script's test calls or imports what the product does not offer."),
    Rule("script-does-not-parse", Category.COMPILATION_ERROR, 0.92,
         _script(lambda error: error.type == "SyntaxError", "The source{at} does not parse"),
         because="A script of the project does not parse."),
    Rule("script-lacks-own-module", Category.ARTIFACT_MISSING, 0.8,
         _script(_is_own_module, "A file that is imported{at} is not there"),
         second=(Category.SPEC_MISMATCH, 0.2),
         because="A script imports a file of the project that does not exist."),
    Rule("script-lacks-package", Category.IMPORT_ERROR, 0.88,
         _script(lambda error: bool(_module_name(error)), "A package that is imported{at} is absent"),
         second=(Category.ENVIRONMENT_ERROR, 0.1),
         because="A script imports a package that is not installed."),
    Rule("script-meets-wrong-kind", Category.TYPE_ERROR, 0.85,
         _script(_meets_wrong_kind, "The code{at} meets a value of the wrong kind"),
         second=(Category.TEST_REGRESSION, 0.15),
         because="A script's product code meets a value of the wrong kind."),
    Rule("script-raised", Category.TEST_REGRESSION, 0.85,
         _script(lambda error: bool(error.places), "An error was raised{at}"),
         because="A script of the project raised an error."),
)
# fmt: on


_RUNNER_REMARK = re.compile(r"^(?:g?make(?:\[\d+\])?: |npm (?:ERR!|error)|error: script )")
_VALIDATORS = frozenset({"validate"})


def _silent(purposes: frozenset[str], *, exit_code: int | None = None) -> Reader:
    def read(case: Case) -> Hit | None:
        command = command_of(case)
        if command is None or command.purpose not in purposes:
            return None
        if exit_code is not None and (case.process.exit_code != exit_code or command.findings):
            return None
        return Hit(suggestion=_how_it_ended(case, command), location=_first_place(case, command))

    return read


def _first_place(case: Case, command: CommandFact) -> Location | None:
    """Where the first complaint stands that is more than a runner's own."""
    for each in errors_of(findings_of(command)):
        if each.path and each.line and not is_runners(each):
            return Location(path=within_project(each.path, case.evidence), line=each.line)
    return None


def _says_something(command: CommandFact) -> bool:
    """Whether the output holds more than a runner's own remark that something in it failed."""
    lines = [line.strip() for line in command.output_tail.splitlines()]
    return any(line and not _RUNNER_REMARK.match(line) for line in lines)


def _failed_audibly(case: Case) -> Hit | None:
    command = command_of(case)
    if command is None or not _says_something(command):
        return None
    return Hit(suggestion=_how_it_ended(case, command))


def _refused(case: Case) -> Hit | None:
    command = command_of(case)
    return _silent(_VALIDATORS)(case) if command and _says_something(command) else None


def _how_it_ended(case: Case, command: CommandFact) -> str:
    shown = quote(" ".join(command.argv) or command.tool)
    lines = [line for line in command.output_tail.splitlines() if line.strip()]
    last = f"; its last line was: {quote(lines[-1])}" if lines else " and said nothing"
    return f"{shown} ended with exit code {case.process.exit_code}{last}."


# fmt: off
COMMAND_FALLBACKS: tuple[Rule, ...] = (
    Rule("linter-failed", Category.LINT_ERROR, 0.88, _silent(frozenset({"lint"})),
         because="A linter or formatter failed."),
    Rule("type-checker-failed", Category.TYPE_ERROR, 0.85, _silent(frozenset({"type_check"})),
         because="A type checker failed."),
    Rule("build-failed", Category.COMPILATION_ERROR, 0.75, _silent(frozenset({"build"})),
         second=(Category.ENVIRONMENT_ERROR, 0.2),
         because="A build failed."),
    Rule("validation-failed", Category.SPEC_MISMATCH, 0.65, _refused,
         second=(Category.TEST_REGRESSION, 0.3),
         because="A validator refused what it was given."),
    Rule("test-command-failed", Category.TEST_REGRESSION, 0.8, _silent(frozenset({"test"})),
         second=(Category.COMPILATION_ERROR, 0.1),
         because="A test runner other than pytest failed."),
    Rule("command-failed", Category.TEST_REGRESSION, 0.45, _failed_audibly, owner=Owner.UNKNOWN,
         second=(Category.UNKNOWN, 0.4),
         because="A command of no known purpose failed."),
)
# fmt: on
"""What is concluded from a command whose output tells no more."""
