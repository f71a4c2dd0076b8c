"""`planverify next` after real runs: stopped plans, missing tools, and approvals after an edit in place."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from example_project import Example, todo
from real_command import planverify

FILES = {
    "shop.py": "def price(): return 3\n",
    "test_shop.py": """
        import pathlib
        import shop

        RUNS = pathlib.Path(__file__).parent.parent / "runs"

        def test_price():
            assert shop.price() == 4

        def test_flaky():
            count = len(RUNS.read_text()) if RUNS.exists() else 0
            RUNS.write_text("x" * (count + 1))
            assert count % 2
    """,
}

TOOL = {"name": "no_such_tool", "kind": "validate", "argv": ["no_such_tool"]}


@pytest.fixture
def project(tmp_path: Path) -> Example:
    return Example(tmp_path / "project", FILES)


def said(project: Example, *words: str, status: int = 0) -> str:
    done = planverify(*words, cwd=project.root)
    assert done.returncode == status, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def test_a_stopped_plan_still_shows_what_fails(project: Example):
    project.plan(todo("price", "pytest test_shop.py::test_price", status="claimed", max_retries=0))
    for number in range(4):
        project.write({"note.py": f"turn = {number}\n"})
        project.verify()
        said(project, "next", status=0 if number < 3 else 11)
    said(project, "answer", "plan.yaml", "price", "stop", "--by", "ann")

    shown = said(project, "next", status=11)

    assert "halted" in shown.splitlines()[0]
    assert "[stopped-by-person]" in shown
    assert "failed test_shop.py::test_price" in shown
    assert "says   AssertionError: assert 3 == 4" in shown


def test_what_could_not_be_verified_is_counted_and_shown_with_its_remedy(project: Example):
    project.plan(todo("types", "no_such_tool shop.py", status="claimed"), metadata={"tools": [TOOL]})
    project.verify()

    shown = said(project, "next", status=10)

    assert "1 could not be verified" in shown.splitlines()[0]
    assert "verify types: something was missing: no_such_tool is not installed" in shown
    assert "install it, or correct PATH" in shown
    assert "nothing fails" not in said(project, "brief")


def test_an_approval_after_an_edit_in_place_is_part_of_the_same_run(project: Example):
    project.plan(
        todo("flaky", "pytest test_shop.py::test_flaky", status="claimed"),
        todo("price", "pytest test_shop.py::test_price", status="claimed"),
    )
    project.verify()
    said(project, "next", "--in-place")
    assert "metadata" not in (project.root / "plan.yaml").read_text()

    said(project, "approve", "plan.yaml", "flaky:edits:1", "--by", "ann")
    said(project, "next", "--in-place")

    assert "quarantine" in (project.root / "plan.yaml").read_text()
    assert [each.name for each in (project.root / ".planverify/logs").iterdir()] == ["example.jsonl"]


def test_an_answer_after_the_run_asks_for_another_verification(project: Example):
    manual = [
        {"question": "Is it readable?", "role": "human"},
        {"question": "Is it short?", "role": "human"},
    ]
    project.write({"shop.py": "def price(): return 4\n"})
    project.plan(todo("price", "pytest test_shop.py::test_price", status="claimed", manual=manual))
    project.verify()
    assert "answer planverify answer plan.yaml price yes --check 'manual[1]' # or" in said(
        project, "next", status=11
    )
    said(project, "answer", "price", "yes", status=2)  # which of the two?
    said(project, "answer", "price", "answered", "--check", "manual[0]", status=2)
    assert "still open: manual[1] Is it short?" in said(
        project, "answer", "price", "yes", "--check", "manual[0]"
    )
    said(project, "answer", "price", "yes")
    assert project.verify().exit_code == 0
    assert "completed" in said(project, "next")

    time.sleep(1.1)  # answers have a time in seconds
    said(project, "answer", "price", "too long", "--check", "manual[1]")

    shown = said(project, "next")
    assert "! answered since the run: price" in shown
    assert "plan.yaml::price" in shown

    project.write({"shop.py": "def price(): return 2 + 2\n"})
    refused = project.verify()
    (failure,) = refused.outcomes["price"]["failures"]
    assert (failure.get("location"), failure["candidates"]) == (None, []), "no code is known to be at fault"
    brief = said(project, "next", "--brief", "price")
    assert brief.startswith("# Repair `price`: a person answered no")
    assert "after the repair, a person must answer again first" in brief
