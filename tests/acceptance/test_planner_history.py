"""The real `planner step` and `planner history`, each in a process of its own."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import documented_commands
import pytest
from documented_commands import live_through
from example_project import Example, todo
from real_planner import forked

import planner.store.index  # noqa: F401  (for the copies of this process)
from planner.cli.history import app

HISTORY = "planner history "
PAGE = Path(__file__).parents[2] / "docs" / "store.md"


def in_a_copy(command: str, cwd: Path) -> tuple[int, str]:
    """A command of the page in a copy of this process, which has imported what it needs."""
    ran = forked(shlex.split(command)[1:], cwd)
    return ran.status, ran.out + ran.err


def test_every_command_on_the_page_prints_what_is_shown_and_the_index_is_the_owners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = documented_commands.run
    monkeypatch.setattr(
        documented_commands,
        "run",
        lambda command, cwd: in_a_copy(command, cwd) if command.startswith(HISTORY) else run(command, cwd),
    )
    assert live_through(PAGE, tmp_path, "console history") == 4

    path = tmp_path / ".planverify" / "planverify.db"
    assert path.stat().st_mode & 0o777 == 0o600
    told = json.loads(forked(("history", "--json"), tmp_path).out)
    assert told["runs"][0]["questions"][0]["kind"] == "answer"
    path.unlink()
    assert json.loads(forked(("history", "--json"), tmp_path).out) == told


def test_plain_runs_of_the_plugin_are_history(tmp_path: Path) -> None:
    example = Example(tmp_path, {"test_it.py": "def test_it(): assert 1 == 2\n"})
    example.plan(todo("it", "pytest test_it.py"))
    for _ in range(2):
        example.verify()
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    example.verify("--planverify-outcomes", "elsewhere.json")

    shown = forked(("history",), tmp_path)

    assert (shown.status, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert lines[0].endswith(": 3 verifications")
    assert [line.split()[-4:] for line in lines[3:6]] == [
        ["1", "of", "1", "0"],
        ["0", "of", "1", "1"],
        ["0", "of", "1", "1"],
    ]
    assert lines[-1].split()[:4] == ["TEST_REGRESSION", "tester", "1", "it"]
    signature = json.loads((tmp_path / ".planverify/outcomes.json").read_text())["outcomes"][0][
        "failure_evidence"
    ]["signature"]
    assert "seen in 2 verifications of it" in forked(("history", "fixed", signature), tmp_path).out


def test_every_command_and_every_option_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition("## The commands")[2].partition("\n## ")[0]
    names = {each.callback.__name__ for each in app.registered_commands if each.callback is not None}

    assert set(re.findall(r"^\| `planner history (\w+)", section, re.MULTILINE)) == names - {"show"}
    assert "`planner history show PLAN`" in section
    for option in (
        "--store",
        "--json",
        "--role",
        "--category",
        "--because",
        "--by",
        "--rebuild",
        "--import",
    ):
        assert option in section


@pytest.mark.parametrize("module", ["planner.cli.app", "planner.engine", "planner.cli.next"])
def test_the_database_is_imported_only_where_it_is_asked(module: str, tmp_path: Path) -> None:
    import subprocess
    import sys

    code = f"import sys, {module}; sys.exit('sqlalchemy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False)

    assert done.returncode == 0
