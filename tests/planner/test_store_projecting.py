"""What is made of the events beside the log: branches, diagnoses, approvals, artifacts, memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from store_samples import (
    START,
    Carried,
    shop,
    todo,
)

from planner.edges.store import Store, sqlite, telling
from planner.model.life import TodoLife
from planner.model.past import PastRepair, PastTodo
from planner.model.taxonomy import Category, Role


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "SYNCHRONOUS", "OFF")  # no test here is about what a power failure leaves


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "runs.db") as opened:
        yield opened


def branches(store: Store) -> list[telling.Branch]:
    with store.asking("test") as connection:
        return list(telling.branches(connection, ["run-1"]))


def questions(store: Store) -> list[tuple[str, str | None, str | None]]:
    with store.asking("test") as connection:
        return [
            (each.kind, each.decision, each.decided_by) for each in telling.approvals(connection, ["run-1"])
        ]


def to_first_branch(store: Store, **metadata: Any) -> Carried:
    """A run in which `tax` has used up its retries."""
    run = Carried(store, shop(**metadata))
    run.tell("run_started")
    for _ in range(3):
        run.worked("tax")
        run.failed("tax")
    return run


def test_a_branch_is_told_from_its_making_to_what_came_of_it(store: Store) -> None:
    run = to_first_branch(store)
    (branch,) = branches(store)
    assert (branch.branch_id, branch.parent_id, branch.depth, branch.via) == (
        "tax_branch_01",
        "tax",
        1,
        None,
    )
    assert (branch.role, branch.category, branch.signature) == ("coder", "TEST_REGRESSION", "a1b2c3d4e5f6")
    assert (branch.outcome, branch.resolution, branch.duration_seconds) == (None, None, None)
    assert branch.attempts == 1, "its first turn of work is asked for already"

    run.worked("tax_branch_01")
    run.failed("tax_branch_01")
    run.worked("tax_branch_01")
    run.passed("tax_branch_01")
    (branch,) = branches(store)
    assert (branch.attempts, branch.outcome, branch.resolution) == (2, "passed", None)
    assert branch.duration_seconds == 4 * 60

    run.failed("tax")
    run.worked("tax_branch_02")
    run.passed("tax_branch_02")
    run.failed("tax", signature="another")
    first, second = branches(store)
    assert (first.resolution, second.resolution) == ("parent_still_red", "failure_gone")
    assert (second.via, second.depth) == ("tax_branch_01", 2)
    assert telling.mean_resolution([first, second]) == (240 + 120) / 2


def test_a_run_tells_what_is_blocked_and_since_when(store: Store) -> None:
    run = Carried(store, shop())
    run.tell("run_started")
    run.worked("tax")
    assert not store.runs()[0].is_stuck
    run.failed("tax")
    run.worked("tax")
    (stands,) = store.runs("shop")
    assert (stands.blocked, stands.blocked_todos, stands.is_stuck) == (2, ("bill", "mail"), True)
    assert stands.blocked_since == "2026-11-21T10:03:00.000000Z"
    with store.asking("test") as connection:
        assert telling.blocked_runs(connection) == (stands,)
    run.passed("tax")
    (stands,) = store.runs("shop")
    assert (stands.blocked, stands.blocked_since, stands.events) == (0, None, 6)
    assert store.runs("another plan") == ()


def use_up(run: Carried) -> None:
    for _ in range(3):
        run.failed("tax_branch_01")
        if not run.state.todos["tax_branch_01"].life.is_final:
            run.worked("tax_branch_01")


def give_up(run: Carried) -> None:
    for _ in range(4):
        run.failed("tax_branch_01", "ENVIRONMENT_ERROR")
    (name,) = run.state.questions
    run.tell("question_answered", question_id=name, answer="give_up")


@pytest.mark.parametrize(
    ("end", "outcome", "resolution"),
    [
        (use_up, "failed", "attempts_used_up"),
        (give_up, "failed", "given_up"),
        (lambda run: run.tell("clock_ticked", after=700), "failed", "lifetime_over"),
        (lambda run: run.tell("stop_requested"), "halted", "run_halted"),
        (lambda run: run.failed("tax_branch_01", "SANDBOX_VIOLATION"), "halted", "run_halted"),
    ],
    ids=["use_up", "give_up", "clock", "stop", "violation"],
)
def test_a_branch_that_does_not_pass_says_why(
    store: Store, end: Callable[[Carried], object], outcome: str, resolution: str
) -> None:
    run = to_first_branch(store)
    run.worked("tax_branch_01")
    end(run)

    (branch,) = branches(store)

    assert (branch.outcome, branch.resolution) == (outcome, resolution)
    assert branch.closed is not None
    assert telling.mean_resolution([branch]) is None, "it has resolved nothing"


def test_memory_has_each_repair_once_with_what_came_of_it(store: Store) -> None:
    run = to_first_branch(store)
    run.tell("run_resumed")
    run.worked("tax_branch_01")
    run.passed("tax_branch_01")
    for limit in (2, 10):
        known = store.past("here", run.now, limit).repairs
        assert [each.fixed for each in known] == [False, False], "what came of the branch is not known yet"
    run.passed("tax")
    run.worked("bill")
    run.passed("bill")

    past = store.past("here", run.now, 10)

    assert past.fingerprint == "here"
    branch, *retries = past.repairs
    assert [(each.strategy, each.role, each.fixed) for each in retries] == [
        ("retry", Role.CODER, False)
    ] * 2
    assert branch == PastRepair.model_validate(
        {
            "at": "2026-11-21T10:11:00Z",
            "fingerprint": "here",
            "task_kind": "other",
            "text": "Todo tax AssertionError: assert 110 == 119",
            "signature": "a1b2c3d4e5f6",
            "category": "TEST_REGRESSION",
            "strategy": branch.strategy,
            "role": "coder",
            "fixed": True,
        }
    )
    assert [(each.text, each.done, each.first_time, each.categories) for each in past.todos] == [
        ("Todo bill", True, True, ()),
        ("Todo tax", True, False, (Category.TEST_REGRESSION,)),
    ]
    assert past == type(past).model_validate_json(past.model_dump_json())


def test_turns_before_the_next_verification_are_one_repair(store: Store) -> None:
    run = Carried(store, shop(items=[todo("tax", max_retries=5)]))
    run.tell("run_started")
    run.worked("tax")
    run.failed("tax")
    run.tell("run_resumed")  # the same turn, asked for once more
    run.worked("tax", success=False)
    run.worked("tax")
    run.passed("tax")

    (repair,) = store.past("here", run.now, 10).repairs

    assert (repair.strategy, repair.fixed, repair.attempts) == ("retry", True, 2)


def test_memory_learns_nothing_from_what_nobody_has_verified_or_worked_on(store: Store) -> None:
    risky = todo("risky", risk_level="HIGH")
    run = Carried(store, shop(items=[todo("notes", requires_testing=False), risky, todo("last", "risky")]))
    run.tell("run_started")
    run.worked("notes")
    (question,) = run.state.questions.values()
    run.tell("approval_given", approval_id=question.id, decision="reject", digest=question.digest)

    assert [each.life for each in run.state.todos.values()].count(TodoLife.DONE) == 1
    assert not [each for each in run.state.todos.values() if not each.life.is_final]
    assert store.past("here", run.now, 10).todos == ()


def test_the_strategy_of_a_repair_is_the_rule_that_fitted_its_branch(store: Store) -> None:
    run = Carried(store, shop(items=[todo("tax", max_retries=0)]))
    run.tell("run_started")
    run.worked("tax")
    run.failed("tax", "LINT_ERROR")
    run.tell("clock_ticked", after=9_000)

    (repair,) = store.past("here", run.now, 10).repairs

    assert (repair.strategy, repair.category, repair.fixed) == (
        "lint-fixed-first",
        Category.LINT_ERROR,
        False,
    )


def test_memory_is_that_of_here_first_and_never_of_the_future(store: Store) -> None:
    for place, name in enumerate(("elsewhere", "here", "elsewhere")):
        event = shop(items=[todo("tax")])
        event = event.model_copy(update={"policy": event.policy.model_copy(update={"fingerprint": name})})
        run = Carried(store, event, f"run-{place}")
        run.tell("run_started", after=place)
        run.worked("tax")
        run.passed("tax")

    def places(past: tuple[PastTodo, ...]) -> list[str]:
        return [each.fingerprint for each in past]

    assert places(store.past("here", run.now, 10).todos) == ["here", "elsewhere", "elsewhere"]
    assert places(store.past("here", run.now, 1).todos) == ["here"]
    assert places(store.past("here", run.now.timestamp() - 1, 10).todos) == ["here", "elsewhere"]
    assert store.past("here", 0.0, 10).todos == ()


def test_what_a_person_was_asked_is_kept_with_their_answer(store: Store) -> None:
    run = to_first_branch(store, auto_fix_mode=False)
    assert questions(store) == [("approve_branch", None, None)]
    run.tell("run_resumed")
    assert len(questions(store)) == 1, "asked again after a break, it is the same question"
    digest = run.state.questions["tax_branch_01"].digest
    run.tell("approval_given", approval_id="tax_branch_01", decision="approve", digest=digest, by="ann")
    assert questions(store) == [("approve_branch", "approve", "ann")]

    run.worked("tax_branch_01")
    run.passed("tax_branch_01")
    run.passed("tax")
    run.worked("bill")
    for _ in range(4):
        run.failed("bill", "ENVIRONMENT_ERROR")
    assert questions(store)[1:] == [("mend_environment", None, None)]
    (name,) = run.state.questions
    run.tell("question_answered", question_id=name, answer="give_up", by="bob")
    assert questions(store)[1:] == [("mend_environment", "give_up", "bob")]


def test_a_question_that_nobody_waits_for_any_more_is_withdrawn(store: Store) -> None:
    run = to_first_branch(store, auto_fix_mode=False)
    run.tell("stop_requested", by="ann")

    ((_, decision, _),) = questions(store)

    assert decision in (None, "withdrawn")
    assert store.runs()[0].closed is not None
    assert store.runs()[0].blocked_since is None
    with store.asking("test") as connection:
        assert telling.blocked_runs(connection) == (), "a run that is over is not blocked"


def test_one_approval_of_the_like_answers_the_others_too(store: Store) -> None:
    run = Carried(
        store, shop(items=[todo("a", max_retries=0), todo("b", max_retries=0)], auto_fix_mode=False)
    )
    run.tell("run_started")
    for name in ("a", "b"):
        run.worked(name)
        run.failed(name)
    first, second = sorted(run.state.questions)
    digest = run.state.questions[first].digest
    run.tell("approval_given", approval_id=first, decision="approve_similar", digest=digest, by="ann")

    answered = [decision for _, decision, _ in questions(store)]

    assert answered[0] == "approve_similar"
    assert answered[1] == (None if second in run.state.questions else "approved_as_similar")


def test_the_artifact_log_has_every_turn_and_every_verification(store: Store) -> None:
    run = Carried(store, shop())
    run.tell("run_started")
    run.worked("tax", new_files=("shop/tax.py",), tokens=1200, duration_ms=5)
    run.failed("tax", touched_files=["shop/prices.py", "shop/tax.py"])
    run.worked("tax", success=False)

    with store.asking("test") as connection:
        found = telling.artifacts(connection, ["run-1"])

    assert [(each.n, each.todo_id, each.turn, each.source, each.success) for each in found] == [
        (2, "tax", 1, "work", True),
        (3, "tax", 1, "verification", False),
        (4, "tax", 2, "work", False),
    ]
    assert (found[0].files, found[0].new_files, found[0].tokens) == (
        ("shop/prices.py",),
        ("shop/tax.py",),
        1200,
    )
    again = Carried(store, shop(at=START + timedelta(days=1)), "run-2")
    again.tell("run_started")
    again.worked("tax")
    with store.asking("test") as connection:
        both = telling.artifacts(connection, [each.run_id for each in store.runs()])
    assert [each.run_id for each in both] == ["run-2", "run-1", "run-1", "run-1"], "in the order asked for"
    assert (found[1].files, found[1].diff_hash) == (("shop/prices.py", "shop/tax.py"), "sha256:2")


def test_every_failure_of_a_verification_is_kept_and_one_decides(store: Store) -> None:
    run = Carried(store, shop())
    run.tell("run_started")
    run.worked("tax")
    worse = {"category": "IMPORT_ERROR", "signature": "c1", "stack_trace_head": "No module\0 named x"}
    less = {"category": "LINT_ERROR", "signature": "c2"}
    run.failed("tax", failure_evidence=worse, failures=[less])

    with store.asking("test") as connection:
        seen = telling.seen(connection, "c1")
        assert telling.signatures(connection) == ("c1", "c2")

    assert seen is not None
    assert (seen.category, seen.times, seen.todos) == ("IMPORT_ERROR", 1, ("tax",))
    assert seen.head == "No module\ufffd named x", "text that every database can hold"
    run.worked("tax")
    run.passed("tax")
    assert store.past("here", run.now, 5).todos[0].categories == (Category.IMPORT_ERROR,)


def test_what_repaired_a_failure_is_told_by_role(store: Store) -> None:
    run = to_first_branch(store)
    run.worked("tax_branch_01")
    run.passed("tax_branch_01")
    run.passed("tax")

    with store.asking("test") as connection:
        seen = telling.seen(connection, "a1b2c3d4e5f6")

    assert seen is not None
    assert seen.times == 3
    assert [(each.role, each.fixed, each.tried) for each in seen.repairs] == [
        ("coder", 1, 1),
        ("coder", 0, 2),
    ]
    assert [each.branch_id for each in seen.branches] == ["tax_branch_01"]
