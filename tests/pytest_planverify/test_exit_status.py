"""The exit status: the most serious of what the outcomes that count say."""

from __future__ import annotations

import pytest

from planner.model.outcome import Check, CheckKind, Outcome, TodoState, Verdict
from planner.model.plan import Todo
from pytest_planverify.supervision.exit_status import ExitStatus, counting, exit_status

DONE, FAILED, TESTING = TodoState.DONE, TodoState.TEST_FAILED, TodoState.TESTING
BLOCKED, PENDING = TodoState.BLOCKED, TodoState.PENDING


def outcome(state: TodoState, *verdicts: str, todo_id: str = "t") -> Outcome:
    checks = tuple(
        Check(id=str(n), kind=CheckKind.TEST, verdict=Verdict(v)) for n, v in enumerate(verdicts)
    )
    done = state is DONE
    return Outcome(todo_id=todo_id, plan="p", state=state, success=done, tests_passed=done, checks=checks)


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        ([], ExitStatus.NOTHING_TO_VERIFY),
        ([outcome(PENDING)], ExitStatus.NOTHING_TO_VERIFY),
        ([outcome(PENDING, "not_run")], ExitStatus.NOTHING_TO_VERIFY),
        ([outcome(DONE)], ExitStatus.NOTHING_TO_VERIFY),
        ([outcome(DONE, "passed")], ExitStatus.ACCEPTED),
        ([outcome(DONE, "passed"), outcome(PENDING, "not_run")], ExitStatus.ACCEPTED),
        ([outcome(TESTING, "passed", "needs_human")], ExitStatus.HUMAN_NEEDED),
        ([outcome(TESTING, "stale")], ExitStatus.HUMAN_NEEDED),
        ([outcome(TESTING, "needs_human", "inconclusive")], ExitStatus.INCONCLUSIVE),
        ([outcome(TESTING, "inconclusive"), outcome(DONE, "passed")], ExitStatus.INCONCLUSIVE),
        ([outcome(FAILED, "failed", "inconclusive", "needs_human")], ExitStatus.FAILED),
        ([outcome(FAILED, "flaky")], ExitStatus.FAILED),
        ([outcome(BLOCKED, "blocked"), outcome(DONE, "passed")], ExitStatus.FAILED),
    ],
)
def test_the_first_that_applies(outcomes: list[Outcome], status: ExitStatus):
    assert exit_status(outcomes) is status
    assert exit_status(outcomes, interrupted=True) is ExitStatus.INTERRUPTED


@pytest.mark.parametrize(
    ("scope", "kept"), [("all", ["a", "b", "c", "d"]), ("claimed", ["a"]), ("ready", ["a", "b", "c"])]
)
def test_the_scope_says_which_todos_count(scope, kept: list[str]):
    todos = {
        ("p", "a"): Todo(id="a", title="a", status="claimed", dependencies=["d"]),
        ("p", "b"): Todo(id="b", title="b"),
        ("p", "c"): Todo(id="c", title="c", dependencies=["a"]),
        ("p", "d"): Todo(id="d", title="d", dependencies=["b"]),
    }
    states = {"a": DONE, "b": FAILED, "c": FAILED, "d": BLOCKED}
    outcomes = [outcome(state, todo_id=todo_id) for todo_id, state in states.items()]

    assert [each.todo_id for each in counting(outcomes, todos, scope)] == kept
