"""`planner history` and `planner metrics`."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from documented_commands import live_through
from example_project import Example, todo
from prometheus_client.parser import text_string_to_metric_families
from real_planner import forked

from planner.cli.history import app
from planner.cli.metrics import exposition
from planner.store import index  # noqa: F401 (for the forks of this process)

PAGE = Path(__file__).parents[2] / "docs" / "store.md"


def test_commands_of_the_history_page_work_and_the_index_is_private(tmp_path: Path) -> None:
    assert live_through(PAGE, tmp_path, "console history") == 3

    path = tmp_path / ".planverify" / "planverify.db"
    assert path.stat().st_mode & 0o777 == 0o600
    told = json.loads(forked(("history", "--json"), tmp_path).out)
    assert told["runs"][0]["questions"][0]["kind"] == "answer"
    path.unlink()
    assert json.loads(forked(("history", "--json"), tmp_path).out) == told


def test_plain_verification_runs_are_in_the_history(tmp_path: Path) -> None:
    example = Example(tmp_path, {"test_it.py": "def test_it(): assert 1 == 2\n"})
    example.plan(todo("it", "pytest test_it.py"))
    example.verify("--planverify-confirm=0", "--planverify-outcomes", "elsewhere.json")

    shown = forked(("history",), tmp_path)

    assert (shown.status, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert lines[0].endswith(": 1 verification")
    assert lines[3].split()[-4:] == ["0", "of", "1", "1"]


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


METRICS_PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_every_command_on_the_metrics_page_prints_the_output_shown(tmp_path: Path) -> None:
    assert live_through(METRICS_PAGE, tmp_path, "console metrics") == 4

    written = tmp_path / "planverify.prom"
    families = {
        each.name: each for each in text_string_to_metric_families(written.read_text(encoding="utf-8"))
    }
    assert written.stat().st_mode & 0o777 == 0o644
    assert written.stat().st_mtime <= time.time()
    assert {sample.labels["plan"] for sample in families["planverify_runs"].samples} == {"shop"}
    assert [each.name for each in tmp_path.glob("*.tmp")] == []


def test_the_page_lists_every_metric() -> None:
    page = METRICS_PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"`(planverify_[a-z_]+)`", page))
    shown = set(re.findall(r"^# TYPE (\w+) ", exposition([], []), re.MULTILINE))

    assert named == shown
