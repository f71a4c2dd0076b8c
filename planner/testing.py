"""Kit for tests of plans and of drivers: results are injected, and nothing is executed.

    workflow = create_test_workflow()
    workflow.inject_failure("t2_indicators", "RSI mismatch")
    assert workflow.has_branch("t2_indicators")
    workflow.inject_success("t2_indicators_branch_01")
    assert workflow.get_status("t2_indicators") == "completed"

A :class:`Workflow` is a run of the engine in memory; each injected result is reported to it as an event
``verified``. Time is simulated, so equal tests give equal runs.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.catalog.tables import load_table
from planner.engine import start, step
from planner.engine.state import current_plan
from planner.model.actions import AskHuman, Implement
from planner.model.events import (
    ApprovalGiven,
    PlanSubmitted,
    RunPolicy,
    RunResumed,
    RunStarted,
    Verified,
    WorkFinished,
)
from planner.model.outcome import Check, Failure, Outcome
from planner.model.plan import AcceptanceCriteria, CommandSpec, Plan, Todo
from planner.model.taxonomy import CATEGORIES, Category, Repeatability, RoutingKey
from planner.model.verdicts import CheckKind, TodoLife, TodoState, Verdict
from planner.policy.branches import route
from planner.policy.criteria import criterion_ids, wants_convention

if TYPE_CHECKING:
    from collections.abc import Collection

    from planner.model.actions import Action

ErrorType = Category | RoutingKey | str
"""A category, a routing key (``implementation_bug``), or the name of one."""

_START = datetime(2026, 1, 1, tzinfo=UTC)
_BETWEEN_RUNS = timedelta(seconds=60)
_CANONICAL_STATES = {"completed": "done", "running": "active", "in_progress": "active"}


class StateName(str):
    """A state of a todo that also equals its synonyms.

    ``completed`` equals ``done``; ``running`` and ``in_progress`` equal ``active``.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Compare with the name of a state or a synonym of it."""
        return str(self) == _CANONICAL_STATES.get(other, other) if isinstance(other, str) else False

    # str has a comparison of its own for !=, which does not ask __eq__.
    def __ne__(self, other: object) -> bool:
        return not self == other

    # A class that defines __eq__ has no hash unless it names one.
    __hash__ = str.__hash__


class TaskResult(NamedTuple):
    """A todo and its state."""

    id: str
    status: StateName


class Result(NamedTuple):
    """State of a workflow, and of all its todos except branches."""

    status: StateName
    tasks: tuple[TaskResult, ...]


def create_plan(request: str = "A sample in four steps", **policy: Any) -> Plan:
    """Return the sample plan with a request as its name; ``policy`` sets fields of its policy."""
    return create_sample_plan(**policy).model_copy(update={"workflow_name": request})


def create_sample_todo(todo_id: str = "t1_data_integration", **fields: Any) -> Todo:
    """Return a todo with one test. ``fields`` replace or add fields of :class:`planner.model.plan.Todo`."""
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
    """Return a plan of four todos that depend on each other in a chain.

    ``policy`` sets fields of :class:`planner.model.plan.Policy`.
    """
    sample = load_table("sample_plan", "planner")
    sample["items"] = tuple(create_sample_todo(**fields) for fields in sample["items"])
    return Plan.model_validate(sample | {"metadata": {"auto_fix_mode": True} | policy})


def category_of(error_type: ErrorType) -> Category:
    """Return a category by its name; for a routing key the first category that it routes.

    Raises ``ValueError``, which lists the known names, for other texts.
    """
    for category, facts in CATEGORIES.items():
        if error_type == category or (facts.routing_key == error_type and not facts.overrides_key):
            return category
    known = ", ".join([*RoutingKey, *Category])
    raise ValueError(
        f"'{error_type}' is neither a failure category nor a routing key; write one of {known}"
    )


def sample_failure(
    todo: Todo, error_type: ErrorType = RoutingKey.IMPLEMENTATION_BUG, message: str = "", **fields: Any
) -> Failure:
    """Return a diagnosed failure of a todo's first criterion. ``fields`` replace or add its fields."""
    category = category_of(error_type)
    test = f"tests/test_{todo.id}.py::test_it"
    return Failure.model_validate(
        {
            "category": category,
            "owner": category.facts.usual_owner,
            "repeatability": Repeatability.DETERMINISTIC,
            "confidence": 0.9,
            "rule": "injected",
            "because": "A test injected it.",
            "signature": sha256(f"{category} {todo.id} {message}".encode()).hexdigest()[:12],
            "routing_key": category.facts.routing_key,
            "target_agent": route(category, todo.failure_routing),
            "check_id": "tests[0]",
            "tests": (test,),
            "top_failing_tests": (test,),
            "stack_trace_head": message or f"{category} was injected",
        }
        | fields
    )


