"""`planner metrics` and the stories of `planner explain`: which runs they read, and how they end."""

from __future__ import annotations

from pathlib import Path

import pytest
from planner_command import Command, with_test
from run_stories import Story, todo, write_log

from planner.cli.explain import elapsed


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, monkeypatch, capsys)


@pytest.fixture
def run(command: Command) -> Command:
    """A folder with the plan p1, the log of a run of it, and one of another plan."""
    command.plan(with_test("t1"), with_test("t2", dependencies=["t1"]), todo_list_id="p1")
    story = Story(todo("t1"), todo("t2", dependencies=("t1",)), todo("t3"))
    story.is_red("t1")
    write_log(story.steps, command.folder / "run.jsonl", run_id="r1")
    first = story.steps[0]
    plan = first.event.plan.model_copy(update={"todo_list_id": "p2"})  # type: ignore[union-attr]
    other = first._replace(event=first.event.model_copy(update={"plan": plan}))
    write_log([other, *story.steps[1:2]], command.folder / "other.jsonl", run_id="r2")
    return command


def test_metrics_of_several_logs_are_printed(run: Command) -> None:
    ran = run("metrics", "--log", "run.jsonl", "--log", "other.jsonl")

    assert (ran.status, ran.err) == (0, "")
    assert 'planverify_runs{plan="p1",state="executing"} 1.0' in ran.out
    assert 'planverify_runs{plan="p2",state="executing"} 1.0' in ran.out
    assert "planverify_unreadable_runs 0.0" in ran.out


def test_a_log_may_stand_in_the_place_of_the_plan(run: Command) -> None:
    assert 'plan="p1"' in run("metrics", "run.jsonl").out


def test_a_run_that_is_given_twice_is_counted_once(run: Command) -> None:
    ran = run("metrics", "run.jsonl", "--log", "run.jsonl")

    assert ran.status == 0
    assert "run.jsonl: this run was counted already" in ran.err
    assert 'planverify_runs{plan="p1",state="executing"} 1.0' in ran.out


def test_a_run_that_cannot_be_read_hides_no_other(run: Command) -> None:
    (run.folder / "bad.jsonl").write_text("{}\n")
    ran = run("metrics", "--log", "bad.jsonl", "--log", "run.jsonl", "--textfile", "x.prom")

    assert (ran.status, ran.out) == (4, "")
    assert ran.err.startswith("planner: bad.jsonl: line 0")
    assert ran.err.count("\n") == 1
    text = (run.folder / "x.prom").read_text()
    assert 'planverify_runs{plan="p1",state="executing"} 1.0' in text
    assert "planverify_unreadable_runs 1.0" in text


def test_the_log_of_another_plan_is_refused(run: Command) -> None:
    ran = run("metrics", "plan.yaml", "--log", "other.jsonl")

    assert ran.status == 4
    assert "other.jsonl: this is a run of the plan 'p2', not of 'p1'" in ran.err


def test_a_plan_alone_means_its_latest_log(run: Command) -> None:
    assert run("metrics", "plan.yaml").status == 2
    usual = run.folder / ".planverify" / "logs" / "p1.jsonl"
    usual.parent.mkdir(parents=True, exist_ok=True)
    (run.folder / "run.jsonl").rename(usual)

    assert 'planverify_todos{plan="p1",state="test_failed"} 1.0' in run("metrics", "plan.yaml").out
    assert "\np1  times count from 2026-01-01 10:00:00 UTC" in run("explain", "plan.yaml").out
    assert "\nt2 of p1  times count from" in run("explain", "plan.yaml", "t2").out


def test_metrics_of_nothing_are_a_wrong_usage(run: Command) -> None:
    ran = run("metrics")

    assert (ran.status, ran.out) == (2, "")
    assert "name a plan, the log of a run with --log, or an index with --store" in ran.err


def test_a_textfile_that_cannot_be_written_is_named(run: Command) -> None:
    ran = run("metrics", "run.jsonl", "--textfile", "run.jsonl/x.prom")

    assert ran.status == 4
    assert ran.err.startswith(
        "planner: run.jsonl/x.prom: cannot be written: a part of its path is no folder"
    )


