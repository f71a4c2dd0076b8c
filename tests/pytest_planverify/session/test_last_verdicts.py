"""Verdicts of earlier runs: which are kept, and why others are stale."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import outcome_samples as samples
import pytest
from baseline_samples import baseline
from hypothesis import given
from hypothesis import strategies as st
from past_run_samples import PLAN, Killed, plan_in, settings

from pytest_planverify.baseline.kept_baseline import KeptBaseline
from pytest_planverify.session.last_verdicts import LastVerdicts, Present, last_verdicts, read_tree
from pytest_planverify.session.plans import reference_of
from pytest_planverify.session.run_folder import baseline_digest

FIRST, SECOND = "20260101T000000-1-a", "20260102T000000-1-b"
A, MAKE, B, C = ("a", "tests[0]"), ("a", "tests[1]"), ("b", "tests[0]"), ("c", "tests[0]")


def write_phase(root: Path) -> Path:
    """Write a plan with one todo, ``phase``, and its sub-plan with the todo ``x``; return the sub-plan."""
    sub = root / "sub.yaml"
    items = [{"id": "x", "title": "X", "acceptance_criteria": {"tests": [{"cmd": "pytest test_x.py"}]}}]
    sub.write_text(json.dumps({"todo_list_id": "sub", "items": items}))
    plan_in(root, {"id": "phase", "title": "P", "sub_plan": "sub.yaml"})
    return sub


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


@given(length=st.integers(min_value=0, max_value=6000))
def test_truncated_journal_never_yields_a_new_verdict(
    tmp_path_factory: pytest.TempPathFactory, length: int
):
    root = tmp_path_factory.mktemp("lost")
    killed = Killed(root).judged("a").judged("b", verdict="failed").judged("a", "tests[1]")
    os.truncate(killed.folder.journal, min(length, killed.folder.journal.stat().st_size))

    found = last(root).held

    recorded = {A: "passed", B: "failed", MAKE: "passed"}
    assert {key: run.check.verdict for key, run in found.items()}.items() <= recorded.items()
    # A torn line costs no record after it.
    assert not found or last(killed.judged("c").root).held.keys() == {*found, C}


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
    journal = killed.folder.journal
    journal.write_text(journal.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {os.getppid()}'))
    assert why(tmp_path) == f"run {FIRST} is still running"


def test_time_and_run_of_a_recording_are_no_part_of_the_digest_of_a_baseline(tmp_path: Path):
    held = baseline(PLAN)

    def digest(**changes: str) -> str:
        return baseline_digest(
            KeptBaseline(tmp_path, held.model_copy(update=changes), path=tmp_path / "b.json")
        )

    assert digest(made_at="later", run_id="another") == digest() != digest(python="other")
