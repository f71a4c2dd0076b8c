"""Outcomes: what one run found, as it is written to ``.planverify/outcomes.json``; and the failure reports.

A failure report, ``diagnostics/{todo}_failure_report.json``, is what was diagnosed and observed, for a
repair that sees nothing else. Readers of both ignore keys that they do not know; the version only grows.
"""

from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from planner.model.base import ReadValue
from planner.model.evidence import AuditEvent, Evidence, Hunk, ProcessEnd
from planner.model.taxonomy import Category, Owner, Repeatability, Role, RoutingKey
from planner.model.verdicts import (
    CheckAtBase,
    CheckKind,
    Isolation,
    Phase,
    Since,
    TestOutcome,
    TodoAtBase,
    TodoState,
    Verdict,
    Witness,
)

SCHEMA_VERSION: Literal[1] = 1


class SubPlanRef(ReadValue):
    """The plan file of a parent, as it was when it was verified."""

    todo_id: str
    """The parent."""
    path: str
    digest: str


class PlanRef(ReadValue):
    todo_list_id: str
    path: str
    digest: str
    sub_plans: tuple[SubPlanRef, ...] = ()
    """Those that were loaded, at any depth."""
    todos: dict[str, str] = Field(default_factory=dict)
    """By the qualified id of each todo a digest of what its verdict rests on in the plan."""


class TestResult(ReadValue):
    __test__ = False

    nodeid: str
    outcome: TestOutcome
    since: Since = Since.UNKNOWN
    duration_ms: int = 0
    reason: str | None = None
    """Why it was skipped or expected to fail."""


class FixtureUse(ReadValue):
    """The data file that a criterion names, and what was in it."""

    path: str
    sha256: str | None


class Check(ReadValue):
    """One criterion and what it said."""

    id: str
    kind: CheckKind
    verdict: Verdict
    duration_ms: int = 0
    cmd: str | None = None
    title: str | None = None
    """What a person calls a check that is no command: a path, ``rows_min >= 10``, a question."""
    isolation: Isolation = Isolation.PARENT
    isolation_reason: str | None = None
    """Why it was run as it stands, without this plugin inside."""
    reason: str | None = None
    """One sentence on why the verdict is not simply ``passed``."""
    timeout_seconds: float | None = None
    exit_code: int | None = None
    runs: int | None = None
    """How often its tests were run in this run, confirmation included."""
    reds: int | None = None
    """How many of these runs were red."""
    witness: Witness | None = None
    tests: tuple[TestResult, ...] = ()
    at_base: CheckAtBase | None = None
    """What it was worth at the baseline, as far as that is known."""
    fixture: FixtureUse | None = None
    taken_from: str | None = None
    """The earlier run that reached this verdict; it holds, as nothing that it rests on has changed."""
    events: tuple[AuditEvent, ...] = ()
    """What its tests reached for outside their process; at most 50."""
    quarantined: str | None = None
    """The ticket under which the plan bears the flakiness of this check."""
    quarantine_ended: str | None = None
    """The day on which the plan stopped to bear it."""

    @property
    def counts_as(self) -> Verdict:
        """The verdict that decides the state of the todo: flakiness that the plan bears is no failure."""
        return Verdict.PASSED if self.quarantined and self.verdict is Verdict.FLAKY else self.verdict


class Location(ReadValue):
    path: str
    line: int | None = None
    function: str | None = None


class Candidate(ReadValue):
    """A function that may be at fault."""

    path: str
    """Relative to the plan's root."""
    line: int
    """Where it is changed, else where the failure passed through it, else where it begins."""
    function: str | None = None
    """Qualified name; ``None`` at the level of the module."""
    score: Annotated[float, Field(ge=0, le=1)] = 0.0
    """How suspicious it is beside the others of this failure."""
    reasons: tuple[str, ...] = ()
    """What speaks for it: ``changed``, ``traceback``, ``spectrum``."""
    hunk: Hunk | None = None
    """What was changed in it."""


class RunnerUp(ReadValue):
    """The second most likely reading of a failure."""

    category: Category
    confidence: float