def simulate_failure(
    todo: Todo, error_type: ErrorType = RoutingKey.IMPLEMENTATION_BUG, message: str = "", **fields: Any
) -> Outcome:
    """Return the outcome of a todo whose first criterion failed. ``fields`` are those of the failure."""
    failure = sample_failure(todo, error_type, message, **fields)
    failing = failure.check_id or "tests[0]"
    return _outcome(todo, failing, failure_evidence=failure, failures=(failure,))


def simulate_success(todo: Todo) -> Outcome:
    """Return the outcome of a todo whose criteria all passed."""
    return _outcome(todo)


class Workflow:
    """A run of a plan in memory.

    ``approved`` lists the ids of branches that are approved as soon as the engine asks; ``("all",)``
    approves all branches and edits.
    """

    def __init__(self, plan: Plan, *, approved: Collection[str] = ()) -> None:
        self._approved = approved
        self._now = _START
        self._work = 0  # count of simulated turns of work
        self.actions: list[Action] = []
        """All actions that the engine has requested, in order."""
        # As in planner next, where people verify and no driver reports each step.
        policy = RunPolicy(driven=False)
        submitted = PlanSubmitted(at=_START, plan=plan, digest="sha256:0", policy=policy)
        self.state, actions = start(submitted)
        self.actions += actions
        if not self.state.plan_state.is_final:
            self._tell(RunStarted(at=_START))

    @property
    def plan(self) -> Plan:
        """The plan with all edits applied so far."""
        return current_plan(self.state)

    @property
    def outstanding(self) -> tuple[Action, ...]:
        """The requested actions that are not answered, as ``planner next`` shows them."""
        if self.state.plan_state.is_final:
            return ()
        # On resuming, the engine repeats its unanswered actions; the state that follows is discarded.
        return step(self.state, RunResumed(at=self._now))[1]

    def inject_failure(
        self,
        todo_id: str | None = None,
        message: str = "",
        *,
        task_id: str | None = None,
        error_type: ErrorType = RoutingKey.IMPLEMENTATION_BUG,
        **fields: Any,
    ) -> Todo | None:
        """Report a failure of a todo or branch; return the open branch that repairs it, if any.

        Todos before it that have no result yet pass first. ``task_id`` is a synonym of ``todo_id``;
        ``fields`` are those of the failure. Raises ``KeyError`` for an unknown todo.
        """
        todo = self.state.records[todo_id or task_id or ""].todo
        return self.handle_failure(todo, simulate_failure(todo, error_type, message, **fields))

    def handle_failure(self, todo: Todo, outcome: Outcome) -> Todo | None:
        """Report a failed outcome; return the open branch that repairs the todo, if there is one."""
        self._work += 1
        self._pass_before(todo)
        self._report(outcome)
        # Branches belong to the todo that they repair, also those that a failed branch leads to.
        primary = self.state.records[todo.parent_id or todo.id]
        branches = [self.state.records[name] for name in primary.branches]
        return branches[-1].todo if branches and not branches[-1].life.is_final else None

    def inject_success(
        self, todo_id: str | None = None, *, task_id: str | None = None, parent_passes: bool = True
    ) -> None:
        """Report that the criteria of a todo or branch passed.

        Todos before it that have no result yet pass first. After a branch, its parent is verified again,
        with the result ``parent_passes``. ``task_id`` is a synonym of ``todo_id``. Raises ``KeyError`` for
        an unknown todo.
        """
        todo = self.state.records[todo_id or task_id or ""].todo
        self._work += 1
        parent = None if todo.parent_id is None else self.state.records[todo.parent_id].todo
        self._pass_before(todo)
        self._report(simulate_success(todo))
        if parent is not None:
            self._report(
                simulate_success(parent) if parent_passes else simulate_failure(parent, message="still")
            )

    def wait(self, seconds: float) -> None:
        """Advance the simulated time; no event is reported."""
        self._now += timedelta(seconds=seconds)

    def get_status(self, todo_id: str) -> StateName:
        """Return the state of a todo. Raises ``KeyError`` for an unknown todo."""
        return StateName(self.state.todos[todo_id].life.value)

    def has_branch(self, todo_id: str) -> bool:
        """Return whether a todo has or had a branch. Raises ``KeyError`` for an unknown todo."""
        return bool(self.get_branches(todo_id))

    def get_branches(self, owner_id: str | None = None) -> tuple[Todo, ...]:
        """Return the branches of a todo, oldest first; for the id of the plan or ``None``, all branches.

        Raises ``KeyError`` for an unknown todo.
        """
        owner = None if owner_id in (None, self.state.plan_id) else self.state.records[owner_id].id
        return tuple(
            each.todo
            for each in sorted(self.state.records.values(), key=lambda each: each.rank)
            if each.parent_id is not None and owner in (None, each.parent_id)
        )

    def wait_for_completion(self, workflow_id: str | None = None, timeout: float = 300.0) -> Result:
        """Report success for each requested todo until none is requested or the run has ended.

        ``timeout`` is in seconds of simulated time. Raises ``LookupError`` for the id of another workflow.
        """
        if workflow_id not in (None, self.state.plan_id):
            raise LookupError(f"the workflow {workflow_id} is not loaded; call load_todo_list first")
        end = self._now + timedelta(seconds=timeout)
        while self._now < end and not self.state.plan_state.is_final:
            asked = next((each for each in self.outstanding if isinstance(each, Implement)), None)
            if asked is None:
                break
            self.inject_success(asked.todo_id)
        tasks = tuple(
            TaskResult(each.id, StateName(each.life.value))
            for each in self.state.todos.values()
            if each.parent_id is None
        )
        ended = all(each.status == "done" for each in tasks)
        return Result(StateName("done" if ended else self.state.plan_state.value), tasks)

    def _pass_before(self, todo: Todo) -> None:
        """Report success for the dependencies of a todo that have no result, in order.

        Otherwise the engine would ignore the result of the todo, whose work cannot have begun.
        """
        left, seen = [*todo.dependencies], set[str]()
        while left:
            record = self.state.records[left[-1]]
            is_open = record.outcome is None and not record.life.is_final
            if is_open and record.id not in seen:  # those before it come first
                seen.add(record.id)
                left += record.todo.dependencies
                continue
            left.pop()
            if is_open:
                self._report(simulate_success(record.todo))

    def _report(self, outcome: Outcome) -> None:
        """Report a turn of work and its outcome to the engine, a minute after the last."""
        self._now += _BETWEEN_RUNS
        record = self.state.records.get(outcome.todo_id)
        # A failure for which nobody has worked would be work to do, not a failed attempt.
        if record is not None and record.life is TodoLife.ACTIVE and record.todo.requires_testing:
            self._tell(WorkFinished(at=self._now, todo_id=record.id))
        # Each turn of work changes the tree: an unchanged digest would mean that nothing was done.
        outcome = outcome.model_copy(update={"diff_hash": f"sha256:{self._work:064x}"})
        self._tell(Verified(at=self._now, outcome=outcome))

    def _tell(self, event: RunStarted | WorkFinished | Verified | ApprovalGiven) -> None:
        """Apply an event, and approve what the engine then asks for, if it is in ``approved``."""
        self.state, actions = step(self.state, event)
        self.actions += actions
        for asked in actions:
            if isinstance(asked, AskHuman) and asked.kind.is_approval:
                name, given = asked.question_id, {"decision": "approve", "digest": asked.digest}
                # An approval may settle further requests of these actions; only open ones can be approved.
                if name in self.state.questions and not {name, "all"}.isdisjoint(self._approved):
                    self._tell(ApprovalGiven.model_validate({"at": self._now, "approval_id": name} | given))


