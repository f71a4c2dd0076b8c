"""The format-independent content of a report: test cases and problems, each with its location.

Cases are for programs that count: one for each test, and one for each criterion without tests. At least one
case is failed if and only if the exit status of the run is not 0; a case for the run as a whole is added
where no other one failed. Problems are for people: one for each root cause.

Texts from a run are untrusted: formats pass them through :func:`safe`, templates through ``safe_text``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.model.verdicts import Verdict
from planner.policy.outcomes import GREEN, failures_of
from planner.text.display import counted, listed
from planner.text.markdown import fence, inline
from planner.text.redaction import redact_and_clip
from pytest_planverify.reports.terminal import final_line
from pytest_planverify.reports.words import (
    EXIT_WORDS,
    WORDS,
    duration,
    facts_of,
    headline,
    name_of,
    standing,
    suggestion_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from planner.model.outcome import Check, Failure, Hunk, Outcome, OutcomeDocument
    from planner.model.plan import Todo

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

RUN = "run"
"""Todo id of the case that represents the run as a whole."""

_LONGEST_TEXT = 4_000
TEMPLATES = Path(__file__).with_name("templates")


@dataclass(frozen=True, slots=True)
class ReportCase:
    """One test, or one criterion without tests, as a test case of a report."""

    todo_id: str
    name: str
    status: str
    message: str = ""
    """Why it did not pass, in one line; empty for a passed case."""
    text: str = ""
    duration_ms: int = 0
    flaky: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """One root cause, or one failing criterion without a diagnosis."""

    category: str
    headline: str
    signature: str
    todos: tuple[str, ...]
    tests: tuple[str, ...]
    path: str
    """File at fault, relative to the top of the repository; the plan file if the location is unknown."""
    line: int = 1
    failure: Failure | None = None

    @property
    def fingerprint(self) -> str:
        """A digest that identifies the problem across runs."""
        return hashlib.sha256(self.signature.encode("utf-8", "replace")).hexdigest()

    @property
    def hunk(self) -> Hunk | None:
        """The change that most likely caused the failure; ``None`` if there is none."""
        return next(iter(self.failure.suspected_changes if self.failure else ()), None)

    @property
    def consequences(self) -> str:
        """The affected tests and todos: ``38 tests in shop, cart``."""
        tests = f"{counted(len(self.tests), 'test')} in " if self.tests else ""
        return tests + listed(self.todos, 5)


@dataclass(frozen=True)
class ReportInput:
    """An outcome document with what the report formats derive from it."""

    document: OutcomeDocument
    folders: Mapping[str, str]
    """By plan id, the plan's root relative to the top of the repository; the top itself is ``""``."""
    todos: Mapping[str, Sequence[Todo]] = field(default_factory=dict[str, "Sequence[Todo]"])
    """By plan id, its todos including those of its sub-plans."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """By plan id, the plan file relative to the top of the repository."""
    names: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    """By plan id, the name of its workflow, if it has one."""

    @property
    def heading(self) -> str:
        """Return the names of the plans, with the ids in a run of several, as todos are named by them."""
        several = len(self.document.plans) > 1
        named = ((ref.todo_list_id, self.names.get(ref.todo_list_id)) for ref in self.document.plans)
        return ", ".join(f"{name} ({key})" if several and name else name or key for key, name in named)

    @property
    def holds(self) -> bool:
        """Return whether the run is accepted: its exit status is 0."""
        return self.document.run.exit_status == 0

    @cached_property
    def cases(self) -> list[ReportCase]:
        """All cases in the order of the outcomes.

        In an accepted run, failing criteria do not count and are reported as skipped.
        """
        red = SKIPPED if self.holds else FAILED
        cases = [
            case
            for outcome in self.document.outcomes
            for check in outcome.checks
            for case in _cases(
                outcome, check, red if check.counts_as.is_red else SKIPPED, self.name_of(outcome)
            )
        ]
        if not self.holds and not any(case.status == FAILED for case in cases):
            cases.append(ReportCase(RUN, "exit status", FAILED, self.exit_reason))
        return cases

    def name_of(self, outcome: Outcome) -> str:
        """Return the name of a todo."""
        return name_of(outcome, self.document)

    @property
    def exit_reason(self) -> str:
        """Why the run as a whole is not accepted, in one line."""
        run = self.document.run
        word = EXIT_WORDS.get(run.exit_status, ("", None))[0]
        # Not a blocked criterion: the one that it waits for is the reason.
        waiting = (
            f"{self.name_of(outcome)}: {check.id} is {check.verdict}"
            + (f", {check.reason}" if check.reason else "")
            for outcome in self.document.outcomes
            for check in outcome.checks
            if check.counts_as not in (Verdict.PASSED, Verdict.BLOCKED)
        )
        return safe(
            f"exit status {run.exit_status}: {run.unexplained or word or next(waiting, 'not accepted')}"
        )

    @cached_property
    def problems(self) -> list[Problem]:
        """Root causes in the order of repair, then failures of no cause, then unexplained criteria.

        Failures of one signature, or of one cause, make one problem.
        """
        found: dict[str, list[tuple[Outcome, Failure]]] = {}
        unexplained: list[Problem] = []
        for outcome in self.document.outcomes:
            failures = list(failures_of(outcome))
            for failure in failures:
                found.setdefault(self._signature_of(outcome, failure), []).append((outcome, failure))
            explained = {failure.check_id for failure in failures}
            unexplained += [
                Problem(
                    category=check.kind.value,
                    headline=safe(
                        f"{check.id} {check.verdict}: {check.reason or check.title or check.cmd or ''}"
                    ),
                    signature=f"{self.name_of(outcome)} {check.id}",
                    todos=(self.name_of(outcome),),
                    tests=(),
                    path=self._plan_path(outcome),
                )
                for check in outcome.checks
                if check.counts_as.is_red and check.id not in explained
            ]
        # Taken out of ``found``, so that each failure is reported once.
        groups = [
            [each for signature in cause.signatures for each in found.pop(signature, ())]
            for cause in self.document.causes
        ]
        groups += found.values()
        return [*(self._problem(group) for group in groups if group), *unexplained]

    def placed(self, plan: str | None, path: str) -> str:
        """Return a path relative to a plan's root as a path relative to the top of the repository.

        Without a plan id the first plan is assumed; absolute paths are returned unchanged.
        """
        folder = self.folders.get(plan, "") if plan else next(iter(self.folders.values()), "")
        return path if not folder or path.startswith("/") else f"{folder}/{path}"

    def _problem(self, members: list[tuple[Outcome, Failure]]) -> Problem:
        """Merge failures of one cause; the first one with a location determines the place."""
        outcome, failure = members[0]
        places = ((each.plan, found.location) for each, found in members if found.location is not None)
        plan, place = next(places, (None, None))
        tests = [test for _, each in members for test in (each.tests or each.top_failing_tests)]
        return Problem(
            category=str(failure.category),
            headline=safe(headline(failure)),
            signature=self._signature_of(outcome, failure),
            todos=tuple(dict.fromkeys(self.name_of(each) for each, _ in members)),
            tests=tuple(dict.fromkeys(tests)),
            path=self._plan_path(outcome) if place is None else self.placed(plan, place.path),
            # SARIF, GitLab and GitHub count lines from 1.
            line=max((place and place.line) or 1, 1),
            failure=failure,
        )

    def _signature_of(self, outcome: Outcome, failure: Failure) -> str:
        return failure.signature or f"{self.name_of(outcome)} {failure.check_id}"

    def _plan_path(self, outcome: Outcome) -> str:
        return self.files.get(outcome.plan or "", next(iter(self.files.values()), "plan.yaml"))


def safe(text: object, limit: int = _LONGEST_TEXT) -> str:
    """Return untrusted text without control sequences, known secrets, and characters invalid in XML."""
    shown = redact_and_clip(str(text), limit)
    # XML allows neither of the two last characters of the plane, which clean() keeps.
    return shown.replace("\ufffe", "").replace("\uffff", "")


def render_template(name: str, data: ReportInput, **values: Any) -> str:
    """Return the rendered template; ``values`` are further variables. Undefined variables are errors."""
    # Imported here: a run without such a report need not load Jinja.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=not name.endswith(".md"),  # Markdown is escaped by the filters below
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"safe_text": safe}
    environment.filters |= {each.__name__: each for each in (duration, standing, fence, inline)}
    return environment.get_template(name).render(
        data=data,
        document=data.document,
        headline=final_line(data.document)[0],
        words=WORDS,
        facts_of=facts_of,
        **values,
    )


def _cases(outcome: Outcome, check: Check, red: str, todo: str) -> Iterator[ReportCase]:
    """Yield the cases of a criterion: its tests, and itself if none of these says that it has not passed.

    ``red`` is the status of what failed: the criterion may tolerate a failing test, and the run a failing
    criterion. ``todo`` is the name of the todo.
    """
    failures = list(failures_of(outcome))
    own = [each for each in failures if each.check_id == check.id]
    is_flaky, is_passed = check.verdict is Verdict.FLAKY, check.counts_as is Verdict.PASSED

    def case(name: str, status: str, duration_ms: int, failure: Failure | None, reason: str) -> ReportCase:
        message, text = (headline(failure), _text(failure)) if failure else (reason, "")
        return ReportCase(todo, safe(name), status, safe(message), safe(text), duration_ms, is_flaky)

    for test in check.tests:
        # An expected failure is a skipped case, as in pytest's own JUnit report.
        failure, status = None, PASSED if test.outcome in GREEN else SKIPPED
        if test.outcome.is_red:
            # Where two checks ran the test, the failure is attributed to one of them.
            naming = (each for each in (*own, *failures) if test.nodeid in each.tests)
            failure, status = next(naming, own[0] if own else None), red
        reason = test.reason or ("" if status == PASSED else check.reason or test.outcome.value)
        yield case(test.nodeid, status, test.duration_ms, failure, reason)
    is_shown = is_passed or (red == FAILED and any(test.outcome.is_red for test in check.tests))
    if not check.tests or not is_shown:
        name = f"{check.kind.value} {check.title or check.cmd or check.id}"
        failure = own[0] if own and red == FAILED else None
        reason = check.reason or ("" if is_passed else check.verdict.value)
        yield case(name, PASSED if is_passed else red, check.duration_ms, failure, reason)


def _text(failure: Failure) -> str:
    """Return the message of a failure, its place, what to do, and the command that reruns it."""
    place = failure.location
    lines = (
        failure.stack_trace_head,
        f"at {place.path}:{place.line or 1}" if place else None,
        suggestion_of(failure),
        f"rerun: {failure.rerun}" if failure.rerun else None,
    )
    return "\n".join(filter(None, lines))