def test_a_textfile_may_be_read_by_its_collector(run: Command) -> None:
    assert run("metrics", "run.jsonl", "--textfile", "x.prom").status == 0
    assert Path("x.prom").stat().st_mode & 0o777 == 0o644


def test_the_story_of_a_log_is_told_in_order(run: Command) -> None:
    ran = run("explain", "plan.yaml", "--log", "run.jsonl")
    lines = ran.out.splitlines()

    assert ran.status == 0
    assert lines[0] == (
        "! plan.yaml has changed since the run began; what follows is of the plan as it was then"
    )
    assert lines[1] == "p1  times count from 2026-01-01 10:00:00 UTC, run r1"
    assert lines[2] == "+0:00:00  The plan p1 (plan.yaml) was submitted, with 3 todos."
    assert lines[3] == "+0:00:10  The run was started."
    flat = " ".join(ran.out.split())
    assert "+0:00:30 t1 was verified: test_it failed (TEST_REGRESSION, 0.9 by injected)" in flat
    assert "t2 is blocked by t1." in flat
    assert "now The run is under way." in flat
    assert lines[-1] == "planner explain RULE tells of a rule in brackets."


def test_a_log_tells_its_story_without_a_plan_and_of_one_todo(run: Command) -> None:
    assert "The work on t1 is over" in run("explain", "run.jsonl").out
    assert run("explain", "run.jsonl", "t2").out.splitlines()[1:3] == [
        "+0:00:30  t2 is blocked by t1.",
        "now       t2 is blocked by t1.",
    ]
    assert run("explain", "t2", "--log", "run.jsonl").out == run("explain", "run.jsonl", "t2").out


def test_a_todo_that_the_run_has_not_is_answered_with_the_nearest(run: Command) -> None:
    ran = run("explain", "run.jsonl", "t1_branch")

    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("planner: the run has no todo 't1_branch'; did you mean 't1_branch_01'")


def test_the_review_of_a_run_tells_every_figure(run: Command) -> None:
    ran = run("explain", "plan.yaml", "--log", "run.jsonl", "--review")

    assert ran.status == 0
    assert "- recovery-rate      todos that failed and were" in ran.out
    assert "✓ hierarchy-depth    levels of plans within plans: 1 (goal: at most 3)" in ran.out
    assert "✗ verification-time" in ran.out


def test_the_run_of_another_plan_is_refused(run: Command) -> None:
    ran = run("explain", "plan.yaml", "--log", "other.jsonl")

    assert (ran.status, ran.out) == (4, "")
    assert "other.jsonl: this is a run of the plan 'p2', not of 'p1'; leave the plan out" in ran.err


def test_a_story_breaks_off_where_the_log_is_damaged(run: Command) -> None:
    log = run.folder / "run.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines[:2], lines[2].replace("t1", "t3"), *lines[3:]]))
    ran = run("explain", "run.jsonl")

    assert ran.status == 4
    assert "The run was started." in ran.out
    assert "run.jsonl: line 2 was changed" in ran.err


def test_a_log_that_is_torn_at_its_end_is_told_up_to_there(run: Command) -> None:
    log = run.folder / "run.jsonl"
    text = log.read_text()
    log.write_text(text[:-40])
    ran = run("explain", "run.jsonl")

    assert ran.status == 0
    assert "t1 is to be verified" in " ".join(ran.out.split())
    assert "was torn by a kill" in ran.err
    assert log.read_text() == text[:-40], "whoever only reads changes nothing"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("explain", "plan.yaml"),
            "there is no run of plan.yaml yet; run first: pytest --planverify plan.yaml",
        ),
        (("explain", "plan.yaml", "--review"), "there is no run of plan.yaml yet"),
        (("explain", "plan.yaml", "--run", "r9"), "there is no run of plan.yaml yet"),
        (("explain", "no.yaml", "t1"), "there is no plan 'no.yaml' in which 't1' could be explained"),
        (("explain", "run.jsonl", "t1", "--review"), "--review is of a whole run; leave the todo out"),
        (("explain", "t1", "--log", "run.jsonl", "--review"), "there is no plan 't1'; --review is of a"),
        (("explain", "other.jsonl", "--log", "run.jsonl"), "other.jsonl is the log of a run; leave --log"),
        (("explain", "--log", "run.jsonl", "--run", "r1"), "--log names one run"),
        (("explain", "--log", "run.jsonl", "--store", "x.db"), "--log names one run"),
    ],
)
def test_what_names_no_run_is_a_wrong_usage(run: Command, words: tuple[str, ...], said: str) -> None:
    ran = run(*words)

    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err


