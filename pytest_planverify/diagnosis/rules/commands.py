"""Rules for commands that are not pytest: by the kind of tool, its findings, and how it ended."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.kinds import EvidenceKind
from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.printed_scripts import is_test_path, read_arrow
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.wording import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from planner.model.evidence import CommandFact, Finding
    from pytest_planverify.diagnosis.reading import Case

_SYNTAX_CODES = frozenset({"invalid-syntax", "syntax-error", "syntax", "E999", "E0001", "E902"})
_TYPESCRIPT_SYNTAX = re.compile(r"^TS1\d{3}$")
_PARSING = ("Parsing error:", "SyntaxError:", "expected \u2018", "expected '", "expected expression")
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
        "TS7016",
    }
)
_RUNNER_REMARK = re.compile(r"^(?:g?make(?:\[\d+\])?: |npm (?:ERR!|error)|error: script )")
_NOT_STARTED = (126, 127)
_USAGE = 2

_RUNPY = re.compile(r"^\S*python[\w.\-]*(?:\.exe)?: (?:Error while finding module specification for .*|"
                    r"No module named '?(?P<module>[\w.]+)'?(?:;.*)?)$")  # fmt: skip
_SCRIPT = re.compile(r"^\S*python[\w.\-]*(?:\.exe)?: can't open file '?(?P<path>[^']+?)'?: \[Errno 2\] .*$")
_TARGET = re.compile(
    r"^(?:g?make(?:\[\d+\])?: \*\*\* No rule to make target [`'](?P<make>[^']+)'.*"
    r"|npm (?:ERR!|error) Missing script: \"?(?P<npm>[^\"]+)\"?"
    r"|nox > Sessions not found: (?P<nox>.+)"
    r"|error: no (?:test|bin) target named `(?P<cargo>[^`]+)`.*)$"
)


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


def _not_there(case: Case) -> Hit | None:
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


def _own_module_not_there(case: Case) -> Hit | None:
    module = _line(case, _RUNPY)
    if not module or not case.is_first_party(module):
        return None
    return Hit(suggestion=f"The command runs {module}, which does not exist in the project: write it.")


def _script_not_there(case: Case) -> Hit | None:
    path = _line(case, _SCRIPT)
    return Hit(suggestion=f"The command runs {path}, which does not exist.") if path else None


def _target_not_there(case: Case) -> Hit | None:
    target = _line(case, _TARGET)
    if not target:
        return None
    return Hit(suggestion=f"The command asks for {target}, which the project does not define.")


def errors_of(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that make a tool fail: its errors where it tells errors from lesser complaints."""
    findings = tuple(findings)
    errors = tuple(finding for finding in findings if (finding.severity or "error").lower() == "error")
    return errors or findings


def is_syntax(finding: Finding) -> bool:
    """Whether the tool says that it could not parse a file."""
    code = finding.code or ""
    return (
        code in _SYNTAX_CODES
        or bool(_TYPESCRIPT_SYNTAX.match(code))
        or finding.message.startswith(_PARSING)
    )


def is_import(finding: Finding) -> bool:
    """Whether the tool says that it could not find a module."""
    return (finding.code or "") in _IMPORT_CODES


def _findings(
    purposes: frozenset[str], choose: Callable[[tuple[Finding, ...]], Iterable[Finding]]
) -> Reader:
    def read(case: Case) -> Hit | None:
        command = _command(case)
        if command is None or command.purpose not in purposes:
            return None
        chosen = tuple(choose(errors_of(command.findings)))
        return _complaint(command, chosen) if chosen else None

    return read


def _complaint(command: CommandFact, findings: tuple[Finding, ...]) -> Hit:
    tool, first = command.tool, findings[0]
    if (first.path or "").endswith("Makefile") and (place := read_arrow(command.output_tail)):
        first = first.model_copy(update={"path": place.path, "line": place.line})
    position = f"{first.path}:{first.line}" if first.path and first.line else first.path
    where = f" at {position}" if position else ""
    code = f" [{first.code}]" if first.code else ""
    rest = f" It has {len(findings) - 1} more complaints." if len(findings) > 1 else ""
    return Hit(
        suggestion=f"{tool}{where}: {quote(first.message).rstrip('.')}{code}.{rest}",
        location=Location(path=first.path, line=first.line) if first.path else None,
        owner=Owner.TEST if first.path and is_test_path(first.path) else None,
    )


def _silent(purposes: frozenset[str], *, exit_code: int | None = None) -> Reader:
    def read(case: Case) -> Hit | None:
        command = _command(case)
        if command is None or command.purpose not in purposes:
            return None
        if exit_code is not None and (case.process.exit_code != exit_code or command.findings):
            return None
        return Hit(suggestion=_how_it_ended(case, command))

    return read


def _says_something(command: CommandFact) -> bool:
    """Whether the output holds more than a runner's own remark that something in it failed."""
    lines = [line.strip() for line in command.output_tail.splitlines()]
    return any(line and not _RUNNER_REMARK.match(line) for line in lines)


