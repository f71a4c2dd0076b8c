"""One event being taken in: the state as it changes, and the actions that come of it.

Nothing is seen of it before :meth:`Transaction.state`: an event that is refused half-way leaves no trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from heapq import heappush
from typing import TYPE_CHECKING, Any

from planner.engine.state import PendingStep, State
from planner.errors import IllegalTransition, RefusedEvent
from planner.model.actions import AskHuman, Cancel, Notify, QuestionKind
from planner.model.taxonomy import Category
from planner.model.verdicts import TodoLife
from planner.policy.lifecycle import check_move
from planner.policy.limits import exceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from planner.engine.state import TodoRecord
    from planner.model.actions import Action, Fact
    from planner.model.plan import Policy
    from planner.model.taxonomy import Role
    from planner.model.verdicts import PlanState

LATEST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""The last time that can be written."""

BUDGET_QUESTION = "budget"
"""While this is asked, nobody is asked to work."""

OPTIONS: dict[QuestionKind, tuple[str, ...]] = {
    QuestionKind.APPROVE_BRANCH: ("approve", "reject", "modify", "approve_similar"),
    QuestionKind.APPROVE_EDITS: ("approve", "reject"),
    QuestionKind.APPROVE_START: ("approve", "reject", "modify"),
    QuestionKind.ANSWER: ("answered", "give_up", "stop"),
    QuestionKind.MEND_ENVIRONMENT: ("verify", "give_up", "stop"),
    QuestionKind.REVIEW: ("retry", "give_up", "stop"),
}
"""What a person may answer."""


class Stop(Exception):
    """Everything has to stop: raised where it is seen, caught where the event is taken in."""

    def __init__(
        self,
        rule: str,
        because: str,
        todo_ids: tuple[str, ...] = (),
        category: Category | None = None,
        /,
        **facts: Fact,
    ) -> None:
        super().__init__(rule)
        self.rule = rule
        self.because = because
        self.todo_ids = todo_ids
        self.category = category
        self.facts = facts


