"""Outcomes: the results of one run, written to ``.planverify/outcomes.json``; and failure reports.

A failure report, ``diagnostics/{todo}_failure_report.json``, has the diagnoses and evidence of one todo,
for a repair that sees nothing else. Readers of both ignore unknown keys; versions only increase.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, Field

from planner.model.base import ReadValue
from planner.model.evidence import AuditEvent, Evidence, Hunk, ProcessEnd
from planner.model.taxonomy import Category, Owner, Repeatability, Role, RoutingKey
from planner.model.verdicts import (
    CheckAtBase,
    CheckKind,
    Isolation,
    Phase,
    Side,
    Since,
    TestOutcome,
    TodoAtBase,
    TodoState,
    Verdict,
    Witness,
)


class SubPlanRef(ReadValue):
    """The plan file of a parent, at the time of its verification."""

    todo_id: str
    """The parent."""
    path: str
    digest: str


class PlanRef(ReadValue):
    todo_list_id: str
    path: str
    digest: str
    sub_plans: tuple[SubPlanRef, ...] = ()
    """The loaded sub-plans, at any depth."""
    todos: dict[str, str] = Field(default_factory=dict)
    """For each todo, by its qualified id, a digest of the parts of the plan that its verdict depends on."""


class TestResult(ReadValue):
    # Otherwise pytest collects the class where a test module imports it.
    __test__ = False

    nodeid: str
    outcome: TestOutcome
    since: Since = Since.UNKNOWN
    duration_ms: int = 0
    reason: str | None = None
    """Why it was skipped or expected to fail."""


class FixtureUse(ReadValue):
    """The data file that a criterion names, with its digest."""

    path: str
    sha256: str | None


class Check(ReadValue):
    """One criterion with its verdict."""

    id: str
    kind: CheckKind
    verdict: Verdict
    duration_ms: int = 0
    cmd: str | None = None
    title: str | None = None
    """Title of a check that is no command: a path, ``rows_min >= 10``, a question."""
    isolation: Isolation = Isolation.PARENT
    reason: str | None = None
    """One sentence on why the verdict is not ``passed``, or how it was reached."""
    timeout_seconds: float | None = None
    exit_code: int | None = None
    runs: int | None = None
    """Number of times that its tests were run in this run, including confirmations."""
    reds: int | None = None
    """Number of these runs that failed."""
    witness: Witness | None = None
    tests: tuple[TestResult, ...] = ()
    at_base: CheckAtBase | None = None
    """Its result at the baseline, if known."""
    fixture: FixtureUse | None = None
    taken_from: str | None = None
    """The earlier run that reached this verdict; it is still valid, as nothing that it depends on has
    changed."""
    events: tuple[AuditEvent, ...] = ()
    """Accesses of its tests to resources outside of their process; at most 50."""
    quarantined: str | None = None
    """The ticket of the quarantine by which the plan tolerates the flakiness of this check."""
    quarantine_ended: str | None = None
    """The day on which that quarantine expired."""

    @property
    def counts_as(self) -> Verdict:
        """The verdict that decides the state of the todo: quarantined flakiness counts as passed."""
        return Verdict.PASSED if self.quarantined and self.verdict is Verdict.FLAKY else self.verdict

    @property
    def is_unanswered(self) -> bool:
        """Return whether a person must answer: nobody has, or only an earlier wording of the question."""
        is_reworded = self.kind is CheckKind.MANUAL and self.verdict is Verdict.STALE
        return is_reworded or self.verdict is Verdict.NEEDS_HUMAN


class Location(ReadValue):
    path: str
    line: int | None = None
    function: str | None = None

    @property
    def shown(self) -> str:
        """Return ``shop/tax.py:3``, or the path alone."""
        return f"{self.path}:{self.line}" if self.line else self.path


UNRELATED = 0.1
"""Score of a change in a file of which the failing tests executed nothing."""


class Candidate(ReadValue):
    """A function that may be at fault."""

    path: str
    """Relative to the plan's root."""
    line: int
    """Its changed line, else its line in the traceback, else its first line."""
    function: str | None = None
    """Qualified name; ``None`` at module level."""
    score: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Suspiciousness relative to the other candidates of this failure."""
    reasons: tuple[str, ...] = ()
    """Grounds of the suspicion: ``changed``, ``traceback``, ``spectrum``, ``origin`` (of a ``None``)."""
    hunk: Hunk | None = None
    """The change in it."""


class RunnerUp(ReadValue):
    """The second most likely category of a failure."""

    category: Category
    confidence: float


class Diagnosis(ReadValue):
    """The interpretation of one failure."""

    category: Category
    owner: Owner
    repeatability: Repeatability = Repeatability.UNCONFIRMED
    confidence: Annotated[float, Field(ge=0, le=1)]
    rule: str
    """The id of the rule that decided it."""
    because: str
    """The rule's reason in one sentence."""
    signature: str
    runner_up: RunnerUp | None = None
    location: Location | None = None
    candidates: tuple[Candidate, ...] = ()
    """The functions most likely to be at fault, the likeliest first; at most 5."""
    suggestion: str
    target_agent: Role | None = None
    """The role that should act, if it is not the category's default; the todo's routing has precedence."""


