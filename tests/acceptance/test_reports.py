"""`--planverify-report` and `planverify report`: the same reports, at the run and afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_project import Example, todo
from test_written_files import GREEN_AND_RED, read, run, verify


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    example = Example(tmp_path, GREEN_AND_RED)
    example.plan(todo("it", "pytest test_it.py::test_red"), path="plan.yaml")
    return tmp_path


def test_reports_of_a_run_and_those_rendered_afterwards_are_the_same(shop: Path) -> None:
    done = verify("plan.yaml", "--planverify-report", "sarif", "--planverify-report=junit=a.xml", cwd=shop)
    assert done.returncode == 1
    [result] = read(shop / ".planverify/reports/planverify.sarif")["runs"][0]["results"]
    assert result["level"] == "error"
    assert run("planverify", "report", "junit=b.xml", cwd=shop).returncode == 0
    assert (shop / "b.xml").read_text() == (shop / "a.xml").read_text()
    assert (
        run("planverify", "report", "junit=-", "plan.yaml", cwd=shop).stdout == (shop / "a.xml").read_text()
    )


def test_a_report_that_cannot_be_written_changes_neither_the_exit_status_nor_the_outcomes(
    shop: Path,
) -> None:
    done = verify("plan.yaml", "--planverify-report=junit=/dev/full", cwd=shop)
    assert done.returncode == 1
    assert "report junit: /dev/full: cannot be written" in done.stdout
    assert read(shop / ".planverify/outcomes.json")["outcomes"][0]["state"] == "test_failed"
    assert run("planverify", "report", "junit=/dev/full", cwd=shop).returncode == 4


def test_an_unknown_format_is_refused_before_anything_runs(shop: Path) -> None:
    done = verify("plan.yaml", "--planverify-report=pdf", cwd=shop)
    assert done.returncode == 4
    assert "'pdf' is not a report format" in done.stdout + done.stderr
    assert not (shop / ".planverify").exists()
    assert run("planverify", "report", "pdf", cwd=shop).returncode == 2
    assert run("planverify", "report", "junit=", cwd=shop).returncode == 2
    assert "run first" in run("planverify", "report", "junit", cwd=shop).stderr


def test_github_actions_are_told_of_the_fault_and_given_a_summary(shop: Path) -> None:
    summary = shop / "summary.md"
    done = verify("plan.yaml", cwd=shop, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 1
    errors = [line for line in done.stdout.splitlines() if line.startswith("::error file=")]
    assert len(errors) == 1
    assert "pytest --planverify plan.yaml::it" in summary.read_text()
