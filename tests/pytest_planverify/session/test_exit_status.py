"""The exit status (the most serious condition of the outcomes in scope), and requests to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import weakref

import pytest

from planner.model.evidence import AuditEvent
from planner.model.outcome import Check, Failure, Outcome
from planner.model.plan import Todo, TodoStatus
from planner.model.taxonomy import Category
from planner.model.verdicts import CheckKind, TodoState, Verdict
from pytest_planverify.options import Scope
from pytest_planverify.session.exit_status import ExitStatus, counting, exit_status
from pytest_planverify.session.interrupts import PATIENCE, raise_if_requested, stop_in_order

DONE, FAILED, TESTING = TodoState.DONE, TodoState.TEST_FAILED, TodoState.TESTING
BLOCKED, PENDING = TodoState.BLOCKED, TodoState.PENDING


def outcome(state: TodoState, *verdicts: str, todo_id: str = "t") -> Outcome:
    checks = [Check(id=str(n), kind=CheckKind.TEST, verdict=Verdict(v)) for n, v in enumerate(verdicts)]
    facts = dict.fromkeys(("success", "tests_passed"), state is DONE)
    return Outcome(todo_id=todo_id, plan="p", state=state, checks=tuple(checks), **facts)


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        ([], ExitStatus.NOTHING_TO_VERIFY),
        ([outcome(PENDING, "not_run")], ExitStatus.NOTHING_TO_VERIFY),
        ([outcome(DONE, "passed"), outcome(PENDING, "not_run")], ExitStatus.ACCEPTED),
        ([outcome(TESTING, "passed", "needs_human")], ExitStatus.HUMAN_NEEDED),
        ([outcome(TESTING, "stale")], ExitStatus.HUMAN_NEEDED),
        ([outcome(TESTING, "needs_human", "inconclusive")], ExitStatus.INCONCLUSIVE),
        ([outcome(FAILED, "failed", "inconclusive", "needs_human")], ExitStatus.FAILED),
        ([outcome(FAILED, "flaky")], ExitStatus.FAILED),
        ([outcome(BLOCKED, "blocked"), outcome(DONE, "passed")], ExitStatus.FAILED),
    ],
)
def test_exit_status_is_the_first_condition_that_applies(outcomes: list[Outcome], status: ExitStatus):
    assert exit_status(outcomes) is status
    assert exit_status(outcomes, interrupted=True) is ExitStatus.INTERRUPTED


def test_todos_added_only_as_dependencies_do_not_count():
    outcomes = [outcome(DONE, "passed", todo_id="a"), outcome(FAILED, "failed", todo_id="b")]
    todos = {("p", name): Todo(id=name, title=name) for name in ("a", "b")}
    for scope in ("all", "ready"):
        assert [each.todo_id for each in counting(outcomes, todos, scope, {("p", "b")})] == ["a"]


@pytest.mark.parametrize(("scope", "kept"), [("all", "abcd"), ("claimed", "a"), ("ready", "abc")])
def test_scope_selects_the_todos_that_count_and_violations_count_in_any(scope: Scope, kept: str):
    items = [
        Todo(id="a", title="a", status=TodoStatus.CLAIMED, dependencies=["d"]),
        Todo(id="b", title="b"),
        Todo(id="c", title="c", dependencies=["a"]),
        Todo(id="d", title="d", dependencies=["b"]),
    ]
    todos: dict[tuple[str | None, str], Todo] = {("p", item.id): item for item in items}
    states = {"a": DONE, "b": FAILED, "c": FAILED, "d": BLOCKED}
    outcomes = [outcome(state, todo_id=todo_id) for todo_id, state in states.items()]

    assert [each.todo_id for each in counting(outcomes, todos, scope)] == list(kept)
    for guard, status in (("sandbox", ExitStatus.VIOLATION), ("budget", ExitStatus.BUDGET_EXCEEDED)):
        assert exit_status(counting([*outcomes, guarded("d", guard)], todos, scope)) is status


def guarded(todo_id: str, guard: str, *, state: TodoState = FAILED) -> Outcome:
    verdict = Verdict.BLOCKED if state is BLOCKED else Verdict.FAILED
    check = Check(id=guard, kind=CheckKind.GUARD, verdict=verdict)
    return outcome(state, "passed", todo_id=todo_id).model_copy(update={"checks": (check,)})


def denied(verdict: Verdict) -> Outcome:
    event = AuditEvent(event="connect", target="example.org:443", denied=True)
    check = Check(id="tests[0]", kind=CheckKind.TEST, verdict=verdict, events=(event,))
    return outcome(FAILED).model_copy(update={"checks": (check,)})


def diagnosed(category: Category) -> Outcome:
    return outcome(FAILED, "failed").model_copy(update={"failures": (Failure(category=category),)})


@pytest.mark.parametrize(
    ("one", "status"),
    [
        (guarded("a", "hygiene"), ExitStatus.VIOLATION),
        (guarded("a", "allowlist", state=BLOCKED), ExitStatus.VIOLATION),
        (guarded("a", "budget"), ExitStatus.BUDGET_EXCEEDED),
        (denied(Verdict.FAILED), ExitStatus.VIOLATION),
        (denied(Verdict.NOT_RUN), ExitStatus.VIOLATION),
        (diagnosed(Category.SANDBOX_VIOLATION), ExitStatus.VIOLATION),
        (diagnosed(Category.BUDGET_EXCEEDED), ExitStatus.BUDGET_EXCEEDED),
    ],
)
def test_violation_precedes_budget_and_budget_precedes_failures(one: Outcome, status: ExitStatus):
    others = [outcome(FAILED, "failed"), outcome(TESTING, "inconclusive"), guarded("b", "budget")]
    assert exit_status([outcome(FAILED, "failed"), one]) is status
    assert exit_status([*others, one]) is max(status, ExitStatus.BUDGET_EXCEEDED)
    assert exit_status([one], interrupted=True) is ExitStatus.INTERRUPTED


class _Referent:
    pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stop_request_is_raised_once_and_again_after_many_repeats(number: signal.Signals):
    before = signal.getsignal(number)
    with stop_in_order():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        for _ in range(PATIENCE - 1):
            os.kill(os.getpid(), number)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_swallowed_stop_request_is_raised_at_the_next_check(monkeypatch: pytest.MonkeyPatch):
    swallowed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: swallowed.append(found.exc_type))
    referent = _Referent()
    reference = weakref.ref(referent, lambda _: os.kill(os.getpid(), signal.SIGINT))

    with stop_in_order():
        raise_if_requested()
        del referent  # the handler runs in the callback; its exception is only printed
        assert reference() is None
        with pytest.raises(KeyboardInterrupt):
            raise_if_requested()
    assert swallowed == [KeyboardInterrupt]


def test_exit_statuses_of_children_are_kept_where_their_signal_was_inherited_as_ignored():
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with stop_in_order():
            assert subprocess.run(["false"]).returncode == 1
        assert signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGCHLD, before)
