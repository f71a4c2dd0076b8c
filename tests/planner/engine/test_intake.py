"""Outcomes of runs that no action requested: which todos they settle, repair or leave unchanged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sample_documents import sample_document

from planner.engine import start, step
from planner.engine.intake import must_restart, report_run
from planner.engine.progress import status_tree
from planner.model.actions import AskHuman, Implement, Verify
from planner.model.events import PlanSubmitted, RunPolicy, RunResumed
from planner.model.outcome import Cause, CauseTodo, Outcome
from planner.model.plan import Plan, Policy, Todo
from planner.model.taxonomy import Category
from planner.model.verdicts import CheckKind, Since, TodoState, Verdict
from planner.testing import create_sample_todo, simulate_failure, simulate_success

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.engine import State
    from planner.model.events import Event

START = datetime(2026, 1, 1, tzinfo=UTC)
MANUAL = {"id": "manual[0]", "kind": CheckKind.MANUAL}


class People:
    """A plan without a driver: each run reports outcomes, and the engine decides on the next actions."""

    def __init__(self, *todos: Todo, **policy: Any) -> None:
        self.plan = Plan(todo_list_id="p1", metadata=Policy(**policy), items=todos)
        self.now = START
        self.runs = 0
        self.refused: list[str] = []
        self.state, _ = start(
            PlanSubmitted(at=START, plan=self.plan, digest="sha256:0", policy=RunPolicy(driven=False))
        )

    def run(self, *outcomes: Outcome, causes: Iterable[Cause] = (), scope: str = "all") -> People:
        """Report a run with these outcomes, in a tree that has changed since the previous run."""
        self.runs += 1
        self.now += timedelta(seconds=60)
        tree = f"sha256:{self.runs}"
        changed = [each.model_copy(update={"diff_hash": each.diff_hash or tree}) for each in outcomes]
        document = sample_document(self.plan, changed, at=self.now)
        self.document = document.model_copy(
            update={"causes": tuple(causes), "run": document.run.model_copy(update={"scope": scope})}
        )
        self.state, self.refused = report_run(self.state, self.document, (), self.now, self._tell)
        return self

    def _tell(self, event: Event) -> State:
        self.state, _ = step(self.state, event)
        return self.state

    @property
    def asked(self) -> list[tuple[str, str]]:
        """Kind and todo of each outstanding action; empty if the plan is in a final state."""
        if self.state.plan_state.is_final:
            return []
        actions = step(self.state, RunResumed(at=self.now))[1]
        return [
            (each.action, each.todo_ids[0] if isinstance(each, Verify) else each.todo_id)
            for each in actions
            if isinstance(each, Implement | Verify | AskHuman)
        ]


def todo(todo_id: str = "t1", **fields: Any) -> Todo:
    return create_sample_todo(todo_id, **fields)


def red(todo_id: str = "t1", category: Category = Category.TEST_REGRESSION, **fields: Any) -> Outcome:
    return simulate_failure(todo(todo_id), category, f"{todo_id} broke", **fields)


def green(todo_id: str = "t1") -> Outcome:
    return simulate_success(todo(todo_id))


def test_what_passed_is_done_beside_a_violation_that_halts_the_run():
    people = People(todo("t1"), todo("t2")).run(red("t1", Category.SANDBOX_VIOLATION), green("t2"))
    tree = status_tree(people.state, {})
    assert (tree.state, tree.done, tree.total) == ("halted", 1, 2)


def test_reporting_the_same_run_twice_changes_nothing():
    people = People(todo("t1", max_retries=2)).run(red("t1"))
    before = people.state
    after, _ = report_run(people.state, people.document, (), people.now, people._tell)
    assert after is before


def test_the_lifetime_of_a_branch_counts_from_its_first_attempt():
    people = People(todo("t1"), branch_timeout_seconds=600).run(red("t1"))
    people.now += timedelta(days=1)
    assert people.run(red("t1", signature="b" * 12)).asked == [("implement", "t1_branch_01")]
    people.now += timedelta(seconds=600)
    assert people.run(red("t1", signature="c" * 12)).asked == [("ask_human", "t1")]
    (question,) = people.state.questions.values()
    assert question.rule == "branch-lifetime"


def test_a_passing_todo_closes_its_branch():
    people = People(todo("t1"), todo("t2")).run(red("t1")).run(green("t1"))
    assert people.state.records["t1"].life == "done"
    assert people.state.records["t1_branch_01"].life == "done"
    assert not people.state.records["t1_branch_01"].verified
    shown = {node.id: node.unproved for node in status_tree(people.state, {}).walk()}
    assert not shown["t1_branch_01"]
    assert people.asked == [("implement", "t2")]


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        ({"status": "claimed"}, {}),
        ({"allowed_files": ("src/**",)}, {"touched_files": ("src/a.py",)}),
        ({}, {"touched_files": ("a.py",)}),
    ],
)
def test_a_red_todo_with_prior_work_gets_a_repair_branch(fields: dict[str, Any], changes: dict[str, Any]):
    outcome = red("t1", Category.TEST_NOT_FOUND).model_copy(update=changes)
    people = People(todo("t1", **fields)).run(outcome)
    assert people.asked == [("implement", "t1_branch_01")]


def test_a_dependant_is_judged_only_once_its_dependency_is_done():
    people = People(todo("t2", dependencies=("t1",)), todo("t1")).run(red("t2"), red("t1"))
    assert people.asked == [("implement", "t1_branch_01")]
    assert people.state.blocked() == {"t2": "t1"}
    assert people.run(red("t2"), green("t1")).asked == [("implement", "t2_branch_01")]


def test_blocked_todos_are_in_the_order_of_the_plan():
    todos = (todo("b"), todo("a"), todo("y", dependencies=("b",)), todo("x", dependencies=("a",)))
    people = People(*todos).run(red("b"), red("a"))
    assert [*people.state.blocked()] == ["y", "x"]


def test_todos_with_one_cause_share_the_repair_of_the_first():
    same = {"signature": "a" * 12}
    people = People(todo("t1"), todo("t2")).run(red("t1", **same), red("t2", **same))
    assert people.asked == [("implement", "t1_branch_01")]
    assert people.state.records["t2"].behind == "t1"
    people.run(green("t1"), red("t2", signature="b" * 12))
    assert people.asked == [("implement", "t2_branch_01")]


def test_signatures_merged_by_the_run_count_as_one_cause():
    cause = Cause(
        rank=1,
        signatures=("a" * 12, "b" * 12),
        category=Category.IMPORT_ERROR,
        todos=(CauseTodo(todo_id="t1"), CauseTodo(todo_id="t2")),
    )
    people = People(todo("t1"), todo("t2"))
    people.run(red("t1", signature="a" * 12), red("t2", signature="b" * 12), causes=[cause])
    assert people.asked == [("implement", "t1_branch_01")]


def test_the_first_todo_allowed_to_edit_the_faulty_file_repairs_a_shared_cause():
    same = {"signature": "a" * 12, "location": {"path": "core/a.py", "line": 1, "function": "f"}}
    people = People(todo("t1", allowed_files=("web/**",)), todo("t2", allowed_files=("core/**",))).run(
        red("t1", **same), red("t2", **same)
    )
    assert people.asked == [("implement", "t2_branch_01")]
    assert people.state.records["t1"].behind == "t2"


def test_a_todo_behind_another_gets_its_own_branch_when_the_first_is_given_up():
    same = {"signature": "a" * 12}
    people = People(todo("t1"), todo("t2"), max_debug_attempts=1).run(red("t1", **same), red("t2", **same))
    people.run(red("t1", signature="b" * 12), red("t2", **same))
    assert ("implement", "t2_branch_01") in people.asked


def test_a_pre_existing_failure_becomes_a_separate_todo():
    def actions_for(name: str) -> list[tuple[str, str]]:
        worked_on = {"touched_files": ("a.py",)}
        outcome = red(name, since=Since.PRE_EXISTING).model_copy(update=worked_on)
        return People(todo(name)).run(outcome).asked

    ((kind, name),) = actions_for("t1")
    assert (kind, name.startswith("pre_existing_")) == ("implement", True)
    assert actions_for(name) == [("implement", f"{name}_branch_01")], "it is not set apart from itself"


@pytest.mark.parametrize("verdict", [Verdict.NEEDS_HUMAN, Verdict.STALE])
def test_a_manual_criterion_is_asked_and_its_answer_counts_in_the_next_run(verdict: Verdict):
    open_ = green().checks[0].model_copy(update={"verdict": verdict, **MANUAL})
    asking = {"state": TodoState.TESTING, "success": False, "checks": (*green().checks, open_)}
    people = People(todo("t1"), todo("t2")).run(green().model_copy(update=asking))
    assert ("ask_human", "t1") in people.asked
    people.run(green("t1"))
    assert people.state.records["t1"].life == "done"


def test_a_run_scoped_to_claims_judges_only_claimed_todos():
    people = People(todo("t1", status="claimed"), todo("t2")).run(red("t1"), red("t2"), scope="claimed")
    assert people.asked == [("implement", "t1_branch_01"), ("implement", "t2")]


def test_a_pass_without_checks_is_reported_and_not_accepted():
    people = People(todo("t1")).run(green("t1").model_copy(update={"checks": ()}))
    assert people.asked == [("implement", "t1")]
    assert "it has no check of tests[0]" in people.refused[0]


def test_a_done_todo_that_turns_red_starts_a_new_run():
    people = People(todo("t1"), todo("t2")).run(green("t1"))
    later = sample_document(people.plan, [red("t1")], at=people.now + timedelta(hours=1))
    assert must_restart(people.state, later)
    assert not must_restart(people.state, people.document)
