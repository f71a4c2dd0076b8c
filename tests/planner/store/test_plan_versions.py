"""The newest plan of a run in a file: every published edit is in it, and nothing of the user's is lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from planner.engine import State, start, step
from planner.errors import PlannerError
from planner.model.events import Event, PlanSubmitted
from planner.planfile.loader import load_plan
from planner.planfile.tree import load_tree
from planner.store.plan_versions import PlanVersions

PLAN = """\
todo_list_id: shop  # mine
items:
  - {id: t1, title: One, requires_testing: false}
  - {id: t2, title: Two, requires_testing: false}
  - {id: phase, title: Phase, sub_plan: phases/two.yaml}
"""
SUB = """\
todo_list_id: two  # the second
root: ..
items:
  - {id: s1, title: First, requires_testing: false}
  - {id: s2, title: Second, requires_testing: false}
"""
AT = "2026-01-01T10:00:00Z"
EVENTS: TypeAdapter[Event] = TypeAdapter(Event)


class Run:
    """A run of the plan by the engine, watched by those who keep its newest version."""

    def __init__(self, plan: Path, versions: PlanVersions) -> None:
        self.versions = versions
        self.sub = load_tree(plan).child("phase").loaded.plan
        self.state: State | None = None
        self.tell(submitted(plan))

    def tell(self, event: Event) -> None:
        if self.state is None:
            assert isinstance(event, PlanSubmitted)
            self.state, _ = start(event)
        else:
            self.state, _ = step(self.state, event)

    def write(self) -> list[str]:
        return self.versions.write(self.state)

    def wait_for(self, todo_id: str, on: str, within: str = "") -> None:
        """Let one todo wait for another, by an edit of a person."""
        if self.state is not None and self.state.started is None:
            self.tell(made("run_started"))
            self.tell(made("sub_plan_loaded", todo_id="phase", plan=self.sub))
        edit = {"edit": "add_dependency", "todo_id": todo_id, "on": on, "rule": "r", "because": "b"}
        self.tell(made("plan_revised", within=within, edits=[edit]))


def made(event: str, **facts: Any) -> Event:
    return EVENTS.validate_python({"event": event, "at": AT, **facts})


def submitted(plan: Path) -> PlanSubmitted:
    loaded = load_plan(plan)
    facts = {"digest": loaded.digest, "path": str(plan), "policy": {"jobs": 1}}
    event = made("plan_submitted", plan=loaded.plan, **facts)
    assert isinstance(event, PlanSubmitted)
    return event


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "phases").mkdir()
    (tmp_path / "phases/two.yaml").write_text(SUB)
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path / "plan.yaml"


def test_the_file_holds_the_plan_and_then_its_newest_version(plan: Path) -> None:
    target = plan.with_name("newest.yaml")
    versions = PlanVersions(target, plan)
    assert versions.write(None) == []
    assert not target.exists()

    run = Run(plan, versions)
    assert run.write() == []
    assert target.read_text() == PLAN

    run.wait_for("t2", "t1")
    assert run.write() == []
    assert "# mine" in target.read_text()
    assert load_plan(target).plan.todo("t2").dependencies == ("t1",)
    os.utime(target, (1, 1))
    run.tell(made("clock_ticked"))
    assert run.write() == []
    assert target.stat().st_mtime == 1, "nothing has changed"
    assert PlanVersions(target, plan).write(run.state) == [], "it may be written again by the next process"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_sub_plan_is_written_beside_it(plan: Path, is_there: bool) -> None:
    target = plan.with_name("newest.yaml")
    run = Run(plan, PlanVersions(target, plan))
    if not is_there:
        (plan.parent / "phases/two.yaml").unlink()
    run.wait_for("s2", "s1", within="phase")

    assert run.write() == []

    assert "sub_plan: newest.phase.yaml" in target.read_text()
    written = plan.with_name("newest.phase.yaml").read_text()
    assert "- s1" in written or "[s1]" in written
    assert ("# the second" in written) == is_there
    assert plan.read_text() == PLAN


@pytest.mark.parametrize("name", ["newest.yaml", "newest.json"])
def test_without_its_file_the_plan_is_written_anew(plan: Path, name: str) -> None:
    target = plan.with_name(name)
    target.touch()
    run = Run(plan, PlanVersions(target, plan))
    run.wait_for("t2", "t1")
    plan.unlink()

    (remark,) = run.write()

    assert "written without the comments of the plan: " in remark
    assert load_plan(target).plan.todo("t2").dependencies == ("t1",)


@pytest.mark.parametrize("held", ["plan.yaml", "link.yaml", "notes.txt", "other.yaml", "folder"])
def test_what_is_something_else_is_not_replaced(plan: Path, held: str) -> None:
    plan.with_name("link.yaml").symlink_to(plan)
    plan.with_name("notes.txt").write_text("my notes")
    plan.with_name("other.yaml").write_text(PLAN.replace("shop", "inn"))
    plan.with_name("folder").mkdir()

    with pytest.raises(PlannerError, match=r"plan itself|the file is not this plan"):
        PlanVersions(plan.with_name(held), plan)


def test_a_file_of_the_plan_is_never_written_over(plan: Path) -> None:
    plan.write_text(PLAN.replace("phases/two.yaml", "newest.phase.yaml"))
    sub = plan.with_name("newest.phase.yaml")
    sub.write_text(SUB.replace("root: ..\n", ""))
    run = Run(plan, PlanVersions(plan.with_name("newest.yaml"), plan))
    run.wait_for("s2", "s1", within="phase")

    (remark,) = run.write()

    assert "newest.phase.yaml: this file belongs to the plan" in remark
    assert sub.read_text() == SUB.replace("root: ..\n", "")


def test_a_place_that_cannot_be_written_is_told(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = PlanVersions(plan.with_name("newest.yaml"), plan)
    run = Run(plan, versions)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        [told] = run.write()
        assert told.startswith("the newest plan could not be written: ")
        assert run.write() == [], "it is told once"
    assert [each.name for each in plan.parent.iterdir() if each.is_file()] == ["plan.yaml"]
    assert run.write() == []
    assert plan.with_name("newest.yaml").read_text() == PLAN
