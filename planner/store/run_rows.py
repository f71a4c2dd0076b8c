"""Tables of the index, and the rows derived from run logs, outcomes and corrections.

Tables are portable between databases. Every row belongs to one source file (column ``source``) and can be
derived again. Times are RFC 3339 in UTC with microseconds, so that text order is time order. The rows of a
log are derived while it is folded: :class:`RunRows` compares the states before and after each event.
:mod:`.index` stores the rows, :mod:`.questions` queries them.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

from planner.engine.intake import time_of
from planner.engine.state import current_plan
from planner.memory import task_kind, text_of
from planner.model.actions import Implement, PublishPlan
from planner.model.base import qualified
from planner.model.edits import AddBranch
from planner.model.events import (
    ApprovalGiven,
    Decision,
    PlanSubmitted,
    QuestionAnswered,
    Verified,
    WorkFinished,
)
from planner.model.taxonomy import Category, Family
from planner.model.verdicts import PlanState, TodoLife, TodoState
from planner.planfile.record_files import read_outcomes
from planner.policy.outcomes import failures_of
from planner.store.corrections import corrections_of
from planner.store.run_log import INTERRUPTED, run_of_log

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sqlalchemy.types import TypeEngine

    from planner.engine import TodoRecord
    from planner.model.actions import AskHuman
    from planner.model.events import Event
    from planner.model.outcome import Failure, Outcome
    from planner.model.plan import Plan
    from planner.model.taxonomy import Role
    from planner.store.run_log import RecordedRun, Step

VERSION = 10
"""Version of the tables; a project's index with another version is rebuilt, other databases are refused."""

PASSED = "passed"
"""Value of ``outcome`` for a branch whose own criteria passed."""

METADATA = MetaData()

_TYPES: Mapping[str, TypeEngine[Any]] = {
    "word": String(100),
    "text": Text(),
    "count": BigInteger(),
    "float": Float(),
    "bool": Boolean(),
    "json": JSON(none_as_null=True),
}


def moment(at: datetime | float) -> str:
    """Return a time, a datetime or seconds since the epoch, as text that is stored in tables."""
    known = at.astimezone(UTC) if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    return known.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _table(name: str, columns: str) -> Table:
    """Return a table with an id, a source and ``columns``: ``name:type``, with ``?`` if nullable."""
    made: list[Column[Any]] = [Column("id", Integer, primary_key=True)]
    for column in ("source:word", *columns.split()):
        label, _, kind = column.partition(":")
        made.append(Column(label, _TYPES[kind.rstrip("?")], nullable=kind.endswith("?")))
    return Table(f"planverify_{name}", METADATA, *made)


INDEX = Table("planverify_index", METADATA, Column("version", Integer, primary_key=True))
"""One row: the version of the tables."""

SOURCES = _table("sources", "origin:text name:text stamp:word")
"""The files that the rows were derived from, with their stamps at that moment."""

RUNS = _table(
    "runs",
    """
    run_id:text plan_id:text path:text digest:word fingerprint:text goal:text log:text opened:word
    changed:word closed:word? state:word events:count blocked:json blocked_since:word? document:text
    """,
)
"""Runs of the engine. ``document`` is the plan as JSON, without branches.

``blocked_since`` is set while the run waits for an answer or has blocked todos."""

VERIFICATIONS = _table(
    "verifications",
    """
    run_id:text plan_id:text path:text digest:word started:word finished:word scope:word
    exit_status:count done:count todos:count
    """,
)
"""Runs of ``pytest --planverify``."""

REPAIRS = _table(
    "repairs",
    """
    branch_id:text? parent_id:text depth:count via:text? role:word category:word signature:text?
    opened:word closed:word? attempts:count outcome:word? resolution:word? duration_seconds:float?
    at:word fingerprint:text task_kind:word text:text strategy:text fixed:bool?
    """,
)
"""Repairs of a failed todo ``parent_id``: by a branch, or by a retry (no ``branch_id``).

``fixed`` is whether the failure vanished; null until that is known, and for branches that repair an
undiagnosed failure, of which memory learns nothing. ``outcome`` is how a branch ended, ``resolution`` what
its end or the verification of its parent decided."""

