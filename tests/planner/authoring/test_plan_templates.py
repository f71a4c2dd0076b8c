"""A plan from a template can be run as it is; a goal is text in it, and a template only fills."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.authoring.plan_templates import MAX_BYTES, PlanTemplates, TemplateFault, read_values
from planner.planfile.loader import load_plan_text
from planner.planfile.validation import validate_plan
from planner.text.sanitizing import clean

NAMES = ("bugfix", "feature", "library", "migration", "refactor", "service", "strategy")


def filled(folder: Path, name: str, goal: str) -> str:
    return PlanTemplates().fill(name, {**read_values(goal, folder), "root": "."})


def test_every_named_template_is_there_and_says_what_it_is_for() -> None:
    names = PlanTemplates().names()

    assert tuple(names) == NAMES
    assert all(names.values())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("manifest", ["tests/test_a.py", "go.mod", "Cargo.toml", "package.json"])
def test_a_plan_from_a_template_has_no_findings(tmp_path: Path, name: str, manifest: str) -> None:
    (tmp_path / manifest).parent.mkdir(exist_ok=True)
    (tmp_path / manifest).write_text("def test_a(): ...\n" if manifest.endswith(".py") else "")
    (tmp_path / "plan.yaml").write_text(filled(tmp_path, name, "Export orders as CSV"))

    assert validate_plan(tmp_path / "plan.yaml") == ()


@pytest.mark.parametrize("name", ["feature", "strategy"])
def test_a_goal_is_text_whatever_it_holds(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("goals")
    todos = len(load_plan_text(filled(folder, name, "x"), folder / "p.yaml").plan.items)

    @given(goal=st.text(min_size=1, max_size=200).filter(lambda text: clean(text).strip()))
    def is_text(goal: str) -> None:
        plan = load_plan_text(filled(folder, name, goal), folder / "p.yaml").plan
        assert len(plan.items) == todos
        assert {todo.agent_role for todo in plan.items} <= {"coder", "tester", "architect"}

    is_text()


def test_strategy_is_the_four_steps_with_contracts_fixtures_and_routing(tmp_path: Path) -> None:
    plan = load_plan_text(filled(tmp_path, "strategy", "momentum with RSI"), tmp_path / "p.yaml").plan
    steps = {todo.id: todo for todo in plan.items}

    names = ["t1_data_integration", "t2_indicators", "t3_entry_conditions", "t4_exit_conditions"]
    assert [each for each in steps if each[1] != "0"] == names
    assert all(steps[name].contract_path and steps[name].failure_routing for name in names)
    assert all(each.fixture for name in names for each in steps[name].acceptance_criteria.tests)
    assert [each.name for each in steps[names[0]].acceptance_criteria.metrics] == ["rows_min"]


def test_a_folder_of_ones_own_adds_and_replaces(tmp_path: Path) -> None:
    (tmp_path / "feature.yaml").write_text("# Ours.\ntodo_list_id: {{ id }}\n")
    (tmp_path / "report.yaml").write_text("# A report.\n{% include '_head.yaml' %}")
    templates = PlanTemplates(tmp_path)
    values = {"id": "x", "title": "X: y", "root": ".", "tools": []}

    assert templates.names()["feature"] == "Ours."
    assert templates.fill("feature", values) == "# Ours.\ntodo_list_id: x\n"
    assert "workflow_name: 'X: y'" in templates.fill("report", values)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{{ missing }}", "'missing' is undefined"),
        ("{{ id.__class__.__mro__ }}", "may not"),
        ("{% if %}", "line 1"),
        ("{{ 'a' * 10 ** 10 }}", "may not"),
        ("{% for i in range(10 ** 9) %}x{% endfor %}", "may not"),
        ("{% for i in range(90000) %}{{ 'aaaaaaaaaaaaaaaaaaaa' }}{% endfor %}", f"{MAX_BYTES:,}"),
        ("{% include '../secret.yaml' %}", "no template"),
        ("{{ id.pop() }}", "has no attribute"),
        ("{{ 1 / 0 }}", "correct it"),
    ],
)
def test_a_template_that_fails_or_reaches_out_is_refused_in_one_line(
    tmp_path: Path, text: str, told: str
) -> None:
    folder = tmp_path / "templates"
    folder.mkdir()
    (tmp_path / "secret.yaml").write_text("secret: 1\n")
    (folder / "bad.yaml").write_text(text)

    with pytest.raises(TemplateFault, match=r"^template bad") as caught:
        PlanTemplates(folder).fill("bad", {"id": "x"})

    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_link_out_of_the_folder_is_no_template(tmp_path: Path) -> None:
    folder = tmp_path / "templates"
    folder.mkdir()
    (tmp_path / "secret.yaml").write_text("secret: 1\n")
    (folder / "linked.yaml").symlink_to(tmp_path / "secret.yaml")

    with pytest.raises(TemplateFault, match="no template"):
        PlanTemplates(folder).fill("linked", {})


def test_a_folder_of_templates_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(TemplateFault, match="does not exist"):
        PlanTemplates(tmp_path / "missing")
