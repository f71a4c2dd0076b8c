"""One failed todo as the instructions look at it: the deciding failure with what belongs to it, and what is
known of it by name."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from planner.catalog.test_paths import is_test_path
from planner.model.failure_report import Comparison
from planner.model.kinds import Side
from planner.model.outcome import Failure, Location
from planner.model.taxonomy import Category, Owner, Repeatability
from planner.model.verdicts import CheckKind
from planner.rules.criteria import commands_of
from planner.rules.instructions.conduct import HALTING
from planner.rules.instructions.quoting import said, span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.model.context import FailureContext
    from planner.model.failure_report import Observation, ReportedFailure
    from planner.model.outcome import Check, Outcome
    from planner.model.plan import CommandSpec, Plan, Todo

_ABSENT = frozenset(("missing", "no_match", "empty"))
_SHOWN_VALUE = 120
_SHOWN_FILES = 6
_LONGEST_HEAD = 2_000
_COMPARED = re.compile(
    r"\bexpected:? (?P<expected>[^,;\n]{1,120}+)[,;] (?:but )?(?:got|was|found|received|actual):? "
    r"(?P<actual>[^\n]{1,120}+)"
    r"|^(?:E +)?(?:AssertionError: )?assert (?P<left>[^=\n]{1,120}) == (?P<right>[^=\n]{1,120})$",
    re.IGNORECASE | re.MULTILINE,
)
"""How a message commonly says both sides, for outcomes that have nothing else."""
_MISSING = re.compile(r"^(?:No module named|cannot import name) '(?P<name>[^'\n]+)'")


@dataclass(frozen=True)
class Case:
    """Everything about one failed todo."""

    plan: Plan
    todo: Todo
    outcome: Outcome
    context: FailureContext | None

    @cached_property
    def failure(self) -> Failure:
        """The failure that decides the route; of an outcome without one, what its red checks show."""
        if self.outcome.failure_evidence is not None:
            return self.outcome.failure_evidence
        if self.outcome.failures:
            return self.outcome.failures[0]
        red = next((check for check in self.outcome.checks if check.counts_as.is_red), None)
        return Failure(
            category=Category.UNKNOWN,
            check_id=red.id if red else None,
            stack_trace_head=red.reason if red else None,
            top_failing_tests=tuple(test.nodeid for test in red.tests if test.outcome.is_red)
            if red
            else (),
        )

    @cached_property
    def others(self) -> tuple[Failure, ...]:
        mine = _identity(self.failure)
        return tuple(failure for failure in self.outcome.failures if _identity(failure) != mine)

    @cached_property
    def reported(self) -> ReportedFailure | None:
        """What the failure report has of the deciding failure."""
        report = self.context.report if self.context else None
        mine = _identity(self.failure)
        return next(
            (each for each in (report.failures if report else ()) if _identity(each.diagnosis) == mine),
            None,
        )

    @cached_property
    def seen(self) -> Observation | None:
        """What was seen of the first failing test, command or other criterion."""
        observations = self.reported.observations if self.reported else ()
        return observations[0] if observations else None

    @cached_property
    def check(self) -> Check | None:
        return next((check for check in self.outcome.checks if check.id == self.failure.check_id), None)

    @cached_property
    def kind(self) -> CheckKind | None:
        if self.check is not None:
            return self.check.kind
        if self.failure.check_id is None and self.todo.has_sub_plan:
            return CheckKind.SUB_PLAN
        found = failing_command(self.todo, self.failure)
        name = self.failure.check_id or (found[0] if found else "")
        return _KINDS.get(name.partition("[")[0])

    @cached_property
    def command(self) -> str | None:
        """The command of the failing criterion; of tests without one, a command that runs them."""
        if self.check is not None:
            return said(self.check.cmd) if self.check.cmd else None
        found = failing_command(self.todo, self.failure)
        if found is not None:
            return said(found[1].cmd)
        if self.kind in (None, CheckKind.TEST) and self.tests:
            return said(f"pytest {shlex.quote(self.tests[0])}")
        return None

    @cached_property
    def tests(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.failure.top_failing_tests, *self.failure.tests)))

    @cached_property
    def other_tests(self) -> tuple[str, ...]:
        """The tests of the todo that ran, whatever they said."""
        return tuple(test.nodeid for check in self.outcome.checks for test in check.tests)

    @cached_property
    def location(self) -> Location | None:
        return self.failure.location

    @cached_property
    def comparison(self) -> Comparison | None:
        if self.seen is not None:
            return self.seen.comparison
        found = _COMPARED.search((self.failure.stack_trace_head or "")[:_LONGEST_HEAD])
        if found is None:
            return None
        expected, actual = found["expected"] or found["right"], found["actual"] or found["left"]
        return Comparison(expected=expected.strip(), actual=actual.strip())

    @property
    def is_repairable(self) -> bool:
        """Whether a change of the project is what is called for."""
        return self.failure.category not in HALTING

    @cached_property
    def limit_seconds(self) -> float | None:
        if self.seen is not None and self.seen.limit_seconds is not None:
            return self.seen.limit_seconds
        return self.check.timeout_seconds if self.check else None

    @cached_property
    def known(self) -> Mapping[str, str]:
        """What hints may name, as quotations."""
        return dict(self._known())

    @cached_property
    def flags(self) -> frozenset[str]:
        """What hints may need to be so."""
        return frozenset(self._flags())

    def _known(self) -> Iterator[tuple[str, str]]:
        if self.location is not None:
            yield "location", place(self.location)
            tests = {nodeid.partition("::")[0] for nodeid in self.tests}
            if self.location.path not in tests and not is_test_path(self.location.path):
                yield "code", place(self.location)
        if self.comparison is not None:
            yield "expected", span(self.comparison.expected, limit=_SHOWN_VALUE)
            yield "actual", span(self.comparison.actual, limit=_SHOWN_VALUE)
        if self.context is not None and self.context.fixture is not None:
            yield "data", span(self.context.fixture.path)
        if self.todo.contract_path is not None:
            yield "contract", span(self.todo.contract_path)
        if self.todo.sub_plan or self.todo.sub_project_id:
            yield "sub_plan", span(self.todo.sub_plan or self.todo.sub_project_id or "")
        if self.outcome.touched_files:
            yield "touched", listed(self.outcome.touched_files)
        if self.limit_seconds is not None:
            yield "limit", f"{self.limit_seconds:g} s"
        if self.kind is CheckKind.ARTIFACT and self.check is not None and self.check.title:
            yield "artifact", span(self.check.title)
        if self.kind is CheckKind.METRIC and self.check is not None and self.check.title:
            yield "metric", span(self.check.title)
        if self.seen is not None:
            yield from self._known_of(self.seen)

    def _known_of(self, seen: Observation) -> Iterator[tuple[str, str]]:
        if seen.exceptions:
            yield "raised", span(seen.exceptions[0].type.removeprefix("builtins."))
            missing = _MISSING.search(seen.exceptions[0].message[: _SHOWN_VALUE * 4])
            if missing:
                yield "missing", span(missing["name"])
        if seen.process is not None and seen.process.signal:
            yield "signal", f"The signal {span(seen.process.signal)}"
        elif seen.process is not None and seen.process.exit_code is not None:
            yield "signal", f"An exit with status {seen.process.exit_code}"
        nearest = [name for selector in seen.selectors for name in selector.nearest]
        nearest += seen.artifact.nearest if seen.artifact else ()
        if nearest:
            yield "nearest", listed(nearest)
        if seen.command is not None:
            yield "tool", span(seen.command.tool)
        if seen.artifact is not None:
            yield "artifact", span(seen.artifact.path)
        if seen.metric is not None:
            yield "metric", span(seen.metric.name)
        if seen.contract is not None:
            yield "contract", span(seen.contract.path)

    def _flags(self) -> Iterator[str]:
        if self.is_repairable:
            yield "repairable"
        if self.failure.repeatability is Repeatability.ORDER_DEPENDENT:
            yield "order_dependent"
        if self.failure.repeatability is Repeatability.HASH_ORDER:
            yield "hash_order"
        if self.kind is CheckKind.TEST:
            yield "by_test"
        if self.failure.owner is Owner.TEST:
            yield "test_at_fault"
        if self.seen is not None:
            yield from _flags_of(self.seen)


def failing_command(todo: Todo, failure: Failure) -> tuple[str, CommandSpec] | None:
    """The command that the failure is about, with the id of its criterion: the one that it names, else the
    one that runs its first test, else the only one."""
    commands = dict(commands_of(todo))
    if failure.check_id is not None:
        spec = commands.get(failure.check_id)
        return None if spec is None else (failure.check_id, spec)
    test = next(iter((*failure.top_failing_tests, *failure.tests)), None)
    for wanted in (test, test.partition("::")[0]) if test else ():
        for check_id, spec in commands.items():
            if wanted in spec.cmd:
                return check_id, spec
    return next(iter(commands.items())) if len(commands) == 1 and test is None else None


def place(location: Location) -> str:
    """``compute_rsi`` (line 11 of ``indicators/rsi.py``)."""
    where = f"line {location.line} of {span(location.path)}" if location.line else span(location.path)
    if location.function and location.function != "<module>":
        return f"{span(location.function)} ({where})"
    return where


def listed(names: tuple[str, ...] | list[str], most: int = _SHOWN_FILES) -> str:
    """Names as quotations, the first ones only."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(span(name) for name in names[:most]) + more


