"""The newest plan of a run in a file: every published edit is in it, and nothing of the user's is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner.errors import PlannerError
from planner.model.actions import PublishPlan
from planner.model.edits import AddDependency, NarrowFiles
from planner.model.events import ClockTicked, PlanSubmitted, SubPlanLoaded
from planner.planfile.loader import load_plan
from planner.planfile.tree import load_tree
from planner.store.plan_versions import NewestPlans, PlanVersions, unchanged_source

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
TICK = ClockTicked.model_validate({"at": "2026-01-01T10:00:00Z"})


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "phases").mkdir()
    (tmp_path / "phases/two.yaml").write_text(SUB)
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path / "plan.yaml"


def submitted(plan: Path) -> PlanSubmitted:
    loaded = load_plan(plan)
    return PlanSubmitted(at=TICK.at, plan=loaded.plan, digest=loaded.digest, path=str(plan))


def published(*edits: AddDependency | NarrowFiles, within: str = "", version: int = 2) -> PublishPlan:
    return PublishPlan(
        rule="r", because="b", within=within, version=version, digest="d", previous="p", edits=edits
    )


def waits(todo_id: str, on: str) -> AddDependency:
    return AddDependency(todo_id=todo_id, on=on, rule="r", because="b")


def test_the_file_holds_the_plan_and_then_its_newest_version(plan: Path) -> None:
    target = plan.with_name("newest.yaml")
    versions = PlanVersions(target, plan)
    assert versions.write() == []
    assert not target.exists()

    versions.take(submitted(plan), ())
    assert versions.write() == []
    assert target.read_text() == PLAN

    versions.take(TICK, (published(waits("t2", "t1")),))
    assert versions.write() == []
    assert "# mine" in target.read_text()
    assert load_plan(target).plan.todo("t2").dependencies == ("t1",)
    os.utime(target, (1, 1))
    versions.take(TICK, ())
    assert versions.write() == []
    assert target.stat().st_mtime == 1, "nothing has changed"
    assert PlanVersions(target, plan).write() == [], "it may be written again by the next process"


def test_a_sub_plan_is_written_beside_it(plan: Path) -> None:
    target = plan.with_name("newest.yaml")
    versions = PlanVersions(target, plan)
    versions.take(submitted(plan), ())
    sub = load_tree(plan).child("phase").loaded.plan
    versions.take(SubPlanLoaded(at=TICK.at, todo_id="phase", plan=sub), ())
    versions.take(TICK, (published(waits("s2", "s1"), within="phase"),))

    assert versions.write() == []

    child = load_tree(target).child("phase").loaded
    assert child.path.name == "newest.phase.yaml"
    assert child.plan.todo("s2").dependencies == ("s1",)
    assert "# the second" in child.path.read_text()
    assert plan.read_text() == PLAN
    assert (plan.parent / "phases/two.yaml").read_text() == SUB


def test_a_sub_plan_that_no_file_holds_is_written_whole(plan: Path) -> None:
    sub = load_tree(plan).child("phase").loaded.plan
    (plan.parent / "phases/two.yaml").unlink()
    target = plan.with_name("newest.yaml")
    versions = PlanVersions(target, plan)
    versions.take(submitted(plan), ())
    versions.take(SubPlanLoaded(at=TICK.at, todo_id="phase", plan=sub), ())
    versions.take(TICK, (published(waits("s2", "s1"), within="phase"),))

    assert versions.write() == []
    text = plan.with_name("newest.phase.yaml").read_text()
    assert "- s1" in text
    assert "sub_plan: newest.phase.yaml" in target.read_text()


@pytest.mark.parametrize("name", ["newest.yaml", "newest.json"])
def test_without_its_file_the_plan_is_written_anew(plan: Path, name: str) -> None:
    target = plan.with_name(name)
    versions = PlanVersions(target, None)
    versions.take(submitted(plan), ())
    versions.take(TICK, (published(waits("t2", "t1")),))

    (remark,) = versions.write()

    assert "written without the comments of the plan: its file is not there as it was" in remark
    assert load_plan(target).plan.todo("t2").dependencies == ("t1",)


def test_only_a_file_that_is_as_it_was_is_the_source(plan: Path) -> None:
    event = submitted(plan)

    assert unchanged_source(event) == plan
    assert unchanged_source(TICK) is None
    plan.write_text(PLAN + "\n")
    assert unchanged_source(event) is None
    plan.unlink()
    assert unchanged_source(event) is None


@pytest.mark.parametrize("held", ["plan.yaml", "link.yaml", "notes.txt", "other.yaml", "folder"])
def test_what_is_something_else_is_not_replaced(plan: Path, held: str) -> None:
    target = plan.with_name(held)
    plan.with_name("link.yaml").symlink_to(plan)
    plan.with_name("notes.txt").write_text("my notes")
    plan.with_name("other.yaml").write_text(PLAN.replace("shop", "inn"))
    plan.with_name("folder").mkdir()

    with pytest.raises(PlannerError, match=r"plan itself|something else than this plan"):
        PlanVersions(target, plan)


def test_an_empty_file_may_be_replaced(plan: Path) -> None:
    target = plan.with_name("newest.yaml")
    target.touch()

    versions = PlanVersions(target, None)
    versions.take(submitted(plan), ())
    versions.write()
    assert load_plan(target).plan.todo_list_id == "shop"


def test_a_file_of_the_plan_is_never_written_over(plan: Path) -> None:
    plan.write_text(PLAN.replace("phases/two.yaml", "newest.phase.yaml"))
    plan.with_name("newest.phase.yaml").write_text(SUB.replace("root: ..\n", ""))
    versions = PlanVersions(plan.with_name("newest.yaml"), plan)
    versions.take(submitted(plan), ())
    sub = load_tree(plan).child("phase").loaded.plan
    versions.take(SubPlanLoaded(at=TICK.at, todo_id="phase", plan=sub), ())
    versions.take(TICK, (published(waits("s2", "s1"), within="phase"),))

    (remark,) = versions.write()

    assert "newest.phase.yaml: is a file of the plan itself" in remark
    assert plan.with_name("newest.phase.yaml").read_text() == SUB.replace("root: ..\n", "")


def test_an_edit_that_does_not_fit_is_told_and_the_rest_goes_on(plan: Path) -> None:
    plans = NewestPlans()
    assert plans.take(submitted(plan), ())

    assert not plans.take(TICK, (published(waits("t9", "t1"), version=3),))
    assert plans.take(TICK, (published(waits("t2", "t1")),))
    assert not plans.take(TICK, (published(waits("x", "y"), within="unknown"),))

    assert plans.remarks[0].startswith("version 3 of the plan cannot be followed: add_dependency of 't9'")
    assert plans.newest().todo("t2").dependencies == ("t1",)


def test_a_place_that_cannot_be_written_is_told(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = PlanVersions(plan.with_name("newest.yaml"), plan)
    versions.take(submitted(plan), ())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        [told] = versions.write()
        assert told.startswith("the newest plan could not be written: ")
        assert versions.write() == [], "it is told once"
    assert [each.name for each in plan.parent.iterdir() if each.is_file()] == ["plan.yaml"]
    assert versions.write() == []
    assert plan.with_name("newest.yaml").read_text() == PLAN
    far = PlanVersions(plan / "newest.yaml", None)
    far.take(submitted(plan), ())
    assert "a part of its path is no folder" in " ".join(far.write())
