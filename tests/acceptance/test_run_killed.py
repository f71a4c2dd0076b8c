"""SIGKILL at any moment of `planverify run`, and `--resume`: the same end, nothing done twice or lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from killed_runs import fresh, moments, run_killed, run_unkilled

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git keeps the files of each turn")


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_is_killed_and_resumed_ends_as_one_that_is_not(tmp_path: Path, jobs: int):
    wanted, seconds = run_unkilled(fresh(tmp_path / "unkilled"), jobs)
    assert wanted.status == 0
    assert sorted(wanted.done) == ["left", "right"]
    for number, at in enumerate(moments(2, seconds, seed=jobs)):
        place = fresh(tmp_path / str(number))
        got, _ = run_killed(place, jobs, at)
        others = {path: text for path, text in got.files.items() if wanted.files.get(path) != text}
        gone = wanted.files.keys() - got.files.keys()
        assert (others, gone) == ({}, set()), at
        assert got == wanted, (at, (place / "output.txt").read_text())
