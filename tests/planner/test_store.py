"""The log of the store is only ever appended to, line by line, by whoever is first."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects import mssql, postgresql
from sqlalchemy.schema import CreateTable
from store_samples import (
    START,
    Carried,
    append,
    began,
    chain,
    last_digest,
    plain_rows,
    plan,
    shop,
    submitted,
    tick,
    todo,
)

from planner.edges.log_lines import GENESIS, encode
from planner.edges.store import LineTaken, Store, StoreError, goal_of, sqlite, store
from planner.edges.store.tables import METADATA
from planner.edges.store.times import moment
from planner.model.past import Correction
from planner.model.taxonomy import Category, Role
from planner.planfile.plan_folder import IGNORED


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "SYNCHRONOUS", "OFF")  # no test here is about what a power failure leaves


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".planverify" / "planverify.db"


@pytest.fixture
def opened(path: Path) -> Iterator[Store]:
    with Store.open(path) as found:
        yield found


def test_lines_come_back_as_they_were_committed(opened: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_PAGE", 3)
    digest = began(opened)
    for n in range(1, 7):
        digest = append(opened, n, digest)

    lines = chain(opened)

    assert len(lines) == 7
    assert lines[1] == tick(1, encode(0, submitted(), (), GENESIS)[1])[0]
    assert list(opened.lines("run-1", after=4)) == lines[5:]
    assert list(opened.lines("run-1", after=6)) == []
    assert list(opened.lines("no such run")) == []


def test_who_comes_second_is_told_so_and_can_go_on(opened: Store, path: Path) -> None:
    digest = began(opened)
    with Store.open(path) as other:
        append(other, 1, digest)
        with pytest.raises(
            LineTaken, match=r"line 1 of run run-1 is there already: .*; read the lines again"
        ) as taken:
            append(opened, 1, digest)
        assert (taken.value.run_id, taken.value.n) == ("run-1", 1)
        append(opened, 2, last_digest(opened))
        with pytest.raises(LineTaken, match="line 0 of run run-1"):
            began(other)
        assert len(chain(other)) == 3


def test_where_the_database_lets_two_in_the_key_tells_them_apart(
    opened: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = began(opened)
    append(opened, 1, first)
    real, stale = store._last, [(0, first)]
    monkeypatch.setattr(store, "_last", lambda *asked: stale.pop() if stale else real(*asked))

    with pytest.raises(LineTaken, match="line 1 of run run-1"):
        append(opened, 1, first)

    assert len(chain(opened)) == 2


def test_a_line_that_does_not_continue_the_log_is_refused(opened: Store) -> None:
    digest = began(opened)
    line, own = tick(1, digest)
    other, foreign = tick(1, GENESIS)
    for n, text, said in [
        (1, other, foreign),  # of another chain
        (1, line, foreign),  # with the digest of another line
        (1, line.replace("clock", "Clock"), own),  # changed
        (1, f"{line}\n", own),
        (1, line[:-1], own),
        (1, tick(2, digest)[0], tick(2, digest)[1]),  # of another number
    ]:
        with pytest.raises(StoreError, match="line 1 does not continue the log"):
            opened.append("run-1", n, text, said, plain_rows(1))
    with pytest.raises(StoreError, match="line 2 of run run-1 cannot be stored, as line 1 is not there"):
        append(opened, 2, digest)
    with pytest.raises(StoreError, match="there is no run another; open it with its line 0"):
        append(opened, 1, digest, run_id="another")
    with pytest.raises(StoreError, match="a run's id has 1 to 200 characters, and this one 201"):
        began(opened, "r" * 201)
    assert len(chain(opened)) == 1


def test_an_event_and_what_it_changes_are_committed_together(
    opened: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = began(opened)
    monkeypatch.setattr(store, "write_rows", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        append(opened, 1, digest)
    assert len(chain(opened)) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE planner_events SET line = 'x'",
        "DELETE FROM planner_events WHERE n = 1",
        "INSERT OR REPLACE INTO planner_events SELECT run_id, n, at, kind, 'x', digest FROM planner_events",
    ],
)
def test_the_database_itself_refuses_to_change_the_log(opened: Store, path: Path, statement: str) -> None:
    append(opened, 1, began(opened))
    raw = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="planner_events is append-only"):
        raw.execute(statement)
    raw.close()
    assert len(chain(opened)) == 2


def test_a_line_that_is_missing_is_told(opened: Store, path: Path) -> None:
    append(opened, 1, began(opened))
    raw = sqlite3.connect(path)
    raw.executescript("DROP TRIGGER planner_events_no_delete; DELETE FROM planner_events WHERE n = 0;")
    raw.close()
    with pytest.raises(StoreError, match="line 0 of run run-1 is missing: the store is damaged"):
        list(opened.lines("run-1"))


def test_the_files_are_the_owners_and_stay_out_of_version_control(opened: Store, path: Path) -> None:
    began(opened)
    files = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
    ignore = path.parent / ".gitignore"
    assert set(files.values()) == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert ignore.read_text() == IGNORED
    ignore.write_text("mine\n")
    opened.close()
    assert sorted(os.listdir(path.parent)) == [".gitignore", "planverify.db"], "all is in the one file then"
    with Store.open(f"sqlite:///{path}") as again:
        assert [run.run_id for run in again.runs()] == ["run-1"]
    assert ignore.read_text() == "mine\n"


def test_runs_are_told_newest_first(opened: Store) -> None:
    for place, plan_id in enumerate(("shop", "other", "shop")):
        began(
            opened,
            f"run-{place}",
            submitted(plan_id, at=START + timedelta(days=place), path=f"{place}.yaml"),
        )
    assert [run.run_id for run in opened.runs()] == ["run-2", "run-1", "run-0"]
    (newest, oldest) = opened.runs("shop")
    assert (newest.path, newest.opened, newest.state) == ("2.yaml", "2026-11-23T10:00:00.000000Z", "ready")
    assert (oldest.plan_id, oldest.fingerprint, oldest.closed, oldest.events) == ("shop", "here", None, 1)


def test_a_plan_that_is_rejected_is_a_run_that_is_over(opened: Store) -> None:
    Carried(opened, shop(items=[todo("a", "nowhere")]))
    (run,) = opened.runs()
    assert (run.state, run.closed) == ("rejected", "2026-11-21T10:00:00.000000Z")
    assert opened.cached_plan("shop", "here") is None, "it served nobody"


def test_the_ends_of_time_can_be_stored(opened: Store) -> None:
    began(opened, "late", submitted(at=datetime.fromisoformat("9999-12-31T23:59:59+00:00")))
    began(opened, "early", submitted(at=datetime.fromisoformat("0001-01-01T00:00:00-12:00")))
    assert [run.opened[:10] for run in opened.runs()] == ["9999-12-31", "0001-01-01"]


def test_a_correction_is_remembered(opened: Store) -> None:
    said = Correction(
        at=START,
        fingerprint="here",
        signature="a1b2c3d4e5f6",
        category=Category.TEST_REGRESSION,
        role=Role.ARCHITECT,
        right_category=Category.SPEC_MISMATCH,
        by="ann",
        because="the contract says so",
    )
    opened.record_correction(said)
    assert opened.past("here", START, 5).corrections == (said,)
    assert opened.past("here", START - timedelta(seconds=1), 5).corrections == ()


def test_the_plan_that_was_completed_serves_its_goal_again(opened: Store) -> None:
    run = Carried(opened, shop(items=[todo("tax")]), "good")
    run.tell("run_started")
    run.worked("tax")
    run.passed("tax")
    halted = Carried(opened, shop(items=[todo("bill")], at=START + timedelta(days=1)), "halted")
    halted.tell("stop_requested")
    opened.cache_plan("Sell  things", "here", plan("later"), "sha256:2", START + timedelta(days=2))

    served = opened.cached_plan(" SHOP", "here")
    assert served is not None
    assert (served.run_id, served.ended, '"tax"' in served.document) == ("good", "completed", True)
    assert [each.run_id for each in opened.cached_plans("shop")] == ["good", "halted"]
    assert opened.cached_plan("shop", "elsewhere") is None
    opened.cache_plan("shop", "here", plan("edited"), "sha256:3", run.now, run_id="good")
    edited = opened.cached_plan("shop", "here")
    assert edited is not None
    assert (edited.digest, edited.run_id, edited.ended, edited.path) == (
        "sha256:3",
        "good",
        "completed",
        "plan.yaml",
    )
    kept = opened.cached_plan("sell things", "here")
    assert kept is not None
    assert (kept.goal, kept.ended, kept.digest, kept.at[:10]) == (
        "Sell  things",
        None,
        "sha256:2",
        "2026-11-23",
    )


def test_the_goal_of_a_plan_is_what_it_says_of_itself() -> None:
    assert goal_of(plan("id")) == "id"
    assert goal_of(plan("id", workflow_name="Name")) == "Name"
    assert goal_of(plan("id", workflow_name="Name", extensions={"x-goal": "Sell"})) == "Sell"
    assert goal_of(plan("id", extensions={"x-goal": ["no", "text"]})) == "id"


@settings(max_examples=40)
@given(st.lists(st.datetimes(timezones=st.timezones()), min_size=2))
def test_the_order_of_times_as_text_is_their_order(times: list[datetime]) -> None:
    assert sorted(map(moment, times)) == [moment(each) for each in sorted(times)]


def test_the_tables_can_be_made_in_other_databases() -> None:
    for dialect in (postgresql.dialect(), mssql.dialect()):
        for table in METADATA.sorted_tables:
            assert str(CreateTable(table).compile(dialect=dialect))
            names = [table.name, *(index.name for index in table.indexes), *table.columns.keys()]
            assert all(name is not None and len(name) <= 63 for name in names)


def test_what_is_remembered_by_another_version_is_passed_over(opened: Store, path: Path) -> None:
    run = Carried(opened, shop(items=[todo("a"), todo("b")]))
    run.tell("run_started")
    for name in ("a", "b"):
        run.worked(name)
        run.passed(name)
    raw = sqlite3.connect(path)
    raw.execute("UPDATE planner_past_todos SET role = 'wizard' WHERE todo_id = 'a'")
    raw.commit()
    assert [each.text for each in opened.past("here", run.now, 5).todos] == ["Todo b"]
    raw.execute("UPDATE planner_past_todos SET categories = 'no JSON'")
    raw.commit()
    raw.close()
    with pytest.raises(
        StoreError, match="reading what is remembered failed: something in it cannot be read"
    ):
        opened.past("here", run.now, 5)


def test_times_are_kept_in_utc(opened: Store) -> None:
    began(opened, "run", submitted(at=datetime.fromisoformat("2026-11-21T12:00:00+02:00")))
    assert opened.runs()[0].opened == "2026-11-21T10:00:00.000000Z"
    assert opened.past("here", datetime.now(UTC), 1).repairs == ()
