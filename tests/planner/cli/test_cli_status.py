"""`planner status`: the tree, the details of one todo, and the output for incomplete plans."""

from __future__ import annotations

from typing import Any

import pytest
from planner_command import Command, done, failed, pending, undecided, with_test


@pytest.fixture
def phases(command: Command) -> Command:
    """Return the command with a plan that has a sub-plan and a branch."""
    command.plan(
        with_test("buffer-tests"),
        with_test("buffer-impl", dependencies=["buffer-tests"]),
        path="phases/buffer.yaml",
        todo_list_id="buffer",
        root="..",
    )
    command.plan(
        {"id": "phase-2", "title": "Phase 2: Buffer Management", "sub_plan": "phases/buffer.yaml"},
        with_test("a"),
        {**with_test("a_branch_01"), "parent_id": "a", "branch_depth": 1, "is_temporary": True},
        with_test("b", dependencies=["a"]),
        with_test("q"),
        workflow_name="The shop",
    )
    return command


@pytest.fixture
def verified(phases: Command) -> Command:
    phases.outcomes(
        done("phase-2/buffer-tests"),
        done("phase-2/buffer-impl"),
        done("phase-2"),
        failed("a"),
        pending("a_branch_01"),
        pending("b", state="blocked", blocked_by=["a"]),
        undecided("q", "needs_human"),
    )
    return phases


def test_the_tree_shows_states_progress_branches_and_blockers(verified: Command) -> None:
    ran = verified("status", "plan.yaml")

    assert [" ".join(line.split()) for line in ran.out.splitlines()] == [
        "The shop (2/5) plan.yaml",
        "├─ phase-2 Phase 2: Buffer Management (2/2) ✓ done",
        "│ ├─ buffer-tests ✓ done",
        "│ └─ buffer-impl ✓ done",
        "├─ a ✗ failed",
        "│ └─ a_branch_01 » ready",
        "├─ b \N{EN DASH} blocked by a",
        "└─ q ? testing for a person: tests[0]",
        "2 done, 1 failed, 1 testing, 1 blocked, 1 branch",
    ]


def test_a_step_before_a_repair_is_shown_and_not_counted(command: Command) -> None:
    command.plan(with_test("a"))
    command.outcomes(failed("a", "LINT_ERROR"))
    first, *tree, counts = command("status", "plan.yaml").out.splitlines()
    assert "(0/1)" in first
    assert "a_step_01" in tree[-1]
    assert counts == "1 failed, 1 branch"


def test_status_shows_the_details_of_one_todo(verified: Command) -> None:
    ran = verified("status", "plan.yaml", "a")
    assert ran.status == 0
    assert ran.out.splitlines()[0] == "a  ✗ failed"
    assert "blocks   b" in ran.out
    assert "  check    failed  tests[0]  pytest tests/test_a.py (1 test)\n" in ran.out
    assert "category TEST_REGRESSION" in ran.out
    assert "edit     Fix it" in ran.out
    assert "rerun    pytest --planverify plan.yaml::a" in ran.out
    assert "└─ a_branch_01" in ran.out


def test_a_fault_of_the_environment_is_not_called_inconclusive(command: Command) -> None:
    command.plan(with_test("a"))
    command.outcomes(failed("a", "ENVIRONMENT_ERROR", owner="environment"))
    assert "to be verified again, as the environment is at fault\n" in command("status", "plan.yaml").out


def test_a_failed_todo_is_shown_with_its_failure_though_a_later_run_did_not_select_it(verified: Command):
    verified("status", "plan.yaml")
    verified.outcomes(pending("a"), done("q"))
    assert "  check    failed  tests[0]" in verified("status", "plan.yaml", "a").out


def test_secrets_in_what_a_run_found_are_not_shown(command: Command) -> None:
    token = "ghp_" + "a1B2" * 9
    command.plan(with_test("a"))
    outcome = failed("a")
    outcome["failure_evidence"]["stack_trace_head"] = outcome["checks"][0]["reason"] = f"bad {token}"
    command.outcomes(outcome)
    ran = command("status", "plan.yaml", "a")
    assert ran.out.count("bad [redacted: github token]") == 2
    assert token not in ran.out


def test_an_open_question_is_not_repeated_beside_its_check(command: Command) -> None:
    command.plan({"id": "q", "acceptance_criteria": {"manual": [{"question": "Is it good?"}]}})
    told = undecided("q", "needs_human")
    told["checks"][0] |= {"cmd": None, "title": "Is it good?", "reason": "question for human: Is it good?"}
    command.outcomes(told)
    (line,) = (each for each in command("status", "plan.yaml", "q").out.splitlines() if "check " in each)
    assert line.count("Is it good?") == 1


