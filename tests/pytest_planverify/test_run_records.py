"""What the process that was started writes into the journal when the run is over."""

from __future__ import annotations

import os
from pathlib import Path

import outcome_samples as samples
import pytest

from planner.model.outcome import TodoState
from pytest_planverify.journal import read_journal
from pytest_planverify.supervision.run_records import close_journal, open_journal


def test_the_journal_begins_with_the_run_and_ends_with_what_it_found(tmp_path: Path):
    path = tmp_path / "journal.jsonl"
    other = samples.outcome("x", "X", TodoState.DONE, plan="other")
    blocked = samples.outcome("b", "B", TodoState.BLOCKED, blocked_by=("a",))
    document = samples.document(
        samples.outcome("a", "A", TodoState.TEST_FAILED), other, blocked, exit_status=1
    )

    open_journal(path, "r1", "plan.yaml", "sha256:0")
    close_journal(path, samples.PLAN, document)

    first, one, two, last = read_journal(path)
    assert (first["record"], first["run_id"], first["plan"]) == ("run_started", "r1", "plan.yaml")
    assert [(each["todo_id"], each["state"], each["blocked_by"]) for each in (one, two)] == [
        ("a", "test_failed", []),
        ("b", "blocked", ["a"]),
    ]
    assert {each["plan"] for each in (one, two, last)} == {samples.PLAN}
    assert (last["record"], last["exit_status"], last["interrupted"]) == ("run_finished", 1, False)


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "broken link"])
def test_what_stands_in_the_place_of_the_journal_is_left_alone(kind: str, tmp_path: Path):
    path, target = tmp_path / "journal.jsonl", tmp_path / "precious"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(target)
    if kind == "link":
        target.touch()

    close_journal(path, samples.PLAN, samples.document())

    assert not target.exists() or target.read_text() == ""
    assert target.exists() is (kind == "link")


def test_a_journal_that_was_removed_is_begun_anew(tmp_path: Path):
    close_journal(tmp_path / "journal.jsonl", samples.PLAN, samples.document())

    assert [each["record"] for each in read_journal(tmp_path / "journal.jsonl")] == ["run_finished"]
