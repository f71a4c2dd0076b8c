"""Reports written by a run and rendered afterwards are the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_project import Example, todo
from real_planner import Ran, forked
from test_written_files import GREEN_AND_RED, read, verify


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    example = Example(tmp_path, GREEN_AND_RED)
    example.plan(todo("it", "pytest test_it.py::test_red"), path="plan.yaml")
    return tmp_path


def report(*words: str, cwd: Path) -> Ran:
    """Run `planverify report WORDS`, which starts no other process, in a fork."""
    ran = forked(("report", *words), cwd, program="planverify")
    assert "Traceback" not in ran.out + ran.err
    return ran


def test_reports_written_by_a_run_on_github_actions_equal_those_rendered_later(shop: Path) -> None:
    summary = shop / "summary.md"
    words = ("plan.yaml", "--planverify-report", "sarif", "--planverify-report=junit=a.xml")
    done = verify(*words, cwd=shop, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert done.exit_code == 1
    errors = [line for line in done.output.splitlines() if line.startswith("::error file=")]
    assert len(errors) == 1
    assert "pytest --planverify plan.yaml::it" in summary.read_text()
    [result] = read(shop / ".planverify/reports/planverify.sarif")["runs"][0]["results"]
    assert result["level"] == "error"
    assert report("junit=b.xml", cwd=shop).out == "wrote b.xml\n"
    assert report("html", cwd=shop).out == "wrote .planverify/reports/report.html\n"
    assert (shop / "b.xml").read_text() == (shop / "a.xml").read_text()
    assert report("junit=-", "plan.yaml", cwd=shop).out == (shop / "a.xml").read_text()


def test_an_unwritable_report_changes_neither_exit_status_nor_outcomes(shop: Path) -> None:
    done = verify("plan.yaml", "--planverify-report=junit=/dev/full", cwd=shop)
    assert done.exit_code == 1
    assert "report junit: /dev/full: cannot be written" in done.output
    assert read(shop / ".planverify/outcomes.json")["outcomes"][0]["state"] == "test_failed"
    assert report("junit=/dev/full", cwd=shop).status == 4


def test_an_unknown_format_is_refused_before_anything_runs(shop: Path) -> None:
    done = verify("plan.yaml", "--planverify-report=pdf", cwd=shop)
    assert done.exit_code == 4
    assert "'pdf' is not a report format" in done.output
    assert not (shop / ".planverify").exists()
    assert report("pdf", cwd=shop).status == 2
    assert report("junit=", cwd=shop).status == 2
    assert "run first" in report("junit", cwd=shop).err


def test_no_output_replaces_the_plan(shop: Path) -> None:
    text = (shop / "plan.yaml").read_text()
    (shop / "link.yaml").symlink_to("plan.yaml")
    for option in ("--planverify-outcomes=link.yaml", "--planverify-report=junit=plan.yaml"):
        done = verify("plan.yaml", option, cwd=shop)
        assert done.exit_code == 4
        assert "this is the plan itself; name another file" in done.output
    assert not (shop / ".planverify").exists()
    assert report("junit=plan.yaml", cwd=shop).status == 4
    assert (shop / "plan.yaml").read_text() == text