class Orchestrator:
    """Proxy of the workflow that was loaded last, with all its attributes."""

    _workflow: Workflow | None = None

    def load_todo_list(self, plan: Plan) -> str:
        """Create and load a workflow of a plan; return its id."""
        return self.execute(Workflow(plan))

    def execute(self, workflow: Workflow) -> str:
        """Load a workflow; return its id."""
        self._workflow = workflow
        return workflow.state.plan_id

    # Called only for names that the class itself does not have.
    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the loaded workflow: ``inject_failure``, ``get_status`` and so on.

        Raises ``LookupError`` if none is loaded.
        """
        if self._workflow is None:
            raise LookupError("no workflow is loaded; call load_todo_list first")
        return getattr(self._workflow, name)


def create_test_workflow(*, approved: Collection[str] = (), **policy: Any) -> Workflow:
    """Return a workflow of the sample plan; ``policy`` sets fields of its policy."""
    return Workflow(create_sample_plan(**policy), approved=approved)


_KINDS = {
    "expected_artifacts": CheckKind.ARTIFACT,
    "metrics": CheckKind.METRIC,
    "manual": CheckKind.MANUAL,
    "contract_path": CheckKind.CONTRACT,
}


def _outcome(todo: Todo, failing: str | None = None, **fields: Any) -> Outcome:
    """Return an outcome with a check for each criterion; all passed except the one named ``failing``."""
    # A todo that names no criterion is verified by the tests that the naming convention finds.
    ids = sorted(criterion_ids(todo)) or (["convention"] if wants_convention(todo) else [])
    ids = ids if failing in (None, *ids) else [failing, *ids]
    checks = tuple(
        Check(
            id=name,
            kind=_KINDS.get(name.partition("[")[0], CheckKind.TEST),
            verdict=Verdict.FAILED if name == failing else Verdict.PASSED,
        )
        for name in ids
    )
    is_done = failing is None
    return Outcome(
        todo_id=todo.id,
        title=todo.title,
        state=TodoState.DONE if is_done else TodoState.TEST_FAILED,
        success=is_done,
        tests_passed=is_done,
        verified=True,
        checks=checks,
        **fields,
    )
