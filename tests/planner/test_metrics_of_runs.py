"""Metrics are counted from the logs alone, can be parsed, stay bounded, and arrive whole."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from engine_simulating import Simulation
from prometheus_client.parser import text_string_to_metric_families
from run_stories import PAUSE, START, Kept, Story, todo, write_log

from planner.cli import metrics as metrics_module
from planner.cli.metrics import OTHER_PLANS, RunMetrics, exposition, label
from planner.errors import LogError
from planner.model.events import Decision, RunResumed, StopRequested
from planner.model.life import PlanState, TodoLife
from planner.model.plan import Plan
from planner.model.taxonomy import Category
from planner.store.chain import GENESIS
from planner.store.lines import encode
from planner.store.recorded_run import run_of_log
from planner.store.run_log import is_log

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.store.run_log import Step

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    """Every sample of an exposition, by name and labels."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def of(*runs: Iterable[Step]) -> Samples:
    counted = RunMetrics()
    for steps in runs:
        counted.add(steps)
    return samples(exposition(counted))


def value(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((f"planverify_{name}", frozenset({"plan": "p1", **labels}.items())))


def repaired() -> Story:
    """A todo that is retried, gets a branch, and is done; another that fails for good."""
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


def test_a_run_is_counted_from_its_steps() -> None:
    story = repaired()
    found = of(story.steps)
    assert value(found, "todos", state="blocked") == 1
    assert value(found, "todos", state="test_failed") == 1
    assert value(found, "open_branches") == 1
    assert value(found, "blocked_workflows", cause="failure") == 1
    assert value(found, "budget_left_tokens") == 850
    assert value(found, "budget_left_ratio", kind="tokens") == 0.85
    assert value(found, "budget_left_files") == 3
    assert value(found, "budget_left_cycles") == 98
    assert value(found, "budget_left_seconds") == 3_600 - 5 * PAUSE.total_seconds()

    story.is_red("t1_branch_01")
    story.is_done("t1_branch_01")
    story.passes("t1")
    story.is_done("t2")

    found = of(story.steps)
    assert value(found, "tokens_total") == 150
    assert value(found, "cycles_total") == 2, "as drivers told them"
    assert value(found, "runs", state="completed") == 1
    assert value(found, "branches_total") == 1
    assert value(found, "open_branches") == 0
    assert value(found, "branch_resolution_seconds_sum", result="passed") == 40
    assert value(found, "branch_resolution_seconds_bucket", result="passed", le="15.0") == 0
    assert value(found, "branch_resolution_seconds_bucket", result="passed", le="60.0") == 1
    assert value(found, "branch_resolution_seconds_bucket", result="passed", le="+Inf") == 1
    assert value(found, "branch_resolution_seconds_count", result="failed") == 0
    assert value(found, "blocked_workflows", cause="failure") == 0
    assert value(found, "verdicts_total", verdict="failed", category="TEST_REGRESSION") == 2
    assert value(found, "verdicts_total", verdict="failed", category="TEST_CRASH") == 1
    assert value(found, "verdicts_total", verdict="passed", category="none") == 3
    assert value(found, "turns_total", role="coder") == 3
    assert value(found, "turns_total", role="debugger") == 2
    assert value(found, "retries_total") == 1
    assert value(found, "review_ratio", figure="recovery-rate") == 1
    assert value(found, "review_limit_ratio", figure="recovery-rate") == 0.5
    assert value(found, "review_met", figure="recovery-rate") == 1
    assert value(found, "review_ratio", figure="convention-misses") is None
    assert value(found, "hierarchy_levels") == 1
    assert value(found, "done_while_red_todos") == 0
    assert value(found, "spent_seconds_total", on="verification") == 60
    assert value(found, "last_event_timestamp_seconds") == story.now.timestamp()


def test_of_a_run_that_was_not_started_nothing_is_used_up() -> None:
    story = Story(todo("t1"), budget={"wall_seconds": 60, "tokens": 0})
    found = of(story.steps[:1])

    assert value(found, "budget_left_seconds") == 60
    assert value(found, "budget_left_ratio", kind="wall_seconds") == 1
    assert value(found, "budget_left_ratio", kind="tokens") == 0
    assert value(found, "budget_left_tokens") == 0
    assert value(found, "open_questions", kind="review") == 0


def test_a_turn_that_is_asked_for_again_is_one_turn() -> None:
    story = Story(todo("t1"))
    story.tell(RunResumed(at=START))

    assert story.started == ["t1"]
    assert value(of(story.steps), "turns_total", role="coder") == 1


def test_what_waits_for_a_person_is_told_by_its_kind() -> None:
    story = Story(todo("t1"), auto_fix_mode=False)
    story.is_red()
    found = of(story.steps)

    assert value(found, "open_questions", kind="approve_branch") == 1
    assert value(found, "blocked_workflows", cause="person") == 1
    assert value(found, "blocked_workflows", cause="failure") == 0
    assert value(found, "branches_total") == 0, "nobody has agreed to it"


def test_a_halted_run_tells_why_and_waits_for_nobody() -> None:
    story = Story(todo("t1"), auto_fix_mode=False)
    story.is_red()
    story.decides(Decision.APPROVE, story.questions[0])
    story.tell(StopRequested(at=START))
    found = of(story.steps)

    assert value(found, "halts_total", reason="stopped-by-person") == 1
    assert value(found, "blocked_workflows", cause="person") == 0
    assert value(found, "open_branches") == 0
    assert value(found, "open_questions", kind="review") == 0


def test_a_branch_that_fails_for_good_is_resolved_too() -> None:
    story = Story(todo("t1"), max_debug_attempts=1)
    story.is_red("t1")
    story.is_red("t1_branch_01")
    found = of(story.steps)

    assert value(found, "branch_resolution_seconds_count", result="failed") == 1
    assert value(found, "branch_resolution_seconds_sum", result="failed") == 20


def test_counters_add_up_over_runs_and_gauges_tell_of_the_latest() -> None:
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
        assert value(found, "todos", state="done") == 1
        assert value(found, "todos", state="active") == 2
        assert value(found, "branches_total") == 1
        assert value(found, "open_branches") == 0


def test_simulated_runs_can_be_parsed_and_their_numbers_agree() -> None:
    for seed in range(25):
        kept = Kept()
        Simulation.begin(seed, kept).run()
        counted = RunMetrics()
        counted.add(kept.steps)
        text = exposition(counted)
        found = samples(text)
        assert all(math.isfinite(each) and each >= 0 for each in found.values())
        last = kept.steps[-1].after
        plan = label(last.plan_id)
        states = {
            life: found["planverify_todos", frozenset({("plan", plan), ("state", life)})]
            for life in TodoLife
        }
        assert sum(states.values()) == sum(not each.is_branch for each in last.todos.values())
        for (name, labels), number in found.items():
            if name == "planverify_branch_resolution_seconds_bucket" and ("le", "+Inf") in labels:
                result = labels - {("le", "+Inf")}
                assert number == found["planverify_branch_resolution_seconds_count", result]


def test_names_units_and_help_follow_the_rules() -> None:
    text = exposition(_with(repaired()))
    for family in text_string_to_metric_families(text):
        name = family.name.removesuffix("_total")
        assert re.fullmatch(r"planverify_[a-z]+(_[a-z]+)*", name)
        assert family.documentation.endswith("."), family.name
        if family.type == "counter":
            assert all(sample.name.endswith("_total") for sample in family.samples)
        else:
            assert not family.name.endswith("_total")
        assert not re.search(r"_(ms|minutes|hours|percent|mb|kb)$", family.name)
    assert "process_" not in text
    assert "python_info" not in text


def _with(story: Story) -> RunMetrics:
    counted = RunMetrics()
    counted.add(story.steps)
    return counted


def test_a_label_is_cut_where_it_is_too_long() -> None:
    assert label("x" * 100) == "x" * 100
    assert label("x" * 101) == "x" * 99 + "…"
    assert label(" \n ") == "_"


@pytest.mark.parametrize(
    "name", ['a"b\\c', "line\nbreak\x1b[31m", "\u202egone", "x" * 5_000, "\x00", "größe", "{a=1}"]
)
def test_a_plan_may_be_called_anything(name: str) -> None:
    story = Story(todo("t1"))
    first = story.steps[0]
    renamed = first.event.model_copy(update={"plan": Plan(todo_list_id=name, items=(todo("t1"),))})
    found = of([first._replace(event=renamed)])

    (plan,) = {dict(labels)["plan"] for _, labels in found if labels}
    assert plan == label(name)
    assert len(plan) <= 100
    assert plan.isprintable()


def test_the_number_of_plans_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_module, "MOST_PLANS", 2)
    counted = RunMetrics()
    story = Story(todo("t1"))
    for number in range(5):
        plan = Plan(todo_list_id=f"plan-{number}", items=(todo("t1"),))
        first = story.steps[0]
        counted.add([first._replace(event=first.event.model_copy(update={"plan": plan})), *story.steps[1:]])
    found = samples(exposition(counted))

    plans = {dict(labels)["plan"] for _, labels in found if labels}
    assert plans == {"plan-0", "plan-1", OTHER_PLANS}
    assert found["planverify_runs", frozenset({("plan", OTHER_PLANS), ("state", "executing")})] == 3
    assert ("planverify_todos", frozenset({("plan", OTHER_PLANS), ("state", "active")})) not in found


