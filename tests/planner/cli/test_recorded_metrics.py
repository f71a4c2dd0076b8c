"""Metrics counted from run logs alone, in a valid exposition format."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from planner_command import Command, with_test
from prometheus_client.parser import text_string_to_metric_families
from run_stories import PAUSE, START, Kept, Story, todo, write_log
from simulation import Simulation

from planner.cli.metrics import exposition
from planner.engine.progress import status_tree
from planner.errors import LogError
from planner.model.events import Decision, StopRequested
from planner.model.taxonomy import Category
from planner.store.run_log import RecordedRun, run_of_log

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.store.run_log import Step

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    """Return the value of each sample in an exposition, by name and labels."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def of(*runs: Iterable[Step]) -> Samples:
    recorded = (RecordedRun(iter(steps), []) for steps in runs)
    return samples(exposition(recorded)[0])


def value(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((f"planverify_{name}", frozenset({"plan": "p1", **labels}.items())))


def repaired() -> Story:
    """Return the story of a todo that fails twice and whose branch is then approved."""
    story = Story(
        todo("t1", max_retries=1),
        todo("t2", dependencies=("t1",)),
        auto_fix_mode=False,
        budget={"tokens": 1_000, "wall_seconds": 3_600, "cycles": 100, "new_files": 4},
    )
    story.works("t1", tokens=100, cycles=1, new_files=("a.py",))
    story.fails("t1")
    story.works("t1", tokens=50, cycles=1)
    story.fails("t1", Category.TEST_CRASH)
    story.decides(Decision.APPROVE, story.questions[0])
    return story


def test_metrics_are_computed_from_the_steps_of_a_run() -> None:
    story = repaired()
    found = of(story.steps)
    assert value(found, "blocked_workflows", cause="failure") == 1
    assert value(found, "budget_left", kind="tokens") == 850
    assert value(found, "budget_left", kind="new_files") == 3
    assert value(found, "budget_left", kind="cycles") == 98
    assert value(found, "budget_left", kind="wall_seconds") == 3_600 - 5 * PAUSE.total_seconds()

    story.is_red("t1_branch_01")
    story.is_done("t1_branch_01")
    story.passes("t1")
    story.is_done("t2")

    found = of(story.steps)
    assert value(found, "runs", state="completed") == 1
    assert value(found, "branches_total") == 1
    assert value(found, "branch_resolution_seconds_sum", result="passed") == 40
    for limit, count in (("15.0", 0), ("60.0", 1), ("+Inf", 1)):
        assert value(found, "branch_resolution_seconds_bucket", result="passed", le=limit) == count
    assert value(found, "branch_resolution_seconds_count", result="failed") == 0
    assert value(found, "blocked_workflows", cause="failure") == 0
    assert value(found, "verdicts_total", verdict="failed", category="TEST_REGRESSION") == 2
    assert value(found, "verdicts_total", verdict="failed", category="TEST_CRASH") == 1
    assert value(found, "verdicts_total", verdict="passed", category="none") == 3


def test_repairs_decisions_and_reported_times_are_counted() -> None:
    story = Story(todo("t1"), todo("t2", risk_level="HIGH"), auto_fix_mode=False, max_branch_depth=1)
    start_of_t2 = next(action for action in story.all if getattr(action, "question_id", ""))
    story.works("t1", duration_ms=4_000)
    story.fails("t1")
    story.decides(Decision.APPROVE_SIMILAR, story.questions[0])
    story.decides(Decision.REJECT, start_of_t2)  # type: ignore[arg-type]
    story.is_done("t1_branch_01")
    story.passes("t1")
    found = of(story.steps)

    assert value(found, "decisions_total", decision="approve_similar") == 1
    assert value(found, "decisions_total", decision="reject") == 1
    assert value(found, "repairs_total", result="fixed") == 1
    assert value(found, "work_seconds_total") == 4
    assert value(found, "verification_seconds_total") is not None


def test_a_turn_granted_by_a_person_counts_as_a_repair() -> None:
    story = Story(todo("t1"), max_branch_depth=0, run={"driven": False})
    story.is_red("t1")
    story.answers("retry", story.questions[0])
    assert (
        status_tree(story.state, {}).children[0].waits == "another turn, granted by a person, by the coder"
    )
    story.is_done("t1")

    assert value(of(story.steps), "repairs_total", result="fixed") == 1


def test_a_halted_run_reports_its_reason_and_waits_for_no_person() -> None:
    story = Story(todo("t1"), auto_fix_mode=False)
    story.is_red()
    story.decides(Decision.APPROVE, story.questions[0])
    story.tell(StopRequested(at=START))
    found = of(story.steps)

    assert value(found, "halts_total", reason="stopped-by-person") == 1
    assert value(found, "blocked_workflows", cause="person") == 0


def test_counters_are_summed_over_runs() -> None:
    early = Story(todo("t1"))
    early.is_red("t1")
    late = Story(todo("t1"), todo("t2"), todo("t3"))
    late.now += 100 * PAUSE
    late.is_done("t1")
    for runs in ((early.steps, late.steps), (late.steps, early.steps)):
        found = of(*runs)
        assert value(found, "verdicts_total", verdict="failed", category="TEST_REGRESSION") == 1
        assert value(found, "verdicts_total", verdict="passed", category="none") == 1
        assert value(found, "runs", state="executing") == 2
        assert value(found, "branches_total") == 1


def test_metrics_of_simulated_runs_are_parsable_and_consistent() -> None:
    for seed in range(10):
        kept = Kept()
        Simulation.begin(seed, kept).run()
        found = of(kept.steps)
        assert all(math.isfinite(each) and each >= 0 for each in found.values())
        for (name, labels), number in found.items():
            if name == "planverify_branch_resolution_seconds_bucket" and ("le", "+Inf") in labels:
                result = labels - {("le", "+Inf")}
                assert number == found["planverify_branch_resolution_seconds_count", result]


def test_metric_names_units_and_help_follow_prometheus_conventions() -> None:
    text = exposition([RecordedRun(iter(repaired().steps), [])])[0]
    for family in text_string_to_metric_families(text):
        assert re.fullmatch(r"planverify_[a-z]+(_[a-z]+)*", family.name.removesuffix("_total"))
        assert family.documentation.endswith("."), family.name
        if family.type == "counter":
            assert all(sample.name.endswith("_total") for sample in family.samples)
    assert "process_" not in text
    assert "python_info" not in text


@pytest.mark.parametrize("name", ['a"b\\c', "a\nb", "a" * 200, "\x1b[31mred"])
def test_any_plan_name_gives_a_valid_label(name: str) -> None:
    story = Story(todo("t1"))
    last = replace(story.steps[-1].after, plan_id=name)
    found = of([*story.steps[:-1], story.steps[-1]._replace(after=last)])

    labels = {dict(each).get("plan", "") for _, each in found} - {""}
    assert all(len(each) <= 100 and each.isprintable() for each in labels)
    assert len(labels) == 1


@pytest.mark.parametrize(
    ("kept", "said"),
    [([], "the file is empty"), ([1], "line 0"), ([0, 2], "line 1 has an event that this")],
    ids=["empty", "without its first event", "with a gap"],
)
def test_a_file_that_is_not_a_run_log_is_refused(kept: list[int], said: str, tmp_path: Path) -> None:
    steps = repaired().steps
    log = write_log([steps[at] for at in kept], tmp_path / "run.jsonl")

    with pytest.raises(LogError, match=said):
        list(run_of_log(log).steps)


# -- the command -------------------------------------------------------------------------------------


@pytest.fixture
def run(command: Command) -> Command:
    """Return the command with the plan p1, the log of a run of it, and a log of another plan."""
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
    ran = run(
        "metrics", "run.jsonl", "other.jsonl", str(run.folder / "run.jsonl")
    )  # that one is named twice

    assert (ran.status, ran.err) == (0, "")
    assert 'planverify_runs{plan="p1",state="executing"} 1.0' in ran.out
    assert 'planverify_runs{plan="p2",state="executing"} 1.0' in ran.out


def test_an_unreadable_run_does_not_hide_others(run: Command) -> None:
    (run.folder / "bad.jsonl").write_text("{}\n")
    ran = run("metrics", "bad.jsonl", "run.jsonl", "--textfile", "x.prom")

    assert (ran.status, ran.out) == (4, "")
    assert ran.err.startswith("planner: bad.jsonl: line 0")
    assert ran.err.count("\n") == 1
    assert (run.folder / "x.prom").stat().st_mode & 0o777 == 0o644, "a collector may read it"
    text = (run.folder / "x.prom").read_text()
    assert 'planverify_runs{plan="p1",state="executing"} 1.0' in text


def test_the_latest_log_of_a_plan_is_used_by_default(run: Command) -> None:
    for words in (("metrics", "plan.yaml"), ("metrics",)):
        ran = run(*words)
        assert (ran.status, ran.out) == (2, "")
        assert "plan.yaml has no run yet; run first: pytest --planverify plan.yaml" in ran.err
    usual = run.folder / ".planverify" / "logs" / "p1.jsonl"
    usual.parent.mkdir(parents=True, exist_ok=True)
    (run.folder / "run.jsonl").rename(usual)

    assert 'planverify_runs{plan="p1",state="executing"} 1.0' in run("metrics", "plan.yaml").out
    story = run("explain", "plan.yaml").out
    assert story.startswith(
        "! plan.yaml has changed since the run began; the story follows the plan as it was then\n"
        "p1  times are relative to 2026-01-01 10:00:00 UTC, run r1\n"
    )
    assert story.endswith("planner status plan.yaml shows the state of each todo.\n")
    assert "\nt2 of p1  times are relative to" in run("explain", "plan.yaml", "t2").out


def test_a_superseded_run_counts_as_interrupted_and_blocks_nothing(run: Command) -> None:
    logs = run.folder / ".planverify" / "logs"
    logs.mkdir(parents=True)
    (run.folder / "run.jsonl").rename(logs / "p1.jsonl")
    assert 'planverify_runs{plan="p1",state="executing"} 1.0' in run("metrics", "plan.yaml").out
    assert '"state": "executing"' in run("history", "plan.yaml", "--json").out

    (logs / "p1.2.jsonl").touch()  # planverify undo begins a new run in this way

    for words in (("metrics", "plan.yaml"), ("metrics", ".planverify/logs/p1.jsonl")):
        told = run(*words).out
        assert 'planverify_runs{plan="p1",state="executing"} 0.0' in told
        assert 'planverify_runs{plan="p1",state="interrupted"} 1.0' in told
        assert 'planverify_blocked_workflows{cause="failure",plan="p1"} 0.0' in told
    history = json.loads(run("history", "plan.yaml", "--json").out)
    assert [each["state"] for each in history["runs"]] == ["interrupted"]
    assert history["blocked_runs"] == []
    assert "now       the plan is interrupted" in run("explain", ".planverify/logs/p1.jsonl").out


def test_an_unwritable_textfile_is_reported(run: Command) -> None:
    ran = run("metrics", "run.jsonl", "--textfile", "run.jsonl/x.prom")

    assert ran.status == 4
    assert ran.err.startswith("planner: run.jsonl/x.prom: cannot be written: a part of its path")


def test_an_unknown_todo_is_reported_with_the_nearest(run: Command) -> None:
    ran = run("explain", "run.jsonl", "t1_branch")

    assert ran.status == 1
    assert ran.err.startswith("planner: the run has no todo 't1_branch'; did you mean 't1_branch_01'")