FAILURES = _table(
    "failures",
    """
    run_id:text plan_id:text fingerprint:text? n:count at:word todo_id:text category:word
    signature:text? role:word? head:text?
    """,
)
"""All failures of all verifications; ``n`` distinguishes the verifications in one log."""

QUESTIONS = _table(
    "questions",
    """
    question_id:text kind:word todo_id:text question:text rule:text digest:text asked:word
    decision:text? decided:word? decided_by:text? because:text?
    """,
)
"""Questions and approval requests to people, with their decisions."""

TODOS = _table(
    "todos",
    """
    todo_id:text at:word fingerprint:text task_kind:word text:text role:word done:bool first_time:bool
    categories:json
    """,
)
"""Memory: results of todos that were worked on until they were done or given up."""

CORRECTIONS = _table(
    "corrections",
    """
    at:word fingerprint:text signature:text category:word role:word right_category:word?
    right_owner:word? by:text? because:text?
    """,
)
"""Memory: people's corrections of diagnoses."""

OF_SOURCES = (RUNS, VERIFICATIONS, REPAIRS, FAILURES, QUESTIONS, TODOS, CORRECTIONS)
"""Tables with rows derived from files."""

# Indexes for pages of the newest rows, as there may be ten thousand.
for _columns in (
    (RUNS.c.opened, RUNS.c.run_id, RUNS.c.source),
    (RUNS.c.blocked_since,),
    (VERIFICATIONS.c.started, VERIFICATIONS.c.run_id, VERIFICATIONS.c.source),
    (REPAIRS.c.source,),
):
    Index(f"{_columns[0].table.name}_by_{_columns[0].name}", *_columns)


# -- rows ----------------------------------------------------------------------------------------------

Row: TypeAlias = "dict[str, Any]"
Rows: TypeAlias = "dict[Table, list[Row]]"

RETRY = "retry"
"""Strategy name of a repair without a branch: another turn of work on the todo."""

_UNKNOWN = datetime.fromtimestamp(0, UTC)
"""Time of verifications that name none."""
WITHDRAWN = "withdrawn"
"""Decision on a question that the engine dropped unanswered."""
SIMILAR = "approved_as_similar"
"""Decision on a question that the answer to a similar one decided, too."""


def rows_of_log(path: Path, remarks: list[str]) -> Rows:
    """Return the rows of a run; append its remarks for people to ``remarks``.

    Raises :class:`planner.errors.LogError` if the log cannot be folded.
    """
    run = run_of_log(path)
    rows: RunRows | None = None
    for step in run.steps:
        if rows is None:
            assert isinstance(step.event, PlanSubmitted)  # the log refuses any other first line
            rows = RunRows(step.event, os.path.realpath(path))
        rows.add(step)
    assert rows is not None  # a log without a line cannot be folded
    remarks += run.remarks
    return rows.finish(run)