def test_a_run_is_counted_once_wherever_it_is_kept(tmp_path: Path) -> None:
    story = repaired()
    log = write_log(story.steps, tmp_path / "run.jsonl", run_id="r1")
    other = write_log(story.steps, tmp_path / "other.jsonl", run_id="r2")
    counted = RunMetrics()

    assert counted.add(run_of_log(log).steps)
    assert not counted.add(run_of_log(log).steps)
    assert counted.add(run_of_log(other).steps)
    assert samples(exposition(counted))[
        "planverify_runs", frozenset({("plan", "p1"), ("state", PlanState.EXECUTING.value)})
    ] == 2  # fmt: skip


def test_a_log_gives_the_numbers_of_the_run_that_wrote_it(tmp_path: Path) -> None:
    story = repaired()
    log = write_log(story.steps, tmp_path / "run.jsonl")
    counted = RunMetrics()
    counted.add(run_of_log(log).steps)

    assert is_log(log)
    assert exposition(counted) == exposition(_with(story))


def test_a_log_that_was_changed_gives_no_numbers(tmp_path: Path) -> None:
    log = write_log(repaired().steps, tmp_path / "run.jsonl")
    text = log.read_text()
    log.write_text(text.replace('"tokens":50', '"tokens":51'))
    counted = RunMetrics()

    with pytest.raises(LogError, match="line 4 was changed"):
        counted.add(run_of_log(log).steps)
    assert value(samples(exposition(counted)), "runs", state="executing") is None


def test_other_actions_than_are_decided_now_are_remarked_on(tmp_path: Path) -> None:
    steps = repaired().steps
    log = write_log([*steps[:2], steps[2]._replace(actions=()), *steps[3:]], tmp_path / "run.jsonl")
    run = run_of_log(log)

    assert len(list(run.steps)) == len(steps)
    (remark,) = run.remarks
    assert "line 2 holds other actions than this version decides" in remark


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("empty", "there is nothing in it"),
        ("late", "line 0"),
        ("refused", "line 1 holds an event that this"),
    ],
)
def test_what_is_no_log_of_a_run_is_refused(name: str, said: str, tmp_path: Path) -> None:
    steps = repaired().steps
    log = tmp_path / "run.jsonl"
    if name == "empty":
        log.write_text("")
    elif name == "late":
        log.write_text(encode(0, steps[1].event, (), GENESIS)[0] + "\n")
    else:
        write_log([steps[0], steps[2]], log)

    with pytest.raises(LogError, match=said):
        list(run_of_log(log).steps)


def test_what_cannot_be_read_is_no_log(tmp_path: Path) -> None:
    assert not is_log(tmp_path)
    assert not is_log(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    assert not is_log(tmp_path / "pipe")
