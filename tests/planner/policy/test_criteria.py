"""The criteria of a todo."""

from __future__ import annotations

import pytest

from planner.catalog import RECIPES
from planner.errors import CommandSyntaxError
from planner.model.plan import AcceptanceCriteria, CommandSpec, ManualSpec, MetricSpec, Operator, Todo
from planner.model.verdicts import CheckKind
from planner.policy.criteria import commands_of, criteria_of, pytest_command, wants_convention


def test_a_pytest_command_is_a_test_criterion_and_any_other_a_command_criterion() -> None:
    todo = Todo(id="a", title="A", verify="ruff check .", test_command="pytest a.py", test_file="b c.py")
    found = {each.id: each for each in criteria_of(todo)}
    assert {name: each.kind for name, each in found.items()} == {
        "verify": CheckKind.COMMAND,
        "test_command": CheckKind.TEST,
        "test_file": CheckKind.TEST,
    }
    assert found["test_file"].command is not None
    assert found["test_file"].command.argv == ("pytest", "b c.py")
    assert pytest_command("-p.py") == "pytest ./-p.py", "it is not taken for an option"
    assert pytest_command("a.py", "-p.py::test a") == "pytest a.py './-p.py::test a'"


def test_a_recipe_expands_to_its_commands() -> None:
    found = criteria_of(Todo(id="a", title="A", verify="python-quick"))
    commands = {each.id: each.spec.cmd for each in found if isinstance(each.spec, CommandSpec)}
    assert commands == {f"verify[{at}]": cmd for at, cmd in enumerate(RECIPES["python-quick"])}


def test_other_criteria_follow_the_commands() -> None:
    wanted = AcceptanceCriteria(
        tests=(CommandSpec(cmd="pytest a.py"),),
        metrics=(MetricSpec(name="n", operator=Operator.GE, value=1),),
        manual=(ManualSpec(question="Right?"),),
    )
    todo = Todo(id="a", title="A", acceptance_criteria=wanted, contract_path="c.json", verify="pytest b.py")
    ids = [each.id for each in criteria_of(todo)]
    assert ids == ["tests[0]", "verify", "metrics[0]", "manual[0]", "contract_path"]


def test_the_test_convention_applies_only_to_a_todo_without_criteria() -> None:
    bare, verified = Todo(id="a", title="A"), Todo(id="a", title="A", verify="pytest b.py")
    assert [each.id for each in criteria_of(bare, "pytest x.py")] == ["convention"]
    assert [each.id for each in criteria_of(verified, "pytest x.py")] == ["verify"]
    assert criteria_of(bare) == ()
    assert wants_convention(bare)
    assert not wants_convention(verified)
    assert not wants_convention(Todo(id="a", title="A", requires_testing=False))
    assert not wants_convention(Todo(id="a", title="A", sub_plan="b.yaml"))
    assert not wants_convention(Todo(id="a", title="A", contract_path="c.json"))


def test_the_failure_report_of_its_parent_is_not_a_criterion_of_a_branch() -> None:
    report = "diagnostics/a_failure_report.json"
    names = [report, f"./{report}", "out.json", "diagnostics/b_failure_report.json"]
    criteria = AcceptanceCriteria.model_validate({"expected_artifacts": names})
    branch = Todo(id="a_branch_01", title="A", parent_id="a", acceptance_criteria=criteria)
    assert [each.id for each in criteria_of(branch)] == ["expected_artifacts[2]", "expected_artifacts[3]"]
    assert len(criteria_of(branch.model_copy(update={"parent_id": None}))) == 4


def test_a_command_that_cannot_run_is_refused() -> None:
    with pytest.raises(CommandSyntaxError):
        criteria_of(Todo(id="a", title="A", verify="pytest && ls"))


def test_an_already_reported_invalid_command_is_not_refused_again() -> None:
    todo = Todo.model_construct(id="a", title="a", verify="")
    assert [(where, spec.cmd) for where, spec in commands_of(todo)] == [("verify", "")]
