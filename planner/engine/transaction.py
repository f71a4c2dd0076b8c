"""Transaction: one event being applied to a copy of the state, and the actions that result.

Nothing is visible before :meth:`Transaction.state` is called, so an event that is refused half-way
leaves no trace. A :class:`Transaction` propagates the change of one todo to the todos around it
(dependents, branches, parents); the functions below it admit plans to the run and publish new versions
of them. The decisions themselves are made in :mod:`~planner.engine.events`,
:mod:`~planner.engine.repair` and :mod:`~planner.engine.scheduler`.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from hashlib import sha256
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ConfigDict, TypeAdapter

from planner.catalog.tables import load_table
from planner.engine.state import PendingStep, PlanPart, State, TodoRecord, is_claimed
from planner.errors import IllegalTransition, RefusedEvent
from planner.model.actions import AskHuman, Cancel, Halt, Notify, PublishPlan, QuestionKind
from planner.model.base import qualified
from planner.model.edits import AddBranch, AddTodoBefore, Edit
from planner.model.taxonomy import Category
from planner.model.verdicts import PlanState, TodoLife
from planner.policy.allowed_files import claimed_files
from planner.policy.dependencies import find_cycle
from planner.policy.lifecycle import check_move
from planner.policy.limits import exceeded, inherited
from planner.revise.plan_edits import apply_edits
from planner.text.glob_patterns import seen_from_above

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from planner.model.actions import Action
    from planner.model.plan import Plan, Policy, Todo
    from planner.model.taxonomy import Role

AnyAction = TypeVar("AnyAction", bound="Action")

RULES: Mapping[str, Mapping[str, str]] = load_table("rules", "planner.engine")
"""Explanations of the rules of actions and of refusals, and the remedies of refusals."""

LATEST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""Upper bound of times: the latest that RFC 3339 can express."""

BUDGET_QUESTION = "budget"
"""Id of the question about a spent budget. No turn of work is requested while it is open."""

OPTIONS: dict[QuestionKind, tuple[str, ...]] = {
    QuestionKind.APPROVE_BRANCH: ("approve", "reject", "modify", "approve_similar"),
    QuestionKind.APPROVE_EDITS: ("approve", "reject"),
    QuestionKind.APPROVE_START: ("approve", "reject"),
    QuestionKind.ANSWER: ("answered", "give_up", "stop"),
    QuestionKind.MEND_ENVIRONMENT: ("verify", "give_up", "stop"),
    QuestionKind.REVIEW: ("retry", "give_up", "stop"),
}
"""The valid answers to each kind of question, in the order in which they are offered."""


class Stop(Exception):
    """Signal that the whole run has to halt.

    Raised where the reason is found and caught where events are applied. ``todo_ids`` are the todos that
    caused it.
    """

    def __init__(
        self, rule: str, because: str, todo_ids: tuple[str, ...] = (), category: Category | None = None
    ) -> None:
        super().__init__(rule)
        self.halt = Halt(rule=rule, because=because, todo_ids=todo_ids, category=category)


def refusal(rule: str, problem: str) -> RefusedEvent:
    """Return (not raise) the refusal of an event by a rule, with the rule's remedy in ``rules.toml``."""
    return RefusedEvent(rule, problem, RULES["remedies"][rule])


