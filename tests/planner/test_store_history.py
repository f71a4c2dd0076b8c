"""`planner history` in this process: what it shows of a store, and what it says where there is nothing."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from planner_command import Command
from store_samples import START, Carried, shop, submitted, todo

from planner.cli.history_screen import duration
from planner.edges.store import Store, sqlite, telling


@pytest.fixture
def planner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.setattr(sqlite, "SYNCHRONOUS", "OFF")
    command = Command(tmp_path, monkeypatch, capsys)
    command.plan(todo("tax"))
    return command


def store_of(planner: Command) -> Store:
    return Store.open(planner.folder / ".planverify" / "planverify.db")


def repaired(store: Store, run_id: str = "run-1", **metadata: Any) -> Carried:
    """A run with a branch that has repaired `tax`, and of which `bill` waits for a person."""
    run = Carried(store, shop(**metadata), run_id)
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


def test_the_runs_of_a_plan_are_shown_with_their_branches(planner: Command) -> None:
    with store_of(planner) as store:
        repaired(store)
        Carried(store, submitted("another plan"), "run-2")

    shown = planner("history", "plan.yaml")

    assert shown.status == 0
    assert shown.out == (
        "shop (plan.yaml): 1 run, 1 branch, a repair took 2 min on average, 1 run blocked\n"
        "\n"
        "run run-1  waits for a person  2026-11-21 10:00 UTC, 16 events\n"
        "  waits for a person since 2026-11-21 10:15 UTC: see to what was not there, so that bill can be\n"
        "  verified (something was not there: AssertionError: assert 110 == 119; it was verified 4 times)\n"
        "  BRANCH         OUT OF  ROLE   ATTEMPTS  OUTCOME                   TOOK\n"
        "  tax_branch_01  tax     coder  1         passed, its todo is done  2 min\n"
    )
    assert planner("history").out == shown.out, "the usual plan"
    assert planner("history", "show", "plan.yaml", "--run", "run").out == shown.out
    assert planner("history", "shop").out == shown.out.replace("shop (plan.yaml)", "shop"), (
        "a plan by its id"
    )
    told = planner("history", "--json").json
    assert (told["plan"], told["average_resolution_seconds"], told["blocked_runs"]) == (
        "shop",
        120,
        ["run-1"],
    )
    (run,) = told["runs"]
    assert (run["state"], run["events"], run["branches"][0]["resolution"]) == (
        "awaiting_review",
        16,
        "parent_done",
    )
    assert run["questions"][0]["kind"] == "mend_environment"


def test_of_many_runs_the_newest_are_shown(planner: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "_AT_ONCE", 4)
    with store_of(planner) as store:
        for place in range(12):
            run = Carried(store, shop(at=START + timedelta(hours=place)), f"run-{place:02}")
            run.tell("stop_requested")
        repaired(store, "run-old")
    lines = planner("history").out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("run")][:2] == ["run-11", "run-10"]
    assert lines[-1] == "and 3 older; one of them with --run ID, all with --json"
    told = planner("history", "--json").json["runs"]
    assert [len(each["branches"]) for each in told] == [0] * 11 + [1, 0]


def test_what_is_blocked_is_listed_for_all_plans(planner: Command) -> None:
    with store_of(planner) as store:
        run = Carried(store, shop(), "run-1")
        run.tell("run_started")
        run.worked("tax")
        run.failed("tax")
        repaired(store, "run-2").tell("stop_requested")

    shown = planner("history", "blocked")

    assert shown.out == (
        "1 run blocked, the longest first\n"
        "\n"
        "shop (plan.yaml)\n"
        "run run-1  under way  2026-11-21 10:00 UTC, 4 events\n"
        "  blocked since 2026-11-21 10:03 UTC: bill, mail\n"
    )
    (told,) = planner("history", "blocked", "--json").json["blocked_runs"]
    assert told["blocked_todos"] == ["bill", "mail"]
    shown = planner("history")
    assert "run run-2  halted  2026-11-21 10:00 UTC to 2026-11-21 10:16 UTC" in shown.out


def test_a_run_that_is_over_tells_what_was_blocked_and_no_time_since(planner: Command) -> None:
    with store_of(planner) as store:
        run = Carried(store, shop(), "run-1")
        run.tell("run_started")
        run.worked("tax")
        run.failed("tax")
        run.tell("stop_requested")

    shown = planner("history", "plan.yaml")

    assert "run run-1  halted" in shown.out
    assert "  blocked: bill, mail\n" in shown.out


def test_many_blocked_todos_are_counted_and_the_first_are_named(planner: Command) -> None:
    with store_of(planner) as store:
        run = Carried(store, shop(items=[todo("a"), *(todo(f"z{place:02}", "a") for place in range(30))]))
        run.tell("run_started")
        run.worked("a")
        run.failed("a")
    assert "z00, z01, z02, z03, z04, z05, z06, z07 and 22 more" in planner("history").out


def test_what_repaired_a_failure_is_told_with_what_people_corrected(planner: Command) -> None:
    with store_of(planner) as store:
        repaired(store)
    corrected = planner(
        "history", "correct", "a1b2", "--role", "ARCHITECT", "--category", "spec_mismatch", "--by", "ann",
        "--because", "the contract says otherwise",
    )  # fmt: skip
    assert corrected.out == (
        "remembered: a1b2c3d4e5f6 (TEST_REGRESSION) is for the architect and was SPEC_MISMATCH\n"
    )
    assert planner("history", "correct", "a1b2c3d4e5f6", "--role", "debugger").status == 0

    shown = planner("history", "fixed", "a1b2c3d4e5f6")

    assert shown.status == 0
    head, *rest = shown.out.split("\n\n")
    assert head == (
        "a1b2c3d4e5f6  TEST_REGRESSION: the product does not do what a test asks of it\n"
        "  AssertionError: assert 110 == 119\n"
        "  seen in 3 verifications of tax, last 2026-11-21 10:07 UTC"
    )
    assert rest[0].split("\n")[0].split() == ["ROLE", "FIXED", "STRATEGY", "LAST"]
    assert [line.split()[:4] for line in rest[0].split("\n")[1:]] == [
        ["coder", "1", "of", "1"],
        ["coder", "0", "of", "2"],
    ]
    assert "tax_branch_01" in rest[1]
    assert "somebody corrected it" in rest[2]
    assert "it is for the debugger" in rest[2]
    assert "ann corrected it" in rest[3]
    assert "the architect, and it was SPEC_MISMATCH: the contract" in " ".join(rest[3].split())
    told = planner("history", "fixed", "a1b2c3d4e5f6", "--json").json
    assert (told["known"], told["times"], told["repairs"][0]["fixed"]) == (True, 3, 1)
    assert [each["role"] for each in told["corrections"]] == ["debugger", "architect"]


def test_a_failure_that_nobody_has_repaired_is_told_so(planner: Command) -> None:
    with store_of(planner) as store:
        repaired(store)
    shown = planner("history", "fixed", "e1")
    assert "Nobody has repaired it yet, as far as the store knows." in shown.out
    assert "ENVIRONMENT_ERROR: something that the work does not own was not there" in shown.out
    unknown = planner("history", "fixed", "zz")
    assert (unknown.status, unknown.out) == (
        1,
        "The store has not seen a failure zz.\n  The latest that it has seen: e1, a1b2c3d4e5f6\n",
    )
    assert planner("history", "fixed", "zz", "--json").json == {"signature": "zz", "known": False}


def test_a_correction_of_what_the_store_has_not_seen_needs_what_it_was(planner: Command) -> None:
    with store_of(planner) as store:
        repaired(store)
    refused = planner("history", "correct", "zz", "--role", "coder")
    assert refused.status == 2
    assert refused.err == (
        "planner: the store has not seen a failure zz; it has seen e1, a1b2c3d4e5f6; "
        "of one that it has not seen, tell with --was as what it was diagnosed\n"
    )
    assert planner("history", "correct", "zz", "--role", "coder", "--was", "lint_error").status == 0
    shown = planner("history", "fixed", "zz")
    assert shown.status == 0
    assert shown.out.startswith("zz  LINT_ERROR: a linter complains\n\nNobody has repaired it yet")
    with store_of(planner) as store:
        (kept,) = store.past("x", 4e9, 5).corrections
    assert kept.fingerprint.startswith("sha256:"), "that of the repository here"


def test_the_artifact_log_tells_who_touched_what(planner: Command) -> None:
    with store_of(planner) as store:
        repaired(store)
    shown = planner("history", "artifacts", "plan.yaml", "--todo", "tax")
    lines = shown.out.splitlines()
    assert lines[:6] == [
        "run run-1",
        "  2026-11-21 10:02 UTC  tax  turn 1 (coder)  worked, 1200 tokens",
        "      shop/prices.py",
        "      shop/tax.py (new)",
        "  2026-11-21 10:03 UTC  tax  turn 1 (coder)  verified, does not hold",
        "      diff sha256:2",
    ]
    told = planner("history", "artifacts", "--json", "--run", "run-1").json
    assert told["plan"] == "shop"
    assert {each["todo_id"] for each in told["artifacts"]} == {"tax", "tax_branch_01", "bill"}
    assert told["artifacts"][0]["new_files"] == ["shop/tax.py"]
    refused = planner("history", "artifacts", "--todo", "taxx")
    assert refused.err == (
        "planner: --todo taxx: nothing is in the artifact log of such a todo; did you mean 'tax'?\n"
    )


def test_the_plan_that_served_a_goal_is_found_again(planner: Command) -> None:
    with store_of(planner) as store:
        run = Carried(store, shop(items=[todo("tax")]), "good")
        run.tell("run_started")
        run.worked("tax")
        run.passed("tax")
        for place in range(11):
            Carried(store, shop(), f"run-{place}")
    shown = planner("history", "cached", "  SHOP")
    assert shown.status == 0
    lines = shown.out.splitlines()
    assert lines[0] == "12 plans for the goal 'shop', the best first"
    assert lines[2].split()[3:] == ["completed", "elsewhere", "plan.yaml", "sha256:111111111111"]
    assert lines[-3] == "  and 2 more; all with --json"
    document = yaml.safe_load(planner("history", "cached", "shop", "--plan").out)
    assert [each["id"] for each in document["items"]] == ["tax"]
    told = planner("history", "cached", "shop", "--json").json
    assert (told["plans"][0]["ended"], told["plans"][0]["here"]) == ("completed", False)
    assert told["plans"][0]["document"] == document
    unknown = planner("history", "cached", "sell")
    assert (unknown.status, unknown.out.splitlines()[0]) == (
        1,
        "No plan in the store was made for the goal 'sell'.",
    )
    assert planner("history", "cached", "sell", "--plan").status == 1
    assert planner("history", "cached", "shop", "--plan", "--json").status == 2
    (planner.folder / "plan.yaml").write_text("no plan")
    assert planner("history", "cached", "shop", "--json").json["plans"][0]["here"] is None
    assert "elsewhere" not in planner("history", "cached", "shop").out


def test_the_log_of_a_run_is_printed_as_it_was_committed(planner: Command) -> None:
    with store_of(planner) as store:
        repaired(store)
        repaired(store, "run-2")
        lines = list(store.lines("run-1"))
    assert planner("history", "log", "run-1").out.splitlines() == lines
    refused = planner("history", "log", "run")
    assert (refused.status, refused.err) == (
        2,
        "planner: 'run': several runs begin so; did you mean 'run-2' or 'run-1'?\n",
    )
    refused = planner("history", "show", "--run", "x")
    assert refused.err == "planner: 'x': there is no such run; the runs are run-2, run-1\n"


def test_where_there_is_nothing_yet_the_way_to_something_is_shown(planner: Command) -> None:
    path = planner.folder / ".planverify" / "planverify.db"
    for words, status, said in [
        (("history",), 0, "shop (plan.yaml): no run of it is in the store"),
        (("history", "artifacts"), 0, "shop (plan.yaml): no turn of work is in the store"),
        (("history", "blocked"), 0, "There is no store yet, so no run is blocked."),
        (("history", "fixed", "a1"), 1, "The store has not seen a failure a1."),
        (("history", "cached", "shop"), 1, "No plan in the store was made for the goal 'shop'."),
    ]:
        shown = planner(*words)
        assert (shown.status, shown.out.splitlines()[0], shown.err) == (status, said, "")
        if words[1:2] != ("cached",):
            assert "planner step PLAN" in shown.out
        assert planner(*words, "--json").status == status
    assert planner("history", "log", "x").status == 2
    assert planner("history", "correct", "x", "--role", "coder").status == 4
    assert not path.parent.exists(), "nothing is made by asking"
    store_of(planner).close()
    assert planner("history", "blocked").out == "No run is blocked.\n"
    assert planner("history", "fixed", "a1").out.endswith("It has seen none at all.\n")


def test_a_store_that_cannot_be_used_is_told_in_one_line(planner: Command) -> None:
    (planner.folder / "text.db").write_text("no database at all")
    for place, said in [
        ("text.db", "text.db is no SQLite database"),
        ("none.db", "none.db: there is no store yet"),
        (
            "postgresql+nobody://ann:secret@host/x",
            "postgresql+nobody://ann:***@host/x: there is no database",
        ),
    ]:
        for words in (
            ("show",),
            ("fixed", "a"),
            ("blocked",),
            ("artifacts",),
            ("cached", "x"),
            ("log", "x"),
        ):
            refused = planner("history", *words, "--store", place)
            assert (refused.status, refused.out) == (4, "")
            assert refused.err.startswith(f"planner: {said}")
            assert refused.err.count("\n") == 1


def test_what_a_store_holds_cannot_break_the_screen(planner: Command) -> None:
    with store_of(planner) as store:
        run = repaired(store)
        run.tell("stop_requested")
    raw = sqlite3.connect(planner.folder / ".planverify" / "planverify.db")
    raw.execute(
        "UPDATE planner_diagnoses SET category = 'NEW_ONE', head = char(27) || '[31mred' || char(10) || 'x'"
    )
    raw.execute("UPDATE planner_runs SET state = 'asleep'")
    raw.execute("UPDATE planner_branches SET branch_id = 'a' || char(10) || 'b', outcome = 'failed'")
    raw.commit()
    raw.close()
    shown = planner("history", "fixed", "a1b2c3d4e5f6")
    assert "NEW_ONE: a category of another version" in shown.out
    assert "\x1b" not in shown.out
    assert "\n  red x\n" in shown.out
    shown = planner("history")
    assert "  a b " in shown.out
    assert "failed, its todo is done" in shown.out
    assert "run run-1  in a state of another version  2026-11-21" in shown.out


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.2, "under 1 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3600, "1 h"),
        (3661, "1 h 1 min"),
        (86_400 * 2 + 3_600 * 3 + 59, "2 d 3 h"),
        (86_401, "1 d"),
    ],
)
def test_spans_of_time_are_told_in_their_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text
