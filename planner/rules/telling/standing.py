"""Where a run, or one of its todos, stands, and what it waits for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from planner.model.life import PlanState, TodoLife
from planner.rules.telling.of_moves import blockers, waits_for
from planner.rules.telling.sentences import (
    EVERYBODY,
    Sentence,
    because,
    choices,
    counted,
    listed,
    quoted,
    sentence,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from planner.rules.run_view import RunView, TodoView

_MOST_QUESTIONS = 20


def run_stands(run: RunView) -> Iterator[Sentence]:
    """Where the whole run stands: its state, its todos by theirs, and the questions that are open."""
    stopped = run.stopped if run.plan_state is PlanState.HALTED else None
    if stopped is None:
        yield sentence(_PLANS[run.plan_state], *EVERYBODY)
    else:
        text = f"{_PLANS[run.plan_state]}{because(stopped)}"
        yield sentence(text, *EVERYBODY, rule=stopped.rule)
    todos = run.todos
    lives = Counter(record.life for record in todos.values() if not record.is_branch)
    if lives:
        yield sentence(
            f"Of {counted(lives.total(), 'todo')}, "
            + listed(f"{count} {_verb(run, life, count)} {_SHORT[life]}" for life, count in _ordered(lives))
        )
    branches = Counter(record.life for record in todos.values() if record.is_branch)
    if branches:
        said = listed(f"{count} {_SHORT[life]}" for life, count in _ordered(branches))
        verb = "was" if branches.total() == 1 else "were"
        yield sentence(f"{counted(branches.total(), 'branch')} {verb} made: {said}")
    if run.plan_state.is_final:
        return
    for question_id in _asked(run)[:_MOST_QUESTIONS]:
        yield _question(run, question_id)
    if len(run.questions) > _MOST_QUESTIONS:
        yield sentence(f"{len(run.questions) - _MOST_QUESTIONS} more questions are open")


def todo_stands(run: RunView, todo_id: str) -> Iterator[Sentence]:
    """Where one todo stands and what it waits for. Raises ``KeyError`` for one that the run has not."""
    record = run.records[todo_id]
    life = TodoLife.BLOCKED if todo_id in run.blocked() else record.life
    if run.plan_state.is_final and not life.is_final:
        yield sentence(f"{todo_id} was {_SHORT[life]} when the run ended", todo_id)
    else:
        yield sentence(f"{todo_id} {_TODOS[life](run, todo_id, record)}", todo_id)
    made = [run.records[name] for name in record.branches if name in run.records]
    for name, branch in zip(record.branches, made, strict=False):
        yield sentence(
            f"The branch {name} is {_SHORT[branch.life]}, with {_attempts(branch)}", todo_id, name
        )
    if run.plan_state.is_final:
        return
    for question_id in _asked(run):
        question = run.questions[question_id]
        if (
            question.todo_id == todo_id
            or question.todo_id in record.branches
            or question_id in record.branches
        ):
            yield _question(run, question_id)


def _question(run: RunView, question_id: str) -> Sentence:
    question = run.questions[question_id]
    whom = f" about {question.todo_id}" if question.todo_id else ""
    text = (
        f"A person has to answer {question_id}{whom}: '{quoted(question.text)}'{choices(question.options)}"
    )
    return sentence(text, *filter(None, (question.todo_id, question_id)))


def _asked(run: RunView) -> list[str]:
    """The questions that are open, in the order in which they were asked."""
    return sorted(run.questions, key=lambda name: (run.questions[name].asked, name))


def _attempts(branch: TodoView) -> str:
    allowed = branch.todo.max_debug_attempts
    of = "" if allowed is None else f" of {allowed}"
    return f"{branch.attempts}{of} failed attempts"


def _pending(run: RunView, todo_id: str, record: TodoView) -> str:
    waiting = waits_for(run, record)
    if waiting:
        return f"has not been begun: it waits for {listed(waiting)}"
    if run.started is None:
        return "has not been begun, as the run was not started"
    if record.question is not None:
        return "has not been begun: a person has to agree"
    holders = sorted(name for name, held in run.held.items() if todo_id in held)
    if holders:
        return f"has not been begun: it waits for files that {listed(holders)} may write"
    return "has not been begun: it waits for a free place"


def _blocked(run: RunView, todo_id: str, record: TodoView) -> str:
    return f"is blocked by {listed(blockers(run, todo_id)) or 'something that failed'}"


def _active(run: RunView, todo_id: str, record: TodoView) -> str:
    if record.children:
        left = [name for name in record.children if run.records[name].life is not TodoLife.DONE]
        return f"waits for {counted(len(left), 'todo')} of its sub-plan: {listed(left)}"
    if record.todo.has_sub_plan:
        return "waits for its sub-plan to be loaded"
    return f"is worked on (turn {record.turns}), and waits for the end of that work"


def _test_failed(run: RunView, todo_id: str, record: TodoView) -> str:
    why = "" if record.failure is None else f" ({record.failure.category})"
    alive = [
        name for name in record.branches if name in run.records and not run.records[name].life.is_final
    ]
    if alive:
        return f"is red{why}, and waits for its repair in {listed(alive)}"
    if record.question is not None or any(each.todo_id == todo_id for each in run.questions.values()):
        return f"is red{why}, and waits for a person"
    waiting = waits_for(run, record)
    if waiting:
        return f"is red{why}, and waits for {listed(waiting)}"
    return f"is red{why}, and waits for a free place for its repair"


def _testing(run: RunView, todo_id: str, record: TodoView) -> str:
    if record.question is not None:
        return "could not be judged, and waits for a person"
    return "is being verified, and waits for the verdict"


def _done(run: RunView, todo_id: str, record: TodoView) -> str:
    return (
        "is done: its criteria hold" if record.verified else "is done, though no verification has proved it"
    )


def _failed(run: RunView, todo_id: str, record: TodoView) -> str:
    why = "" if record.failure is None else f" ({record.failure.category})"
    return f"has failed for good{why}"


def _skipped(run: RunView, todo_id: str, record: TodoView) -> str:
    cause = listed(blockers(run, todo_id)) or "something that failed"
    return f"is skipped, as {cause} stands in the way for good"


_TODOS: Mapping[TodoLife, Callable[[RunView, str, TodoView], str]] = {
    TodoLife.PENDING: _pending,
    TodoLife.BLOCKED: _blocked,
    TodoLife.ACTIVE: _active,
    TodoLife.TESTING: _testing,
    TodoLife.TEST_FAILED: _test_failed,
    TodoLife.DONE: _done,
    TodoLife.FAILED: _failed,
    TodoLife.SKIPPED: _skipped,
    TodoLife.HALTED: lambda run, todo_id, record: "is halted: it has brought everything to a stop",
}

_SHORT: Mapping[TodoLife, str] = {
    TodoLife.PENDING: "not begun",
    TodoLife.BLOCKED: "blocked",
    TodoLife.ACTIVE: "worked on",
    TodoLife.TESTING: "being verified",
    TodoLife.TEST_FAILED: "red",
    TodoLife.DONE: "done",
    TodoLife.FAILED: "failed for good",
    TodoLife.SKIPPED: "skipped",
    TodoLife.HALTED: "halted",
}

_PLANS: Mapping[PlanState, str] = {
    PlanState.CREATED: "The plan was made",
    PlanState.VALIDATING: "The plan is being validated",
    PlanState.REJECTED: "The plan was rejected: it is not fit to be carried out",
    PlanState.READY: "The plan is ready, and waits for the run to be started",
    PlanState.EXECUTING: "The run is under way",
    PlanState.REVISING: "The run is under way, and a revision of the plan is being made",
    PlanState.AWAITING_REVIEW: "Nothing goes on until a person has answered",
    PlanState.COMPLETED: "The plan is completed",
    PlanState.HALTED: "The run was halted",
}


def _verb(run: RunView, life: TodoLife, count: int) -> str:
    """Of a run that is over, what has not come to its end is past, too."""
    if life is TodoLife.FAILED:
        return "has" if count == 1 else "have"
    if run.plan_state.is_final and not life.is_final:
        return "was" if count == 1 else "were"
    return "is" if count == 1 else "are"


def _ordered(lives: Counter[TodoLife]) -> list[tuple[TodoLife, int]]:
    return [(life, lives[life]) for life in TodoLife if lives[life]]