@dataclass(slots=True, kw_only=True)
class Transaction(State):
    """A mutable copy of a :class:`~planner.engine.state.State`, with the operations that change several
    of its fields consistently.
    """

    trigger: str
    """The name of the event that is applied; refusals name it."""
    actions: list[Action] = field(default_factory=list["Action"])
    expired: set[str] = field(default_factory=set[str])
    """Todos whose turn of work or lifetime had expired when the event arrived."""
    ended_branches: list[str] = field(default_factory=list[str])
    """Branches that ended during this event. The scheduler processes them after the event's handler."""
    judged_anew: list[str] = field(default_factory=list[str])
    """Todos whose criteria changed: their verifications and branches are void."""

    @classmethod
    def begin(cls, state: State, trigger: str) -> Transaction:
        """Create a transaction on a copy of a state."""
        values: dict[str, Any] = {}
        for name in _FIELDS:
            value = getattr(state, name)
            # One level deep: the values of the lists and dicts are immutable.
            values[name] = value.copy() if type(value) in (dict, list) else value
        return cls(**values, trigger=trigger)

    def state(self) -> State:
        """Return the state after the event. It shares lists and dicts with the transaction, which must
        not be used afterwards.
        """
        return State(**{name: getattr(self, name) for name in _FIELDS})

    @property
    def top(self) -> Policy:
        """The policy of the top plan."""
        return self.parts[""].plan.metadata

    def policy_of(self, record: TodoRecord) -> Policy:
        """Return the policy of the plan that holds a todo."""
        return self.parts[record.within].plan.metadata

    def known(self, todo_id: str) -> TodoRecord:
        """Return the record of a qualified todo id.

        Raises :class:`planner.errors.RefusedEvent` if there is no such todo.
        """
        record = self.records.get(todo_id)
        if record is None:
            raise refusal("unknown-todo", f"there is no todo '{todo_id}' in the plan '{self.plan_id}'")
        return record

    def check_answer(self, record: TodoRecord, what: str, answers: int | None) -> None:
        """Raise :class:`planner.errors.RefusedEvent` for an answer to an action that is not the todo's
        outstanding one.

        ``answers`` is the ``seq`` of the action, or ``None`` if the driver did not name it, which is
        accepted. ``what`` describes the event in the message.
        """
        if answers not in (None, record.asked):
            current = f"action {record.asked}" if record.asked else "no action"
            problem = f"the {what} '{record.id}' answers action {answers}, but {current} is outstanding"
            raise refusal("late-answer", problem)

    def illegal(self, record: TodoRecord, after: TodoLife, remedy: str) -> IllegalTransition:
        """Return (not raise) the refusal of an event that requires an illegal transition of a todo."""
        return IllegalTransition(f"todo '{record.id}'", record.life, after, self.trigger, remedy=remedy)

    def update(self, record: TodoRecord, **changes: Any) -> TodoRecord:
        """Replace fields of a todo's record; return the new record."""
        changed = self.records[record.id]._replace(**changes)
        self.records[record.id] = changed
        return changed

    def move(self, record: TodoRecord, life: TodoLife, **changes: Any) -> TodoRecord:
        """Move a todo to another state of its life cycle, and replace ``changes`` in its record.

        Returns the new record. Raises :class:`planner.errors.IllegalTransition` if the life cycle has
        no such transition.
        """
        check_move(f"todo '{record.id}'", record.life, life, self.trigger)
        return self.update(record, life=life, **changes)

    def plan_to(self, *states: PlanState) -> None:
        """Move the plan through ``states`` in order; the current state is skipped.

        Raises :class:`planner.errors.IllegalTransition` if the life cycle has no such transition.
        """
        for state in states:
            if state is not self.plan_state:
                check_move("the plan", self.plan_state, state, self.trigger)
                self.plan_state = state

    def enqueue(
        self, record: TodoRecord, kind: str, rule: str, because: str, proposal: AskHuman | None = None
    ) -> TodoRecord:
        """Queue the next step of a todo and return its new record.

        The scheduler performs it as soon as a place and the todo's files are free. ``kind`` and
        ``proposal`` are those of :class:`~planner.engine.state.PendingStep`. The order is: branches,
        parents, priority (lower first), the bias of the memory, rank in the plan.
        """
        record = self.update(record, next_step=PendingStep(kind, rule, because, proposal))
        # Negative, as the smallest key comes first: among equals, the todo that more likely succeeds.
        bias = 0.0 if self.memory is None else -self.memory.order_bias(record.todo, self.now)
        # Memory may only reorder todos of equal priority.
        # A parent occupies no place, so it need not wait behind todos that do.
        order = -1 if kind == "branch" else 0 if record.is_parent else 1
        insort(self.queue, (order, record.todo.priority, bias, record.rank, record.id))
        return record

    def begin_lifetime(self, record: TodoRecord, since: float) -> None:
        """Start the lifetime of a branch at ``since`` (epoch seconds) unless it runs already."""
        # Not from its creation: a branch may wait long for an approval or a place.
        if record.is_branch and record.expires is None:
            lifetime = record.todo.max_lifetime_seconds or self.policy_of(record).branch_timeout_seconds
            self.update(record, expires=since + lifetime)
            self.timed.setdefault(record.id)

    def emit(self, action: AnyAction) -> AnyAction:
        """Append an action with the next number, and return it."""
        self.seq += 1
        action = action.model_copy(update={"seq": self.seq})
        self.actions.append(action)
        return action

    def cancel(self, record: TodoRecord, rule: str, because: str) -> None:
        """Ask the driver to abandon the turn of work or verification of a todo, if there is one."""
        if record.id in self.live:
            self.emit(Cancel(rule=rule, because=because, todo_id=record.id))

    def notify(self, rule: str, because: str, *, topic: str, to: Role, todo_id: str | None) -> None:
        """Emit a notification; it expects no answer."""
        self.emit(Notify(rule=rule, because=because, topic=topic, to=to, todo_id=todo_id))

    def ask(
        self, kind: QuestionKind, record: TodoRecord | None, text: str, rule: str, because: str, **more: Any
    ) -> None:
        """Ask a person a question and record it as open.

        ``more`` holds further fields of :class:`~planner.model.actions.AskHuman`; a ``question_id`` must
        be among them if ``record`` is ``None``. A question about a todo gets a numbered id by default.
        """
        values: dict[str, Any] = {"options": OPTIONS[kind], "todo_id": ""}
        if record is not None:
            values |= {"todo_id": record.id, "failure": record.failure}
            if "question_id" not in more:
                self.asked_questions += 1
                word = "edits" if more.get("edits") else kind.value
                more["question_id"] = f"{record.id}:{word}:{self.asked_questions}"
            self.update(record, question=more["question_id"])
        self.show(AskHuman(kind=kind, question=text, rule=rule, because=because, **values | more))

    def show(self, question: AskHuman) -> None:
        """Emit a question as open, for the first time or again after a restart."""
        self.questions[question.question_id] = self.emit(question)

    def withdraw(self, question_id: str | None) -> None:
        """Remove an open question, also from the record of its todo; unknown ids are ignored."""
        question = self.questions.pop(question_id or "", None)
        record = None if question is None else self.records.get(question.todo_id)
        if record is not None and record.question == question_id:
            self.update(record, question=None)

    def check_budget(self, todo_id: str | None = None, *, before_work: bool = False) -> bool:
        """Return whether the plan's budget allows the run to continue.

        If it is spent, raise :class:`Stop` or ask a person once, depending on the policy. ``todo_id`` is
        the todo that spent it, if known. ``before_work`` checks whether anything is left for one more
        turn of work. A plan without a budget, or whose overspending a person allowed, may continue.
        """
        if before_work and BUDGET_QUESTION in self.questions and not self.overspent:
            return False
        found = self.spent_budget(before_work=before_work)
        if found is None:
            return True
        lack = "allows no further turn of work" if before_work else "is used up"
        rule, because = "halt-on-budget", f"the plan's budget {lack} ({found})"
        if self.top.halt.budget == "halt":
            raise Stop(rule, because, () if todo_id is None else (todo_id,), Category.BUDGET_EXCEEDED)
        if BUDGET_QUESTION not in self.questions:
            values = {"question_id": BUDGET_QUESTION, "options": ("go_on", "stop")}
            self.ask(QuestionKind.REVIEW, None, "the budget is used up; continue?", rule, because, **values)
        return False

    def spent_budget(self, *, before_work: bool) -> str | None:
        """Return a phrase on the budget that is spent, as :meth:`check_budget` judges it, or ``None``."""
        budget = self.top.budget
        if self.overspent or not budget.model_fields_set:
            return None
        wall = 0.0 if self.started is None else self.now - self.started
        return exceeded(budget, self.spent, wall, or_used_up=before_work)

    # -- consequences of one todo's state for the others --

    def offer(self, todo_ids: Iterable[str]) -> None:
        """Queue the start of those todos that are pending and whose dependencies are all final."""
        for name in todo_ids:
            record = self.records[name]
            if record.life is not TodoLife.PENDING or record.next_step is not None or self.waits(record):
                continue
            # A branch read from the plan file is only useful once its todo is found failing again.
            if record.parent_id is None or self.records[record.parent_id].life is TodoLife.TEST_FAILED:
                because = (
                    "its dependencies are done" if record.todo.dependencies else "it depends on nothing"
                )
                self.enqueue(record, "start", "ready-todo", because)

    def rest(self, record: TodoRecord) -> None:
        """Release the place and the files of a todo."""
        self.live.pop(record.id, None)

    def done(self, record: TodoRecord, *, verified: bool) -> None:
        """Finish a todo as done, and advance its branches, its dependents and its parent.

        ``verified`` is true if a passing verification proved it.
        """
        cleared = dict.fromkeys(("next_step", "outcome", "context", "failure", "deadline"))
        record = self.move(record, TodoLife.DONE, verified=verified, same=0, waited=0, **cleared)
        self._end(record)
        for branch in self.unneeded_branches(record, f"{record.id}, which it repairs, is done"):
            self._drop(branch)
        # A finished branch does not end the streak: the todo that it repairs has yet to pass.
        if not record.is_branch:
            self.consecutive = 0
        for name in self.dependents.get(record.id, ()):
            # Only an edit makes a failing todo wait, for a step inserted before it. With the step done,
            # the todo is verified again, unless another repair is already queued or open.
            waiting = self.records[name]
            last = self.last_branch(waiting)
            is_repaired = waiting.next_step is not None or (last is not None and not last.life.is_final)
            if waiting.life is TodoLife.TEST_FAILED and not is_repaired and not self.waits(waiting):
                self.withdraw(waiting.question)
                because = "what it waited for is done"
                self.enqueue(waiting, "verify", "mended-is-verified-again", because)
        self.offer(self.dependents.get(record.id, ()))

    def red(self, record: TodoRecord, *lives: TodoLife, **changes: object) -> TodoRecord:
        """Move a todo through ``lives`` to ``test_failed`` and return its new record.

        Its place and files are released, and its pending dependents count as blocked from now on.
        ``changes`` are applied to the record last.
        """
        for life in (*lives, TodoLife.TEST_FAILED):
            record = self.move(record, life)
        self.rest(record)
        self.reds.setdefault(record.id)
        return self.update(record, **changes)

    def fail(self, record: TodoRecord, life: TodoLife = TodoLife.FAILED) -> None:
        """Finish a todo as failed (or ``skipped``), and with it its branches and its dependents.

        Pending dependents are skipped; failing ones fail, as the step that was to help them is missing.
        """
        # An explicit stack: a chain of dependents can be longer than Python's recursion limit.
        pending = [(record.id, life)]
        while pending:
            name, life = pending.pop()
            each = self.records[name]
            if each.life.is_final:  # it can be reached by several paths
                continue
            each = self.move(each, life, next_step=None, deadline=None)
            self._end(each)
            unneeded = self.unneeded_branches(each, f"{each.id}, which it repairs, was given up")
            pending.extend((branch.id, TodoLife.FAILED) for branch in unneeded)
            for name in self.dependents.get(each.id, ()):
                waiting = self.records[name]
                if waiting.life is TodoLife.PENDING:
                    pending.append((name, TodoLife.SKIPPED))
                elif waiting.life is TodoLife.TEST_FAILED:
                    pending.append((name, TodoLife.FAILED))

    def _drop(self, record: TodoRecord) -> None:
        """Finish a branch whose todo is done, or a step before it, with the steps that only prepared it.

        If it was begun, it has succeeded, as the todo passes; else it is skipped.
        """
        if record.life is TodoLife.PENDING:
            self.fail(record, TodoLife.SKIPPED)
        else:
            # The life cycle has no direct move from test_failed to done.
            is_red = record.life is TodoLife.TEST_FAILED
            self.done(self.move(record, TodoLife.TESTING) if is_red else record, verified=False)
        for step in self.dependencies(record):
            needed = any(not self.records[each].life.is_final for each in self.dependents.get(step.id, ()))
            if step.todo.is_temporary and not (step.is_branch or step.life.is_final or needed):
                self.cancel(step, "branch-without-use", f"{record.id}, which it prepares, has ended")
                self._drop(step)

    def unneeded_branches(self, record: TodoRecord, because: str) -> list[TodoRecord]:
        """Return the open branches of a todo, after cancelling the work in progress on them.

        The caller has to finish them.
        """
        found = [self.records[name] for name in record.branches if not self.records[name].life.is_final]
        for branch in found:
            self.cancel(branch, "branch-without-use", because)
        return found

    def _end(self, record: TodoRecord) -> None:
        """Release the place, files and open questions of a todo that has become final."""
        self.rest(record)
        self.reds.pop(record.id, None)
        self.timed.pop(record.id, None)
        # A list, as withdraw() removes members of the dict.
        for question in [each.question_id for each in self.questions.values() if each.todo_id == record.id]:
            self.withdraw(question)
        if record.is_branch:
            self.ended_branches.append(record.id)
        elif record.within:
            self.advance_parent(self.records[record.within])

    def advance_parent(self, parent: TodoRecord) -> None:
        """Queue the evaluation of a parent if all todos of its sub-plan are final."""
        if all(self.records[name].life.is_final for name in parent.children):
            self.enqueue(parent, "children", "children-first", "all todos of its sub-plan have ended")


