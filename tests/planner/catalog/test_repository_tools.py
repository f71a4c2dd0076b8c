"""Tools that a repository names count for whoever writes a plan, and are written into it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.catalog import RECIPES, TOOLS
from planner.cli.app import app
from planner.errors import PlannerError
from planner.planfile.discovery import repository_tools
from planner.planfile.loader import load_plan

TABLE = """\
[tool.planverify.tools]
sorted = ["sort", "--check"]
schemas = {argv = ["python", "tools/schemas.py"], kind = "lint"}
"""


def planner(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.output


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(TABLE)
    return tmp_path


def test_a_repository_names_tools(here: Path) -> None:
    assert [(each.name, each.kind, each.argv) for each in repository_tools(here)] == [
        ("sorted", "validate", ("sort", "--check")),
        ("schemas", "lint", ("python", "tools/schemas.py")),
    ]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("tools = 1", "is not a table"),
        ('tools.x = ["bash", "-c"]', "shell"),
        ('tools.x = {argv = ["ruff", "check", "--exit-zero"]}', "x: "),
        ("tools.x = 1", "write a list of words"),
        ('tools.x = {kind = "magic"}', "kind"),
        ('tools.x = {colour = "red"}', "unknown key colour"),
    ],
)
def test_a_tool_that_a_plan_may_not_name_is_refused_with_its_place(
    tmp_path: Path, value: str, told: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.planverify]\n{value}\n")

    with pytest.raises(PlannerError, match=r"\[tool\.planverify") as caught:
        repository_tools(tmp_path)

    assert told in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        ["init"],
        ["new", "Prices", "-t", "feature"],
        ["new", "Prices", "-t", "strategy"],
        ["decompose", "Prices"],
    ],
)
def test_plans_that_use_the_tools_name_them(here: Path, words: list[str]) -> None:
    status, told = planner(*words, "-o", "made.yaml")
    assert status == 0, told

    plan = load_plan(here / "made.yaml").plan
    used = {each.name for each in plan.metadata.tools}
    assert used == {"sorted", "schemas"}


def test_a_tool_of_the_repository_judges_no_plan_that_does_not_name_it(here: Path) -> None:
    (here / "plan.yaml").write_text(
        "todo_list_id: x\nitems: [{id: a, title: A, verify: sorted names.txt}]\n"
    )

    with pytest.raises(PlannerError, match="sorted"):
        load_plan(here / "plan.yaml")


def test_tools_lists_the_repositorys_the_catalogs_and_the_recipes(here: Path) -> None:
    told = json.loads(planner("tools", "--json")[1])

    assert [each["name"] for each in told["tools"][:2]] == ["sorted", "schemas"]
    assert len(told["tools"]) == 2 + len(TOOLS)
    assert {each["name"]: [run["cmd"] for run in each["runs"]] for each in told["recipes"]} == {
        name: list(commands) for name, commands in RECIPES.items()
    }
    pytest_row = next(each for each in told["tools"] if each["name"] == "pytest")
    assert pytest_row == {"name": "pytest", "kind": "test", "runs": "pytest", "here": True, "of": "catalog"}


def test_tools_tells_of_one_tool_recipe_or_purpose(here: Path) -> None:
    assert "sort --check" in planner("tools", "sorted")[1]
    assert "python-quick" in planner("tools", "python-quick")[1]
    assert "ruff" in planner("tools", "lint")[1]
    status, told = planner("tools", "ruf")
    assert (status, "did you mean 'ruff'" in told) == (2, True)
