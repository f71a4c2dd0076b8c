"""What a situation tells of the failure: its kind, what was seen of it, which commands judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.catalog import parse_command
from planner.errors import CommandSyntaxError
from planner.model.failure_report import evidence_of
from planner.model.plan import DEFAULT_CRITERION_SECONDS, MAX_SECONDS, CommandSpec
from planner.rules.criteria import commands_of, wants_convention
from planner.rules.own_work import is_not_its_work
from planner.text.redaction import redact
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.catalog import Command
    from planner.model.evidence import Evidence, ExceptionFact
    from planner.model.outcome import Failure
    from planner.model.plan import Todo
    from planner.rules.revision.situation import Situation

MAX_WORDS = 200
"""Characters of untrusted text that are quoted in a reason or a title."""

_MAX_READ = 4_000


def kindred(situation: Situation) -> tuple[Failure, ...]:
    """The failure that decides, then the todo's other failures of its category that are its own."""
    first = situation.failure
    others = [
        failure
        for failure in situation.outcome.failures
        if failure.category is first.category
        and not is_not_its_work(situation.todo, situation.outcome, failure)
    ]
    return (first, *(failure for failure in others if failure != first))


def check_ids(situation: Situation) -> tuple[str, ...]:
    """The criteria in which the failures of this kind showed."""
    return tuple(dict.fromkeys(each.check_id for each in kindred(situation) if each.check_id))


def failing_tests(situation: Situation) -> tuple[str, ...]:
    """The node ids that fail in this way."""
    named = [name for each in kindred(situation) for name in each.tests or each.top_failing_tests]
    seen = [each.nodeid for each in observed(situation) if each.nodeid and "::" in each.nodeid]
    return tuple(dict.fromkeys(named or seen))


def observed(situation: Situation) -> tuple[Evidence, ...]:
    """What was observed of the failures of this kind."""
    if situation.context is None:
        return ()
    evidence = situation.context.evidence
    found = [fact for each in kindred(situation) for fact in evidence_of(each, evidence)]
    return tuple({id(fact): fact for fact in found}.values())


def exceptions(situation: Situation) -> tuple[ExceptionFact, ...]:
    """Every exception that was seen, the one that surfaced first in front."""
    return tuple(
        each for fact in observed(situation) for each in (*fact.exceptions, *fact.exceptions_in_group)
    )


def judging_command(situation: Situation, check_id: str) -> CommandSpec | None:
    """The command of a criterion, as the plan has it; what a convention gave, as the outcome has it."""
    for where, spec in commands_of(situation.todo):
        if where == check_id:
            return spec if understood(spec.cmd) else None
    for check in situation.outcome.checks:
        if check.id == check_id and check.cmd and understood(check.cmd):
            limit = check.timeout_seconds
            if limit is None or not 0 < limit <= MAX_SECONDS or limit == DEFAULT_CRITERION_SECONDS:
                return CommandSpec(cmd=check.cmd)
            return CommandSpec(cmd=check.cmd, timeout_seconds=limit)
    return None


def understood(cmd: str) -> Command | None:
    """A command of the catalog, or ``None``."""
    try:
        return parse_command(cmd)
    except CommandSyntaxError:
        return None


def takes_command(todo: Todo, cmd: str) -> bool:
    """Whether a command can join the criteria of a todo.

    It cannot where it is among them already, nor where it would end a todo's tests by convention.
    """
    if understood(cmd) is None or wants_convention(todo):
        return False
    return all(spec.cmd.split() != cmd.split() for _, spec in commands_of(todo))


def is_free(situation: Situation, todo_id: str) -> bool:
    """Whether no todo bears the id yet."""
    taken = situation.taken or {todo.id for todo in situation.plan.items}
    return todo_id not in taken and (situation.branch is None or situation.branch.id != todo_id)


def quoted(text: str) -> str:
    """Untrusted text on one line of bounded length, without secrets."""
    line = " ".join(redact(clean(text[:_MAX_READ])).split())
    return line if len(line) <= MAX_WORDS else f"{line[:MAX_WORDS]}…"


def listed(names: Iterable[str], *, at_most: int = 3) -> str:
    """A few names and how many there are more."""
    every = [quoted(name) for name in names]
    more = len(every) - at_most
    return ", ".join(every[:at_most]) + (f" and {more} more" if more > 0 else "")
