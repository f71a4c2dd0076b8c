"""`planner history`: output from logs and outcomes, and where there are none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from planner_command import Command
from store_samples import START, Carried, Project, failure, shop, submitted, todo, verified

from planner.model.past import Correction
from planner.model.taxonomy import Category, Role
from planner.store.corrections import CORRECTIONS, corrections_of
from planner.store.index import open_index


@pytest.fixture
def planner(command: Command) -> Command:
    command.plan(todo("tax"))
    return command


def repaired(planner: Command, run_id: str = "run-1", **metadata: Any) -> Carried:
    """Return a run in which a branch has repaired `tax`, and `bill` waits for a person."""
    run = Carried(Project(planner.folder), shop(**metadata), run_id)
    run.tell("run_started")
    for name in ("tax", "tax", "tax"):
        run.worked(name, tokens=1200, new_files=["shop/tax.py"])
        run.failed(name)
    run.worked("tax_branch_01")
    run.passed("tax_branch_01")
    run.passed("tax")
    run.worked("bill")
    for _ in range(4):
        run.failed("bill", "ENVIRONMENT_ERROR", "e1", failures=[])
    return run


def test_history_shows_the_runs_of_a_plan_with_their_branches(planner: Command) -> None:
    repaired(planner)
    Carried(Project(planner.folder), submitted("another plan"), "run-2")

    shown = planner("history", "plan.yaml")

    assert shown.status == 0
    assert " ".join(shown.out.split()).startswith(
        "shop (plan.yaml): 1 run, 1 branch, a repair took 0:02:00 on average, 1 run blocked "
        "run run-1 awaiting review 2026-11-21 10:00 UTC, 16 events "
        "waiting for a person since 2026-11-21 10:15 UTC: repair the environment, so that bill can be "
        "verified (the environment is at fault: AssertionError: assert 110 == 119; it was verified 4 times)"
    )
    assert planner("history").out == shown.out, "the usual plan"
    assert planner("history", "shop").out == shown.out.replace("shop (plan.yaml)", "shop"), (
        "a plan by its id"
    )
    listed = planner("history", "--json").json
    assert listed == listed | {"plan": "shop", "average_resolution_seconds": 120, "blocked_runs": ["run-1"]}
    (run,) = listed["runs"]
    assert (run["state"], run["events"]) == ("awaiting_review", 16)
    assert run["branches"][0]["resolution"] == "parent_done"
    assert run["questions"][0]["kind"] == "mend_environment"


def test_history_shows_only_the_newest_of_many_runs(planner: Command) -> None:
    for place in range(12):
        run = Carried(Project(planner.folder), shop(at=START + timedelta(hours=place)), f"run-{place:02}")
        run.tell("stop_requested")
    repaired(planner, "run-old")
    lines = planner("history").out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("run")][:2] == ["run-11", "run-10"]
    assert "and 3 older; --json has all of them" in lines
    told = planner("history", "--json").json["runs"]
    assert [len(each["branches"]) for each in told] == [0] * 11 + [1, 0]


@pytest.mark.parametrize("name", ["history", "metrics"])
def test_a_plan_of_which_no_run_is_known_by_its_id_is_refused(planner: Command, name: str) -> None:
    repaired(planner, "run-1")
    ran = planner(name, "shpo")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == "planner: shpo: there is no such file, and no recorded run of a plan with that id\n"


def test_an_empty_history_shows_the_command_that_records_it(planner: Command) -> None:
    shown = planner("history")
    assert (shown.status, shown.err) == (0, "")
    assert shown.out.startswith(
        "shop (plan.yaml): no run is known; record one: pytest --planverify plan.yaml\n"
    )
    unknown = planner("history", "correct", "x", "--role", "coder")
    assert (unknown.status, unknown.out) == (2, "")
    assert "x: no run has seen that failure; there are none" in unknown.err
    assert not (planner.folder / ".planverify").exists(), "nothing is made by asking"


def test_a_team_database_imports_the_runs_of_several_checkouts(planner: Command) -> None:
    repaired(planner)
    verified(planner.folder, "r-1", failure("a1b2c3d4e5f6"))
    assert planner("history", "--store", "team.db", "--import").out == planner("history").out
    other = planner.folder / "other"
    other.mkdir()
    (other / "plan.yaml").write_bytes((planner.folder / "plan.yaml").read_bytes())
    Carried(Project(other), shop(), "run-9").tell("run_started")

    for _ in range(2):
        shown = planner("history", str(other / "plan.yaml"), "--store", "team.db", "--import").out

    assert "1 verification, 2 runs, 1 branch" in " ".join(shown.split())
    assert planner("history", "shop", "--store", "team.db").out.count("run run-") == 2
    assert "2 runs" not in planner("history").out
    for words in (("--import",), ("--store", "team.db", "--rebuild"), ("--import", "--rebuild")):
        assert planner("history", *words).status == 2


@pytest.mark.parametrize("words", [(), ("--store", "team.db", "--import")], ids=["own", "imported"])
def test_an_unreadable_log_is_reported_beside_the_other_runs(planner: Command, words: tuple[str, ...]):
    repaired(planner)
    broken = repaired(planner, "run-2").path
    broken.write_text(broken.read_text().replace("run_started", "run_resumed"))
    shown = planner("history", *words)
    assert (shown.status, shown.out.count("run run-")) == (4, 1)
    assert ".planverify/logs/run-2.jsonl: line 1 was changed, or the line before it" in shown.err
    assert "restore the log from a copy" in shown.err
    assert shown.err.count("\n") == 1


def corrections(planner: Command) -> list[Correction]:
    return list(corrections_of(planner.folder / CORRECTIONS))


def test_a_failure_outside_of_a_run_can_be_corrected(planner: Command) -> None:
    found = failure("a1b2c3d4e5f6", target_agent=Role.TESTER)
    verified(planner.folder, "r-1", found, failure("ffff"))

    done = planner("history", "correct", "a1b2", "--category", "spec_mismatch", "--by", "ann")

    assert (done.status, done.err) == (0, "")
    assert done.out == "remembered: a1b2c3d4e5f6 (TYPE_ERROR) is for the architect and was SPEC_MISMATCH\n"
    (kept,) = corrections(planner)
    assert (kept.signature, kept.category) == ("a1b2c3d4e5f6", Category.TYPE_ERROR)
    assert (kept.right_category, kept.role, kept.by) == (Category.SPEC_MISMATCH, Role.ARCHITECT, "ann")
    assert kept.fingerprint.startswith("sha256:")
    planner("history", "correct", "a1b2", "--role", "tester")
    planner("history", "--rebuild")
    with open_index(planner.folder) as index:
        learned = index.past_records("", datetime.now(UTC), 5).corrections
    assert [each.role for each in learned] == [Role.TESTER, Role.ARCHITECT]


def test_an_incomplete_or_unknown_correction_is_refused_with_the_options(planner: Command) -> None:
    verified(planner.folder, "r-1", failure("ab1"), failure("ab2"))
    for words, said in {
        "ab1 --by ann": "planner: a correction needs the right category (--category) or the role",
        "ab --role coder": "ab: several failures begin so; ",
    }.items():
        done = planner("history", "correct", *words.split())
        assert (done.status, said in done.err) == (2, True)
    assert not (planner.folder / CORRECTIONS).exists()
