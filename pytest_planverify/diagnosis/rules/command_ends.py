"""Rules for commands whose output tells no more than how they ended: by the purpose of the tool."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.project_files import within_project
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.rules.commands import RUNNERS, findings_of
from pytest_planverify.diagnosis.rules.complaints import errors_of, is_runners
from pytest_planverify.diagnosis.rules.tool_use import command_of
from pytest_planverify.diagnosis.wording import quote

if TYPE_CHECKING:
    from planner.model.evidence import CommandFact
    from pytest_planverify.diagnosis.reading import Case

_RUNNER_REMARK = re.compile(r"^(?:g?make(?:\[\d+\])?: |npm (?:ERR!|error)|error: script )")
_STARTS_PROGRAM = re.compile(r"^(?:@?(?:ba|da)?sh|python[\d.]*|node|\.{0,2}/?[\w./-]*/[\w.-]+) \S|^\./\S+$")
_USAGE = 2
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


def _recipe_failed(case: Case) -> Hit | None:
    """A runner without a compiler's complaint: a check of the project's own said no."""
    command = command_of(case)
    if command is None or command.tool not in RUNNERS or not _says_something(command):
        return None
    if command.purpose == "build" and not any(map(_STARTS_PROGRAM.match, case.output_lines)):
        return None
    if command.purpose not in ("build", "validate"):
        return None
    return Hit(suggestion=_how_it_ended(case, command), location=_first_place(case, command))


def _how_it_ended(case: Case, command: CommandFact) -> str:
    shown = quote(" ".join(command.argv) or command.tool)
    lines = [line for line in command.output_tail.splitlines() if line.strip()]
    last = f"; its last line was: {quote(lines[-1])}" if lines else " and said nothing"
    return f"{shown} ended with exit code {case.process.exit_code}{last}."


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
        id="recipe-failed",
        because="A program of the project that a runner started failed.",
        category=Category.TEST_REGRESSION,
        confidence=0.6,
        runner_up=(Category.COMPILATION_ERROR, 0.2),
        read=_recipe_failed,
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
