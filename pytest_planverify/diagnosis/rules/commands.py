"""Rules for commands that are not pytest: by the kind of tool, its findings, and how it ended."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from planner.catalog.output import read_findings
from planner.catalog.test_paths import is_test_path
from planner.catalog.tools import TOOLS
from planner.model.evidence import CommandFact, Finding
from planner.model.kinds import EvidenceKind
from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.project_files import within_project
from pytest_planverify.diagnosis.reading import Case
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.rules.complaints import (
    errors_of,
    is_compilers,
    is_import,
    is_own_module,
    is_promise,
    is_runners,
    is_style,
    is_syntax,
    is_type,
    is_unchanged_test,
)
from pytest_planverify.diagnosis.wording import quote

_NOT_STARTED = (126, 127)

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
        read=_findings(_ANY, lambda case, finding: is_syntax(finding)),
    ),
    Rule(
        id="tool-misses-own-module",
        because="The tool does not find a module of the project: its file is gone.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.88,
        runner_up=(Category.IMPORT_ERROR, 0.1),
        read=_findings(_CHECKED, _no_such_module(own=True), promise=True),
    ),
    Rule(
        id="type-checker-found-no-module",
        because="The tool does not find a module that is not the project's.",
        category=Category.IMPORT_ERROR,
        confidence=0.88,
        runner_up=(Category.TYPE_ERROR, 0.1),
        read=_findings(_CHECKED, _no_such_module(own=False), promise=True),
    ),
    Rule(
        id="tool-misses-promise",
        because="A test that was not changed uses a name or a signature that the changed product lacks.",
        category=Category.SPEC_MISMATCH,
        confidence=0.85,
        runner_up=(Category.TYPE_ERROR, 0.15),
        read=_findings(_CHECKED, is_promise, promise=True),
    ),
    Rule(
        id="type-checker-complained",
        because="A type checker found errors.",
        category=Category.TYPE_ERROR,
        confidence=0.97,
        read=_findings(frozenset({"type_check"}), _by_kind("type_check", is_type)),
    ),
    Rule(
        id="compiler-complained-of-types",
        because="A compiler refused the type of a value.",
        category=Category.TYPE_ERROR,
        confidence=0.85,
        runner_up=(Category.COMPILATION_ERROR, 0.15),
        read=_findings(frozenset({"build"}), lambda case, finding: is_type(finding)),
    ),
    Rule(
        id="linter-complained",
        because="A linter found errors.",
        category=Category.LINT_ERROR,
        confidence=0.97,
        read=_findings(frozenset({"lint"}), _by_kind("lint", is_style)),
    ),
    Rule(
        id="compiler-complained",
        because="A compiler or build tool found errors.",
        category=Category.COMPILATION_ERROR,
        confidence=0.93,
        read=_findings(frozenset({"build"}), _by_kind("build", is_compilers)),
    ),
)
"""What is asked of a command before its output is read for an exception."""
