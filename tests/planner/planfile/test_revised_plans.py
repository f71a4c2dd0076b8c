"""Revised plans, written as a copy or in place; undo restores the previous version."""

from __future__ import annotations

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
from revision_samples import PLAN, SUB, apply_edits, write_plans

from planner.errors import PlannerError
from planner.model.edits import AddDependency
from planner.model.plan import Plan
from planner.planfile.loader import load_plan
from planner.planfile.plan_folder import PlanFolder
from planner.planfile.tree import load_tree
from planner.planfile.versions import undo_plan, write_beside, write_in_place


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_plans(tmp_path)


def waits(plan: Plan, todo_id: str, on: str) -> Plan:
    return apply_edits(plan, [AddDependency(todo_id=todo_id, on=on, rule="r", because="b")])


def both(path: Path) -> dict[str, Plan]:
    tree = load_tree(path)
    return {
        "": waits(tree.loaded.plan, "t2", "t1"),
        "phase": waits(tree.child("phase").loaded.plan, "s2", "s1"),
    }


def titled(path: Path, title: str) -> dict[str, Plan]:
    held = load_tree(path).loaded.plan
    first = held.items[0].model_copy(update={"title": title})
    return {"": held.model_copy(update={"items": (first, *held.items[1:])})}


def test_an_in_place_write_replaces_all_changed_files_and_undo_restores_them(plan: Path) -> None:
    written = write_in_place(load_tree(plan).load_all(), both(plan))
    assert [each.path.name for each in written] == ["plan.yaml", "two.yaml"]
    assert "# mine" in plan.read_text()
    assert "# the second" in Path("phases/two.yaml").read_text()
    assert load_plan(plan).plan.todo("t2").dependencies == ("t1",)
    assert load_tree(plan).child("phase").loaded.plan.todo("s2").dependencies == ("s1",)
    assert {each.name for each in undo_plan(plan)} == {"plan.yaml", "two.yaml"}
    assert (plan.read_text(), Path("phases/two.yaml").read_text()) == (PLAN, SUB)
    with pytest.raises(PlannerError, match="there is no previous version"):
        undo_plan(plan)


def test_unchanged_plans_are_not_written(plan: Path) -> None:
    tree = load_tree(plan)
    same = {"": tree.loaded.plan}
    os.utime(plan, (1, 1))
    assert write_in_place(tree, same) == ()
    assert write_beside(tree, same, Path("next.yaml")) == ()
    assert not Path("next.yaml").exists()
    assert plan.stat().st_mtime == 1


def test_a_copy_is_updated_only_if_it_differs(plan: Path) -> None:
    target = Path("next.yaml")
    revised = both(plan)
    assert [each.path.name for each in write_beside(load_tree(plan).load_all(), revised, target)] == [
        "next.yaml",
        "next.phase.yaml",
    ]
    os.utime(target, (1, 1))
    write_beside(load_tree(plan).load_all(), revised, target)
    assert target.stat().st_mtime == 1
    assert load_tree(target).child("phase").loaded.plan.todo("s2").dependencies == ("s1",)

    other = titled(plan, "Uno")
    write_beside(load_tree(plan).load_all(), other, target)
    assert load_plan(target).plan == other[""]
    undo_plan(target)
    assert load_plan(target).plan.todo("t2").dependencies == ("t1",)
    assert (plan.read_text(), Path("phases/two.yaml").read_text()) == (PLAN, SUB)


def test_the_version_before_a_copy_was_replaced_is_kept_apart_from_that_of_the_plan(plan: Path) -> None:
    target = Path("next.yaml")
    write_in_place(load_tree(plan).load_all(), titled(plan, "Uno"))
    revised = plan.read_text()
    for title in ("Due", "Tre"):
        write_beside(load_tree(plan).load_all(), titled(plan, title), target)
    assert not list(plan.parent.glob("next.*.yaml")), "an unchanged sub-plan is not copied"
    assert [each.name for each in undo_plan(plan)] == ["plan.yaml"]
    assert plan.read_text() == PLAN
    assert [each.name for each in undo_plan(target)] == ["next.yaml"]
    assert target.read_text() == revised.replace("Uno", "Due")


@pytest.mark.parametrize("name", ["two", "second"], ids=["file", "todo_list_id"])
@pytest.mark.parametrize("is_sub_revised", [False, True])
def test_a_copy_in_another_folder_finds_the_sub_plans_that_ids_name(
    plan: Path, name: str, is_sub_revised: bool
) -> None:
    plan.write_text(PLAN.replace("sub_plan: phases/two.yaml", f"sub_project_id: {name}"))
    Path("phases/two.yaml").write_text(SUB.replace("two", "second"))
    revised = both(plan) if is_sub_revised else titled(plan, "Uno")
    target = Path("made/next.yaml")
    target.parent.mkdir()
    write_beside(load_tree(plan).load_all(), revised, target)
    assert load_tree(target).load_all().flat().loaded.plan.todo("phase/s2")


@pytest.mark.parametrize(
    "held", ["plan.yaml", "link.yaml", "phases/two.yaml", "notes.txt", "other.yaml", "folder"]
)
def test_a_copy_does_not_replace_any_other_file(plan: Path, held: str) -> None:
    Path("link.yaml").symlink_to(plan)
    Path("notes.txt").write_text("my notes")
    Path("other.yaml").write_text(PLAN.replace("shop", "inn"))
    Path("folder").mkdir()
    with pytest.raises(PlannerError, match=r"belongs to the plan|the file is not this plan") as told:
        write_beside(load_tree(plan).load_all(), titled(plan, "Uno"), Path(held))
    assert "\n" not in str(told.value)
    assert plan.read_text() == PLAN


