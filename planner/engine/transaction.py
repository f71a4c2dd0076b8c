"""One event being taken in: the state as it changes, and the actions that come of it.

Nothing is seen of it before :meth:`Transaction.state`: an event that is refused half-way leaves no trace.
"""

from __future__ import annotations

from datetime import UTC, datetime
from heapq import heappush
from typing import TYPE_CHECKING, Any

from planner.engine.state import State
from planner.errors import RefusedEvent
from planner.model.actions import AskHuman, Cancel, Notify
from planner.policy.lifecycle import plan_may, todo_may

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planner.engine.state import Key, PendingStep, PlanPart, Question, TodoRecord
    from planner.memory import Memory
    from planner.model.actions import Action, Fact, Finish, Halt
    from planner.model.life import PlanState, TodoLife
    from planner.model.plan import Policy
    from planner.model.run_policy import RunPolicy
    from planner.model.taxonomy import Role
    from planner.policy.budget import Spent


LATEST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""The last time that can be written."""

_LATEST_SECONDS = LATEST.timestamp()


class Stop(Exception):
    """Everything has to stop: raised where it is seen, caught where the event is taken in."""

    def __init__(
        self,
        rule: str,
        because: str,
        todo_ids: tuple[str, ...] = (),
        *,
        facts: Mapping[str, Fact] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(rule)
        self.rule = rule
        self.because = because
        self.todo_ids = todo_ids
        self.facts = facts or {}
        self.more = more


_MAPPINGS = frozenset(("parts", "records", "reds", "dependents", "questions", "live", "held"))
_HEAPS = frozenset(("ready", "timers", "queue"))


class Transaction:
    """The fields of :class:`planner.engine.state.State`, to be changed, and what changes them together."""

    plan_id: str
    path: str
    plan_state: PlanState
    policy: RunPolicy
    memory: Memory | None
    events: int
    seq: int
    now: float
    started: float | None
    parts: dict[str, PlanPart]
    records: dict[str, TodoRecord]
    reds: dict[str, None]
    dependents: dict[str, tuple[str, ...]]
    questions: dict[str, Question]
    live: dict[str, tuple[int, ...]]
    working: int
    ready: list[Key]
    held: dict[str, tuple[str, ...]]
    timers: list[Key]
    queue: list[Key]
    open_branches: int
    failed_branches: int
    last_failed_branches: tuple[str, ...]
    consecutive: int
    approved: frozenset[str]
    spent: Spent
    overspent: bool
    unfinished: int
    not_done: int
    asked_questions: int
    stopped: Halt | Finish | None

    __slots__ = (
        *State._fields,
        "actions",
        "changed",
        "ended_branches",
        "expired",
        "judged_anew",
        "trigger",
    )

    actions: list[Action | Callable[[], Action]]
    """What the engine asks for, or how it is made from values that no longer change."""
    trigger: str
    """The name of the event."""
    expired: frozenset[str]
    """The todos whose turn of work was over before the event."""
    ended_branches: list[str]
    """The branches that have come to their end; what follows for their todos is decided last."""
    judged_anew: list[str]
    """The todos whose criteria have changed."""
    changed: list[str]
    """The todos that a revision has changed: what was proposed about them is proposed anew."""

    def __init__(self, state: State, trigger: str) -> None:
        for name in State._fields:
            value: Any = getattr(state, name)
            if name in _MAPPINGS:
                value = dict(value)
            elif name in _HEAPS:
                value = list(value)
            setattr(self, name, value)
        self.actions = []
        self.trigger = trigger
        self.expired = frozenset()
        self.ended_branches = []
        self.judged_anew = []
        self.changed = []

    def state(self) -> State:
        """The state after the event."""
        return State(*[getattr(self, name) for name in State._fields])

    def made(self) -> tuple[Action, ...]:
        """The actions. They are made only now: a fold has no use for them."""
        return tuple([make() if callable(make) else make for make in self.actions])

    @property
    def top(self) -> Policy:
        """The policy of the plan at the top."""
        return self.parts[""].plan.metadata

    def policy_of(self, record: TodoRecord) -> Policy:
        """The policy of the plan that holds a todo."""
        return self.parts[record.within].plan.metadata

    def known(self, todo_id: str) -> TodoRecord:
        """The todo of that id. Raises :class:`planner.errors.RefusedEvent`."""
        record = self.records.get(todo_id)
        if record is None:
            raise RefusedEvent(
                "unknown-todo",
                f"there is no todo '{todo_id}' in the plan '{self.plan_id}'",
                "name one of the state line; those of a sub-plan are qualified by their parent, as in a/b",
            )
        return record

    def put(self, record: TodoRecord) -> TodoRecord:
        """Keep a todo as it is now."""
        self.records[record.id] = record
        return record

    def move(self, record: TodoRecord, life: TodoLife, **changes: Any) -> TodoRecord:
        """Bring a todo into another state. Raises :class:`planner.errors.IllegalTransition`."""
        todo_may(record.id, record.life, life, self.trigger)
        return self.put(record._replace(life=life, **changes))

    def plan_to(self, *states: PlanState) -> None:
        """Bring the plan into states, one after the other; one that it is in is passed over."""
        for state in states:
            if state is not self.plan_state:
                self.plan_state = plan_may(self.plan_state, state, self.trigger)

    def number(self) -> int:
        """The number of the next action."""
        self.seq += 1
        return self.seq

    def enqueue(self, record: TodoRecord, step: PendingStep) -> TodoRecord:
        """Let a todo do something as soon as its turn comes."""
        record = self.put(record._replace(next_step=step))
        self.stand_in_line(record)
        return record

    def stand_in_line(self, record: TodoRecord) -> None:
        """Put a todo that has a step among those that are ready."""
        bias = 0.0
        if self.memory is not None:
            bias = -round(self.memory.order_bias(record.todo, self.now), 6)
        # A parent takes no place, and so it waits for none.
        first = 0 if record.is_parent else 1
        heappush(self.ready, (first, record.todo.priority, bias, record.rank, record.id))

    def take_files_last(self, todo_id: str) -> None:
        """Let a todo under work come behind the others where it is asked who has a file."""
        self.live[todo_id] = self.live.pop(todo_id)

    def remind(self, time: float | None, todo_id: str) -> None:
        """Look at a todo again when that time has come."""
        if time is not None:
            heappush(self.timers, (time, todo_id))

    def cancel(self, record: TodoRecord, rule: str, because: str) -> None:
        """Stop what the driver does for a todo."""
        self.actions.append(Cancel(seq=self.number(), rule=rule, because=because, todo_id=record.id))

    def notify(
        self, rule: str, because: str, *, topic: str, to: Role, todo_id: str | None, **facts: Fact
    ) -> None:
        """Tell somebody something."""
        self.actions.append(
            Notify(
                seq=self.number(),
                rule=rule,
                because=because,
                facts=facts,
                topic=topic,
                to=to,
                todo_id=todo_id,
                message=f"{topic}: {because}",
            )
        )

    def ask(self, question: Question) -> None:
        """Ask a person, and remember what was asked."""
        number = self.number()
        question = question._replace(asked=number)
        self.questions[question.id] = question
        self.actions.append(asking(question, number))
        record = self.records.get(question.todo_id)
        if record is not None:
            self.put(record._replace(question=question.id))

    def withdraw(self, question_id: str) -> None:
        """Forget a question."""
        question = self.questions.pop(question_id, None)
        if question is None:
            return
        record = self.records.get(question.todo_id)
        if record is not None and record.question == question_id:
            self.put(record._replace(question=None))


def asking(question: Question, number: int) -> AskHuman:
    """The action that asks a question."""
    proposal = question.proposal
    return AskHuman(
        seq=number,
        rule=question.rule,
        because=question.because,
        question_id=question.id,
        kind=question.kind,
        todo_id=question.todo_id,
        question=question.text,
        options=question.options,
        digest=question.digest,
        branch=None if proposal is None else proposal.branch,
        edits=question.edits if proposal is None else proposal.edits,
        failure=question.failure,
    )


def rfc3339(seconds: float) -> str:
    """A time in epoch seconds as text, in UTC; the last that can be written where it lies beyond."""
    at = LATEST if seconds >= _LATEST_SECONDS else datetime.fromtimestamp(seconds, UTC)
    return at.isoformat().replace("+00:00", "Z")
