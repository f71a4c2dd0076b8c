"""Who commits each step and then sees red gets what has changed since the last green run."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SHOP = """\
def total(prices):
    return sum(prices) - discount(prices)


def discount(prices):
    return 1 if len(prices) >= 3 else 0


def name():
    return "shop"
"""
TESTS = """\
from shop import total


def test_discount():
    assert total([1, 2, 3]) == 5
"""
RED = SHOP.replace(">= 3", "> 3")
LOUD = SHOP.replace('"shop"', '"Shop"')


@pytest.fixture
def project(tmp_path: Path) -> Path:
    plan = {
        "todo_list_id": "p",
        "items": [{"id": "t", "title": "T", "acceptance_criteria": {"tests": ["pytest test_shop.py"]}}],
    }
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    (tmp_path / "test_shop.py").write_text(TESTS)
    (tmp_path / ".gitignore").write_text("__pycache__\n.planverify\n.pytest_cache\ndiagnostics\n")
    git(tmp_path, "init", "-q")
    return tmp_path


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True)


def write(folder: Path, shop: str, *, commit: bool = True) -> None:
    (folder / "shop.py").write_text(shop)
    if commit:
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "a step")


@pytest.fixture(autouse=True)
def _lean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of a short run is the loading of the plugins that the tests need."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_planverify.plugin")


def verify(folder: Path) -> tuple[bool, list[tuple[str, str, int]], dict[str, Any]]:
    """Return whether it is green, the changed hunks that the outcome tells, and what it says."""
    command = [sys.executable, "-m", "pytest", "--planverify", "plan.yaml", "-p", "no:cacheprovider"]
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    outcome = json.loads((folder / ".planverify/outcomes.json").read_text())["outcomes"][0]
    failure = outcome.get("failure_evidence") or {}
    told = [each["hunk"] for each in failure.get("candidates", ()) if each["hunk"]]
    hunks = [(each["path"], each["function"], each["line"]) for each in told]
    return outcome["success"], hunks, failure


def test_a_committed_step_that_turned_the_todo_red_is_the_place_and_stands_in_the_brief(project: Path):
    write(project, SHOP)
    assert verify(project)[0]
    write(project, RED)
    write(project, RED.replace('"shop"', '"Shop"'))

    green, hunks, failure = verify(project)

    assert not green
    assert hunks[0] == ("shop.py", "discount", 6)
    assert failure["location"] == {"path": "shop.py", "line": 6, "function": "discount"}
    told = subprocess.run(
        [sys.executable, "-m", "planner", "next", "plan.yaml", "--brief", "t_branch_01"],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "-    return 1 if len(prices) >= 3 else 0" in told


def test_a_step_that_was_green_before_it_was_committed_is_not_told(project: Path):
    write(project, SHOP)
    write(project, LOUD, commit=False)
    (project / "notes.txt").write_text("of nobody's interest")
    assert verify(project)[0]
    (project / "notes.txt").unlink()
    write(project, LOUD)
    write(project, LOUD.replace(">= 3", "> 3"))

    assert verify(project)[1] == [("shop.py", "discount", 6)]


def test_where_the_green_state_is_lost_the_last_commit_counts(project: Path):
    write(project, SHOP)
    assert verify(project)[0]
    state = project / ".planverify/plans/p/green.json"
    held = state.read_text()
    write(project, RED)
    write(project, RED.replace('"shop"', '"Shop"'), commit=False)

    def said(**facts: object) -> str:
        damaged = json.loads(held)
        damaged["todos"]["t"].update(facts)
        return json.dumps(damaged)

    damages = {
        "kept": held,
        "gone": None,
        "garbage": "{",
        "other commit": said(commit="0" * 40),
        "other files": said(files={"shop.py": "0" * 40}),
    }
    for damage, text in damages.items():
        state.unlink(missing_ok=True)
        if text is not None:
            state.write_text(text)
        green, hunks, _ = verify(project)
        assert not green, damage
        since_green = [("shop.py", "discount", 6)] if damage == "kept" else []
        assert hunks == [*since_green, ("shop.py", "name", 10)], damage


def test_a_todo_that_was_never_green_has_no_green_state(project: Path):
    write(project, RED)

    assert verify(project)[1] == []
    assert not (project / ".planverify/plans/p/green.json").exists()
