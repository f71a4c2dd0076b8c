"""`planner next`: short, always with a next command, and the same output when repeated."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planner_command import Command, Ran, done, failed, pending, undecided, with_test

from planner.errors import RefusedEvent
from planner.model.events import RunStarted
from planner.model.plan import Plan
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import CheckKind, Since, TodoState, Verdict
from planner.planfile import latest_outcomes
from planner.planfile.latest_outcomes import ChangedFiles
from planner.store import plan_run
from planner.store.session import RunSession, RunSettings

DOCUMENTED = {0, 1, 4, 10, 11, 12, 13}
"""The exit statuses of the help page, except 2 for wrong usage."""


@pytest.fixture
def shop(command: Command) -> Command:
    """Return the command with three todos: one done, one red, and one that depends on the red one."""
    command.plan(with_test("a"), with_test("b"), with_test("c", dependencies=["b"]))
    command.outcomes(done("a"), failed("b", location=PLACE), pending("c"))
    return command


PLACE = {"path": "shop/b.py", "line": 3, "function": "total"}
LATER = {"run_id": "later"}


def commands_of(ran: Ran) -> list[str]:
    """Return the commands that the screen offers."""
    found = [line.strip() for line in ran.out.splitlines()]
    return [line for line in found if "planner " in line or "pytest --planverify" in line]


def shown_of(command: Command, outcome: dict[str, Any]) -> str:
    """Return what `planner next` shows of a plan with a single todo, after this outcome."""
    command.plan(with_test("a"))
    command.outcomes(outcome)
    return command("next", "plan.yaml").out


CHANGED = "changed shop/a.py:131 (+1 -1) in cut"


@pytest.mark.parametrize(
    ("score", "location", "place"),
    [
        (0.6, {"path": "shop/c.py", "line": 7}, f"shop/c.py:7; {CHANGED}"),
        (0.6, {"path": "shop/a.py", "line": 133, "function": "cut"}, CHANGED),
        (0.6, {"path": "shop/a.py", "line": 131}, CHANGED),
        (0.6, {"path": "shop/a.py", "line": 131, "function": "<module>"}, CHANGED),
        (0.6, {"path": "shop/a.py"}, CHANGED),
        (0.6, {"path": "shop/a.py", "line": 7}, f"shop/a.py:7; {CHANGED}"),
        (0.05, {"path": "shop/c.py", "line": 7}, "shop/c.py:7"),
    ],
)
def test_only_a_change_that_may_be_the_cause_is_shown_beside_the_location(
    command: Command, score: float, location: dict[str, Any], place: str
):
    command.plan(with_test("a"))
    hunk = {"path": "shop/a.py", "line": 131, "added": 1, "removed": 1, "function": "cut"}
    changed = {"path": "shop/a.py", "line": 130, "hunk": hunk, "score": score}
    command.outcomes(failed("a", location=location, candidates=[changed]))
    assert f"  where  {place}\n" in command("next", "plan.yaml").out
    assert f"  where    {place}\n" in command("status", "plan.yaml", "a").out
    brief = command("next", "plan.yaml", "--brief", "a_branch_01").out
    assert ("shop/a.py" in brief) == (score > 0.5)


@pytest.mark.parametrize("count", [1, 25])
def test_next_shows_at_most_eight_lines_per_todo(command: Command, count: int):
    names = [f"t{number}" for number in range(count)]
    long = {"stack_trace_head": "long\n" * 500, "suggestion": "edit " * 500}
    command.plan(*map(with_test, names), metadata={"max_concurrent_branches": 100})
    places = {name: {**PLACE, "path": f"{name}/a.py"} for name in names}
    command.outcomes(
        *(failed(name, signature=f"{name:0>12}", location=places[name], **long) for name in names)
    )

    ran = command("next", "plan.yaml")

    paragraphs = [each.splitlines() for each in ran.out.split("\n\n") if each.lstrip().startswith("✗")]
    assert len(paragraphs) == min(count, 20)
    assert max(map(len, paragraphs)) <= 8


def test_next_shows_one_failing_todo_in_at_most_600_tokens(shop: Command):
    for words in ((), ("--json",)):
        assert len(shop("next", "plan.yaml", *words).out) / 4 <= 600


def test_todos_with_the_same_cause_are_listed_with_the_first(command: Command):
    command.plan(with_test("a"), with_test("b"))
    command.outcomes(failed("a"), failed("b"))
    assert "; also b, with the same cause\n" in command("next", "plan.yaml").out


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        (
            failed("a", tests=[f"tests/test_a.py::test_{name}" for name in "abc"]),
            "tests/test_a.py::test_a (+2)",
        ),
        (
            failed("a", tests=[], top_failing_tests=[], check_id="tests[0]"),
            "tests[0]: pytest tests/test_a.py",
        ),
    ],
    ids=["tests", "command"],
)
def test_the_first_failed_test_is_shown_with_their_count_or_else_the_command(
    command: Command, outcome: dict[str, Any], shown: str
):
    assert f"  failed {shown}\n" in shown_of(command, outcome)


def test_a_failure_is_shown_whose_repair_begins_with_another_step(command: Command):
    command.plan(with_test("a"))
    for says in ("once", "again"):
        facts = {"stack_trace_head": says, "signature": f"{says:0>12}"}
        command.outcomes(failed("a", "SPEC_MISMATCH", **facts), run={"run_id": says})
        lines = command("next", "plan.yaml").out.splitlines()
        assert lines[2] == "✗ a  SPEC_MISMATCH 90%, fault of the product"
        assert f"  says   {says}" in lines
        assert "  first  a_step_01, before a_branch_01" in lines
        assert lines[0] == "shop  executing: 0 of 1 todo done, 1 failed", "a step is no todo of the plan"


def test_todos_that_wait_for_others_are_shown_in_waves(command: Command):
    command.plan(
        with_test("a", allowed_files=["shop/a.py"]),
        with_test("b", allowed_files=["shop/b.py"], dependencies=["a"]),
        with_test("c", allowed_files=["shop/**"], dependencies=["a"]),
        with_test("d", allowed_files=["docs/**"], dependencies=["a"]),
    )
    lines = command("next", "plan.yaml").out.splitlines()
    assert lines[lines.index("Later") :] == ["Later", "  wave 2: b, d", "  wave 3: c"]


def test_a_todo_without_prior_work_is_ready_with_its_allowed_files(command: Command):
    command.plan(with_test("a", allowed_files=["shop/**"]), with_test("b"))
    command.outcomes(failed("a", "TEST_NOT_FOUND"), failed("b", "TEST_NOT_FOUND"))
    ran = command("next", "plan.yaml")
    head, a, files, reason, edit, b = ran.out.split("\n\n")[1].splitlines()[:6]
    assert (head, a, b) == ("Ready (2), in parallel", "  a: for the coder", "  b: for the coder")
    assert (files, edit) == ("    may write shop/**", "    edit Fix it")
    assert reason == "    not begun: AssertionError: assert 1 == 2"
    says = "The last run found no test: `AssertionError: assert 1 == 2`. Fix it"
    assert command("next", "plan.yaml", "--brief", "a").out.splitlines()[-1] == says
    assert commands_of(ran) == ["brief  planner next plan.yaml --brief a"]


def test_no_terminal_cuts_the_line_of_a_remedy_which_ends_with_the_command_to_run(
    command: Command, monkeypatch: pytest.MonkeyPatch
):
    command.plan(with_test("a"))
    remedy = "Restore the former state of the test, or accept the change: planverify baseline accept a"
    command.outcomes(failed("a", suggestion=remedy))
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    lines = command("next", "plan.yaml").out.splitlines()
    assert f"  edit   {remedy}" in lines


def test_the_brief_of_a_task_has_no_control_sequences_and_secrets(command: Command):
    command.plan({**with_test("a"), "title": "A\x1b[31m\u202e", "intent": f"use ghp_{'a1B2' * 9}"})
    assert command("next", "plan.yaml", "--brief", "a").out.startswith(
        "# A\n\nuse [redacted: github token]\n"
    )


def test_the_brief_of_a_todo_without_prior_work_has_the_message_place_and_remedy_of_its_failure(
    command: Command,
):
    command.plan(with_test("a"))
    place = {"path": "Makefile", "line": 3}
    head = "No rule to make target 'b'. Stop."
    command.outcomes(failed("a", "ARTIFACT_MISSING", stack_trace_head=head, location=place))
    out = command("next", "plan.yaml", "--brief", "a").out
    assert out.splitlines()[-1] == f"The last run failed: `{head}`, at `Makefile:3`. Fix it"


def test_a_todo_that_fails_by_the_cause_of_another_is_not_offered_as_its_own_work(command: Command):
    command.plan(with_test("a", status="claimed"), with_test("b"))
    command.outcomes(failed("a", "IMPORT_ERROR"), failed("b", "IMPORT_ERROR"))
    out = command("next", "plan.yaml").out
    assert "    not begun: it fails as a does, which is repaired first: AssertionError" in out


def test_ready_todos_that_were_not_verified_are_shown_by_reason_with_one_command(command: Command):
    left_out = [pending(name) for name in "abc"]
    for each, changed in zip(left_out, ("a.py", "a.py", "c.py"), strict=True):
        each["checks"][0]["reason"] = f"not selected in this run; {changed} has changed since run 1"
    command.plan(*map(with_test, "abc"))
    command.outcomes(*left_out)
    out = command("next", "plan.yaml").out
    assert (
        "  not run a, b: not selected in this run; a.py has changed since run 1\n"
        "  not run c: not selected in this run; c.py has changed since run 1\n"
        "  verify pytest --planverify plan.yaml::a,b,c\n"
    ) in out


def test_selecting_todos_hides_what_others_wait_for(command: Command):
    command.plan(
        *(with_test(name) for name in "ab"), *(with_test(name, dependencies=["a"]) for name in "cd")
    )
    before = command("next", "plan.yaml::b,d").out
    command.outcomes(failed("a"), pending("c", state="blocked"), pending("d", state="blocked"))
    after = command("next", "plan.yaml::b,d").out
    assert before.endswith("\n\nLater\n  wave 2: d\n")
    assert after.endswith("\n\nWaiting (1)\n  d: blocked by a\n")


def test_a_named_todo_is_shown_with_the_steps_before_its_repair_and_without_those_of_others(
    command: Command,
):
    command.plan(*map(with_test, "abc"))
    command.outcomes(failed("a", "LINT_ERROR"), failed("b", signature="b" * 12), pending("c"))
    assert "\nReady (2), in parallel\n  a_step_01 " in command("next", "plan.yaml").out, (
        "before other todos"
    )
    a, b = command("next", "plan.yaml::a").out, command("next", "plan.yaml::b").out
    assert "planner next plan.yaml --brief a_step_01" in a
    assert "✗ b" not in a
    assert "✗ b  TEST_REGRESSION" in b
    assert "a_step_01" not in b


def test_before_the_first_run_next_shows_the_verify_command(command: Command):
    command.plan(with_test("a"))
    ran = command("next", "plan.yaml")
    assert "! the plan was not verified yet\n  pytest --planverify plan.yaml\n" in ran.out
    assert "Ready (1)\n" in ran.out, "a single todo is not in parallel"
    assert ran.status == 0
    assert command("next", "plan.yaml", "--json").json["do"] == "pytest --planverify plan.yaml"


RESUME = "pytest --planverify plan.yaml --planverify-resume"


def write_journal(command: Command, pid: int | None, *more: dict[str, Any]) -> None:
    """Write the journal of a run of the plan ``shop`` that has judged one criterion."""
    reference = {"todo_list_id": "shop", "path": "plan.yaml", "digest": ""}
    check = {"id": "tests[0]", "kind": "test", "verdict": "passed"}
    records = [
        {"record": "run_started", "version": 1, "run_id": "r2", "pid": pid, "reference": reference},
        {"record": "check_judged", "plan": "shop", "todo_id": "a", "check": check},
        *more,
    ]
    path = command.folder / ".planverify/runs/20260101T000000-1-abc/journal.jsonl"
    path.parent.mkdir(parents=True)
    with path.open("w") as journal:
        for each in records:
            begun = {"record": each["record"], "session": "parent", "at": time.time()}
            journal.write(f"{json.dumps(begun | each)}\n")


FINISHED = {"record": "run_finished", "plan": "shop", "exit_status": 2}


@pytest.mark.parametrize(
    ("state", "more", "do"),
    [
        ("was interrupted", [FINISHED | {"interrupted": True}], RESUME),
        ("was killed", [], RESUME),
        ("is still running", [], None),
        (None, [FINISHED], None),
    ],
)
def test_an_interrupted_run_can_be_resumed(
    shop: Command, state: str | None, more: list[dict[str, Any]], do: str | None
):
    process = subprocess.Popen(["sleep", "60"])
    if state == "was killed":
        process.kill()
    try:
        write_journal(shop, process.pid, *more)
        told = shop("next", "plan.yaml", "--json").json
        shown = shop("next", "plan.yaml").out
    finally:
        process.kill()
        process.wait()

    remarks = [each for each in told.get("remarks", ()) if "the newest run" in each]
    assert [each.startswith(f"the newest run {state}") for each in remarks] == [True] * bool(state)
    assert told.get("do") == do
    assert (do is None) or (f"  {do}\n" in shown)


def test_a_todo_that_an_unfinished_run_leaves_out_is_no_unknown_one(command: Command):
    path = command.plan(with_test("a"), with_test("b"))

    def first(plan: Plan) -> Plan:
        return plan.model_copy(update={"items": plan.items[:1]})

    with RunSession.open(RunSettings(plan=path, adjust=first)) as session:
        session.tell(RunStarted(at=datetime(2026, 1, 1, tzinfo=UTC)))

    assert (
        "verify it first: pytest --planverify plan.yaml::b"
        in command("answer", "plan.yaml", "b", "yes").err
    )


@pytest.mark.parametrize(
    ("driver", "told"),
    [
        ([os.getpid(), psutil.Process().create_time(), "shop"], "planverify run is in a turn"),
        ([os.getpid(), 1.0, "shop"], "a turn of planverify run was interrupted"),
        ({"pid": 1}, "a turn of planverify run was interrupted"),
    ],
    ids=["alive", "other process", "damaged"],
)
def test_a_turn_of_an_unfinished_run_is_told(shop: Command, driver: object, told: str):
    harness = shop.folder / ".planverify/harness"
    (harness / "shop").mkdir(parents=True)
    (harness / "shop/turn.json").write_text("{}")
    (harness / "driver.json").write_text(json.dumps(driver))
    assert f"! {told}" in shop("next", "plan.yaml").out


def test_files_changed_since_the_run_are_listed_with_outdated_verdicts(
    shop: Command, monkeypatch: pytest.MonkeyPatch
):
    changed = ChangedFiles(paths=("shop/b.py",), by_todo={"b": ("shop/b.py",)})
    monkeypatch.setattr(latest_outcomes, "changed_files", lambda *_: changed)
    out = shop("next", "plan.yaml").out
    assert "! shop/b.py changed since the run; the verdicts of b are out of date\n" in out
    assert "\n  pytest --planverify plan.yaml\n" in out


@pytest.mark.parametrize(
    ("unexplained", "status", "word"), [(None, 0, "completed"), ("coverage is 41 %", 1, "not accepted")]
)
def test_an_unaccepted_run_completes_nothing(
    command: Command, unexplained: str | None, status: int, word: str
):
    command.plan(with_test("a"))
    command.outcomes(done("a"), run={"unexplained": unexplained})
    ran = command("next", "plan.yaml")
    assert ran.status == status
    assert ran.out.startswith(f"shop  {word}: 1 of 1 todo done")
    assert (unexplained is None) or (f"! the run was not accepted: {unexplained}" in ran.out)


def test_inconclusive_todos_are_counted_and_shown_with_a_remedy(command: Command):
    command.plan(with_test("types"))
    lacks = {
        "stack_trace_head": "no_such_tool is not installed",
        "suggestion": "install it, or correct PATH",
    }
    evidence = failed("types", "ENVIRONMENT_ERROR", **lacks)["failure_evidence"]
    command.outcomes({**undecided("types", "inconclusive"), "failure_evidence": evidence})
    ran = command("next", "plan.yaml")

    assert ran.status == 10
    assert "1 could not be verified" in ran.out.splitlines()[0]
    assert "verify types: the environment is at fault: no_such_tool is not installed" in ran.out
    assert "install it, or correct PATH" in ran.out


def test_after_a_violation_nothing_comes_next_but_to_remove_it_and_verify_again(command: Command):
    command.plan(with_test("a"), with_test("b"), with_test("c", dependencies=["b"]))
    command.outcomes(failed("a", "SANDBOX_VIOLATION"), pending("b"), pending("c"))
    ran = command("next", "plan.yaml")
    assert ran.status == 13
    assert "[halt-on-violation]" in ran.out
    assert commands_of(ran)[0] == "pytest --planverify plan.yaml"
    assert "Later" not in ran.out
    assert "SANDBOX_VIOLATION" in command("next", "plan.yaml", "--brief", "a").out


def test_a_halted_plan_shows_only_failures_of_its_last_verification(command: Command):
    command.plan(with_test("a"), with_test("b"))
    command.outcomes(failed("a", stack_trace_head="repaired", signature="a" * 12), pending("b"))
    command("next", "plan.yaml")
    command.outcomes(failed("a", "HYGIENE_VIOLATION", signature="b" * 12), pending("b"), run=LATER)
    out = command("next", "plan.yaml").out
    assert "[halt-on-violation]" in out
    assert "repaired" not in out


LINT = failed("a", "LINT_ERROR", tests=[], top_failing_tests=[], check_id="verify")


@pytest.fixture
def style(command: Command) -> Command:
    """Return the command with a plan for whose failing formatter check it has planned a step."""
    command.plan({"id": "a", "verify": "ruff format --check a.py"})
    command.outcomes({**LINT, "diff_hash": "sha256:1"})
    assert "a_step_01" in command("next", "plan.yaml").out
    return command


def test_a_preparatory_step_is_checked_by_the_check_of_its_todo(style: Command):
    brief = style("next", "plan.yaml", "--brief", "a_step_01").out
    assert "Check: pytest --planverify plan.yaml::a\n" in brief
    assert "It is done when" not in brief


def test_a_preparatory_step_is_skipped_when_its_todo_passes(style: Command):
    passed = done("a")
    passed["checks"][0]["id"] = "verify"
    style.outcomes(passed, run=LATER)
    after = style("next", "plan.yaml")
    assert after.status == 0, after.err
    assert "completed: 1 of 1 todo done" in after.out
    assert "a_step_01" not in after.out
    assert "skipped" in style("status", "plan.yaml", "a_branch_01").out


def test_a_step_is_done_when_its_todo_was_verified_after_a_change_and_still_fails(style: Command):
    style.outcomes({**LINT, "diff_hash": "sha256:2"}, run=LATER)
    after = style("next", "plan.yaml").out
    assert "a_branch_01" in after
    assert "a_step_01" not in after


def test_the_brief_of_a_todo_without_criteria_explains_how_to_complete_it(command: Command):
    command.plan({"id": "notes", "requires_testing": False})
    brief = command("next", "plan.yaml", "--brief", "notes").out
    assert "It has no criteria: when it is done, set its status to claimed in the plan." in brief
    assert "Check:" not in brief


def test_json_has_short_actions_and_with_full_all_details(shop: Command):
    document = shop("next", "plan.yaml", "--json").json

    assert document.keys() == {"plan", "state", "run_id", "actions", "blocked"}
    assert (document["state"], document["blocked"]) == ("executing", {"c": "b"})
    (short,) = document["actions"]
    said = {"says": "AssertionError: assert 1 == 2", "edit": "Fix it"}
    where = {"owner": "product", "failed": "tests/test_b.py::test_it", "where": "shop/b.py:3 in total"}
    assert short.pop("failure") == {"category": "TEST_REGRESSION", **where, **said}
    words = {"rule": "branch-is-worked-on", "because": "its branch is ready", "role": "coder"}
    ids = {"seq": short["seq"], "todo_id": "b_branch_01", "parent_id": "b", "attempt": 1}
    assert short == {"action": "implement", **words, **ids}
    (full,) = shop("next", "plan.yaml", "--json", "--full").json["actions"]
    assert {"brief", "bounds"} <= full.keys()
    assert re.search(r"blocked since .*: c\n", shop("history", "plan.yaml").out)


def test_the_brief_of_a_todo_that_could_not_be_verified_says_what_was_missing(command: Command):
    command.plan(with_test("a"))
    unset = {"owner": "environment", "suggestion": "TOKEN is not set: set it."}
    command.outcomes(failed("a", "ENVIRONMENT_ERROR", **unset))
    brief = command("next", "plan.yaml", "--brief", "a")
    assert brief.status == 0
    assert "TOKEN is not set: set it." in brief.out


@pytest.mark.parametrize("left", ["", '{"n":0,"event":{"event":"plan_sub'], ids=["nothing", "a part"])
def test_an_empty_or_torn_log_is_started_again(shop: Command, left: str):
    folder = shop.folder / ".planverify" / "logs"
    folder.mkdir(parents=True)
    (folder / "shop.jsonl").write_text(left)
    first, again = shop("next", "plan.yaml"), shop("next", "plan.yaml")
    assert (first.status, first.err) == (0, "")
    assert "b_branch_01, attempt 1 of 3" in first.out
    assert again.out == first.out
    assert (folder / "shop.jsonl").read_text().count("\n") > 2


def test_a_log_that_follows_other_rules_is_named_with_what_to_do(
    shop: Command, monkeypatch: pytest.MonkeyPatch
):
    shop("next", "plan.yaml")

    def refuse(events: object) -> None:
        raise RefusedEvent("run-is-over", "the run is over", "start another")

    monkeypatch.setattr(plan_run, "fold", refuse)
    ran = shop("next", "plan.yaml")

    assert (ran.status, ran.out) == (4, "")
    assert (
        "shop.jsonl: it was written by another version, as an event is refused: the run is over; "
        in ran.err
    )
    assert ran.err.endswith("move the log away to begin a new run\n")


def test_repeated_commands_do_not_lengthen_the_log(command: Command):
    command.plan(with_test("a"), with_test("b"), {"id": "c", "title": "C", "requires_testing": False})
    command.outcomes(failed("a"), failed("b", "TEST_NOT_FOUND"), pending("c"))
    command("next", "plan.yaml")
    log = command.folder / ".planverify" / "logs" / "shop.jsonl"
    first = log.read_text()
    command("next", "plan.yaml", "--brief", "a")
    assert log.read_text() == first
    assert first.count('"event":"verified"') == 2


def test_in_place_revisions_are_written_once_and_the_last_can_be_undone(shop: Command):
    plan = shop.folder / "plan.yaml"
    assert "wrote plan.yaml" in shop("next", "plan.yaml", "--in-place").out
    first = plan.read_text()
    assert "b_branch_01" in first
    assert "nothing was written" in shop("next", "plan.yaml", "--in-place").out
    assert plan.read_text() == first
    shop.outcomes(done("a"), failed("b", "LINT_ERROR", signature="b" * 12), pending("c"), run=LATER)
    shop("next", "plan.yaml", "--in-place")
    assert plan.read_text() != first

    undone = shop("undo", "plan.yaml")

    assert undone.out == "plan.yaml: restored the previous version\n"
    assert plan.read_text() == first
    refused = shop("undo")
    assert refused.status == 4
    assert "there is no previous version" in refused.err
    assert refused.err.count("\n") == 1


def rules_of_runs(command: Command, runs: int, **outcome: Any) -> list[str]:
    """Return the rule of `planner next` after each of ``runs`` failures, always with other files."""
    command.plan(with_test("a", max_retries=2))
    rules: list[str] = []
    for number in range(runs):
        told = {**failed("a", signature=f"{number:012}"), "diff_hash": f"{number}", **outcome}
        rules.append(action_after_run(command, number, told)["rule"])
    return rules


def action_after_run(command: Command, number: int, outcome: dict[str, Any]) -> dict[str, Any]:
    """Return what `planner next` asks for after a run, which begins a minute after the previous one."""
    at = f"2026-01-01T00:0{number}:00Z"
    command.outcomes(outcome, run={"run_id": f"run-{number}", "started_at": at, "finished_at": at})
    (action,) = command("next", "plan.yaml", "--json").json["actions"]
    return action


def test_two_retries_and_three_attempts_of_a_branch_are_counted_from_run_to_run(command: Command):
    assert rules_of_runs(command, 6) == [
        *["retry-by-the-same-role"] * 2,
        "branch-is-worked-on",
        *["branch-has-attempts-left"] * 2,
        "attempts-used-up",
    ]


def test_a_question_shows_the_newest_failure_of_the_todo_and_its_branches(command: Command):
    branch = {"parent_id": "a", "branch_depth": 1, "is_temporary": True, "max_debug_attempts": 1}
    command.plan(with_test("a"), {**with_test("a_branch_01"), **branch})
    for number, todo_id in enumerate(("a", "a_branch_01"), 1):
        told = {**failed(todo_id, stack_trace_head=f"head {number}"), "diff_hash": f"{number}"}
        action = action_after_run(command, number, told)
    assert (action["rule"], action["failure"]["says"]) == ("attempts-used-up", "head 2")


def test_a_run_without_changes_counts_as_no_attempt(command: Command):
    assert set(rules_of_runs(command, 4, diff_hash="same")) == {"retry-by-the-same-role"}


def test_waves_count_neither_parents_under_way_nor_what_waits_for_a_person(command: Command):
    command.plan(with_test("c"), path="phase.yaml")
    command.plan(
        {"id": "p", "sub_plan": "phase.yaml"},
        with_test("b", dependencies=["p"]),
        with_test("risky", risk_level="HIGH"),
        metadata={"require_planner_approval": True},
    )
    command.outcomes()

    lines = command("next", "plan.yaml").out.splitlines()

    assert "? risky  waits for a person" in lines
    assert lines[lines.index("Later") :] == ["Later", "  wave 2: b"]


@pytest.mark.parametrize("name", ["next", "status"])
def test_no_verification_is_offered_of_a_plan_with_an_unusable_sub_plan(command: Command, name: str):
    command.plan({"id": "x", "titel": "X"}, path="phase.yaml", todo_list_id="phase")
    command.plan({"id": "p", "sub_plan": "phase.yaml"}, with_test("b"))
    ran = command(name, "plan.yaml")
    assert "'titel' is not a key here" in ran.out
    assert "pytest --planverify" not in ran.out


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("--brief bb", 2, "there is no todo 'bb' in the plan; did you mean 'b'?"),
        ("--output n.yaml --in-place", 2, "exclude each other"),
        ("--outcomes none.json", 4, "none.json: the file does not exist; run first"),
        ("--log plan.yaml", 4, "plan.yaml"),
        ("--approve b_branch_01", 2, "--approve"),
    ],
)
def test_wrong_options_of_next_are_refused_in_one_line(shop: Command, words: str, status: int, said: str):
    ran = shop("next", "plan.yaml", *words.split())
    assert (ran.status, ran.out) == (status, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_an_unwritable_log_gives_one_remark_and_the_run_is_explained(shop: Command):
    (shop.folder / ".planverify/logs").write_text("a file where a folder should be")
    ran, explained = shop("next", "plan.yaml"), shop("explain", "plan.yaml")
    assert ran.status == 0
    assert ran.out.count("attempts are not counted across runs") == 1
    assert "✗ b" in ran.out
    assert explained.status == 0, explained.err
    assert "now blocked by b" in explained.out


def test_named_outcomes_are_read_without_a_log_unless_one_is_named(shop: Command):
    shop.outcomes(failed("a"), done("b"), pending("c"), path="other.json")
    ran = shop("next", "plan.yaml", "--outcomes", "other.json")
    assert "✗ a  TEST_REGRESSION" in ran.out
    assert not (shop.folder / ".planverify/logs").exists()
    shop("next", "plan.yaml", "--log", "mine.jsonl")
    assert (shop.folder / "mine.jsonl").exists()


TEXT = st.text(max_size=20) | st.sampled_from(["\x1b[31m", "a" * 5000, "\x00", "../..", "-rf"])
LINE = st.integers(-5, 10**9) | st.none()


def one_of(words: Iterable[object]) -> st.SearchStrategy[str | None]:
    return st.sampled_from([*map(str, words)])


FAILURES = st.fixed_dictionaries(
    {"category": one_of(Category)},
    optional={
        "owner": one_of(Owner) | st.none(),
        "signature": TEXT,
        "stack_trace_head": TEXT,
        "suggestion": TEXT,
        "confidence": st.floats(0, 1) | st.none(),
        "since": one_of(Since),
        "top_failing_tests": st.lists(TEXT, max_size=3),
        "location": st.fixed_dictionaries({"path": TEXT, "line": LINE, "function": TEXT}),
    },
)
CHECK_IDS = st.sampled_from(["tests[0]", "tests[0]", "tests[9]", "manual[0]", ""])
CHECKS = st.fixed_dictionaries({"id": CHECK_IDS, "kind": one_of(CheckKind), "verdict": one_of(Verdict)})
TODO_IDS = st.sampled_from(["a", "b", "c", "a_branch_01"])
OUTCOMES = st.fixed_dictionaries(
    {"todo_id": TODO_IDS, "success": st.booleans(), "tests_passed": st.booleans()},
    optional={
        "state": one_of(TodoState) | st.none(),
        "verified": st.booleans(),
        "diff_hash": TEXT,
        "touched_files": st.lists(TEXT, max_size=2),
        "failure_evidence": FAILURES | st.none(),
        "failures": st.lists(FAILURES, max_size=3),
        "metrics": st.fixed_dictionaries({"tokens_used": st.integers(0, 10**30)}),
        "checks": st.lists(CHECKS, max_size=2),
        "blocked_by": st.lists(TEXT, max_size=1),
        "unheard_of": TEXT,
    },
)
DOCUMENTS = st.lists(OUTCOMES, max_size=4, unique_by=lambda each: each["todo_id"])


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@settings(max_examples=20, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(named=st.booleans(), outcomes=DOCUMENTS, at=TEXT, retries=st.integers(0, 2))
def test_unusual_outcomes_never_cause_a_traceback(
    command: Command, named: bool, outcomes: list[dict[str, Any]], at: str, retries: int
):
    command.plan(
        with_test("a", max_retries=retries),
        {**with_test("a_branch_01"), "parent_id": "a", "branch_depth": 1, "is_temporary": True},
        with_test("b", dependencies=["a"]),
        with_test("c"),
    )
    path = command.outcomes(*outcomes, path="odd.json" if named else None)
    document = json.loads(path.read_text())
    document["run"] |= {"finished_at": at, "run_id": os.urandom(4).hex()}
    path.write_text(json.dumps(document))
    words = ("--outcomes", "odd.json") if named else ()

    ran = command("next", "plan.yaml", *words)

    assert ran.status in DOCUMENTED, ran.err
    assert "Traceback" not in ran.err
    assert command("next", "plan.yaml", *words) == ran


def test_a_todo_with_a_long_question_has_at_most_eight_lines(command: Command):
    command.ask("a", "Is every word of it right? " * 40)
    lines = command("next", "plan.yaml").out.splitlines()
    assert lines[2].startswith("? a  waits for a person")
    assert len(lines[2:]) <= 8
    assert lines[-1] == "  answer planner answer plan.yaml a yes # or no, or a reason"
