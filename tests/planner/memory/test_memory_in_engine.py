"""Effects of memory on the engine: it may change order and role or add a recipe, never a verdict."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from engine_telling import START, Told, todo
from memory_samples import HERE, past_todo, repair

from planner.memory import task_kind, text_of
from planner.model.actions import Implement, Verify
from planner.model.events import Verified
from planner.model.past import PastRecords
from planner.model.plan import Todo
from planner.model.taxonomy import Category, Role
from planner.testing import sample_failure, simulate_failure

PARSER, LEXER = todo("t1", title="Add a parser"), todo("t2", title="Add colours to the lexer")
FAILURE = sample_failure(PARSER, Category.TEST_TIMEOUT, "too slow")


YESTERDAY = START - timedelta(days=1)


def past_repairs(role: Role, fixed: bool, number: int) -> Any:
    about = {"task_kind": task_kind(PARSER), "text": text_of(PARSER, FAILURE)}
    return (repair(role, fixed, of=FAILURE, at=YESTERDAY, **about),) * number


def past_todos(about: Todo, well: bool, number: int, *categories: Category) -> Any:
    return (past_todo(about.title, well, at=YESTERDAY, categories=categories),) * number


def test_of_equal_priority_the_todo_with_past_success_starts_first() -> None:
    memory = PastRecords(fingerprint=HERE, todos=past_todos(PARSER, False, 4) + past_todos(LEXER, True, 4))
    assert Told(PARSER, LEXER, memory=memory).started == ["t2", "t1"]
    urgent = PARSER.model_copy(update={"priority": -1})
    assert Told(urgent, LEXER, memory=memory).started == ["t1", "t2"]
    assert Told(PARSER, LEXER).started == ["t1", "t2"]


def branch_of(memory: PastRecords, about: Todo) -> tuple[Role, str]:
    """Return the role that works on the branch of a failed todo, and the reasons of all actions."""
    run = Told(about, memory=memory)
    run.works()
    run.tell(Verified(at=run.now, outcome=simulate_failure(about, Category.TEST_TIMEOUT, "too slow")))
    (work,) = run.last_of(Implement)
    assert work.parent_id == "t1"
    return work.role, "\n".join(action.because for action in run.last)


def test_a_branch_goes_to_the_role_that_memory_recommends_with_a_reason() -> None:
    memory = PastRecords(
        fingerprint=HERE, repairs=past_repairs(Role.DEBUGGER, True, 9) + past_repairs(Role.TESTER, False, 3)
    )
    opinionated = todo("t1", title=PARSER.title, failure_routing={"timeout": "tester"})
    role, said = branch_of(memory, PARSER)
    obeyed, unsaid = branch_of(memory, opinionated)
    assert role is Role.DEBUGGER
    assert "memory: 12 of TEST_TIMEOUT; debugger fixed 9 of 9, tester 0 of 3" in said
    assert obeyed is Role.TESTER
    assert "memory" not in unsaid


def test_a_recipe_that_would_have_found_past_failures_is_requested_first() -> None:
    memory = PastRecords(fingerprint=HERE, todos=past_todos(PARSER, False, 4, Category.LINT_ERROR))
    run = Told(PARSER, memory=memory)
    run.works()
    (verify,) = run.last_of(Verify)
    assert verify.recipe == "python-quick"
    assert "python-quick first: of 4 like this 4 met COMPILATION_ERROR or LINT_ERROR" in verify.because