def test_a_todo_of_a_plan_without_a_run_is_explained_as_ever(run: Command) -> None:
    assert run("explain", "plan.yaml", "t1").out == run("explain", "t1", "--plan", "plan.yaml").out


def test_a_word_stays_a_word_though_a_file_is_called_so(run: Command) -> None:
    before = run("explain", "coder").out
    (run.folder / "coder").write_text("todo_list_id: p1")

    assert run("explain", "coder").out == before


def test_a_plan_may_be_called_anything_where_a_run_is_named(run: Command) -> None:
    (run.folder / "plan.yaml").rename(run.folder / "coder")

    assert "times count from" in run("explain", "coder", "--log", "run.jsonl").out


def test_without_a_plan_the_usual_one_is_meant(run: Command) -> None:
    ran = run("explain", "--review")

    assert ran.status == 2
    assert "there is no run of plan.yaml yet" in ran.err


@pytest.mark.parametrize("rule", ["branch-passed", "ready-todo", "recovery-rate"])
def test_what_stands_in_brackets_can_be_explained(run: Command, rule: str) -> None:
    assert run("explain", rule).out.startswith(f"{rule}  ")


def test_runs_of_a_store_are_told_and_counted(run: Command) -> None:
    from planner.store.index import Index

    with Index.open(run.folder / "runs.db") as index:
        assert index.sync(run.folder, [run.folder / "run.jsonl"]) == []

    assert run("explain", "plan.yaml", "--store", "runs.db").out.splitlines()[1].endswith("run r1")
    assert run("explain", "--store", "runs.db", "--run", "r1").status == 0
    ran = run("metrics", "--store", "runs.db")
    assert (ran.status, ran.err) == (0, "")
    assert 'planverify_runs{plan="p1",state="executing"} 1.0' in ran.out
    assert 'plan="p1"' in run("metrics", "plan.yaml", "--store", "runs.db").out

    gone = run("explain", "--store", "runs.db", "--run", "r9")
    assert gone.status == 4
    assert "r9" in gone.err
    assert run("explain", "--store", "none.db").status == 4
    run.plan(with_test("t1"), todo_list_id="p3", path="p3.yaml")
    none = run("explain", "p3.yaml", "--store", "runs.db")
    assert (none.status, none.out) == (4, "")
    assert "there is no run of the plan 'p3'" in none.err


def test_a_time_of_many_days_stands_apart_from_its_sentence(command: Command) -> None:
    story = Story(todo("t1"))
    story.waits(86_400 * 12)
    story.works("t1")
    write_log(story.steps, command.folder / "run.jsonl")

    assert "\n+12d 00:00:30 The work on t1 is over" in command("explain", "run.jsonl").out


def test_times_are_told_from_the_beginning() -> None:
    assert elapsed(0) == "+0:00:00"
    assert elapsed(3_661.9) == "+1:01:01"
    assert elapsed(86_400 * 12 + 7_200) == "+12d 02:00:00"


def test_a_run_that_is_named_alone_is_one_of_the_usual_plan(run: Command) -> None:
    ran = run("explain", "--run", "r9")

    assert (ran.status, ran.out) == (2, "")
    assert "there is no run of plan.yaml yet" in ran.err
