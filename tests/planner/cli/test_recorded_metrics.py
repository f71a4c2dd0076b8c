"""Metrics of a project's runs, in a valid exposition format."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING

import pytest
from planner_command import Command, with_test
from prometheus_client.parser import text_string_to_metric_families
from run_stories import Story, steps_of, todo, write_log
from simulation import Simulation

from planner.cli.metrics import exposition
from planner.model.events import Decision
from planner.store.index import open_index

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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


def of(folder: Path, *runs: Sequence[Step]) -> Samples:
    logs = folder / ".planverify" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    for number, steps in enumerate(runs):
        write_log(steps, logs / f"run-{number}.jsonl", run_id=f"r{number}")
    with open_index(folder) as index:
        return samples(exposition(index.runs(), index.verifications()))


def value(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((f"planverify_{name}", frozenset({"plan": "p1", **labels}.items())))


def repaired() -> Story:
    """Return the story of a todo that fails twice and whose branch is then approved."""
    story = Story(todo("t1", max_retries=1), todo("t2", dependencies=("t1",)), auto_fix_mode=False)
    story.works("t1")
    story.fails("t1")
    story.works("t1")
    story.fails("t1")
    return story


def test_metrics_count_runs_branches_and_what_waits(tmp_path: Path) -> None:
    story = repaired()
    found = of(tmp_path, story.steps)
    assert value(found, "runs", state="awaiting_review") == 1
    assert value(found, "blocked_workflows", cause="person") == 1

    story.decides(Decision.APPROVE, story.questions[0])
    found = of(tmp_path, story.steps)
    assert value(found, "blocked_workflows", cause="person") == 0
    assert value(found, "blocked_workflows", cause="failure") == 1

    story.is_red("t1_branch_01")
    story.is_done("t1_branch_01")
    story.passes("t1")
    story.is_done("t2")
    found = of(tmp_path, story.steps)
    assert value(found, "runs", state="completed") == 1
    assert value(found, "runs", state="executing") == 0
    assert value(found, "branches_total", category="TEST_REGRESSION") == 1
    assert value(found, "branch_resolution_seconds_sum", result="passed") == 40
    for limit, count in (("15.0", 0), ("60.0", 1), ("+Inf", 1)):
        assert value(found, "branch_resolution_seconds_bucket", result="passed", le=limit) == count
    assert value(found, "branch_resolution_seconds_count", result="failed") == 0
    assert value(found, "blocked_workflows", cause="failure") == 0


def test_metrics_of_simulated_runs_are_parsable_and_consistent(tmp_path: Path) -> None:
    for seed in range(6):
        found = of(tmp_path / str(seed), steps_of(Simulation.begin(seed).run()))
        assert all(math.isfinite(each) and each >= 0 for each in found.values())
        assert sum(number for (name, _), number in found.items() if name == "planverify_runs") == 1


def test_metric_names_units_and_help_follow_prometheus_conventions() -> None:
    text = exposition([], [])
    for family in text_string_to_metric_families(text):
        assert re.fullmatch(r"planverify_[a-z]+(_[a-z]+)*", family.name.removesuffix("_total"))
        assert family.documentation.endswith("."), family.name
    assert "process_" not in text
    assert "python_info" not in text


def test_a_number_that_falls_when_old_runs_are_removed_is_no_counter() -> None:
    rows = [{"plan_id": "p1", "exit_status": status} for status in (0, 0, 1)]
    families = text_string_to_metric_families(exposition([], rows))
    (family,) = (each for each in families if "verifications" in each.name)
    assert (family.name, family.type) == ("planverify_verifications", "gauge")
    assert [each.value for each in family.samples] == [2, 1]


@pytest.mark.parametrize("name", ['a"b\\c', "a\nb", "a" * 200, "\x1b[31mred"])
def test_any_plan_name_gives_a_valid_label(name: str) -> None:
    found = samples(exposition([], [{"plan_id": name, "exit_status": 0}]))
    (label,) = {dict(each)["plan"] for _, each in found}
    assert len(label) <= 100
    assert label.isprintable()


@pytest.fixture
def run(command: Command) -> Command:
    """Return the command with the plan p1, and the log of a run of it that is not the project's."""
    command.plan(with_test("t1"), with_test("t2", dependencies=["t1"]), todo_list_id="p1")
    story = Story(todo("t1"), todo("t2", dependencies=("t1",)), todo("t3"))
    story.is_red("t1")
    write_log(story.steps, command.folder / "run.jsonl", run_id="r1")
    return command


@pytest.fixture
def kept(run: Command) -> Path:
    """Return the log of that run where a run of the project has it."""
    log = run.folder / ".planverify" / "logs" / "p1.jsonl"
    log.parent.mkdir(parents=True)
    return (run.folder / "run.jsonl").rename(log)


def test_an_unreadable_run_does_not_hide_others(run: Command, kept: Path) -> None:
    kept.with_name("bad.jsonl").write_text("{}\n")
    ran = run("metrics", "--textfile", "x.prom")
    assert (ran.status, ran.out) == (4, "")
    assert ".planverify/logs/bad.jsonl: line 0" in ran.err
    assert ran.err.count("\n") == 1
    assert (run.folder / "x.prom").stat().st_mode & 0o777 == 0o644, "a collector may read it"
    text = (run.folder / "x.prom").read_text()
    assert 'planverify_runs{plan="p1",state="executing"} 1.0' in text


@pytest.mark.usefixtures("kept")
def test_the_latest_log_of_a_plan_is_used_by_default(run: Command) -> None:
    story = run("explain", "plan.yaml").out
    assert story.startswith(
        "! plan.yaml has changed since the run began; the story follows the plan as it was then\n"
        "p1  times are relative to 2026-01-01 10:00:00 UTC, run r1\n"
    )
    assert story.endswith("planner status plan.yaml shows the state of each todo.\n")


def test_a_plan_without_a_run_has_no_story(run: Command) -> None:
    ran = run("explain", "plan.yaml")
    assert (ran.status, ran.out) == (2, "")
    assert "plan.yaml has no run yet; run first: pytest --planverify plan.yaml" in ran.err


def test_a_superseded_run_counts_as_interrupted_and_blocks_nothing(run: Command, kept: Path) -> None:
    assert 'planverify_runs{plan="p1",state="executing"} 1.0' in run("metrics", "plan.yaml").out
    assert '"state": "executing"' in run("history", "plan.yaml", "--json").out

    kept.with_name("p1.2.jsonl").touch()  # planverify undo begins a new run in this way

    told = run("metrics", "plan.yaml").out
    assert 'planverify_runs{plan="p1",state="executing"} 0.0' in told
    assert 'planverify_runs{plan="p1",state="interrupted"} 1.0' in told
    assert 'planverify_blocked_workflows{cause="failure",plan="p1"} 0.0' in told
    history = json.loads(run("history", "plan.yaml", "--json").out)
    assert [each["state"] for each in history["runs"]] == ["interrupted"]
    assert history["blocked_runs"] == []
    for name in ("plan.yaml", ".planverify/logs/p1.jsonl"):
        assert "now       the plan is interrupted" in run("explain", name).out