_FIELDS = tuple(each.name for each in fields(State))


# -- the plans of a run --------------------------------------------------------------------------------

_EDITS: TypeAdapter[tuple[Edit, ...]] = TypeAdapter(tuple[Edit, ...], config=ConfigDict(defer_build=True))

_criteria_fields = attrgetter(
    *("acceptance_criteria", "verify", "test_command", "test_file", "contract_path"),
    *("must_turn_green", "must_stay_green"),
)
"""Return the fields of a todo that decide whether it passes; a change of one voids earlier verdicts."""


def problems_of(plan: Plan) -> Iterator[str]:
    """Yield the defects of a plan that prevent its todos from ever being all done.

    These are duplicate ids, references to unknown todos, and cycles of dependencies.
    """
    known = Counter(todo.id for todo in plan.items)
    if twice := sorted(name for name, count in known.items() if count > 1):
        yield f"several todos have the id {', '.join(twice)}; give each a unique id"
    for todo in plan.items:
        unknown = [name for name in todo.dependencies if name not in known]
        if unknown:
            yield f"'{todo.id}' depends on '{unknown[0]}', which is not a todo of the plan; name another"
        if todo.parent_id is not None and todo.parent_id not in known:
            yield f"'{todo.id}' is a branch of '{todo.parent_id}', which is not a todo of the plan"
    # A circle through a branch is left to repair(): a branch of the plan file may never be worked on.
    circle = find_cycle(todo for todo in plan.items if todo.parent_id is None)
    if circle:
        yield f"the todos depend on each other in a circle: {' -> '.join(circle)}; remove one dependency"


