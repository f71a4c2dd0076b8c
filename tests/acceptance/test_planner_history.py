"""The real `planner step --store` and `planner history`, each in a process of its own."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from pathlib import Path

import documented_commands
import pytest
from documented_commands import live_through
from real_planner import forked

import planner.edges.store  # noqa: F401  (for the copies of this process)
from planner.cli.history import app

HISTORY = "planner history "
PAGE = Path(__file__).parents[2] / "docs" / "store.md"


def in_a_copy(command: str, cwd: Path) -> tuple[int, str]:
    """A command of the page in a copy of this process, which has imported what it needs."""
    ran = forked(shlex.split(command)[1:], cwd)
    return ran.status, ran.out + ran.err


def test_every_command_on_the_page_prints_what_is_shown_and_the_store_is_the_owners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = documented_commands.run
    monkeypatch.setattr(
        documented_commands,
        "run",
        lambda command, cwd: in_a_copy(command, cwd) if command.startswith(HISTORY) else run(command, cwd),
    )
    assert live_through(PAGE, tmp_path, "console history") == 6

    path = tmp_path / ".planverify" / "planverify.db"
    assert path.stat().st_mode & 0o777 == 0o600
    told = json.loads(forked(("history", "--json"), tmp_path).out)
    assert told["runs"][0]["questions"][0]["kind"] == "answer"
    log = forked(("history", "log", "monday"), tmp_path).out
    assert [json.loads(line)["n"] for line in log.splitlines()] == list(range(9))

    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE planner_schema SET version = 99, written_by = '9.0'")
    raw.close()
    refused = forked(("history", "blocked"), tmp_path)
    assert (refused.status, refused.out) == (4, "")
    assert refused.err == (
        "planner: .planverify/planverify.db: the store has version 99, written by planner 9.0; "
        "this planner knows version 2: update it (pip install --upgrade pytest-planverify), "
        "or name another store with --store\n"
    )


def test_every_command_and_every_option_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition("## The commands")[2].partition("\n## ")[0]
    names = {each.callback.__name__ for each in app.registered_commands if each.callback is not None}

    assert set(re.findall(r"^\| `planner history (\w+)", section, re.MULTILINE)) == names - {"show"}
    assert "`planner history show PLAN`" in section
    for option in (
        "--store",
        "--json",
        "--run",
        "--todo",
        "--plan",
        "--role",
        "--category",
        "--because",
        "--by",
        "--was",
    ):
        assert option in section


@pytest.mark.parametrize("module", ["planner.cli.app", "planner.engine", "planner.cli.history"])
def test_the_database_is_imported_only_where_a_store_is_wanted(module: str, tmp_path: Path) -> None:
    import subprocess
    import sys

    code = f"import sys, {module}; sys.exit('sqlalchemy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False)

    assert done.returncode == 0
