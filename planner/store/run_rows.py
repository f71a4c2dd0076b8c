"""Rows of the index, derived from run logs, outcome files and the log of corrections.

A row is a dictionary by column; a column that is not known is missing. Rows are grouped by the names of
their tables, which :mod:`.index` declares. The rows of a log are derived while it is folded:
:class:`RunRows` compares the states before and after each event.
"""

from __future__ import annotations

import os
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from planner.engine.intake import time_of
from planner.memory import task_kind, text_of
from planner.model.actions import Implement, PublishPlan
from planner.model.base import qualified
from planner.model.edits import AddBranch
from planner.model.events import ApprovalGiven, PlanSubmitted, QuestionAnswered, Verified
from planner.model.taxonomy import Category, Family
from planner.model.verdicts import TodoLife, TodoState
from planner.planfile.record_files import read_outcomes
from planner.policy.outcomes import failures_of
from planner.store.corrections import CORRECTIONS, corrections_of
from planner.store.run_log import INTERRUPTED, run_of_log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.engine import TodoRecord
    from planner.model.actions import AskHuman
    from planner.model.events import Event
    from planner.model.outcome import Failure, Outcome
    from planner.model.taxonomy import Role
    from planner.store.run_log import RecordedRun, Step

Row: TypeAlias = "dict[str, Any]"
Rows: TypeAlias = "dict[str, list[Row]]"

OUTCOMES = "outcomes.json"
PASSED = "passed"
"""Value of ``outcome`` for a branch whose own criteria passed."""
RETRY = "retry"
"""Strategy name of a repair without a branch: another turn of work on the todo."""
CLOSED = "closed"
"""Decision on a question that the engine closed without an answer of its own."""

_UNKNOWN = datetime.fromtimestamp(0, UTC)
"""Time of verifications that name none."""


def moment(at: datetime | float) -> str:
    """Return a time, a datetime or seconds since the epoch, as text that is stored in tables.

    It is RFC 3339 in UTC with microseconds, so that text order is time order.
    """
    known = at.astimezone(UTC) if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    return known.isoformat(timespec="microseconds").replace("+00:00", "Z")


def rows_of(path: Path, remarks: list[str]) -> Rows:
    """Return the rows of a file; append remarks for people on a run to ``remarks``.

    Raises :class:`planner.errors.PlannerError` if the file cannot be read, or its log not folded.
    """
    if path.name == OUTCOMES:
        return _rows_of_outcomes(path)
    if path.name == Path(CORRECTIONS).name:
        rows = [each.model_dump(mode="json") | {"at": moment(each.at)} for each in corrections_of(path)]
        return {"corrections": rows}
    run = run_of_log(path)
    collector = RunRows(run, os.path.realpath(path))
    for step in run.steps:
        collector.add(step)
    remarks += run.remarks
    return collector.finish()


