"""Rules for tools that never looked at the work: asked for what is not there, set up wrongly, or broken."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from planner.model.kinds import EvidenceKind
from planner.model.outcome import Location
from planner.model.taxonomy import Category
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.rules.tool_words import (
    NEVER_LOOKED,
    NOT_THERE,
    SET_UP,
    SET_UP_CODES,
    SET_UP_FILES,
    TOOL_FRAME,
)
from pytest_planverify.diagnosis.wording import quote, said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.evidence import CommandFact
    from pytest_planverify.diagnosis.reading import Case

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


TOOL_USE_RULES: tuple[Rule, ...] = (
    Rule(
        id="command-names-what-is-gone",
        because="The command is to look at a file of the project that was there and is gone.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.9,
        runner_up=(Category.TEST_NOT_FOUND, 0.1),
        read=_names_what_is_gone,
    ),
    Rule(
        id="command-asks-for-nothing",
        because="The plan's command names a file, a target or an option that does not exist.",
        category=Category.TEST_NOT_FOUND,
        confidence=0.92,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.08),
        read=_asked_for_nothing,
    ),
    Rule(
        id="tool-set-up-wrongly",
        because="The tool's configuration, a plugin or its version keeps it from working.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.88,
        runner_up=(Category.LINT_ERROR, 0.1),
        read=_set_up_wrongly,
    ),
    Rule(
        id="tool-broke-down",
        because="The tool failed with a traceback of its own.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.85,
        runner_up=(Category.LINT_ERROR, 0.1),
        read=_broke_down,
    ),
)
"""What is asked first: a tool that did not look at the work says nothing about it."""
