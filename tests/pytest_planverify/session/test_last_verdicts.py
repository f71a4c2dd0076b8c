"""The last verdicts of a plan's commands, and when they do not hold any more."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import outcome_samples as samples
import pytest
from past_run_samples import PLAN, Killed, plan_in, settings

from planner.model.verdicts import Verdict
from pytest_planverify.session.check_runs import is_settled
from pytest_planverify.session.last_verdicts import LastVerdicts, Present, last_verdicts
from pytest_planverify.session.plans import reference_of
from pytest_planverify.session.tree_state import read_tree

FIRST, SECOND = "20260101T000000-1-a", "20260102T000000-1-b"
A, MAKE, B, C = ("a", "tests[0]"), ("a", "tests[1]"), ("b", "tests[0]"), ("c", "tests[0]")


def last(root: Path, *, unfinished: bool = False, **given: Any) -> LastVerdicts:
    chosen = plan_in(root)
    own = [chosen.plan.path]
    baseline: Any = given.pop("baseline", None)
    now = Present(
        flat=chosen.flat,
        settings=settings(**given),
        reference=reference_of(chosen.flat, "plan.yaml"),
        tree=read_tree([root], own),
        apart=own,
        baseline=baseline,
    )
    return last_verdicts(now, unfinished=unfinished)


def why(root: Path, **given: Any) -> str:
    """Why the verdict on the first command of a does not hold."""
    found = last(root, **given)
    assert A not in found.held
    return found.why_not(A)


def test_a_verdict_that_is_final_holds_with_its_evidence_and_the_run_that_reached_it(tmp_path: Path):
    Killed(tmp_path).judged("a").judged("a", "tests[1]").judged("b", verdict="failed")

    found = last(tmp_path)

    assert found.held.keys() == {A, MAKE, B}
    assert {run.check.taken_from for run in found.held.values()} == {FIRST}
    assert found.held[A].properties == [("rows", 3)]
    assert found.held[B].evidence[0].headline == "assert 1 == 2"
    assert found.why_not(C) == "no earlier run has verified it"


def test_what_is_in_doubt_or_costs_nothing_is_looked_at_again(tmp_path: Path):
    killed = Killed(tmp_path).judged("a", final=False).judged("a", "expected_artifacts[0]")
    killed.judged("b", verdict="inconclusive").judged("c", "tests[9]").judged("x")

    assert not last(tmp_path).held
    assert why(tmp_path) == f"run {FIRST} had reached no final verdict on it"


def test_a_command_of_which_two_verdicts_are_told_is_run_again(tmp_path: Path):
    Killed(tmp_path).judged("a").judged("a", verdict="failed").judged("b").judged("b")

    assert last(tmp_path).held.keys() == {B}


def test_a_flaky_check_keeps_its_verdict_unless_it_is_in_quarantine():
    flaky = samples.check("tests[0]", verdict=Verdict.FLAKY)

    assert is_settled(flaky)
    assert not is_settled(samples.check("tests[0]", verdict=Verdict.INCONCLUSIVE))
    assert is_settled(samples.check("tests[0]"))


def test_of_several_runs_the_newest_counts_that_has_a_verdict(tmp_path: Path):
    Killed(tmp_path, FIRST).judged("a").judged("b", verdict="failed")
    Killed(tmp_path, SECOND).judged("c").judged("b", final=False)
    Killed(tmp_path, "20260103T000000-1-c")

    found = last(tmp_path)

    assert {key: run.check.taken_from for key, run in found.held.items()} == {A: FIRST, C: SECOND}
    assert SECOND in found.why_not(B)
    assert found.newest is not None
    assert found.newest.run_id == SECOND


def test_only_what_was_not_finished_is_resumed(tmp_path: Path):
    ended = Killed(tmp_path, FIRST).judged("a")
    ended.journal.close(samples.document())
    stopped = Killed(tmp_path, SECOND).judged("b")
    stopped.journal.close(samples.document(interrupted=True, exit_status=2))

    assert last(tmp_path, unfinished=True).held.keys() == {B}
    assert last(tmp_path).held.keys() == {A, B}


def test_options_void_verdicts_unless_they_only_show_or_leave_out(tmp_path: Path):
    Killed(tmp_path).judged("a")

    shows: list[dict[str, Any]] = [
        {"worker_args": ("-v", "--tb", "short", "--durations=3", "--pdb")},
        {"keyword": "x", "markexpr": "y", "deselect": ("z",)},
        {"last_failed": True, "maxfail": 1},
    ]
    for given in shows:
        assert last(tmp_path, **given).held.keys() == {A}
    assert why(tmp_path, worker_args=("--cov=x",)) == "coverage needs a complete run"
    assert why(tmp_path, worker_args=("-p", "no:x")) == f"not the same options as in run {FIRST}"


def test_in_another_environment_no_verdict_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
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


def test_a_tree_that_cannot_be_read_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Killed(tmp_path).judged("a")
    monkeypatch.setattr("pytest_planverify.session.tree_state.MOST_FILES", -1)

    assert "the changed files are unknown: git does not answer" in why(tmp_path)


def test_after_a_change_of_a_sub_plan_no_verdict_holds(tmp_path: Path):
    items = [{"id": "x", "title": "X", "acceptance_criteria": {"tests": [{"cmd": "pytest test_x.py"}]}}]
    sub = tmp_path / "sub.yaml"
    sub.write_text(json.dumps({"todo_list_id": "sub", "items": items}))
    plan = {"todo_list_id": PLAN, "items": [{"id": "phase", "title": "P", "sub_plan": "sub.yaml"}]}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    Killed(tmp_path).judged("phase/x")
    key = ("phase/x", "tests[0]")
    assert last(tmp_path).held.keys() == {key}

    sub.write_text(sub.read_text().replace("pytest test_x.py", "pytest test_x.py -x"))

    assert last(tmp_path).why_not(key) == f"its part of the plan has changed since run {FIRST}"


def test_a_run_that_goes_on_or_cannot_be_accepted_says_nothing(tmp_path: Path):
    killed = Killed(tmp_path).judged("a")
    text = killed.folder.journal.read_text()

    killed.journal.append("run_unexplained", reason="the session returned 7")
    assert why(tmp_path) == f"run {FIRST} could not be accepted: the session returned 7"
    killed.folder.journal.write_text(text.replace(f'"pid": {os.getpid()}', f'"pid": {os.getppid()}'))
    assert why(tmp_path) == f"run {FIRST} is still running"
