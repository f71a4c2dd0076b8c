"""Makes the rows of the index: of the log of a run, of an outcome file, of the log of corrections.

A log is folded step by step. What is said of a run comes from its events and actions; of the engine's state
only how each todo stands is read, whether the run is over, and which questions are open.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from planner.memory import task_kind, text_of
from planner.model.actions import AskHuman, Finish, Implement, PublishPlan
from planner.model.edits import AddBranch
from planner.model.events import (
    ApprovalGiven,
    Decision,
    PlanSubmitted,
    QuestionAnswered,
    Verified,
    WorkFinished,
)
from planner.model.ids import qualified
from planner.model.life import PlanState, TodoLife
from planner.model.taxonomy import Family
from planner.model.verdicts import TodoState
from planner.planfile.dump import render
from planner.planfile.loader import collector_paused
from planner.planfile.outcome_file import read_outcomes
from planner.store.corrections import corrections_of
from planner.store.plan_versions import NewestPlans
from planner.store.recorded_run import run_of_log
from planner.store.tables import (
    BRANCHES,
    CORRECTIONS,
    FAILURES,
    PASSED,
    QUESTIONS,
    REPAIRS,
    RUNS,
    TODOS,
    VERIFICATIONS,
    WORK,
    moment,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from sqlalchemy import Table

    from planner.engine import TodoRecord
    from planner.model.events import Event
    from planner.model.outcome import Failure, Outcome
    from planner.model.plan import Plan, Todo
    from planner.store.run_log import Step

Row: TypeAlias = "dict[str, Any]"
Rows: TypeAlias = "dict[Table, list[Row]]"

RETRY = "retry"
"""The strategy of a turn of work without a branch."""

WITHDRAWN = "withdrawn"
SIMILAR = "approved_as_similar"

_ENDS = {
    TodoLife.DONE: PASSED,
    TodoLife.FAILED: "failed",
    TodoLife.SKIPPED: "skipped",
    TodoLife.HALTED: "halted",
}


def goal_of(plan: Plan) -> str:
    """Return what a plan is for: its ``x-goal``, else its name, else its id."""
    said = plan.extensions.get("x-goal")
    return said if isinstance(said, str) and said.strip() else plan.workflow_name or plan.todo_list_id


def rows_of_log(path: Path, remarks: list[str]) -> Rows:
    """Return the rows of a run. Raises :class:`planner.errors.LogError` where its log cannot be folded."""
    run = run_of_log(path)
    rows: _RunRows | None = None
    with collector_paused():
        for step in run.steps:
            if rows is None:
                assert isinstance(step.event, PlanSubmitted)  # the log refuses any other first line
                rows = _RunRows(step.event, os.path.realpath(path))
            rows.add(step)
    assert rows is not None  # there is a first step
    remarks += run.remarks
    return rows.made()


class _RunRows:
    """The rows of one run, after each of its steps."""

    def __init__(self, submitted: PlanSubmitted, log: str) -> None:
        plan, at = submitted.plan, moment(submitted.at)
        self._fingerprint = submitted.policy.fingerprint or submitted.memory.fingerprint
        self._at = at
        self._run: Row = {
            "run_id": submitted.run_id or f"{plan.todo_list_id}-{submitted.digest[7:19]}",
            "plan_id": plan.todo_list_id,
            "path": submitted.path,
            "digest": submitted.digest,
            "fingerprint": self._fingerprint,
            "goal": goal_of(plan),
            "log": log,
            "opened": at,
            "closed": None,
            "blocked_since": None,
            "events": 0,
            "document": render(without_branches(plan), format="json"),
        }
        self._plans = NewestPlans()
        self._records: Mapping[str, TodoRecord] = {}
        self._turns: dict[str, int] = {}
        self._branches: dict[str, Row] = {}
        self._failures: list[Row] = []
        self._failure: dict[str, Failure] = {}
        """By todo, why it is red."""
        self._categories: dict[str, list[str]] = {}
        self._verified: set[str] = set()
        self._questions: list[Row] = []
        self._asked: dict[str, Row] = {}
        """Those that are open."""
        self._work: list[Row] = []
        self._repairs: list[Row] = []
        self._mending: dict[str, Row] = {}
        """Open repairs by who mends: the todo itself, or a branch."""
        self._ended: dict[str, Row] = {}

    def add(self, step: Step) -> None:
        """Take in the next step."""
        event, actions, _, after = step
        self._at = moment(after.now)
        before, self._records = self._records, after.todos
        self._plans.take(event, actions)
        if isinstance(event, WorkFinished):
            facts = {"kind": "work", "success": event.success, "tokens": event.tokens}
            self._add_work(event.todo_id, facts, event.touched_files, event.new_files)
        elif isinstance(event, Verified):
            self._judge(event.outcome)
        self._answer(event, after.questions)
        for action in actions:
            if isinstance(action, PublishPlan):
                self._open_branches(action)
            elif isinstance(action, Implement):
                self._begin_turn(action)
            elif isinstance(action, AskHuman):
                self._ask(action)
            elif isinstance(action, Finish) and action.result == "completed" and self._plans.is_edited:
                self._run["document"] = render(without_branches(self._plans.newest()), format="json")
        is_over = after.plan_state.is_final
        why = _why_ended(event, is_halted=after.plan_state is PlanState.HALTED)
        for name, record in self._records.items():
            was = before.get(name)
            if record.life.is_final and (was is None or not was.life.is_final):
                self._end(record, why)
        for branch in self._branches.values() if is_over else ():
            if branch["outcome"] is None:
                self._close_branch(branch, "halted", "run_halted")
        self._update_run(after.plan_state, len(after.questions))

    def made(self) -> Rows:
        """Return the rows."""
        todos = [self._ended.get(name) or self._todo(each) for name, each in self._records.items()]
        return {
            RUNS: [self._run],
            TODOS: todos,
            BRANCHES: list(self._branches.values()),
            FAILURES: self._failures,
            QUESTIONS: self._questions,
            WORK: self._work,
            REPAIRS: self._repairs,
        }

    def _update_run(self, state: PlanState, waiting: int) -> None:
        """Say how the run stands, and since when something is blocked or a person is waited for."""
        run = self._run
        blocked = sorted(name for name, each in self._records.items() if each.life is TodoLife.BLOCKED)
        stands_still = bool(blocked or waiting) and not state.is_final
        run["state"], run["changed"], run["waiting"] = state.value, self._at, waiting
        run["events"] += 1
        run["closed"] = (run["closed"] or self._at) if state.is_final else None
        run["blocked"] = json.dumps(blocked)
        run["blocked_since"] = (run["blocked_since"] or self._at) if stands_still else None

    def _add_work(
        self, name: str, facts: Row, files: Collection[str], new_files: Collection[str] = ()
    ) -> None:
        row = {"at": self._at, "todo_id": name, "turn": self._turns.get(name, 0), "role": self._role(name)}
        lists = {"files": json.dumps(list(files)), "new_files": json.dumps(list(new_files))}
        self._work.append({**row, **facts, **lists})

    def _judge(self, outcome: Outcome) -> None:
        """Take in a verification, and say what came of the repairs of its todo."""
        name = outcome.todo_id
        facts = {"kind": "verification", "success": outcome.success, "diff_hash": outcome.diff_hash}
        self._add_work(name, facts | {"tokens": outcome.metrics.tokens_used}, outcome.touched_files)
        run = self._run
        self._failures += failure_rows(outcome, run["events"], self._at, run["plan_id"], self._fingerprint)
        record = self._records.get(name)
        if record is None or record.is_branch:
            return
        is_done = record.life is TodoLife.DONE
        now = next(iter(_failures(outcome)), None)
        if not is_done and (now is None or now.category.facts.family is Family.ENVIRONMENT):
            return  # nothing could be told
        before = self._failure.pop(name, None)
        is_gone = is_done or before is None or (now is not None and now.signature != before.signature)
        came = "parent_done" if is_done else "failure_gone" if is_gone else "parent_still_red"
        self._close_repairs(name, fixed=is_gone, came=came)
        if is_done:
            self._verified.add(name)
        elif now is not None:
            self._failure[name] = now
            self._categories.setdefault(name, []).append(now.category.value)

    def _open_branches(self, action: PublishPlan) -> None:
        strategy = next((each.rule for each in action.edits if not isinstance(each, AddBranch)), "")
        for edit in action.edits:
            if not isinstance(edit, AddBranch):
                continue
            todo = edit.todo
            name = qualified(action.within, todo.id)
            parent = qualified(action.within, todo.parent_id or "")
            failure = self._failure.get(parent)
            self._branches[name] = {
                "branch_id": name,
                "parent_id": parent,
                "depth": todo.branch_depth or 1,
                "via": None if todo.via is None else qualified(action.within, todo.via),
                "role": todo.agent_role.value,
                "category": "UNKNOWN" if failure is None else failure.category.value,
                "signature": None if failure is None else failure.signature,
                "opened": self._at,
                "attempts": 0,
                "outcome": None,
                "resolution": None,
            }
            self._open_repair(name, parent, strategy, todo.agent_role.value)

    def _begin_turn(self, action: Implement) -> None:
        """Take in a turn of work; one that is asked for again after a break is no new one."""
        name = action.todo_id
        if action.attempt <= self._turns.get(name, 0):
            return
        self._turns[name] = action.attempt
        if name in self._branches:
            self._branches[name] |= {"attempts": action.attempt, "role": action.role.value}
        elif name in self._mending:  # nothing was verified since: it belongs to the same repair
            self._mending[name]["attempts"] += 1
        else:
            self._open_repair(name, name, RETRY, action.role.value)

    def _open_repair(self, worker: str, name: str, strategy: str, role: str) -> None:
        record, failure = self._records.get(name), self._failure.get(name)
        if record is None or failure is None:
            return
        self._mending[worker] = {
            "todo_id": name,
            "at": self._at,
            "fingerprint": self._fingerprint,
            "task_kind": task_kind(record.todo).value,
            "text": text_of(record.todo, failure),
            "signature": failure.signature,
            "category": failure.category.value,
            "strategy": strategy,
            "role": role,
            "fixed": None,
            "attempts": 1,
        }
        self._repairs.append(self._mending[worker])

    def _close_repairs(self, name: str, *, fixed: bool, came: str) -> None:
        """Say what came of a todo's own repair, and of its branches that have passed."""
        self._close_repair(name, fixed=fixed)
        for branch_id, branch in self._branches.items():
            if branch["parent_id"] == name and branch["outcome"] == PASSED:
                self._close_repair(branch_id, fixed=fixed)
                branch["resolution"] = branch["resolution"] or came

    def _close_repair(self, worker: str, *, fixed: bool) -> None:
        row = self._mending.pop(worker, None)
        if row is not None:
            row |= {"fixed": fixed, "at": self._at}
            if worker in self._branches:
                row["attempts"] = max(self._turns.get(worker, 0), 1)

    def _end(self, record: TodoRecord, why: str) -> None:
        """Take in that a todo has come to its end."""
        name, is_done = record.id, record.life is TodoLife.DONE
        if name in self._branches:
            self._close_branch(self._branches[name], _ENDS[record.life], None if is_done else why)
            if not is_done:
                self._close_repair(name, fixed=False)
        elif not is_done:
            self._close_repairs(name, fixed=False, came="parent_still_red")
        self._ended[name] = row = self._todo(record)
        worked_on = name in self._verified if is_done else name in self._turns
        if worked_on and name not in self._branches and not record.todo.has_sub_plan:
            categories = list(dict.fromkeys(self._categories.get(name, ())))
            row |= {
                "fingerprint": self._fingerprint,
                "task_kind": task_kind(record.todo).value,
                "text": text_of(record.todo),
                "first_time": is_done and not categories,
                "categories": json.dumps(categories),
            }

    def _close_branch(self, branch: Row, outcome: str, resolution: str | None) -> None:
        opened, closed = (datetime.fromisoformat(each) for each in (branch["opened"], self._at))
        branch |= {
            "outcome": outcome,
            "closed": self._at,
            "duration_seconds": (closed - opened).total_seconds(),
            "resolution": branch["resolution"] or resolution,
        }

    def _ask(self, action: AskHuman) -> None:
        known = self._asked.get(action.question_id)
        if known is not None and known["digest"] == action.digest:
            return
        row = {
            "question_id": action.question_id,
            "kind": action.kind.value,
            "todo_id": action.todo_id,
            "question": f"{action.question} ({action.because})",
            "rule": action.rule,
            "digest": action.digest,
            "asked": self._at,
        }
        if known is not None:
            known |= {"decision": WITHDRAWN, "decided": self._at}
        self._asked[action.question_id] = row
        self._questions.append(row)

    def _answer(self, event: Event, still_open: Collection[str]) -> None:
        answered, decision, is_similar = None, "", False
        if isinstance(event, ApprovalGiven):
            answered, decision = event.approval_id, event.decision.value
            is_similar = event.decision is Decision.APPROVE_SIMILAR
        elif isinstance(event, QuestionAnswered):
            answered, decision = event.question_id, event.answer
        for name in list(self._asked):
            if name == answered and isinstance(event, ApprovalGiven | QuestionAnswered):
                said: Row = {"decision": decision, "decided_by": event.by, "because": event.because}
            elif name not in still_open:
                said = {"decision": SIMILAR if is_similar else WITHDRAWN}
            else:
                continue
            self._asked.pop(name).update(said, decided=self._at)

    def _todo(self, record: TodoRecord) -> Row:
        return {
            "todo_id": record.id,
            "at": self._at,
            "state": record.life.value,
            "role": self._role(record.id),
            "turns": self._turns.get(record.id, 0),
        }

    def _role(self, name: str) -> str | None:
        record = self._records.get(name)
        return None if record is None else record.todo.agent_role.value


