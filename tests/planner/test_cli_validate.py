"""`planner validate`: findings with their place, and the exit status that follows from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from planner_command import Command, with_test

from planner.edges import validating
from planner.model.findings import PlanFinding, Severity

FINDINGS = (
    PlanFinding(
        rule="no-test",
        severity=Severity.WARNING,
        path="plan.yaml",
        line=3,
        column=7,
        place="items[0]",
        todo_id="a",
        message="a has no \x1b[31mtest",
        why="Files prove little.",
        fix="Add a test.",
    ),
    PlanFinding(
        rule="routing-missing",
        severity=Severity.ADVICE,
        path="plan.yaml",
        place="items[0]",
        message="no routing",
        why="Someone else acts.",
        fix="Add it.",
    ),
)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    command = Command(tmp_path, monkeypatch, capsys)
    command.plan(with_test("a"))
    monkeypatch.setattr(validating, "validate_plan_tree", lambda path, **_: FINDINGS)
    return command


def test_each_finding_tells_where_why_and_what_to_do(command: Command) -> None:
    ran = command("validate", "plan.yaml")

    assert ran.status == 1
    assert ran.out == (
        "plan.yaml:3:7: warning no-test a has no test\n"
        "  why  Files prove little.\n"
        "  fix  Add a test.\n"
        "plan.yaml: advice routing-missing no routing\n"
        "  why  Someone else acts.\n"
        "  fix  Add it.\n"
        "1 warning, 1 advice\n"
    )


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
    command: Command, words: tuple[str, ...], rules: list[str]
) -> None:
    ran = command("validate", "plan.yaml", "--json", *words)

    assert [finding["rule"] for finding in ran.json["findings"]] == rules
    assert ran.json["ready"] == (not rules)
    assert ran.status == (1 if rules else 0)


def test_a_plan_without_findings_is_ready(command: Command) -> None:
    ran = command("validate", "plan.yaml", "--ignore", "no-test,routing-missing")

    assert (ran.status, ran.out) == (0, "ready: nothing to find fault with\n")


def test_an_unknown_rule_is_answered_with_the_nearest(command: Command) -> None:
    ran = command("validate", "plan.yaml", "--ignore", "no-tset")

    assert ran.status == 2
    assert ran.err.startswith("planner: --ignore no-tset: there is no such rule; did you mean 'no-test'")