class Diagnosis(ReadValue):
    """The opinion about one failure."""

    category: Category
    owner: Owner
    repeatability: Repeatability = Repeatability.UNCONFIRMED
    confidence: Annotated[float, Field(ge=0, le=1)]
    rule: str
    """The id of the rule that said so."""
    because: str
    """The rule's reason in one sentence."""
    signature: str
    runner_up: RunnerUp | None = None
    location: Location | None = None
    candidates: tuple[Candidate, ...] = ()
    """The functions most likely to be at fault, the likeliest first; at most 5."""
    suggestion: str
    target_agent: Role | None = None
    """Who should act, where that is not the category's default; the todo's own routing goes before it."""


class Failure(ReadValue):
    """One diagnosed root cause of a todo's failure, with every test that shows it."""

    category: Category
    owner: Owner | None = None
    repeatability: Repeatability | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    rule: str | None = None
    because: str | None = None
    signature: str | None = None
    routing_key: RoutingKey | None = None
    target_agent: Role | None = None
    runner_up: RunnerUp | None = None
    check_id: str | None = None
    phase: Phase | None = None
    top_failing_tests: tuple[str, ...] = ()
    """At most 10."""
    tests: tuple[str, ...] = ()
    """Every test that fails in this way."""
    since: Since = Since.UNKNOWN
    runs: int | None = None
    """How often the criterion's tests were run in this run, confirmation included."""
    reds: int | None = None
    """How many of these runs were red."""
    stack_trace_head: str | None = None
    process: ProcessEnd | None = None
    """How the process ended, where the failure ended it or a limit did."""
    location: Location | None = None
    candidates: tuple[Candidate, ...] = ()
    """The functions most likely to be at fault, the likeliest first; at most 5."""
    suggestion: str | None = None
    rerun: str | None = None
    """A command that reruns just this, from where the run was started."""


class OutcomeMetrics(ReadValue):
    duration_ms: int | None = None
    tokens_used: int | None = None
    patch_cycles: int | None = None


class Outcome(ReadValue):
    """All that one run found about one todo."""

    todo_id: str = Field(validation_alias=AliasChoices("todo_id", "step_id"))
    plan: str | None = None
    title: str | None = None
    state: TodoState | None = None
    verified: bool = False
    success: bool
    tests_passed: bool
    at_base: TodoAtBase | None = None
    """How the todo stood at the baseline; absent without one, and for a todo that was not there."""
    blocked_by: tuple[str, ...] = ()
    """The todos whose failure blocks this one, nearest first."""
    checks: tuple[Check, ...] = ()
    touched_files: tuple[str, ...] = ()
    diff_hash: str | None = None
    metrics: OutcomeMetrics = OutcomeMetrics.model_construct()
    recorded: dict[str, tuple[float | str, ...]] = Field(default_factory=dict)
    failure_evidence: Failure | None = None
    """The failure that decides the route."""
    failures: tuple[Failure, ...] = ()


class RunInfo(ReadValue):
    run_id: str
    started_at: str
    """RFC 3339, UTC."""
    finished_at: str
    duration_ms: int
    exit_status: int
    scope: Literal["claimed", "ready", "all"]
    python: str
    pytest: str
    hygiene: str = "unchecked: no baseline"
    """``clean``, ``violated`` or ``unchecked``; after a colon by what, or why not."""
    interrupted: bool = False
    unexplained: str | None = None
    """Why the run is not accepted though no criterion is red, as where a coverage limit is not met."""
    notes: tuple[str, ...] = ()
    """What a reader should know about the run as a whole: an unexplained exit status, a skipped step."""


class Summary(ReadValue):
    todos: dict[TodoState, int] = Field(default_factory=dict[TodoState, int])
    criteria: dict[Verdict, int] = Field(default_factory=dict[Verdict, int])
    tests_since: dict[Since, int] = Field(default_factory=dict[Since, int])
    """How the tests of the run compare with the baseline; empty without one."""


class CauseTodo(ReadValue):
    """A todo that a cause makes fail."""

    todo_id: str
    plan: str | None = None
    tests: int = 0
    """How many of its tests show the cause; 0 where it is a criterion without tests."""