class RunRows:
    """Collector of the rows of one run, fed step by step.

    A repair is opened by a branch or by a turn of work after a failure. It is closed by the next
    verification of its todo that can decide it: fixed if the todo is done or its deciding failure has
    another signature.
    """

    _step: Step
    _at: str

    def __init__(self, run: RecordedRun, log: str = "") -> None:
        """Begin the rows of a run; ``log`` is the path in the row of the run."""
        self._recorded = run
        self._run: Row = {"log": log, "blocked_since": None}
        self._rows: defaultdict[str, list[Row]] = defaultdict(list, runs=[self._run])
        self._failure: dict[str, Failure] = {}
        """Deciding failure of the last verification, by todo."""
        self._categories: defaultdict[str, list[str]] = defaultdict(list)
        """Categories of all deciding failures, by todo."""
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
        if isinstance(event, PlanSubmitted):
            self._begin(event)
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

    def finish(self) -> Rows:
        """Return the rows after the last step of the run."""
        after, state = self._step.after, self._recorded.state_name(self._step.after)
        self._run |= {
            "state": state,
            "events": after.events,
            "blocked": [] if state == INTERRUPTED else [*after.blocked()],
        }
        if after.plan_state.is_final or state == INTERRUPTED:
            self._run |= {"closed": self._at, "blocked_since": None}
        return self._rows

    def _begin(self, event: PlanSubmitted) -> None:
        """Fill in what is known of the run from the beginning."""
        plan, goal = event.plan, event.plan.extensions.get("x-goal")
        has_goal = isinstance(goal, str) and goal.strip()
        self._run |= {
            "run_id": event.run_id or f"{plan.todo_list_id}-{event.digest[7:19]}",
            "plan_id": plan.todo_list_id,
            "path": event.path,
            "fingerprint": event.policy.fingerprint or event.memory.fingerprint,
            "goal": goal if has_goal else plan.workflow_name or plan.todo_list_id,
            "opened": moment(event.at),
        }

    def _add_verification(self, outcome: Outcome) -> None:
        """Process a verification: add its failures, and close the repairs that it decides."""
        name, after = outcome.todo_id, self._step.after
        facts = {key: self._run[key] for key in ("run_id", "plan_id", "fingerprint")} | {"at": self._at}
        self._rows["failures"] += _failure_rows(outcome, facts)
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
        if not is_done and now is not None:
            self._failure[name] = now
            self._categories[name].append(now.category.value)

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
            self._rows["repairs"].append(self._branches[name])

    def _begin_turn(self, action: Implement) -> None:
        """Process a turn of work: count it for its branch, or open or extend a retry."""
        name, before = action.todo_id, self._step.before
        was = None if before is None else before.records.get(name)
        if was is not None and action.attempt <= was.turns:
            return  # requested again, after a restart
        if name in self._branches:
            self._branches[name] |= {"attempts": action.attempt, "role": action.role.value}
        elif name in self._retries:  # not verified since the last turn: both belong to one repair
            self._retries[name]["attempts"] += 1
        elif name in self._failure:
            self._retries[name] = self._open_repair(name, RETRY, action.role) | {"attempts": 1}
            self._rows["repairs"].append(self._retries[name])

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
                self._close_branch(branch, fixed=False, resolution="parent_still_red")
            return
        if not is_done:
            self._close_repairs(name, fixed=False, resolution="parent_still_red")
        # Only todos with evidence: done by a verification, or given up after somebody worked on them.
        is_verified = isinstance(event, Verified) and event.outcome.todo_id == name
        if (is_verified if is_done else record.turns) and not record.todo.has_sub_plan:
            categories = list(dict.fromkeys(self._categories[name]))
            row = {
                "todo_id": name,
                "role": record.todo.agent_role.value,
                "done": is_done,
                "first_time": is_done and not categories,
                "categories": categories,
            }
            self._rows["todos"].append(self._experience(record) | row)

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
        answered, answer = None, dict[str, Any]()
        if isinstance(event, ApprovalGiven):
            answered, answer = event.approval_id, {"decision": event.decision.value}
        elif isinstance(event, QuestionAnswered):
            answered, answer = event.question_id, {"decision": event.answer}
        if isinstance(event, ApprovalGiven | QuestionAnswered):
            answer |= {"decided_by": event.by, "because": event.because}
        for name, row in list(self._questions.items()):
            # Another digest under the same id is another question: the old one was withdrawn.
            if name == answered or name not in asked or asked[name].digest != row["digest"]:
                row |= (answer if name == answered else {"decision": CLOSED}) | {"decided": self._at}
                del self._questions[name]
        for name, question in asked.items():
            if name not in self._questions:
                self._questions[name] = {
                    "question_id": name,
                    "kind": question.kind.value,
                    "todo_id": question.todo_id,
                    "question": f"{question.question} ({question.because})",
                    "digest": question.digest,
                    "asked": self._at,
                }
                self._rows["questions"].append(self._questions[name])


def _rows_of_outcomes(path: Path) -> Rows:
    """Return the rows of one run of ``pytest --planverify`` for one plan."""
    document = read_outcomes(path)
    run, outcomes = document.run, document.outcomes
    plan_id = document.plans[0].todo_list_id if document.plans else ""
    facts = {"run_id": run.run_id, "plan_id": plan_id}
    verification = {
        **facts,
        "started": moment(time_of(run.started_at, _UNKNOWN)),
        "scope": run.scope,
        "exit_status": run.exit_status,
        "done": sum(each.state is TodoState.DONE for each in outcomes),
        "todos": len(outcomes),
    }
    facts["at"] = moment(time_of(run.finished_at, _UNKNOWN))
    failures = [row for each in outcomes for row in _failure_rows(each, facts)]
    return {"verifications": [verification], "failures": failures}


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