class RunRows:
    """Collector of the rows of one run, fed step by step.

    ``log`` is the path that the row of the run names.

    A repair is opened by a branch or by a turn of work after a failure. It is closed by the next
    verification of its todo that can decide it: fixed if the todo is done or its deciding failure has
    another signature.
    """

    _step: Step
    _at: str

    def __init__(self, event: PlanSubmitted, log: str) -> None:
        plan = self._plan = event.plan
        goal = plan.extensions.get("x-goal")
        has_goal = isinstance(goal, str) and goal.strip()
        self._run: Row = {
            "run_id": event.run_id or f"{plan.todo_list_id}-{event.digest[7:19]}",
            "plan_id": plan.todo_list_id,
            "path": event.path,
            "digest": event.digest,
            "fingerprint": event.policy.fingerprint or event.memory.fingerprint,
            "goal": goal if has_goal else plan.workflow_name or plan.todo_list_id,
            "log": log,
            "opened": moment(event.at),
            "blocked_since": None,
        }
        self._rows: Rows = {table: [] for table in (REPAIRS, FAILURES, QUESTIONS, TODOS)}
        self._turns: dict[str, int] = {}
        """Number of the latest turn of work, by todo."""
        self._failure: dict[str, Failure] = {}
        """Deciding failure of the last verification, by todo."""
        self._categories: dict[str, list[str]] = {}
        """Categories of all deciding failures, by todo."""
        self._verified: set[str] = set()
        """Todos that a verification found done."""
        self._branches: dict[str, Row] = {}
        """Rows of all branches, by their id."""
        self._retries: dict[str, Row] = {}
        """Row of the retry that is not verified yet, by todo."""
        self._questions: dict[str, Row] = {}
        """Rows of open questions, by their id."""

    def add(self, step: Step) -> None:
        """Process the next step of the run."""
        event, actions, before, after = self._step = step
        self._at = moment(after.now)
        # A verification first: it decides which failure the branches and turns below repair.
        if isinstance(event, Verified):
            self._add_verification(event.outcome)
        self._update_questions(event, after.questions)
        for action in actions:
            if isinstance(action, PublishPlan):
                self._open_branches(action)
            elif isinstance(action, Implement):
                self._begin_turn(action)
        # An event may end several todos: compared by state, none is missed.
        for name, record in after.records.items():
            was = None if before is None else before.records.get(name)
            if record.life.is_final and (was is None or not was.life.is_final):
                self._add_end(record, event)
        is_blocked = not after.plan_state.is_final and (after.questions or after.blocked())
        self._run["blocked_since"] = (self._run["blocked_since"] or self._at) if is_blocked else None

    @property
    def repairs(self) -> list[Row]:
        """The rows of the repairs so far; columns that are not known yet are missing."""
        return self._rows[REPAIRS]

    def finish(self, run: RecordedRun) -> Rows:
        """Return the rows after the last step of the run."""
        after, state = self._step.after, run.state_name(self._step.after)
        is_over = after.plan_state.is_final or state == INTERRUPTED
        plan = current_plan(after) if after.plan_state is PlanState.COMPLETED else self._plan
        self._run |= {
            "state": state,
            "changed": self._at,
            "events": after.events,
            "blocked": [] if state == INTERRUPTED else sorted(after.blocked()),
            "closed": self._at if is_over else None,
            "blocked_since": None if is_over else self._run["blocked_since"],
            "document": _without_branches(plan).model_dump_json(exclude_unset=True),
        }
        return {**self._rows, RUNS: [self._run]}

    def _add_verification(self, outcome: Outcome) -> None:
        """Process a verification: add its failures, and close the repairs that it decides."""
        name, run, after = outcome.todo_id, self._run, self._step.after
        facts = {key: run[key] for key in ("run_id", "plan_id", "fingerprint")}
        self._rows[FAILURES] += _failure_rows(outcome, {**facts, "n": after.events, "at": self._at})
        record = after.records.get(name)
        # A branch passes by the criteria of its todo, whose own verification then decides about it.
        if record is None or record.is_branch:
            return
        is_done = record.life is TodoLife.DONE
        now = next(failures_of(outcome), None)
        if not is_done and (now is None or now.category.facts.family is Family.ENVIRONMENT):
            return  # no result, or a failure of the environment: neither shows whether a repair worked
        before = self._failure.pop(name, None)
        is_fixed = is_done or before is None or (now is not None and now.signature != before.signature)
        resolution = "parent_done" if is_done else "failure_gone" if is_fixed else "parent_still_red"
        self._close_repairs(name, fixed=is_fixed, resolution=resolution)
        if is_done:
            self._verified.add(name)
        elif now is not None:
            self._failure[name] = now
            self._categories.setdefault(name, []).append(now.category.value)

    def _open_branches(self, action: PublishPlan) -> None:
        """Add a repair for each branch that an edit of the plan adds."""
        # The strategy is the rule of an edit that revises the plan together with the branch, if any.
        strategy = next((each.rule for each in action.edits if not isinstance(each, AddBranch)), "")
        for todo in (edit.todo for edit in action.edits if isinstance(edit, AddBranch)):
            name, parent = (qualified(action.within, each or "") for each in (todo.id, todo.parent_id))
            self._branches[name] = self._open_repair(parent, strategy, todo.agent_role) | {
                "branch_id": name,
                "depth": todo.branch_depth or 1,
                "via": None if todo.via is None else qualified(action.within, todo.via),
            }
            self._rows[REPAIRS].append(self._branches[name])

    def _begin_turn(self, action: Implement) -> None:
        """Process a turn of work: count it for its branch, or open or extend a retry."""
        name = action.todo_id
        if action.attempt <= self._turns.get(name, 0):
            return  # requested again, after a restart
        self._turns[name] = action.attempt
        if name in self._branches:
            self._branches[name] |= {"attempts": action.attempt, "role": action.role.value}
        elif name in self._retries:  # not verified since the last turn: both belong to one repair
            self._retries[name]["attempts"] += 1
        elif name in self._failure:
            self._retries[name] = self._open_repair(name, RETRY, action.role) | {"attempts": 1}
            self._rows[REPAIRS].append(self._retries[name])

    def _open_repair(self, name: str, strategy: str, role: Role) -> Row:
        """Return a new row for the repair of a todo's current failure."""
        failure = self._failure.get(name)
        return {
            **self._experience(self._step.after.records[name], failure),
            "parent_id": name,
            "depth": 0,
            "role": role.value,
            "category": (Category.UNKNOWN if failure is None else failure.category).value,
            "signature": None if failure is None else failure.signature,
            "opened": self._at,
            "attempts": 0,
            "strategy": strategy,
        }

    def _close_repairs(self, name: str, *, fixed: bool, resolution: str) -> None:
        """Close a todo's retry and its passed branches; other branches have failed or are still at work."""
        if (retry := self._retries.pop(name, None)) is not None:
            retry |= {"fixed": fixed, "at": self._at}
        for branch in self._branches.values():
            if branch["parent_id"] == name and branch.get("outcome") == PASSED:
                self._close_branch(branch, fixed=fixed, resolution=resolution)

    def _close_branch(self, branch: Row, *, fixed: bool, resolution: str) -> None:
        """Store the resolution of a branch, unless it has one."""
        if "resolution" not in branch:
            # Without a diagnosis, memory cannot learn which failure was repaired.
            is_known = branch["signature"] is not None
            branch |= {"fixed": fixed if is_known else None, "at": self._at, "resolution": resolution}

    def _add_end(self, record: TodoRecord, event: Event) -> None:
        """Process the end of a branch, or of a todo, of which memory learns how it went."""
        name, is_done = record.id, record.life is TodoLife.DONE
        branch = self._branches.get(name)
        if branch is not None:
            seconds = datetime.fromisoformat(self._at) - datetime.fromisoformat(branch["opened"])
            branch["outcome"] = PASSED if is_done else record.life.value
            branch |= {"closed": self._at, "duration_seconds": seconds.total_seconds()}
            if record.life is TodoLife.SKIPPED:  # nobody worked on it: memory learns nothing
                branch |= {"fixed": None, "at": self._at, "resolution": "parent_done"}
            elif not is_done:
                self._close_branch(branch, fixed=False, resolution=self._reason(event))
            return
        if not is_done:
            self._close_repairs(name, fixed=False, resolution="parent_still_red")
        # Only todos with evidence: done by a verification, or given up after somebody worked on them.
        if name in (self._verified if is_done else self._turns) and not record.todo.has_sub_plan:
            categories = list(dict.fromkeys(self._categories.get(name, ())))
            row = {
                "todo_id": name,
                "role": record.todo.agent_role.value,
                "done": is_done,
                "first_time": is_done and not categories,
                "categories": categories,
            }
            self._rows[TODOS].append(self._experience(record) | row)

    def _reason(self, event: Event) -> str:
        """Return why a branch ended that did not pass, judging by the event that ended it."""
        if self._step.after.plan_state is PlanState.HALTED:
            return "run_halted"
        if isinstance(event, QuestionAnswered | ApprovalGiven):
            return "given_up"
        return "attempts_used_up" if isinstance(event, Verified | WorkFinished) else "lifetime_over"

    def _experience(self, record: TodoRecord, failure: Failure | None = None) -> Row:
        """Return the columns by which :mod:`planner.memory` finds similar work."""
        return {
            "at": self._at,
            "fingerprint": self._run["fingerprint"],
            "task_kind": task_kind(record.todo).value,
            "text": text_of(record.todo, failure),
        }

    def _update_questions(self, event: Event, asked: Mapping[str, AskHuman]) -> None:
        """Add rows for new questions, and close those that were answered or are no longer ``asked``."""
        answered, others, answer = None, WITHDRAWN, dict[str, Any]()
        if isinstance(event, ApprovalGiven):
            answered, answer = event.approval_id, {"decision": event.decision.value}
            others = SIMILAR if event.decision is Decision.APPROVE_SIMILAR else WITHDRAWN
        elif isinstance(event, QuestionAnswered):
            answered, answer = event.question_id, {"decision": event.answer}
        if isinstance(event, ApprovalGiven | QuestionAnswered):
            answer |= {"decided_by": event.by, "because": event.because}
        for name, row in list(self._questions.items()):
            # Another digest under the same id is another question: the old one was withdrawn.
            if name == answered or name not in asked or asked[name].digest != row["digest"]:
                row |= (answer if name == answered else {"decision": others}) | {"decided": self._at}
                del self._questions[name]
        for name, question in asked.items():
            if name not in self._questions:
                self._questions[name] = {
                    "question_id": name,
                    "kind": question.kind.value,
                    "todo_id": question.todo_id,
                    "question": f"{question.question} ({question.because})",
                    "rule": question.rule,
                    "digest": question.digest,
                    "asked": self._at,
                }
                self._rows[QUESTIONS].append(self._questions[name])