class Failure(ReadValue):
    """One diagnosed root cause of a todo's failure, with all tests that fail because of it."""

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
    """All tests that fail in this way."""
    since: Since = Since.UNKNOWN
    runs: int | None = None
    """Number of times that the criterion's tests were run in this run, including confirmations."""
    reds: int | None = None
    """Number of these runs that failed."""
    stack_trace_head: str | None = None
    process: ProcessEnd | None = None
    """The end of the process, if the failure or a limit ended it."""
    location: Location | None = None
    candidates: tuple[Candidate, ...] = ()
    """The functions most likely to be at fault, the likeliest first; at most 5."""
    suggestion: str | None = None
    rerun: str | None = None
    """A command that reruns only this, from the folder in which the run was started."""

    @property
    def blamed(self) -> str | None:
        """The culprit in words: the owner, or a change that a guard refuses; ``None`` if unknown."""
        if self.owner in (None, Owner.UNKNOWN):
            return None
        if self.category in (Category.HYGIENE_VIOLATION, Category.ALLOWLIST_VIOLATION):
            return "change"
        return "verifier" if self.owner is Owner.HARNESS else self.owner.value

    @property
    def suspected_changes(self) -> tuple[Hunk, ...]:
        """The changes that can have caused the failure: that at the place of the fault, then the likeliest.

        A change at the place of the fault can, even with a low score. No other one can if the machine is at
        fault, or if the failure is the change of a file that must not be changed. A change of a test cannot
        if the product is at fault, unless a person must look at it. None can if the failure is from
        before the work.
        """
        if self.since is Since.PRE_EXISTING:
            return ()
        path = None if self.location is None else self.location.path
        is_of_code = self.owner not in (Owner.ENVIRONMENT, Owner.HARNESS) and self.category not in (
            Category.HYGIENE_VIOLATION,
            Category.ALLOWLIST_VIOLATION,
        )
        is_products = self.owner is Owner.PRODUCT and self.category.facts.default_role is not Role.HUMAN
        found = [
            each.hunk
            for each in sorted(self.candidates, key=lambda each: each.path != path)
            if each.hunk is not None and (each.path == path or (is_of_code and each.score > UNRELATED))
        ]
        return tuple(hunk for hunk in found if not (is_products and hunk.side is Side.TEST))


_MOST = 10**15
# Huge integers have no float, with which sums and quotients are shown.
_Figure = Annotated[int, AfterValidator(lambda number: max(-_MOST, min(number, _MOST)))]


class OutcomeMetrics(ReadValue):
    duration_ms: _Figure | None = None
    tokens_used: _Figure | None = None
    patch_cycles: _Figure | None = None


class Outcome(ReadValue):
    """All results of one run for one todo."""

    todo_id: str = Field(validation_alias=AliasChoices("todo_id", "step_id"))
    plan: str | None = None
    title: str | None = None
    state: TodoState | None = None
    verified: bool = False
    success: bool
    tests_passed: bool
    at_base: TodoAtBase | None = None
    """State of the todo at the baseline; absent without a baseline, and for a todo that was added since."""
    blocked_by: tuple[str, ...] = ()
    """The failed todos that block this one, nearest first."""
    checks: tuple[Check, ...] = ()
    touched_files: tuple[str, ...] = ()
    diff_hash: str | None = None
    metrics: OutcomeMetrics = OutcomeMetrics.model_construct()
    recorded: dict[str, tuple[int | float | str, ...]] = Field(default_factory=dict)
    failure_evidence: Failure | None = None
    """The failure that decides which role acts."""
    failures: tuple[Failure, ...] = ()


class RunInfo(ReadValue):
    run_id: str
    started_at: str
    """RFC 3339, UTC."""
    finished_at: str
    duration_ms: int
    exit_status: Annotated[int, Field(ge=-(2**31), lt=2**32)]
    scope: Literal["claimed", "ready", "all"]
    python: str
    pytest: str
    hygiene: str = "unchecked: no baseline"
    """``clean``, ``violated`` or ``unchecked``; after a colon, the violations or why it was not checked."""
    interrupted: bool = False
    unexplained: str | None = None
    """Why the run is not accepted although no criterion failed, such as an unmet coverage limit."""
    notes: tuple[str, ...] = ()
    """Remarks on the run as a whole: an unexplained exit status, a skipped step."""


class Summary(ReadValue):
    todos: dict[TodoState, int] = Field(default_factory=dict[TodoState, int])
    criteria: dict[Verdict, int] = Field(default_factory=dict[Verdict, int])
    tests_since: dict[Since, int] = Field(default_factory=dict[Since, int])
    """Numbers of tests by comparison with the baseline; empty without a baseline."""


