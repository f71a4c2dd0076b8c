"""From work to done: the testing loop, and what goes wrong around it; one test for each rule."""

from __future__ import annotations

from datetime import UTC, datetime

from engine_telling import Told, chain, todo

from planner.engine import start
from planner.model.actions import Cancel, Finish, Halt, Verify
from planner.model.events import BudgetSpent, ConflictFound, RunResumed, WorkStarted
from planner.model.taxonomy import Category
from planner.model.verdicts import Since, Verdict

# From work to done


def test_a_todo_is_active_while_it_is_worked_on_and_testing_while_it_is_verified():
    run = Told(todo())
    assert run.life() == "active"
    assert run.rules == ["ready-todo"]

    run.works()

    assert run.life() == "testing"
    assert run.verifying == ["t1"]
    assert run.rules == ["done-means-verified"]


def test_a_passing_verification_makes_it_done_and_completes_the_plan():
    run = Told(todo())

    run.is_done()

    assert run.life() == "done"
    assert run.record().verified
    assert run.state.plan_state == "completed"
    (end,) = run.last_of(Finish)
    assert (end.result, end.rule, end.because) == ("completed", "all-done", "all todos are done")
    assert run.state.stopped == end


def test_what_depends_on_a_done_todo_is_begun():
    run = Told(*chain())
    assert run.started == ["t1"]
    assert [run.life(name) for name in ("t2", "t3")] == ["pending", "pending"]

    run.is_done("t1")

    assert run.started == ["t2"]


def test_todos_without_dependencies_are_begun_together_in_the_order_of_priority():
    run = Told(todo("t1", priority=2), todo("t2"), todo("t3", priority=1), todo("t4"))

    assert run.started == ["t2", "t4", "t3", "t1"]


def test_no_more_todos_are_worked_on_than_there_are_jobs():
    run = Told(todo("t1"), todo("t2"), todo("t3"), run={"jobs": 2})
    assert run.started == ["t1", "t2"]

    run.is_done("t2")

    assert run.started == ["t3"]


def test_todos_whose_files_overlap_are_worked_on_one_after_the_other():
    run = Told(
        todo("t1", allowed_files=("src/**",)),
        todo("t2", allowed_files=("src/a.py",)),
        todo("t3", allowed_files=("docs/**",)),
    )
    assert run.started == ["t1", "t3"]

    run.is_done("t1")

    assert run.started == ["t2"]


def test_a_todo_that_needs_no_test_is_done_unverified_when_the_work_is_over():
    run = Told(todo(requires_testing=False))

    run.works()

    assert run.life() == "done"
    assert not run.record().verified
    assert run.verifying == []


def test_a_claimed_todo_is_verified_before_anybody_works_on_it():
    run = Told(todo(status="claimed"))

    assert run.started == []
    assert run.verifying == ["t1"]
    assert run.rules == ["claimed-is-verified"]
    assert run.life() == "testing"


def test_work_that_says_that_it_failed_gets_another_turn_while_there_are_retries():
    run = Told(todo(max_retries=1))

    run.works(success=False)

    assert run.started == ["t1"]
    assert run.life() == "active"
    assert run.record().retries == 1


def test_work_that_failed_for_good_is_verified_for_a_diagnosis():
    run = Told(todo(max_retries=0))

    run.works(success=False)

    assert run.verifying == ["t1"]


def test_failed_work_that_cannot_be_verified_fails_the_todo():
    run = Told(todo("t1", max_retries=0, requires_testing=False), todo("t2"))

    run.works("t1", success=False)

    assert run.life("t1") == "failed"


def test_a_pass_counts_though_nobody_has_asked_for_the_verification():
    run = Told(*chain())

    run.passes("t1")

    assert run.life("t1") == "done"
    assert [(each.todo_id, each.rule) for each in run.last_of(Cancel)] == [("t1", "verified-unasked")]


# What goes wrong around it


def test_a_driver_that_begins_anew_is_asked_again_for_all_that_is_open():
    run = Told(todo("t1"), todo("t2"), todo("t3"))
    run.works("t1")
    run.works("t2")
    run.says(Verdict.NEEDS_HUMAN, "t2")
    (question,) = run.questions
    seq = run.state.seq

    run.tell(RunResumed(at=run.now))

    assert run.started == ["t3"]
    assert run.verifying == ["t1"]
    assert [each.question_id for each in run.questions] == [question.question_id]
    assert run.rules == ["resumed", "resumed", "question-is-open"]
    assert [action.seq for action in run.last] == [seq + 1, seq + 2, seq + 3]


def test_work_that_does_not_fit_together_is_done_anew_behind_the_first():
    run = Told(todo("t1"), todo("t2", max_retries=1))
    run.works("t1")
    run.works("t2")

    run.tell(ConflictFound(at=run.now, todo_ids=("t1", "t2"), files=("a.py",)))
    assert [each.todo_id for each in run.last_of(Cancel)] == ["t2"]
    assert (run.life("t1"), run.life("t2")) == ("testing", "test_failed")
    assert run.started == []
    run.passes("t1")

    assert run.started == ["t2"]


def test_a_turn_of_work_that_takes_too_long_is_cancelled():
    run = Told(todo(timeout_seconds=60, max_retries=1))
    run.tell(WorkStarted(at=run.now, todo_id="t1"))
    run.waits(59)
    assert run.last == ()

    run.waits(2)

    assert [each.todo_id for each in run.last_of(Cancel)] == ["t1"]


