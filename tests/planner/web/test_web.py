"""`planner serve`: pages require the token, and decisions are recorded as on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from planner_command import Command, failed, with_test

from planner.cli import exits
from planner.web.app import create_app

HOSTILE = "<script>alert(1)</script>\x1b[31m"


@pytest.fixture
def asking(command: Command, tmp_path: Path) -> Path:
    """Return the folder of a plan that asks before each branch; its red todo has a hostile title."""
    command.plan(with_test("a", title=HOSTILE), metadata={"auto_fix_mode": False})
    command.outcomes(failed("a"))
    return tmp_path


def client_of(root: Path) -> TestClient:
    app = create_app(root / "plan.yaml", root, "secret")
    client = TestClient(app, base_url="http://localhost")
    assert client.get("/?token=secret", follow_redirects=False).status_code == 303
    return client


@pytest.fixture
def client(asking: Path) -> TestClient:
    """Return a browser that is logged in to the server of that plan."""
    return client_of(asking)


def fields(text: str) -> dict[str, str]:
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', text))


def decide(client: TestClient, **given: Any) -> Response:
    """Send the form of the open question with these fields."""
    return client.post("/questions", data=fields(client.get("/questions").text) | given)


def test_pages_are_headed_by_the_name_of_the_program(client: TestClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(exits, "_program", ["planverify", ""])
    assert "<strong>planverify</strong>" in client.get("/").text


def test_pages_require_the_token(client: TestClient):
    stranger = TestClient(client.app, base_url="http://localhost")
    assert stranger.get("/").status_code == 401
    assert stranger.get("/?token=other").status_code == 401
    assert stranger.post("/questions").status_code == 401
    cookie = stranger.get("/?token=secret", follow_redirects=False).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie


def test_a_foreign_host_header_is_refused(client: TestClient):
    for name in ("evil.example", "[evil"):
        assert client.get("/", headers={"host": name}).status_code == 421


def test_foreign_scripts_are_escaped_and_forbidden_by_the_content_policy(client: TestClient):
    page = client.get("/questions")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;" in page.text
    assert "\x1b" not in page.text


@pytest.mark.parametrize("reason", ["the axis is cut", "yes", "stop"])
def test_each_manual_question_has_a_form_with_yes_and_no_for_any_reason(
    command: Command, tmp_path: Path, reason: str
):
    command.ask("chart", "Is it short?", "Is it right?")
    client = client_of(tmp_path)
    _, short, right = client.get("/questions").text.split("<form")

    assert "Is it short?" in short
    client.post("/questions", data=fields(short) | {"answer": "yes"})
    client.post("/questions", data=fields(right) | {"answer": "no", "because": reason})

    kept = json.loads((tmp_path / ".planverify/answers.json").read_text())["answers"]
    assert [(each["check_id"], each["answer"], each.get("note")) for each in kept] == [
        ("manual[0]", "yes", None),
        ("manual[1]", "no", reason),
    ]


@pytest.mark.parametrize(("score", "is_shown"), [(0.9, True), (0.0, False)])
def test_only_a_change_that_may_have_caused_the_failure_is_shown(
    client: TestClient, command: Command, score: float, is_shown: bool
):
    hunk = {"path": "shop.py", "line": 3, "text": "-old\n+new"}
    change = {"path": "shop.py", "line": 3, "score": score, "hunk": hunk}
    command.outcomes(failed("a", candidates=[change]))
    assert ("-old\n+new" in client.get("/questions").text) is is_shown


def test_a_form_without_its_csrf_token_records_nothing(client: TestClient):
    for form in ({"csrf": "other"}, {"because": "x" * 100_000}, {"x": ["1"] * 60}):
        assert decide(client, decision="approve", **form).status_code == 403
    assert "a_branch_01" in client.get("/questions").text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"decision": "approve"}, "approved: a_branch_01 (ada)"),
        ({"decision": "approve", "by": "Grace\x1b[31m Hopper"}, "approved: a_branch_01 (Grace Hopper)"),
        ({"decision": "approve_similar"}, "approved, with all of its class: a_branch_01 (ada)"),
        ({"decision": "reject", "because": "too early"}, "rejected: a_branch_01 (ada)"),
        ({"decision": "modify", "role": "tester"}, "approved with changes: a_branch_01 (ada)"),
        ({"decision": "modify"}, "Nothing was recorded"),
        ({"decision": "perhaps"}, "perhaps"),
        ({"decision": "modify", "max_debug_attempts": "abc"}, "max_debug_attempts: it must be a valid"),
    ],
)
def test_a_decision_from_a_form_is_recorded_like_one_from_the_command_or_refused(
    client: TestClient, given: dict[str, str], message: str
):
    answer = decide(client, **given)
    is_recorded = " a_branch_01 (" in message
    assert answer.status_code == (200 if is_recorded else 409)
    assert message in answer.text
    assert "pydantic" not in answer.text
    assert ("approve_similar" in client.get("/questions").text) is not is_recorded


def test_each_way_to_continue_is_a_button_that_takes_advice(client: TestClient):
    decide(client, decision="reject")
    page = client.get("/questions").text
    assert re.findall(r'name="answer" value="(\w+)".*>(.+)</button>', page) == [
        ("retry", "Retry"),
        ("give_up", "Give up"),
        ("stop", "Stop"),
    ]
    told = client.post("/questions", data=fields(page) | {"answer": "retry", "because": "look at it"})
    assert "a: retry with the advice &#39;look at it&#39;" in told.text


def test_a_second_decision_is_refused(client: TestClient):
    form = fields(client.get("/questions").text)
    client.post("/questions", data=form | {"decision": "reject"})
    second = client.post("/questions", data=form | {"decision": "approve"})
    assert second.status_code == 409
    assert "the question is closed: somebody has answered it" in second.text


def test_the_runs_page_shows_branches(client: TestClient):
    assert "There are no runs yet" in client.get("/").text
    decide(client, decision="approve")
    assert "a_branch_01" in client.get("/").text
    assert client.get("/favicon.ico").status_code == 200
