"""A run to which a test submits events one by one, with the actions that each event calls for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from planner.engine import start, step
from planner.model.actions import AskHuman, Implement, Notify, PublishPlan, Verify
from planner.model.events import (
    ApprovalGiven,
    ClockTicked,
    Decision,
    PlanSubmitted,
    QuestionAnswered,
    RunPolicy,
    RunStarted,
    SubPlanLoaded,
    Verified,
    WorkFinished,
)
from planner.model.outcome import Check, Outcome
from planner.model.past import PastRecords
from planner.model.plan import Plan, Policy, Todo
from planner.model.taxonomy import Category
from planner.model.verdicts import CheckKind, TodoState, Verdict
from planner.store.run_log import Step
from planner.testing import create_sample_todo, simulate_failure, simulate_success

if TYPE_CHECKING:
    from planner.engine import State, TodoRecord
    from planner.model.actions import Action
    from planner.model.events import Event

A = TypeVar("A")

START = datetime(2026, 1, 1, 10, 0, tzinfo=UTC)


def todo(todo_id: str = "t1", **fields: Any) -> Todo:
    """Return a todo with one test and, by default, no retries."""
    return create_sample_todo(todo_id, **({"max_retries": 0} | fields))


def plan_of(*todos: Todo, **policy: Any) -> Plan:
    """Return a plan with automatic repair, unless ``policy`` disables it."""
    return Plan(
        todo_list_id="p1", metadata=Policy.model_validate({"auto_fix_mode": True} | policy), items=todos
    )


def chain(length: int = 3) -> list[Todo]:
    """Return todos that each depend on the one before."""
    return [todo(f"t{at}", dependencies=(f"t{at - 1}",) if at > 1 else ()) for at in range(1, length + 1)]


class Told:
    """A run, with the actions that the last event called for."""

    state: State

    def __init__(
        self,
        *todos: Todo,
        run: dict[str, Any] | None = None,
        memory: PastRecords | None = None,
        **policy: Any,
    ) -> None:
        self.now = START
        self.work = 0
        self.submission = PlanSubmitted(
            at=START,
            plan=plan_of(*todos, **policy),
            digest="sha256:plan",
            policy=RunPolicy.model_validate(run or {}),
            memory=memory or PastRecords(),
        )
        self.state, self.last = start(self.submission)
        self.all: list[Action] = [*self.last]
        self.steps = [Step(self.submission, self.last, None, self.state)]
        self.tell(RunStarted(at=self.now))

    def tell(self, event: Event) -> tuple[Action, ...]:
        before = self.state
        self.state, self.last = step(before, event)
        self.all += self.last
        self.steps.append(Step(event, self.last, before, self.state))
        return self.last

    def life(self, todo_id: str = "t1") -> str:
        return self.state.todos[todo_id].life.value

    def record(self, todo_id: str = "t1") -> TodoRecord:
        return self.state.todos[todo_id]

    def last_of(self, kind: type[A]) -> list[A]:
        """Return the actions of one kind that the last event called for."""
        return [action for action in self.last if isinstance(action, kind)]

    def all_of(self, kind: type[A]) -> list[A]:
        """Return the actions of one kind since the start of the run."""
        return [action for action in self.all if isinstance(action, kind)]

    @property
    def started(self) -> list[str]:
        """Ids of the todos whose work the last event called for."""
        return [action.todo_id for action in self.last_of(Implement)]

    @property
    def verifying(self) -> list[str]:
        """Ids of the todos whose verification the last event called for."""
        return [name for action in self.last_of(Verify) for name in action.todo_ids]

    @property
    def questions(self) -> list[AskHuman]:
        return self.last_of(AskHuman)

    @property
    def rules(self) -> list[str]:
        return [action.rule for action in self.last]

    def topics(self) -> list[str]:
        """Return the topics of all notifications so far."""
        return [action.topic for action in self.all_of(Notify)]

    def edits(self) -> list[Any]:
        """Return the edits of the plan that the last event called for."""
        return [edit for action in self.last_of(PublishPlan) for edit in action.edits]

    def works(self, todo_id: str = "t1", *, success: bool = True, **fields: Any) -> tuple[Action, ...]:
        return self.tell(WorkFinished(at=self.now, todo_id=todo_id, success=success, **fields))

    def passes(self, todo_id: str = "t1") -> tuple[Action, ...]:
        return self.outcome(self.good(todo_id))

    def asked(self) -> AskHuman:
        """Return the latest question."""
        return self.all_of(AskHuman)[-1]

    def good(self, todo_id: str) -> Outcome:
        """Return an outcome in which all criteria pass."""
        outcome = simulate_success(self.state.records[todo_id].todo)
        return outcome.model_copy(update={"todo_id": todo_id})

    def fails(
        self,
        todo_id: str = "t1",
        category: Category = Category.TEST_REGRESSION,
        message: str | None = None,
        *,
        diff_hash: str | None = None,
        **fields: Any,
    ) -> tuple[Action, ...]:
        """Submit a failed outcome; by default, ``message`` and ``diff_hash`` are new each time."""
        self.work += 1
        text = f"failure {self.work}" if message is None else message
        outcome = simulate_failure(create_sample_todo(todo_id.rpartition("/")[2]), category, text, **fields)
        update: dict[str, Any] = {"todo_id": todo_id, "diff_hash": diff_hash or f"sha256:{self.work}"}
        if category is Category.FLAKY_TEST:
            update["checks"] = (self._check(Verdict.FLAKY),)
        return self.outcome(outcome.model_copy(update=update))

    def says(self, verdict: Verdict, todo_id: str = "t1") -> tuple[Action, ...]:
        """Submit an outcome that has neither passed nor failed."""
        return self.outcome(
            Outcome(
                todo_id=todo_id,
                state=TodoState.TESTING,
                success=False,
                tests_passed=False,
                checks=(self._check(verdict),),
            )
        )

    def outcome(self, outcome: Outcome, **fields: Any) -> tuple[Action, ...]:
        return self.tell(Verified(at=self.now, outcome=outcome, **fields))

    def is_done(self, todo_id: str = "t1") -> tuple[Action, ...]:
        """Submit successful work and a passed outcome."""
        self.works(todo_id)
        return self.passes(todo_id)

    def is_red(self, todo_id: str = "t1", *args: Any, **fields: Any) -> tuple[Action, ...]:
        """Submit successful work and a failed outcome."""
        self.works(todo_id)
        return self.fails(todo_id, *args, **fields)

    def decides(self, decision: Decision, question: AskHuman, **fields: Any) -> tuple[Action, ...]:
        said: dict[str, Any] = {"approval_id": question.question_id, "digest": question.digest} | fields
        return self.tell(ApprovalGiven(at=self.now, decision=decision, **said))

    def answers(self, answer: str, question: AskHuman) -> tuple[Action, ...]:
        return self.tell(QuestionAnswered(at=self.now, question_id=question.question_id, answer=answer))

    def waits(self, seconds: float) -> tuple[Action, ...]:
        self.now += timedelta(seconds=seconds)
        return self.tell(ClockTicked(at=self.now))

    def loads(self, todo_id: str, *todos: Todo, **fields: Any) -> tuple[Action, ...]:
        plan = plan_of(*todos) if todos else None
        return self.tell(
            SubPlanLoaded(at=self.now, todo_id=todo_id, plan=plan, digest="sha256:sub", **fields)
        )

    @staticmethod
    def _check(verdict: Verdict) -> Check:
        return Check(id="tests[0]", kind=CheckKind.TEST, verdict=verdict)