def test_failures_that_are_older_than_the_work_are_set_apart_a_few_times_only():
    run = Told(todo("t1"), halt={"identical_failures": None})
    run.works("t1")
    for number in range(3):
        run.fails("t1", since=Since.PRE_EXISTING, signature=f"{number:012x}")
        older = next(name for name in run.state.todos if name.endswith(f"{number:012x}"))
        run.is_done(older)
        assert run.verifying == ["t1"]

    run.fails("t1", since=Since.PRE_EXISTING, signature="f" * 12)

    assert [each.rule for each in run.questions] == ["pre-existing-failure"]


def test_a_deeper_branch_for_a_flaky_test_needs_attempts_too():
    run = Told(todo("t1"), flaky_retry={"attempts": 0}, halt={"flaky_streak": None})
    run.is_red("t1")
    run.is_done("t1_branch_01")

    run.fails("t1", Category.FLAKY_TEST)

    assert [each.rule for each in run.questions] == ["attempts-used-up"]


def test_a_conflict_counts_as_an_attempt_of_a_branch():
    run = Told(todo("t1"), todo("t2"), max_debug_attempts=2)
    run.is_red("t1")

    run.tell(ConflictFound(at=run.now, todo_ids=("t2", "t1_branch_01"), files=("src/a.py",)))

    assert run.record("t1_branch_01").attempts == 1
    assert run.started == []
    run.is_done("t2")
    assert run.started == ["t1_branch_01"]


def test_a_conflict_without_retries_left_goes_to_a_person():
    run = Told(todo("t1"), todo("t2", max_retries=0))

    run.tell(ConflictFound(at=run.now, todo_ids=("t1", "t2"), files=("src/a.py", "src/b.py")))

    (question,) = run.questions
    assert (question.rule, question.todo_id) == ("conflict-is-done-anew", "t2")
    assert question.because == "its work does not fit that of t1 (src/a.py, src/b.py)"


def test_a_person_may_let_it_go_on_over_its_budget():
    run = Told(todo("t1"), todo("t2", dependencies=("t1",)), budget={"tokens": 9}, halt={"budget": "ask"})
    run.works("t1", tokens=10)
    run.passes("t1")
    assert run.started == []

    run.answers("go_on", run.asked())

    assert run.started == ["t2"]
    run.tell(BudgetSpent(at=run.now, tokens=10**9))
    assert not run.last_of(Halt)


def test_what_a_turn_has_cost_counts_even_if_it_comes_too_late():
    run = Told(todo("t1", timeout_seconds=60, max_retries=1))
    run.tell(WorkStarted(at=run.now, todo_id="t1"))
    run.now = run.now.replace(hour=12)

    run.works("t1", tokens=7, cycles=2)

    assert (run.state.spent.tokens, run.state.spent.cycles) == (7, 2)
    assert run.started == ["t1"]
    assert run.record("t1").retries == 1


def test_two_todos_whose_questions_are_open_wait_for_both():
    run = Told(todo("t1"), todo("t2"))
    for name in ("t1", "t2"):
        run.works(name)
        run.says(Verdict.NEEDS_HUMAN, name)

    assert run.state.plan_state == "awaiting_review"
    assert sorted(question.todo_id for question in run.state.questions.values()) == ["t1", "t2"]


def test_a_submission_can_be_told_as_an_event():
    state, actions = start(Told(todo("t1")).submission)

    assert (state.plan_state, actions, state.seq) == ("ready", (), 0)


def test_a_turn_that_the_budget_leaves_no_more_stops_it_also_when_a_violation_is_asked_about():
    run = Told(todo("t1"), todo("t2"), budget={"tokens": 10}, halt={"security": "ask"}, run={"jobs": 1})
    run.works("t1", tokens=10)

    run.fails("t1", Category.SANDBOX_VIOLATION)

    (halt,) = run.last_of(Halt)
    assert halt.rule == "halt-on-budget"
    assert halt.because == "the plan's budget leaves no further turn of work (tokens: 10 spent, 10 allowed)"


def test_files_that_were_found_to_collide_are_kept_apart_from_then_on():
    run = Told(
        todo("t1", allowed_files=("src/a.py",)),
        todo("t2", allowed_files=("src/b.py",), max_retries=1),
        todo("t3", allowed_files=("src/c.py",), dependencies=("t4",)),
        todo("t4"),
    )

    run.tell(ConflictFound(at=run.now, todo_ids=("t1", "t2"), files=("src/c.py",)))
    run.is_done("t4")

    assert run.started == []
    assert run.record("t1").files == ("src/a.py", "src/c.py")
    assert run.record("t2").files == ("src/b.py", "src/c.py")
    run.is_done("t1")
    assert run.started == ["t2"]
    run.is_done("t2")
    assert run.started == ["t3"]


def test_time_is_told_up_to_its_end():
    run = Told(todo("t1"), run={"environment_delay_seconds": 3600})
    run.now = datetime(9999, 12, 31, 23, 30, tzinfo=UTC)
    run.works()

    run.fails("t1", Category.ENVIRONMENT_ERROR)

    (action,) = run.last_of(Verify)
    assert action.not_before == "9999-12-31T23:59:59Z"
