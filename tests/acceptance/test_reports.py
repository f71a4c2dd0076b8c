"""Reports written by a run and rendered afterwards are the same; the tree that `planverify run` draws."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from example_project import Example, todo
from test_written_files import GREEN_AND_RED, read, run, verify

from planner.model.verdicts import TodoLife
from planner.text.display import UNICODE
from pytest_planverify.harness.progress import RunProgress, tree_lines

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    example = Example(tmp_path, GREEN_AND_RED)
    example.plan(todo("it", "pytest test_it.py::test_red"), path="plan.yaml")
    return tmp_path


def test_reports_written_by_a_run_equal_those_rendered_later(shop: Path) -> None:
    done = verify("plan.yaml", "--planverify-report", "sarif", "--planverify-report=junit=a.xml", cwd=shop)
    assert done.returncode == 1
    [result] = read(shop / ".planverify/reports/planverify.sarif")["runs"][0]["results"]
    assert result["level"] == "error"
    assert run("planverify", "report", "junit=b.xml", cwd=shop).stdout == "wrote b.xml\n"
    assert run("planverify", "report", "html", cwd=shop).stdout == "wrote .planverify/reports/report.html\n"
    assert (shop / "b.xml").read_text() == (shop / "a.xml").read_text()
    assert (
        run("planverify", "report", "junit=-", "plan.yaml", cwd=shop).stdout == (shop / "a.xml").read_text()
    )


def test_an_unwritable_report_changes_neither_exit_status_nor_outcomes(
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


def test_github_actions_get_an_annotation_and_a_summary(shop: Path) -> None:
    summary = shop / "summary.md"
    done = verify("plan.yaml", cwd=shop, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 1
    errors = [line for line in done.stdout.splitlines() if line.startswith("::error file=")]
    assert len(errors) == 1
    assert "pytest --planverify plan.yaml::it" in summary.read_text()


class Standing(NamedTuple):
    """The attributes of a todo's record that the tree uses."""

    id: str
    within: str
    life: TodoLife
    turns: int = 0


def phases(*lives: TodoLife) -> list[Standing]:
    """Return one todo for each life, with four todos within each."""
    found: list[Standing] = []
    for number, life in enumerate(lives, 1):
        name = f"phase-{number}"
        found.append(Standing(name, "", life))
        found += [Standing(f"{name}/{inner}", name, life, 1) for inner in "abcd"]
    return found


def drawn(todos: Sequence[Standing], room: int) -> list[str]:
    return tree_lines(todos, UNICODE, room)  # pyright: ignore[reportArgumentType]


def test_the_tree_expands_only_the_current_phase():
    lines = drawn(phases(TodoLife.DONE, TodoLife.ACTIVE, TodoLife.PENDING), 12)
    assert lines[0].split() == ["✓", "phase-1", "done", "4/4"]
    assert [line.split()[1].rstrip(",") for line in lines[1:6]] == [
        "phase-2",
        *(f"phase-2/{inner}" for inner in "abcd"),
    ]
    assert lines[6].split() == ["·", "phase-3", "pending", "0/4"]


@pytest.mark.parametrize("room", [0, 1, 3, 12])
def test_the_tree_fits_its_height_and_keeps_the_active_todo(room: int):
    lines = drawn(phases(*[TodoLife.PENDING] * 14, TodoLife.ACTIVE), room)
    assert len(lines) <= room
    if room > 1:
        assert any("phase-15" in line for line in lines)


def test_no_tree_is_drawn_without_a_terminal():
    stream = io.StringIO()
    progress = RunProgress(stream)
    progress.line("said")
    progress.close()
    assert stream.getvalue() == "  said\n"