def files_of(tx: Transaction, todo: Todo, within: str) -> tuple[str, ...]:
    """Return the globs that a todo may write, relative to the root of the top plan."""
    base = tx.parts[within].base
    found = claimed_files(todo)
    return found if base == "." else tuple(seen_from_above(each, base) for each in found)


def admit(tx: Transaction, plan: Plan, digest: str, within: str, base: str = ".") -> tuple[str, ...]:
    """Add the todos of a plan to the run; return their ids in order, without branches.

    ``within`` is the qualified id of the parent of a sub-plan, empty for the top plan; ``base`` is the
    plan's root relative to that of the top plan. A todo for which the plan file already contains a
    branch is verified before anybody works on either.
    """
    if within:
        above = tx.parts[tx.records[within].within].plan.metadata
        plan = plan.model_copy(update={"metadata": inherited(plan.metadata, above)})
    tx.parts[within] = PlanPart(plan, 1, digest, base)
    place = tx.records[within].rank if within else ()
    primary = [(index, todo) for index, todo in enumerate(plan.items) if todo.parent_id is None]
    names = tuple(_add(tx, todo, within, (*place, index)).id for index, todo in primary)
    # Branches come second: each one is linked to the record of the todo that it repairs.
    branches = [todo for todo in plan.items if todo.parent_id is not None]
    for todo in branches:
        _add(tx, todo, within)
        tx.open_branches += 1
    for todo in (*(todo for _, todo in primary), *branches):
        record = tx.records[qualified(within, todo.id)]
        for before in dict.fromkeys(each.id for each in tx.dependencies(record)):
            tx.dependents[before] = (*tx.dependents.get(before, ()), record.id)
    return names


