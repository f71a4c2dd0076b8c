"""Recovery of outcomes from the journal of a killed run: verdicts are kept, the rest is not run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import outcome_samples as samples
import pytest
from baseline_samples import baseline
from hypothesis import given
from hypothesis import strategies as st
from past_run_samples import PLAN, Killed, plan_in, settings

from planner.model.outcome import OutcomeDocument
from planner.model.verdicts import Since, TodoState
from planner.planfile.file_writer import replace_file
from planner.planfile.plan_folder import PlanFolder
from planner.planfile.record_files import baseline_bytes, read_outcomes
from planner.planfile.schemas import schema
from pytest_planverify.baseline.kept_baseline import KeptBaseline
from pytest_planverify.session.last_verdicts import LastVerdicts, Present, last_verdicts, read_tree
from pytest_planverify.session.plans import reference_of
from pytest_planverify.session.recovery import KILLED, RecoveryError, recover, recover_command
from pytest_planverify.session.run_folder import baseline_digest

FIRST, SECOND = "20260101T000000-1-a", "20260102T000000-1-b"
RECORDED = {("a", "tests[0]"): "passed", ("b", "tests[0]"): "failed", ("a", "tests[1]"): "passed"}


def recovered(root: Path) -> OutcomeDocument:
    return recover(root / "plan.yaml").document


def verdicts(root: Path) -> dict[tuple[str, str], str]:
    return {
        (outcome.todo_id, check.id): check.verdict.value
        for outcome in recovered(root).outcomes
        for check in outcome.checks
    }


def write_phase(root: Path) -> Path:
    """Write a plan with one todo, ``phase``, and its sub-plan with the todo ``x``; return the sub-plan."""
    sub = root / "sub.yaml"
    items = [{"id": "x", "title": "X", "acceptance_criteria": {"tests": [{"cmd": "pytest test_x.py"}]}}]
    sub.write_text(json.dumps({"todo_list_id": "sub", "items": items}))
    plan_in(root, {"id": "phase", "title": "P", "sub_plan": "sub.yaml"})
    return sub


def test_recovered_run_keeps_verdicts_and_marks_the_rest_not_run(tmp_path: Path):
    Killed(tmp_path).judged("a").judged("b", verdict="failed").judged("c")

    document = recovered(tmp_path)

    assert verdicts(tmp_path) == {
        ("a", "tests[0]"): "passed",
        ("a", "tests[1]"): "not_run",
        ("a", "expected_artifacts[0]"): "not_run",
        ("b", "tests[0]"): "failed",
        ("c", "tests[0]"): "blocked",
    }
    run, (a, b, c) = document.run, document.outcomes
    assert (run.exit_status, run.interrupted, run.run_id) == (2, True, FIRST)
    assert "was killed" in run.notes[0]
    assert (a.state, b.state, c.state) == (TodoState.TESTING, TodoState.TEST_FAILED, TodoState.BLOCKED)
    assert a.checks[1].reason == KILLED
    assert c.blocked_by == ("b",)
    assert b.failure_evidence is not None
    assert b.failure_evidence.rerun == "pytest --planverify plan.yaml::b"
    assert a.recorded == {"rows": (3.0,)}
    assert (a.touched_files, a.diff_hash) == ((), None)
    jsonschema.validate(json.loads(document.model_dump_json()), schema("outcome"))


def test_recovered_run_compares_with_its_baseline(tmp_path: Path):
    Killed(tmp_path).judged("b", verdict="failed")
    (failure,) = recovered(tmp_path).outcome("b").failures
    assert failure.since is Since.UNKNOWN
    checks = {"tests[0]": {"verdict": "failed", "signatures": [failure.signature]}}
    held = baseline(PLAN, todos={"b": {"state": "test_failed", "checks": checks}})
    kept = KeptBaseline(tmp_path, held, path=PlanFolder(tmp_path, PLAN).baseline)
    Killed(tmp_path, SECOND, kept).judged("b", verdict="failed")
    replace_file(kept.path, baseline_bytes(held))

    found = recovered(tmp_path)

    assert [each.since for each in found.outcome("b").failures] == [Since.PRE_EXISTING]
    assert found.outcome("b").at_base == "open"
    assert len(found.run.notes) == 1

    replace_file(kept.path, baseline_bytes(held.model_copy(update={"python": "other"})))
    later = recovered(tmp_path)
    assert [each.since for each in later.outcome("b").failures] == [Since.UNKNOWN]
    note = "the baseline of the run is no longer kept: comparisons with it are missing"
    assert later.run.notes[1] == note


def test_time_and_run_of_a_recording_are_no_part_of_the_digest_of_a_baseline(tmp_path: Path):
    held = baseline(PLAN)

    def digest(**changes: str) -> str:
        return baseline_digest(
            KeptBaseline(tmp_path, held.model_copy(update=changes), path=tmp_path / "b.json")
        )

    assert digest(made_at="later", run_id="another") == digest() != digest(python="other")


def test_recovered_run_keeps_the_keep_going_option(tmp_path: Path):
    Killed(tmp_path, keep_going=True).judged("b", verdict="failed").judged("c")

    assert verdicts(tmp_path)["c", "tests[0]"] == "passed"
    assert recovered(tmp_path).outcome("c").state is TodoState.BLOCKED


@given(length=st.integers(min_value=0, max_value=6000), again=st.booleans())
def test_truncated_journal_never_yields_a_new_pass(
    tmp_path_factory: pytest.TempPathFactory, length: int, again: bool
):
    root = tmp_path_factory.mktemp("lost")
    killed = Killed(root)
    for (todo_id, check_id), verdict in RECORDED.items():
        killed.judged(todo_id, check_id, verdict)
    os.truncate(killed.folder.journal, min(length, killed.folder.journal.stat().st_size))
    if again:
        killed.judged("c", verdict="inconclusive")

    try:
        found = verdicts(root)
    except RecoveryError:
        return

    for key, verdict in found.items():
        assert verdict in ("not_run", "blocked", "inconclusive", RECORDED.get(key))
    if again:  # a torn line costs no record after it
        assert found["c", "tests[0]"] in ("blocked", "inconclusive")


def test_finished_run_is_left_unchanged(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    killed = Killed(tmp_path).judged("a")
    killed.journal.close(samples.document(exit_status=1, interrupted=True).run)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    assert recover_command(tmp_path / "plan.yaml") == 4

    printed = capsys.readouterr()
    assert "the run finished and has written its outcomes itself; nothing was changed" in printed.err
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_failed_verdict_wins_over_a_passed_one_on_the_same_criterion(tmp_path: Path):
    Killed(tmp_path).judged("a").judged("a", verdict="failed").judged("b", verdict="failed").judged("b")

    found = verdicts(tmp_path)

    assert (found["a", "tests[0]"], found["b", "tests[0]"]) == ("failed", "failed")


def test_records_of_a_worker_session_are_not_verdicts(tmp_path: Path):
    killed = Killed(tmp_path).judged("b")
    line = next(each for each in killed.folder.journal.read_text().splitlines() if "check_judged" in each)
    killed.forged(line.replace('"todo_id": "b"', '"todo_id": "a"').replace('"parent"', '"s1"') + "\n")
    killed.forged(
        '{"record": "check_judged", "session": "parent"}\n{"record": "run_unexplained", "session": 1}'
    )
    killed.journal.append("run_unexplained", reason="too little coverage")

    assert verdicts(tmp_path)["a", "tests[0]"] == "not_run"
    assert "not accepted: too little coverage" in recovered(tmp_path).run.notes


def test_sub_plan_is_recovered_with_its_plan(tmp_path: Path):
    sub = write_phase(tmp_path)
    Killed(tmp_path).judged("phase/x", verdict="failed")

    assert [(each.todo_id, each.state) for each in recovered(tmp_path).outcomes] == [
        ("phase", TodoState.TESTING),
        ("phase/x", TodoState.TEST_FAILED),
    ]
    sub.write_text(sub.read_text() + "\n")
    with pytest.raises(RecoveryError, match="has changed since run 2026"):
        recovered(tmp_path)


def test_latest_run_is_recovered(tmp_path: Path):
    Killed(tmp_path, FIRST).judged("a")
    Killed(tmp_path, SECOND).judged("b")
    Killed(tmp_path, "20260103T000000-1-c", collect_only=True)
    (tmp_path / ".planverify/runs/note.txt").touch()
    (tmp_path / ".planverify/runs/20260104T000000-1-d").mkdir()

    assert recovered(tmp_path).run.run_id == SECOND


INVALID_CONTENTS = {
    "empty": lambda text: "",
    "garbage": lambda text: '{"record": "run_started"}\n[' + "[" * 200_000,
    "newer": lambda text: text.replace('"version": 1', '"version": 2'),
    "other plan": lambda text: text.replace(PLAN, "other"),
}


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", *INVALID_CONTENTS])
def test_invalid_journals_are_not_runs_of_the_plan(kind: str, tmp_path: Path):
    journal = Killed(tmp_path).judged("a").folder.journal
    content = journal.read_text()
    journal.unlink()
    if kind == "pipe":
        os.mkfifo(journal)
    elif kind == "folder":
        journal.mkdir()
    elif kind == "link":
        (tmp_path / "elsewhere").write_text(content)
        journal.symlink_to(tmp_path / "elsewhere")
    elif kind in INVALID_CONTENTS:
        journal.write_text(INVALID_CONTENTS[kind](content))

    with pytest.raises(RecoveryError, match=r"no run of 'killed' in .*runs; verify the plan first"):
        recovered(tmp_path)


def test_recovery_errors_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    plan = tmp_path / "plan.yaml"
    plan.write_text(json.dumps({"todo_list_id": PLAN, "items": []}))
    assert recover_command(plan) == 4
    assert "plan.yaml" in capsys.readouterr().err

    plan.unlink()
    Killed(tmp_path).judged("a")
    plan.write_text(plan.read_text().replace("test_a", "test_other"))
    assert recover_command(plan) == 4
    assert "the plan or a sub-plan has changed since run" in capsys.readouterr().err


def test_recover_command_writes_and_prints_outcomes_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Killed(tmp_path).judged("a").judged("b", verdict="failed").judged("c", verdict="failed")

    assert recover_command(Path("plan.yaml")) == 2

    path = PlanFolder(tmp_path, PLAN).outcomes
    assert read_outcomes(tmp_path / ".planverify/outcomes.json") == read_outcomes(path)
    assert read_outcomes(path) == recovered(tmp_path)
    assert path.stat().st_mode & 0o777 == 0o600
    (report,) = (tmp_path / "diagnostics").glob("*.json")
    assert report.name == "b_failure_report.json"
    assert json.loads(report.read_text())["run_id"] == FIRST
    printed = capsys.readouterr().out
    assert "interrupted" in printed
    assert os.path.relpath(path) in printed


def replace_pid(journal: Path, pid: int) -> None:
    """Let the journal be that of another process than this one."""
    journal.write_text(journal.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {pid}'))


@pytest.mark.parametrize(
    ("pid", "note"), [(os.getppid(), "is still running"), (4_194_305, "was killed")], ids=["alive", "dead"]
)
def test_running_run_is_reported_as_running(pid: int, note: str, tmp_path: Path):
    replace_pid(Killed(tmp_path).judged("a").folder.journal, pid)

    assert note in recovered(tmp_path).run.notes[0]


def test_invalid_timestamp_does_not_prevent_recovery(tmp_path: Path):
    killed = Killed(tmp_path).judged("a")
    killed.forged('{"record": "stopped", "session": "s1", "at": 99999999999999999}\n')

    assert recovered(tmp_path).run.finished_at == "1970-01-01T00:00:00.000Z"


# -- verdicts of earlier runs ------------------------------------------------------------------------

A, MAKE, B, C = ("a", "tests[0]"), ("a", "tests[1]"), ("b", "tests[0]"), ("c", "tests[0]")


def last(root: Path, *, unfinished: bool = False, **given: Any) -> LastVerdicts:
    chosen = plan_in(root)
    own = [chosen.plan.path]
    compared: Any = given.pop("baseline", None)
    now = Present(
        flat=chosen.flat,
        settings=settings(**given),
        reference=reference_of(chosen.flat, "plan.yaml"),
        tree=read_tree([root], own),
        apart=own,
        baseline=compared,
    )
    return last_verdicts(now, unfinished=unfinished)


def why(root: Path, **given: Any) -> str:
    """Return why the verdict on the first command of todo ``a`` does not hold."""
    found = last(root, **given)
    assert A not in found.held
    return found.why_not(A)


def test_final_verdict_is_reused_with_its_evidence_and_run_id(tmp_path: Path):
    Killed(tmp_path).judged("a").judged("a", "tests[1]", "flaky").judged("b", verdict="failed")

    found = last(tmp_path)

    assert found.held.keys() == {A, MAKE, B}
    assert {run.check.taken_from for run in found.held.values()} == {FIRST}
    assert found.held[A].properties == (("rows", 3),)
    assert found.held[B].evidence[0].headline == "assert 1 == 2"
    assert found.why_not(C) == "no earlier run has verified it"


def test_doubtful_and_cheap_verdicts_are_not_reused(tmp_path: Path):
    killed = Killed(tmp_path).judged("a", final=False).judged("a", "expected_artifacts[0]")
    killed.judged("b", verdict="inconclusive").judged("c", "tests[9]").judged("x")

    assert not last(tmp_path).held
    assert why(tmp_path) == f"run {FIRST} had reached no final verdict on it"


def test_command_with_two_different_verdicts_is_run_again(tmp_path: Path):
    Killed(tmp_path).judged("a").judged("a", verdict="failed").judged("b").judged("b")

    assert last(tmp_path).held.keys() == {B}


def test_newest_run_with_a_verdict_counts(tmp_path: Path):
    Killed(tmp_path, FIRST).judged("a").judged("b", verdict="failed")
    Killed(tmp_path, SECOND).judged("c").judged("b", final=False)
    Killed(tmp_path, "20260103T000000-1-c")

    found = last(tmp_path)

    assert {key: run.check.taken_from for key, run in found.held.items()} == {A: FIRST, C: SECOND}
    assert SECOND in found.why_not(B)
    assert found.newest is not None
    assert found.newest.run_id == SECOND


def test_only_unfinished_runs_are_resumed(tmp_path: Path):
    ended = Killed(tmp_path, FIRST).judged("a")
    ended.journal.close(samples.document().run)
    stopped = Killed(tmp_path, SECOND).judged("b")
    stopped.journal.close(samples.document(interrupted=True, exit_status=2).run)

    assert last(tmp_path, unfinished=True).held.keys() == {B}
    assert last(tmp_path).held.keys() == {A, B}


def test_verdicts_are_reused_only_under_equivalent_options(tmp_path: Path):
    Killed(tmp_path).judged("a")

    assert last(tmp_path, worker_args=("-v", "--tb", "short", "--durations=3", "--pdb")).held
    assert last(tmp_path, keyword="x", markexpr="y", deselect=("z",)).held
    assert last(tmp_path, last_failed=True, maxfail=1).held
    assert why(tmp_path, worker_args=("--cov=x",)) == "coverage needs a complete run"
    for other in ({"worker_args": ("-p", "no:x")}, {"isolate": True}):
        assert why(tmp_path, **other) == f"not the same options as in run {FIRST}"


def test_verdicts_are_not_reused_in_another_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Killed(tmp_path).judged("a")

    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert why(tmp_path) == f"not the same environment as in run {FIRST}"
    monkeypatch.undo()
    site = tmp_path.with_name("site")
    (site / "thing-2.0.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(site))
    assert "not the same installed packages" in why(tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr("sys.version", "3.99")
    assert "not the same interpreter" in why(tmp_path)
    monkeypatch.undo()
    recorded = SimpleNamespace(document=samples.check("tests[0]"))
    assert "not the same baseline" in why(tmp_path, baseline=recorded)
    assert last(tmp_path).held


@pytest.mark.parametrize("installed", ["thing-1.0.dist-info", "thing.py", "__editable__.thing.pth"])
def test_verdicts_are_not_reused_after_a_reinstallation_of_the_same_version(
    installed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    site = tmp_path.with_name(f"{tmp_path.name}_site-packages")
    (site / installed).mkdir(parents=True)
    monkeypatch.syspath_prepend(str(site))
    Killed(tmp_path).judged("a")
    assert last(tmp_path).held

    os.utime(site / installed, (1e9, 1e9))

    assert why(tmp_path) == f"not the same installed packages as in run {FIRST}"


def test_verdicts_are_not_reused_for_an_unreadable_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    killed = Killed(tmp_path).judged("a")
    with monkeypatch.context() as patch:
        patch.setattr("pytest_planverify.session.last_verdicts.MOST_FILES", -1)
        assert "the changed files are unknown: git does not answer" in why(tmp_path)

    (killed.folder.path / "tree.json").write_text("[")

    assert "the changed files are unknown: run" in why(tmp_path)


def test_verdicts_are_not_reused_after_a_sub_plan_changed(tmp_path: Path):
    sub = write_phase(tmp_path)
    Killed(tmp_path).judged("phase/x")
    key = ("phase/x", "tests[0]")
    assert last(tmp_path).held.keys() == {key}

    sub.write_text(sub.read_text().replace("pytest test_x.py", "pytest test_x.py -x"))

    assert last(tmp_path).why_not(key) == f"its part of the plan has changed since run {FIRST}"


def test_verdicts_of_running_or_unexplained_runs_are_not_reused(tmp_path: Path):
    killed = Killed(tmp_path).judged("a")

    killed.journal.append("run_unexplained", reason="the session returned 7")
    assert why(tmp_path) == f"run {FIRST} could not be accepted: the session returned 7"
    replace_pid(killed.folder.journal, os.getppid())
    assert why(tmp_path) == f"run {FIRST} is still running"
