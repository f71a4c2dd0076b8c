"""Fixtures for tests that run ``planner`` commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from planner_command import Command


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return the command, run in this process in an empty folder."""
    return Command(tmp_path, monkeypatch, capsys)


@pytest.fixture
def planner(command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return the command with a separate state directory for design plans."""
    monkeypatch.setenv("PLANNER_STATE_DIR", str(command.folder / "state"))
    return command
