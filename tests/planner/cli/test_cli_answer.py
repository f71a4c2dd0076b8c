"""`planner answer`, `approve`, `reject`, `modify`: a decision is recorded, or refused in one line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from planner_command import Command, Ran, failed, undecided, with_test


@pytest.fixture
def command(command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("LOGNAME", "ada")
    return command


@pytest.fixture
def asking(command: Command) -> Command:
    """Return the command with a plan that asks before each branch and has two red todos."""
    command.plan(with_test("a"), with_test("b"), metadata={"auto_fix_mode": False})
    command.outcomes(failed("a"), failed("b", "TEST_TIMEOUT", signature="b" * 12))
    return command


def asked(command: Command) -> dict[str, dict[str, Any]]:
    """Return the outstanding actions by todo; a branch is listed under the todo that it repairs."""
    told = command("next", "plan.yaml", "--json", "--full").json
    return {each.get("parent_id") or each["todo_id"]: each for each in told.get("actions", [])}


# --- branches --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "by"),
    [
        (("plan.yaml", "a_branch_01", "--by", "Ada"), "Ada"),
        (("plan.yaml", "a", "--by", "Ada"), "Ada"),
        (("a",), "ada"),  # the default plan and the login name
    ],
)
def test_an_approved_branch_is_worked_on(asking: Command, words: tuple[str, ...], by: str):
    ran = asking("approve", *words)

    assert (ran.status, ran.err) == (0, "")
    assert ran.out == f"approved: a_branch_01 ({by})\nnext: planner next plan.yaml\n"
    now = asked(asking)
    assert (now["a"]["action"], now["a"]["todo_id"]) == ("implement", "a_branch_01")
    assert now["b"]["action"] == "ask_human"


def test_a_rejected_branch_asks_how_to_continue(asking: Command):
    asking("reject", "a", "--because", "too early")

    now = asked(asking)["a"]
    assert (now["kind"], now["rule"]) == ("review", "branch-rejected")
    assert "planner answer plan.yaml a retry # or give_up, stop" in asking("next", "plan.yaml").out


def test_a_branch_can_be_approved_with_changes(asking: Command):
    words = ("--role", "tester", "--instructions", "Look at the clock.", "--allow", "shop/a.py")

    ran = asking("modify", "a", *words, "--attempts", "1")

    assert ran.out.startswith("approved with changes: a_branch_01")
    now = asked(asking)["a"]
    assert (now["role"], now["bounds"]["allowed_files"]) == ("tester", ["shop/a.py"])
    assert "Look at the clock." in asking("next", "plan.yaml", "--brief", "a").out
    assert "attempt 1 of 1" in asking("next", "plan.yaml").out


def test_an_approval_can_cover_its_class(asking: Command):
    ran = asking("approve", "a", "--similar")

    assert ran.out.startswith("approved, with all of its class: a_branch_01")


def test_an_approval_must_name_the_digest_of_the_question(asking: Command):
    digest = asked(asking)["a"]["digest"]

    refused = asking("approve", "a", "--digest", "sha256:0")

    assert refused.status == 4
    assert refused.err.count("\n") == 1
    assert asking("approve", "a", "--digest", digest).status == 0


# --- questions -------------------------------------------------------------------------------------------

QUESTION = {"question": "Does the chart look right?"}


@pytest.fixture
def manual(command: Command) -> Command:
    """Return the command with a plan whose todo has a manual question."""
    item = with_test("chart")
    item["acceptance_criteria"]["manual"] = [QUESTION]
    command.plan(item)
    open_ = undecided("chart", "passed")
    check = {"id": "manual[0]", "kind": "manual", "verdict": "needs_human", "title": QUESTION["question"]}
    command.outcomes({**open_, "checks": [*open_["checks"], check]})
    return command


def answers(command: Command) -> list[dict[str, Any]]:
    return json.loads((command.folder / ".planverify/answers.json").read_text())["answers"]


@pytest.mark.parametrize(
    ("said", "answer", "note"), [("yes", "yes", None), ("No", "no", None), ("too dark", "no", "too dark")]
)
def test_a_manual_criterion_is_answered_for_the_next_run(
    manual: Command, said: str, answer: str, note: str | None
):
    assert "planner answer plan.yaml chart yes # or no, or a reason" in manual("next", "plan.yaml").out

    ran = manual("answer", "plan.yaml", "chart", said, "--by", "Ada")

    assert ran.status == 0
    assert ran.out.startswith(f"chart: Does the chart look right? {answer} (Ada)\n")
    (kept,) = answers(manual)
    assert (kept["todo_id"], kept["check_id"], kept["by"]) == ("chart", "manual[0]", "Ada")
    assert (kept["answer"], kept.get("note")) == (answer, note)
    (now,) = manual("next", "plan.yaml", "--json").json["actions"]
    assert (now["action"], now["rule"]) == ("verify", "answered-is-verified-again")


def test_the_last_answer_counts(manual: Command):
    for said in ("no", "yes"):
        manual("answer", "chart", said)

    assert [each["answer"] for each in answers(manual)] == ["yes"]


def test_an_empty_answer_is_no_answer(manual: Command):
    ran = manual("answer", "chart", " ")

    assert (ran.status, ran.out) == (2, "")
    assert "the answer is empty" in ran.err
    assert not (manual.folder / ".planverify/answers.json").exists()


@pytest.mark.parametrize(
    ("said", "state", "life"),
    [
        ("yes", "executing", "test_failed"),
        ("retry", "executing", "test_failed"),
        ("Try the other parser.", "executing", "test_failed"),
        ("stop", "halted", "halted"),
        ("no", "halted", "failed"),
    ],
)
def test_a_review_is_answered_by_an_option_by_yes_or_no_or_by_advice(
    command: Command, said: str, state: str, life: str
):
    command.plan(with_test("a"), metadata={"max_branch_depth": 0})  # no repairs: a person decides
    command.outcomes(failed("a"))

    ran = command("answer", "a", said)

    assert ran.status == 0, ran.err
    assert command("next", "plan.yaml", "--json").json["state"] == state
    assert command("status", "plan.yaml", "--json").json["todos"][0]["state"] == life
    if said.startswith("Try"):
        assert said in command("next", "plan.yaml", "--brief", "a").out


# --- refusals --------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "nothing is asked": (("answer", "a", "yes"), "a"),
    "no such todo": (("answer", "aa", "yes"), "there is no todo 'aa' in the plan; did you mean 'a'?"),
    "no answer": (("answer", "a"), "write [PLAN] TODO yes|no|TEXT"),
    "too many words": (("answer", "plan.yaml", "a", "yes", "please"), "write [PLAN] TODO yes|no|TEXT"),
    "no such branch": (("approve", "a_branch_02"), "did you mean 'a_branch_01'"),
    "no such branch to reject": (("reject", "nothing"), "there is no such request for approval"),
    "no changes": (("modify", "a"), "no change is given; use --role"),
    "no such role": (("modify", "a", "--role", "king"), "role"),
    "no attempts": (("modify", "a", "--attempts", "0"), "--attempts"),
}


@pytest.mark.parametrize("row", REFUSED)
def test_a_refused_answer_changes_nothing(asking: Command, row: str):
    words, said = REFUSED[row]
    before = asked(asking)

    ran: Ran = asking(*words)

    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
    assert asked(asking) == before


def test_an_answer_that_cannot_be_stored_is_an_error(asking: Command):
    (asking.folder / ".planverify/logs").write_text("a file where a folder should be")

    ran = asking("approve", "a")

    assert (ran.status, ran.out) == (4, "")
    assert ran.err.count("\n") == 1
