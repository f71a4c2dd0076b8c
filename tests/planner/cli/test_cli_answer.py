"""`planner answer`, `approve`, `reject`, `modify`: a decision is recorded, or refused in one line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from planner_command import Command, done, failed, with_test


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a_branch_01", "--by", "Ada"), "approved: a_branch_01 (Ada)"),
        (("a",), "approved: a_branch_01 (ada)"),  # by its todo, and with the login name
        (("a", "--similar"), "approved, with all of its class: a_branch_01 (ada)"),
    ],
)
def test_an_approved_branch_is_worked_on(asking: Command, words: tuple[str, ...], said: str):
    ran = asking("approve", "plan.yaml", *words)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == f"{said}\nnext: planner next plan.yaml\n"
    now = asked(asking)
    assert (now["a"]["action"], now["a"]["todo_id"]) == ("implement", "a_branch_01")
    assert now["b"]["action"] == "ask_human"


def test_a_branch_that_waits_for_approval_can_be_read_and_is_no_unknown_todo(asking: Command):
    ran = asking("next", "plan.yaml", "--brief", "a_branch_01")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith("# Repair `a`: ")
    assert "(branch `a_branch_01`)" in ran.out
    assert "Read it: planner next plan.yaml --brief a_branch_01" in asking("next").out
    ran = asking("status", "plan.yaml", "a_branch_01")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == "planner: a_branch_01 waits for a person; planner next shows the question\n"


def test_a_rejected_branch_asks_how_to_continue(asking: Command):
    asking("reject", "plan.yaml", "a", "--because", "too early")
    now = asked(asking)["a"]
    assert (now["kind"], now["rule"]) == ("review", "branch-rejected")
    assert "planner answer plan.yaml a retry # or give_up, stop" in asking("next", "plan.yaml").out


def test_what_a_given_up_todo_skips_is_counted(command: Command):
    command.plan(with_test("a"), with_test("c", dependencies=["a"]), metadata={"auto_fix_mode": False})
    command.outcomes(failed("a"))
    command("reject", "plan.yaml", "a")
    command("answer", "plan.yaml", "a", "give_up")
    assert command("next").out.splitlines()[0].endswith("0 of 2 todos done, 1 given up, 1 skipped")


def test_a_branch_can_be_approved_with_changes(asking: Command):
    told = "Look at the clock."
    words = ("--role", "tester", "--instructions", told, "--allow", "shop/a.py")
    ran = asking("modify", "plan.yaml", "a", *words, "--attempts", "1")
    assert ran.out.startswith("approved with changes: a_branch_01")
    now = asked(asking)["a"]
    assert (now["role"], now["bounds"]["allowed_files"]) == ("tester", ["shop/a.py"])
    assert told in asking("next", "plan.yaml", "--brief", "a").out
    assert "attempt 1 of 1" in asking("next", "plan.yaml").out


def test_files_beyond_the_proposal_are_wrong_usage(command: Command):
    command.plan(with_test("a", allowed_files=["shop/**"]), metadata={"auto_fix_mode": False})
    command.outcomes(failed("a"))
    ran = command("modify", "plan.yaml", "a", "--allow", "other/**")
    assert (ran.status, ran.out) == (2, "")
    assert "'other/**' is not within the proposed files" in ran.err


def test_an_approval_may_name_the_digest_of_the_question(asking: Command):
    digest = asked(asking)["a"]["digest"]
    assert asking("approve", "plan.yaml", "a", "--digest", digest).status == 0


@pytest.fixture
def manual(command: Command) -> Command:
    """Return the command with a plan whose todo has a manual question."""
    command.ask("chart", "Does the chart look right?")
    return command


def answers(command: Command) -> list[dict[str, Any]]:
    return json.loads((command.folder / ".planverify/answers.json").read_text())["answers"]


@pytest.mark.parametrize(
    ("said", "answer", "note"),
    [("yes", "yes", None), (" Yes ", "yes", None), ("No", "no", None), ("too dark", "no", "too dark")],
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


def test_bytes_of_an_answer_that_cannot_be_decoded_are_replaced(manual: Command):
    ran = manual("answer", "plan.yaml", "chart", "too dark\udcff", "--by", "\udcff")
    assert (ran.status, [each["note"] for each in answers(manual)]) == (0, ["too dark\ufffd"])
    assert manual("history", "shop\udcff").err.startswith("planner: shop\ufffd: there is no such file")


def test_an_answer_after_a_run_makes_its_verdict_out_of_date(manual: Command):
    passed = done("chart")
    passed["checks"].append({"id": "manual[0]", "kind": "manual", "verdict": "passed"})
    manual.outcomes(passed)
    assert "completed" in manual("next", "plan.yaml").out
    manual("answer", "plan.yaml", "chart", "too dark")
    shown = manual("next", "plan.yaml").out
    assert "! answered since the run: chart" in shown
    assert "plan.yaml::chart" in shown


def test_of_several_questions_the_answered_one_is_named(command: Command):
    command.ask("chart", "Is it readable?", "Is it short?")
    shown = command("next", "plan.yaml").out
    assert "answer planner answer plan.yaml chart yes --check 'manual[1]' # or" in shown
    assert command("answer", "plan.yaml", "chart", "yes").status == 2
    left = command("answer", "plan.yaml", "chart", "yes", "--check", "manual[0]").out
    assert "still open: manual[1] Is it short?" in left
    assert command("answer", "plan.yaml", "chart", "yes").status == 0


def test_an_empty_answer_is_no_answer(manual: Command):
    ran = manual("answer", "plan.yaml", "chart", " ")
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
    ran = command("answer", "plan.yaml", "a", said)
    assert ran.status == 0, ran.err
    assert command("next", "plan.yaml", "--json").json["state"] == state
    assert command("status", "plan.yaml", "--json").json["todos"][0]["state"] == life
    if said.startswith("Try"):
        assert ran.out.startswith(f"a: retry with the advice '{said}' (")
        assert said in command("next", "plan.yaml", "--brief", "a").out


def test_a_stopped_plan_still_shows_its_failures(command: Command):
    command.plan(with_test("a"), metadata={"max_branch_depth": 0})
    command.outcomes(failed("a"))
    command("answer", "plan.yaml", "a", "stop")
    shown = command("next", "plan.yaml").out
    assert "halted" in shown.splitlines()[0]
    assert "[stopped-by-person]" in shown
    assert "failed tests/test_a.py::test_it" in shown
    assert "says   AssertionError: assert 1 == 2" in shown


def test_a_failing_verification_does_not_replace_the_approval_of_a_start(command: Command):
    command.plan(with_test("a", risk_level="HIGH", max_retries=1))
    assert "a:start" in command("next", "plan.yaml").out
    command.outcomes(failed("a"))
    after = command("next", "plan.yaml")
    assert (after.status, "a:start" in after.out, "retry" in after.out) == (11, True, False), after.out
    assert command("approve", "plan.yaml", "a:start").status == 0
    assert command("next", "plan.yaml").status == 0


def test_an_approval_after_an_in_place_edit_belongs_to_the_same_run(command: Command):
    path = command.plan(with_test("slow", status="claimed"), with_test("price", status="claimed"))
    command.outcomes(failed("slow", "TEST_TIMEOUT"), failed("price", signature="b" * 12))
    command("next", "plan.yaml", "--in-place")
    assert "price_branch_01" in path.read_text()
    assert "timeout_seconds: 600" not in path.read_text()
    assert command("approve", "plan.yaml", "slow:edits:1").status == 0
    command("next", "plan.yaml", "--in-place")
    assert "timeout_seconds: 600" in path.read_text()
    assert [each.name for each in (command.folder / ".planverify/logs").iterdir()] == ["shop.jsonl"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("answer plan.yaml a yes", "a"),
        ("answer plan.yaml aa yes", "there is no todo 'aa' in the plan; did you mean 'a'?"),
        ("answer plan.yaml a", "Missing argument"),
        ("approve plan.yaml a_branch_02", "did you mean 'a_branch_01'"),
        ("approve plan.yaml a --digest sha256:0", "sha256:0"),
        ("reject plan.yaml nothing", "there is no such request for approval"),
        ("modify plan.yaml a", "no change is given; use --role"),
        ("modify plan.yaml a --role king", "role"),
        ("modify plan.yaml a --attempts 0", "--attempts"),
    ],
)
def test_a_refused_answer_changes_nothing(asking: Command, words: str, said: str):
    before = asked(asking)
    ran = asking(*words.split())
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
    assert asked(asking) == before


def test_an_answer_that_cannot_be_stored_is_an_error(asking: Command):
    (asking.folder / ".planverify/logs").write_text("a file where a folder should be")
    ran = asking("approve", "plan.yaml", "a")
    assert (ran.status, ran.out) == (4, "")
    assert ran.err.count("\n") == 1
