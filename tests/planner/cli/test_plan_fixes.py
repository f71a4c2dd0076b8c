"""`validate --fix` corrects what is safe and nothing else; what it tells programs is SARIF or JSON."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from planner.cli.app import app

PLAN = """\
# Ours.
todo_list_id: shop
items:
  - id: make
    title: Make the data  # by a script
    max_retries: 0
    acceptance_criteria:
      expected_artifacts: [data/prices.json]
      tests: [python make.py]
  - id: use
    title: Use the data
    max_retries: 2
    allowed_files: [shop.py]
    acceptance_criteria:
      expected_artifacts: [report.md]
      tests: [{cmd: python -m json.tool data/prices.json, fixture: data/prices.json}]
"""
FIXED = (
    PLAN.replace("max_retries: 0", "max_retries: 2")
    .replace("[shop.py]", "[shop.py, report.md]")
    .replace("    allowed_files", "    dependencies: [make]\n    allowed_files")
)


def validate(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["validate", *words])
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "plan.yaml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "plan.yaml"


def test_safe_corrections_are_written_to_a_new_file_with_all_comments(plan: Path) -> None:
    status, told, remarks = validate("plan.yaml", "--fix", "better.yaml")

    text = Path("better.yaml").read_text()
    assert (status, told.splitlines()[-1]) == (0, "ready: no findings")
    assert [line.split(":")[0] for line in remarks.splitlines()] == [
        "planner",
        "planner",
        "planner",
    ]
    assert "# by a script" in text
    assert {"max_retries: 2", "allowed_files: [shop.py, report.md]"} <= {
        line.strip() for line in text.splitlines()
    }
    assert "make" in text.partition("id: use")[2]
    assert plan.read_text() == PLAN


def test_no_file_that_is_there_is_replaced(plan: Path) -> None:
    status, _, told = validate("plan.yaml", "--fix", "plan.yaml")

    assert status == 2
    assert "the file exists already; name a new file" in told
    assert plan.read_text() == PLAN


def test_two_todos_that_need_each_others_files_are_not_tied_into_a_circle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    todo = (
        "- {{id: {0}, title: {0}, acceptance_criteria: {{expected_artifacts: [{0}.json],\n"
        "   tests: [{{cmd: python -m json.tool {1}.json, fixture: {1}.json}}]}}}}\n"
    )
    Path("plan.yaml").write_text(
        "todo_list_id: x\nitems:\n" + todo.format("a", "b") + todo.format("b", "a")
    )

    _, _, told = validate("plan.yaml", "--fix", "better.yaml")

    assert told.count("corrected dependency-missing") == 1
    assert "dependency-missing" in validate("better.yaml")[1]


def test_sarif_names_the_rule_the_line_and_the_remedy(plan: Path) -> None:
    status, told, _ = validate("plan.yaml", "--format", "sarif")

    run = json.loads(told)["runs"][0]
    first = run["results"][0]
    region = first["locations"][0]["physicalLocation"]["region"]
    assert status == 1
    assert PLAN.splitlines()[region["startLine"] - 1].strip() == "max_retries: 0"
    assert (first["ruleId"], first["level"]) == ("retries-unreasonable", "note")
    assert {each["ruleId"] for each in run["results"]} == {
        each["id"] for each in run["tool"]["driver"]["rules"]
    }
    jsonschema.validate(run["results"], {"type": "array", "minItems": 3})


def test_what_a_parent_must_make_is_made_by_a_todo_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.yaml").write_text(
        "todo_list_id: x\nitems:\n- id: phase\n  title: Phase\n  sub_plan: phase.yaml\n"
        "  acceptance_criteria: {expected_artifacts: [made.md, forgotten.md]}\n"
    )
    Path("phase.yaml").write_text(
        "todo_list_id: phase\nitems:\n- id: a\n  title: A\n  requires_testing: false\n"
        "  acceptance_criteria: {expected_artifacts: [made.md]}\n"
    )

    _, told, _ = validate("plan.yaml", "--select", "parent-uncovered")

    assert "plan.yaml:6:55: warning parent-uncovered 'phase' must make forgotten.md" in told
    assert "made.md," not in told
