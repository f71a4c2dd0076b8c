"""The page about the commands says what is so: its commands run, every option and status is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli.app import COMMANDS
from planner.cli.ending import INTERRUPTED, Status
from planner.cli.schema import NAMES

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "planner-commands.md"
VOLATILE = (
    (re.compile(r"\d+(\.\d+)? ?(ms|s)\b"), "TIME"),
    (re.compile(r"\b\d{8}T\d{6}[\w-]*"), "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"), "WHEN"),
    (re.compile(r"sha256:[0-9a-f]{12}\b"), "DIGEST"),
    (re.compile(r"^={3,}|={3,}$", re.MULTILINE), ""),
)
"""What differs between two runs."""


@pytest.fixture(scope="module")
def text() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_every_command_on_the_page_prints_what_is_shown(text: str, tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns(
        ".planverify", "diagnostics", "__pycache__", ".pytest_cache", ".report.json"
    )
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples", ignore=ignored)
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    status = 0
    blocks = re.findall(r"^```console planner\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for entry in (entry for block in blocks for entry in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]):
        command, _, shown = entry.partition("\n")
        if command == "echo $?":
            assert shown.strip() == str(status)
            continue
        status, printed = run(command, tmp_path)

        assert fits(shown, printed), f"$ {command}\n{printed}"
    assert len(blocks) > 5


def run(command: str, cwd: Path) -> tuple[int, str]:
    """Run a command as its reader would with the virtual environment active."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    kept.pop("CI", None)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=cwd,
        env={**kept, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def fits(shown: str, printed: str) -> bool:
    """Whether the output is what is shown; a line `…` stands for any lines."""
    parts = [re.escape(part) for part in re.split(r"^…\n", settled(shown), flags=re.MULTILINE)]
    return re.fullmatch(r"(?:.*\n)?".join(parts), settled(printed), re.DOTALL) is not None


def settled(text: str) -> str:
    for pattern, replacement in VOLATILE:
        text = pattern.sub(replacement, text)
    return "".join(f"{line.strip()}\n" for line in text.splitlines())


def test_an_excerpt_fits_only_what_it_is_an_excerpt_of() -> None:
    assert fits("a\n…\nc\n", "a\nb\nc\n")
    assert fits("a\n…\n", "a\nb\nc\n")
    assert fits("…\nc\n", "a\nb\nc\n")
    assert fits("a\nb\n", "a\nb\n")
    assert not fits("a\nc\n", "a\nb\nc\n")
    assert not fits("a\n…\n", "b\na\n")


def test_every_command_has_its_section(text: str) -> None:
    sections = set(re.findall(r"^## `planner (\w+)`$", text, re.MULTILINE))

    assert sections == set(COMMANDS) - {"contract"}, "docs/contracts.md tells of that one"


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"contract"}))
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

    assert sorted(map(int, rows)) == sorted({*Status, INTERRUPTED} - {Status.FOUND})


def test_every_schema_is_named(text: str) -> None:
    for name in NAMES:
        assert f"`{name}`" in text