def _failed_audibly(case: Case) -> Hit | None:
    command = _command(case)
    if command is None or not _says_something(command):
        return None
    return Hit(suggestion=_how_it_ended(case, command))


def _refused(case: Case) -> Hit | None:
    command = _command(case)
    return _silent(_VALIDATORS)(case) if command and _says_something(command) else None


def _how_it_ended(case: Case, command: CommandFact) -> str:
    shown = quote(" ".join(command.argv) or command.tool)
    lines = [line for line in command.output_tail.splitlines() if line.strip()]
    last = f"; its last line was: {quote(lines[-1])}" if lines else " and said nothing"
    return f"{shown} ended with exit code {case.process.exit_code}{last}."


def _all_imports(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return findings if findings and all(map(is_import, findings)) else ()


_ANY = frozenset({"test", "lint", "type_check", "build", "validate"})
_VALIDATORS = frozenset({"validate"})
_CHECKERS = frozenset({"type_check", "build"})

COMMAND_RULES: tuple[Rule, ...] = (
    Rule(
        id="tool-not-found",
        because="The program that the command names is not there to be run.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.97,
        read=_not_there,
    ),
    Rule(
        id="tool-module-not-found",
        because="The interpreter lacks the module that the command runs.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.9,
        runner_up=(Category.IMPORT_ERROR, 0.2),
        read=_module_not_there,
    ),
    Rule(
        id="own-module-not-found",
        because="The command runs a module of the project that does not exist.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.85,
        read=_own_module_not_there,
    ),
    Rule(
        id="script-not-found",
        because="The command runs a file that does not exist.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.9,
        read=_script_not_there,
    ),
    Rule(
        id="target-not-found",
        because="The command asks for a target or script that the project does not define.",
        category=Category.TEST_NOT_FOUND,
        confidence=0.9,
        read=_target_not_there,
    ),
    Rule(
        id="tool-found-syntax-error",
        because="The tool could not parse the source.",
        category=Category.COMPILATION_ERROR,
        confidence=0.96,
        read=_findings(_ANY, lambda findings: filter(is_syntax, findings)),
    ),
    Rule(
        id="type-checker-found-no-module",
        because="All that the type checker complains of are modules that it cannot find.",
        category=Category.IMPORT_ERROR,
        confidence=0.85,
        runner_up=(Category.TYPE_ERROR, 0.3),
        read=_findings(_CHECKERS, _all_imports),
    ),
    Rule(
        id="type-checker-complained",
        because="A type checker found errors.",
        category=Category.TYPE_ERROR,
        confidence=0.97,
        read=_findings(frozenset({"type_check"}), lambda findings: findings),
    ),
    Rule(
        id="linter-complained",
        because="A linter found errors.",
        category=Category.LINT_ERROR,
        confidence=0.97,
        read=_findings(frozenset({"lint"}), lambda findings: findings),
    ),
    Rule(
        id="compiler-complained",
        because="A compiler or build tool found errors.",
        category=Category.COMPILATION_ERROR,
        confidence=0.93,
        read=_findings(frozenset({"build"}), lambda findings: findings),
    ),
)
"""What is asked of a command before its output is read for an exception."""

COMMAND_FALLBACKS: tuple[Rule, ...] = (
    Rule(
        id="checker-misused",
        because="A linter or type checker ended with its usage status and without a finding.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.6,
        runner_up=(Category.LINT_ERROR, 0.3),
        read=_silent(frozenset({"lint", "type_check"}), exit_code=_USAGE),
    ),
    Rule(
        id="linter-failed",
        because="A linter or formatter failed.",
        category=Category.LINT_ERROR,
        confidence=0.88,
        read=_silent(frozenset({"lint"})),
    ),
    Rule(
        id="type-checker-failed",
        because="A type checker failed.",
        category=Category.TYPE_ERROR,
        confidence=0.85,
        read=_silent(frozenset({"type_check"})),
    ),
    Rule(
        id="build-failed",
        because="A build failed.",
        category=Category.COMPILATION_ERROR,
        confidence=0.75,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.2),
        read=_silent(frozenset({"build"})),
    ),
    Rule(
        id="validation-failed",
        because="A validator refused what it was given.",
        category=Category.SPEC_MISMATCH,
        confidence=0.65,
        runner_up=(Category.TEST_REGRESSION, 0.3),
        read=_refused,
    ),
    Rule(
        id="test-command-failed",
        because="A test runner other than pytest failed.",
        category=Category.TEST_REGRESSION,
        confidence=0.8,
        runner_up=(Category.COMPILATION_ERROR, 0.1),
        read=_silent(frozenset({"test"})),
    ),
    Rule(
        id="command-failed",
        because="A command of no known purpose failed.",
        category=Category.TEST_REGRESSION,
        confidence=0.45,
        owner=Owner.UNKNOWN,
        runner_up=(Category.UNKNOWN, 0.4),
        read=_failed_audibly,
    ),
)
"""What is concluded from a command whose output tells no more."""
