"""A kit for tests of plans and of whatever drives them: failures and successes are said, not run.

    workflow = create_test_workflow()
    workflow.inject_failure("t2_indicators", "RSI mismatch")
    assert workflow.has_branch("t2_indicators")
    workflow.inject_success("t2_indicators_branch_01")
    assert workflow.get_status("t2_indicators") == "done"

A :class:`Workflow` holds a plan and one outcome a todo. After each word it asks
:func:`planner.rules.deciding.decide`, and applies the edits that come of it, as ``planner next --output``
would.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from planner.model.outcome import (
    Check,
    Failure,
    Outcome,
    OutcomeDocument,
    OutcomeMetrics,
    PlanRef,
    RunInfo,
    Summary,
    TestResult,
)
from planner.model.plan import AcceptanceCriteria, CommandSpec, MetricSpec, Plan, Policy, Todo
from planner.model.taxonomy import CATEGORIES, Category, Repeatability, RoutingKey
from planner.model.verdicts import CheckKind, Since, TestOutcome, TodoState, Verdict
from planner.revise.editing import apply_edits
from planner.rules.approving import edits_to_apply
from planner.rules.deciding import decide
from planner.rules.routing import route

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from planner.model.decision import Decisions, Repair
    from planner.model.edits import Edit

ErrorType = Category | RoutingKey | str
"""A category, a routing key (``implementation_bug``), or the text of either."""

Status = Literal["pending", "blocked", "active", "testing", "test_failed", "done", "failed", "halted"]

_START = datetime(2026, 1, 1, tzinfo=UTC)
_BETWEEN_RUNS = timedelta(seconds=60)


def create_sample_todo(todo_id: str = "t1_data_integration", **fields: Any) -> Todo:
    """A todo with one test. ``fields`` replace or add fields of :class:`planner.model.plan.Todo`."""
    command = CommandSpec(cmd=f"pytest tests/test_{todo_id}.py::test_it -q", timeout_seconds=20)
    return Todo.model_validate(
        {
            "id": todo_id,
            "title": todo_id.replace("_", " ").capitalize(),
            "acceptance_criteria": AcceptanceCriteria(tests=(command,)),
        }
        | fields
    )


def create_sample_plan(**policy: Any) -> Plan:
    """A plan of four todos, each depending on the one before. ``policy`` sets fields of its policy."""
    first = AcceptanceCriteria(
        tests=(CommandSpec(cmd="pytest tests/test_adapter.py::test_fetch -q", timeout_seconds=30),),
        metrics=(MetricSpec.model_validate({"name": "rows_min", "operator": ">=", "value": 10}),),
    )
    return Plan(
        todo_list_id="workflow_sample_001",
        workflow_name="A sample in four steps",
        metadata=Policy.model_validate({"auto_fix_mode": True} | policy),
        items=(
            create_sample_todo("t1_data_integration", acceptance_criteria=first, priority=1),
            create_sample_todo(
                "t2_indicators", agent_role="architect", dependencies=("t1_data_integration",), priority=2
            ),
            create_sample_todo("t3_entry_conditions", dependencies=("t2_indicators",), priority=3),
            create_sample_todo("t4_exit_conditions", dependencies=("t3_entry_conditions",), priority=4),
        ),
    )


def category_of(error_type: ErrorType) -> Category:
    """The category that is meant. A routing key stands for the first category that is routed by it.

    Raises ``ValueError``, naming the known words, for any other.
    """
    word = str(error_type)
    if word in list(Category):
        return Category(word)
    for category, facts in CATEGORIES.items():
        if facts.routing_key is not None and facts.routing_key.value == word and not facts.overrides_key:
            return category
    known = ", ".join([*RoutingKey, *Category])
    raise ValueError(f"'{word}' is no failure category and no routing key; write one of {known}")


def sample_failure(
    todo: Todo,
    error_type: ErrorType = RoutingKey.IMPLEMENTATION_BUG,
    message: str = "",
    **fields: Any,
) -> Failure:
    """A diagnosed failure of the first criterion of a todo. ``fields`` replace or add fields of it."""
    category = category_of(error_type)
    facts = category.facts
    test = f"tests/test_{todo.id}.py::test_it"
    return Failure.model_validate(
        {
            "category": category,
            "owner": facts.usual_owner,
            "repeatability": Repeatability.DETERMINISTIC,
            "confidence": 0.9,
            "rule": "injected",
            "because": "A test said so.",
            "signature": sha256(f"{category} {todo.id} {message}".encode()).hexdigest()[:12],
            "routing_key": facts.routing_key,
            "target_agent": route(category, todo.failure_routing),
            "check_id": "tests[0]",
            "tests": (test,),
            "top_failing_tests": (test,),
            "stack_trace_head": message or f"{category} was injected",
        }
        | fields
    )


def simulate_failure(
    todo: Todo,
    error_type: ErrorType = RoutingKey.IMPLEMENTATION_BUG,
    message: str = "",
    **fields: Any,
) -> Outcome:
    """The outcome of a todo whose first criterion failed. ``fields`` are those of the failure."""
    failure = sample_failure(todo, error_type, message, **fields)
    return Outcome(
        todo_id=todo.id,
        title=todo.title,
        state=TodoState.TEST_FAILED,
        verified=True,
        success=False,
        tests_passed=False,
        checks=(_check(todo, Verdict.FAILED),),
        failure_evidence=failure,
        failures=(failure,),
    )


def simulate_success(todo: Todo) -> Outcome:
    """The outcome of a todo whose criteria hold."""
    return Outcome(
        todo_id=todo.id,
        title=todo.title,
        state=TodoState.DONE,
        verified=True,
        success=True,
        tests_passed=True,
        checks=(_check(todo, Verdict.PASSED),),
    )


def sample_document(plan: Plan, outcomes: Iterable[Outcome], *, at: datetime = _START) -> OutcomeDocument:
    """An outcome file of a run that found these outcomes; of every other todo nothing ran."""
    found = {outcome.todo_id: outcome for outcome in outcomes}
    entries = tuple(found.get(todo.id) or _not_run(todo) for todo in plan.items)
    entries = tuple(
        each.model_copy(update={"plan": plan.todo_list_id}) if each.plan is None else each
        for each in entries
    )
    when = at.isoformat().replace("+00:00", "Z")
    return OutcomeDocument(
        plans=(PlanRef(todo_list_id=plan.todo_list_id, path="plan.yaml", digest="sha256:0"),),
        run=RunInfo(
            run_id=f"run-{at:%H%M%S}",
            started_at=when,
            finished_at=when,
            duration_ms=1000,
            exit_status=0 if all(entry.success for entry in entries) else 1,
            scope="all",
            python="3.13.0",
            pytest="9.0.0",
        ),
        summary=Summary(todos=dict(Counter(each.state for each in entries if each.state is not None))),
        outcomes=entries,
    )


class Workflow:
    """A plan that is carried on in memory.

    ``approved`` is what a person agreed to beforehand, ``("all",)`` for everything.
    """

    def __init__(self, plan: Plan, *, approved: Collection[str] = ()) -> None:
        self.plan = plan
        """The plan with every edit that was applied so far."""
        self.applied: list[Edit] = []
        self._approved = approved
        self._outcomes: dict[str, Outcome] = {}
        self._now = _START
        self._work = 0
        self.decisions: Decisions = self._decide()
        """What the last word called for."""

    def inject_failure(
        self,
        todo_id: str,
        message: str = "",
        *,
        error_type: ErrorType = RoutingKey.IMPLEMENTATION_BUG,
        **fields: Any,
    ) -> Repair | None:
        """Let the criteria of a todo or branch fail, and return what is decided about it.

        Of a branch, that is what is decided about its parent. Raises ``KeyError`` for an unknown todo.
        """
        todo = self.plan.todo(todo_id)
        return self.handle_failure(todo, simulate_failure(todo, error_type, message, **fields))

    def handle_failure(self, todo: Todo, outcome: Outcome) -> Repair | None:
        """Take in an outcome, and return what is decided about the todo, of a branch about its parent."""
        self._say(outcome)
        concerned = todo.parent_id or todo.id
        return next((each for each in self.decisions.repairs if each.todo_id == concerned), None)

    def inject_success(self, todo_id: str, *, parent_passes: bool = True) -> None:
        """Let the criteria of a todo or branch hold. Of a branch, its parent is verified again:
        ``parent_passes`` says with which result. Raises ``KeyError`` for an unknown todo.
        """
        todo = self.plan.todo(todo_id)
        outcomes = [simulate_success(todo)]
        if todo.parent_id is not None and parent_passes:
            outcomes.append(simulate_success(self.plan.todo(todo.parent_id)))
        self._say(*outcomes)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._now += timedelta(seconds=seconds)

    def get_status(self, todo_id: str) -> Status:
        """Where a todo stands. Raises ``KeyError`` for an unknown one.

        ``active`` is what can be worked on now: a todo that is ready, or an open branch.
        """
        todo = self.plan.todo(todo_id)
        outcome = self._outcomes.get(todo_id)
        if outcome is not None and outcome.success:
            return "done"
        if self.decisions.halt is not None:
            return "halted"
        if any(todo_id == blocked.todo_id for blocked in self.decisions.blocked):
            return "blocked"
        given_up = {
            name
            for repair in self.decisions.repairs
            if repair.move.value == "escalate"
            for name in (repair.todo_id, repair.branch_id)
        }
        if todo_id in given_up:
            return "failed"
        if todo.parent_id is not None:
            return "active" if todo.parent_id not in given_up else "failed"
        if outcome is not None and outcome.state is not None:
            return outcome.state.value
        return "active" if any(todo_id == each.todo_id for each in self.decisions.ready) else "pending"

    def has_branch(self, todo_id: str) -> bool:
        """Whether a branch was made for a todo."""
        return bool(self.get_branches(todo_id))

    def get_branches(self, todo_id: str | None = None) -> tuple[Todo, ...]:
        """The branches of a todo, or all, the first first."""
        return tuple(
            item
            for item in self.plan.items
            if item.parent_id is not None and todo_id in (None, item.parent_id)
        )

    @property
    def document(self) -> OutcomeDocument:
        """What has been said so far, as an outcome file."""
        return sample_document(self.plan, self._outcomes.values(), at=self._now)

    def _say(self, *outcomes: Outcome) -> None:
        self._now += _BETWEEN_RUNS
        self._work += 1
        for outcome in outcomes:
            self._outcomes[outcome.todo_id] = outcome
        # Whoever says something has worked, and so the tree is another one.
        worked = {"diff_hash": f"sha256:{self._work:064x}"}
        self._outcomes = {
            name: outcome.model_copy(update=worked) for name, outcome in self._outcomes.items()
        }
        self.decisions = self._decide()
        edits = [
            edit for repair in self.decisions.repairs for edit in edits_to_apply(repair, self._approved)[0]
        ]
        self.plan = apply_edits(self.plan, edits).plan
        self.applied += edits

    def _decide(self) -> Decisions:
        return decide(self.plan, self.document, approved=self._approved)


def create_test_workflow(*, approved: Collection[str] = (), **policy: Any) -> Workflow:
    """A workflow of the sample plan, repairing by itself unless ``policy`` says otherwise."""
    return Workflow(create_sample_plan(**policy), approved=approved)


def _check(todo: Todo, verdict: Verdict) -> Check:
    test = f"tests/test_{todo.id}.py::test_it"
    outcome = TestOutcome.PASSED if verdict is Verdict.PASSED else TestOutcome.FAILED
    tests = todo.acceptance_criteria.tests
    return Check(
        id="tests[0]",
        kind=CheckKind.TEST,
        verdict=verdict,
        cmd=tests[0].cmd if tests else f"pytest {test}",
        timeout_seconds=20,
        tests=(TestResult(nodeid=test, outcome=outcome, since=Since.UNKNOWN),),
    )


def _not_run(todo: Todo) -> Outcome:
    return Outcome(
        todo_id=todo.id,
        title=todo.title,
        state=TodoState.PENDING,
        success=False,
        tests_passed=False,
        metrics=OutcomeMetrics(),
    )


__all__ = [
    "Workflow",
    "category_of",
    "create_sample_plan",
    "create_sample_todo",
    "create_test_workflow",
    "sample_document",
    "sample_failure",
    "simulate_failure",
    "simulate_success",
]
