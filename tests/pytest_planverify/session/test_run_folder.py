"""The run's folder: its own, out of version control, and only so many of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_planverify.session.run_folder import KEPT_RUNS, RunFolder, new_run_id


def test_an_ignore_file_that_is_there_is_left_alone(tmp_path: Path):
    (tmp_path / ".planverify").mkdir()
    (tmp_path / ".planverify/.gitignore").write_text("mine\n")

    RunFolder(tmp_path, "r1").create()

    assert (tmp_path / ".planverify/.gitignore").read_text() == "mine\n"


def test_what_a_killed_run_had_not_written_to_its_end_is_dropped_in_time(tmp_path: Path):
    home = tmp_path / ".planverify"
    (home / "plans" / "p").mkdir(parents=True)
    for name in (
        "plans/p/.outcomes.json.x1.tmp",
        ".outcomes.json.x1.tmp",
        ".outcomes.json.x2.tmp",
        "kept.tmp",
    ):
        (home / name).touch()
    os.utime(home / ".outcomes.json.x1.tmp", (1, 1))
    os.utime(home / "plans/p/.outcomes.json.x1.tmp", (1, 1))
    os.utime(home / "kept.tmp", (1, 1))

    RunFolder(tmp_path, "r1").create()

    assert sorted(path.name for path in home.iterdir()) == [
        ".gitignore", ".outcomes.json.x2.tmp", "kept.tmp", "plans", "runs",
    ]  # fmt: skip
    assert not list((home / "plans/p").iterdir())


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