def _add(tx: Transaction, todo: Todo, within: str, rank: tuple[int, ...] = ()) -> TodoRecord:
    """Create the record of one todo; a branch is ranked directly after the todo that it repairs."""
    record = TodoRecord(
        id=qualified(within, todo.id),
        todo=todo,
        within=within,
        rank=rank,
        files=files_of(tx, todo, within),
        is_parent=todo.has_sub_plan,
    )
    if todo.parent_id is not None:
        primary = tx.records[qualified(within, todo.parent_id)]
        # The counts of identical and of flaky failures continue, as the branch works on the same failure.
        record = record._replace(
            rank=(*primary.rank, len(primary.branches) + 1),
            parent_id=primary.id,
            depth=todo.branch_depth or 1,
            granted=todo.allowed_files,
            failure=primary.failure,
            signature=primary.signature,
            diff_hash=primary.diff_hash,
            same=primary.same,
            flaky=primary.flaky,
        )
        tx.update(primary, branches=(*primary.branches, record.id))
    tx.records[record.id] = record
    return record


def is_said_to_be_done(tx: Transaction, record: TodoRecord) -> bool:
    """Return whether a todo has to be verified before any work on it.

    That holds for a primary todo that is claimed, or has a branch in the plan file, as long as the run
    has neither requested work on it nor found it failing.
    """
    if record.turns or record.is_branch or record.outcome is not None:
        return False
    # What neither was worked on nor failed has only branches of the plan file.
    return bool(record.branches) or is_claimed(tx, record)


