"""One cause gets one repair: todos that fail by nothing else wait for it, and a reason names it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from planner_command import Command, with_test
from planner_command import failed as red
from repair_samples import PLAN_ID, document, failure, outcome

from planner.model.decision import Decisions, Move
from planner.model.outcome import Cause, CauseTodo, Location, Outcome
from planner.model.plan import Plan, Policy, Todo
from planner.model.taxonomy import Category, Owner
from planner.rules.cause_words import consequences, is_worth_telling, place
from planner.rules.deciding import decide, todos_to_explain

ONE, OTHER = "111111111111", "222222222222"


def cause(*todos: str, signature: str = ONE, **more: Any) -> Cause:
    fields: dict[str, Any] = {
        "rank": 1,
        "signatures": (signature,),
        "category": Category.COMPILATION_ERROR,
        "headline": "SyntaxError: expected ':'",
        "location": Location(path="shop/tax.py", line=3),
        "todos": tuple(CauseTodo(todo_id=todo, plan=PLAN_ID, tests=2) for todo in todos),
        "tests": 2 * len(todos),
    }
    return Cause(**(fields | more))


def failed(todo: str, *signatures: str, owner: Owner = Owner.PRODUCT) -> Outcome:
    first, *others = (failure(signature=each, owner=owner) for each in signatures or (ONE,))
    return outcome(first, *others, todo_id=todo)


def decided(
    *outcomes: Outcome, causes: tuple[Cause, ...], files: dict[str, str] | None = None
) -> Decisions:
    plan, found = asked(*outcomes, causes=causes, files=files)
    return decide(plan, found)


def asked(*outcomes: Outcome, causes: tuple[Cause, ...], files: dict[str, str] | None = None) -> Any:
    todos = [
        Todo.model_validate(
            {
                "id": each.todo_id,
                "title": each.todo_id,
                "status": "claimed",
                "acceptance_criteria": {"tests": [{"cmd": "pytest tests/test_cart.py -q"}]},
                **({"allowed_files": (files[each.todo_id],)} if files else {}),
            }
        )
        for each in outcomes
    ]
    plan = Plan(todo_list_id=PLAN_ID, metadata=Policy(auto_fix_mode=True), items=tuple(todos))
    return plan, document(*outcomes).model_copy(update={"causes": causes})


def moves(decisions: Decisions) -> dict[str, Move]:
    return {repair.todo_id: repair.move for repair in decisions.repairs}


def test_todos_that_fail_by_one_cause_get_one_branch() -> None:
    decisions = decided(*(failed(todo) for todo in "abc"), causes=(cause("a", "b", "c"),))
    assert moves(decisions) == {"a": Move.BRANCH, "b": Move.WAIT, "c": Move.WAIT}
    waiting = decisions.repairs[1]
    assert waiting.rule == "shared-cause"
    assert waiting.because == "it fails by the same cause as 'a', whose repair goes first"


def test_no_instructions_are_asked_for_a_todo_that_waits() -> None:
    plan, found = asked(failed("a"), failed("b"), causes=(cause("a", "b"),))
    assert todos_to_explain(plan, found) == ("a",)


def test_outcomes_without_causes_are_decided_as_ever() -> None:
    assert set(moves(decided(failed("a"), failed("b"), causes=())).values()) == {Move.BRANCH}


def test_a_todo_that_fails_by_more_gets_its_branch_and_says_what_it_shares() -> None:
    decisions = decided(failed("a"), failed("b", ONE, OTHER), causes=(cause("a", "b"),))
    assert moves(decisions) == {"a": Move.BRANCH, "b": Move.BRANCH}
    assert decisions.repairs[1].because == (
        "its acceptance criteria failed; what decides has the same cause as the failure of 'a'"
    )


def test_the_todo_that_may_change_the_file_leads() -> None:
    files = {"a": "docs/**", "b": "shop/**"}
    decisions = decided(failed("a"), failed("b"), causes=(cause("a", "b"),), files=files)
    assert moves(decisions) == {"a": Move.WAIT, "b": Move.BRANCH}


def test_what_nobody_repairs_is_not_waited_for() -> None:
    nobody = failed("a", owner=Owner.ENVIRONMENT)
    decisions = decided(nobody, failed("b"), causes=(cause("a", "b"),))
    assert moves(decisions) == {"a": Move.RETRY_LATER, "b": Move.BRANCH}


def test_a_cause_of_another_todo_keeps_nothing_waiting() -> None:
    decisions = decided(failed("a"), failed("b"), causes=(cause("a", "c"),))
    assert set(moves(decisions).values()) == {Move.BRANCH}


def test_a_cause_is_told_by_its_consequences_and_its_place() -> None:
    many = cause(*(f"t{number}" for number in range(12)), tests=1_700, files=1)
    assert consequences(many) == "1700 tests and 1 test file in 12 todos"
    assert consequences(cause("a", tests=0)) == "in 'a'"
    assert place(many) == "shop/tax.py:3"
    assert place(cause("a", location=Location(path="shop"))) == "shop"
    assert place(cause("a", location=None)) == ""


def test_one_cause_in_one_todo_is_not_worth_telling() -> None:
    assert not is_worth_telling([cause("a")])
    assert is_worth_telling([cause("a", "b")])
    assert is_worth_telling([cause("a"), cause("b")])


@pytest.mark.parametrize("count", [1, 2])
def test_status_says_what_to_mend_first_where_the_todos_do_not_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    command = Command(tmp_path, monkeypatch, capsys)
    command.plan(with_test("a"), with_test("b"))
    causes = [cause("a", "b"), cause("b", signature=OTHER, rank=2)][:count]
    command.outcomes(red("a"), red("b"), causes=[json.loads(each.model_dump_json()) for each in causes])
    told = " ".join(command("status", "plan.yaml").out.split())
    other = ", before 1 other cause" if count == 2 else ""
    assert f"fix first COMPILATION_ERROR shop/tax.py:3, 4 tests in 2 todos{other}:" in told
    assert "SyntaxError: expected ':'" in told


def test_status_of_one_cause_in_one_todo_says_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = Command(tmp_path, monkeypatch, capsys)
    command.plan(with_test("a"))
    command.outcomes(red("a"), causes=[json.loads(cause("a").model_dump_json())])
    assert "fix first" not in command("status", "plan.yaml").out
