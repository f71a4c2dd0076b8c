"""The page about the commands says what is so: its commands run, every option and status is there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from documented_commands import live_through, run

from planner.cli.app import COMMANDS
from planner.cli.exits import INTERRUPTED, Status
from planner.cli.plan_file import SCHEMAS

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "planner-commands.md"
ELSEWHERE = {
    **dict.fromkeys(("new", "decompose", "tools"), "new-plans.md"),
    "contract": "contracts.md",
    "step": "engine-protocol.md",
    "replay": "engine-protocol.md",
    "history": "store.md",
    "gaps": "iterations.md",
    "iterate": "iterations.md",
    "design": "design-plans.md",
    "workflow": "design-plans.md",
}
"""Commands that have a page of their own."""


@pytest.fixture(scope="module")
def text() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_every_command_on_the_page_prints_what_is_shown(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns(
        ".planverify", "diagnostics", "__pycache__", ".pytest_cache", ".report.json"
    )
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples", ignore=ignored)
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)

    assert live_through(PAGE, tmp_path, "console planner") > 15


def test_every_command_has_its_section(text: str) -> None:
    sections = set(re.findall(r"^## `planner (\w+)`$", text, re.MULTILINE))

    assert sections == set(COMMANDS) - set(ELSEWHERE)
    for page in ELSEWHERE.values():
        assert f"({page})" in text


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(ELSEWHERE)))
def test_every_option_of_a_command_is_in_its_section(name: str, text: str, tmp_path: Path) -> None:
    _, shown = run(f"planner {name} --help", tmp_path)
    options = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", shown, re.MULTILINE)) - {"--help"}
    (section,) = re.findall(rf"^## `planner {name}`\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```$", "", section, flags=re.MULTILINE | re.DOTALL)
    documented = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", prose))

    assert options <= documented
    assert {each for each in documented - options if not each.startswith("--planverify")} <= {"--output"}


def test_every_exit_status_is_in_the_table(text: str) -> None:
    rows = re.findall(r"^\| (\d+) \|", text, re.MULTILINE)

    assert sorted(map(int, rows)) == sorted({*Status, INTERRUPTED})


def test_every_schema_is_named(text: str) -> None:
    for name in SCHEMAS:
        assert f"`{name}`" in text