def digest_of_edits(previous: str, edits: Sequence[Edit]) -> str:
    """Return the digest of a new plan version.

    It is the SHA-256 of the previous digest, a newline, and the edits as JSON.
    """
    # The previous digest keeps versions apart that result from equal edits of different plans.
    text = _EDITS.dump_json(tuple(edits), exclude_none=True)
    return "sha256:" + sha256(previous.encode() + b"\n" + text).hexdigest()


def edited(tx: Transaction, within: str, edits: Iterable[Edit]) -> dict[str, Todo]:
    """Return the new and changed todos by id that ``edits`` would produce from the current plan.

    Nothing is published. Raises :class:`planner.errors.EditConflictError` if an edit does not fit.
    """

    def find(name: str) -> Todo | None:
        record = tx.records.get(qualified(within, name))
        return None if record is None else record.todo

    return apply_edits(find, edits)


def publish(tx: Transaction, within: str, edits: Sequence[Edit], rule: str, because: str) -> None:
    """Apply edits as the next version of a plan and emit ``publish_plan``.

    Raises :class:`planner.errors.EditConflictError` before anything is changed.
    """
    # edited() raises on a conflict, so it comes before every change of the transaction.
    part, todos = tx.parts[within], edited(tx, within, edits)
    version, digest = part.version + 1, digest_of_edits(part.digest, edits)
    tx.parts[within] = part._replace(version=version, digest=digest)
    if tx.plan_state is PlanState.EXECUTING:
        tx.plan_to(PlanState.REVISING)
    new: dict[str, Any] = {"version": version, "digest": digest, "previous": part.digest}
    tx.emit(PublishPlan(rule=rule, because=because, within=within, edits=tuple(edits), **new))
    # Before the new todos have records, as these need no update.
    known = [tx.records[name] for each in todos if (name := qualified(within, each)) in tx.records]
    made: list[TodoRecord] = []
    for index, edit in enumerate(edits):
        if isinstance(edit, AddBranch):
            branch = _add(tx, todos[edit.todo.id], within)
            # As the edit adds it: an edit after it may narrow the files, for the cause of one failure.
            made.append(tx.update(branch, granted=edit.todo.allowed_files, opened=tx.now))
        elif isinstance(edit, AddTodoBefore):
            *place, last = tx.records[qualified(within, edit.todo_id)].rank
            # Ranked before the todo that needs it, after its predecessor and after steps added earlier.
            made.append(_add(tx, todos[edit.todo.id], within, (*place, last - 1, version, index)))
            if within:
                parent = tx.records[within]
                tx.update(parent, children=(*parent.children, made[-1].id))
    for record in sorted(known, key=lambda each: each.rank):
        _replace(tx, tx.records[record.id], todos[record.todo.id])
    # Last, as new todos may depend on each other.
    for record in sorted(made, key=lambda each: each.rank):
        _add_dependencies(tx, record, record.todo.dependencies)
    tx.offer(record.id for record in made)


