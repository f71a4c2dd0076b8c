"""Which verdicts of a run that was killed a later run takes over, and when it takes none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import outcome_samples as samples
import pytest
from past_run_samples import PLAN, Killed, plan_in, settings

from planner.model.outcome import Verdict
from pytest_planverify.supervision.prepared import reference_of
from pytest_planverify.supervision.resuming import Resumed, is_settled, resume, without
from pytest_planverify.supervision.run_records import TREE, close_journal
from pytest_planverify.supervision.schedule import schedule

FIRST, SECOND = "20260101T000000-1-a", "20260102T000000-1-b"


def resumed(root: Path, **given: Any) -> Resumed:
    chosen = plan_in(root)
    todos = list(chosen.plan.plan.items)
    reference = reference_of(chosen.flat, "plan.yaml")
    baseline: Any = given.pop("baseline", None)
    return resume(chosen.flat, todos, settings(**given), reference, [chosen.plan.path], baseline)


def taken(root: Path, **given: Any) -> dict[str, str]:
    found = resumed(root, **given).taken
    return {" ".join(key): run.check.verdict.value for key, run in found.items()}


def test_what_is_final_is_taken_over_and_says_from_where(tmp_path: Path):
    Killed(tmp_path).judged("a").judged("a", "tests[1]").judged("b", verdict="failed")

    found = resumed(tmp_path)

    assert taken(tmp_path) == {"a tests[0]": "passed", "a tests[1]": "passed", "b tests[0]": "failed"}
    assert {run.check.taken_from for run in found.taken.values()} == {FIRST}
    assert found.note == f"resumed: 3 of 5 verdicts are those of run {FIRST}, which was killed"
    assert found.taken["a", "tests[0]"].properties == [("rows", 3)]
    assert found.taken["b", "tests[0]"].evidence[0].headline == "assert 1 == 2"


def test_what_is_in_doubt_or_costs_nothing_is_looked_at_again(tmp_path: Path):
    killed = Killed(tmp_path).judged("a", final=False).judged("a", "expected_artifacts[0]")
    killed.judged("b", verdict="inconclusive").judged("c", "tests[9]").judged("x")

    assert taken(tmp_path) == {}
    assert resumed(tmp_path).note == (
        f"nothing was resumed, everything was run: run {FIRST} had reached no verdict that is final"
    )


def test_a_check_of_which_two_verdicts_are_told_is_run_again(tmp_path: Path):
    Killed(tmp_path).judged("a").judged("a", verdict="failed").judged("b").judged("b")

    assert taken(tmp_path) == {"b tests[0]": "passed"}


def test_a_flaky_check_is_taken_over_unless_it_is_in_quarantine():
    flaky = samples.check("tests[0]", verdict=Verdict.FLAKY)

    assert is_settled(flaky)
    assert not is_settled(samples.check("tests[0]", verdict=Verdict.INCONCLUSIVE))
    assert is_settled(samples.check("tests[0]"))


def test_a_resumption_that_was_killed_too_is_resumed_and_so_is_what_it_resumed(tmp_path: Path):
    Killed(tmp_path, FIRST).judged("a").judged("b", verdict="failed")
    second = Killed(tmp_path, SECOND).judged("c").judged("b", final=False)
    Killed(tmp_path, "20260103T000000-1-c")

    found = resumed(tmp_path)

    assert taken(tmp_path) == {"a tests[0]": "passed", "c tests[0]": "passed"}
    assert SECOND in found.note
    for run_id, run in zip((FIRST, SECOND), (("a", "tests[0]"), ("c", "tests[0]")), strict=True):
        assert found.taken[run].check.taken_from == run_id
    close_journal(second.folder.journal, PLAN, samples.document())
    assert taken(tmp_path) == {}, "what came to its end is not resumed, nor what is older"


def test_a_run_that_was_interrupted_is_resumed(tmp_path: Path):
    killed = Killed(tmp_path).judged("a")
    close_journal(killed.folder.journal, PLAN, samples.document(interrupted=True, exit_status=2))

    assert taken(tmp_path) == {"a tests[0]": "passed"}
    assert resumed(tmp_path).note.endswith("which was interrupted")


def test_an_older_run_that_does_not_hold_any_more_ends_the_search(tmp_path: Path):
    Killed(tmp_path, FIRST, isolate=True).judged("a")
    Killed(tmp_path, SECOND).judged("b")

    assert taken(tmp_path) == {"b tests[0]": "passed"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"keyword": "x"}, "only a part of the plan is asked for"),
        ({"junit": Path("x.xml")}, "needs a whole run"),
        ({"shared_args": ("--cov=x",)}, "needs a whole run"),
        ({"isolate": True}, "options of run"),
        ({"session_args": ("-p", "no:x")}, "options of run"),
    ],
)
def test_under_other_options_nothing_is_taken_over(given: dict[str, Any], why: str, tmp_path: Path):
    Killed(tmp_path).judged("a")

    assert taken(tmp_path, **given) == {}
    assert why in resumed(tmp_path, **given).note


def test_in_another_environment_nothing_is_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Killed(tmp_path).judged("a")

    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert f"environment of run {FIRST}: not the same as now" in resumed(tmp_path).note
    monkeypatch.undo()
    (tmp_path / "site" / "thing-2.0.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert "installed packages of run" in resumed(tmp_path).note
    monkeypatch.undo()
    monkeypatch.setattr("sys.version", "3.99")
    assert "interpreter of run" in resumed(tmp_path).note
    monkeypatch.undo()
    recorded = SimpleNamespace(document=samples.check("tests[0]"))
    assert "baseline of run" in resumed(tmp_path, baseline=recorded).note
    assert taken(tmp_path)


def test_after_a_change_of_plan_or_files_nothing_is_taken_over(tmp_path: Path):
    (tmp_path / "product.py").write_text("one = 1\n")
    killed = Killed(tmp_path).judged("a")
    assert taken(tmp_path)

    (tmp_path / "product.py").write_text("one = 2\n")
    assert f"since run {FIRST} began, product.py has changed" in resumed(tmp_path).note
    (tmp_path / "product.py").write_text("one = 1\n")
    assert taken(tmp_path)
    plan = tmp_path / "plan.yaml"
    plan.write_text(plan.read_text() + "\n")
    assert "the plan has changed since run" in resumed(tmp_path).note
    plan.write_text(plan.read_text()[:-1])
    (killed.folder.path / TREE).write_text("{}")
    assert f"nobody knows which files have changed: run {FIRST} had not" in resumed(tmp_path).note


def test_a_tree_that_cannot_be_read_is_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Killed(tmp_path).judged("a")
    monkeypatch.setattr("pytest_planverify.supervision.tree_state.MOST_FILES", -1)

    assert "nobody knows which files have changed: git does not answer" in resumed(tmp_path).note


def test_after_a_change_of_a_sub_plan_nothing_is_taken_over(tmp_path: Path):
    items = [{"id": "x", "title": "X", "acceptance_criteria": {"tests": [{"cmd": "pytest test_x.py"}]}}]
    sub = tmp_path / "sub.yaml"
    sub.write_text(json.dumps({"todo_list_id": "sub", "items": items}))
    plan = {"todo_list_id": PLAN, "items": [{"id": "phase", "title": "P", "sub_plan": "sub.yaml"}]}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    Killed(tmp_path).judged("phase/x")
    assert taken(tmp_path) == {"phase/x tests[0]": "passed"}

    sub.write_text(sub.read_text() + "\n")

    assert "a sub-plan has changed since run" in resumed(tmp_path).note


def test_what_ended_is_going_on_or_cannot_be_accepted_is_not_resumed(tmp_path: Path):
    assert resumed(tmp_path).note.endswith("there is no earlier run of the plan")
    killed = Killed(tmp_path).judged("a")
    text = killed.folder.journal.read_text()

    killed.journal.unexplained("the session returned 7")
    assert f"run {FIRST} could not be accepted: the session returned 7" in resumed(tmp_path).note
    killed.folder.journal.write_text(text.replace(f'"pid": {os.getpid()}', f'"pid": {os.getppid()}'))
    assert f"run {FIRST} is still going on" in resumed(tmp_path).note
    close_journal(killed.folder.journal, PLAN, samples.document())
    assert f"the last run, {FIRST}, came to its end" in resumed(tmp_path).note


def test_only_the_commands_without_a_verdict_are_left_to_run(tmp_path: Path):
    chosen = plan_in(tmp_path)
    stages = schedule(chosen.flat, ["a", "b", "c"], isolate=False)

    left = without(stages, {("a", "tests[0]"), ("a", "tests[1]"), ("c", "tests[0]")})

    assert [job.key.split("::", 1)[1] for stage in left for fold in stage.folds for job in fold.jobs] == [
        "b::tests[0]"
    ]
    assert not any(stage.singles for stage in left)
    assert [stage.todos for stage in left] == [stage.todos for stage in stages]
    assert without(stages, ()) == stages
