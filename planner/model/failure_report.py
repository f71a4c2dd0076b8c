"""The failure report of one todo: all that someone needs who repairs it and sees nothing else.

It is written to ``diagnostics/{todo}_failure_report.json`` below the plan's root. Readers ignore keys that
they do not know; the version only grows.
"""

from __future__ import annotations

from typing import Literal

from planner.model.base import ReadValue
from planner.model.evidence import (
    ArtifactFact,
    CommandFact,
    Confirmation,
    ContractFact,
    Frame,
    MetricFact,
    ProcessEnd,
    Selector,
)
from planner.model.kinds import EvidenceKind, Phase
from planner.model.outcome import Failure, FixtureUse, Location
from planner.model.taxonomy import Category, Role
from planner.model.verdicts import CheckKind, TodoState, Verdict

FAILURE_REPORT_VERSION: Literal[1] = 1


class ReportedPlan(ReadValue):
    """The plan that the todo belongs to."""

    id: str
    name: str | None = None
    path: str
    """Relative to the root where it is below it, else absolute."""
    digest: str


class ReportedCriterion(ReadValue):
    """One criterion of the todo and what it said."""

    id: str
    kind: CheckKind
    text: str
    """The command as written, or what a person calls the check."""
    verdict: Verdict
    reason: str | None = None


class ReportedTodo(ReadValue):
    """The todo as the plan has it."""

    id: str
    title: str | None = None
    intent: str | None = None
    agent_role: Role | None = None
    target_file: str | None = None
    hint: str | None = None
    allowed_files: tuple[str, ...] | None = None
    """Which files may be changed; ``null`` where the plan does not limit them."""
    contract_path: str | None = None
    dependencies: tuple[str, ...] = ()


class SourceExcerpt(ReadValue):
    """A few lines of a file around the line that matters."""

    path: str
    line: int
    """The line that matters, counted from 1."""
    first_line: int
    """The number of the first of ``lines``."""
    lines: tuple[str, ...]


class ReportedException(ReadValue):
    """One exception of a chain, with the code that raised it."""

    type: str
    message: str = ""
    frames: tuple[Frame, ...] = ()
    """Outermost call first, the raising frame last; without those in which pytest calls the test."""
    raised_at: SourceExcerpt | None = None
    """Around the raising frame; ``null`` where its file is not below the root."""
    reached_from: SourceExcerpt | None = None
    """Around the last frame below the root, where the raising frame is another one."""


class Comparison(ReadValue):
    """What was compared, as far as the failure shows it."""

    expected: str
    actual: str
    operator: str | None = None
    """How ``actual OPERATOR expected`` should have held."""


class Observation(ReadValue):
    """What was seen of one failing test, command or other criterion."""

    kind: EvidenceKind
    nodeid: str | None = None
    phase: Phase | None = None
    headline: str = ""
    comparison: Comparison | None = None
    exceptions: tuple[ReportedException, ...] = ()
    """The exception that surfaced first, then its cause or context, and so on."""
    longrepr: str = ""
    stdout_tail: str = ""
    stderr_tail: str = ""
    uses_fixtures: tuple[str, ...] = ()
    timed_out: bool = False
    limit_seconds: float | None = None
    duration_seconds: float | None = None
    confirmations: tuple[Confirmation, ...] = ()
    selectors: tuple[Selector, ...] = ()
    process: ProcessEnd | None = None
    command: CommandFact | None = None
    artifact: ArtifactFact | None = None
    metric: MetricFact | None = None
    contract: ContractFact | None = None


class LookAt(ReadValue):
    """A place that a reader should open, and why."""

    path: str
    line: int | None = None
    why: str


class ReportedCause(ReadValue):
    """A root cause of the run, as far as it concerns who repairs this todo."""

    rank: int
    """Its place in the order in which the causes of the run are best mended, from 1."""
    of: int
    """So many causes there are."""
    because: str = ""
    """Why it comes at this place."""
    headline: str = ""
    location: Location | None = None
    todos: tuple[str, ...] = ()
    """The todos that it makes fail; at most 10."""
    tests: int = 0
    """How many tests of the run show it."""
    files: int = 0
    """How many files of tests could not be collected because of it."""


class ReportedFailure(ReadValue):
    """One root cause with everything that was seen of it."""

    diagnosis: Failure
    fixture: FixtureUse | None = None
    """The data file that the failing criterion names."""
    observations: tuple[Observation, ...] = ()
    look_at: tuple[LookAt, ...] = ()
    """The likeliest place first."""
    cause: ReportedCause | None = None
    """The cause of the run that it belongs to."""
    fix_first: tuple[ReportedCause, ...] = ()
    """Causes of other todos that probably explain it: with them mended it may be gone."""
    what_to_do: tuple[str, ...] = ()
    """What helps against failures that this rule explains, the first step first."""
    rule_page: str | None = None
    """Where the rule is documented: why it says this, how sure it is, real examples."""


class FailureReport(ReadValue):
    """All that one run saw of a failed todo."""

    schema_version: int = FAILURE_REPORT_VERSION
    run_id: str | None = None
    """The run that saw it: the ``run_id`` of the outcome file."""
    plan: ReportedPlan
    todo: ReportedTodo
    state: TodoState | None = None
    categories: tuple[Category, ...] = ()
    """Of all failures, the one that decides the route first."""
    rerun: str | None = None
    """A command that reruns the failure that decides, from where the run was started."""
    criteria: tuple[ReportedCriterion, ...] = ()
    failures: tuple[ReportedFailure, ...] = ()
    """The failure that decides the route first."""
    further_observations: tuple[Observation, ...] = ()
    """What was seen and belongs to none of the failures."""