def test_only_the_todos_that_the_ini_file_names_are_shown(verified: Command) -> None:
    (verified.folder / "pytest.ini").write_text("[pytest]\nplanverify_plan = plan.yaml::b,q\n")
    assert [each["todo_id"] for each in verified("status", "--json").json["todos"]] == ["b", "q"]


def test_a_todo_of_a_sub_plan_is_found_by_qualified_or_plain_id(verified: Command) -> None:
    qualified = verified("status", "plan.yaml", "phase-2/buffer-impl")
    assert qualified.out.splitlines()[0] == "phase-2/buffer-impl  ✓ done"
    assert "after    phase-2/buffer-tests" in qualified.out
    assert verified("status", "plan.yaml", "buffer-impl").out == qualified.out
    first, *_, last = verified("status", "plan.yaml", "phase-2").out.splitlines()
    assert first == "phase-2  Phase 2: Buffer Management (2/2)  ✓ done"
    assert "buffer-impl" in last


def test_the_todos_of_a_sub_plan_are_shown_and_counted_before_it_begins(phases: Command) -> None:
    phases.plan(with_test("a"), {"id": "later", "sub_plan": "phases/buffer.yaml", "dependencies": ["a"]})

    assert [" ".join(line.split()) for line in phases("status", "plan.yaml").out.splitlines()[2:]] == [
        "shop (0/3) plan.yaml",
        "├─ a » ready",
        "└─ later (0/2) · pending",
        "├─ buffer-tests · pending",
        "└─ buffer-impl · pending",
        "1 ready, 2 pending",
    ]
    assert "0 of 3 todos done" in phases("next", "plan.yaml").out
    unbegun = phases("status", "plan.yaml", "buffer-impl")
    assert unbegun.err.startswith("planner: later/buffer-impl has not begun; ")


def test_todos_of_a_sub_plan_that_passed_before_it_began_are_done(phases: Command) -> None:
    phases.plan(with_test("a"), {"id": "later", "sub_plan": "phases/buffer.yaml", "dependencies": ["a"]})
    phases.outcomes(
        undecided("a", "needs_human"), done("later/buffer-tests"), undecided("later/buffer-impl", "stale")
    )
    assert phases("status", "plan.yaml").out.splitlines()[-1] == "1 done, 1 testing, 1 pending"
    assert "1 of 3 todos done" in phases("next", "plan.yaml").out


def test_after_a_plan_change_other_verdicts_remain_valid_and_a_run_is_requested(verified: Command) -> None:
    verified.plan(with_test("a"), with_test("new"))
    ran = verified("status", "plan.yaml")
    assert ran.status == 0
    request = "! added or changed in the plan since the run: new\n  pytest --planverify plan.yaml\n"
    assert ran.out.startswith(request)
    assert "1 failed, 1 ready, 1 branch" in ran.out


def test_json_contains_the_same_tree_which_can_be_limited_to_one_todo_or_a_depth(verified: Command) -> None:
    def todos(*words: str) -> list[dict[str, Any]]:
        return verified("status", "plan.yaml", "--json", *words).json["todos"]

    ran = verified("status", "plan.yaml", "--json")

    assert ran.json["progress"] == {"done": 2, "total": 5}
    phase, a, b, _ = ran.json["todos"]
    assert phase["progress"] == {"done": 2, "total": 2}
    assert [each["todo_id"] for each in phase["todos"]] == ["phase-2/buffer-tests", "phase-2/buffer-impl"]
    assert a["branches"] == [{"state": "ready", "title": "a_branch_01", "todo_id": "a_branch_01"}]
    assert (b["state"], b["blocked_by"]) == ("blocked", ["a"])
    assert verified("status", "plan.yaml", "--json").out == ran.out
    assert [each["todo_id"] for each in todos("b")] == ["b"]
    assert todos("--depth", "0") == []
    assert "branches" not in todos("--depth", "1")[1]


def test_control_characters_in_titles_are_removed(command: Command) -> None:
    todo = with_test("a", title="x\u202e\u200b y", intent="z\u2066")
    command.plan(todo, workflow_name="n\u202e")
    for words in (("status", "plan.yaml"), ("status", "plan.yaml", "a")):
        assert not set("\u202e\u200b\u2066\x1b") & set(command(*words).out)


def test_an_unknown_todo_is_reported_with_the_nearest(verified: Command) -> None:
    unknown = verified("status", "plan.yaml", "a_branch_1")
    assert unknown.status == 2
    assert unknown.err.endswith("no todo 'a_branch_1' in the plan; did you mean 'a_branch_01'?\n")
