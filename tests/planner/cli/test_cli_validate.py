"""`planner validate`: findings with their positions, and the exit status for their severity."""

from __future__ import annotations

from pathlib import Path

import pytest
from planner_command import Command, with_test

from planner.cli import plan_file
from planner.model.findings import PlanFinding, Severity
from planner.planfile.plan_folder import PlanFolder


def finding(rule: str, severity: Severity, **keys: object) -> PlanFinding:
    words = {"message": "it is so", "why": "Because.", "fix": "Do it."}
    place = {"path": "plan.yaml", "place": "items[0]"}
    return PlanFinding.model_validate({"rule": rule, "severity": severity, **place, **words, **keys})


ERROR = finding("command-hollow", Severity.ERROR)
WARNING = finding("no-test", Severity.WARNING, line=3, column=7, message="a has no \x1b[31mtest")
ADVICE = finding("routing-missing", Severity.ADVICE, fix="do it.")


@pytest.fixture
def command(command: Command) -> Command:
    command.plan(with_test("a", allowed_files=["src/**"]))
    return command


def finds(monkeypatch: pytest.MonkeyPatch, *findings: PlanFinding) -> None:
    monkeypatch.setattr(plan_file, "validate_plan_tree", lambda tree, **_: findings)


def test_each_finding_shows_its_place_and_remedy(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_only_errors_fail_unless_strict_includes_warnings(
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


def test_at_most_three_findings_per_rule_are_shown(command: Command, monkeypatch: pytest.MonkeyPatch):
    finds(monkeypatch, *[WARNING] * 9, ADVICE)
    ran = command("validate", "plan.yaml")
    assert ran.out.count(": warning no-test") == 3
    assert "and 6 more of no-test; --json shows all\n" in ran.out
    assert ran.out.endswith("ready: 9 warnings, 1 advice\n")
    assert len(command("validate", "plan.yaml", "--json").json["findings"]) == 10


UNLIMITED = "name no allowed_files: changed tests and plans are only detected after planverify baseline"


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
def test_one_remark_summarises_todos_without_allowed_files(
    command: Command, policy: dict[str, object], limited: list[str] | None, remarks: list[str]
) -> None:
    command.plan(with_test("b"), path="part.yaml", todo_list_id="part")
    first = with_test("a") if limited is None else with_test("a", allowed_files=limited)
    parent = {"id": "parent", "sub_plan": "part.yaml"}
    command.plan(first, with_test("c"), parent, metadata=policy)

    assert command("validate", "plan.yaml", "--json").json["remarks"] == remarks, "parents do not count"
    shown = command("validate", "plan.yaml").out
    assert [line for line in shown.splitlines() if "allowed_files" in line] == [f"! {x}" for x in remarks]
    baseline = PlanFolder(Path(), "shop").baseline
    baseline.parent.mkdir(parents=True)
    baseline.touch()
    left = command("validate", "plan.yaml", "--json").json["remarks"]
    assert left == [x for x in remarks if "baseline" not in x], "a baseline protects their files"


def test_faults_of_an_unusable_plan_are_included_in_json(command: Command) -> None:
    Path("sub.yaml").write_text("items: [")
    todo = "todo_list_id: x\nitems:\n- {id: a, title: A, sub_plan: sub.yaml"
    Path("plan.yaml").write_text(f"{todo}, wrong_key: 1}}\n")

    ran = command("validate", "plan.yaml", "--json")

    assert (ran.status, ran.json["ready"], ran.json["findings"]) == (4, False, [])
    (fault,) = ran.json["remarks"]
    assert fault.startswith("plan.yaml:3:")
    assert "items[0].wrong_key" in fault
    assert fault in ran.err
    Path("plan.yaml").write_text(f"{todo}}}\n")
    (fault,) = command("validate", "plan.yaml", "--json").json["remarks"]
    assert fault.startswith("sub.yaml:1:")