def _why_ended(event: Event, *, is_halted: bool) -> str:
    """Return why a branch that has not passed has come to its end."""
    if is_halted:
        return "run_halted"
    if isinstance(event, QuestionAnswered | ApprovalGiven):
        return "given_up"
    return "attempts_used_up" if isinstance(event, Verified | WorkFinished) else "lifetime_over"


def rows_of_outcomes(path: Path, remarks: list[str]) -> Rows:
    """Return the rows of one run of ``pytest --planverify``.

    Raises :class:`planner.errors.OutcomeFileError` where the file cannot be read.
    """
    del remarks
    document = read_outcomes(path)
    run, outcomes = document.run, document.outcomes
    started, finished = (_time(each) for each in (run.started_at, run.finished_at))
    plan = document.plans[0] if document.plans else None
    plan_id = (outcomes[0].plan or "" if outcomes else "") if plan is None else plan.todo_list_id
    verification: Row = {
        "run_id": run.run_id,
        "plan_id": plan_id,
        "path": "" if plan is None else plan.path,
        "digest": "" if plan is None else plan.digest,
        "started": started,
        "finished": finished,
        "scope": run.scope,
        "exit_status": run.exit_status,
        "done": sum(each.state is TodoState.DONE for each in outcomes),
        "todos": len(outcomes),
    }
    failures = [row for each in outcomes for row in failure_rows(each, 0, finished, plan_id, None)]
    todos: list[Row] = [
        {
            "todo_id": each.todo_id,
            "at": finished,
            "state": "" if each.state is None else each.state.value,
            "role": None,
            "turns": 0,
        }
        for each in outcomes
    ]
    return {VERIFICATIONS: [verification], TODOS: todos, FAILURES: failures}


