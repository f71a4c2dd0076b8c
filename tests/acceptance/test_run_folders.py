"""What runs leave in .planverify: records of the last runs, kept apart, out of version control."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from example_project import Example, todo


def an_example(folder: Path, seconds: float = 0) -> Example:
    text = f"import time\ndef test_it(): time.sleep({seconds})\ndef test_red(): assert 0\n"
    example = Example(folder, {"test_it.py": text})
    example.plan(todo("draw", "pytest test_it.py::test_it"), todo("paint", "pytest test_it.py::test_red"))
    return example


def test_two_runs_at_once_keep_their_journals_apart_and_the_outcomes_whole(tmp_path: Path):
    example = an_example(tmp_path, seconds=0.3)

    with ThreadPoolExecutor(2) as pool:
        runs = [each.result() for each in [pool.submit(example.verify), pool.submit(example.verify)]]

    assert [run.exit_code for run in runs] == [1, 1], str(runs[0]) + str(runs[1])
    assert example.verify("--collect-only").document is not None
    journals = [
        run / "journal.jsonl" for run in example.runs if (run / "journal.jsonl").read_text().count("\n") > 2
    ]
    for journal in journals[:2]:
        records = [json.loads(line) for line in journal.read_text().splitlines()]
        assert len({record["run_id"] for record in records if "run_id" in record}) == 1
        assert {record["nodeid"] for record in records if record["record"] == "test_finished"} == {
            "test_it.py::test_it",
            "test_it.py::test_red",
        }
    document = json.loads(example.outcome_file.read_text())
    assert document["run"]["run_id"] in {run.name for run in example.runs}


def test_the_records_of_the_last_twenty_runs_are_kept(tmp_path: Path):
    example = an_example(tmp_path)
    for number in range(25):
        old = tmp_path / ".planverify/runs" / f"20200101T0000{number:02}-1-abc"
        old.mkdir(parents=True)
        os.utime(old, (number, number))

    example.verify("plan.yaml::draw")

    names = [run.name for run in example.runs]
    assert len(names) == 20
    assert names[0] == "20200101T000006-1-abc"


def test_the_folder_keeps_itself_out_of_version_control_and_its_files_private(tmp_path: Path):
    example = an_example(tmp_path)

    example.verify("plan.yaml::draw")

    folder = tmp_path / ".planverify"
    assert "*" in (folder / ".gitignore").read_text().splitlines()
    private = [example.outcome_file, *example.runs]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in private} == {0}


def test_a_root_that_cannot_be_written_to_is_a_usage_error(tmp_path: Path):
    example = an_example(tmp_path)
    (tmp_path / ".planverify").write_text("")

    run = example.verify()

    assert run.exit_code == 4, str(run)
    assert "cannot be written" in run.output
    assert "Traceback" not in run.output


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_root_is_a_usage_error(tmp_path: Path):
    example = an_example(tmp_path)
    tmp_path.chmod(0o555)
    try:
        run = example.verify()
    finally:
        tmp_path.chmod(0o755)

    assert run.exit_code == 4, str(run)
    assert "make the plan's root writable" in run.output


def test_an_outcome_file_may_lie_in_a_folder_that_does_not_exist_yet(tmp_path: Path):
    example = an_example(tmp_path)
    path = tmp_path / "build/reports/outcomes.json"

    run = example.verify(
        "plan.yaml::draw", "--planverify-outcomes", "build/reports/outcomes.json", outcomes=path
    )

    assert run.exit_code == 0, str(run)
    assert run.states["draw"] == "done"
