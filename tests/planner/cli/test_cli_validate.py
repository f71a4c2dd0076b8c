"""`planner validate`: findings with their place, and the exit status that follows from their weight."""

from __future__ import annotations

import pytest
from planner_command import Command, with_test

from planner.cli import plan_file
from planner.model.findings import PlanFinding, Severity


def finding(rule: str, severity: Severity, **keys: object) -> PlanFinding:
    said = {
        "path": "plan.yaml",
        "place": "items[0]",
        "message": "it is so",
        "why": "Because.",
        "fix": "Do it.",
    }
    return PlanFinding.model_validate({"rule": rule, "severity": severity, **said, **keys})


ERROR = finding("command-hollow", Severity.ERROR)
WARNING = finding("no-test", Severity.WARNING, line=3, column=7, message="a has no \x1b[31mtest")
ADVICE = finding("routing-missing", Severity.ADVICE)


@pytest.fixture
def command(command: Command) -> Command:
    command.plan(with_test("a", allowed_files=["src/**"]))
    return command


def finds(monkeypatch: pytest.MonkeyPatch, *findings: PlanFinding) -> None:
    monkeypatch.setattr(plan_file, "validate_plan_tree", lambda tree, **_: findings)


def test_each_finding_tells_where_and_what_to_do(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, WARNING, ADVICE)

    assert command("validate", "plan.yaml").out == (
        "plan.yaml:3:7: warning no-test a has no test\n"
        "  fix  Do it.\n"
        "plan.yaml: advice routing-missing it is so\n"
        "  fix  Do it.\n"
        "ready: 1 warning, 1 advice\n"
    )


@pytest.mark.parametrize(
    ("found", "usual", "strict"),
    [((), 0, 0), ((ADVICE,), 0, 0), ((WARNING, ADVICE), 0, 1), ((ERROR, WARNING), 1, 1)],
)
def test_only_errors_fail_and_warnings_where_that_is_wanted(
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    found: tuple[PlanFinding, ...],
    usual: int,
    strict: int,
) -> None:
    finds(monkeypatch, *found)

    assert command("validate", "plan.yaml").status == usual
    ran = command("validate", "plan.yaml", "--strict", "--json")
    assert (ran.status, ran.json["ready"]) == (strict, not strict)


def test_of_many_findings_of_one_rule_three_are_shown(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    finds(monkeypatch, *[WARNING] * 9, ADVICE)

    ran = command("validate", "plan.yaml")

    assert ran.out.count(": warning no-test") == 3
    assert "and 6 more of no-test; show all: --select no-test\n" in ran.out
    assert ran.out.endswith("ready: 9 warnings, 1 advice\n")
    assert command("validate", "plan.yaml", "--select", "no-test").out.count(": warning no-test") == 9


@pytest.mark.parametrize(
    ("words", "rules"),
    [
        (("--ignore", "no-test"), ["routing-missing"]),
        (("--select", "no-test"), ["no-test"]),
        (("--select", "no-test,routing-missing", "--ignore", "no-test"), ["routing-missing"]),
        (("--ignore", "no-test", "--ignore", "routing-missing"), []),
    ],
)
def test_rules_are_left_out_or_asked_alone(
    command: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], rules: list[str]
) -> None:
    finds(monkeypatch, WARNING, ADVICE)

    ran = command("validate", "plan.yaml", "--json", *words)

    assert [finding["rule"] for finding in ran.json["findings"]] == rules


UNLIMITED = "name no allowed_files: without a baseline, changed tests or plans are not detected"


@pytest.mark.parametrize(
    ("policy", "limited", "remarks"),
    [
        ({}, None, [f"3 todos {UNLIMITED}"]),
        ({}, ["src/**"], [f"2 todos {UNLIMITED}"]),
        (
            {"protected_files": []},
            None,
            ["3 todos name no allowed_files: protected_files is empty, so changed tests are not detected"],
        ),
        ({"protected_files": ["tests/**"]}, None, []),
    ],
)
def test_one_remark_says_what_todos_without_allowed_files_leave_unprotected(
    command: Command, policy: dict[str, object], limited: list[str] | None, remarks: list[str]
) -> None:
    first = with_test("a") if limited is None else with_test("a", allowed_files=limited)
    command.plan(first, with_test("b"), with_test("c"), metadata=policy)

    assert command("validate", "plan.yaml", "--json").json["remarks"] == remarks
    shown = command("validate", "plan.yaml").out
    assert [line for line in shown.splitlines() if "allowed_files" in line] == [f"! {x}" for x in remarks]
    assert "allowed_files:" not in command("validate", "plan.yaml", "--select", "no-test").out


def test_a_parent_is_not_counted_beside_the_todos_of_its_sub_plan(command: Command) -> None:
    command.plan(with_test("b"), path="part.yaml", todo_list_id="part")
    command.plan({"id": "a", "sub_plan": "part.yaml"})

    (remark,) = command("validate", "plan.yaml", "--json").json["remarks"]

    assert remark.startswith("1 todo names no allowed_files")


def test_an_unknown_rule_is_answered_with_the_nearest(command: Command) -> None:
    ran = command("validate", "plan.yaml", "--ignore", "no-tset")

    assert ran.status == 2
    assert ran.err.startswith("planner: --ignore no-tset: unknown rule; did you mean 'no-test'")
