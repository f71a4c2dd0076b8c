"""Records of the parent process in the journal: start of the run, each verdict, end."""

from __future__ import annotations

import os
from pathlib import Path

import outcome_samples as samples
import pytest
from module_project import write_files
from past_run_samples import Killed, settings

from planner.model.evidence import Evidence
from planner.model.journal import CheckJudged, CheckRun, JournalRunStarted
from planner.model.outcome import PlanRef
from planner.model.verdicts import EvidenceKind, Verdict
from pytest_planverify.journal import read_journal
from pytest_planverify.session.run_folder import KEPT_RUNS, RunFolder, RunJournal, new_run_id


def test_journal_starts_and_ends_with_the_run(tmp_path: Path):
    path = tmp_path / "journal.jsonl"
    reference = PlanRef(todo_list_id=samples.PLAN, path="plan.yaml", digest="sha256:0")
    journal = RunJournal(path, samples.PLAN)
    journal.open("r1", reference, settings())
    journal.close(samples.document(exit_status=1).run)

    first, last = read_journal(path)
    assert JournalRunStarted.model_validate(first).reference == reference
    assert (first["record"], first["run_id"], first["plan"]) == ("run_started", "r1", "plan.yaml")
    assert (last["record"], last["plan"]) == ("run_finished", samples.PLAN)
    assert (last["exit_status"], last["interrupted"]) == (1, False)


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "broken link"])
def test_folders_pipes_and_links_in_place_of_the_journal_are_kept(kind: str, tmp_path: Path):
    path, target = tmp_path / "journal.jsonl", tmp_path / "precious"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(target)
    if kind == "link":
        target.touch()

    RunJournal(path, samples.PLAN).close(samples.document().run)

    assert target.exists() is (kind == "link")
    assert kind != "link" or target.read_text() == ""


def test_verdict_is_recorded_completely_after_the_tree_state(tmp_path: Path):
    killed = Killed(tmp_path).judged("b", verdict="failed")

    (judged,) = (each for each in read_journal(killed.folder.journal) if each["record"] == "check_judged")
    verdict = CheckJudged.model_validate(judged)
    assert (judged["plan"], verdict.todo_id, verdict.check.verdict) == ("killed", "b", Verdict.FAILED)
    assert verdict.final
    assert verdict.evidence[0].headline == "assert 1 == 2"
    assert verdict.properties == (("rows", 3),)
    assert (killed.folder.path / "tree.json").exists()


def test_invalid_unicode_does_not_lose_the_verdict(tmp_path: Path):
    path = tmp_path / "journal.jsonl"
    odd = Evidence(kind=EvidenceKind.TEST, stdout_tail="half a pair \ud83e", headline="é \x00 \n \u2028")
    run = CheckRun(check=samples.check("tests[0]"), evidence=(odd,), properties=(("set", {1}),))

    RunJournal(path, "p").check_judged("a", run, final=True)

    (judged,) = read_journal(path)
    assert CheckJudged.model_validate(judged).evidence == (odd,)
    assert path.read_bytes().count(b"\n") == 1


def test_failed_write_loses_the_record_but_not_the_run(tmp_path: Path):
    RunJournal(tmp_path / "no" / "journal.jsonl", "p").append("run_unexplained", reason="x")
    assert not (tmp_path / "no").exists()


def test_run_folders_are_unique_and_recent_ones_are_kept(tmp_path: Path):
    assert len({new_run_id() for _ in range(50)}) == 50
    assert KEPT_RUNS == 20
    for number in range(KEPT_RUNS + 5):
        RunFolder(tmp_path, f"r{number:02}").create()
        os.utime(tmp_path / f".planverify/runs/r{number:02}", (number + 1, number + 1))
    (tmp_path / ".planverify/runs/note.txt").touch()

    last = RunFolder(tmp_path, "last")
    last.create()
    with pytest.raises(FileExistsError):
        last.create()

    kept = sorted(path.name for path in last.path.parent.iterdir())
    assert kept == ["last", "note.txt", *(f"r{number:02}" for number in range(6, KEPT_RUNS + 5))]


def test_old_temporary_files_of_killed_runs_are_removed(tmp_path: Path):
    home = tmp_path / ".planverify"
    old, new = (".outcomes.json.x1.tmp", "plans/p/.outcomes.json.x1.tmp"), ".outcomes.json.x2.tmp"
    write_files(home, dict.fromkeys((*old, new, "kept.tmp"), ""))
    for name in (*old, "kept.tmp"):
        os.utime(home / name, (1, 1))

    RunFolder(tmp_path, "r1").create()

    assert [(home / name).exists() for name in (*old, new, "kept.tmp")] == [False, False, True, True]