class CauseTodo(ReadValue):
    """A todo that fails because of a cause."""

    todo_id: str
    plan: str | None = None
    tests: int = 0
    """Number of its tests that fail because of it; 0 for a criterion without tests."""


class Cause(ReadValue):
    """One root cause of the failures of a run, with its consequences."""

    rank: int
    """Position in the recommended order of repair, from 1."""
    signatures: tuple[str, ...]
    """Signatures of the failures that it explains, the most clearly observed first."""
    category: Category
    owner: Owner | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    """Confidence of the diagnosis of the category."""
    headline: str = ""
    location: Location | None = None
    todos: tuple[CauseTodo, ...] = ()
    """The failing todos, in the order of their dependencies."""
    tests: int = 0
    """Number of tests that fail because of it; a test of several todos counts once."""
    files: int = 0
    """Number of test files that could not be collected because of it."""
    top_tests: tuple[str, ...] = ()
    """At most 10 of these tests and files."""
    because: str = ""
    """The reason for its rank."""


class OutcomeDocument(ReadValue):
    """The outcome file."""

    schema_version: int = 1
    plans: tuple[PlanRef, ...]
    run: RunInfo
    summary: Summary
    outcomes: tuple[Outcome, ...]
    causes: tuple[Cause, ...] = ()
    """The root causes of all failures of the run, in the recommended order of repair."""

    def outcome(self, todo_id: str, plan: str | None = None) -> Outcome:
        """Return the outcome of a todo, of any plan unless one is named. Raises ``KeyError``."""
        for entry in self.outcomes:
            if entry.todo_id == todo_id and plan in (None, entry.plan):
                return entry
        raise KeyError(todo_id)


# -- failure reports -----------------------------------------------------------------------------------

FAILURE_REPORT_VERSION: Literal[1] = 1


class ReportedTodo(ReadValue):
    """The todo as written in the plan."""

    id: str
    title: str | None = None
    intent: str | None = None
    agent_role: Role | None = None
    target_file: str | None = None
    hint: str | None = None
    allowed_files: tuple[str, ...] | None = None
    """Files that may be changed; ``null`` if the plan does not restrict them."""
    contract_path: str | None = None
    dependencies: tuple[str, ...] = ()


class SourceExcerpt(ReadValue):
    """A few lines of a file of the project."""

    path: str
    line: int
    """The relevant line, from 1; the excerpt may start below it, after a docstring."""
    first_line: int
    """The number of the first of ``lines``."""
    lines: tuple[str, ...]


class FailureReport(ReadValue):
    """All facts that one run found about a failed todo."""

    schema_version: int = FAILURE_REPORT_VERSION
    run_id: str | None = None
    """The ``run_id`` of the outcome file of that run."""
    plan: PlanRef
    todo: ReportedTodo
    state: TodoState | None = None
    checks: tuple[Check, ...] = ()
    """All criteria of the todo, with their failing tests only."""
    failures: tuple[Failure, ...] = ()
    """The failures of the outcome, the deciding one first."""
    evidence: tuple[Evidence, ...] = ()
    """The evidence; at most 20 items for each failure. See :func:`evidence_of`."""
    excerpts: tuple[SourceExcerpt, ...] = ()
    """The source of the failures' locations, of the raising frames, and of the failing tests."""
    causes: tuple[Cause, ...] = ()
    """The root causes of these failures, and those that probably explain them."""


class FailureContext(ReadValue):
    """All that could be read about one failed todo. Unreadable parts are omitted."""

    todo_id: str
    evidence: tuple[Evidence, ...] = ()
    """Evidence of the failure report, if it is of the same failure as the outcome."""
    excerpts: tuple[SourceExcerpt, ...] = ()
    present: tuple[str, ...] = ()
    """Files mentioned by the failure that exist now."""
    absent: tuple[str, ...] = ()
    """Files mentioned by the failure that are missing."""
    near: dict[str, str] = Field(default_factory=dict[str, str])
    """For missing files, the existing file with the most similar name in the same folder."""
    report_path: str | None = None
    """Path of the failure report, relative to the plan's root."""

    def exists(self, path: str) -> bool | None:
        """Return whether a file exists; ``None`` if that is not known."""
        return True if path in self.present else False if path in self.absent else None


def evidence_of(failure: Failure, evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """Return the evidence of a failure, that of its own phase first.

    Evidence about a test belongs to the failure that names the test, other evidence to the failure of its
    criterion.
    """
    named = {*failure.tests, *failure.top_failing_tests}

    def belongs(fact: Evidence) -> bool:
        shown = {*fact.tests, fact.nodeid} - {None}
        if named and shown:
            return not named.isdisjoint(shown)
        return failure.check_id in (None, fact.check_id)

    return tuple(sorted(filter(belongs, evidence), key=lambda fact: fact.phase != failure.phase))
