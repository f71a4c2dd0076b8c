"""The run's folder: its own, out of version control, and only so many of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_planverify.supervision.run_folder import KEPT_RUNS, RunFolder, new_run_id


def test_a_run_has_a_folder_that_nobody_else_reads(tmp_path: Path):
    folder = RunFolder(tmp_path, "r1")
    folder.create()

    assert folder.path == tmp_path / ".planverify/runs/r1"
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert folder.journal.parent == folder.path
    assert (folder.outcomes, folder.answers) == (
        tmp_path / ".planverify/outcomes.json",
        tmp_path / ".planverify/answers.json",
    )
    assert (tmp_path / ".planverify/.gitignore").read_text().endswith("\n*\n")


def test_an_ignore_file_that_is_there_is_left_alone(tmp_path: Path):
    (tmp_path / ".planverify").mkdir()
    (tmp_path / ".planverify/.gitignore").write_text("mine\n")

    RunFolder(tmp_path, "r1").create()

    assert (tmp_path / ".planverify/.gitignore").read_text() == "mine\n"


def test_two_runs_never_share_a_folder(tmp_path: Path):
    assert len({new_run_id() for _ in range(50)}) == 50

    RunFolder(tmp_path, "r1").create()
    with pytest.raises(FileExistsError):
        RunFolder(tmp_path, "r1").create()


def test_only_the_last_runs_are_kept_and_the_running_one_always(tmp_path: Path):
    for number in range(KEPT_RUNS + 5):
        RunFolder(tmp_path, f"r{number:02}").create()
        os.utime(tmp_path / f".planverify/runs/r{number:02}", (number + 1, number + 1))
    (tmp_path / ".planverify/runs/note.txt").touch()

    last = RunFolder(tmp_path, "last")
    last.create()

    kept = sorted(path.name for path in last.path.parent.iterdir())
    assert kept == ["last", "note.txt", *(f"r{number:02}" for number in range(6, KEPT_RUNS + 5))]