@pytest.mark.parametrize("edit", ["# my edit\n", "items: [\n"], ids=["valid", "unusable"])
def test_undo_discards_later_edits_only_if_forced(plan: Path, edit: str) -> None:
    write_in_place(load_tree(plan).load_all(), both(plan))
    mine = plan.read_text() + edit
    plan.write_text(mine)
    with pytest.raises(PlannerError, match=r"plan\.yaml: was edited since it was revised") as refused:
        undo_plan(plan)

    assert "\n" not in str(refused.value)
    assert plan.read_text() == mine
    assert Path("phases/two.yaml").read_text() != SUB
    Path("phases/two.yaml").unlink()
    undo_plan(plan, force=True)
    assert (plan.read_text(), Path("phases/two.yaml").read_text()) == (PLAN, SUB)


def test_a_link_to_nothing_in_place_of_another_version_does_not_prevent_undo(plan: Path) -> None:
    write_in_place(load_tree(plan).load_all(), titled(plan, "Uno"))
    other = PlanFolder(plan.parent, "inn").previous
    other.parent.mkdir()
    other.symlink_to("nothing")
    undo_plan(plan)
    assert plan.read_text() == PLAN


@pytest.mark.parametrize("last", ["interrupted", "damaged", "pipe"])
def test_an_unusable_version_is_not_restored(plan: Path, last: str) -> None:
    write_in_place(load_tree(plan).load_all(), titled(plan, "Uno"))
    version, revised = PlanFolder(plan.parent, "shop").previous, plan.read_text()
    if last == "interrupted":  # as if it had been killed before it wrote the plan
        plan.write_text(revised := PLAN)
    elif last == "damaged":
        version.write_text('{"files": [{}]}')
    else:
        version.unlink()
        os.mkfifo(version)

    with pytest.raises(PlannerError, match="there is no previous version"):
        undo_plan(plan)
    assert plan.read_text() == revised


def test_a_symbolic_link_to_a_plan_stays_a_link(plan: Path) -> None:
    Path("link.yaml").symlink_to(plan)
    write_in_place(load_tree(Path("link.yaml")).load_all(), titled(Path("link.yaml"), "Uno"))
    assert Path("link.yaml").is_symlink()
    assert load_plan(plan).plan.items[0].title == "Uno"
    undo_plan(Path("link.yaml"))
    assert plan.read_text() == PLAN


@pytest.mark.parametrize("force", [False, True])
def test_undo_replaces_no_file_that_is_no_plan(plan: Path, *, force: bool) -> None:
    (mine := plan.with_name("mine.txt")).write_text("mine")
    write_in_place(load_tree(plan), titled(plan, "Uno"))
    version = PlanFolder(plan.parent, "shop").previous
    for name, content in ((mine.name, b"mine"), ("sitecustomize.py", b"")):
        written = f"sha256:{sha256(content).hexdigest()}"
        files = [{"path": name, "before": "", "written": written}]
        version.write_text(json.dumps({"version": 1, "plan": "plan.yaml", "files": files}))
        with pytest.raises(PlannerError, match=f"{name}: is no plan"):
            undo_plan(plan, force=force)
    assert (mine.read_text(), plan.with_name("sitecustomize.py").exists()) == ("mine", False)


def test_a_sub_plan_that_edits_have_broken_is_restored_if_it_is_named(plan: Path) -> None:
    write_in_place(load_tree(plan).load_all(), both(plan))
    (broken := Path("phases/two.yaml")).write_text("items: [")
    with pytest.raises(PlannerError, match=r"two\.yaml: is no plan, or no longer"):
        undo_plan(plan, force=True)
    undo_plan(broken, force=True)
    assert (plan.read_text(), broken.read_text()) == (PLAN, SUB)


def test_a_revised_plan_can_be_written_to_a_pipe(plan: Path) -> None:
    os.mkfifo("pipe")
    handle = os.open("pipe", os.O_RDWR)
    write_beside(load_tree(plan).load_all(), titled(plan, "Uno"), Path("pipe"))
    assert os.read(handle, 10_000).decode() == PLAN.replace("One", "Uno")
    os.close(handle)
    assert Path("pipe").is_fifo()
    with pytest.raises(PlannerError, match="sub-plans of phase are revised, too"):
        write_beside(load_tree(plan).load_all(), both(plan), Path("pipe"))


def test_if_one_file_cannot_be_written_no_file_is_changed(plan: Path, monkeypatch: pytest.MonkeyPatch):
    tree, revised = load_tree(plan), both(plan)
    tree.child("phase")
    real = os.replace

    def full(source: str, target: Path) -> None:
        if Path(target).name == "two.yaml":
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(PlannerError, match="no space left"):
        write_in_place(tree, revised)

    assert (plan.read_text(), Path("phases/two.yaml").read_text()) == (PLAN, SUB)


def test_nothing_is_written_if_the_previous_version_cannot_be_kept(plan: Path) -> None:
    shutil.rmtree(plan.parent / ".planverify", ignore_errors=True)
    (plan.parent / ".planverify").write_text("in the way")
    with pytest.raises(PlannerError, match="the previous version cannot be kept"):
        write_in_place(load_tree(plan).load_all(), titled(plan, "Uno"))
    assert plan.read_text() == PLAN


def test_a_revised_sub_plan_whose_file_cannot_be_loaded_is_refused(plan: Path) -> None:
    revised = both(plan)
    Path("phases/two.yaml").unlink()
    with pytest.raises(PlannerError, match="the sub-plan of 'phase' cannot be loaded from the file"):
        write_in_place(load_tree(plan), revised)
