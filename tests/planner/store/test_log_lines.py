"""The lines of a log: events and actions come back as they were written, and no changed byte is missed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from planner.model import events
from planner.model.actions import Action, AskHuman, Brief, Implement, PublishPlan, QuestionKind, Verify
from planner.model.base import Value
from planner.model.edits import AddContext, AddDependency
from planner.model.plan import Plan, Todo
from planner.model.taxonomy import Role
from planner.store.chain import GENESIS, check_link, digest_of
from planner.store.lines import (
    action_text,
    calls_for,
    encode,
    event_text,
    logged_actions,
    parse_event,
    parse_line,
)

AT = "2026-11-21T10:00:00Z"
PLAN = {
    "todo_list_id": "shop",
    "x-team": {"x-lead": ["ann", 1.5, None], "name": "é\u2028"},
    "items": [
        {
            "id": "t1",
            "title": "Prices ☃",
            "x-ticket": 7,
            "acceptance_criteria": {
                "tests": [{"cmd": "pytest tests/test_t1.py", "x-note": "slow"}],
                "expected_artifacts": ["out.json", {"path": "o.json", "schema": "s.json"}],
                "metrics": [{"name": "rows", "operator": ">=", "value": 10}],
            },
            "failure_routing": {"timeout": "tester"},
            "metadata-free": None,
        }
    ],
    "metadata": {"halt": {"identical_failures": None}, "budget": {"wall_seconds": 10}},
}
del PLAN["items"][0]["metadata-free"]  # type: ignore[index]
FAILURE = {
    "category": "TEST_REGRESSION",
    "signature": "a1",
    "confidence": 0.97,
    "stack_trace_head": "assert 'ü' == 'u'",
    "runner_up": None,
    "tests": ["tests/test_t1.py::test_it"],
}
OUTCOME = {
    "todo_id": "t1",
    "success": False,
    "tests_passed": False,
    "recorded": {"rows": [250, 1e300, "x-1"]},
    "failure_evidence": FAILURE,
    "failures": [FAILURE],
    "checks": [{"id": "tests[0]", "kind": "test", "verdict": "failed", "reason": None}],
}
EVENTS: list[dict[str, Any]] = [
    {"event": "plan_submitted", "at": AT, "plan": PLAN, "digest": "sha256:1", "problems": ["a", "b"]},
    {"event": "run_started", "at": "2026-11-21T15:30:00.25+05:30"},
    {"event": "work_started", "at": AT, "todo_id": "t1"},
    {"event": "work_finished", "at": AT, "step_id": "t1", "tokens_used": 3, "message": 'ü "x-" \\ \x7f'},
    {"event": "verified", "at": AT, "outcome": OUTCOME, "context": {"todo_id": "t1"}},
    {"event": "approval_given", "at": AT, "branch_id": "b", "decision": "modify", "digest": "d",
     "changes": {"role": "tester", "allowed_files": []}},
    {"event": "question_answered", "at": AT, "question_id": "q", "answer": "retry", "by": "Zoë"},
    {"event": "budget_spent", "at": AT, "tokens": 10**15},
    {"event": "clock_ticked", "at": "0001-01-01T00:00:00Z"},
    {"event": "conflict_found", "at": AT, "todo_ids": ["a", "b"], "files": ["ä.py"]},
    {"event": "sub_plan_loaded", "at": AT, "todo_id": "t1", "plan": PLAN, "digest": "x"},
    {"event": "plan_revised", "at": AT, "edits": [
        {"edit": "add_context", "todo_id": "t1", "text": "é", "rule": "person", "because": "asked"},
        {"edit": "add_todo_before", "todo_id": "t1", "todo": PLAN["items"][0], "rule": "r", "because": "b"},
    ]},
    {"event": "run_resumed", "at": AT},
    {"event": "stop_requested", "at": AT, "because": "enough"},
]  # fmt: skip
ACTIONS: tuple[Action, ...] = (
    Implement(
        seq=1, rule="ready-todo", because="it is ready", todo_id="t1", role=Role.CODER, attempt=1,
        facts={"files": ("ä.py",), "share": 0.5, "none": None}, brief=Brief(title="Prices ☃"),
    ),
    Verify(seq=2, rule="done-means-verified", because="…", todo_ids=("t1",)),
    AskHuman(
        seq=3, rule="r", because="b", question_id="q", kind=QuestionKind.APPROVE_BRANCH, todo_id="t1",
        question="?", options=("approve",), branch=Todo(id="b", title="B", extensions={"x-a": [1]}),
    ),
    PublishPlan(
        seq=4, rule="r", because="b", version=2, digest="d", previous="p",
        edits=(AddContext(todo_id="t1", text="é", rule="r", because="b"),
               AddDependency(todo_id="t1", on="b", rule="r", because="b")),
    ),
)  # fmt: skip


def decode(text: str, n: int, previous: str) -> events.Event:
    check_link(text, n, previous)
    return parse_line(text, n)


def made(given: dict[str, Any]) -> events.Event:
    return parse_event(json.dumps(given))


def test_each_event_of_the_protocol_is_among_the_examples() -> None:
    known = {each.model_fields["event"].default for each in get_args(get_args(events.Event)[0])}

    assert {each["event"] for each in EVENTS} == known


@pytest.mark.parametrize("given", EVENTS, ids=lambda given: given["event"])
def test_an_event_is_read_as_it_was_written(given: dict[str, Any]) -> None:
    event = made(given)
    line, _ = encode(7, event, ACTIONS, "before")
    read = decode(line, 7, "before")

    assert read == event
    assert event_text(read) == event_text(event)
    assert line.isascii()
    assert "\n" not in line


def test_keys_of_an_author_come_back_wherever_they_stand() -> None:
    plan = decode(encode(0, made(EVENTS[0]), (), GENESIS)[0], 0, GENESIS).plan  # type: ignore[union-attr]

    assert plan.extensions == {"x-team": PLAN["x-team"]}
    assert plan.items[0].extensions == {"x-ticket": 7}
    assert plan.items[0].acceptance_criteria.tests[0].extensions == {"x-note": "slow"}
    assert plan.metadata.halt.identical_failures is None, "null is not the same as nothing"


def test_actions_are_read_as_they_were_written() -> None:
    line, _ = encode(0, made(EVENTS[1]), ACTIONS, GENESIS)
    held = [json.loads(each) for each in logged_actions(line)]

    assert [each["action"] for each in held] == ["implement", "verify", "ask_human", "publish_plan"]
    assert TypeAdapter(tuple[Action, ...]).validate_python(_unloosened(held)) == ACTIONS
    assert calls_for(line, ACTIONS)


def test_what_is_left_out_where_it_is_absent_is_absent_where_it_is_read() -> None:
    """No null is written: so null must be what a value that is read has where nothing is said."""
    for model in _held_models():
        if issubclass(model, Value) and model.model_config.get("extra") == "ignore":
            for name, field in model.model_fields.items():
                if type(None) in get_args(field.annotation):
                    assert field.is_required() or field.default is None, f"{model.__name__}.{name}"


def _held_models() -> set[type[Value]]:
    found: set[type[Value]] = set()
    waiting: list[Any] = [*get_args(get_args(events.Event)[0]), *get_args(get_args(Action)[0])]
    while waiting:
        each = waiting.pop()
        if isinstance(each, type) and issubclass(each, Value):
            if each not in found:
                found.add(each)
                waiting += [field.annotation for field in each.model_fields.values()]
        else:
            waiting += [part for part in get_args(each) if not isinstance(part, str)]
    return found


def _unloosened(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    actions[2]["branch"]["extensions"] = {"x-a": actions[2]["branch"].pop("x-a")}
    return actions


def test_a_digest_that_was_made_anew_fits_and_the_actions_tell() -> None:
    line, _ = encode(1, made(EVENTS[1]), ACTIONS[:1], GENESIS)
    body = line[: line.rfind(',"digest":')].replace('"role":"coder"', '"role":"tester"')
    forged = f'{body},"digest":"{digest_of(body, GENESIS)}"}}'

    assert decode(forged, 1, GENESIS) == made(EVENTS[1])
    assert not calls_for(forged, ACTIONS[:1])


def test_keys_of_an_author_may_not_be_nested_without_end() -> None:
    edit = {"edit": "add_context", "todo_id": "t", "text": "", "rule": "r", "because": "b"}
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    text = json.dumps({"event": "plan_revised", "at": AT, "edits": [{**edit, "x-deep": deep}]})

    with pytest.raises(ValueError, match="recursion limit"):
        parse_event(text)
    assert parse_event(text.replace("[" * 299, "[").replace("]" * 299, "]")).event == "plan_revised"
    plan = {"todo_list_id": "p", "items": [], "x-share": float("nan")}
    with pytest.raises(ValueError, match="not JSON compliant"):
        made({"event": "sub_plan_loaded", "at": AT, "todo_id": "t", "plan": plan})


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
LOOSE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(
    at=st.datetimes(timezones=st.just(UTC)),
    text=TEXTS,
    loose=LOOSE,
    numbers=st.lists(FLOATS, max_size=3),
)
def test_whatever_an_event_holds_comes_back(
    at: datetime, text: str, loose: Any, numbers: list[float]
) -> None:
    todo = Todo(id="t", title="T", intent=text, extensions={"x-any": loose})
    submitted = events.PlanSubmitted(at=at, plan=Plan(todo_list_id="p", items=(todo,)), digest=text)
    outcome = {**OUTCOME, "recorded": {text: numbers}, "title": text}
    verified = events.Verified.model_validate({"at": at, "outcome": outcome})
    for event in (submitted, verified):
        line, _ = encode(3, event, ACTIONS, "p")
        read = decode(line, 3, "p")
        assert read == event
        assert encode(3, read, ACTIONS, "p")[0] == line
        assert action_text(ACTIONS[0]) in line