def _replace(tx: Transaction, record: TodoRecord, todo: Todo) -> None:
    """Replace an edited todo in its record, and update its files, verdicts and dependencies."""
    old, files = record.todo, files_of(tx, todo, record.within)
    # Files granted for the current turn of work stay claimed until it ends.
    if record.id in tx.live:
        files = tuple(dict.fromkeys((*record.files, *files)))
    record = tx.update(record, todo=todo, files=files)
    if _criteria_fields(old) != _criteria_fields(todo):
        # Processed by the scheduler, once all edits of this version are applied.
        tx.judged_anew.append(record.id)
    # Edits only ever add dependencies.
    _add_dependencies(tx, record, [each for each in todo.dependencies if each not in old.dependencies])


def _add_dependencies(tx: Transaction, record: TodoRecord, dependencies: Iterable[str]) -> None:
    """Register new dependencies of a todo."""
    for each in dict.fromkeys(dependencies):
        before = qualified(record.within, each)
        tx.dependents[before] = (*tx.dependents.get(before, ()), record.id)


def moment(seconds: float) -> datetime:
    """Convert epoch seconds to a UTC datetime, at most :data:`LATEST`."""
    # fromtimestamp() raises for later years, which the sum of a time and a long limit can reach.
    return LATEST if seconds >= LATEST.timestamp() else datetime.fromtimestamp(seconds, UTC)


def rfc3339(seconds: float) -> str:
    """Format epoch seconds as an RFC 3339 time in UTC, ending in ``Z``."""
    return moment(seconds).isoformat().replace("+00:00", "Z")
