"""The page about stories, reviews and metrics says what is so, and a scraper can read what is written."""

from __future__ import annotations

import re
import time
from pathlib import Path

from documented_commands import live_through
from prometheus_client.parser import text_string_to_metric_families

from planner.cli.figures import LIMITS
from planner.cli.metrics import exposition

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_every_command_on_the_page_prints_what_is_shown(tmp_path: Path) -> None:
    assert live_through(PAGE, tmp_path, "console metrics") == 7

    written = tmp_path / "planverify.prom"
    families = {
        each.name: each for each in text_string_to_metric_families(written.read_text(encoding="utf-8"))
    }
    assert written.stat().st_mode & 0o777 == 0o644
    assert written.stat().st_mtime <= time.time()
    assert {sample.labels["plan"] for sample in families["planverify_todos"].samples} == {"shop"}
    assert [each.name for each in tmp_path.glob("*.tmp")] == []


def test_the_page_lists_every_metric_and_every_figure() -> None:
    page = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"`(planverify_[a-z_]+)`", page))
    shown = set(re.findall(r"^# TYPE (\w+) ", exposition({}), re.MULTILINE))

    assert named == shown
    assert set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)) == set(LIMITS)