class Cause(ReadValue):
    """One root cause of the failures of a run, with all that it brings about."""

    rank: int
    """Its place in the order in which the causes are best fixed, from 1."""
    signatures: tuple[str, ...]
    """Of the failures that it explains; the one that was seen most clearly first."""
    category: Category
    owner: Owner | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    """Of the diagnosis that names the category."""
    headline: str = ""
    location: Location | None = None
    todos: tuple[CauseTodo, ...] = ()
    """In the order of their dependencies."""
    tests: int = 0
    """How many tests show it; one that several todos name counts once."""
    files: int = 0
    """How many files of tests could not be collected because of it."""
    top_tests: tuple[str, ...] = ()
    """At most 10 of these tests and files."""
    because: str = ""
    """Why it comes at this place."""
    joined: tuple[str, ...] = ()
    """What shows that failures with different signatures are one."""
    explains: tuple[str, ...] = ()
    """Signatures of other causes that will probably be gone with it."""


class OutcomeDocument(ReadValue):
    """The outcome file."""

    schema_version: int = SCHEMA_VERSION
    plans: tuple[PlanRef, ...]
    run: RunInfo
    summary: Summary
    outcomes: tuple[Outcome, ...]
    causes: tuple[Cause, ...] = ()
    """The root causes of all failures of the run, the first to fix first."""

    def outcome(self, todo_id: str, plan: str | None = None) -> Outcome:
        """The outcome of that todo. Raises ``KeyError``."""
        for entry in self.outcomes:
            if entry.todo_id == todo_id and plan in (None, entry.plan):
                return entry
        raise KeyError(todo_id)


# -- failure reports -----------------------------------------------------------------------------------

FAILURE_REPORT_VERSION: Literal[1] = 1


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
    """A few lines of a file of the project."""

    path: str
    line: int
    """The line that matters, counted from 1; the excerpt may begin below it, behind a docstring."""
    first_line: int
    """The number of the first of ``lines``."""
    lines: tuple[str, ...]


class FailureReport(ReadValue):
    """All that one run saw of a failed todo."""

    schema_version: int = FAILURE_REPORT_VERSION
    run_id: str | None = None
    """The run that saw it: the ``run_id`` of the outcome file."""
    plan: PlanRef
    todo: ReportedTodo
    state: TodoState | None = None
    checks: tuple[Check, ...] = ()
    """Every criterion of the todo; of their tests only those that are red."""
    failures: tuple[Failure, ...] = ()
    """As the outcome has them, the failure that decides the route first."""
    evidence: tuple[Evidence, ...] = ()
    """What was observed; at most 20 of one failure. See :func:`evidence_of`."""
    excerpts: tuple[SourceExcerpt, ...] = ()
    """The source at the locations of the failures, where something was raised, and of the failing tests."""
    causes: tuple[Cause, ...] = ()
    """The root causes of the run that these failures belong to, and those that probably explain them."""


class FailureContext(ReadValue):
    """All that could be read about one failed todo. What could not be read is left out."""

    todo_id: str
    evidence: tuple[Evidence, ...] = ()
    """Of the failure report of the very run that the outcome is from."""
    excerpts: tuple[SourceExcerpt, ...] = ()
    present: tuple[str, ...] = ()
    """Of the files that the failure speaks of, those that exist now."""
    absent: tuple[str, ...] = ()
    """Those that do not."""
    near: dict[str, str] = Field(default_factory=dict[str, str])
    """By missing file the existing one beside it whose name looks like it."""
    report_path: str | None = None
    """Where the failure report is, relative to the plan's root."""


def evidence_of(failure: Failure, evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """Return what was observed of a failure, what was seen in its own phase first.

    A fact about a test belongs to the failure that names the test, any other to that of its criterion.
    """
    named = {*failure.tests, *failure.top_failing_tests}

    def belongs(fact: Evidence) -> bool:
        shown = {*fact.tests, fact.nodeid} - {None}
        if named and shown:
            return not named.isdisjoint(shown)
        return failure.check_id in (None, fact.check_id)

    return tuple(sorted(filter(belongs, evidence), key=lambda fact: fact.phase != failure.phase))