def rows_of_corrections(path: Path, remarks: list[str]) -> Rows:
    """Return the rows of the log of corrections. Raises :class:`planner.errors.LogError`."""
    del remarks
    rows = [
        {
            **each.model_dump(mode="json"),
            "at": moment(each.at),
            "features": json.dumps(each.features, ensure_ascii=False) if each.features else None,
        }
        for each in corrections_of(path)
    ]
    return {CORRECTIONS: rows}


def failure_rows(outcome: Outcome, n: int, at: str, plan_id: str, fingerprint: str | None) -> list[Row]:
    """Return a row for every failure of a verification."""
    return [
        {
            "plan_id": plan_id,
            "fingerprint": fingerprint,
            "n": n,
            "at": at,
            "todo_id": outcome.todo_id,
            "category": each.category.value,
            "owner": None if each.owner is None else each.owner.value,
            "rule": each.rule,
            "signature": each.signature,
            "role": (each.target_agent or each.category.facts.default_role).value,
            "head": each.stack_trace_head,
            "features": json.dumps(each.features, ensure_ascii=False) if each.features else None,
        }
        for each in _failures(outcome)
    ]


def without_branches(plan: Plan) -> Plan:
    """Return a plan without the todos that were made to repair others, and what waits for them."""
    gone = {todo.id for todo in plan.items if todo.parent_id is not None or todo.is_temporary}
    if not gone:
        return plan

    def kept(todo: Todo) -> Todo:
        return todo.model_copy(
            update={"dependencies": tuple(each for each in todo.dependencies if each not in gone)}
        )

    return plan.model_copy(
        update={"items": tuple(kept(todo) for todo in plan.items if todo.id not in gone)}
    )


def _failures(outcome: Outcome) -> tuple[Failure, ...]:
    """Return every failure once, the one that decides first."""
    decides = outcome.failure_evidence
    if decides is None:
        return outcome.failures
    return (decides, *(each for each in outcome.failures if each != decides))


def _time(text: str) -> str:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return moment(0)
    return moment(at if at.tzinfo is not None else at.replace(tzinfo=UTC))
