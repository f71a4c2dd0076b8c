"""The mistakes of a driver, and the whims of its surroundings: what the engine is told unasked."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from engine_inventing import START, digest_of, invent_outcome, invent_plan, passing, with_all_checks
from engine_remembering import invent_submission

from planner.model.actions import Cancel, Implement
from planner.model.edits import AddContext, AddDependency, Edit, NarrowFiles, RaiseLimit
from planner.model.events import (
    ApprovalGiven,
    BudgetSpent,
    ClockTicked,
    ConflictFound,
    Decision,
    Event,
    PlanRevised,
    QuestionAnswered,
    RunStarted,
    StopRequested,
    SubPlanLoaded,
    Verified,
    WorkFinished,
    WorkStarted,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine_simulating import Simulation

_YEAR = 365 * 24 * 3600


def mistake(run: Simulation) -> None:
    """Any of them."""
    run.random.choice(MISTAKES)(run)


def begin_anew(run: Simulation) -> None:
    """All that was asked for is lost."""
    run.forget()


def say_again(run: Simulation) -> None:
    """Something that was told before, now or with its old time."""
    event, _ = run.random.choice(run.history)
    run.tell(event.model_copy(update={"at": run.later()}) if run.random.random() < 0.7 else event)


def leave_lying(run: Simulation) -> None:
    """Nobody answers for one of the things that were asked for, however much time passes."""
    due = (*run.work, *run.checks)
    if due:
        run.lying.add(run.random.choice(due))


def name_nobody(run: Simulation) -> None:
    """A todo that there is not."""
    run.tell(
        run.random.choice(
            (
                WorkFinished(at=run.later(), todo_id="nobody"),
                WorkStarted(at=run.later(), todo_id="t1/nobody"),
                Verified(at=run.later(), outcome=passing("nobody", run.random)),
                ConflictFound(at=run.later(), todo_ids=("nobody", "t0")),
                SubPlanLoaded(at=run.later(), todo_id="nobody", problems=("no",)),
                BudgetSpent(at=run.later(), todo_id="nobody", tokens=1),
            )
        )
    )


def work_unasked(run: Simulation) -> None:
    """Somebody has worked on any todo, wherever it stands."""
    name = _any_todo(run)
    begins = run.random.random() < 0.3
    run.tell(
        WorkStarted(at=run.later(), todo_id=name) if begins else WorkFinished(at=run.later(), todo_id=name)
    )


def verify_unasked(run: Simulation) -> None:
    """Any todo was verified, wherever it stands."""
    name = _any_todo(run)
    good = run.random.random() < 0.7
    outcome = passing(name, run.random) if good else invent_outcome(run.random, name, run.mood)
    if name in run.state.records:
        outcome = with_all_checks(outcome, run.state.records[name].todo)
    run.tell(Verified(at=run.later(), outcome=outcome))


def verify_what_was(run: Simulation) -> None:
    """The criteria of another version of the plan hold."""
    name = run.random.choice(tuple(run.checks)) if run.checks else _any_todo(run)
    was = digest_of(run.random)
    event = Verified(at=run.later(), outcome=passing(name, run.random), plan_digest=was)
    _is_refused(run, event, "the criteria of another version of the plan count")


def answer_what_was_asked_before(run: Simulation) -> None:
    """The answer to an action comes after the next one for the same todo."""
    asked = (*run.work.values(), *run.checks.values())
    if not asked:
        return
    action = run.random.choice(asked)
    answers = run.random.randrange(action.seq)
    if isinstance(action, Implement):
        event = WorkFinished(at=run.later(), todo_id=action.todo_id, answers=answers)
    else:
        event = Verified(at=run.later(), outcome=passing(action.todo_ids[0], run.random), answers=answers)
    if run.tell(event):  # its turn was over by then: what the late answer says of its cost counts, no more
        told = run.history[-1][1]
        assert any(isinstance(each, Cancel) for each in told), "the answer to an earlier action counts"


def decide_something_else(run: Simulation) -> None:
    """A person agrees to what was not proposed."""
    name = run.random.choice((*run.asked, "t0_branch_01", "nobody"))
    digest = digest_of(run.random)
    decision = run.random.choice(tuple(Decision))
    event = ApprovalGiven(at=run.later(), approval_id=name, decision=decision, digest=digest)
    _is_refused(run, event, "what was not proposed is approved")


def answer_something_else(run: Simulation) -> None:
    """A person answers what was not asked, or in words that were not offered."""
    name = run.random.choice((*run.asked, "nobody"))
    answer = run.random.choice(("retry", "perhaps", "answered")) if name == "nobody" else "perhaps"
    event = QuestionAnswered(at=run.later(), question_id=name, answer=answer)
    _is_refused(run, event, "an answer that was not offered counts")


def let_time_pass(run: Simulation) -> None:
    seconds = run.random.choice((1, 30, 700, 90_000, _YEAR, 10 * _YEAR))
    run.tell(ClockTicked(at=run.later(seconds)), due=True)


def turn_time_back(run: Simulation) -> None:
    """The clock of the driver is wrong, by years or by hours."""
    run.tell(ClockTicked(at=START - timedelta(days=run.random.choice((0, 1, 4000)))), due=True)


def spend(run: Simulation) -> None:
    amount = run.random.choice((0, 1, 1_000))
    run.tell(
        BudgetSpent(
            at=run.later(), tokens=amount, cycles=amount % 7, new_files=run.random.choice((0, 0, 1))
        ),
        due=True,
    )


def collide(run: Simulation) -> None:
    """What was done side by side does not fit together."""
    names = sorted(run.state.todos)
    if len(names) > 1:
        run.tell(ConflictFound(at=run.later(), todo_ids=tuple(run.random.sample(names, 2))))


def revise(run: Simulation) -> None:
    """A person edits the plan, with more or less sense."""
    name = _any_todo(run)
    within, _, todo_id = name.rpartition("/")
    said: dict[str, Any] = {"rule": "by-hand", "because": "somebody thinks so"}
    edits: tuple[Edit, ...] = (
        AddContext(**said, todo_id=todo_id, text="Mind the gap."),
        NarrowFiles(**said, todo_id=todo_id, allowed_files=("src/a/x.py",)),
        AddDependency(**said, todo_id=todo_id, on="t0"),
        RaiseLimit(**said, todo_id=todo_id, check_id="tests[0]", from_seconds=20, to_seconds=40),
    )
    edit = run.random.choice(edits)
    if isinstance(edit, NarrowFiles) and (name in run.work or name in run.checks):
        edit = edits[0]  # what is under way was told its files already
    run.tell(PlanRevised(at=run.later(), within=within, edits=(edit,)))


def load_unasked(run: Simulation) -> None:
    name = _any_todo(run)
    plan = invent_plan(run.random, "unasked", size=2, level=3)
    run.tell(SubPlanLoaded(at=run.later(), todo_id=name, plan=plan))


def start_again(run: Simulation) -> None:
    again = run.random.choice((RunStarted(at=run.later()), invent_submission(run.random, sizes=(1,))))
    _is_refused(run, again, "a run begins once")


def stop(run: Simulation) -> None:
    """A person has had enough; rarely, so that other runs come to their ends."""
    if run.random.random() < 0.1:
        run.tell(StopRequested(at=run.later(), by="somebody"), due=True)


MISTAKES: tuple[Callable[[Simulation], None], ...] = (
    begin_anew,
    begin_anew,
    say_again,
    say_again,
    leave_lying,
    name_nobody,
    work_unasked,
    verify_unasked,
    verify_what_was,
    answer_what_was_asked_before,
    decide_something_else,
    answer_something_else,
    let_time_pass,
    turn_time_back,
    spend,
    collide,
    revise,
    load_unasked,
    start_again,
    stop,
)


def _is_refused(run: Simulation, event: Event, otherwise: str) -> None:
    """It must be, unless the time that it tells has brought everything to a stop."""
    assert not run.tell(event) or run.is_over, otherwise


def _any_todo(run: Simulation) -> str:
    return run.random.choice((*sorted(run.state.todos), "nobody"))
