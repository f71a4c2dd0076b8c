"""What agents must not change of a run is put back, also where the whole of `.planverify` is removed."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from planner.model.events import RunResumed, RunStarted
from planner.store.session import RunSession, RunSettings
from pytest_planverify.harness.records import Records
from pytest_planverify.harness.snapshots import Snapshots

if TYPE_CHECKING:
    from collections.abc import Generator


class Kept(NamedTuple):
    root: Path
    run: Path
    session: RunSession
    records: Records
    snapshots: Snapshots

    @property
    def log(self) -> Path:
        return self.session.log


@pytest.fixture
def kept(tmp_path: Path) -> Generator[Kept]:
    plan = tmp_path / "plan.yaml"
    plan.write_text("todo_list_id: shop\nitems: [{id: a, title: A, verify: pytest tests/test_a.py}]\n")
    home, run = tmp_path / ".planverify", tmp_path / ".planverify/harness/shop"
    (home / "logs").mkdir(parents=True)
    run.mkdir(parents=True)
    (run / "plan.yaml").write_text("the plan")
    snapshots = Snapshots(tmp_path, "shop")
    snapshots.take("before")
    with RunSession.open(RunSettings(plan=plan, log=home / "logs/shop.jsonl")) as session:
        session.tell(RunStarted(at=datetime(2026, 1, 1, tzinfo=UTC)))
        records = Records(tmp_path, run, session)
        records.note()
        records.keep_copy()
        yield Kept(tmp_path, run, session, records, snapshots)
        records.close()


def test_what_nobody_has_changed_stays_as_it_is(kept: Kept):
    (kept.run / "turns/0001").mkdir(parents=True)
    (kept.run / "turns/0001/output.txt").write_text("an agent at work")
    assert kept.records.put_back() == ([], False)


@pytest.mark.parametrize("name", ["plan.yaml", "phases/a.yaml", "first_look.json"])
def test_the_plan_of_the_run_and_what_it_has_found_are_put_back(kept: Kept, name: str):
    path = kept.run / name
    before = path.read_text() if path.exists() else None
    path.parent.mkdir(exist_ok=True)
    path.write_text("forged")
    assert kept.records.put_back() == ([f".planverify/harness/shop/{name}"], False)
    assert (path.read_text() if path.exists() else None) == before


@pytest.mark.parametrize("how", ["emptied", "edited", "removed", "replaced"])
def test_the_log_is_put_back_and_goes_on(kept: Kept, how: str):
    content = kept.log.read_bytes()
    if how == "emptied":
        kept.log.write_bytes(b"")
    elif how == "edited":
        kept.log.write_bytes(content.replace(b"run_started", b"run_stopped"))
    else:
        kept.log.unlink()
    if how == "replaced":
        kept.log.write_bytes(content[:-20])
    assert kept.records.put_back() == ([".planverify/logs/shop.jsonl"], False)
    assert kept.log.read_bytes() == content
    kept.session.tell(RunResumed(at=datetime(2026, 1, 2, tzinfo=UTC)))
    assert kept.log.read_bytes().startswith(content)
    assert len(kept.log.read_bytes()) > len(content)


def test_answers_of_people_count_while_nobody_works(kept: Kept):
    (kept.root / ".planverify/answers.json").write_text("{}")
    assert kept.records.put_back(by_people=False) == ([], False)
    assert kept.records.put_back() == ([".planverify/answers.json"], False)


def test_what_an_agent_writes_while_the_run_writes_is_not_taken_for_the_runs_own(kept: Kept):
    kept.session.tell(RunResumed(at=datetime(2026, 1, 2, tzinfo=UTC)))
    (kept.run / "plan.yaml").write_text("the next version")
    (kept.root / ".planverify/answers.json").write_text("{}")
    kept.records.note(own=True)
    assert kept.records.put_back() == ([".planverify/answers.json"], False)


def test_a_tree_that_an_agent_has_cleaned_is_no_forgery_and_can_be_restored(kept: Kept):
    before = kept.snapshots.take("turn")
    kept.records.keep_copy()
    log = kept.log.read_bytes()
    shutil.rmtree(kept.root / ".planverify")
    (kept.root / "plan.yaml").unlink()

    assert kept.records.put_back() == ([], True)

    kept.snapshots.restore(before)
    assert (kept.root / "plan.yaml").exists()
    assert (kept.log.read_bytes(), (kept.run / "plan.yaml").read_text()) == (log, "the plan")