@dataclass(slots=True, kw_only=True)
class Transaction(State):
    """A copy of a state, to be changed, and what changes several of its fields together."""

    trigger: str
    """The name of the event."""
    quiet: bool = False
    """Leave out the actions, whose making is most of the cost: a fold has no use for them."""
    actions: list[Action] = field(default_factory=list["Action"])
    expired: set[str] = field(default_factory=set[str])
    """The todos whose turn of work was over before the event."""
    ended_branches: list[str] = field(default_factory=list[str])
    """The branches that have come to their end; what follows for their todos is decided last."""
    judged_anew: list[str] = field(default_factory=list[str])
    """The todos whose criteria have changed."""
    changed: list[str] = field(default_factory=list[str])
    """The todos that a revision has changed: what was proposed about them is proposed anew."""

    @classmethod
    def begin(cls, state: State, trigger: str, *, quiet: bool = False) -> Transaction:
        """Return a transaction on a copy of a state."""
        values: dict[str, Any] = {}
        for name in _FIELDS:
            value = getattr(state, name)
            values[name] = value.copy() if type(value) in (dict, list) else value
        return cls(**values, trigger=trigger, quiet=quiet)

    def state(self) -> State:
        """Return the state after the event."""
        return State(**{name: getattr(self, name) for name in _FIELDS})

    @property
    def top(self) -> Policy:
        """The policy of the plan at the top."""
        return self.parts[""].plan.metadata

    def policy_of(self, record: TodoRecord) -> Policy:
        """Return the policy of the plan that holds a todo."""
        return self.parts[record.within].plan.metadata

    def known(self, todo_id: str) -> TodoRecord:
        """Return the todo of that id. Raises :class:`planner.errors.RefusedEvent`."""
        record = self.records.get(todo_id)
        if record is None:
            raise RefusedEvent(
                "unknown-todo",
                f"there is no todo '{todo_id}' in the plan '{self.plan_id}'",
                "name one of the state line; those of a sub-plan are qualified by their parent, as in a/b",
            )
        return record

    def check_answer(self, record: TodoRecord, what: str, answers: int | None) -> None:
        """Raise :class:`planner.errors.RefusedEvent` for the answer to an action that counts no more."""
        if answers not in (None, record.asked):
            said = (
                f"the {what} '{record.id}' answers action {answers}, and {record.asked} is the one that is "
            )
            raise RefusedEvent("late-answer", f"{said}outstanding", "tell what came of the later one")

    def illegal(self, record: TodoRecord, after: TodoLife, remedy: str) -> IllegalTransition:
        """Return the refusal of an event that would bring a todo where its life cycle does not lead."""
        return IllegalTransition(f"todo '{record.id}'", record.life, after, self.trigger, remedy=remedy)

    def update(self, record: TodoRecord, **changes: Any) -> TodoRecord:
        """Change what is kept of a todo now; return it."""
        changed = self.records[record.id]._replace(**changes)
        self.records[record.id] = changed
        return changed

    def move(self, record: TodoRecord, life: TodoLife, **changes: Any) -> TodoRecord:
        """Bring a todo into another state. Raises :class:`planner.errors.IllegalTransition`."""
        check_move(f"todo '{record.id}'", record.life, life, self.trigger)
        return self.update(record, life=life, **changes)

    def plan_to(self, *states: PlanState) -> None:
        """Bring the plan into states, one after the other; one that it is in is passed over."""
        for state in states:
            if state is not self.plan_state:
                check_move("the plan", self.plan_state, state, self.trigger)
                self.plan_state = state

    def enqueue(
        self, record: TodoRecord, kind: str, rule: str, because: str, proposal: AskHuman | None = None
    ) -> TodoRecord:
        """Let a todo do something as soon as its turn comes."""
        record = self.update(record, next_step=PendingStep(kind, rule, because, proposal))
        self.stand_in_line(record)
        return record

    def stand_in_line(self, record: TodoRecord) -> None:
        """Put a todo that has a step among those that are ready."""
        bias = 0.0
        if self.memory is not None:
            bias = -round(self.memory.order_bias(record.todo, self.now), 6)
        is_branch = record.next_step is not None and record.next_step.kind == "branch"
        # Branches are made before anything begins; a parent takes no place, and so it waits for none.
        first = 0 if is_branch else 1 if record.is_parent else 2
        heappush(self.ready, (first, record.todo.priority, bias, record.rank, record.id))

    def remind(self, time: float | None, record: TodoRecord) -> None:
        """Look at a todo again when that time has come."""
        if time is not None:
            heappush(self.timers, (time, record.id))

    def begin_lifetime(self, record: TodoRecord, since: float) -> None:
        """Count the lifetime of a branch from when somebody began to work on it."""
        if record.is_branch and record.expires is None:
            lifetime = record.todo.max_lifetime_seconds or self.policy_of(record).branch_timeout_seconds
            self.update(record, expires=since + lifetime)
            if self.policy.driven:  # else nobody says that it is worked on still: its attempts show it
                self.remind(since + lifetime, record)

    def emit(self, kind: Callable[..., Action], rule: str, because: str, /, **more: Any) -> Action | None:
        """Ask the driver for something; return the action where it is not left out."""
        self.seq += 1
        if self.quiet:
            return None
        action = kind(seq=self.seq, rule=rule, because=because, **more)
        self.actions.append(action)
        return action

    def cancel(self, record: TodoRecord, rule: str, because: str) -> None:
        """Stop what the driver does for a todo."""
        self.emit(Cancel, rule, because, todo_id=record.id)

    def notify(
        self, rule: str, because: str, *, topic: str, to: Role, todo_id: str | None, **facts: Fact
    ) -> None:
        """Tell somebody something."""
        message = f"{topic}: {because}"
        self.emit(Notify, rule, because, facts=facts, topic=topic, to=to, todo_id=todo_id, message=message)

    def ask(
        self, kind: QuestionKind, record: TodoRecord | None, text: str, rule: str, because: str, **more: Any
    ) -> None:
        """Ask a person; a question without an id gets a number of its own. ``more`` is of the action."""
        held: dict[str, Any] = {"options": OPTIONS[kind], "todo_id": ""}
        if record is not None:
            held |= {"todo_id": record.id, "failure": record.failure}
            if "question_id" not in more:
                self.asked_questions += 1
                word = "edits" if more.get("edits") else kind.value
                more["question_id"] = f"{record.id}:{word}:{self.asked_questions}"
            self.update(record, question=more["question_id"])
        self.show(AskHuman(kind=kind, question=text, rule=rule, because=because, **held | more))

    def show(self, question: AskHuman) -> None:
        """Put a question to a person, for the first time or again."""
        self.seq += 1
        question = question.model_copy(update={"seq": self.seq})
        self.questions[question.question_id] = question
        if not self.quiet:
            self.actions.append(question)

    def withdraw(self, question_id: str | None) -> None:
        """Forget a question."""
        question = self.questions.pop(question_id or "", None)
        record = None if question is None else self.records.get(question.todo_id)
        if record is not None and record.question == question_id:
            self.update(record, question=None)

    def check_budget(self, todo_id: str | None = None, *, before_work: bool = False) -> bool:
        """Return whether the budget lets it go on; where it does not, ask a person or raise :class:`Stop`.

        ``todo_id`` is the todo that has spent it, where one is known. ``before_work`` asks whether anything
        is left for another turn of work.
        """
        budget = self.top.budget
        if self.overspent or not budget.model_fields_set:
            return True
        if before_work and BUDGET_QUESTION in self.questions:
            return False
        wall = 0.0 if self.started is None else self.now - self.started
        found = exceeded(budget, self.spent, wall, or_used_up=before_work)
        if found is None:
            return True
        lack = "leaves no further turn of work" if before_work else "is used up"
        rule, because = "halt-on-budget", f"the plan's budget {lack} ({found})"
        if self.top.halt.budget == "halt":
            raise Stop(rule, because, () if todo_id is None else (todo_id,), Category.BUDGET_EXCEEDED)
        if BUDGET_QUESTION not in self.questions:
            held = {"question_id": BUDGET_QUESTION, "options": ("go_on", "stop")}
            self.ask(
                QuestionKind.REVIEW, None, "the budget is used up; does it go on?", rule, because, **held
            )
        return False

    # -- what the state of one todo means for the others --

    def offer(self, todo_ids: Iterable[str]) -> None:
        """Let todos begin that wait for nothing."""
        for name in todo_ids:
            record = self.records[name]
            if record.life is not TodoLife.PENDING or record.next_step is not None or self.waits(record):
                continue
            # A branch of an earlier planning is of use only when its todo is found red again.
            if record.parent_id is None or self.records[record.parent_id].life is TodoLife.TEST_FAILED:
                because = (
                    "what it depends on is done" if record.todo.dependencies else "it depends on nothing"
                )
                self.enqueue(record, "start", "ready-todo", because)

    def rest(self, record: TodoRecord) -> None:
        """Free the place and the files of a todo: the driver is no longer at it."""
        if record.id in self.live:
            del self.live[record.id]
            for name in self.held.pop(record.id, ()):
                self.stand_in_line(self.records[name])

    def done(self, record: TodoRecord, *, verified: bool) -> None:
        """Bring what waits for a done todo nearer to its turn."""
        record = self.move(
            record,
            TodoLife.DONE,
            verified=verified,
            next_step=None,
            outcome=None,
            context=None,
            failure=None,
            deadline=None,
            same=0,
            waited=0,
        )
        self._end(record)
        for branch in self.unneeded_branches(record, f"{record.id}, which it repairs, is done"):
            if branch.life is TodoLife.ACTIVE:  # worked on, and what it is to repair holds: it has passed
                self.done(branch, verified=False)
            else:
                self.fail(branch)
        if not record.is_branch:
            self.consecutive = 0
        for name in self.dependents.get(record.id, ()):
            waiting = self.records[name]
            last = self.last_branch(waiting)
            is_repaired = waiting.next_step is not None or (last is not None and not last.life.is_final)
            if waiting.life is TodoLife.TEST_FAILED and not is_repaired and not self.waits(waiting):
                self.withdraw(waiting.question)
                because = "what it was made to wait for is done"
                self.enqueue(waiting, "verify", "mended-is-verified-again", because)
        self.offer(self.dependents.get(record.id, ()))
        self._tell_parent(record)

    def red(self, record: TodoRecord, *lives: TodoLife, **changes: object) -> TodoRecord:
        """Block what waits for a todo that has failed and can still be repaired."""
        for life in (*lives, TodoLife.TEST_FAILED):
            record = self.move(record, life)
        self.rest(record)
        self.reds.setdefault(record.id)
        return self.update(record, **changes)

    def fail(self, record: TodoRecord, life: TodoLife = TodoLife.FAILED) -> None:
        """Give a todo up for good, or leave it out (``skipped``), and with it all that waits for it."""
        pending = [(record.id, life)]
        while pending:
            name, life = pending.pop()
            each = self.records[name]
            if each.life.is_final:
                continue
            each = self.move(each, life, next_step=None, deadline=None)
            self._end(each)
            useless = self.unneeded_branches(each, f"{each.id}, which it repairs, is given up")
            pending.extend((branch.id, TodoLife.FAILED) for branch in useless)
            for name in self.dependents.get(each.id, ()):
                waiting = self.records[name]
                if waiting.life is TodoLife.PENDING:
                    pending.append((name, TodoLife.SKIPPED))
                elif waiting.life is TodoLife.TEST_FAILED:
                    pending.append((name, TodoLife.FAILED))
            self._tell_parent(each)

    def unneeded_branches(self, record: TodoRecord, because: str) -> list[TodoRecord]:
        """Return the branches that a todo no longer needs; what the driver does for them is cancelled."""
        found = [self.records[name] for name in record.branches if not self.records[name].life.is_final]
        for branch in found:
            if branch.id in self.live:
                self.cancel(branch, "branch-without-use", because)
        return found

    def _end(self, record: TodoRecord) -> None:
        self.rest(record)
        self.reds.pop(record.id, None)
        for question in [each.question_id for each in self.questions.values() if each.todo_id == record.id]:
            self.withdraw(question)
        if record.is_branch:
            self.ended_branches.append(record.id)

    def _tell_parent(self, record: TodoRecord) -> None:
        """Let a parent go on when the last todo of its sub-plan has come to its end."""
        if not record.within or record.is_branch:
            return
        parent = self.records[record.within]
        if all(self.records[name].life.is_final for name in parent.children):
            self.end_children(parent)

    def end_children(self, parent: TodoRecord) -> None:
        """Let a parent go on: all its todos have ended."""
        self.enqueue(
            parent, "children", "children-first", "all todos of its sub-plan have come to their end"
        )


_FIELDS = tuple(each.name for each in fields(State))


def rfc3339(seconds: float) -> str:
    """Return a time in epoch seconds as text, in UTC; the last that can be written where it lies beyond."""
    at = LATEST if seconds >= LATEST.timestamp() else datetime.fromtimestamp(seconds, UTC)
    return at.isoformat().replace("+00:00", "Z")