def rows_of_outcomes(path: Path) -> Rows:
    """Return the rows of one run of ``pytest --planverify``.

    Raises :class:`planner.errors.OutcomeFileError` if the file is unreadable.
    """
    document = read_outcomes(path)
    run, outcomes = document.run, document.outcomes
    plan = next(iter(document.plans), None)
    plan_id = next((each.plan or "" for each in outcomes), "") if plan is None else plan.todo_list_id
    finished = moment(time_of(run.finished_at, _UNKNOWN))
    verification: Row = {
        "run_id": run.run_id,
        "plan_id": plan_id,
        "path": "" if plan is None else plan.path,
        "digest": "" if plan is None else plan.digest,
        "started": moment(time_of(run.started_at, _UNKNOWN)),
        "finished": finished,
        "scope": run.scope,
        "exit_status": run.exit_status,
        "done": sum(each.state is TodoState.DONE for each in outcomes),
        "todos": len(outcomes),
    }
    facts = {"run_id": run.run_id, "plan_id": plan_id, "fingerprint": None, "n": 0, "at": finished}
    failures = [row for each in outcomes for row in _failure_rows(each, facts)]
    return {VERIFICATIONS: [verification], FAILURES: failures}


def rows_of_corrections(path: Path) -> Rows:
    """Return the rows of a log of corrections. Raises :class:`planner.errors.LogError`."""
    rows = [each.model_dump(mode="json") | {"at": moment(each.at)} for each in corrections_of(path)]
    return {CORRECTIONS: rows}


def _failure_rows(outcome: Outcome, facts: Row) -> list[Row]:
    """Return a row for each failure of an outcome; ``facts`` are the columns that all share."""
    return [
        {
            **facts,
            "todo_id": outcome.todo_id,
            "category": each.category.value,
            "signature": each.signature,
            "role": (each.target_agent or each.category.facts.default_role).value,
            "head": each.stack_trace_head,
        }
        for each in failures_of(outcome)
    ]


def _without_branches(plan: Plan) -> Plan:
    """Return a plan without branches and without dependencies on them."""
    branches = {todo.id for todo in plan.items if todo.parent_id is not None or todo.is_temporary}
    kept = [
        # Unchanged todos are not copied: a copy would set ``dependencies`` where the plan omits them.
        todo
        if branches.isdisjoint(todo.dependencies)
        else todo.model_copy(
            update={"dependencies": tuple(each for each in todo.dependencies if each not in branches)}
        )
        for todo in plan.items
        if todo.id not in branches
    ]
    return plan.model_copy(update={"items": tuple(kept)})
