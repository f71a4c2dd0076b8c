"""Fixtures for tests that run ``planner`` commands, write files or read design plans."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from design_samples import begin_complete, begin_frozen
from planner_command import Command

from planner.authoring.design.state_folder import StateFolder


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Let files be written later: to wait for the disk takes most of the time of many tests."""
    connect = sqlite3.dbapi2.connect

    def connect_at_once(*words: Any, **settings: Any) -> sqlite3.Connection:
        connection = connect(*words, **settings)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        patch.setattr(sqlite3.dbapi2, "connect", connect_at_once)
        yield


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return the command, run in this process in an empty folder."""
    return Command(tmp_path, monkeypatch, capsys)


@pytest.fixture
def planner(command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return the command with a separate state directory for design plans."""
    monkeypatch.setenv("PLANNER_STATE_DIR", str(command.folder / "state"))
    return command


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    """Return the state directory of a complete plan."""
    return begin_complete(tmp_path / "state")


@pytest.fixture
def frozen(tmp_path: Path) -> StateFolder:
    """Return the state directory of a frozen plan."""
    return begin_frozen(tmp_path / "state")