def _flags_of(seen: Observation) -> Iterator[str]:
    for raised in seen.exceptions[:1]:
        last = raised.frames[-1] if raised.frames else None
        if last is not None and last.side is Side.PRODUCT and not raised.type.endswith("AssertionError"):
            yield "product_raised"
    if "DID NOT RAISE" in seen.headline:
        yield "not_raised"
    if seen.process is not None and seen.process.stack:
        yield "stack"
    if seen.command is not None:
        yield "tool"
        if seen.command.findings:
            yield "findings"
    if seen.contract is not None and seen.contract.expected:
        yield "contract_fact"
    if seen.artifact is not None:
        yield "artifact_absent" if seen.artifact.problem in _ABSENT else "artifact_there"
        if seen.artifact.problem == "schema":
            yield "schema"
    if seen.metric is not None and seen.metric.problem == "not_recorded":
        yield "not_recorded"


def _identity(failure: Failure) -> tuple[object, ...]:
    if failure.signature is not None:
        return failure.signature, failure.check_id
    return failure.category, failure.check_id, failure.top_failing_tests, failure.stack_trace_head


_KINDS: Mapping[str, CheckKind] = {
    "tests": CheckKind.TEST,
    "convention": CheckKind.TEST,
    "test_file": CheckKind.TEST,
    "test_command": CheckKind.TEST,
    "expected_artifacts": CheckKind.ARTIFACT,
    "metrics": CheckKind.METRIC,
    "manual": CheckKind.MANUAL,
    "contract_path": CheckKind.CONTRACT,
    "sub_plan": CheckKind.SUB_PLAN,
}
"""By the name of a criterion, for outcomes that do not say its kind."""
